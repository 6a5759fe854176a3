//! Registers, commands and completion queues.

use ferroce_proto::abi::cmd::{CmdHead, GidEntry, opcode, status};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, state};
use ferroce_proto::abi::regs;
use ferroce_sim::nic::Nic;
use ferroce_sim::testhost::{Host, QpOptions, Work};

use crate::{connected, pair};

fn answer(host: &mut Host, opcode: u8, index: u32, image: [u8; 64]) -> u8 {
    host.command(
        CmdHead {
            opcode,
            index,
            ..CmdHead::default()
        },
        &[image],
    )
    .status
}

#[test]
fn registers_read_as_declared() {
    let mut host = pair().a;
    for register in regs::REGISTERS {
        let value = host.read32(register.offset);
        match register.offset {
            regs::MAGIC | regs::VERSION => assert_eq!(value, register.reset, "{}", register.name),
            regs::CONTROL => assert_eq!(value, regs::control::ENABLE),
            regs::STATUS => assert_eq!(value, regs::status::LINK_UP | regs::status::READY),
            regs::SCRATCH => {
                host.write32(regs::SCRATCH, 0x1234_5678);
                assert_eq!(host.read32(regs::SCRATCH), 0x1234_5678);
            }
            _ => {}
        }
    }
    host.write32(regs::MAGIC, 0);
    assert_eq!(host.read32(regs::MAGIC), regs::MAGIC_VALUE, "read only");
    assert_eq!(host.read32(0xff0), 0, "nothing there");
    assert_eq!(host.stat("commands"), 3, "port, GID and a completion queue");
    host.write32(regs::CONTROL, regs::control::ENGINE_RESET);
    assert_eq!(host.read32(regs::CONTROL), 0);
    assert_eq!(host.stat("commands"), 0);
}

#[test]
fn commands_are_refused_with_their_reason() {
    let mut host = pair().a;
    let before = host.stat("command_errors");
    let none = [0; 64];
    assert_eq!(answer(&mut host, opcode::NOP, 0, none), status::OK);
    assert_eq!(answer(&mut host, 0xff, 0, none), status::BAD_OPCODE);
    let params = regs::Params::parse(&host.read32(regs::PARAMS).to_le_bytes());
    for (opcode, log_size) in [
        (opcode::MODIFY_QP, params.log_qp),
        (opcode::QUERY_QP, params.log_qp),
        (opcode::CREATE_CQ, params.log_cq),
        (opcode::DESTROY_CQ, params.log_cq),
        (opcode::WRITE_MR, params.log_mr),
        (opcode::CREATE_EQ, params.log_eq),
        (opcode::DESTROY_EQ, params.log_eq),
        (opcode::SET_GID, params.log_gid),
    ] {
        let outside = 1 << log_size;
        assert_eq!(
            answer(&mut host, opcode, outside, none),
            status::BAD_INDEX,
            "command {opcode}"
        );
        assert_eq!(
            answer(&mut host, opcode, u32::MAX, none),
            status::BAD_INDEX,
            "command {opcode}"
        );
    }
    let good = CqCtx {
        base: 64,
        consumer: 4,
        log_size: 22,
        ..CqCtx::default()
    };
    assert_eq!(
        answer(&mut host, opcode::CREATE_CQ, 9, good.emit()),
        status::OK
    );
    for bad in [
        CqCtx {
            log_size: 0,
            ..good
        },
        CqCtx {
            log_size: 23,
            ..good
        },
        CqCtx { base: 32, ..good },
        CqCtx {
            consumer: 2,
            ..good
        },
        CqCtx {
            eqn: 1 << params.log_eq,
            ..good
        },
    ] {
        assert_eq!(
            answer(&mut host, opcode::CREATE_CQ, 9, bad.emit()),
            status::BAD_PARAM
        );
    }
    let good = MrCtx {
        base: 5,
        last: 5,
        key: 0x0301,
        valid: true,
        ..MrCtx::default()
    };
    assert_eq!(
        answer(&mut host, opcode::WRITE_MR, 3, good.emit()),
        status::OK
    );
    for bad in [
        MrCtx { last: 4, ..good },
        MrCtx {
            key: 0x0401,
            ..good
        },
    ] {
        assert_eq!(
            answer(&mut host, opcode::WRITE_MR, 3, bad.emit()),
            status::BAD_PARAM
        );
    }
    let good = EqCtx {
        base: 64,
        consumer: 4,
        log_size: 16,
        ..EqCtx::default()
    };
    assert_eq!(
        answer(&mut host, opcode::CREATE_EQ, 1, good.emit()),
        status::OK
    );
    let bad = EqCtx {
        log_size: 17,
        ..good
    };
    assert_eq!(
        answer(&mut host, opcode::CREATE_EQ, 1, bad.emit()),
        status::BAD_PARAM
    );
    assert_eq!(
        answer(&mut host, opcode::SET_GID, 1, GidEntry::default().emit()),
        status::OK
    );
    assert_eq!(host.stat("command_errors") - before, 1 + 16 + 5 + 2 + 1);
}

#[test]
fn modify_qp_checks_all_before_it_changes_any() {
    let (mut pair, qa, _) = connected(QpOptions::default());
    let host = &mut pair.a;
    let peer = host.peer(qa);
    let images = host.images(qa, &peer);
    let before = host.query(qa);
    let (sq, av, rq) = (
        SqCtx::parse(&images[0]),
        AvCtx::parse(&images[1]),
        RqCtx::parse(&images[2]),
    );
    let head = CmdHead {
        opcode: opcode::MODIFY_QP,
        index: qa,
        qp_sq: true,
        qp_av: true,
        qp_rq: true,
        qp_sq_state: true,
        sq_reset: true,
        sq_state: state::RTS,
        sq_psn: 5,
        ..CmdHead::default()
    };
    let mut refused = |head, images: [[u8; 64]; 3]| {
        assert_eq!(host.command(head, &images).status, status::BAD_PARAM);
    };
    for bad in [
        SqCtx { qp_type: 2, ..sq },
        SqCtx { mtu: 0, ..sq },
        SqCtx { mtu: 6, ..sq },
        SqCtx {
            max_rd_atomic: 17,
            ..sq
        },
        SqCtx { cqn: 0x100, ..sq },
        SqCtx {
            sq_base: sq.sq_base + 8,
            ..sq
        },
        SqCtx {
            ot_base: sq.ot_base + 1,
            ..sq
        },
        SqCtx {
            ot_base: 1 << 14,
            ..sq
        },
    ] {
        refused(head, [bad.emit(), images[1], images[2]]);
    }
    let bad = AvCtx {
        sgid_index: 16,
        ..av
    };
    refused(head, [images[0], bad.emit(), images[2]]);
    for bad in [
        RqCtx { qp_type: 2, ..rq },
        RqCtx { mtu: 7, ..rq },
        RqCtx {
            max_dest_rd_atomic: 17,
            ..rq
        },
        RqCtx {
            srq_valid: true,
            ..rq
        },
        RqCtx {
            sgid_index: 16,
            ..rq
        },
        RqCtx {
            rq_base: rq.rq_base + 1,
            ..rq
        },
    ] {
        refused(head, [images[0], images[1], bad.emit()]);
    }
    refused(
        CmdHead {
            sq_state: 7,
            ..head
        },
        images,
    );
    assert_eq!(host.query(qa), before, "nothing was changed");
    let fresh = CmdHead {
        index: 99,
        qp_sq: false,
        qp_av: false,
        qp_rq: false,
        ..head
    };
    assert_eq!(
        host.command(fresh, &images).status,
        status::BAD_STATE,
        "no context yet"
    );
}

#[test]
fn a_disabled_card_hears_nothing() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    pair.b.write32(regs::CONTROL, 0);
    pair.b.post_recv(qb, &[]);
    pair.a.post_send(qa, &Work::send(&[]));
    pair.run(1000);
    assert_eq!(pair.b.stat("rx_frames"), 0);
    pair.b.write32(regs::CONTROL, regs::control::ENABLE);
    pair.run(20_000);
    assert!(
        pair.a.stat("rnr_nak_received") > 0,
        "the doorbell was not heard, the retry was"
    );
}

#[test]
fn skipping_idle_time_changes_nothing() {
    use ferroce_sim::memory::Ranges;
    use ferroce_sim::model::{DEFAULT_PARAMS, Model};
    let mut nic = Model::new(DEFAULT_PARAMS, std::rc::Rc::new(Ranges::new()));
    assert_eq!(nic.idle_until(), Some(u64::MAX));
    nic.run_until(1 << 40);
    assert_eq!(nic.now(), 1 << 40);
    nic.start_read32(0);
    assert_eq!((nic.idle_until(), nic.take_read32()), (None, None));
    nic.step();
    assert_eq!(nic.take_read32(), Some(regs::MAGIC_VALUE));
    nic.reset();
    assert_eq!(nic.now(), 0);
}

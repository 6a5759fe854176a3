//! Statuses: a case for every limit.

use ferroce_proto::abi::cmd::{CmdHead, GidEntry, PortConfig, opcode, status};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type, state};

use super::generate::Command;
use super::smaller::EQ;
use super::{C, E, M, O, Q, Rig, S};

pub(super) const SQ: SqCtx = SqCtx {
    qp_type: qp_type::RC,
    mtu: 3,
    sq_log: 6,
    ot_log: 4,
    retry_cnt: 7,
    rnr_retry: 7,
    timeout: 14,
    max_rd_atomic: 16,
    rsv0: 0,
    pd: 7,
    cqn: (1 << C) - 1,
    ot_base: (1 << O) - 16,
    sq_base: 0x7f00_0000_0040,
    rate_limit: 0,
    swift: false,
    rsv1: 0,
    window: 0,
};

pub(super) fn rq() -> RqCtx {
    RqCtx {
        rq_base: 0x7f00_0000_1000,
        mtu: 5,
        max_dest_rd_atomic: 16,
        sgid_index: 15,
        cqn: 1,
        ..RqCtx::default()
    }
}

/// MODIFY_QP of queue pair 3.
pub(super) fn modify(head: CmdHead, sq: SqCtx, av: AvCtx, rq: RqCtx) -> Command {
    Command {
        head: CmdHead {
            opcode: opcode::MODIFY_QP,
            index: 3,
            ..head
        },
        images: [sq.emit(), av.emit(), rq.emit()],
    }
}

const CQ: CqCtx = CqCtx {
    base: 0x4000_0040,
    consumer: 0x5000_0004,
    log_size: 22,
    eqn: (1 << E) - 1,
};

#[test]
fn opcodes_and_indices_of_the_build() {
    let mut rig = Rig::new::<512, 64>(4, 0);
    for opcode in 0..=255 {
        let expected = match opcode {
            opcode::CREATE_CQ | opcode::RESIZE_CQ | opcode::CREATE_EQ => status::BAD_PARAM,
            opcode::ARM_SRQ => status::BAD_STATE,
            0..=opcode::DESTROY_SRQ => status::OK,
            _ => status::BAD_OPCODE,
        };
        assert_eq!(rig.execute(Command::new(opcode, 0)), expected, "{opcode}");
    }
    for (opcode, log) in [
        (opcode::MODIFY_QP, Q),
        (opcode::QUERY_QP, Q),
        (opcode::CREATE_CQ, C),
        (opcode::RESIZE_CQ, C),
        (opcode::DESTROY_CQ, C),
        (opcode::WRITE_MR, M),
        (opcode::CREATE_EQ, E),
        (opcode::DESTROY_EQ, E),
        (opcode::WRITE_AH, Q),
        (opcode::SET_GID, 4),
        (opcode::CREATE_SRQ, S),
        (opcode::ARM_SRQ, S),
        (opcode::DESTROY_SRQ, S),
    ] {
        let image = match opcode {
            opcode::CREATE_CQ | opcode::RESIZE_CQ => CQ.emit(),
            opcode::CREATE_EQ => EQ.emit(),
            _ => [0; 64],
        };
        let last = Command::new(opcode, (1 << log) - 1).with(image);
        assert_eq!(rig.execute(last), status::OK, "{opcode}");
        for outside in [1 << log, 1 << 31, u32::MAX] {
            let command = Command::new(opcode, outside).with(image);
            assert_eq!(rig.execute(command), status::BAD_INDEX, "{opcode}");
        }
    }
    for opcode in [opcode::NOP, opcode::SET_PORT] {
        assert_eq!(rig.execute(Command::new(opcode, u32::MAX)), status::OK);
    }
}

#[test]
fn ranges_of_queue_pair_images() {
    let mut rig = Rig::new::<512, 64>(4, 0);
    let all = CmdHead {
        qp_sq: true,
        qp_av: true,
        qp_rq: true,
        ..CmdHead::default()
    };
    let av = AvCtx {
        sgid_index: 15,
        ..AvCtx::default()
    };
    assert_eq!(rig.execute(modify(all, SQ, av, rq())), status::OK);
    let bad_sqs = [
        SqCtx { qp_type: 2, ..SQ },
        SqCtx { mtu: 0, ..SQ },
        SqCtx { mtu: 6, ..SQ },
        SqCtx {
            max_rd_atomic: 17,
            ..SQ
        },
        SqCtx { cqn: 1 << C, ..SQ },
        SqCtx {
            cqn: 1 << 15 | 1,
            ..SQ
        },
        SqCtx {
            sq_base: SQ.sq_base | 32,
            ..SQ
        },
        SqCtx { ot_base: 8, ..SQ },
        SqCtx {
            ot_base: 1 << O,
            ..SQ
        },
        SqCtx {
            ot_base: 1 << 23,
            ..SQ
        },
        SqCtx {
            ot_log: O as u8 + 1,
            ot_base: 0,
            ..SQ
        },
        SqCtx {
            ot_log: 15,
            ot_base: 0,
            ..SQ
        },
    ];
    for sq in bad_sqs {
        assert_eq!(
            rig.execute(modify(all, sq, av, rq())),
            status::BAD_PARAM,
            "{sq:?}"
        );
        // an image that is not taken is not looked at
        let head = CmdHead {
            qp_sq: false,
            ..all
        };
        assert_eq!(rig.execute(modify(head, sq, av, rq())), status::OK);
    }
    for qp_type in [qp_type::UC, qp_type::UD] {
        let sq = SqCtx { qp_type, ..SQ };
        let rq = RqCtx { qp_type, ..rq() };
        assert_eq!(rig.execute(modify(all, sq, av, rq)), status::OK);
    }
    let whole_pool = SqCtx {
        ot_log: O as u8,
        ot_base: 0,
        ..SQ
    };
    assert_eq!(rig.execute(modify(all, whole_pool, av, rq())), status::OK);
    let bad_av = AvCtx {
        sgid_index: 16,
        ..av
    };
    assert_eq!(
        rig.execute(modify(all, SQ, bad_av, rq())),
        status::BAD_PARAM
    );
    let bad_rqs = [
        RqCtx { qp_type: 2, ..rq() },
        RqCtx { mtu: 0, ..rq() },
        RqCtx { mtu: 7, ..rq() },
        RqCtx {
            max_dest_rd_atomic: 17,
            ..rq()
        },
        RqCtx {
            cqn: 1 << C,
            ..rq()
        },
        RqCtx {
            sgid_index: 16,
            ..rq()
        },
        RqCtx {
            rq_base: 0x20,
            ..rq()
        },
        RqCtx {
            srq_valid: true,
            ..rq()
        },
    ];
    for bad in bad_rqs {
        let command = modify(all, SQ, av, bad);
        assert_eq!(rig.execute(command), status::BAD_PARAM, "{bad:?}");
    }
}

#[test]
fn states_exist_and_need_images() {
    let mut rig = Rig::new::<512, 64>(4, 0);
    let av = AvCtx::default();
    let to = |sq_state, rq_state| CmdHead {
        qp_sq_state: true,
        qp_rq_state: true,
        sq_state,
        rq_state,
        ..CmdHead::default()
    };
    let mut run = |head| rig.execute(modify(head, SQ, av, rq()));
    assert_eq!(run(to(7, 0)), status::BAD_PARAM);
    assert_eq!(run(to(0, 8)), status::BAD_PARAM);
    assert_eq!(run(to(255, 255)), status::BAD_PARAM);
    for open in [state::RTR, state::RTS, state::SQD, state::SQE] {
        assert_eq!(run(to(open, 0)), status::BAD_STATE, "no image");
        assert_eq!(run(to(0, open)), status::BAD_STATE, "no image");
    }
    for closed in [state::RESET, state::INIT, state::ERR] {
        assert_eq!(run(to(closed, closed)), status::OK);
    }
    // one image does not stand for the other, and a refused command leaves none
    let with_sq = CmdHead {
        qp_sq: true,
        ..to(state::RTS, state::RTR)
    };
    assert_eq!(run(with_sq), status::BAD_STATE);
    assert_eq!(run(to(state::RTS, 0)), status::BAD_STATE);
    let with_sq = CmdHead {
        qp_sq: true,
        ..to(state::RTS, state::INIT)
    };
    assert_eq!(run(with_sq), status::OK);
    assert_eq!(run(to(state::RTS, state::RTR)), status::BAD_STATE);
    let with_rq = CmdHead {
        qp_rq: true,
        ..to(state::SQD, state::RTR)
    };
    assert_eq!(run(with_rq), status::OK);
    assert_eq!(run(to(state::RTS, state::RTS)), status::OK, "images stay");
    // until the queue ends, though the command brings one
    assert_eq!(run(to(state::RESET, state::RTS)), status::OK);
    assert_eq!(run(to(state::RTS, state::RTS)), status::BAD_STATE);
    let with_rq = CmdHead {
        qp_rq: true,
        ..to(state::INIT, state::RESET)
    };
    assert_eq!(run(with_rq), status::OK);
    assert_eq!(run(to(state::INIT, state::RTR)), status::BAD_STATE);
    // of this queue pair only
    let with_both = CmdHead {
        qp_sq: true,
        qp_rq: true,
        ..to(state::RTS, state::RTS)
    };
    assert_eq!(run(with_both), status::OK);
    let other = Command {
        head: CmdHead {
            index: 4,
            ..modify(to(state::RTS, 0), SQ, av, rq()).head
        },
        ..modify(to(state::RTS, 0), SQ, av, rq())
    };
    assert_eq!(rig.execute(other), status::BAD_STATE);
}

#[test]
fn ranges_of_completion_queues() {
    let mut rig = Rig::new::<64, 8>(4, 0);
    let mut create = |cq: CqCtx| {
        let statuses = [opcode::CREATE_CQ, opcode::RESIZE_CQ]
            .map(|opcode| rig.execute(Command::new(opcode, 2).with(cq.emit())));
        assert_eq!(statuses[0], statuses[1], "{cq:?}");
        if statuses[0] == status::OK {
            let again = rig.execute(Command::new(opcode::CREATE_CQ, 2).with(CQ.emit()));
            assert_eq!(again, status::BAD_STATE);
        }
        // Also of one that is not there.
        let gone = rig.execute(Command::new(opcode::DESTROY_CQ, 2));
        assert_eq!(gone, status::OK);
        statuses[0]
    };
    assert_eq!(create(CQ), status::OK);
    assert_eq!(create(CqCtx { log_size: 1, ..CQ }), status::OK);
    for bad in [
        CqCtx { log_size: 0, ..CQ },
        CqCtx { log_size: 23, ..CQ },
        CqCtx { eqn: 1 << E, ..CQ },
        CqCtx { eqn: 128, ..CQ },
        CqCtx {
            base: CQ.base | 1,
            ..CQ
        },
        CqCtx {
            consumer: CQ.consumer | 2,
            ..CQ
        },
    ] {
        assert_eq!(create(bad), status::BAD_PARAM, "{bad:?}");
    }
}

#[test]
fn ranges_of_memory_regions() {
    let mut rig = Rig::new::<512, 64>(4, 0);
    let index = (1 << M) - 2;
    let good = MrCtx {
        base: 0x8000_0000_0000_0000,
        last: 0x8000_0000_0000_0000,
        key: 0xffff_0000 & !((1 << (8 + M)) - 1) | index << 8 | 0x5a,
        pd: 9,
        valid: true,
        ..MrCtx::default()
    };
    let mut write = |mr: MrCtx| rig.execute(Command::new(opcode::WRITE_MR, index).with(mr.emit()));
    assert_eq!(write(good), status::OK);
    for bad in [
        MrCtx {
            last: good.base - 1,
            ..good
        },
        MrCtx {
            last: 0x7fff_ffff_ffff_ffff,
            ..good
        },
        MrCtx {
            key: good.key ^ 0x100,
            ..good
        },
        MrCtx {
            key: good.key ^ 1 << (7 + M),
            ..good
        },
    ] {
        assert_eq!(write(bad), status::BAD_PARAM, "{bad:?}");
        // deregistering asks for nothing
        let gone = MrCtx {
            valid: false,
            ..bad
        };
        assert_eq!(write(gone), status::OK);
    }
}

#[test]
fn gids_and_the_port() {
    let mut rig = Rig::new::<64, 8>(2, 0);
    let gid = GidEntry {
        gid: 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210,
        valid: true,
        ipv6: true,
    };
    for image in [gid, GidEntry::default()] {
        let command = Command::new(opcode::SET_GID, 15).with(image.emit());
        assert_eq!(rig.execute(command), status::OK);
    }
    for (mac, promiscuous) in [(0x0605_0403_0201, true), (0xffff_ffff_ffff, false)] {
        let image = PortConfig { mac, promiscuous };
        let command = Command::new(opcode::SET_PORT, 0).with(image.emit());
        assert_eq!(rig.execute(command), status::OK);
    }
}

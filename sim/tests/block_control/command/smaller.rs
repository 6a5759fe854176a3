//! What a smaller build refuses; ranges of event queues and address handles.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, SrqCtx, qp_type};
use ferroce_proto::abi::regs::feature;

use super::Rig;
use super::generate::Command;
use super::ranges::{SQ, modify, rq};

pub(super) const EQ: EqCtx = EqCtx {
    base: 0x7f00_0000_0040,
    consumer: 0x7f00_5000_0004,
    log_size: 16,
    vector: 0x7ff,
    moderation: 0xffff,
};

/// What a build does not claim it does not know.
#[test]
fn operations_and_transports_of_a_smaller_build() {
    const RC: usize = feature::RC as usize;
    let mut rig = Rig::with::<512, 64, RC>(4, 0);
    for opcode in opcode::CREATE_EQ..=opcode::ARM_SRQ {
        let expected = match opcode {
            opcode::SET_GID | opcode::SET_PORT => status::OK,
            _ => status::BAD_OPCODE,
        };
        assert_eq!(rig.execute(Command::new(opcode, 0)), expected, "{opcode}");
    }
    let all = CmdHead {
        qp_sq: true,
        qp_rq: true,
        ..CmdHead::default()
    };
    for qp_type in 0..4 {
        let expected = if qp_type == qp_type::RC {
            status::OK
        } else {
            status::BAD_PARAM
        };
        let av = AvCtx::default();
        let sq = modify(all, SqCtx { qp_type, ..SQ }, av, rq());
        assert_eq!(rig.execute(sq), expected, "{qp_type}");
        let rq = RqCtx { qp_type, ..rq() };
        assert_eq!(rig.execute(modify(all, SQ, av, rq)), expected, "{qp_type}");
    }
}

#[test]
fn ranges_of_event_queues_and_address_handles() {
    let mut rig = Rig::new::<64, 8>(4, 0);
    let mut create = |eq: EqCtx| {
        let found = rig.execute(Command::new(opcode::CREATE_EQ, 2).with(eq.emit()));
        if found == status::OK {
            let again = rig.execute(Command::new(opcode::CREATE_EQ, 2).with(EQ.emit()));
            assert_eq!(again, status::BAD_STATE);
        }
        let gone = rig.execute(Command::new(opcode::DESTROY_EQ, 2));
        assert_eq!(gone, status::OK);
        found
    };
    assert_eq!(create(EQ), status::OK);
    assert_eq!(create(EqCtx { log_size: 1, ..EQ }), status::OK);
    for bad in [
        EqCtx { log_size: 0, ..EQ },
        EqCtx { log_size: 17, ..EQ },
        EqCtx {
            base: EQ.base | 0x20,
            ..EQ
        },
        EqCtx {
            consumer: EQ.consumer | 1,
            ..EQ
        },
    ] {
        assert_eq!(create(bad), status::BAD_PARAM, "{bad:?}");
    }
    for (sgid_index, expected) in [
        (15, status::OK),
        (16, status::BAD_PARAM),
        (128, status::BAD_PARAM),
    ] {
        let av = AvCtx {
            sgid_index,
            dgid: 0x0123_4567_89ab_cdef,
            ..AvCtx::default()
        };
        let command = Command::new(opcode::WRITE_AH, 3).with(av.emit());
        assert_eq!(rig.execute(command), expected);
    }
}

/// They exist from CREATE_SRQ to DESTROY_SRQ; a limit and a queue pair need one that exists.
#[test]
fn shared_receive_queues() {
    let mut rig = Rig::new::<512, 64>(4, 0);
    let image = SrqCtx {
        base: 0x7f00_0000_0040,
        numbers: 0x7f00_0000_0080,
        eqn: 3,
        log_size: 15,
        stride: 3,
        limit: 0xffff,
        pd: 0xff_ffff,
        rsv0: 0,
        rsv1: 0,
    };
    let with = |opcode, image: SrqCtx| Command::new(opcode, 3).with(image.emit());
    let arm = || with(opcode::ARM_SRQ, image);
    let qp = |rq: RqCtx| {
        let head = CmdHead {
            qp_rq: true,
            ..CmdHead::default()
        };
        modify(head, SQ, AvCtx::default(), rq)
    };
    let user = RqCtx {
        srq_valid: true,
        srqn: 3,
        ..rq()
    };
    for round in 0..2 {
        assert_eq!(rig.execute(arm()), status::BAD_STATE, "{round}");
        assert_eq!(rig.execute(qp(user)), status::BAD_PARAM, "{round}");
        for bad in [
            SrqCtx {
                base: image.base | 0x20,
                ..image
            },
            SrqCtx {
                numbers: image.numbers | 0x20,
                ..image
            },
            SrqCtx { eqn: 4, ..image },
        ] {
            let status = rig.execute(with(opcode::CREATE_SRQ, bad));
            assert_eq!(status, status::BAD_PARAM, "{bad:?}");
        }
        assert_eq!(rig.execute(arm()), status::BAD_STATE, "none was created");
        let create = with(opcode::CREATE_SRQ, image);
        assert_eq!(rig.execute(create), status::OK);
        let again = with(opcode::CREATE_SRQ, image);
        assert_eq!(rig.execute(again), status::BAD_STATE);
        assert_eq!(rig.execute(arm()), status::OK);
        assert_eq!(rig.execute(qp(user)), status::OK);
        for srqn in [2, 7, 0x8003] {
            let other = RqCtx { srqn, ..user };
            assert_eq!(rig.execute(qp(other)), status::BAD_PARAM, "{srqn:#x}");
        }
        // a queue pair without one may name any
        let none = RqCtx {
            srq_valid: false,
            srqn: 0x8003,
            ..user
        };
        assert_eq!(rig.execute(qp(none)), status::OK);
        let destroy = Command::new(opcode::DESTROY_SRQ, 3);
        assert_eq!(rig.execute(destroy), status::OK);
    }
}

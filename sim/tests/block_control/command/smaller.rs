//! What a smaller build refuses; ranges of event queues and address handles.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type};
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
    let mut create = |eq: EqCtx| rig.execute(Command::new(opcode::CREATE_EQ, 2).with(eq.emit()));
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

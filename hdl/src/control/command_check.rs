//! Command check: what can be said of a command from its entry and the size of the build alone.
//!
//! One cycle: `facts` and `status` of cycle n + 1 are those of the entry in cycle n. Operation, index, images and order
//! are looked at in this order; what is wrong first is the status. Images that the operation does not take and reserved
//! fields are not checked.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::cmd::opcode::{
    ARM_SRQ, CREATE_CQ, CREATE_EQ, CREATE_SRQ, DESTROY_CQ, DESTROY_EQ, DESTROY_SRQ, MODIFY_QP, NOP,
    QUERY_QP, RESIZE_CQ, SET_GID, SET_PORT, WRITE_AH, WRITE_MR,
};
use ferroce_proto::abi::cmd::status::{BAD_INDEX, BAD_OPCODE, BAD_PARAM, BAD_STATE, OK};
use ferroce_proto::abi::cq::{MAX_LOG_CQE, MIN_LOG_CQE};
use ferroce_proto::abi::eq::{MAX_LOG_EQE, MIN_LOG_EQE};
use ferroce_proto::abi::qpc::{MAX_RD_ATOMIC, qp_type};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::{RECORD_BYTES, RING_ALIGN};
use ferroce_proto::wire::Mtu;

use crate::bus::payload::payload;
use crate::bus::qp_state::{ERR, RESET, RTR, SQE};
use crate::bus::types::image::{AvCtx, CmdHead, CqCtx, EqCtx, MrCtx, RqCtx, SqCtx, SrqCtx};
use crate::eth::gid_table::GID_ENTRIES;
use crate::prelude::*;

// the addresses of rings and records are checked by their low bits
const _: () = assert!(RING_ALIGN == 1 << 6 && RECORD_BYTES == 1 << 2);
const MIN_MTU: u64 = Mtu::Mtu256.code() as u64;
const MAX_MTU: u64 = Mtu::Mtu4096.code() as u64;

payload! {
    /// What is known of a command.
    CommandFacts {
        /// Which operation: NOP.
        nop: Bit,
        /// MODIFY_QP.
        modify: Bit,
        /// QUERY_QP.
        query: Bit,
        /// CREATE_CQ.
        create_cq: Bit,
        /// DESTROY_CQ.
        destroy_cq: Bit,
        /// RESIZE_CQ.
        resize_cq: Bit,
        /// WRITE_MR.
        write_mr: Bit,
        /// CREATE_EQ.
        create_eq: Bit,
        /// DESTROY_EQ.
        destroy_eq: Bit,
        /// WRITE_AH.
        write_ah: Bit,
        /// CREATE_SRQ.
        create_srq: Bit,
        /// DESTROY_SRQ.
        destroy_srq: Bit,
        /// ARM_SRQ.
        arm_srq: Bit,
        /// SET_GID.
        set_gid: Bit,
        /// SET_PORT.
        set_port: Bit,
        /// The object exists in this build, or the operation has none.
        index_ok: Bit,
        /// MODIFY_QP: images and states are in range.
        qp_ok: Bit,
        /// CREATE_CQ, RESIZE_CQ: the image is in range.
        cq_ok: Bit,
        /// WRITE_MR: the image is in range.
        mr_ok: Bit,
        /// CREATE_EQ: the image is in range.
        eq_ok: Bit,
        /// WRITE_AH: the image is in range.
        ah_ok: Bit,
        /// CREATE_SRQ: the image is in range.
        srq_ok: Bit,
        /// MODIFY_QP brings the image of a queue pair with a shared receive queue.
        needs_srq: Bit,
        /// MODIFY_QP lets the requester run and does not bring its image.
        needs_sq: Bit,
        /// MODIFY_QP lets the responder run and does not bring its image.
        needs_rq: Bit,
        /// MODIFY_QP brings the requester to RESET.
        sq_ends: Bit,
        /// MODIFY_QP brings the responder to RESET.
        rq_ends: Bit,
    }
}

/// Check for 2^Q queue pairs and address handles, 2^M memory regions, 2^C completion queues, a pool of 2^O outstanding
/// messages, 2^E event queues and 2^S shared receive queues. `F` are the features of the build, as FEATURES tells: the transports and the operations
/// on event queues, address handles and shared receive queues count here.
#[derive(Block)]
#[block(check)]
pub struct CommandCheck<
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Head of the entry.
    pub head: Signal<In, CmdHead>,
    /// Image 1 as requester image.
    pub sq: Signal<In, SqCtx>,
    /// Image 2 as address vector.
    pub av: Signal<In, AvCtx>,
    /// Image 3 as responder image.
    pub rq: Signal<In, RqCtx>,
    /// Image 1 as completion queue.
    pub cq: Signal<In, CqCtx>,
    /// Image 1 as memory region.
    pub mr: Signal<In, MrCtx>,
    /// Image 1 as event queue.
    pub eq: Signal<In, EqCtx>,
    /// Image 1 as address handle.
    pub ah: Signal<In, AvCtx>,
    /// In cycle n + 1: the queue pair had a requester image (bit 0), a responder image (bit 1).
    pub images: Signal<In, Bits<2>>,
    /// Image 1 as shared receive queue.
    pub srq: Signal<In, SrqCtx>,
    /// In cycle n + 1: the shared receive queue that the command is on, or that of the responder image, exists.
    pub srq_exists: Signal<In, Bit>,
    /// In cycle n + 1: the completion queue of that number exists.
    pub cq_exists: Signal<In, Bit>,
    /// In cycle n + 1: the event queue of that number exists.
    pub eq_exists: Signal<In, Bit>,
    /// What is known.
    pub facts: Signal<Out, CommandFacts>,
    /// What is to be answered, see `cmd::status`.
    pub status: Signal<Out, Bits<8>>,

    found: Dff<CommandFacts>,
    // bits that a number in range does not have
    #[init(Self::outside(Q))]
    outside_qp: Constant<Bits<32>>,
    #[init(Self::outside(M))]
    outside_mr: Constant<Bits<32>>,
    #[init(Self::outside(C))]
    outside_cq: Constant<Bits<32>>,
    #[init(Self::outside(GID_ENTRIES.ilog2() as usize))]
    outside_gid: Constant<Bits<32>>,
    #[init(Self::outside(O))]
    outside_pool: Constant<Bits<32>>,
    #[init(Self::outside(E))]
    outside_eq: Constant<Bits<32>>,
    #[init(Self::outside(S))]
    outside_srq: Constant<Bits<32>>,
    #[init(Constant::new(Self::has(feature::SRQ)))]
    has_shared: Constant<Bit>,
    #[init(Constant::new(Self::transports().to_bits()))]
    transports: Constant<Bits<4>>,
    #[init(Constant::new(Self::has(feature::EVENTS)))]
    has_events: Constant<Bit>,
    #[init(Constant::new(Self::has(feature::UD)))]
    has_handles: Constant<Bit>,
    #[init(Constant::new(0xffff.into()))]
    ones: Constant<Bits<16>>,
    /// Bit n: 2^n entries fit the pool.
    #[init(Constant::new((0..16).fold(0u64, |set, n| set | u64::from(n <= O) << n).to_bits()))]
    fits_pool: Constant<Bits<16>>,
}

impl<
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> CommandCheck<Q, M, C, O, E, F, S>
{
    fn check() {
        assert!(
            (4..=14).contains(&Q) && (2..=16).contains(&M),
            "2^{Q} queue pairs, 2^{M} memory regions: 2^4 to 2^14 and 2^2 to 2^16 can be built"
        );
        assert!(
            (1..=16).contains(&C) && O <= 24 && E <= 7 && (1..=14).contains(&S),
            "2^{C} completion queues, 2^{O} outstanding messages, 2^{E} event queues, 2^{S} shared receive queues: 2^1 to 2^16, up to 2^24, up to 2^7 and 2^1 to 2^14 can be built"
        );
    }

    /// Transports of the build, a bit each.
    fn transports() -> u64 {
        [
            (feature::RC, qp_type::RC),
            (feature::UC, qp_type::UC),
            (feature::UD, qp_type::UD),
        ]
        .iter()
        .fold(0, |set, (f, code)| set | u64::from(Self::has(*f)) << code)
    }

    /// The build has a feature.
    fn has(feature: u32) -> bool {
        F as u64 & u64::from(feature) != 0
    }

    /// Bits that a number below 2^`log` does not have.
    fn outside(log: usize) -> Constant<Bits<32>> {
        Constant::new((u64::from(u32::MAX) >> log << log).to_bits::<32>())
    }
}

impl<
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> Logic for CommandCheck<Q, M, C, O, E, F, S>
{
    describe!(
        "command_check",
        format!("q{Q}_m{M}_c{C}_o{O}_e{E}_f{F:x}_s{S}"),
        "Checks a command against the size of the build."
    );

    #[kernel]
    fn update(&mut self) {
        // which operation, on what
        found.nop = head.opcode == NOP;
        found.modify = head.opcode == MODIFY_QP;
        found.query = head.opcode == QUERY_QP;
        found.create_cq = head.opcode == CREATE_CQ;
        found.destroy_cq = head.opcode == DESTROY_CQ;
        found.resize_cq = head.opcode == RESIZE_CQ;
        found.write_mr = head.opcode == WRITE_MR;
        found.create_eq = (head.opcode == CREATE_EQ) & has_events;
        found.destroy_eq = (head.opcode == DESTROY_EQ) & has_events;
        found.write_ah = (head.opcode == WRITE_AH) & has_handles;
        found.create_srq = (head.opcode == CREATE_SRQ) & has_shared;
        found.destroy_srq = (head.opcode == DESTROY_SRQ) & has_shared;
        found.arm_srq = (head.opcode == ARM_SRQ) & has_shared;
        found.set_gid = head.opcode == SET_GID;
        found.set_port = head.opcode == SET_PORT;
        let mut limit: Bits<32> = bits::<32>(0);
        if (head.opcode == MODIFY_QP) | (head.opcode == QUERY_QP) | (head.opcode == WRITE_AH) {
            limit = outside_qp;
        } else if (head.opcode == CREATE_CQ)
            | (head.opcode == DESTROY_CQ)
            | (head.opcode == RESIZE_CQ)
        {
            limit = outside_cq;
        } else if (head.opcode == CREATE_EQ) | (head.opcode == DESTROY_EQ) {
            limit = outside_eq;
        } else if (head.opcode == CREATE_SRQ)
            | (head.opcode == DESTROY_SRQ)
            | (head.opcode == ARM_SRQ)
        {
            limit = outside_srq;
        } else if head.opcode == WRITE_MR {
            limit = outside_mr;
        } else if head.opcode == SET_GID {
            limit = outside_gid;
        }
        found.index_ok = !(head.index & limit).any();

        // queue pair: an outstanding ring that stands at a multiple of its size below the pool's end lies inside
        let ring_mask = !(ones << sq.ot_log);
        let sq_ok = transports.bit(sq.qp_type)
            & (sq.mtu >= MIN_MTU)
            & (sq.mtu <= MAX_MTU)
            & (sq.max_rd_atomic <= MAX_RD_ATOMIC)
            & !(sq.cqn.resize::<32>() & outside_cq).any()
            & !sq.sq_base.low::<6>().any()
            & !(sq.ot_base.low::<16>() & ring_mask).any()
            & !(sq.ot_base.resize::<32>() & outside_pool).any()
            & fits_pool.bit(sq.ot_log);
        let av_ok = !(av.sgid_index.resize::<32>() & outside_gid).any();
        let rq_ok = transports.bit(rq.qp_type)
            & (rq.mtu >= MIN_MTU)
            & (rq.mtu <= MAX_MTU)
            & (rq.max_dest_rd_atomic <= MAX_RD_ATOMIC)
            & !(rq.cqn.resize::<32>() & outside_cq).any()
            & !(rq.sgid_index.resize::<32>() & outside_gid).any()
            & !rq.rq_base.low::<6>().any()
            & (!rq.srq_valid | (has_shared & !(rq.srqn.resize::<32>() & outside_srq).any()));
        found.needs_srq = head.qp_rq & rq.srq_valid;
        let states_ok = (!head.qp_sq_state | (head.sq_state <= ERR))
            & (!head.qp_rq_state | (head.rq_state <= ERR));
        found.qp_ok =
            (!head.qp_sq | sq_ok) & (!head.qp_av | av_ok) & (!head.qp_rq | rq_ok) & states_ok;
        found.needs_sq =
            head.qp_sq_state & (head.sq_state >= RTR) & (head.sq_state <= SQE) & !head.qp_sq;
        found.needs_rq =
            head.qp_rq_state & (head.rq_state >= RTR) & (head.rq_state <= SQE) & !head.qp_rq;
        found.sq_ends = head.qp_sq_state & (head.sq_state == RESET);
        found.rq_ends = head.qp_rq_state & (head.rq_state == RESET);

        // completion queue
        found.cq_ok = (cq.log_size >= MIN_LOG_CQE)
            & (cq.log_size <= MAX_LOG_CQE)
            & !(cq.eqn.resize::<32>() & outside_eq).any()
            & !cq.base.low::<6>().any()
            & !cq.consumer.low::<2>().any();

        // event queue, address handle, shared receive queue
        found.srq_ok = !srq.base.low::<6>().any()
            & !srq.numbers.low::<6>().any()
            & !(srq.eqn.resize::<32>() & outside_eq).any();
        found.eq_ok = (eq.log_size >= MIN_LOG_EQE)
            & (eq.log_size <= MAX_LOG_EQE)
            & !eq.base.low::<6>().any()
            & !eq.consumer.low::<2>().any();
        found.ah_ok = !(ah.sgid_index.resize::<32>() & outside_gid).any();

        // memory region: the key says where in the table it stands
        let own_key = mr.key.slice::<M>(8) == head.index.low::<M>();
        found.mr_ok = !mr.valid | (own_key & (mr.base <= mr.last));

        // the first thing that is wrong
        let known = found.nop
            | found.modify
            | found.query
            | found.create_cq
            | found.destroy_cq
            | found.resize_cq
            | found.write_mr
            | found.create_eq
            | found.destroy_eq
            | found.write_ah
            | found.create_srq
            | found.destroy_srq
            | found.arm_srq
            | found.set_gid
            | found.set_port;
        let in_range = (!found.modify | found.qp_ok)
            & (!(found.modify & found.needs_srq) | srq_exists)
            & (!found.create_srq | found.srq_ok)
            & (!(found.create_cq | found.resize_cq) | found.cq_ok)
            & (!found.create_eq | found.eq_ok)
            & (!found.write_ah | found.ah_ok)
            & (!found.write_mr | found.mr_ok);
        let too_early = (found.arm_srq & !srq_exists)
            | (found.modify
                & ((found.needs_sq & !images.bit(0)) | (found.needs_rq & !images.bit(1))));
        let too_late = (found.create_cq & cq_exists)
            | (found.create_eq & eq_exists)
            | (found.create_srq & srq_exists);
        status = bits::<8>(OK);
        if !known {
            status = bits::<8>(BAD_OPCODE);
        } else if !found.index_ok {
            status = bits::<8>(BAD_INDEX);
        } else if !in_range {
            status = bits::<8>(BAD_PARAM);
        } else if too_early | too_late {
            status = bits::<8>(BAD_STATE);
        }
        facts = found;
    }
}

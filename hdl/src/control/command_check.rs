//! Command check: what can be said of a command from its entry and the size of the build alone.
//!
//! One cycle: `facts` and `status` of cycle n + 1 are those of the entry in cycle n. Operation, index, images and order
//! are looked at in this order; what is wrong first is the status. Images that the operation does not take and reserved
//! fields are not checked.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::cmd::{opcode, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::Mtu;

use crate::bus::payload::payload;
use crate::bus::types::image::{AvCtx, CmdHead, CqCtx, EqCtx, MrCtx, RqCtx, SqCtx, SrqCtx};
use crate::eth::gid_table::GID_ENTRIES;
use crate::prelude::*;

/// Most READs and atomics outstanding.
const MAX_RD_ATOMIC: u64 = 16;
/// Smallest and largest log2 of the entries of a completion queue.
const MIN_LOG_CQE: u64 = 1;
const MAX_LOG_CQE: u64 = 22;
/// Smallest and largest log2 of the entries of an event queue.
const MIN_LOG_EQE: u64 = 1;
const MAX_LOG_EQE: u64 = 16;
const MIN_MTU: u64 = Mtu::Mtu256.code() as u64;
const MAX_MTU: u64 = Mtu::Mtu4096.code() as u64;

const OK: u64 = status::OK as u64;
const BAD_OPCODE: u64 = status::BAD_OPCODE as u64;
const BAD_INDEX: u64 = status::BAD_INDEX as u64;
const BAD_PARAM: u64 = status::BAD_PARAM as u64;
const BAD_STATE: u64 = status::BAD_STATE as u64;
const NOP: u64 = opcode::NOP as u64;
const MODIFY_QP: u64 = opcode::MODIFY_QP as u64;
const QUERY_QP: u64 = opcode::QUERY_QP as u64;
const CREATE_CQ: u64 = opcode::CREATE_CQ as u64;
const DESTROY_CQ: u64 = opcode::DESTROY_CQ as u64;
const RESIZE_CQ: u64 = opcode::RESIZE_CQ as u64;
const WRITE_MR: u64 = opcode::WRITE_MR as u64;
const CREATE_EQ: u64 = opcode::CREATE_EQ as u64;
const DESTROY_EQ: u64 = opcode::DESTROY_EQ as u64;
const WRITE_AH: u64 = opcode::WRITE_AH as u64;
const CREATE_SRQ: u64 = opcode::CREATE_SRQ as u64;
const DESTROY_SRQ: u64 = opcode::DESTROY_SRQ as u64;
const ARM_SRQ: u64 = opcode::ARM_SRQ as u64;
const SET_GID: u64 = opcode::SET_GID as u64;
const SET_PORT: u64 = opcode::SET_PORT as u64;
const RESET: u64 = state::RESET as u64;
const RTR: u64 = state::RTR as u64;
const SQE: u64 = state::SQE as u64;
const ERR: u64 = state::ERR as u64;

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
#[derive(LogicBlock)]
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
    /// What is known.
    pub facts: Signal<Out, CommandFacts>,
    /// What is to be answered, see `cmd::status`.
    pub status: Signal<Out, Bits<8>>,

    found: Dff<CommandFacts>,
    limit: Signal<Local, Bits<32>>,
    ring_mask: Signal<Local, Bits<16>>,
    sq_ok: Signal<Local, Bit>,
    av_ok: Signal<Local, Bit>,
    rq_ok: Signal<Local, Bit>,
    states_ok: Signal<Local, Bit>,
    own_key: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
    too_early: Signal<Local, Bit>,
    // bits that a number in range does not have
    beyond_qp: Constant<Bits<32>>,
    beyond_mr: Constant<Bits<32>>,
    beyond_cq: Constant<Bits<32>>,
    beyond_gid: Constant<Bits<32>>,
    beyond_pool: Constant<Bits<32>>,
    beyond_eq: Constant<Bits<32>>,
    beyond_srq: Constant<Bits<32>>,
    has_shared: Constant<Bit>,
    transports: Constant<Bits<4>>,
    has_events: Constant<Bit>,
    has_handles: Constant<Bit>,
    ones: Constant<Bits<16>>,
    /// Bit n: 2^n entries fit the pool.
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
> Default for CommandCheck<Q, M, C, O, E, F, S>
{
    fn default() -> Self {
        assert!(
            (4..=14).contains(&Q) && (2..=16).contains(&M),
            "2^{Q} queue pairs, 2^{M} memory regions: 2^4 to 2^14 and 2^2 to 2^16 can be built"
        );
        assert!(
            (1..=16).contains(&C) && O <= 24 && E <= 7 && (1..=14).contains(&S),
            "2^{C} completion queues, 2^{O} outstanding messages, 2^{E} event queues, 2^{S} shared receive queues: 2^1 to 2^16, up to 2^24, up to 2^7 and 2^1 to 2^14 can be built"
        );
        let has = |feature: u32| F as u64 & u64::from(feature) != 0;
        let transports = [
            (feature::RC, qp_type::RC),
            (feature::UC, qp_type::UC),
            (feature::UD, qp_type::UD),
        ];
        let beyond =
            |log: usize| Constant::new((u64::from(u32::MAX) >> log << log).to_bits::<32>());
        Self {
            clock: ClkRst::default(),
            head: Signal::default(),
            sq: Signal::default(),
            av: Signal::default(),
            rq: Signal::default(),
            cq: Signal::default(),
            mr: Signal::default(),
            eq: Signal::default(),
            ah: Signal::default(),
            images: Signal::default(),
            srq: Signal::default(),
            srq_exists: Signal::default(),
            facts: Signal::default(),
            status: Signal::default(),
            found: Dff::default(),
            limit: Signal::default(),
            ring_mask: Signal::default(),
            sq_ok: Signal::default(),
            av_ok: Signal::default(),
            rq_ok: Signal::default(),
            states_ok: Signal::default(),
            own_key: Signal::default(),
            known: Signal::default(),
            in_range: Signal::default(),
            too_early: Signal::default(),
            beyond_qp: beyond(Q),
            beyond_mr: beyond(M),
            beyond_cq: beyond(C),
            beyond_gid: beyond(GID_ENTRIES.ilog2() as usize),
            beyond_pool: beyond(O),
            beyond_eq: beyond(E),
            beyond_srq: beyond(S),
            has_shared: Constant::new(has(feature::SRQ)),
            transports: Constant::new(
                transports
                    .iter()
                    .fold(0u64, |set, (f, code)| set | u64::from(has(*f)) << code)
                    .to_bits(),
            ),
            has_events: Constant::new(has(feature::EVENTS)),
            has_handles: Constant::new(has(feature::UD)),
            ones: Constant::new(0xffff.into()),
            fits_pool: Constant::new(
                (0..16)
                    .fold(0u64, |set, n| set | u64::from(n <= O) << n)
                    .to_bits(),
            ),
        }
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
        "Checks a command against the size of the build.";
        NOP, MODIFY_QP, QUERY_QP, CREATE_CQ, DESTROY_CQ, WRITE_MR, CREATE_EQ, DESTROY_EQ, WRITE_AH, SET_GID, SET_PORT,
        CREATE_SRQ, DESTROY_SRQ, ARM_SRQ, RESIZE_CQ,
        MIN_LOG_EQE, MAX_LOG_EQE,
        OK, BAD_OPCODE, BAD_INDEX, BAD_PARAM, BAD_STATE, MIN_MTU, MAX_MTU, MIN_LOG_CQE, MAX_LOG_CQE, MAX_RD_ATOMIC, RESET, RTR, SQE, ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, found);

        // which operation, on what
        self.found.d.next.nop = self.head.val().opcode == NOP;
        self.found.d.next.modify = self.head.val().opcode == MODIFY_QP;
        self.found.d.next.query = self.head.val().opcode == QUERY_QP;
        self.found.d.next.create_cq = self.head.val().opcode == CREATE_CQ;
        self.found.d.next.destroy_cq = self.head.val().opcode == DESTROY_CQ;
        self.found.d.next.resize_cq = self.head.val().opcode == RESIZE_CQ;
        self.found.d.next.write_mr = self.head.val().opcode == WRITE_MR;
        self.found.d.next.create_eq = (self.head.val().opcode == CREATE_EQ) & self.has_events.val();
        self.found.d.next.destroy_eq =
            (self.head.val().opcode == DESTROY_EQ) & self.has_events.val();
        self.found.d.next.write_ah = (self.head.val().opcode == WRITE_AH) & self.has_handles.val();
        self.found.d.next.create_srq =
            (self.head.val().opcode == CREATE_SRQ) & self.has_shared.val();
        self.found.d.next.destroy_srq =
            (self.head.val().opcode == DESTROY_SRQ) & self.has_shared.val();
        self.found.d.next.arm_srq = (self.head.val().opcode == ARM_SRQ) & self.has_shared.val();
        self.found.d.next.set_gid = self.head.val().opcode == SET_GID;
        self.found.d.next.set_port = self.head.val().opcode == SET_PORT;
        self.limit.next = bits::<32>(0);
        if (self.head.val().opcode == MODIFY_QP)
            | (self.head.val().opcode == QUERY_QP)
            | (self.head.val().opcode == WRITE_AH)
        {
            self.limit.next = self.beyond_qp.val();
        } else if (self.head.val().opcode == CREATE_CQ)
            | (self.head.val().opcode == DESTROY_CQ)
            | (self.head.val().opcode == RESIZE_CQ)
        {
            self.limit.next = self.beyond_cq.val();
        } else if (self.head.val().opcode == CREATE_EQ) | (self.head.val().opcode == DESTROY_EQ) {
            self.limit.next = self.beyond_eq.val();
        } else if (self.head.val().opcode == CREATE_SRQ)
            | (self.head.val().opcode == DESTROY_SRQ)
            | (self.head.val().opcode == ARM_SRQ)
        {
            self.limit.next = self.beyond_srq.val();
        } else if self.head.val().opcode == WRITE_MR {
            self.limit.next = self.beyond_mr.val();
        } else if self.head.val().opcode == SET_GID {
            self.limit.next = self.beyond_gid.val();
        }
        self.found.d.next.index_ok = !(self.head.val().index & self.limit.val()).any();

        // queue pair: an outstanding ring that stands at a multiple of its size below the pool's end lies inside
        self.ring_mask.next = !(self.ones.val() << self.sq.val().ot_log);
        self.sq_ok.next = self.transports.val().get_bit(self.sq.val().qp_type.index())
            & (self.sq.val().mtu >= MIN_MTU)
            & (self.sq.val().mtu <= MAX_MTU)
            & (self.sq.val().max_rd_atomic <= MAX_RD_ATOMIC)
            & !(bit_cast::<32, 16>(self.sq.val().cqn) & self.beyond_cq.val()).any()
            & !self.sq.val().sq_base.get_bits::<6>(0).any()
            & !(self.sq.val().ot_base.get_bits::<16>(0) & self.ring_mask.val()).any()
            & !(bit_cast::<32, 24>(self.sq.val().ot_base) & self.beyond_pool.val()).any()
            & self.fits_pool.val().get_bit(self.sq.val().ot_log.index());
        self.av_ok.next =
            !(bit_cast::<32, 8>(self.av.val().sgid_index) & self.beyond_gid.val()).any();
        self.rq_ok.next = self.transports.val().get_bit(self.rq.val().qp_type.index())
            & (self.rq.val().mtu >= MIN_MTU)
            & (self.rq.val().mtu <= MAX_MTU)
            & (self.rq.val().max_dest_rd_atomic <= MAX_RD_ATOMIC)
            & !(bit_cast::<32, 16>(self.rq.val().cqn) & self.beyond_cq.val()).any()
            & !(bit_cast::<32, 8>(self.rq.val().sgid_index) & self.beyond_gid.val()).any()
            & !self.rq.val().rq_base.get_bits::<6>(0).any()
            & (!self.rq.val().srq_valid
                | (self.has_shared.val()
                    & !(bit_cast::<32, 16>(self.rq.val().srqn) & self.beyond_srq.val()).any()));
        self.found.d.next.needs_srq = self.head.val().qp_rq & self.rq.val().srq_valid;
        self.states_ok.next = (!self.head.val().qp_sq_state | (self.head.val().sq_state <= ERR))
            & (!self.head.val().qp_rq_state | (self.head.val().rq_state <= ERR));
        self.found.d.next.qp_ok = (!self.head.val().qp_sq | self.sq_ok.val())
            & (!self.head.val().qp_av | self.av_ok.val())
            & (!self.head.val().qp_rq | self.rq_ok.val())
            & self.states_ok.val();
        self.found.d.next.needs_sq = self.head.val().qp_sq_state
            & (self.head.val().sq_state >= RTR)
            & (self.head.val().sq_state <= SQE)
            & !self.head.val().qp_sq;
        self.found.d.next.needs_rq = self.head.val().qp_rq_state
            & (self.head.val().rq_state >= RTR)
            & (self.head.val().rq_state <= SQE)
            & !self.head.val().qp_rq;
        self.found.d.next.sq_ends =
            self.head.val().qp_sq_state & (self.head.val().sq_state == RESET);
        self.found.d.next.rq_ends =
            self.head.val().qp_rq_state & (self.head.val().rq_state == RESET);

        // completion queue
        self.found.d.next.cq_ok = (self.cq.val().log_size >= MIN_LOG_CQE)
            & (self.cq.val().log_size <= MAX_LOG_CQE)
            & !(bit_cast::<32, 8>(self.cq.val().eqn) & self.beyond_eq.val()).any()
            & !self.cq.val().base.get_bits::<6>(0).any()
            & !self.cq.val().consumer.get_bits::<2>(0).any();

        // event queue, address handle, shared receive queue
        self.found.d.next.srq_ok = !self.srq.val().base.get_bits::<6>(0).any()
            & !(bit_cast::<32, 8>(self.srq.val().eqn) & self.beyond_eq.val()).any();
        self.found.d.next.eq_ok = (self.eq.val().log_size >= MIN_LOG_EQE)
            & (self.eq.val().log_size <= MAX_LOG_EQE)
            & !self.eq.val().base.get_bits::<6>(0).any()
            & !self.eq.val().consumer.get_bits::<2>(0).any();
        self.found.d.next.ah_ok =
            !(bit_cast::<32, 8>(self.ah.val().sgid_index) & self.beyond_gid.val()).any();

        // memory region: the key says where in the table it stands
        self.own_key.next =
            self.mr.val().key.get_bits::<M>(8) == self.head.val().index.get_bits::<M>(0);
        self.found.d.next.mr_ok = !self.mr.val().valid
            | (self.own_key.val() & (self.mr.val().base <= self.mr.val().last));

        // the first thing that is wrong
        self.known.next = self.found.q.val().nop
            | self.found.q.val().modify
            | self.found.q.val().query
            | self.found.q.val().create_cq
            | self.found.q.val().destroy_cq
            | self.found.q.val().resize_cq
            | self.found.q.val().write_mr
            | self.found.q.val().create_eq
            | self.found.q.val().destroy_eq
            | self.found.q.val().write_ah
            | self.found.q.val().create_srq
            | self.found.q.val().destroy_srq
            | self.found.q.val().arm_srq
            | self.found.q.val().set_gid
            | self.found.q.val().set_port;
        self.in_range.next = (!self.found.q.val().modify | self.found.q.val().qp_ok)
            & (!(self.found.q.val().modify & self.found.q.val().needs_srq) | self.srq_exists.val())
            & (!self.found.q.val().create_srq | self.found.q.val().srq_ok)
            & (!(self.found.q.val().create_cq | self.found.q.val().resize_cq)
                | self.found.q.val().cq_ok)
            & (!self.found.q.val().create_eq | self.found.q.val().eq_ok)
            & (!self.found.q.val().write_ah | self.found.q.val().ah_ok)
            & (!self.found.q.val().write_mr | self.found.q.val().mr_ok);
        self.too_early.next = self.found.q.val().modify
            & ((self.found.q.val().needs_sq & !self.images.val().get_bit(0))
                | (self.found.q.val().needs_rq & !self.images.val().get_bit(1)));
        if self.found.q.val().arm_srq {
            self.too_early.next = !self.srq_exists.val();
        }
        self.status.next = bits::<8>(OK);
        if !self.known.val() {
            self.status.next = bits::<8>(BAD_OPCODE);
        } else if !self.found.q.val().index_ok {
            self.status.next = bits::<8>(BAD_INDEX);
        } else if !self.in_range.val() {
            self.status.next = bits::<8>(BAD_PARAM);
        } else if self.too_early.val() {
            self.status.next = bits::<8>(BAD_STATE);
        }
        self.facts.next = self.found.q.val();
    }
}

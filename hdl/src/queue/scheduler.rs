//! Scheduler: which send queue reads WQEs next.
//!
//! A FIFO of ready queue pairs: each stands in it at most once (`sq_state` keeps the mark), goes to the tail when it
//! has more to do, and so takes its turn round robin. A Fetch event leaves when 8 slots of the WQE buffer are free;
//! they are reserved by it, and `credit` gives back what was not used or has been taken out of the buffer. `shared` says that
//! the buffer holds slots of more than one queue pair, or did since it was empty.
//!
//! While no queue pair is ready and slots are free a doorbell passes with `fetches`: 8 slots are reserved for it too, and it
//! is its own Fetch event, if its queue pair is not ready already.
use crate::prelude::*;
use crate::transport::requester::event::{SqEvent, SqEventKind};

/// Scheduler of 2^Q queue pairs over a buffer of 2^B slots.
#[derive(LogicBlock)]
pub struct Scheduler<const Q: usize, const B: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A queue pair becomes ready.
    pub push: Signal<In, Bit>,
    /// Which.
    pub push_qpn: Signal<In, Bits<16>>,
    /// Slots given back in this cycle.
    pub credit: Signal<In, Bits<5>>,
    /// Fetch events.
    pub m: StreamOut<SqEvent>,
    /// Doorbell events.
    pub doorbell: StreamIn<SqEvent>,
    /// They with what they may do.
    pub rung: StreamOut<SqEvent>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<Out, Bit>,
    fifo: Fifo<Bits<16>, Q>,
    free: Reg<Bits<10>>,
    issue: Signal<Local, Bit>,
    spare: Signal<Local, Bit>,
    /// Slots were given to a doorbell in the cycle before.
    claimed: Reg<Bit>,
    claimant: Dff<Bits<16>>,
    reserve: Signal<Local, Bit>,
    taker: Signal<Local, Bits<16>>,
    /// Free slots and those given back.
    returned: Signal<Local, Bits<10>>,
    event: Dff<SqEvent>,
    no_event: Zero<SqEvent>,
    valid: Reg<Bit>,
    owner: Dff<Bits<16>>,
    mixed: Reg<Bit>,
    slots: Constant<Bits<10>>,
}

impl<const Q: usize, const B: usize> Default for Scheduler<Q, B> {
    fn default() -> Self {
        assert!(
            (4..10).contains(&B),
            "WQE buffer of 2^{B} slots: 2^4 to 2^9 can be built"
        );
        Self {
            clock: ClkRst::default(),
            push: Signal::default(),
            push_qpn: Signal::default(),
            credit: Signal::default(),
            m: StreamOut::default(),
            doorbell: StreamIn::default(),
            rung: StreamOut::default(),
            shared: Signal::default(),
            fifo: Fifo::default(),
            free: Reg::new((1u64 << B).to_bits()),
            issue: Signal::default(),
            spare: Signal::default(),
            claimed: Reg::default(),
            claimant: Dff::default(),
            reserve: Signal::default(),
            taker: Signal::default(),
            returned: Signal::default(),
            event: Dff::default(),
            no_event: Zero::default(),
            valid: Reg::default(),
            owner: Dff::default(),
            mixed: Reg::default(),
            slots: Constant::new((1u64 << B).to_bits()),
        }
    }
}

impl<const Q: usize, const B: usize> Logic for Scheduler<Q, B> {
    describe!(
        "scheduler",
        format!("q{Q}_b{B}"),
        "FIFO of ready queue pairs, gated by free WQE slots."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, fifo);
        dff_setup!(
            self, clock, free, event, valid, owner, mixed, claimed, claimant
        );
        self.fifo.s.valid.next = self.push.val();
        self.fifo.s.payload.next = self.push_qpn.val();
        self.issue.next = self.fifo.m.valid.val()
            & (self.m.ready.val() | !self.valid.q.val())
            & !self.claimed.q.val()
            & self.free.q.val().get_bits::<7>(3).any();
        self.fifo.m.ready.next = self.issue.val();
        if self.issue.val() {
            self.event.d.next = self.no_event.val();
            self.event.d.next.kind = SqEventKind::Fetch;
            self.event.d.next.qpn = self.fifo.m.payload.val();
            self.valid.d.next = true;
        } else if self.m.ready.val() {
            self.valid.d.next = false;
        }
        // a doorbell's slots are counted in the cycle behind it, in which nobody gets others
        self.spare.next = !self.fifo.m.valid.val()
            & !self.valid.q.val()
            & !self.claimed.q.val()
            & self.free.q.val().get_bits::<7>(3).any();
        self.rung.valid.next = self.doorbell.valid.val();
        self.rung.payload.next = self.doorbell.payload.val();
        self.rung.payload.next.fetches = self.spare.val();
        self.doorbell.ready.next = self.rung.ready.val();
        self.claimed.d.next = self.doorbell.valid.val() & self.rung.ready.val() & self.spare.val();
        self.claimant.d.next = self.doorbell.payload.val().qpn;
        self.reserve.next = self.issue.val() | self.claimed.q.val();
        self.taker.next = self.fifo.m.payload.val();
        if self.claimed.q.val() {
            self.taker.next = self.claimant.q.val();
        }
        // a difference beside the sum, as who reserves is known late
        self.returned.next = self.free.q.val() + bit_cast::<10, 5>(self.credit.val());
        self.free.d.next = self.returned.val();
        if self.reserve.val() {
            self.free.d.next = self.returned.val() - 8;
            if self.free.q.val() == self.slots.val() {
                self.owner.d.next = self.taker.val();
                self.mixed.d.next = false;
            } else if self.taker.val() != self.owner.q.val() {
                self.mixed.d.next = true;
            }
        }
        self.shared.next = self.mixed.q.val();
        self.m.valid.next = self.valid.q.val();
        self.m.payload.next = self.event.q.val();
    }
}

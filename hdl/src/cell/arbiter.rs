//! Round-robin arbiter and the merge of streams built on it.
use crate::cell::skid::Skid;
use crate::prelude::*;

/// Grants one of `N` requests, combinationally; the one after the last taken grant comes first.
///
/// A requester that keeps asking is granted within `N` takes. The turn moves on when `take` is 1.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Arbiter<const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Who asks.
    pub request: Signal<In, Bits<N>>,
    /// The grant is used in this cycle.
    pub take: Signal<In, Bit>,
    /// Who is granted: one bit, or none without a request.
    pub grant: Signal<Out, Bits<N>>,
    behind: Reg<Bits<N>>,
    later: Signal<Local, Bits<N>>,
    pick: Signal<Local, Bits<N>>,
    negative: Signal<Local, Bits<N>>,
    one: Signal<Local, Bits<N>>,
}

impl<const N: usize> Logic for Arbiter<N> {
    describe!(
        "arbiter",
        format!("{N}"),
        "Round-robin arbiter, one-hot grant."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, behind);
        // `behind` has ones above the last grant.
        self.later.next = self.request.val() & self.behind.q.val();
        self.pick.next = self.request.val();
        if self.later.val().any() {
            self.pick.next = self.later.val();
        }
        self.negative.next = !self.pick.val() + 1;
        self.one.next = self.pick.val() & self.negative.val();
        self.grant.next = self.one.val();
        if self.take.val() & self.request.val().any() {
            self.behind.d.next = !(self.one.val() | (self.one.val() - 1));
        }
    }
}

/// Merges `N` streams into one, round robin, one item a cycle, one cycle of latency.
#[derive(Clone, Debug, LogicBlock)]
pub struct Merge<T: Synth, const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Streams in.
    pub s: [StreamIn<T>; N],
    /// Stream out.
    pub m: StreamOut<T>,
    arbiter: Arbiter<N>,
    skid: Skid<T>,
    requests: Signal<Local, Bits<N>>,
    payload: Signal<Local, T>,
}

impl<T: Synth, const N: usize> Default for Merge<T, N> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: std::array::from_fn(|_| StreamIn::default()),
            m: StreamOut::default(),
            arbiter: Arbiter::default(),
            skid: Skid::default(),
            requests: Signal::default(),
            payload: Signal::default(),
        }
    }
}

impl<T: Synth, const N: usize> Logic for Merge<T, N> {
    describe!(
        "merge",
        format!("{N}x{}", T::BITS),
        "Merges streams, round robin."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, skid);
        self.requests.next = bits::<N>(0);
        self.payload.next = self.s[0].payload.val();
        for i in 0..N {
            self.requests.next = self.requests.val().replace_bit(i, self.s[i].valid.val());
        }
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = self.skid.s.ready.val();
        for i in 0..N {
            self.s[i].ready.next = self.skid.s.ready.val() & self.arbiter.grant.val().get_bit(i);
            if self.arbiter.grant.val().get_bit(i) {
                self.payload.next = self.s[i].payload.val();
            }
        }
        self.skid.s.valid.next = self.requests.val().any();
        self.skid.s.payload.next = self.payload.val();
        StreamOut::<T>::link(&mut self.m, &mut self.skid.m);
    }
}

//! Round-robin arbiter and the merge of streams built on it.
use crate::prelude::*;

/// Grants one of `N` requests, combinationally; the one after the last taken grant comes first.
///
/// A requester that keeps asking is granted within `N` takes, `N` up to 16. The turn moves on when `take` is 1.
#[derive(Clone, Debug, LogicBlock)]
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
    /// Ones from the first of `later` on.
    from_later: Signal<Local, Bits<N>>,
    /// Ones from the first request on.
    from_first: Signal<Local, Bits<N>>,
    above: Signal<Local, Bits<N>>,
}

impl<const N: usize> Default for Arbiter<N> {
    fn default() -> Self {
        assert!(N <= 16, "{N} requests: an arbiter has up to 16");
        Self {
            clock: ClkRst::default(),
            request: Signal::default(),
            take: Signal::default(),
            grant: Signal::default(),
            behind: Reg::default(),
            later: Signal::default(),
            from_later: Signal::default(),
            from_first: Signal::default(),
            above: Signal::default(),
        }
    }
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
        // The first one of each is found by doubling, which takes fewer levels than the carry of a negation.
        self.from_later.next = self.later.val() | (self.later.val() << 1);
        self.from_later.next = self.from_later.val() | (self.from_later.val() << 2);
        self.from_later.next = self.from_later.val() | (self.from_later.val() << 4);
        self.from_later.next = self.from_later.val() | (self.from_later.val() << 8);
        self.from_first.next = self.request.val() | (self.request.val() << 1);
        self.from_first.next = self.from_first.val() | (self.from_first.val() << 2);
        self.from_first.next = self.from_first.val() | (self.from_first.val() << 4);
        self.from_first.next = self.from_first.val() | (self.from_first.val() << 8);
        self.above.next = self.from_first.val() << 1;
        self.grant.next = self.request.val() & !(self.from_first.val() << 1);
        if self.later.val().any() {
            self.above.next = self.from_later.val() << 1;
            self.grant.next = self.later.val() & !(self.from_later.val() << 1);
        }
        if self.take.val() & self.request.val().any() {
            self.behind.d.next = self.above.val();
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
    skid: SkidRam<T>,
    pick: Pick<T, N>,
    requests: Signal<Local, Bits<N>>,
}

impl<T: Synth, const N: usize> Default for Merge<T, N> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: std::array::from_fn(|_| StreamIn::default()),
            m: StreamOut::default(),
            arbiter: Arbiter::default(),
            skid: SkidRam::default(),
            pick: Pick::default(),
            requests: Signal::default(),
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
        for i in 0..N {
            self.requests.next = self.requests.val().replace_bit(i, self.s[i].valid.val());
        }
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = self.skid.s.ready.val();
        self.pick.choice.next = self.arbiter.grant.val();
        for i in 0..N {
            self.s[i].ready.next = self.skid.s.ready.val() & self.arbiter.grant.val().get_bit(i);
            self.pick.item[i].next = self.s[i].payload.val();
        }
        self.skid.s.valid.next = self.requests.val().any();
        self.skid.s.payload.next = self.pick.picked.val();
        StreamOut::<T>::link(&mut self.m, &mut self.skid.m);
    }
}

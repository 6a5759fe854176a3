//! Round-robin arbiter and the merge of streams built on it.
use crate::prelude::*;

/// Grants one of `N` requests, combinationally; the one after the last taken grant comes first.
///
/// A requester that keeps asking is granted within `N` takes, `N` up to 16. The turn moves on when `take` is 1.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct Arbiter<const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Requests, a bit each.
    pub request: Signal<In, Bits<N>>,
    /// The grant is used in this cycle.
    pub take: Signal<In, Bit>,
    /// Grant: one bit, or none without a request.
    pub grant: Signal<Out, Bits<N>>,
    mask_after_last: Reg<Bits<N>>,
    later: Signal<Local, Bits<N>>,
    /// Ones from the first of `later` on.
    from_later: Signal<Local, Bits<N>>,
    /// Ones from the first request on.
    from_first: Signal<Local, Bits<N>>,
    above: Signal<Local, Bits<N>>,
}

impl<const N: usize> Arbiter<N> {
    fn check() {
        assert!(N <= 16, "{N} requests: an arbiter has up to 16");
    }
}

impl<const N: usize> Logic for Arbiter<N> {
    describe!(
        "arbiter",
        format!("{N}"),
        "Round-robin arbiter, one-hot grant."
    );

    #[kernel]
    fn update(&mut self) {
        // `mask_after_last` has ones above the last grant.
        later = request & mask_after_last;
        // The first one of each is found by doubling, which takes fewer levels than the carry of a negation.
        from_later = later | (later << 1);
        from_later = from_later | (from_later << 2);
        from_later = from_later | (from_later << 4);
        from_later = from_later | (from_later << 8);
        from_first = request | (request << 1);
        from_first = from_first | (from_first << 2);
        from_first = from_first | (from_first << 4);
        from_first = from_first | (from_first << 8);
        above = from_first << 1;
        grant = request & !(from_first << 1);
        if later.any() {
            above = from_later << 1;
            grant = later & !(from_later << 1);
        }
        if take & request.any() {
            mask_after_last = above;
        }
    }
}

/// Merges `N` streams into one, round robin, one item a cycle, one cycle of latency.
#[derive(Clone, Debug, Block)]
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

impl<T: Synth, const N: usize> Logic for Merge<T, N> {
    describe!(
        "merge",
        format!("{N}x{}", T::BITS),
        "Merges streams, round robin."
    );

    #[kernel]
    fn update(&mut self) {
        requests = bits::<N>(0);
        for i in 0..N {
            requests = requests.replace_bit(i, s[i].valid);
        }
        arbiter.request = requests;
        arbiter.take = skid.s.ready;
        pick.choice = arbiter.grant;
        for i in 0..N {
            s[i].ready = skid.s.ready & arbiter.grant.bit(i);
            pick.item[i] = s[i].payload;
        }
        skid.s.valid = requests.any();
        skid.s.payload = pick.picked;
        forward!(m <= skid.m);
    }
}

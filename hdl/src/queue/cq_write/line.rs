//! Line: the completions of both inputs in the order in which they came, while those in front wait.
//!
//! ```text
//!  s[0], s[1] ─┬── nothing stands in line ──┬─► front ─► m
//!              └─► queue of 256 tokens ─────┘
//! ```
//!
//! The inputs take turns at its end, and what is in line keeps its place: nothing that comes later holds it up. Rate: a token
//! a cycle. Latency: a cycle while nothing stands in line.
use crate::bus::types::CqToken;
use crate::cell::count::one_less;
use crate::prelude::*;

/// Completions in line.
#[derive(Block)]
pub struct CqLine {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions.
    pub s: [StreamIn<CqToken>; 2],
    /// They leave in their order.
    pub m: StreamOut<CqToken>,
    /// How many are here.
    pub level: Signal<Out, Bits<9>>,

    arbiter: Arbiter<2>,
    pick: Pick<CqToken, 2>,
    queue: Deep<CqToken, 8>,
    front: SkidRam<CqToken>,
    tokens: Reg<Bits<9>>,
    requests: Signal<Local, Bits<2>>,
}

impl Logic for CqLine {
    describe!("cq_line", "Completions in line.");

    #[kernel]
    fn update(&mut self) {
        requests = bits::<2>(0);
        for i in 0..2 {
            requests = requests.replace_bit(i, s[i].valid);
        }
        let room = queue.s.ready;
        arbiter.request = requests;
        arbiter.take = room;
        pick.choice = arbiter.grant;
        for i in 0..2 {
            s[i].ready = room & arbiter.grant.bit(i);
            pick.item[i] = s[i].payload;
        }
        let empty = !queue.level.any();
        let comes = requests.any();
        queue.s.valid = comes & !(empty & front.s.ready);
        queue.s.payload = pick.picked;
        queue.m.ready = front.s.ready;
        front.s.valid = queue.m.valid | (comes & empty);
        front.s.payload = pick.picked;
        if !empty {
            front.s.payload = queue.m.payload;
        }
        forward!(m <= front.m);

        let enters = comes & room;
        let leaves = front.m.valid & m.ready;
        let fewer = one_less(tokens);
        if enters & !leaves {
            tokens += 1;
        } else if !enters & leaves {
            tokens = fewer;
        }
        level = tokens;
    }
}

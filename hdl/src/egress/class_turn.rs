//! Whose beat is next: queues of control first, in turns, then strict queues, the highest number before all, then the others
//! by deficit round robin. A paused queue starts no frame.
//!
//! `pop` names the queue whose beat leaves in this cycle; from the first to the last beat of a frame no other. Between
//! frames:
//!
//! * a queue of control that is ready: the highest of those that have had no turn in this round. A round is over when none of
//!   them is ready; so a flood of one holds up no other;
//! * else a strict queue (weight 0) that is ready, the highest first;
//! * else, in turns, one of those that are ready and not in debt (`account`);
//! * if all that are ready are in debt, each queue gets its quantum in every cycle until one is not, also while a frame
//!   is under way: 128 bytes a cycle at least, more than leaves meanwhile. So a debt costs no cycle of the wire.
//!
//! A charge may come some cycles behind its beat: what a queue sends meanwhile is a debt, and counts. So shares are exact
//! over time, and off by some 4 beats and a frame at any moment.
//!
//! `pause` shuts a queue in the next cycle, and whoever is not ready or paused keeps its credit.
//!
//! A frame a cycle, if each is one beat. After a cycle in which all that were ready are served, and a queue in debt waits,
//! one cycle stays idle.
//!
//! Assumes: `ready` of a queue goes from 1 to 0 only by `pop`; weights change seldom; queues of control are strict, and their
//! numbers above all others.
use super::account::Account;
use crate::prelude::*;

/// Turns of `N` queues, up to 16.
#[derive(Clone, Debug, Block)]
pub struct ClassTurn<const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queues with a beat.
    pub ready: Signal<In, Bits<N>>,
    /// Of which it is the last one of its frame.
    pub last: Signal<In, Bits<N>>,
    /// A beat may leave.
    pub step: Signal<In, Bit>,
    /// Queues that are to start no frame.
    pub pause: Signal<In, Bits<N>>,
    /// Share of each queue; 0: strict.
    pub weight: [Signal<In, Bits<7>>; N],
    /// Queues of control.
    pub control: Signal<In, Bits<N>>,
    /// Queue that is charged, if any.
    pub charged: Signal<In, Bits<N>>,
    /// Bytes.
    pub charge: Signal<In, Bits<7>>,
    /// Queue whose beat leaves, if any.
    pub pop: Signal<Out, Bits<N>>,
    /// Queue whose frame has begun and not ended, if any.
    pub under_way: Signal<Out, Bits<N>>,
    arbiter: Arbiter<N>,
    account: [Account; N],
    strict: Reg<Bits<N>>,
    /// Others that are not paused.
    able: Reg<Bits<N>>,
    /// Strict queues that may start.
    may_strict: Reg<Bits<N>>,
    /// Others.
    may_share: Reg<Bits<N>>,
    /// Its frame has begun and not ended.
    begun: Reg<Bits<N>>,
    /// Queues of control that have had their turn in this round.
    served: Reg<Bits<N>>,
    rich: Signal<Local, Bits<N>>,
    near: Signal<Local, Bits<N>>,
    share: Signal<Local, Bits<N>>,
    /// Ones from the strict queue whose turn it is down.
    below: Signal<Local, Bits<N>>,
}

impl<const N: usize> Logic for ClassTurn<N> {
    describe!(
        "class_turn",
        format!("{N}"),
        "Strict and deficit round robin arbitration of queues that may be paused."
    );

    #[kernel]
    fn update(&mut self) {
        // accounts
        rich = bits::<N>(0);
        near = bits::<N>(0);
        let mut zero = bits::<N>(0);
        for i in 0..N {
            rich = rich.replace_bit(i, account[i].rich);
            near = near.replace_bit(i, account[i].near);
            zero = zero.replace_bit(i, !weight[i].any());
        }
        strict = zero;
        let refill = !(ready & able & rich).any();
        for i in 0..N {
            account[i].weight = weight[i];
            account[i].refill = refill;
            account[i].charged = charged.bit(i) & !strict.bit(i);
            account[i].charge = charge;
        }
        // queues that may start in the next cycle
        able = !zero & !pause;
        share = rich;
        if refill {
            share = near;
        }
        may_strict = strict & !pause;
        may_share = share & !strict & !pause;
        // the beat of this cycle
        let first = ready & may_strict;
        let fresh = first & control & !served;
        let mut chosen = first;
        if fresh.any() {
            chosen = fresh;
        }
        below = chosen | (chosen >> 1);
        below = below | (below >> 2);
        below = below | (below >> 4);
        below = below | (below >> 8);
        let busy = begun.any();
        under_way = begun;
        arbiter.request = ready & may_share;
        arbiter.take = step & !busy & !first.any();
        let mut turn = arbiter.grant;
        if first.any() {
            turn = chosen & !(below >> 1);
        }
        if step & !busy & first.any() {
            served = turn & control;
            if fresh.any() {
                served = served | turn;
            }
        }
        if busy {
            turn = begun & ready;
        }
        let mut leaves = bits::<N>(0);
        if step {
            leaves = turn;
        }
        pop = leaves;
        begun = (begun & !leaves) | (leaves & !last);
    }
}

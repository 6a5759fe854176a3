//! Orders on their way to the calendar: those of one queue pair that come one behind the other become one.
//!
//! The calendar takes an order of one queue pair in seven cycles only, and the WQEs of a fetch are granted in a row. So what comes waits a
//! cycle for more of its kind, as long as others stand in front of it. An order a cycle; 64 may wait, and at half of them
//! the source is to pause.
use super::pace_types::PaceOrder;
use crate::prelude::*;

/// The queue of orders.
#[derive(Block)]
pub struct PaceMerge {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An order comes.
    pub order_valid: Signal<In, Bit>,
    /// The order.
    pub order: Signal<In, PaceOrder>,
    /// 32 orders wait.
    pub crowded: Signal<Out, Bit>,
    /// Orders.
    pub m: StreamOut<PaceOrder>,

    waits: Reg<Bit>,
    latest: Dff<PaceOrder>,
    queue: Fifo<PaceOrder, 6>,
}

impl Logic for PaceMerge {
    describe!("pace_merge", "Orders of one queue pair become one.");

    #[kernel]
    fn update(&mut self) {
        // the sum needs no bit more: whether they join does not wait for it
        let fits = !latest.bytes.bit(16) & !order.bytes.bit(16);
        let joins = waits & (order.qpn == latest.qpn) & fits;
        let leaves = waits & ((order_valid & !joins) | (!order_valid & !queue.level.any()));
        queue.s.valid = leaves;
        queue.s.payload = latest;
        if order_valid {
            waits = true;
            latest = order;
            if joins {
                latest.bytes = latest.bytes + order.bytes;
                latest.pushes = latest.pushes | order.pushes;
                latest.idle = latest.idle & order.idle;
            }
        } else if leaves {
            waits = false;
        }
        crowded = queue.level.slice::<11>(5).any();
        forward!(m <= queue.m);
        assert!(!(leaves & !queue.s.ready), "an order finds no room");
    }
}

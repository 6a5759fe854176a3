//! Many hosts on one Ethernet: switches, wires and what hangs on them.
//!
//! Time is that of [`ethernet`](crate::ethernet). Every [`Node`], a switch or a host, is
//! driven by events alone: frames that arrive and what it planned itself. A frame that leaves at one end of a wire is at the other no
//! sooner than the wire's delay. So all nodes run for the shortest delay without a look at each other, on as many
//! threads as are given to [`net::Plan::run`]. The outcome depends on the plan and its seeds alone.
//!
//! | file | holds |
//! |---|---|
//! | `net` | nodes and wires, the windows of time, threads |
//! | `topology`, `routes` | star, leaf-spine, fat-tree; which ports lead to a host |
//! | `switch` | a switch of the files below |
//! | `frame` | what a switch reads of a frame and rewrites in it: class, five-tuple, ECN mark, cut |
//! | `buffer`, `marking`, `egress` | shared buffer and PFC thresholds; ECN marking; queues of a port |
//! | `trace` | the depth of a queue over time |
//! | `flow` | what is to be sent, by hosts with cards and without, and what came of it |
//! | `scenario` | flows of incast, permutation, collectives, storage |
//! | `lab` | all of it put together and run; figures |
//!
//! Its figures stand beside published ones in `docs/fabric.md`.

pub mod buffer;
pub mod egress;
pub mod flow;
pub mod frame;
pub mod lab;
pub mod marking;
mod meeting;
pub mod net;
pub mod routes;
pub mod scenario;
pub mod switch;
pub mod topology;
pub mod trace;

use ferroce_proto::wire::Mac;

pub use crate::ethernet::{CLASSES, Frame, Line, MS, NEVER, NS, SECOND, Time, US, pause};
pub use net::{Node, Outbox, Outcome, Plan};

/// MAC address of a host by its number: what a switch goes by.
///
/// # Panics
/// From host 65536 on.
#[must_use]
pub fn host_mac(host: usize) -> Mac {
    let host = u16::try_from(host).expect("a fabric has up to 65536 hosts");
    let [high, low] = host.to_be_bytes();
    Mac([0x52, 0x54, 0, 1, high, low])
}

/// The host of a MAC address.
#[must_use]
pub fn host_of(mac: &[u8]) -> Option<usize> {
    match mac {
        [0x52, 0x54, 0, 1, high, low] => Some(u16::from_be_bytes([*high, *low]).into()),
        _ => None,
    }
}

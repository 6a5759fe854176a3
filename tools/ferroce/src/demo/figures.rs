//! The figures of a run.

use ferroce_proto::wire::{Class, Psn};
use ferroce_sim::nic::NS_PER_CYCLE;
use ferroce_sim::scoreboard::Packet;

use super::pair::Pair;
use super::ping::Latency;
use super::transfer::Moved;
use crate::report::Figure;

/// Of the file.
pub(super) fn goodput(bytes: u64, moved: &Moved) -> [Figure; 6] {
    let cycles = moved.cycles;
    let rate = bytes as f64 / cycles.max(1) as f64;
    [
        Figure::new("payload_bytes", bytes, "bytes"),
        Figure::new("messages", moved.messages, "messages"),
        Figure::new("messages_missing", moved.missing, "messages"),
        Figure::new("cycles", cycles, "cycles"),
        Figure::new("goodput_bytes_per_cycle", rate, "bytes/cycle"),
        Figure::new("goodput", rate * 8.0 / NS_PER_CYCLE as f64, "Gb/s"),
    ]
}

/// Of small messages.
pub(super) fn latency(latency: &Latency) -> [Figure; 4] {
    [
        Figure::new("write_latency_cycles", latency.write, "cycles"),
        Figure::new("write_latency", latency.write * NS_PER_CYCLE, "ns"),
        Figure::new("send_latency_cycles", latency.send, "cycles"),
        Figure::new("send_latency", latency.send * NS_PER_CYCLE, "ns"),
    ]
}

/// Of both cards together, from what passed their ports.
pub(super) fn traffic(pair: &Pair<'_>) -> Vec<Figure> {
    let scoreboard = pair.scoreboard.borrow();
    let all = || scoreboard.packets().values();
    let packets: usize = all().map(Vec::len).sum();
    let retransmissions = all().map(|packets| retransmissions(packets)).sum::<u64>();
    let mut world = pair.world.borrow_mut();
    let wires = pair.nodes.map(|node| *world.wire(node).stats());
    let sum = |count: fn(&ferroce_sim::link::Stats) -> u64| wires.iter().map(count).sum::<u64>();
    vec![
        Figure::new("packets", packets as u64, "packets"),
        Figure::new("retransmissions", retransmissions, "packets"),
        Figure::new("lost", sum(|wire| wire.lost), "frames"),
        Figure::new("reordered", sum(|wire| wire.reordered), "frames"),
        Figure::new("corrupted", sum(|wire| wire.corrupted), "frames"),
        Figure::new("duplicated", sum(|wire| wire.duplicated), "frames"),
    ]
}

/// Requests among the packets to one queue pair, in the order sent, that do not go beyond the PSNs
/// before them.
fn retransmissions(packets: &[Packet]) -> u64 {
    let mut newest: Option<Psn> = None;
    let mut again = 0;
    let may_repeat =
        |packet: &&Packet| packet.opcode.is_request() && packet.opcode.class() == Class::Rc;
    for packet in packets.iter().filter(may_repeat) {
        if newest.is_some_and(|newest| packet.psn.since(newest) <= 0) {
            again += 1;
        } else {
            newest = Some(packet.psn);
        }
    }
    again
}

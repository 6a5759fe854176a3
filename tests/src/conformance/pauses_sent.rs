//! Pauses that a card asks of its peer by priority (PFC): the frames of the MAC in front of it, and what they keep from being lost.
//!
//! A class whose PFC_XOFF is 0 asks whatever it holds: so most cases need no host that takes nothing.

use ferroce_proto::abi::classes::share;
use ferroce_proto::abi::regs;
use ferroce_proto::wire::{Opcode, Packet};
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::testhost::QpOptions;

use super::bench::{Bench, MTU, STRIDE};
use super::classes::CLASSES;
use super::script::Script;
use super::{cases, check, check_bytes};

cases! {
    pause_sent_as_a_frame, CLASSES, "802.1Q 36.1.3.1", "A class that holds as much as PFC_XOFF says asks for a pause of its priority; when it holds less than PFC_XON says, it ends by 0 quanta.";
    pause_sent_of_priorities, CLASSES, "802.1Q 36.1.3.1", "A pause has all priorities of a class that send pauses, and no other.";
    pause_sent_by_none, CLASSES, "abi regs", "Nothing is asked for after reset, whatever is held.";
    pause_sent_counts_beginnings, CLASSES, "abi regs", "Each pause counts once, by priority.";
    pause_sent_in_a_storm, CLASSES, "abi regs", "A class that asks for longer than PFC_STORM says while nothing of it leaves asks no more until it holds less than PFC_XON; both are counted.";
    pause_sent_loses_nothing, CLASSES, "802.1Q 36.1.3.1", "A peer that sends all it can and keeps to the pauses loses nothing.";
}

/// Never as much.
const NEVER: u32 = u32::MAX;
/// Always as much.
const ALWAYS: u32 = 0;
/// Quanta of the MAC.
const ON: u16 = 0xffff;

/// A card that asks for pauses of priorities, a bit each, of all classes or of none.
fn ask(s: &mut Script, priorities: u8, xoff: u32) {
    s.host.write32(regs::PFC_CONFIG, u32::from(priorities) << 8);
    s.host.write32(regs::PFC_XOFF, xoff);
    s.host.read32(regs::SCRATCH);
}

/// The frames that the card sends within `cycles`.
fn frames(s: &mut Script, cycles: u64) -> Vec<Vec<u8>> {
    let end = s.host.nic.now() + cycles;
    s.host.nic.run_until(end);
    std::iter::from_fn(|| s.host.nic.transmit()).collect()
}

/// Quanta by priority of the only frame that the card sends.
#[track_caller]
fn pause(s: &mut Script) -> [Option<u16>; 8] {
    let sent = frames(s, 200);
    check("frames", sent.len(), 1);
    let pause = Pause::parse(&sent[0]).expect("a pause");
    pause.quanta
}

/// `quanta` for these priorities.
fn of(priorities: u8, quanta: u16) -> [Option<u16>; 8] {
    std::array::from_fn(|p| (priorities >> p & 1 == 1).then_some(quanta))
}

fn pause_sent_as_a_frame(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for priority in 0..8_usize {
        ask(&mut s, 1 << priority, ALWAYS);
        let sent = frames(&mut s, 200);
        check("frames", sent.len(), 1);
        let mut expected = vec![1, 0x80, 0xc2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x88, 8, 1, 1, 0];
        expected.push(1 << priority);
        expected.resize(60, 0);
        expected[18 + 2 * priority..][..2].fill(0xff);
        check_bytes("the pause", &sent[0], &expected);
        check("frames", frames(&mut s, 400).len(), 0);
        s.host.write32(regs::PFC_XOFF, NEVER);
        check("quanta", pause(&mut s), of(1 << priority, 0));
        check("frames", frames(&mut s, 400).len(), 0);
    }
}

fn pause_sent_of_priorities(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    // two of a class, one of another
    ask(&mut s, 0x4c, ALWAYS);
    check("quanta", pause(&mut s), of(0x4c, ON));
    // not until it is below
    s.host.write32(regs::PFC_XON, share(0, 1));
    s.host.write32(regs::PFC_XOFF, NEVER);
    check("frames", frames(&mut s, 400).len(), 0);
    s.host.write32(regs::PFC_XON, share(1, 1));
    check("quanta", pause(&mut s), of(0x4c, 0));
    // one that is no longer to send them
    ask(&mut s, 0x4c, ALWAYS);
    check("quanta", pause(&mut s), of(0x4c, ON));
    ask(&mut s, 0x48, ALWAYS);
    check("quanta", pause(&mut s), of(0x04, 0));
    ask(&mut s, 0, ALWAYS);
    check("quanta", pause(&mut s), of(0x48, 0));
}

fn pause_sent_by_none(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write32(regs::PFC_XOFF, ALWAYS);
    check("frames", frames(&mut s, 1000).len(), 0);
    let request = s.request(Opcode::RcWriteOnly);
    check("packets", s.next(&request, &[1; 8]).len(), 1);
}

fn pause_sent_counts_beginnings(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for (priorities, times) in [(0x09, 3), (0x80, 1)] {
        for _ in 0..times {
            ask(&mut s, priorities, ALWAYS);
            check("quanta", pause(&mut s), of(priorities, ON));
            ask(&mut s, priorities, NEVER);
            check("quanta", pause(&mut s), of(priorities, 0));
        }
    }
    for priority in 0..8 {
        let count = s.host.stat(&format!("tx_prio{priority}_pause"));
        let expected = [3, 0, 0, 3, 0, 0, 0, 1][priority];
        check(&format!("pauses of priority {priority}"), count, expected);
    }
}

/// Cycles of a millisecond.
const MILLISECOND: u64 = 250_000;

/// Quanta of the pauses within a time, those that are repeated left out.
fn changes(s: &mut Script, cycles: u64) -> Vec<[Option<u16>; 8]> {
    let sent = frames(s, cycles);
    let pauses = sent.iter().filter_map(|frame| Pause::parse(frame));
    let mut all: Vec<_> = pauses.map(|pause| pause.quanta).collect();
    all.dedup();
    all
}

fn storm_events(s: &mut Script) -> [u64; 2] {
    ["warning", "error"].map(|event| s.host.stat(&format!("tx_pause_storm_{event}_events")))
}

fn pause_sent_in_a_storm(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write32(regs::PFC_STORM, 1);
    ask(&mut s, 0x20, ALWAYS);
    check(
        "quanta",
        changes(&mut s, MILLISECOND - 1000),
        vec![of(0x20, ON)],
    );
    check("events", storm_events(&mut s), [0, 0]);
    let later = changes(&mut s, MILLISECOND + 2000);
    check("the end", later.last().copied(), Some(of(0x20, 0)));
    check("events", storm_events(&mut s), [1, 1]);
    // it still holds as much
    check("quanta", changes(&mut s, MILLISECOND / 10), vec![]);
    ask(&mut s, 0x20, NEVER);
    check("quanta", changes(&mut s, 400), vec![]);
    ask(&mut s, 0x20, ALWAYS);
    check("quanta", changes(&mut s, 400), vec![of(0x20, ON)]);
    check("events", storm_events(&mut s), [1, 1]);
}

fn pause_sent_loses_nothing(bench: &mut Bench) {
    // a buffer that is as good as none, and one of some packets
    for (xoff, xon) in [(share(1, 1), share(1, 1)), (share(40, 20), share(10, 5))] {
        let mut s = bench.script(QpOptions::default());
        s.host.write32(regs::PFC_XON, xon);
        ask(&mut s, 0x01, xoff);
        let count = 240;
        let (mut sent, mut acknowledged, mut paused) = (0, None, false);
        let first = s.psn;
        let end = s.host.nic.now() + 2_000_000;
        while acknowledged != Some(first.add(count - 1).value()) {
            assert!(s.host.nic.now() < end, "{sent} sent, {acknowledged:?} back");
            if !paused && sent < count && s.host.nic.arriving() < 2 {
                let len = [8, 100, MTU][sent as usize % 3];
                let request = s.write(Opcode::RcWriteOnly, len as u32);
                let payload = vec![sent as u8; len];
                s.hand_next(&request, &payload);
                sent += 1;
            }
            for frame in frames(&mut s, STRIDE) {
                if let Some(pause) = Pause::parse(&frame) {
                    paused = pause.quanta[0].expect("of priority 0") > 0;
                } else {
                    let packet = Packet::parse(&frame).expect("a good packet");
                    let bth = packet.headers.bth;
                    check("opcode", bth.opcode, Opcode::RcAck);
                    acknowledged = Some(bth.psn.value());
                }
            }
        }
        check("dropped", s.host.stat("rx_overflow"), 0);
        check("out of order", s.host.stat("out_of_sequence"), 0);
        check("packets", s.host.stat("rx_roce_packets"), count.into());
    }
}

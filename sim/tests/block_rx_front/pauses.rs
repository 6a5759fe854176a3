//! What the packet buffer holds by class, the pauses that it asks for, and which packets are dropped.

use ferroce_proto::abi::classes::{self, PFC_LOSSY_RESET, PFC_XOFF_RESET, PFC_XON_RESET, share};
use ferroce_proto::wire::{Opcode, Packet};

use crate::bench::{Front, Width};
use crate::frames::{Layout, any_packet, packet, port};

/// Bytes on the wire that may come when a pause was asked for (`docs/classes.md`). Those that came on the way to
/// `pause_send` are none of them; 32 short frames may wait in front of the engine.
const HEADROOM: usize = classes::HEADROOM - 16 * 50 + 32 * 94;
/// Preamble, FCS and gap.
const AROUND: usize = 24;
/// No such share.
const ALL: u16 = 0xffff;

/// A front whose host takes nothing, with a priority of each class that sends pauses.
fn stalled(width: Width) -> Front {
    let mut front = Front::new(width, port(), 0.0, 0.0);
    front.monitor.stalled = true;
    front
}

/// A priority of a class.
fn priority_of(front: &Front, class: u8) -> u8 {
    let found = (0..8).find(|&priority| front.tables.class(priority) == class);
    found.expect("each class has one")
}

/// What is made by `make` until it is of this class.
fn of_class(front: &mut Front, class: u8, mut make: impl FnMut(&mut Front) -> Vec<u8>) -> Vec<u8> {
    loop {
        let frame = make(front);
        let parsed = Packet::parse(&frame).expect("a good one");
        if front.class_of(&parsed.headers) == class {
            return frame;
        }
    }
}

/// The classes that ask, with these registers.
fn asking(front: &mut Front, xoff: u32, xon: u32) -> Vec<u8> {
    front.set("classes.xoff", xoff.into());
    front.set("classes.xon", xon.into());
    // a level stays for 16 cycles
    front.run(50);
    let level = front.get("pause_send");
    let asks = |class: &u8| level >> priority_of(front, *class) & 1 == 1;
    (0..4).filter(asks).collect()
}

/// Each class asks at what it holds, and not at one more.
fn counts_are_exact(front: &mut Front) {
    let unit = 64 / front.width.lanes() as u64;
    let held = front.held();
    for (class, (beats, packets)) in (0..).zip(held) {
        for (register, count) in [(share(1, 0), beats / unit), (share(0, 1), packets)] {
            for (limit, expected) in [(count, count > 0), (count + 1, false)] {
                let other = share(ALL, ALL) & !(register * u32::from(ALL));
                let value = other | (register * limit as u32);
                let asks = asking(front, value, value).contains(&class);
                // of nothing there is nothing to ask for: 0 asks always
                if limit > 0 {
                    assert_eq!(asks, expected, "class {class}: {held:?}, {value:#x}");
                }
            }
        }
    }
}

#[test]
fn what_is_held_is_counted_by_class() {
    for width in Width::ALL {
        let mut front = stalled(width);
        front.set("classes.lossy", share(ALL, ALL).into());
        front.set("classes.sends", 0xff);
        for round in 0..12 {
            for _ in 0..18 {
                let frame = any_packet(front.rng(), 1500);
                front.send_good(&frame);
            }
            front.drain();
            counts_are_exact(&mut front);
            // some of it leaves
            front.monitor.stalled = false;
            let cycles = [3, 40, 150, 600][round % 4] * 64 / width.lanes() as u64;
            front.run(cycles);
            front.monitor.stalled = true;
            front.run(20);
            counts_are_exact(&mut front);
            if round % 3 == 2 {
                front.monitor.stalled = false;
                front.drain();
                front.monitor.stalled = true;
                assert!(asking(&mut front, share(1, 1), share(1, 1)).is_empty());
            }
        }
        front.monitor.stalled = false;
        front.finish();
    }
}

/// Frames of a load, by its number.
fn load(front: &mut Front, kind: usize) -> Vec<u8> {
    let (opcode, len) = match kind {
        // two beats for 94 bytes
        0 => (Opcode::RcSendMiddle, 12),
        // a packet for 84
        1 => (Opcode::RcAck, 0),
        2 => (Opcode::RcSendMiddle, 4096),
        _ => (Opcode::RcWriteMiddle, front.rng().usize(..=4096)),
    };
    let layout = Layout::ALL[if kind == 3 { 3 } else { 0 }];
    packet(front.rng(), opcode, layout, len)
}

/// Sends until a pause has been asked for and its headroom is used up; frames sent.
fn flood(front: &mut Front, class: u8, kind: usize) -> usize {
    let bit = 1 << priority_of(front, class);
    let mut left = HEADROOM;
    for sent in 0.. {
        let frame = of_class(front, class, |front| load(front, kind));
        let wire = frame.len().max(60) + AROUND;
        if front.get("pause_send") & bit != 0 {
            if left < wire {
                return sent;
            }
            left -= wire;
        }
        assert!(sent < 1200, "no pause");
        front.send_good(&frame);
        while !front.source.queue.is_empty() {
            front.run(1);
        }
    }
    unreachable!()
}

fn sends(front: &mut Front, class: u8) {
    let bit = 1 << priority_of(front, class);
    front.set("classes.sends", bit);
    front.set("classes.xoff", PFC_XOFF_RESET.into());
    front.set("classes.xon", PFC_XON_RESET.into());
    front.set("classes.lossy", PFC_LOSSY_RESET.into());
}

/// All at once: the lossy share is full, the class stands a beat below XOFF, one of the largest frames crosses it, and what follows
/// takes the most room, by units.
#[test]
fn worst_cases_together_fit() {
    for width in Width::ALL {
        let mut front = stalled(width);
        front.may_lose = true;
        sends(&mut front, 1);
        for _ in 0..100 {
            let frame = of_class(&mut front, 2, |front| load(front, 2));
            front.send_good(&frame);
        }
        front.drain();
        let lost = front.monitor.count("rx_overflow");
        assert!(lost > 0, "the lossy share is not full");
        let xoff = PFC_XOFF_RESET as usize & 0xffff;
        let more = |front: &mut Front, len| {
            let make =
                |front: &mut Front| packet(front.rng(), Opcode::RcSendMiddle, Layout::ALL[0], len);
            let frame = of_class(front, 1, make);
            front.send_good(&frame);
            front.drain();
            front.run(10);
        };
        loop {
            let held = front.held()[1].0 as usize * width.lanes();
            let len = (64 * xoff - held).saturating_sub(2 * width.lanes());
            if len == 0 {
                break;
            }
            more(&mut front, len.min(4096));
            assert_eq!(front.get("pause_send"), 0);
        }
        more(&mut front, 4096);
        assert_ne!(front.get("pause_send"), 0);
        flood(&mut front, 1, 0);
        front.monitor.stalled = false;
        front.drain();
        assert_eq!(front.monitor.count("rx_overflow"), lost);
        front.finish_with_overflow(lost);
    }
}

#[test]
fn a_peer_that_obeys_loses_nothing() {
    for width in Width::ALL {
        for kind in 0..4 {
            let mut front = stalled(width);
            let class = (kind % 4) as u8;
            sends(&mut front, class);
            for _ in 0..2 {
                let sent = flood(&mut front, class, kind);
                assert!(sent > 10, "{sent} frames");
                // the pause ends when the host takes it all
                front.monitor.stalled = false;
                front.drain();
                assert_eq!(front.get("pause_send"), 0);
                front.monitor.stalled = true;
            }
            front.monitor.stalled = false;
            front.finish();
        }
    }
}

#[test]
fn what_may_be_dropped_takes_no_headroom() {
    for width in Width::ALL {
        for kind in 0..4 {
            let mut front = stalled(width);
            front.may_lose = true;
            let class = (kind % 4) as u8;
            sends(&mut front, class);
            // of all other classes
            let mut most = 0;
            for i in 0..150 {
                let other = (class + 1 + i % 3) % 4;
                let frame = of_class(&mut front, other, |front| load(front, kind));
                let payload = Packet::parse(&frame).expect("a good one").payload;
                most = (payload.start % 64 + payload.len()).div_ceil(64);
                front.send_good(&frame);
            }
            front.drain();
            let kept = front.monitor.count("rx_roce_packets");
            assert!(kept <= 64 + 5, "{kept} packets");
            if kind < 3 {
                assert!(kept * most as u64 <= 128 + 66 + 5, "{kept} packets");
            }
            let lost = front.monitor.count("rx_overflow");
            assert!(lost > 0, "nothing is dropped");
            // nothing of the other
            flood(&mut front, class, kind);
            front.monitor.stalled = false;
            front.drain();
            assert_eq!(front.monitor.count("rx_overflow"), lost);
            front.finish_with_overflow(lost);
        }
    }
}

#[test]
fn without_a_class_that_sends_pauses_all_have_all() {
    let mut front = stalled(Width::W512);
    front.set("classes.lossy", share(1, 1).into());
    for _ in 0..200 {
        let frame = any_packet(front.rng(), 64);
        front.send_good(&frame);
    }
    front.drain();
    front.monitor.stalled = false;
    front.finish();
}

#[test]
fn a_share_has_units_and_packets() {
    assert_eq!(share(0x1234, 0x5678), 0x5678_1234);
}

//! The port: pauses of the peer, as the MAC shows them; and the class of a packet.

use ferroce_hdl::control::class_csr::ClassCsr;
use ferroce_hdl::egress::class_of::ClassOf;
use ferroce_hdl::egress::{CLASSES, QUEUES};
use ferroce_proto::abi::{classes, regs};
use ferroce_sim::bench::Bench;
use ferroce_sim::bits;
use ferroce_sim::model::classes::Tables;
use ferroce_sim::random::Chance;

use crate::load::Load;
use crate::peer::{MILLISECOND, Peer};
use crate::rig::{LARGEST, Rig};
use crate::{WEIGHTS, WIDTHS, backlog};

#[test]
fn pauses_at_random_lose_and_reorder_nothing() {
    for width in WIDTHS {
        for ready in [1.0, 0.7] {
            let mut rig = Rig::port(width);
            rig.ends.weights = WEIGHTS;
            rig.ends.ready = Chance::new(ready);
            rig.ends.toggle = Chance::new(0.002);
            rig.ends.loads = [Load::full(60, LARGEST); QUEUES];
            peer(&mut rig).obeys = 0x7f;
            peer(&mut rig).prio_class = [0, 0, 1, 2, 2, 3, 3, 3];
            rig.run(60_000);
            rig.drain();
            assert!(rig.ends.frames.iter().all(|&frames| frames > 5));
        }
    }
}

/// The full rate for the other classes, a pause of each priority as long as was asked for, an early end by 0 quanta.
#[test]
fn each_priority_pauses_its_class_for_its_time() {
    for width in WIDTHS {
        // the narrow build has the same tables
        for priority in if width == 512 { 0..8 } else { 5..7 } {
            let mut rig = Rig::port(width);
            rig.ends.weights = WEIGHTS;
            rig.ends.loads = [Load::full(60, LARGEST); QUEUES];
            backlog(&mut rig);
            let class = usize::from(peer(&mut rig).prio_class[priority]);
            rig.ends.paused(priority, 0xffff);
            // a frame of the longest may be under way
            rig.run(2 * LARGEST as u64 * 8 / width as u64);
            assert_eq!(peer(&mut rig).acknowledged, 1 << priority);
            rig.count_afresh();
            rig.run(10_000);
            assert_eq!(rig.ends.frames[class], 0);
            assert_eq!(rig.ends.frames[class + CLASSES], 0);
            assert_eq!(rig.ends.idle, 0, "priority {priority}: the others wait");
            rig.ends.paused(priority, 0);
            rig.run(20);
            assert_eq!(peer(&mut rig).acknowledged, 0);
            // control queues are strict: those of data have their turn when no more of it comes
            rig.ends.loads[CLASSES..].fill(Load::default());
            rig.run(20_000);
            assert!(rig.ends.frames[class] > 0 && rig.ends.frames[class + CLASSES] > 0);
            rig.drain();
        }
    }
}

#[test]
fn in_the_middle_of_a_frame_it_goes_to_its_end() {
    for width in WIDTHS {
        let beats = LARGEST as u64 * 8 / width as u64;
        let mut rig = Rig::port(width);
        rig.ends.weights = [25, 25, 25, 25, 0, 0, 0, 0];
        rig.ends.loads[1] = Load::full(LARGEST, LARGEST);
        backlog(&mut rig);
        let mut late = 0;
        // of one class alone, at any beat of a frame; quanta of 512 bits at 100 Gb/s, 10 Gb/s
        for step in 0..40 {
            rig.run(beats + 1 + step * beats / 40);
            rig.count_afresh();
            rig.ends.paused(2, 1000);
            rig.run(2 * beats);
            // the frame under way; if that was at its end, the next one, which began before the pause reached the turn
            assert!(rig.ends.frames[1] <= 2);
            late += u64::from(rig.ends.frames[1] == 2);
            assert_eq!(peer(&mut rig).acknowledged, 1 << 2);
            rig.count_afresh();
            // never shorter: it counts from its acknowledgement on
            let quantum = if width == 512 { 5_120 } else { 51_200 };
            rig.run(1000 * quantum / 4000 - 2 * beats);
            assert_eq!(rig.ends.frames[1], 0);
            assert_eq!(peer(&mut rig).acknowledged, 1 << 2);
            rig.run(2 * beats + 20);
            assert_eq!(peer(&mut rig).acknowledged, 0);
        }
        assert!(late <= 4, "{late} of 40");
        rig.drain();
    }
}

/// For a reset: the frame under way goes to its end, and no other begins.
#[test]
fn a_stop_is_between_two_frames() {
    let mut rig = Rig::port(512);
    rig.ends.weights = WEIGHTS;
    rig.ends.loads = [Load::full(60, LARGEST); QUEUES];
    backlog(&mut rig);
    for step in 0..40 {
        peer(&mut rig).stall = true;
        rig.run(100 + step);
        assert!(peer(&mut rig).stalled);
        rig.count_afresh();
        rig.run(100);
        assert_eq!(rig.ends.frames, [0; QUEUES]);
        peer(&mut rig).stall = false;
        rig.run(100 + step);
        assert!(!peer(&mut rig).stalled && rig.ends.frames != [0; QUEUES]);
    }
    rig.drain();
}

/// Longer than the watchdog lets it: then its class sends, until the request ends. Others stay paused.
#[test]
fn a_pause_for_ever_is_obeyed_for_a_time() {
    let mut rig = Rig::port(512);
    rig.ends.weights = WEIGHTS;
    rig.ends.loads[..CLASSES].fill(Load::full(60, LARGEST));
    peer(&mut rig).watchdog = 1;
    let frames = |rig: &mut Rig, cycles, again: &[usize]| {
        rig.count_afresh();
        for _ in 0..cycles / 10_000 {
            again.iter().for_each(|&p| rig.ends.paused(p, 0xffff));
            rig.run(10_000);
        }
        [0, 1].map(|class| rig.ends.frames[class])
    };
    for _ in 0..2 {
        rig.ends.paused(2, 0xffff);
        rig.run(1000);
        assert_eq!(frames(&mut rig, MILLISECOND - 20_000, &[2])[1], 0);
        frames(&mut rig, MILLISECOND + 20_000, &[2]);
        // one that began later
        rig.ends.paused(0, 0xffff);
        rig.run(1000);
        let [paused, expired] = frames(&mut rig, MILLISECOND / 2, &[0, 2]);
        assert!(paused == 0 && expired > 100, "{paused}, {expired}");
        assert_eq!(peer(&mut rig).acknowledged, 1 << 2 | 1);
        // its time runs while it is not obeyed
        rig.ends.paused(0, 0);
        rig.run(65536 * 512 / 400 + 100);
        assert_eq!(peer(&mut rig).acknowledged, 0);
        // and a 128th of the limit
        rig.run(MILLISECOND / 128 + 100);
    }
    // for ever
    peer(&mut rig).watchdog = 0;
    rig.ends.paused(2, 0xffff);
    rig.run(1000);
    assert_eq!(frames(&mut rig, 3 * MILLISECOND, &[2])[1], 0);
    rig.drain();
}

/// Two priorities of a class in turns; or one, again directly behind its end, while other classes send.
#[test]
fn pauses_in_turns_are_obeyed_for_a_time() {
    for again in [false, true] {
        let mut rig = Rig::port(512);
        rig.ends.weights = WEIGHTS;
        rig.ends.loads[..CLASSES].fill(Load::full(60, LARGEST));
        peer(&mut rig).watchdog = 1;
        rig.ends.paused(2, 0xffff);
        rig.run(1000);
        let mut frames = |rounds: u64| {
            rig.count_afresh();
            for round in 0..rounds {
                if again {
                    rig.ends.paused(2, 0);
                    rig.run(4);
                    rig.ends.paused(2, 0xffff);
                } else {
                    let (begins, ends) = [(3, 2), (2, 3)][round as usize % 2];
                    rig.ends.paused(begins, 0xffff);
                    rig.run(4);
                    rig.ends.paused(ends, 0);
                }
                rig.run(5_000);
            }
            rig.ends.frames[1]
        };
        let held = frames((MILLISECOND - 10_000) / 5_004);
        // in 4 cycles one begins if it is the turn of the class
        assert!(held < if again { 40 } else { 1 }, "again {again}: {held}");
        frames(MILLISECOND / 5_004);
        let sent = frames(10);
        assert!(sent > 100, "again {again}: {sent}");
        rig.drain();
    }
}

/// A class that has a 64th of the time is paused for the rest of it, for ever.
#[test]
fn a_slow_class_is_obeyed() {
    let mut rig = Rig::port(512);
    rig.ends.weights = WEIGHTS;
    rig.ends.loads[1] = Load::full(60, LARGEST);
    peer(&mut rig).watchdog = 1;
    for _ in 0..4 * MILLISECOND / 32_000 {
        rig.ends.paused(2, 0);
        rig.run(500);
        rig.ends.paused(2, 0xffff);
        rig.run(2 * LARGEST as u64 / 64);
        rig.count_afresh();
        rig.run(31_500 - 2 * LARGEST as u64 / 64);
        assert_eq!(rig.ends.frames[1], 0);
    }
    rig.drain();
}

#[test]
fn what_is_not_obeyed_has_no_effect() {
    let mut rig = Rig::port(512);
    rig.ends.weights = WEIGHTS;
    rig.ends.loads[0] = Load::full(60, LARGEST);
    peer(&mut rig).obeys = 0xfe;
    backlog(&mut rig);
    rig.ends.paused(0, 0xffff);
    rig.run(200);
    rig.count_afresh();
    rig.run(2000);
    // its time runs all the same
    assert_eq!((rig.ends.idle, peer(&mut rig).acknowledged), (0, 1));
    // another priority of its class pauses it
    rig.ends.paused(1, 0xffff);
    rig.run(200);
    rig.count_afresh();
    rig.run(2000);
    assert_eq!((rig.ends.frames[0], peer(&mut rig).acknowledged), (0, 3));
    rig.drain();
}

fn peer(rig: &mut Rig) -> &mut Peer {
    rig.ends.peer.as_mut().expect("a port has one")
}

/// Each DSCP, PCP and default priority, with tables as after reset and at random.
#[test]
fn the_class_is_that_of_the_tables() {
    let mut registers = Bench::of(ClassCsr::default).unwrap();
    let mut look_up = Bench::of(ClassOf::default).unwrap();
    registers.reset(&mut []);
    look_up.reset(&mut []);
    let mut tables = Tables::default();
    for round in 0..6 {
        let mut writes = vec![];
        if round > 0 {
            let rng = registers.rng();
            let trust = [classes::TRUST_PCP, classes::TRUST_DSCP][round % 2];
            writes.push((regs::TRUST, u32::from(trust) | rng.u32(..8) << 8));
            writes.push((regs::PRIO_CLASS, rng.u32(..)));
            writes.push((regs::CLASS_WEIGHT, rng.u32(..)));
            writes.extend((0..8).map(|i| (regs::DSCP_PRIO_0 + 4 * i, rng.u32(..))));
        }
        for (offset, value) in writes {
            tables.write(offset, value);
            let held = match offset {
                regs::TRUST => 0x703,
                regs::PRIO_CLASS => classes::PRIO_CLASS_MASK,
                regs::CLASS_WEIGHT => classes::CLASS_WEIGHT_MASK,
                _ => classes::DSCP_PRIO_MASK,
            };
            access(&mut registers, Some((offset, value)), offset);
            assert_eq!(access(&mut registers, None, offset), value & held);
        }
        let (from, to) = (
            registers.dut().output("setup").unwrap(),
            look_up.dut().input("setup").unwrap(),
        );
        let mut setup = vec![0; from.width().div_ceil(32)];
        registers.dut().read(from, &mut setup);
        look_up.dut_mut().write(to, &setup);
        for tclass in 0..=255 {
            for tag in 0..9 {
                let pcp = (tag < 8).then_some(tag);
                let priority = tables.priority(tclass, pcp);
                let expected = (priority, tables.class(priority));
                assert_eq!(class_of(&mut look_up, tclass, pcp), expected, "{tables:?}");
            }
        }
    }
    // cleared, they are as after reset
    set(&mut registers, "access", 1 << 39);
    registers.dut_mut().tick();
    assert_eq!(
        access(&mut registers, None, regs::PRIO_CLASS),
        classes::PRIO_CLASS_RESET
    );
    assert_eq!(
        access(&mut registers, None, regs::DSCP_PRIO_0 + 28),
        classes::dscp_prio_reset(7)
    );
}

fn set(bench: &mut Bench, name: &str, value: u64) {
    let input = bench.dut().input(name).unwrap();
    bench.dut_mut().set(input, value);
}

fn get(bench: &Bench, name: &str) -> u64 {
    let output = bench.dut().output(name).unwrap();
    bench.dut().get(output)
}

/// Writes a register; reads one.
fn access(bench: &mut Bench, write: Option<(u32, u32)>, from: u32) -> u32 {
    let mut word = [0; 2];
    if let Some((offset, value)) = write {
        bits::insert(&mut word, 0, 1, 1);
        bits::insert(&mut word, 1, 6, u64::from(offset / 4));
        bits::insert(&mut word, 7, 32, u64::from(value));
    }
    bits::insert(&mut word, 40, 6, u64::from(from / 4));
    let access = u64::from(word[0]) | u64::from(word[1]) << 32;
    set(bench, "access", access);
    bench.dut_mut().settle();
    let value = get(bench, "value") as u32;
    bench.dut_mut().tick();
    set(bench, "access", 0);
    bench.dut_mut().settle();
    value
}

/// Priority and class.
fn class_of(bench: &mut Bench, tclass: u8, pcp: Option<u8>) -> (u8, u8) {
    set(bench, "tclass", u64::from(tclass));
    set(bench, "has_tag", u64::from(pcp.is_some()));
    set(bench, "pcp", u64::from(pcp.unwrap_or(5)));
    bench.dut_mut().ticks(2);
    (get(bench, "prio") as u8, get(bench, "packet_class") as u8)
}

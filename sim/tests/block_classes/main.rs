//! The class queues in Verilog: order, room, pause, shares, rate; the pauses of a MAC, the class of a packet.

mod departure;
mod entry;
mod gate;
mod held;
mod host_gate;
mod load;
mod passage;
mod peer;
mod port;
mod ports;
mod rig;
mod share;
mod stops;

use ferroce_hdl::egress::{CLASSES, QUEUES};
use ferroce_sim::random::Chance;
use load::Load;
use rig::{LARGEST, Rig};

const WIDTHS: [usize; 2] = [512, 64];

/// Data by its weights, control strict, as the engine has them.
const WEIGHTS: [u64; QUEUES] = [10, 20, 30, 40, 0, 0, 0, 0];

#[test]
fn every_frame_leaves_whole_and_in_order() {
    for width in WIDTHS {
        let mut rig = Rig::new(width);
        rig.ends.weights = WEIGHTS;
        rig.ends.ready = Chance::new(0.7);
        rig.ends.toggle = Chance::new(0.002);
        rig.ends.departures.toggle = Chance::new(0.0003);
        rig.ends.returns = Chance::new(0.05);
        for (queue, load) in rig.ends.loads.iter_mut().enumerate() {
            *load = match queue {
                0 => Load::full(14, 100),
                1 => Load::full(58, 60),
                2..4 => Load::full(60, LARGEST),
                _ => Load {
                    chance: 0.3,
                    ..Load::full(60, 130)
                },
            };
        }
        rig.run(60_000);
        rig.drain();
        assert!(
            rig.ends.frames.iter().all(|&frames| frames > 10),
            "{:?}",
            rig.ends.frames
        );
        let departures = &rig.ends.departures;
        assert!(departures.count > 100, "{} requests", departures.count);
    }
}

#[test]
fn what_stands_since_a_time_is_known() {
    for width in WIDTHS {
        let mut rig = Rig::new(width);
        rig.ends.weights = WEIGHTS;
        rig.ends.ready = Chance::new(0.7);
        rig.ends.toggle = Chance::new(0.01);
        rig.ends.departures.toggle = Chance::new(0.002);
        rig.ends.loads = [Load {
            chance: 0.02,
            ..Load::full(58, 60 + width)
        }; QUEUES];
        rig.run(60_000);
        rig.drain();
        let departures = &rig.ends.departures;
        assert!(departures.passed > 1000, "{} cycles", departures.passed);
    }
}

#[test]
fn what_stands_leaves_beside_a_strict_queue_that_is_never_empty() {
    for width in WIDTHS {
        let mut rig = Rig::new(width);
        rig.ends.weights = [10, 0, 30, 40, 0, 0, 0, 0];
        for queue in 0..2 {
            rig.ends.loads[queue] = Load::full(60, 300);
        }
        let whole = (1 << 18) / rig.ends.lanes as u64;
        rig.ends.pause_all(true);
        rig.run(whole);
        rig.ends.pause_all(false);
        // what comes from now on is of the strict queue, as much as leaves
        rig.ends.loads[0].chance = 0.0;
        rig.run(100);
        rig.ends.departures.toggle = Chance::new(1.0);
        rig.run(1);
        rig.ends.departures.toggle = Chance::NEVER;
        rig.run(3 * whole);
        assert!(rig.ends.departures.passed > whole, "it does not leave");
    }
}

#[test]
fn a_paused_queue_starts_no_frame() {
    for width in WIDTHS {
        for longest in [60, 300, LARGEST] {
            let mut rig = Rig::new(width);
            rig.ends.weights = WEIGHTS;
            rig.ends.toggle = Chance::new(0.02);
            rig.ends.loads = [Load::full(60, longest); QUEUES];
            rig.run(20_000);
            rig.drain();
            assert!(
                rig.ends.frames.iter().all(|&frames| frames > 5),
                "{:?}",
                rig.ends.frames
            );
        }
    }
}

/// Fills the queues, and lets them send.
fn backlog(rig: &mut Rig) {
    rig.ends.pause_all(true);
    // as much as all queues hold
    rig.run((1 << 20) / rig.ends.lanes as u64);
    rig.ends.pause_all(false);
    rig.run(200);
    rig.count_afresh();
}

#[track_caller]
fn assert_shares(rig: &Rig, queues: &[usize]) {
    let all: u64 = queues.iter().map(|&queue| rig.ends.counted[queue]).sum();
    let weights: u64 = queues.iter().map(|&queue| rig.ends.weights[queue]).sum();
    for &queue in queues {
        let share = rig.ends.counted[queue] as f64 / all as f64;
        let due = rig.ends.weights[queue] as f64 / weights as f64;
        assert!(
            (share / due - 1.0).abs() < 0.03,
            "queue {queue}: {share:.4} of the bytes, {due:.4} are due; {:?}",
            rig.ends.counted
        );
    }
}

#[test]
fn shares_are_those_of_the_weights() {
    for width in WIDTHS {
        let mut rig = Rig::new(width);
        let cycles = 100_000 * 512 / width as u64;
        rig.ends.ready = Chance::new(0.78);
        rig.ends.weights = WEIGHTS;
        // small frames here, large ones there
        rig.ends.loads[0] = Load::full(LARGEST - 200, LARGEST);
        rig.ends.loads[1] = Load::full(60, 70);
        rig.ends.loads[2] = Load::full(60, 1500);
        rig.ends.loads[3] = Load::full(1000, LARGEST);
        backlog(&mut rig);
        rig.run(cycles);
        assert_shares(&rig, &[0, 1, 2, 3]);
        // the share of one that is paused goes to the others by their weights
        rig.ends.pause = 1 << 3;
        rig.run(2000);
        rig.count_afresh();
        rig.run(cycles);
        assert_eq!(rig.ends.counted[3], 0);
        assert_shares(&rig, &[0, 1, 2]);
        // and comes back with it
        rig.ends.pause = 0;
        rig.run(2000);
        rig.count_afresh();
        rig.run(cycles);
        assert_shares(&rig, &[0, 1, 2, 3]);
        rig.drain();
    }
}

#[test]
fn one_to_a_hundred() {
    for (few, many) in [(LARGEST, 62), (62, LARGEST), (62, 62), (LARGEST, LARGEST)] {
        let mut rig = Rig::new(512);
        rig.ends.ready = Chance::new(0.78);
        rig.ends.weights = [1, 100, 0, 0, 0, 0, 0, 0];
        rig.ends.loads[0] = Load::full(few, few);
        rig.ends.loads[1] = Load::full(many, many);
        backlog(&mut rig);
        rig.run(500_000);
        assert_shares(&rig, &[0, 1]);
        // never longer than it takes to pay for a frame: rounds of a quantum, of both
        let rounds = (LARGEST as u64 + 24 + 4 * 88).div_ceil(128) + 1;
        let most = rounds * 100 * 128 + LARGEST as u64 + 24;
        assert!(
            rig.ends.waited[0] <= most,
            "{} of {most} bytes",
            rig.ends.waited[0]
        );
        rig.drain();
    }
}

/// Whichever queue has the least weight: a frame of it costs many rounds, and the others send short ones meanwhile.
#[test]
fn the_least_share_of_each_queue() {
    for least in 0..CLASSES {
        let mut rig = Rig::new(512);
        rig.ends.ready = Chance::new(0.78);
        rig.ends.weights = [4, 4, 4, 4, 0, 0, 0, 0];
        rig.ends.weights[least] = 1;
        rig.ends.loads[..CLASSES].fill(Load::full(62, 62));
        rig.ends.loads[least] = Load::full(1000, 1000);
        backlog(&mut rig);
        rig.run(30_000);
        assert_shares(&rig, &[0, 1, 2, 3]);
        rig.drain();
    }
}

#[test]
fn a_beat_a_cycle_of_frames_of_a_beat() {
    let mut rig = Rig::new(512);
    rig.ends.weights = [1, 1, 3, 40, 0, 0, 0, 0];
    for queues in [1, 2, 4, 8] {
        rig.ends.loads = Default::default();
        rig.ends.loads[..queues].fill(Load::full(60, 64));
        backlog(&mut rig);
        rig.run(10_000);
        assert_eq!(rig.ends.idle, 0, "{queues} queues");
    }
    rig.drain();
}

#[test]
fn one_queue_paused_full_rate_on_the_others() {
    for width in WIDTHS {
        for paused in 0..QUEUES {
            let mut rig = Rig::new(width);
            rig.ends.weights = WEIGHTS;
            rig.ends.loads = [Load::full(60, LARGEST); QUEUES];
            backlog(&mut rig);
            rig.ends.pause = 1 << paused;
            rig.run(1000);
            rig.count_afresh();
            rig.run(20_000);
            assert_eq!(rig.ends.frames[paused], 0);
            assert_eq!(rig.ends.idle, 0, "{paused} is paused, others wait");
            rig.drain();
            assert!(rig.ends.frames[paused] > 0);
        }
    }
}

#[test]
fn a_frame_passes_in_four_cycles() {
    for width in WIDTHS {
        let mut rig = Rig::new(width);
        rig.ends.weights = WEIGHTS;
        for queue in [0, 7] {
            rig.ends.loads = Default::default();
            rig.ends.loads[queue] = Load {
                chance: 0.001,
                ..Load::full(60, LARGEST)
            };
            rig.run(20_000);
            rig.drain();
            assert!(rig.ends.frames[queue] > 4);
            assert_eq!(rig.ends.slowest[queue], 4);
        }
    }
}

#[test]
fn control_waits_for_a_frame() {
    let mut rig = Rig::new(512);
    rig.ends.weights = WEIGHTS;
    rig.ends.loads[..CLASSES].fill(Load::full(60, LARGEST));
    rig.ends.loads[CLASSES..].fill(Load {
        chance: 0.01,
        ..Load::full(60, 64)
    });
    rig.run(100_000);
    // in: behind the frame that the source sends; out: behind the one on the wire, and the control that came by then
    let most = (LARGEST / 64) as u64 + 12;
    let slowest = &rig.ends.slowest[CLASSES..];
    assert!(slowest.iter().all(|&cycles| cycles <= most), "{slowest:?}");
    // control that never ends leaves nothing to data
    rig.ends.loads[5] = Load::full(1000, LARGEST);
    rig.ends.loads[6..].fill(Load::default());
    rig.ends.ready = Chance::new(0.78);
    backlog(&mut rig);
    rig.run(5000);
    assert_eq!(rig.ends.frames[..CLASSES], [0; CLASSES]);
    rig.drain();
}

/// Each of two: the one that is full leaves the other half of the frames.
#[test]
fn control_of_one_class_holds_up_no_other() {
    for full in [[4, 7], [5, 6]] {
        let mut rig = Rig::new(512);
        rig.ends.weights = WEIGHTS;
        for queue in full {
            rig.ends.loads[queue] = Load::full(60, 64);
        }
        // never empty
        rig.ends.ready = Chance::new(0.6);
        backlog(&mut rig);
        rig.run(5000);
        let [one, other] = full.map(|queue| rig.ends.frames[queue]);
        assert!(one > 1000 && one.abs_diff(other) <= 1, "{one}, {other}");
        rig.drain();
    }
}

#[test]
fn of_strict_data_the_higher_is_first() {
    let mut rig = Rig::new(512);
    rig.ends.weights = [10, 0, 0, 40, 0, 0, 0, 0];
    rig.ends.loads[..CLASSES].fill(Load::full(60, 300));
    rig.ends.ready = Chance::new(0.6);
    // an acknowledgement now and then does not change whose turn it is
    rig.ends.loads[6] = Load {
        chance: 0.01,
        ..Load::full(60, 64)
    };
    backlog(&mut rig);
    rig.run(5000);
    let frames = rig.ends.frames;
    assert_eq!([0, 1, 3].map(|queue| frames[queue]), [0; 3]);
    assert!(frames[2] > 500 && frames[6] > 10, "{frames:?}");
    rig.drain();
}

//! The reaction point as Verilog: every queue pair as the golden reference has it, bit for bit, at every look.
mod closed;
mod mixed;
mod pace;
mod recorded;
mod rig;
mod round_trip;
mod swift;
mod swift_queue;

use ferroce_sim::bench;
use ferroce_sim::model::congestion::Params;
use ferroce_sim::random::Pauses;

use rig::{Kind, QPS, Rig, set_params};

/// Parameters anywhere in their ranges; an increase comes after `period` at least.
fn random_params(rng: &mut fastrand::Rng, period: u32) -> Params {
    Params {
        clamp_tgt_rate: rng.bool(),
        clamp_tgt_rate_after_time_inc: rng.bool(),
        rpg_time_reset: rng.u32(period..period + 400),
        rpg_byte_reset: [0, 64, 32_767, 262_143][rng.usize(..4)],
        rpg_threshold: rng.u32(1..6),
        rpg_max_rate: [0, 50_000, 200_000][rng.usize(..3)],
        rpg_ai_rate: rng.u32(..100),
        rpg_hai_rate: rng.u32(..30_000),
        rpg_gd: rng.u32(8..14),
        rpg_min_dec_fac: rng.u32(..=100),
        rpg_min_rate: rng.u32(1..1000),
        rate_to_set_on_first_cnp: [0, 40_000, 85_000][rng.usize(..3)],
        dce_tcp_g: if rng.bool() {
            rng.u32(900..1024)
        } else {
            rng.u32(..1024)
        },
        dce_tcp_rtt: rng.u32(1..100),
        rate_reduce_monitor_period: [0, 4, rng.u32(1..60)][rng.usize(..3)],
        initial_alpha_value: rng.u32(..1024),
        alpha_first: rng.bool(),
        alpha_whole: rng.u8(..3) == 0,
    }
}

/// Random events; a microsecond has `cycles` on average.
fn random(params: Params, pauses: Pauses, cycles: u32, count: usize) -> Rig {
    let mut rig = Rig::new(params, pauses);
    let mut left = count;
    while left > 0 || rig.waiting() > 0 {
        let rng = rig.bench.rng();
        let tick = rng.u32(..cycles) == 0;
        let more = left > 0 && rng.u8(..30) == 0;
        let (kind, qpn) = (rng.u8(..60), rng.u16(..QPS));
        let most = [1 << 16, 1 << 22][rng.usize(..2)];
        let bytes = rng.u32(..most);
        if more && rig.waiting() < 28 {
            left -= 1;
            match kind {
                0..20 => rig.push(Kind::Cnp, qpn, bytes),
                20..50 => rig.push(Kind::Sent, qpn, bytes),
                50..53 => rig.push(Kind::Ack, qpn, bytes),
                53..56 => rig.push(Kind::Nak, qpn, bytes),
                56..59 => rig.push(Kind::Timeout, qpn, bytes),
                _ => rig.push(Kind::Reset, qpn, 0),
            }
        }
        rig.cycle(tick);
    }
    assert_eq!(rig.losses(), 0);
    rig
}

#[test]
fn as_the_reference_under_random_events() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let cycles = [4, 20, 250][rng.usize(..3)];
        let params = random_params(&mut rng, 400 / cycles);
        let rig = random(params, Pauses::NONE, cycles, 2000);
        assert!(
            rig.looks.iter().all(|&looks| looks > 100),
            "{:?}",
            rig.looks
        );
    }
}

/// Rate updates that are not taken hold up everything, and what was due meanwhile happens at its own time.
#[test]
fn as_the_reference_after_long_silence() {
    for seed in 20..26 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let params = random_params(&mut rng, 30_000);
        random(params, Pauses::new(0.02, 3_000), 1, 600);
    }
}

#[test]
fn shipped_parameters() {
    random(Params::default(), Pauses::NONE, 30, 4000);
}

/// The times are counted modulo 2^20 us.
#[test]
fn time_goes_round() {
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    for qpn in 0..QPS {
        rig.push(Kind::Cnp, qpn, 0);
    }
    for cycle in 0..3_300_000 {
        if cycle % 3_000 == 0 {
            rig.push(Kind::Cnp, (cycle / 3_000 % 16) as u16, 0);
        }
        rig.cycle(cycle % 3 == 0);
    }
    assert!(rig.us > 1 << 20);
}

/// More CNPs than it can take: what finds no room is lost, and counted; no rate falls below the lowest.
#[test]
fn a_flood_of_cnps() {
    const FLOOD: usize = 1000;
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    for _ in 0..FLOOD {
        rig.push(Kind::Cnp, 3, 0);
    }
    let mut looks = 0;
    for cycle in 0..40_000 {
        // which of them are lost is not asked for: all are the same
        looks += usize::from(
            rig.cycle(cycle % 250 == 249)
                .is_some_and(|look| !look.visit),
        );
    }
    assert_eq!(looks + rig.losses() as usize, FLOOD);
    assert!((64..500).contains(&looks), "{looks} were taken");
}

/// Bytes of one queue pair, an event a cycle, take no CNP of another its room.
#[test]
fn bytes_crowd_out_no_cnp() {
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    rig.checks = false;
    rig.push(Kind::Cnp, 3, 0);
    for _ in 0..200 {
        for _ in 0..40 {
            rig.push(Kind::Sent, 3, 64);
        }
        rig.push(Kind::Cnp, 4, 0);
        for _ in 0..60 {
            rig.cycle(false);
        }
    }
    assert_eq!(rig.losses(), 0);
}

/// A queue pair that starts afresh does so even if nothing else finds room.
#[test]
fn a_reset_is_never_lost() {
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    rig.lossy = true;
    rig.push(Kind::Cnp, 4, 0);
    for _ in 0..300 {
        rig.push(Kind::Cnp, 3, 0);
    }
    rig.push(Kind::Reset, 4, 0);
    let mut resets = 0;
    for _ in 0..10_000 {
        let look = rig.cycle(false);
        resets += usize::from(look.is_some_and(|look| !look.visit && !look.state.active));
    }
    assert!(rig.losses() > 100);
    assert_eq!(
        (resets, rig.state(4).active, rig.state(3).active),
        (1, false, true)
    );
}

/// Parameters change while queue pairs are paced, `dce_tcp_g` among them, whose table is made again.
#[test]
fn parameters_that_change() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    for round in 0..8 {
        let mut left = 300;
        while left > 0 || rig.waiting() > 0 {
            let tick = rng.u32(..20) == 0;
            if left > 0 && rig.waiting() < 28 && rng.u8(..30) == 0 {
                left -= 1;
                let kind = [Kind::Cnp, Kind::Sent][rng.usize(..2)];
                rig.push(kind, rng.u16(..QPS), rng.u32(..1 << 20));
            }
            rig.cycle(tick);
            assert_eq!(rig.losses(), 0);
        }
        while rig.cycle(false).is_none() {}
        rig.set_params(Params {
            dce_tcp_g: 1000 + round,
            rpg_ai_rate: 10 * round,
            rate_reduce_monitor_period: [59, 0, 4 + round][round as usize % 3],
            rpg_time_reset: 300 - round,
            ..Params::default()
        });
    }
}

/// Parameters of which 0 means none are switched off and on in any cycle of an event: it comes to its end.
#[test]
fn parameters_that_change_at_any_moment() {
    let mut rng = fastrand::Rng::with_seed(bench::seed());
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    rig.checks = false;
    for qpn in 0..QPS {
        rig.push(Kind::Cnp, qpn, 0);
    }
    for round in 0..600 {
        for _ in 0..rng.u32(20..60) {
            if rig.waiting() < 8 {
                let kind = [Kind::Cnp, Kind::Sent][usize::from(rng.u8(..8) > 0)];
                rig.push(kind, rng.u16(..QPS), 1 << 16);
            }
            rig.cycle(rng.u8(..20) == 0);
        }
        set_params(
            rig.bench.dut_mut(),
            &Params {
                rpg_byte_reset: [0, 64, 32_767][rng.usize(..3)],
                rate_reduce_monitor_period: [0, 4][rng.usize(..2)],
                ..Params::default()
            },
        );
        let looks = rig.looks;
        let comes = (0..1000).any(|_| {
            rig.cycle(false);
            rig.looks != looks
        });
        assert!(comes, "round {round}: it hangs");
    }
}

/// Cycles of an event of one queue pair, and of visits of all, at the shipped parameters.
#[test]
fn how_long_it_takes() {
    const COUNT: usize = 28;
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    for qpn in 0..QPS {
        rig.push(Kind::Cnp, qpn, 0);
    }
    while rig.waiting() > 0 {
        rig.cycle(false);
    }
    for round in 0..200 {
        for event in 0..COUNT {
            let qpn = (event as u16 + round) % QPS;
            rig.push([Kind::Sent, Kind::Cnp][event % 8 / 7], qpn, 4096);
        }
        while rig.waiting() > 0 {
            let tick = rig.bench.cycle().is_multiple_of(250);
            rig.cycle(tick);
        }
    }
    let cycles = rig.bench.cycle();
    let looks = rig.looks[0] + rig.looks[1];
    println!(
        "{cycles} cycles, {} events, {} visits",
        rig.looks[0], rig.looks[1]
    );
    assert!(
        cycles < 24 * looks + 30_000,
        "{cycles} cycles for {looks} looks"
    );
}

/// Cycles of a CNP that raises alpha and decreases, of queue pairs that have one in each monitor period.
#[test]
fn how_long_a_cnp_takes() {
    let mut rig = Rig::new(Params::default(), Pauses::NONE);
    let mut count = 0;
    let mut begins = 0;
    for round in 0..300 {
        if round == 20 {
            (begins, count) = (rig.bench.cycle(), 0);
        }
        for qpn in 0..QPS {
            rig.push(Kind::Cnp, qpn, 0);
            count += 1;
        }
        while rig.waiting() > 4 {
            let tick = rig.bench.cycle().is_multiple_of(250);
            rig.cycle(tick);
        }
    }
    let each = (rig.bench.cycle() - begins) / count;
    println!("{each} cycles a CNP");
    assert_eq!(rig.losses(), 0);
    assert!(each < 72, "{each} cycles a CNP");
}

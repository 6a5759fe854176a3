//! What the golden reference promises beside the recorded sequences.
use ferroce_sim::model::congestion::{Dcqcn, Params};

const LINE: u32 = 100_000;

/// Parameters anywhere in their ranges, periods short enough to matter.
fn random_params(rng: &mut fastrand::Rng) -> Params {
    Params {
        clamp_tgt_rate: rng.bool(),
        clamp_tgt_rate_after_time_inc: rng.bool(),
        rpg_time_reset: rng.u32(1..400),
        rpg_byte_reset: [0, 1, 32_767][rng.usize(..3)],
        rpg_threshold: rng.u32(1..6),
        rpg_max_rate: [0, 50_000][rng.usize(..2)],
        rpg_ai_rate: rng.u32(..100),
        rpg_hai_rate: rng.u32(..1000),
        rpg_gd: rng.u32(10..13),
        rpg_min_dec_fac: rng.u32(..=100),
        rpg_min_rate: rng.u32(1..1000),
        rate_to_set_on_first_cnp: [0, 85_000][rng.usize(..2)],
        dce_tcp_g: rng.u32(..1024),
        dce_tcp_rtt: rng.u32(1..100),
        rate_reduce_monitor_period: rng.u32(..60),
        initial_alpha_value: rng.u32(..1024),
        alpha_first: rng.bool(),
        alpha_whole: rng.u8(..3) == 0,
    }
}

/// When it is looked at changes nothing: it is a function of the events and the time.
#[test]
fn late_is_as_good_as_in_time() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let params = random_params(&mut rng);
        let mut eager = Dcqcn::new(params, LINE);
        let mut lazy = Dcqcn::new(params, LINE);
        let mut now = 0;
        for _ in 0..300 {
            let silence = [1, 30, 1000, 20_000][rng.usize(..4)];
            let next = now + rng.u64(..=silence) * 1000 + rng.u64(..1000);
            while now / 1000 < next / 1000 {
                now += 1000;
                eager.advance(now.min(next));
            }
            now = next;
            if rng.bool() {
                eager.on_cnp(now);
                lazy.on_cnp(now);
            } else {
                let bytes = rng.u32(..1_000_000);
                eager.on_sent(now, bytes);
                lazy.on_sent(now, bytes);
            }
            assert_eq!(eager.state(), lazy.state(), "seed {seed}, {now} ns");
            let range = params.rpg_min_rate..=LINE;
            assert!(range.contains(&lazy.rate_mbps()), "seed {seed}, {now} ns");
        }
    }
}

/// Nothing happens to the rate before the time that is announced.
#[test]
fn no_change_before_the_next_event() {
    for seed in 0..30 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut rp = Dcqcn::new(random_params(&mut rng), LINE);
        let mut now = 0;
        for _ in 0..200 {
            now += rng.u64(..40) * 1000;
            rp.on_cnp(now);
            for _ in 0..rng.u32(..5) {
                let rate = rp.rate_mbps();
                let next = rp.next_event();
                now = next.unwrap_or(now + 5_000_000);
                rp.advance(now - u64::from(next.is_some()));
                assert_eq!(rp.rate_mbps(), rate, "seed {seed}, {now} ns");
                rp.advance(now);
            }
        }
    }
}

#[test]
fn unlimited_until_the_first_cnp() {
    let mut rp = Dcqcn::new(Params::default(), LINE);
    rp.on_sent(1_000_000, 50_000_000);
    assert_eq!(
        (rp.rate_mbps(), rp.is_limited(), rp.next_event()),
        (LINE, false, None)
    );
    rp.on_cnp(1_000_000);
    assert_eq!(rp.next_event(), Some(1_004_000));
    rp.advance(1_004_000);
    assert_eq!((rp.rate_mbps(), rp.is_limited()), (50_778, true));
}

/// A flood takes no queue pair below its lowest rate, and in the end the limit is gone.
#[test]
fn lowest_rate_and_the_way_back() {
    let params = Params {
        rpg_min_rate: 100,
        rpg_ai_rate: 5000,
        rpg_byte_reset: 0,
        ..Params::default()
    };
    let mut rp = Dcqcn::new(params, LINE);
    for cnp in 0..1000 {
        rp.on_cnp(cnp * 1000);
    }
    assert_eq!(rp.rate_mbps(), 100);
    while let Some(next) = rp.next_event() {
        assert!(next < 1_000_000_000);
        rp.advance(next);
    }
    assert_eq!((rp.rate_mbps(), rp.is_limited()), (LINE, false));
    assert!(rp.state().active, "it remembers");
}

#[test]
fn a_parameter_out_of_range_is_named() {
    assert!(Params::default().check().is_ok());
    let params = Params {
        dce_tcp_g: 1024,
        ..Params::default()
    };
    let error = params.check().unwrap_err().to_string();
    assert_eq!(error, "dce_tcp_g is 1024: 0 to 1023 is possible");
}

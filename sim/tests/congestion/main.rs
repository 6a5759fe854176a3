//! The reaction point's golden reference beside event sequences of three published programs.
//!
//! `data/` was recorded from public simulators; its README names them. One has the integers of mlx5, and every row must be equal. The
//! others have other rules and real numbers: what fired and when must be equal, and each row, computed from the row before it, within
//! one step of alpha.

mod rules;

use std::collections::HashMap;

use ferroce_sim::model::congestion::{Dcqcn, Fired, Params, State};

const LINE: u32 = 100_000;

/// A row of a recorded sequence: numbers by the name of their column.
struct Row {
    event: String,
    fields: HashMap<String, f64>,
}

impl Row {
    fn get(&self, name: &str) -> f64 {
        self.fields.get(name).copied().unwrap_or_default()
    }

    fn time(&self) -> u64 {
        self.get("t_ns") as u64
    }

    fn count(&self, name: &str) -> u32 {
        self.get(name) as u32
    }

    /// Alpha in steps of 1/65536.
    fn steps(&self) -> f64 {
        self.get("alpha") * 65536.0
    }

    fn alpha(&self) -> u32 {
        (self.steps().round() as u32).min(65535)
    }

    /// A rate in Mb/s.
    fn mbps(&self, name: &str) -> f64 {
        self.get(name) / 1e6
    }

    /// What the reference holds if it goes on from here.
    fn state(&self, timers: &State) -> State {
        State {
            active: true,
            rate: self.mbps("rc_bps").round() as u32,
            target: self.mbps("rt_bps").round() as u32,
            alpha: self.alpha(),
            alpha_ticks: 0,
            time_stage: self.count("time_stage"),
            byte_stage: self.count("byte_stage"),
            byte_count: 0,
            ..*timers
        }
    }
}

fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a header").split(',').collect();
    let parse = |line: &str| {
        let mut row = Row {
            event: String::new(),
            fields: HashMap::new(),
        };
        for (name, value) in names.iter().zip(line.split(',')) {
            if *name == "event" {
                row.event = value.to_owned();
            } else {
                let number = value.parse().expect("a number");
                row.fields.insert((*name).to_owned(), number);
            }
        }
        row
    };
    lines.map(parse).collect()
}

/// Runs to the event of the row; ticks of alpha before it are not in every sequence.
fn run_to(rp: &mut Dcqcn, row: &Row) -> Option<Fired> {
    match row.event.as_str() {
        "cnp" | "bytes" => {
            while let Some((at, fired)) = rp.step(row.time()) {
                assert_eq!(fired, Fired::Alpha, "{at} before {}", row.time());
            }
            if row.event == "cnp" {
                rp.on_cnp(row.time());
            } else {
                rp.on_sent(row.time(), row.count("bytes"));
            }
            None
        }
        event => loop {
            let next = rp.step(row.time());
            let (at, fired) = next.unwrap_or_else(|| panic!("{event} at {}", row.time()));
            // a sequence may be apart by 1 ns to say which of two comes first
            if at == row.time() / 1000 * 1000 && (fired == Fired::Alpha) == (event == "alpha") {
                return Some(fired);
            }
            assert_eq!(fired, Fired::Alpha, "{at} before {}", row.time());
        },
    }
}

#[test]
fn every_row_of_the_integers_of_mlx5() {
    let params = Params {
        rate_to_set_on_first_cnp: 100_000,
        alpha_whole: true,
        ..Params::default()
    };
    let mut rp = Dcqcn::new(params, LINE);
    let rows = rows(include_str!("data/golden_isekai.csv"));
    for row in &rows {
        let fired = run_to(&mut rp, row);
        assert_eq!(row.event == "dec", fired == Some(Fired::Decrease));
        let state = rp.state();
        let seen = [
            rp.alpha() >> 6,
            state.target,
            state.rate,
            state.time_stage,
            state.byte_stage,
            state.byte_count,
        ];
        let names = [
            "alpha_1024",
            "rt_mbps",
            "rc_mbps",
            "time_stage",
            "byte_stage",
            "byte_count",
        ];
        let wanted = names.map(|name| row.count(name));
        assert_eq!(seen, wanted, "{} at {} ns", row.event, row.time());
    }
    assert_eq!(rows.len(), 160);
}

/// Two steps of alpha are 1/65536 of the rate; both roundings of a rate are 1 Mb/s.
fn near(seen: u32, wanted: f64, before: f64) -> bool {
    (f64::from(seen) - wanted).abs() <= before / 65536.0 + 2.0
}

/// A program without byte counter, with real numbers.
fn without_bytes(text: &str, params: Params) {
    let mut free = Dcqcn::new(params, LINE);
    let mut one = Dcqcn::new(params, LINE);
    let rows = rows(text);
    let mut before: Option<&Row> = None;
    for row in &rows {
        let place = format!("{} at {} ns", row.event, row.time());
        let timers = *free.state();
        let fired = run_to(&mut free, row);
        let expected = match row.event.as_str() {
            "cnp" => None,
            "alpha" => Some(Fired::Alpha),
            "dec" => Some(Fired::Decrease),
            "inc_fr" => Some(Fired::Recovery),
            "inc_ai" => Some(Fired::Additive),
            "inc_hai" => Some(Fired::Hyper),
            other => panic!("event {other}"),
        };
        assert_eq!(fired, expected, "{place}");
        assert_eq!(
            free.state().time_stage,
            row.count("time_stage"),
            "stage after {place}"
        );
        // from the row before, with the alpha of the row
        if let Some(last) = before
            && !matches!(row.event.as_str(), "cnp" | "alpha")
        {
            let alpha = row.alpha();
            let far = u64::MAX / 2;
            one.set_state(State {
                alpha,
                decrease_cnp: row.event == "dec",
                alpha_at: far,
                decrease_at: if row.event == "dec" {
                    row.time() / 1000
                } else {
                    far
                },
                increase_at: if row.event == "dec" {
                    far
                } else {
                    row.time() / 1000
                },
                ..last.state(&timers)
            });
            one.step(row.time()).expect("it is due");
            let now = one.state();
            let old = last.mbps("rc_bps");
            assert!(
                near(now.rate, row.mbps("rc_bps"), old),
                "rate after {place}"
            );
            assert!(
                near(now.target, row.mbps("rt_bps"), 0.0),
                "target after {place}"
            );
        }
        before = Some(row);
    }
    assert!(rows.len() > 100);
}

/// The presets of the program, without a byte counter.
fn preset(period: u32, alpha: u32, time: u32) -> Params {
    Params {
        dce_tcp_g: 1020,
        dce_tcp_rtt: alpha,
        rate_reduce_monitor_period: period,
        rpg_time_reset: time,
        rpg_byte_reset: 0,
        rpg_ai_rate: 20,
        rpg_hai_rate: 200,
        rpg_min_rate: 1000,
        alpha_first: true,
        ..Params::default()
    }
}

#[test]
fn order_and_rules_of_a_program_without_byte_counter() {
    without_bytes(
        include_str!("data/golden_hpcc_vendor.csv"),
        preset(4, 1, 300),
    );
    without_bytes(
        include_str!("data/golden_hpcc_paper.csv"),
        preset(50, 50, 55),
    );
}

#[test]
fn cuts_of_the_papers_own_program() {
    let params = Params {
        clamp_tgt_rate: true,
        dce_tcp_g: 1020,
        dce_tcp_rtt: 55,
        rate_reduce_monitor_period: 0,
        rpg_time_reset: 55,
        rpg_byte_reset: 156_250,
        rpg_threshold: 4,
        rpg_ai_rate: 40,
        rpg_hai_rate: 200,
        rpg_min_rate: 100,
        initial_alpha_value: 512,
        ..Params::default()
    };
    let mut rp = Dcqcn::new(params, LINE);
    let rows = rows(include_str!("data/golden_nsrdma.csv"));
    let (mut others, mut hyper) = (0, 0);
    let mut before: Option<&Row> = None;
    for row in &rows {
        let place = format!("{} at {} ns", row.event, row.time());
        let us = row.time() / 1000;
        let far = u64::MAX / 2;
        let due = |event| if row.event == event { us } else { far };
        let timers = State {
            alpha_at: due("alpha"),
            decrease_at: far,
            increase_at: due("timer"),
            ..State::default()
        };
        if let Some(last) = before {
            rp.set_state(last.state(&timers));
        }
        match row.event.as_str() {
            "cnp" => rp.on_cnp(row.time()),
            "bytes" => rp.on_sent(row.time(), params.rpg_byte_reset * 64),
            _ => {
                rp.step(row.time()).expect("it is due");
            }
        }
        let now = rp.state();
        let last = before.map_or(100_000.0, |last| last.mbps("rc_bps"));
        let stages = (row.count("time_stage"), row.count("byte_stage"));
        assert_eq!((now.time_stage, now.byte_stage), stages, "{place}");
        assert!(
            (f64::from(rp.alpha()) - row.steps()).abs() <= 2.0,
            "alpha, {place}"
        );
        // where its rules of increase are others: hyper increases grow, and each counter leaves fast recovery by itself
        let (own, other) = match row.event.as_str() {
            "timer" => (stages.0 - 1, stages.1),
            "bytes" => (stages.1 - 1, stages.0),
            _ => (0, 0),
        };
        if row.count("phase") == 3 && row.event != "alpha" {
            hyper += 1;
        } else if row.count("phase") == 1 && own < 4 && other >= 4 {
            others += 1;
        } else {
            let rate = row.mbps("rc_bps");
            assert!(near(now.rate, rate, last), "rate {}, {place}", now.rate);
            let target = row.mbps("rt_bps");
            assert!(near(now.target, target, 0.0), "target, {place}");
        }
        before = Some(row);
    }
    assert_eq!((rows.len(), others, hyper), (152, 1, 41));
}

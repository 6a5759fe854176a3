//! The sequence of another program with the integers of mlx5, replayed.
use ferroce_sim::model::congestion::Params;
use ferroce_sim::random::Pauses;

use super::rig::{Kind, Look, Rig};

const QPN: u16 = 5;

#[derive(Debug)]
struct Row {
    us: u64,
    event: String,
    bytes: u32,
    state: [u32; 6],
}

fn rows() -> Vec<Row> {
    let text = include_str!("../congestion/data/golden_isekai.csv");
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u32>().unwrap();
        Row {
            us: u64::from(number(0) / 1000),
            event: fields[1].into(),
            bytes: number(2),
            state: [3, 4, 5, 6, 7, 8].map(number),
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// The rig has checked that the reference has the same alpha.
fn state_of(rig: &Rig, look: &Look) -> [u32; 6] {
    let s = look.state;
    [
        rig.alpha(QPN) >> 6,
        s.target,
        s.rate,
        s.time_stage,
        s.byte_stage,
        s.byte_count,
    ]
}

/// Runs until the queue pair is looked at as it is now: on a visit, or at an event.
fn look(rig: &mut Rig, visit: bool) -> Look {
    for _ in 0..2000 {
        if let Some(look) = rig.cycle(false)
            && (look.qpn, look.visit, look.at) == (QPN, visit, rig.us)
        {
            return look;
        }
    }
    panic!("it was not looked at");
}

#[test]
fn every_row_of_the_recorded_sequence() {
    let params = Params {
        rate_to_set_on_first_cnp: 100_000,
        alpha_whole: true,
        ..Params::default()
    };
    let mut rig = Rig::new(params, Pauses::NONE);
    let rows = rows();
    let mut equal = 0;
    for (at, row) in rows.iter().enumerate() {
        while rig.us < row.us {
            rig.cycle(true);
            // others are looked at too, and some microseconds have no look at all
            for _ in 0..rig.us % 40 {
                rig.cycle(false);
            }
        }
        let input = match row.event.as_str() {
            "cnp" => Some(Kind::Cnp),
            "bytes" => Some(Kind::Sent),
            _ => None,
        };
        if let Some(kind) = input {
            rig.push(kind, QPN, row.bytes);
            let look = look(&mut rig, false);
            assert_eq!(state_of(&rig, &look), row.state, "{row:?}");
        } else if rows
            .get(at + 1)
            .is_some_and(|next| next.us == row.us && next.event == "dec")
        {
            // one look, in which both happen: the next row is compared
            continue;
        } else {
            // one look, in which alpha ticks behind it
            let mut state = row.state;
            if row.event != "alpha" {
                let raised = rows
                    .iter()
                    .any(|cnp| cnp.event == "cnp" && cnp.us + 1 == row.us);
                state[0] = ((state[0] * 1019) >> 10) + 5 * u32::from(raised);
            }
            let look = look(&mut rig, true);
            assert_eq!(state_of(&rig, &look), state, "{row:?}");
        }
        equal += 1;
    }
    assert_eq!((equal, rows.len()), (159, 160));
}

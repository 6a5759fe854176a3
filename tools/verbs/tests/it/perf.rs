//! `ferroce-perf`.

use ferroce_verbs_tools::perf::{Args, run as program};
use ferroce_verbs_tools::program::BadInput;

use crate::pair::{Ended, Kind, outputs, run};

fn both(kind: Kind, options: [&str; 2]) -> [Ended; 2] {
    run::<Args>(
        kind,
        options,
        |args| args.device.clone(),
        |device, args, out| program(device, args, out),
    )
}

/// Rows of the table: figures, and whose time they are.
fn rows(text: &str) -> Vec<(Vec<f64>, bool)> {
    let table = text.split_once(" #bytes").expect("a table").1;
    let row = |line: &str| {
        let figures = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        (figures, line.ends_with("(card time)"))
    };
    table
        .lines()
        .skip(1)
        .filter(|line| line.contains("time"))
        .map(row)
        .collect()
}

fn bandwidth(kind: Kind, options: &str, bytes: f64, iters: f64) {
    let [client, _] = outputs(both(kind, [options; 2]));
    let rows = rows(&client);
    assert_eq!(rows.len(), 2, "{client}");
    for (figures, is_card) in rows {
        let [size, count, peak, average, rate] = figures[..] else {
            panic!("{client}");
        };
        assert_eq!((size, count), (bytes, iters));
        let expected = rate * 1e6 * bytes / f64::from(1 << 20);
        assert!(
            (average - expected).abs() <= 0.01 + expected * 0.05,
            "{client}"
        );
        assert!(is_card || peak + 0.02 >= average, "{client}");
        if is_card {
            // 100 Gb/s, and some of it.
            assert!(average > 0.0 && average < 12_500.0, "{client}");
        }
    }
}

fn latency(kind: Kind, options: &str, bytes: f64, iters: f64) {
    let [client, _] = outputs(both(kind, [options; 2]));
    let rows = rows(&client);
    assert_eq!(rows.len(), 2, "{client}");
    for (figures, is_card) in rows {
        let [
            size,
            count,
            min,
            max,
            typical,
            average,
            deviation,
            p99,
            p999,
        ] = figures[..]
        else {
            panic!("{client}");
        };
        assert_eq!((size, count), (bytes, iters));
        let order = min <= typical
            && typical <= p99
            && p99 <= p999
            && p999 <= max
            && min <= average
            && average <= max;
        assert!(order && deviation >= 0.0, "{client}");
        assert!(!is_card || (0.2..1000.0).contains(&typical), "{client}");
    }
}

#[test]
fn write_bw() {
    bandwidth(
        Kind::Model,
        "write_bw -s 5000 -n 60 -t 16 -Q 5 --validate",
        5000.0,
        60.0,
    );
}

#[test]
fn write_bw_inline_over_uc() {
    bandwidth(
        Kind::Model,
        "write_bw -c uc -s 24 -I 32 -n 40 -t 16 -x 1 --validate",
        24.0,
        40.0,
    );
}

#[test]
fn read_bw() {
    bandwidth(
        Kind::Model,
        "read_bw -s 3000 -n 30 -o 4 -m 512 --validate",
        3000.0,
        30.0,
    );
}

#[test]
fn send_bw() {
    let options = "send_bw -s 2000 -n 50 -r 8 -t 32 --validate";
    bandwidth(Kind::Model, options, 2000.0, 50.0);
}

#[test]
fn atomic_bw() {
    bandwidth(Kind::Model, "atomic_bw -n 30 --validate", 8.0, 30.0);
    bandwidth(
        Kind::Model,
        "atomic_bw -A CMP_AND_SWAP -n 20 --validate",
        8.0,
        20.0,
    );
}

#[test]
fn write_lat() {
    latency(
        Kind::Model,
        "write_lat -s 1500 -n 30 --validate",
        1500.0,
        30.0,
    );
}

#[test]
fn read_lat() {
    latency(Kind::Model, "read_lat -s 16 -n 20 --validate", 16.0, 20.0);
}

#[test]
fn send_lat() {
    latency(
        Kind::Model,
        "send_lat -s 64 -n 30 -r 4 -I 64 --validate",
        64.0,
        30.0,
    );
}

#[test]
fn atomic_lat() {
    latency(Kind::Model, "atomic_lat -n 15 --validate", 8.0, 15.0);
}

#[test]
fn on_the_engine() {
    bandwidth(
        Kind::Rtl(512),
        "write_bw -s 4096 -n 8 -t 8 -Q 4 --validate",
        4096.0,
        8.0,
    );
}

#[test]
fn sides_that_do_not_agree() {
    for options in [
        ["write_bw -s 64", "write_bw -s 65"],
        ["write_bw", "read_bw"],
        ["send_lat -m 512", "send_lat -m 1024"],
    ] {
        for (_, result) in both(Kind::Model, options) {
            let error = result.unwrap_err();
            assert!(error.is::<BadInput>(), "{error:#}");
            assert!(
                error.to_string().contains("give both the same options"),
                "{error:#}"
            );
        }
    }
}

#[test]
fn what_cannot_be_measured() {
    for (options, text) in [
        ("read_bw -c UC", "UC has no READs"),
        ("atomic_lat -s 16", "an atomic has 8 bytes"),
        ("write_bw -n 0", "at least 1"),
        ("write_bw -s 0", "at least 1 byte"),
        ("write_bw -s 4294967295", "the card has at most"),
        ("write_bw -o 17", "-o is 17, possible is 1 to 16"),
        ("write_bw -u 32", "-u is a code from 0 to 31"),
        ("write_bw -U", "-U is for latency tests"),
        ("write_bw -x 9", "GID 9 is empty"),
        ("write_bw -t 100000", "max_send_wr of 100000 was asked for"),
    ] {
        for (_, result) in both(Kind::Model, [options; 2]) {
            let error = result.unwrap_err();
            assert!(error.is::<BadInput>(), "{options}: {error:#}");
            assert!(error.to_string().contains(text), "{options}: {error:#}");
        }
    }
}

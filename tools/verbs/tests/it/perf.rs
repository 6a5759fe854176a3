//! `ferroce-perf`.

use ferroce_verbs_tools::perf::{Args, run as program};
use ferroce_verbs_tools::program::BadInput;

use crate::pair::{Ended, Kind, outputs, run};

fn both(kind: Kind, options: [&str; 2]) -> [Ended; 2] {
    run::<Args>(kind, options, |args| args.device.clone(), program)
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

/// Checks the rows of a side of a bandwidth test: their size, and if given their messages; returns these.
fn check_bandwidth(text: &str, bytes: f64, messages: Option<f64>) -> f64 {
    let rows = rows(text);
    assert_eq!(rows.len(), 2, "{text}");
    for (figures, is_card) in &rows {
        let [size, count, peak, average, rate] = figures[..] else {
            panic!("{text}");
        };
        assert_eq!((size, count), (bytes, messages.unwrap_or(count)));
        let expected = rate * 1e6 * bytes / f64::from(1 << 20);
        assert!(
            (average - expected).abs() <= 0.01 + expected * 0.05,
            "{text}"
        );
        assert!(*is_card || peak == 0.0 || peak + 0.02 >= average, "{text}");
        if *is_card {
            // 100 Gb/s each way, and some of it.
            let ways = if text.contains("Bidirectional") {
                2.0
            } else {
                1.0
            };
            assert!(average > 0.0 && average < 12_500.0 * ways, "{text}");
        }
    }
    rows[0].0[1]
}

fn bandwidth(kind: Kind, options: &str, bytes: f64, iters: f64) {
    let [client, _] = outputs(both(kind, [options; 2]));
    check_bandwidth(&client, bytes, Some(iters));
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
fn several_queue_pairs() {
    for (test, bytes) in [
        ("write_bw -s 3000", 3000.0),
        ("read_bw -s 3000 -o 2", 3000.0),
        ("send_bw -s 1000 -r 4", 1000.0),
        ("atomic_bw", 8.0),
    ] {
        let options = format!("{test} -q 3 -n 20 -t 8 -Q 4 -e -S 2 --validate");
        let [client, _] = outputs(both(Kind::Model, [&options; 2]));
        check_bandwidth(&client, bytes, Some(60.0));
        assert!(client.contains("Number of qps   : 3"), "{client}");
        assert_eq!(client.matches(" local address:").count(), 3, "{client}");
    }
}

#[test]
fn both_ways() {
    for (test, bytes) in [
        ("write_bw -s 3000", 3000.0),
        ("read_bw -s 3000", 3000.0),
        ("send_bw -s 1000 -r 4 -e", 1000.0),
        ("atomic_bw", 8.0),
    ] {
        let options = format!("{test} -b -q 2 -n 20 -t 8 --validate");
        let sides = outputs(both(Kind::Model, [&options; 2]));
        for text in &sides {
            assert!(text.contains(" Bidirectional BW Test"), "{text}");
            check_bandwidth(text, bytes, Some(40.0));
        }
        // The sum is the same at both.
        let [a, b] = sides.map(|text| rows(&text)[1].0[4]);
        assert!((a - b).abs() <= 2e-6, "{a} {b}");
    }
}

#[test]
fn for_a_time() {
    for (test, bytes) in [
        ("write_bw -s 3000", 3000.0),
        ("send_bw -s 1000 -r 16 -q 2", 1000.0),
        ("atomic_bw -b", 8.0),
    ] {
        let options = format!("{test} -D 0.0001 -t 8 --validate");
        let [client, _] = outputs(both(Kind::Model, [&options; 2]));
        let messages = check_bandwidth(&client, bytes, None);
        // There is no peak.
        assert!(
            rows(&client).iter().all(|(row, _)| row[2] == 0.0),
            "{client}"
        );
        assert!(!client.contains("-0.00"), "{client}");
        // No message takes more than 10 us of the card's time.
        assert!(messages >= 10.0, "{client}");
    }
    for test in ["write_lat", "send_lat -e", "read_lat -e", "atomic_lat"] {
        let options = format!("{test} -D 0.0001 --validate");
        let [client, _] = outputs(both(Kind::Model, [&options; 2]));
        assert!(client.contains("t_avg[usec]    tps average"), "{client}");
        let rows = rows(&client);
        assert_eq!(rows.len(), 2, "{client}");
        let [_, count, average, rate] = rows[1].0[..] else {
            panic!("{client}");
        };
        // The last turn begins after the time, and is counted.
        assert!(count >= 2.0 && count / rate >= 0.0001, "{client}");
        assert!((0.2..1000.0).contains(&average), "{client}");
    }
}

#[test]
fn all_sizes() {
    let [client, _] = outputs(both(Kind::Model, ["write_lat -a -n 1 --validate"; 2]));
    let sizes: Vec<_> = rows(&client)
        .iter()
        .map(|(figures, _)| figures[0])
        .collect();
    let powers = (1..=23).flat_map(|log| [f64::from(1 << log); 2]);
    assert_eq!(sizes, powers.collect::<Vec<_>>());
}

#[test]
fn on_the_engine() {
    bandwidth(
        Kind::Rtl(512),
        "write_bw -s 4096 -n 8 -t 8 -Q 4 --validate",
        4096.0,
        8.0,
    );
    let options = "send_bw -s 3000 -n 6 -q 2 -b -e -t 4 --validate";
    bandwidth(Kind::Rtl(512), options, 3000.0, 12.0);
}

#[test]
fn sides_that_do_not_agree() {
    for options in [
        ["write_bw -s 64", "write_bw -s 65"],
        ["write_bw", "read_bw"],
        ["send_lat -m 512", "send_lat -m 1024"],
        ["write_bw -b", "write_bw"],
        ["write_bw -q 2", "write_bw -q 3"],
        ["write_bw -D 1", "write_bw -D 2"],
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
        ("write_bw -U -D 1", "-U is for latency tests"),
        ("read_lat -U -D 1", "-U and -D do not go together"),
        ("send_lat -q 2", "-q is not for send_lat: latency is of one"),
        ("send_lat -b", "-b is not for send_lat: latency is of one"),
        ("write_lat -e", "-e is not for write_lat: no completion"),
        ("read_bw -I 8", "-I is not for read_bw: it sends no data"),
        ("write_bw -I 289", "max_inline_data of 289 was asked for"),
        ("write_bw -q 0", "-q is 0, possible is 1 to 254"),
        ("write_bw -q 255", "-q is 255, possible is 1 to 254"),
        ("write_bw -D 0", "-D is 0 s, possible is more than 0"),
        ("write_bw -D nan", "-D is NaN s, possible is more than 0"),
        ("send_bw -r 40000", "max_recv_wr of 40000 was asked for"),
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

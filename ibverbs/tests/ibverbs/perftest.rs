//! Debian's perftest, both sides on a card of their own.

use ferroce_system::packages::{CXX, PERFTEST};

use crate::library::Cards;

/// Runs both sides; the client must show a row of results for `size`.
fn measure(tests: &[(&str, &str)]) {
    let Some(cards) = Cards::with(&[PERFTEST, CXX]) else {
        return;
    };
    for (program, options) in tests {
        let [client, _] = cards.both(program, &format!("{options} -x 1 -n 10 -F"));
        let size = if program.contains("atomic") {
            "8"
        } else {
            "64"
        };
        let is_row = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(size) && words.next() == Some("10")
        };
        assert!(client.lines().any(is_row), "{program}: {client}");
    }
    cards.assert_healthy();
}

#[test]
fn bandwidth() {
    measure(&[
        ("ib_write_bw", "-s 64"),
        ("ib_read_bw", "-s 64"),
        ("ib_send_bw", "-s 64"),
        ("ib_atomic_bw", ""),
    ]);
}

#[test]
fn latency() {
    measure(&[
        ("ib_write_lat", "-s 64"),
        ("ib_read_lat", "-s 64"),
        ("ib_send_lat", "-s 64"),
        ("ib_atomic_lat", ""),
    ]);
}

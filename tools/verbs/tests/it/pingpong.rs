//! `ferroce-rc-pingpong`.

use ferroce_verbs_tools::pingpong::{Args, run as program};
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

/// The number behind `before` in a line of the output.
fn number(text: &str, before: &str) -> f64 {
    let at = text
        .find(before)
        .unwrap_or_else(|| panic!("no `{before}` in {text}"));
    let rest = &text[at + before.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

fn addresses(text: &str, side: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("  {side} address:")));
    line.unwrap().split_once("LID").unwrap().1.to_owned()
}

fn check(kind: Kind, options: &str, bytes: u32, iters: u32, gids: [&str; 2]) {
    let [client, server] = outputs(both(kind, [options; 2]));
    assert_eq!(addresses(&client, "local"), addresses(&server, "remote"));
    assert_eq!(addresses(&client, "remote"), addresses(&server, "local"));
    for (text, gid) in [(&client, gids[0]), (&server, gids[1])] {
        let line = addresses(text, "local");
        assert!(
            line.starts_with(" 0x0000, QPN 0x000002, PSN 0x") && line.contains(gid),
            "{line}"
        );
        let total = bytes * iters * 2;
        for time in ["host", "card"] {
            let line = text
                .lines()
                .find(|line| line.ends_with(&format!("Mbit/sec of {time} time")));
            let line = line.unwrap_or_else(|| panic!("{text}"));
            assert!(line.starts_with(&format!("{total} bytes in ")), "{line}");
            assert!(number(line, "seconds = ") > 0.0, "{line}");
            let line = text
                .lines()
                .find(|line| line.ends_with(&format!("usec/iter of {time} time")));
            assert!(
                line.unwrap().starts_with(&format!("{iters} iters in ")),
                "{text}"
            );
        }
        // There and back over 100 ns of wire, and twice through hosts and cards.
        let us = number(text.lines().last().unwrap(), "seconds = ");
        assert!((0.4..1000.0).contains(&us), "{us} us of card time");
    }
}

#[test]
fn over_link_local_addresses() {
    check(
        Kind::Model,
        "-n 40 -s 3000 -c",
        3000,
        40,
        ["GID fe80::", "GID fe80::"],
    );
}

#[test]
fn over_ipv4() {
    let gids = ["GID ::ffff:10.0.0.1", "GID ::ffff:10.0.0.2"];
    check(Kind::Model, "-n 30 -s 64 -r 4 -m 256 -g 1 -c", 64, 30, gids);
}

#[test]
fn on_the_engine() {
    check(
        Kind::Rtl(512),
        "-n 5 -s 3000 -r 8 -c",
        3000,
        5,
        ["GID fe80::", "GID fe80::"],
    );
}

#[test]
fn sides_that_do_not_agree() {
    let [client, server] = both(Kind::Model, ["-n 10 -s 100", "-n 10 -s 200"]);
    let errors = [client.1, server.1].map(|result| result.err().map(|e| format!("{e:#}")));
    let told = errors
        .iter()
        .flatten()
        .any(|e| e.contains("a message of") && e.contains("the same -s"));
    assert!(told, "{errors:?}");
}

#[test]
fn a_gid_that_is_empty() {
    for (_, result) in both(Kind::Model, ["-g 5"; 2]) {
        let error = result.unwrap_err();
        assert!(error.is::<BadInput>(), "{error:#}");
        assert!(
            error.to_string().starts_with("GID 5 is empty: "),
            "{error:#}"
        );
    }
}

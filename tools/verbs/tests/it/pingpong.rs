//! `ferroce-rc-pingpong`, `ferroce-uc-pingpong`, `ferroce-ud-pingpong`.

use clap::Parser;
use ferroce_verbs_tools::device::DeviceArgs;
use ferroce_verbs_tools::pingpong::{Args, RcArgs, UcArgs, UdArgs, run as program};
use ferroce_verbs_tools::program::BadInput;

use crate::pair::{Ended, Kind, outputs, run};

fn both<A>(kind: Kind, options: [&str; 2], device: fn(&A) -> &DeviceArgs) -> [Ended; 2]
where
    A: Parser + Clone + Sync,
    Args: TryFrom<A>,
    anyhow::Error: From<<Args as TryFrom<A>>::Error>,
{
    run::<A>(
        kind,
        options,
        |args| device(args).clone(),
        |device, args, out| program(device, &Args::try_from(args.clone())?, out),
    )
}

fn rc(kind: Kind, options: [&str; 2]) -> [Ended; 2] {
    both::<RcArgs>(kind, options, |args| &args.common.device)
}

fn uc(kind: Kind, options: [&str; 2]) -> [Ended; 2] {
    both::<UcArgs>(kind, options, |args| &args.common.device)
}

fn ud(kind: Kind, options: [&str; 2]) -> [Ended; 2] {
    both::<UdArgs>(kind, options, |args| &args.common.device)
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

fn check(ended: [Ended; 2], bytes: u32, iters: u32, gids: [&str; 2]) {
    let [client, server] = outputs(ended);
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

const LINK_LOCAL: [&str; 2] = ["GID fe80::"; 2];

#[test]
fn over_link_local_addresses() {
    let ended = rc(Kind::Model, ["-n 40 -s 3000 -c"; 2]);
    check(ended, 3000, 40, LINK_LOCAL);
}

#[test]
fn over_ipv4() {
    let gids = ["GID ::ffff:10.0.0.1", "GID ::ffff:10.0.0.2"];
    let ended = rc(Kind::Model, ["-n 30 -s 64 -r 4 -m 256 -g 1 -c"; 2]);
    check(ended, 64, 30, gids);
}

#[test]
fn asleep_with_a_priority() {
    let ended = rc(
        Kind::Model,
        ["-n 30 -s 500 -e -l 5 -c", "-n 30 -s 500 -e -c"],
    );
    check(ended, 500, 30, LINK_LOCAL);
}

#[test]
fn over_an_unreliable_connection() {
    let ended = uc(
        Kind::Model,
        ["-n 30 -s 3000 -l 3 -c", "-n 30 -s 3000 -e -c"],
    );
    check(ended, 3000, 30, LINK_LOCAL);
}

#[test]
fn by_datagrams() {
    let gids = ["GID ::ffff:10.0.0.1", "GID ::ffff:10.0.0.2"];
    let ended = ud(
        Kind::Model,
        [
            "-n 30 -s 4096 -g 1 -r 3 -c",
            "-n 30 -s 4096 -g 1 -l 7 -e -c",
        ],
    );
    check(ended, 4096, 30, gids);
}

#[test]
fn on_the_engine() {
    let wide = Kind::Rtl(512);
    check(
        rc(wide, ["-n 5 -s 3000 -r 8 -e -c"; 2]),
        3000,
        5,
        LINK_LOCAL,
    );
    check(ud(wide, ["-n 5 -r 8 -c"; 2]), 1024, 5, LINK_LOCAL);
}

#[test]
fn sides_that_do_not_agree() {
    for run in [rc, ud] {
        let [client, server] = run(Kind::Model, ["-n 10 -s 100", "-n 10 -s 200"]);
        let errors = [client.1, server.1].map(|result| result.err().map(|e| format!("{e:#}")));
        let reported = errors
            .iter()
            .flatten()
            .any(|e| e.contains("a message of") && e.contains("the same -s"));
        assert!(reported, "{errors:?}");
    }
}

#[test]
fn a_peer_that_ends_early() {
    let [client, server] = rc(Kind::Model, ["-n 50 -s 100", "-n 5 -s 100 -e"]);
    let error = format!("{:#}", client.1.unwrap_err());
    let expected = "the peer ended before this side was done";
    assert!(error.contains(expected), "{error}");
    server.1.unwrap();
}

#[test]
fn what_cannot_be() {
    let refused = |ended: [Ended; 2], text: &str| {
        for (_, result) in ended {
            let error = result.unwrap_err();
            assert!(error.is::<BadInput>(), "{error:#}");
            assert!(error.to_string().contains(text), "{text}: {error:#}");
        }
    };
    for (options, text) in [
        ("-g 5", "GID 5 is empty: "),
        (
            "-s 0",
            "-s is 0, a message over RC has 1 to 2147483648 bytes",
        ),
        ("-s 4000000000", "-s is 4000000000, a message over RC has"),
        ("-n 0", "-n and -r are at least 1"),
        ("-r 0", "-n and -r are at least 1"),
        ("-r 40000", "max_recv_wr of 40000 was asked for"),
        (
            "-r 5000000",
            "a completion queue of 5000001 entries was asked for",
        ),
        ("-t", "completions of the card carry no time: leave out -t"),
    ] {
        refused(rc(Kind::Model, [options; 2]), text);
    }
    let text = "-s is 4097, a message over UD has 1 to 4096 bytes";
    refused(ud(Kind::Model, ["-s 4097"; 2]), text);
}

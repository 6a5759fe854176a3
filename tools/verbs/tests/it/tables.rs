//! Programs with one card: `ferroce-devinfo`, `ferroce-show-gids`, `ferroce-stats`.

use clap::Parser;
use ferroce_proto::abi::regs;
use ferroce_verbs_tools::device::Device;
use ferroce_verbs_tools::{devinfo, gids, stats};

use crate::pair::{Cards, Kind, RemoteCard, cards};

const ADDRESSES: &str = "--mac 02:00:00:00:00:01 --ip 10.0.0.1 --ip fd00::1";

fn args<A: Parser>(options: &str) -> A {
    A::parse_from(format!("program {ADDRESSES} {options}").split_whitespace())
}

fn device() -> (Cards, RemoteCard, Device<RemoteCard>) {
    let (cards, [card, other]) = cards(Kind::Model);
    let args: gids::Args = args("");
    let device = Device::new("unix:/card", true, card, &args.device).unwrap();
    (cards, other, device)
}

#[test]
fn devinfo_as_users_know_it() {
    let (cards, other, device) = device();
    let mut text = Vec::new();
    devinfo::run(&device, &args("-v"), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let value = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .split_once(':')
            .unwrap()
            .1
            .trim()
            .to_owned()
    };
    let info = device.context.query_device();
    assert_eq!(value("hca_id"), "unix:/card");
    assert_eq!(value("transport"), "InfiniBand (0)");
    assert_eq!(value("node_guid"), "0000:00ff:fe00:0001");
    assert_eq!(value("vendor_id"), "0x10ee");
    assert_eq!(value("max_qp"), (info.max_qp - 2).to_string());
    assert_eq!(value("max_qp_wr"), "32768");
    assert_eq!(value("state"), "PORT_ACTIVE (4)");
    assert_eq!(value("link_layer"), "Ethernet");
    assert_eq!(value("max_msg_sz"), "0x80000000");
    assert_eq!(value("features"), info.features.to_string());
    assert!(
        text.contains("GID[  0]:\t\tfe80::ff:fe00:1, RoCE v2"),
        "{text}"
    );
    assert!(
        text.contains("GID[  1]:\t\t::ffff:10.0.0.1, RoCE v2"),
        "{text}"
    );
    assert!(text.contains("GID[  2]:\t\tfd00::1, RoCE v2"), "{text}");
    let mut short = Vec::new();
    devinfo::run(&device, &args("-l"), &mut short).unwrap();
    assert_eq!(short, b"1 HCA found:\n\tunix:/card\n");
    drop((device, other));
    cards.assert_healthy();
}

#[test]
fn gids_as_users_know_them() {
    let (cards, other, device) = device();
    let mut text = Vec::new();
    gids::run(&device, &args(""), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let rows: Vec<Vec<_>> = text
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let mac = "02:00:00:00:00:01";
    assert_eq!(
        rows[0],
        [
            "unix:/card",
            "1",
            "0",
            "fe80:0000:0000:0000:0000:00ff:fe00:0001",
            "v2",
            mac
        ]
    );
    assert_eq!(
        rows[1],
        [
            "unix:/card",
            "1",
            "1",
            "0000:0000:0000:0000:0000:ffff:0a00:0001",
            "10.0.0.1",
            "v2",
            mac
        ]
    );
    assert_eq!(
        rows[2],
        [
            "unix:/card",
            "1",
            "2",
            "fd00:0000:0000:0000:0000:0000:0000:0001",
            "v2",
            mac
        ]
    );
    assert_eq!(rows[3], ["n_gids_found=3"]);
    drop((device, other));
    cards.assert_healthy();
}

#[test]
fn counters_once_and_live() {
    let (cards, other, mut device) = device();
    let mut run = |options: &str| {
        let mut text = Vec::new();
        stats::run(&mut device, &args(options), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let text = run("-I 0.01 -c 3 -r");
    // Announcements of the three addresses left the card.
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("link unix:/card/1")),
        "{text}"
    );
    let once = run("");
    let words: Vec<_> = once.split_whitespace().skip(2).collect();
    let names: Vec<_> = words.iter().step_by(2).copied().collect();
    assert_eq!(names, regs::STATS);
    let sent = words
        .iter()
        .position(|word| *word == "tx_exceptions")
        .unwrap();
    assert_eq!(words[sent + 1], "3");
    drop((device, other));
    cards.assert_healthy();
}

//! Programs with one card.

use ferroce_system::packages::{CXX, IBVERBS_UTILS};

use crate::library::{Cards, succeeded};

/// The value of the first line that starts with `name:`.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let mut lines = text.lines().map(str::trim);
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .trim()
}

#[test]
fn devices_are_listed() {
    let Some(cards) = Cards::with(&[IBVERBS_UTILS, CXX]) else {
        return;
    };
    let text = cards.run("ibv_devices", "");
    let rows: Vec<Vec<_>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert!(
        rows.contains(&vec!["ferroce0", "000000fffe000001"]),
        "{text}"
    );
    cards.assert_healthy();
}

#[test]
fn a_device_is_described() {
    let Some(cards) = Cards::with(&[IBVERBS_UTILS, CXX]) else {
        return;
    };
    let text = cards.run("ibv_devinfo", "-v");
    for (name, expected) in [
        ("hca_id", "ferroce0"),
        ("transport", "InfiniBand (0)"),
        ("node_guid", "0000:00ff:fe00:0001"),
        ("vendor_id", "0x10ee"),
        ("phys_port_cnt", "1"),
        ("max_qp", "254"),
        ("max_cq", "256"),
        ("max_srq", "64"),
        ("atomic_cap", "ATOMIC_HCA (1)"),
        ("state", "PORT_ACTIVE (4)"),
        ("max_mtu", "4096 (5)"),
        ("active_mtu", "1024 (3)"),
        ("link_layer", "Ethernet"),
        ("max_msg_sz", "0x80000000"),
        ("gid_tbl_len", "16"),
        ("GID[  0]", "fe80::ff:fe00:1, RoCE v2"),
        ("GID[  1]", "::ffff:10.0.0.1, RoCE v2"),
    ] {
        assert_eq!(value(&text, name), expected, "{name} in {text}");
    }
    // The card is free again.
    let again = cards.run("ibv_devinfo", "-l");
    assert_eq!(again, "1 HCA found:\n\tferroce0\n\n");
    cards.assert_healthy();
}

#[test]
fn the_mtu_in_use_is_that_of_the_network() {
    let Some(cards) = Cards::with(&[IBVERBS_UTILS, CXX]) else {
        return;
    };
    let mut devinfo = cards.command("a", "ibv_devinfo", "-v");
    let text = succeeded(
        "ibv_devinfo",
        devinfo.env("FERROCE_MTU", "2048").spawn().unwrap(),
    );
    assert_eq!(value(&text, "active_mtu"), "2048 (4)", "{text}");
    assert_eq!(value(&text, "max_mtu"), "4096 (5)", "{text}");
    cards.assert_healthy();
}

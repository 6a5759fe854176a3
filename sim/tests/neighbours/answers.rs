//! What the host answers, compared byte by byte with frames written by hand.

use std::net::{Ipv4Addr, Ipv6Addr};

use ferroce_driver::{Gid, NeighbourState};

use crate::rig::*;

fn questions_are_answered(kind: Kind) -> Result {
    let rig = Rig::new(kind, 1)?;
    let mut side = rig.neighbours(0)?;
    let asker = (OTHER, Ipv4Addr::new(10, 0, 0, 99));
    let asker6 = (OTHER, Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x99));

    // ARP: to all, to us alone, and the test of an address (RFC 5227), padded as from a wire.
    let unset = (ferroce_driver::Mac([0; 6]), v4(0));
    let mut padded = arp(BROADCAST, 1, asker, unset);
    padded.resize(60, 0);
    rig.inject(&mut side, &[padded]);
    let reply = arp(OTHER, 2, (MAC[0], v4(0)), asker);
    assert_eq!(rig.take_sent(), std::slice::from_ref(&reply));
    assert_eq!(
        side.get(asker.1.into()),
        Some((Some(OTHER), NeighbourState::Stale))
    );
    rig.inject(&mut side, &[arp(MAC[0], 1, asker, unset)]);
    assert_eq!(rig.take_sent(), [reply]);
    let test = (OTHER, Ipv4Addr::UNSPECIFIED);
    rig.inject(&mut side, &[arp(BROADCAST, 1, test, unset)]);
    assert_eq!(rig.take_sent(), [arp(OTHER, 2, (MAC[0], v4(0)), test)]);
    assert_eq!(side.get(Ipv4Addr::UNSPECIFIED.into()), None);

    // Neighbour solicitation: to the multicast group, to us alone without an option, and the test of an address.
    let target = v6(0);
    let answer = |flags| nd(136, flags, target, Some(MAC[0]));
    let from_us = (MAC[0], target);
    rig.inject(
        &mut side,
        &[icmpv6(
            solicited_node(target),
            asker6,
            255,
            nd(135, 0, target, Some(OTHER)),
        )],
    );
    let advert = icmpv6(asker6, from_us, 255, answer(0x60));
    assert_eq!(rig.take_sent(), std::slice::from_ref(&advert));
    assert_eq!(
        side.get(asker6.1.into()),
        Some((Some(OTHER), NeighbourState::Stale))
    );
    rig.inject(
        &mut side,
        &[icmpv6(from_us, asker6, 255, nd(135, 0, target, None))],
    );
    assert_eq!(rig.take_sent(), [advert]);
    let unset6 = (OTHER, Ipv6Addr::UNSPECIFIED);
    rig.inject(
        &mut side,
        &[icmpv6(
            solicited_node(target),
            unset6,
            255,
            nd(135, 0, target, None),
        )],
    );
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let all = (ferroce_driver::Mac([0x33, 0x33, 0, 0, 0, 1]), all);
    assert_eq!(rig.take_sent(), [icmpv6(all, from_us, 255, answer(0x20))]);

    // Ping, of all lengths up to that of a slot, IPv4 and IPv6.
    let lengths: &[usize] = match kind {
        Kind::Model => &[0, 1, 17, 56, 1472],
        Kind::Rtl(_) => &[56],
    };
    for &len in lengths {
        let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
        rig.inject(&mut side, &[ping((MAC[0], v4(0)), asker, 8, &data)]);
        let mut expected = ping(asker, (MAC[0], v4(0)), 0, &data);
        let sent = rig.take_sent();
        // The identification of the header is the sender's own affair.
        expected[18..26].copy_from_slice(&sent[0][18..26]);
        assert_eq!(sent, [expected], "{len} bytes");
        assert_eq!(checksum(&[&sent[0][14..34]]), [0, 0]);
        let echo = |kind: u8| [&[kind, 0, 0, 0, 0x12, 0x34, 0, 7][..], &data].concat();
        rig.inject(&mut side, &[icmpv6(from_us, asker6, 64, echo(128))]);
        assert_eq!(rig.take_sent(), [icmpv6(asker6, from_us, 64, echo(129))]);
    }
    let counters = side.counters();
    assert_eq!(
        (counters.answered, counters.echoes),
        (6, 2 * lengths.len() as u64)
    );
    assert_eq!((counters.malformed, counters.dropped), (0, 0));

    // An address that is taken away is not answered for.
    rig.hosts[0].clear_gid(1)?;
    rig.inject(&mut side, &[arp(BROADCAST, 1, asker, unset)]);
    assert!(rig.take_sent().is_empty());
    assert_eq!(side.counters().unclaimed, 1);
    rig.assert_healthy();
    Ok(())
}

#[test]
fn model_answers() -> Result {
    questions_are_answered(Kind::Model)
}

#[test]
fn engine_answers() -> Result {
    questions_are_answered(Kind::Rtl(512))
}

/// With a VLAN the answers carry its tag, and questions of other VLANs are not ours.
#[test]
fn vlan() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let config = ferroce_driver::NeighbourConfig {
        vlan: Some(0x6064),
        ..CONFIG
    };
    let mut side = ferroce_driver::Neighbours::new(&rig.hosts[0], config)?;
    let asker = (OTHER, Ipv4Addr::new(10, 0, 0, 99));
    let unset = (ferroce_driver::Mac([0; 6]), v4(0));
    let tagged = |mut frame: Vec<u8>, tci: [u8; 2]| {
        frame.splice(12..12, [0x81, 0, tci[0], tci[1]]);
        frame
    };
    let question = || arp(BROADCAST, 1, asker, unset);
    rig.inject(&mut side, &[question(), tagged(question(), [0, 0x65])]);
    assert!(rig.take_sent().is_empty());
    assert_eq!(side.counters().unclaimed, 2);
    rig.inject(&mut side, &[tagged(question(), [0, 0x64])]);
    let reply = tagged(arp(OTHER, 2, (MAC[0], v4(0)), asker), [0x60, 0x64]);
    assert_eq!(rig.take_sent(), [reply]);
    Ok(())
}

/// Addresses are announced, and defended when another station claims one.
#[test]
fn announced_and_defended() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let mut side = rig.neighbours(0)?;
    side.announce();
    rig.run(&mut [&mut side], 20_000);
    let sent = rig.take_sent();
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let all = (ferroce_driver::Mac([0x33, 0x33, 0, 0, 0, 1]), all);
    let advert = |gid: Gid| {
        let ip = Ipv6Addr::from(gid.0);
        icmpv6(all, (MAC[0], ip), 255, nd(136, 0x20, ip, Some(MAC[0])))
    };
    let unset = (ferroce_driver::Mac([0; 6]), v4(0));
    let gratuitous = arp(BROADCAST, 1, (MAC[0], v4(0)), unset);
    assert_eq!(
        sent,
        [advert(gid(0, 0)), gratuitous.clone(), advert(gid(0, 2))]
    );
    let thief = arp(BROADCAST, 2, (OTHER, v4(0)), (OTHER, v4(0)));
    rig.inject(&mut side, &[thief.clone(), thief]);
    assert_eq!(rig.take_sent(), [gratuitous], "not more often than allowed");
    assert_eq!(side.counters().conflicts, 2);
    assert_eq!(side.get(gid(0, 1)), None);
    Ok(())
}

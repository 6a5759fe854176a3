//! Frames that break a rule, or claim what is not theirs, change nothing and are counted.

use std::net::{Ipv4Addr, Ipv6Addr};

use ferroce_driver::{Backend, Mac, NeighbourCounters, NeighbourState, ResolveError};

use crate::rig::*;

const ASKER: (Mac, Ipv4Addr) = (OTHER, Ipv4Addr::new(10, 0, 0, 99));
const ASKER6: (Mac, Ipv6Addr) = (OTHER, Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x99));
const NO_MAC: Mac = Mac([0; 6]);

/// Changes bytes of a frame.
fn with(mut frame: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    for &(at, value) in changes {
        frame[at] = value;
    }
    frame
}

fn question() -> Vec<u8> {
    arp(BROADCAST, 1, ASKER, (NO_MAC, v4(0)))
}

fn solicit(hops: u8, message: Vec<u8>) -> Vec<u8> {
    icmpv6(solicited_node(v6(0)), ASKER6, hops, message)
}

fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let us6 = (MAC[0], v6(0));
    let nd_question = nd(135, 0, v6(0), Some(OTHER));
    let echo = ping((MAC[0], v4(0)), ASKER, 8, b"abcd");
    let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);
    let broken_sum = |frame: Vec<u8>, at: usize| {
        let value = frame[at] ^ 0x40;
        with(frame, &[(at, value)])
    };
    let option = |len: u8, bytes: usize| {
        let mut message = nd(135, 0, v6(0), None);
        message.extend([1, len]);
        message.resize(message.len() + bytes - 2, 7);
        message
    };
    vec![
        ("ARP of another hardware", with(question(), &[(15, 6)])),
        ("ARP of another protocol", with(question(), &[(16, 9)])),
        (
            "ARP with long hardware addresses",
            with(question(), &[(18, 8)]),
        ),
        (
            "ARP with long protocol addresses",
            with(question(), &[(19, 16)]),
        ),
        ("ARP operation 0", with(question(), &[(21, 0)])),
        ("ARP operation 3", with(question(), &[(21, 3)])),
        (
            "ARP from a multicast station",
            arp(
                BROADCAST,
                1,
                (Mac([3, 0, 0, 0, 0, 1]), ASKER.1),
                (NO_MAC, v4(0)),
            ),
        ),
        (
            "ARP from station 0",
            with(question(), &[(22, 0), (26, 0), (27, 0)]),
        ),
        (
            "ARP from the broadcast address",
            arp(BROADCAST, 1, (OTHER, Ipv4Addr::BROADCAST), (NO_MAC, v4(0))),
        ),
        (
            "ARP from a multicast address",
            arp(
                BROADCAST,
                1,
                (OTHER, Ipv4Addr::new(224, 0, 0, 9)),
                (NO_MAC, v4(0)),
            ),
        ),
        (
            "ARP from localhost",
            arp(BROADCAST, 1, (OTHER, Ipv4Addr::LOCALHOST), (NO_MAC, v4(0))),
        ),
        (
            "ARP reply from nobody",
            arp(MAC[0], 2, (OTHER, Ipv4Addr::UNSPECIFIED), (MAC[0], v4(0))),
        ),
        (
            "solicitation from beyond a router",
            solicit(254, nd_question.clone()),
        ),
        (
            "solicitation with code 1",
            solicit(255, with(nd_question.clone(), &[(1, 1)])),
        ),
        (
            "solicitation with a bad checksum",
            broken_sum(solicit(255, nd_question.clone()), 60),
        ),
        (
            "solicitation for a group",
            solicit(255, nd(135, 0, multicast, Some(OTHER))),
        ),
        (
            "solicitation cut short",
            solicit(255, nd_question[..23].to_vec()),
        ),
        (
            "solicitation with an empty option",
            solicit(255, option(0, 8)),
        ),
        (
            "solicitation with an option beyond its end",
            solicit(255, option(2, 8)),
        ),
        (
            "solicitation with a long address",
            solicit(255, option(2, 16)),
        ),
        (
            "solicitation with a group for address",
            solicit(255, nd(135, 0, v6(0), Some(BROADCAST))),
        ),
        (
            "solicitation from a group",
            icmpv6(
                solicited_node(v6(0)),
                (OTHER, multicast),
                255,
                nd_question.clone(),
            ),
        ),
        (
            "test of an address with an option",
            icmpv6(
                solicited_node(v6(0)),
                (OTHER, Ipv6Addr::UNSPECIFIED),
                255,
                nd_question.clone(),
            ),
        ),
        (
            "test of an address sent to us alone",
            icmpv6(
                us6,
                (OTHER, Ipv6Addr::UNSPECIFIED),
                255,
                nd(135, 0, v6(0), None),
            ),
        ),
        (
            "advertisement from beyond a router",
            icmpv6(us6, ASKER6, 64, nd(136, 0x60, ASKER6.1, Some(OTHER))),
        ),
        (
            "solicited advertisement to a group",
            solicit(255, nd(136, 0x60, ASKER6.1, Some(OTHER))),
        ),
        (
            "advertisement of a group",
            icmpv6(us6, ASKER6, 255, nd(136, 0x60, multicast, Some(OTHER))),
        ),
        (
            "IPv6 longer than its frame",
            with(solicit(255, nd_question), &[(18, 9)]),
        ),
        (
            "IPv4 with a bad header checksum",
            broken_sum(echo.clone(), 25),
        ),
        ("ping with a bad checksum", broken_sum(echo.clone(), 37)),
        ("ping longer than its frame", with(echo, &[(16, 9)])),
        (
            "ping from the broadcast address",
            ping((MAC[0], v4(0)), (OTHER, Ipv4Addr::BROADCAST), 8, b"abcd"),
        ),
        (
            "ping from our own address",
            ping((MAC[0], v4(0)), (OTHER, v4(0)), 8, b"abcd"),
        ),
    ]
}

#[test]
fn malformed_frames_are_counted() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let mut side = rig.neighbours(0)?;
    let mut expected = NeighbourCounters::default();
    for (name, frame) in malformed() {
        rig.inject(&mut side, &[frame]);
        expected.malformed += 1;
        assert_eq!(side.counters(), expected, "{name}");
        assert!(rig.take_sent().is_empty(), "{name} is not answered");
        assert_eq!(side.get(ASKER.1.into()), None, "{name}");
        assert_eq!(side.get(ASKER6.1.into()), None, "{name}");
    }
    // And the question itself is well formed.
    rig.inject(
        &mut side,
        &[question(), solicit(255, nd(135, 0, v6(0), Some(OTHER)))],
    );
    assert_eq!(rig.take_sent().len(), 2);
    rig.assert_healthy();
    Ok(())
}

/// Unsolicited answers add no entry, and do not replace a confirmed one.
#[test]
fn unasked_answers() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    let reply = |mac, ip| arp(MAC[0], 2, (mac, ip), (MAC[0], v4(0)));
    let advert = |flags, mac, ip| {
        icmpv6(
            (MAC[0], v6(0)),
            (mac, ip),
            255,
            nd(136, flags, ip, Some(mac)),
        )
    };
    rig.inject(
        &mut a,
        &[reply(OTHER, ASKER.1), advert(0x60, OTHER, ASKER6.1)],
    );
    assert_eq!(a.counters().ignored, 2);
    assert_eq!(
        (a.get(ASKER.1.into()), a.get(ASKER6.1.into())),
        (None, None)
    );

    for index in 1..3 {
        while a.try_resolve(index, gid(1, index))?.is_none() {
            rig.run(&mut [&mut a, &mut b], 640);
        }
    }
    // Without the override flag another address does not count, nor does that of a reply without a question; both are reason to ask again.
    rig.inject(&mut a, &[advert(0x40, OTHER, v6(1)), reply(OTHER, v4(1))]);
    assert_eq!(a.counters().ignored, 4);
    for ip in [v6(1).into(), v4(1).into()] {
        let known = Some((Some(MAC[1]), NeighbourState::Stale));
        assert_eq!(a.get(ip), known, "{ip}");
    }
    Ok(())
}

/// A flood of questions from ever new stations does not grow the cache, nor end a resolution under way.
#[test]
fn flood() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    let host = |i: u8| Ipv4Addr::new(10, 9, 9, i);
    let absent = Ipv4Addr::new(10, 0, 0, 77).into();
    a.try_resolve(1, absent)?;
    for i in 1..=40 {
        let station = Mac([2, 9, 9, 9, 9, i]);
        let question = arp(BROADCAST, 1, (station, host(i)), (NO_MAC, v4(0)));
        rig.inject(&mut a, &[question]);
        if i == 20 {
            // 20 rounds took longer than the questions.
            assert_eq!(a.get(absent), Some((None, NeighbourState::Failed)));
        }
    }
    let known = (1..=40).filter(|&i| a.get(host(i).into()).is_some());
    assert_eq!(known.count(), CONFIG.entries);
    assert_eq!(a.counters().answered, 40);
    while a.try_resolve(1, gid(1, 1))?.is_none() {
        rig.run(&mut [&mut a, &mut b], 640);
    }
    Ok(())
}

/// Ever other addresses are announced for a host that does not answer: no caller waits for ever.
#[test]
fn announcements_without_end() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let mut a = rig.neighbours(0)?;
    let absent = Ipv4Addr::new(10, 0, 0, 77);
    let card = rig.hosts[0].backend();
    let start = card.now_ns();
    let mut turn = 0;
    let error = loop {
        match a.try_resolve(1, absent.into()) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => break error,
        }
        turn += 1;
        let station = Mac([2, 9, 9, 9, 9, turn % 2]);
        rig.inject(
            &mut a,
            &[arp(BROADCAST, 1, (station, absent), (NO_MAC, absent))],
        );
        let most = 2 * CONFIG.retry_ns * u64::from(CONFIG.tries + 1);
        assert!(card.now_ns() - start < most, "{turn} announcements");
    };
    assert!(matches!(error, ResolveError::Unreachable { .. }), "{error}");
    assert!(turn > 2);
    Ok(())
}

/// A host answers each question twice, from two stations: no caller waits for ever.
#[test]
fn answers_that_contradict_each_other() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let mut a = rig.neighbours(0)?;
    let liar = Ipv4Addr::new(10, 0, 0, 78);
    let card = rig.hosts[0].backend();
    let start = card.now_ns();
    let mut turn = 0;
    let error = loop {
        match a.try_resolve(1, liar.into()) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => break error,
        }
        turn += 1;
        for last in 0..2 {
            let station = Mac([2, 9, 9, 9, 9, last]);
            let answer = arp(MAC[0], 2, (station, liar), (MAC[0], v4(0)));
            rig.world.borrow_mut().inject(rig.nodes[0], &answer);
        }
        // both are there when the driver looks
        rig.run(&mut [], 4_000);
        a.poll();
        let most = 2 * CONFIG.retry_ns * u64::from(CONFIG.tries + 1);
        assert!(card.now_ns() - start < most, "{turn} pairs of answers");
    };
    assert!(matches!(error, ResolveError::Unreachable { .. }), "{error}");
    assert!(turn > 2 && a.counters().confirmed > 2);
    // once it says one thing it is found
    let answer = arp(MAC[0], 2, (OTHER, liar), (MAC[0], v4(0)));
    assert_eq!(a.try_resolve(1, liar.into())?, None);
    rig.inject(&mut a, &[answer]);
    assert_eq!(a.try_resolve(1, liar.into())?, Some(OTHER));
    Ok(())
}

/// Random damage of every frame above: no panic, and what is answered was asked by a well-formed frame.
#[test]
fn damaged_frames() -> Result {
    let rig = Rig::new(Kind::Model, 1)?;
    let mut side = rig.neighbours(0)?;
    let mut random = fastrand::Rng::with_seed(ferroce_sim::bench::seed());
    let mut frames = malformed();
    frames.push(("ARP", question()));
    frames.push(("solicitation", solicit(255, nd(135, 0, v6(0), Some(OTHER)))));
    frames.push(("ping", ping((MAC[0], v4(0)), ASKER, 8, b"abcd")));
    for round in 0..1_000 {
        let mut frame = frames[round % frames.len()].1.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(12..frame.len());
            frame[at] = random.u8(..);
        }
        frame.truncate(random.usize(42..=frame.len()));
        rig.world.borrow_mut().inject(rig.nodes[0], &frame);
        rig.run(&mut [&mut side], 1_000);
    }
    rig.run(&mut [&mut side], 100_000);
    let counters = side.counters();
    let seen = counters.malformed
        + counters.answered
        + counters.echoes
        + counters.ignored
        + counters.conflicts
        + counters.unclaimed;
    assert!(
        seen > 600 && counters.malformed > 400 && counters.answered > 10,
        "{counters:?}"
    );
    rig.assert_healthy();
    Ok(())
}

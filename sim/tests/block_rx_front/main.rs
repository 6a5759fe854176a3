//! The receive front in Verilog, against the rules of `proto::wire` in plain Rust.

mod asks;
mod bench;
mod captured;
mod expected;
mod filter;
mod frames;
mod model;
mod overflow;
mod pauses;
mod ports;

use bench::{Front, LOG_PACKETS, Width};
use ferroce_hdl::eth::gid_table::GID_ENTRIES;
use ferroce_hdl::eth::rx_front::RxFront;
use ferroce_proto::wire::{Gid, Opcode, icrc};
use filter::Outcome;
use frames::{Layout, any_packet, garbage, ip_start, odd_packet, packet, port};

/// Pads a frame to the Ethernet minimum without FCS.
fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0xa5);
    frame
}

#[test]
fn captured_frames() {
    for width in Width::ALL {
        let mut front = Front::new(width, captured::port(), 0.0, 0.0);
        for (frame, payload) in captured::ALL {
            let Outcome::Good(packet, _) = front.send(frame, false) else {
                panic!("{width:?}: {frame:02x?}");
            };
            assert_eq!(packet.payload.len(), payload);
            front.send_good(&padded(frame.to_vec()));
        }
        front.finish();
        assert_eq!(front.taken.len(), 2 * captured::ALL.len());
    }
}

#[test]
fn every_opcode_in_every_layout() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.1, 0.2);
        for &opcode in Opcode::ALL {
            for layout in Layout::ALL {
                let lengths: &[usize] = if opcode.has_payload() {
                    &[0, 1, 2, 3, 4, 5, 100]
                } else {
                    &[0]
                };
                for &len in lengths {
                    let frame = packet(front.rng(), opcode, layout, len);
                    front.send_good(&padded(frame));
                }
            }
        }
        front.finish();
    }
}

#[test]
fn the_ip_header_of_a_datagram_is_its_grh() {
    for width in Width::ALL {
        for pause in [0.0, 0.4] {
            let mut front = Front::new(width, port(), 0.1, pause);
            for layout in Layout::ALL {
                for len in (0..=70).chain([1024, 4096]) {
                    for opcode in [Opcode::UdSendOnly, Opcode::UdSendOnlyImm] {
                        let frame = packet(front.rng(), opcode, layout, len);
                        front.send_good(&padded(frame));
                    }
                }
                front.drain();
            }
            front.finish();
        }
    }
}

#[test]
fn the_original_value_of_an_atomic_is_payload() {
    for width in Width::ALL {
        for pause in [0.0, 0.4] {
            let mut front = Front::new(width, port(), 0.0, pause);
            for i in 0..400 {
                // Among packets of all shapes, and back to back.
                let layout = Layout::ALL[i / 2 % 4];
                let (opcode, len) = match i % 7 {
                    0 => (Opcode::UdSendOnly, i % 5),
                    1 => (Opcode::RcReadResponseOnly, i),
                    2 => (Opcode::RcAck, 0),
                    _ => (Opcode::RcAtomicAck, 0),
                };
                let frame = packet(front.rng(), opcode, layout, len);
                front.send_good(&frame);
            }
            front.finish();
        }
    }
}

#[test]
fn datagrams_at_full_rate_come_in_whole() {
    // More beats leave than come: the buffer takes it up.
    let mut front = Front::new(Width::W512, port(), 0.0, 0.0);
    for i in 0..300 {
        let len = if i % 3 == 0 { 60 } else { 124 };
        let frame = packet(front.rng(), Opcode::UdSendOnly, Layout::ALL[0], len);
        front.send_good(&frame);
    }
    front.finish();
}

#[test]
fn every_length() {
    let around = |mtu: usize| mtu - 5..(mtu + 2).min(4097);
    let mtus = [512, 1024, 2048, 4096].into_iter().flat_map(around);
    let lengths: Vec<usize> = (0..=300).chain(mtus).collect();
    let opcodes = [
        Opcode::RcSendMiddle,
        Opcode::RcWriteOnlyImm,
        Opcode::UdSendOnly,
        Opcode::RcReadResponseOnly,
    ];
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.05, 0.0);
        for &len in &lengths {
            for (i, layout) in Layout::ALL.into_iter().enumerate() {
                let frame = packet(front.rng(), opcodes[(len + i) % 4], layout, len);
                front.send_good(&frame);
            }
        }
        front.finish();
    }
}

#[test]
fn bytes_after_the_icrc_do_not_count() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        for more in 0..140 {
            for layout in [Layout::ALL[0], Layout::ALL[3]] {
                let mut frame = packet(front.rng(), Opcode::RcSendOnly, layout, more % 9);
                let padding: Vec<u8> = (0..more).map(|_| front.rng().u8(..)).collect();
                frame.extend(padding);
                front.send_good(&frame);
            }
        }
        let mut frame = packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[0], 77);
        frame.resize(16 << 10, 0x3c);
        front.send_good(&frame);
        front.finish();
    }
}

#[test]
fn a_flipped_bit_never_comes_out() {
    let cases = [
        (Layout::ALL[0], Opcode::RcAck, 0),
        (Layout::ALL[1], Opcode::RcWriteOnlyImm, 7),
        (Layout::ALL[2], Opcode::UdSendOnly, 33),
        (Layout::ALL[3], Opcode::RcFetchAdd, 0),
        (Layout::ALL[0], Opcode::RcSendOnly, 61),
    ];
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        for (layout, opcode, len) in cases {
            let frame = packet(front.rng(), opcode, layout, len);
            let ip = ip_start(&frame);
            let masks: &[u8] = if layout.ipv6 {
                &icrc::IPV6_MASK
            } else {
                &icrc::IPV4_MASK
            };
            for bit in 0..8 * frame.len() {
                let mut frame = frame.clone();
                frame[bit / 8] ^= 1 << (bit % 8);
                let outcome = front.send(&frame, false);
                let mask = bit
                    .checked_sub(8 * ip)
                    .map_or(0xff, |b| masks.get(b / 8).copied().unwrap_or(0));
                let covered = mask >> (bit % 8) & 1 == 0;
                assert!(
                    !covered || matches!(outcome, Outcome::Dropped(_)),
                    "bit {bit} is covered"
                );
            }
        }
        front.finish();
    }
}

#[test]
fn odd_frames_among_good_ones() {
    for width in Width::ALL {
        for (idle, pause) in [(0.0, 0.0), (0.3, 0.2)] {
            let mut front = Front::new(width, port(), idle, pause);
            let longest = if width == Width::W512 { 1500 } else { 300 };
            for i in 0..3000 {
                let frame = match front.rng().u8(..10) {
                    0..=4 => any_packet(front.rng(), longest),
                    5 => garbage(front.rng(), 200),
                    6 => frames::ARP.to_vec(),
                    _ => odd_packet(front.rng(), 300),
                };
                let bad = front.rng().u8(..16) == 0;
                front.send(&frame, bad);
                if i % 16 == 0 {
                    front.drain();
                }
            }
            for len in [1, 2, 13, 14, 17, 41, 42, 59, 60, 4096, 9000, 16 << 10] {
                let mut frame = vec![0; len];
                front.rng().fill(&mut frame);
                front.send(&frame, false);
                let good = any_packet(front.rng(), 64);
                front.send_good(&good);
            }
            front.finish();
            for counter in [
                "rx_bad_frames",
                "rx_icrc_errors",
                "rx_malformed",
                "rx_not_roce",
                "rx_wrong_address",
            ] {
                assert!(
                    front.monitor.count(counter) > 20,
                    "{counter} was hardly met"
                );
            }
        }
    }
}

#[test]
fn addresses() {
    for width in Width::ALL {
        let mut promiscuous = port();
        promiscuous.promiscuous = true;
        for port in [port(), promiscuous] {
            let mut front = Front::new(width, port, 0.0, 0.0);
            for layout in Layout::ALL {
                let frame = packet(front.rng(), Opcode::RcSendOnly, layout, 20);
                let with = |change: &dyn Fn(&mut Vec<u8>)| {
                    let mut frame = frame.clone();
                    change(&mut frame);
                    frame
                };
                front.send(&with(&|f| f[5] ^= 0x80), false);
                front.send_good(&with(&|f| f[..6].fill(0xff)));
                front.send_good(&with(&|f| f[0] |= 1));
                front.send_good(&frame);
            }
            front.finish();
        }
        let mut front = Front::new(width, port(), 0.0, 0.0);
        let address = Gid::from(std::net::Ipv4Addr::from(frames::IPV4));
        let frame = packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[0], 4);
        let fates = [
            // An IPv6 address with the bits of an IPv4 address is another address.
            (15, true, true, None),
            (15, true, false, Some(15)),
            // The lowest of equal entries answers.
            (7, true, false, Some(7)),
            (7, false, false, Some(15)),
            // There is no entry 31.
            (31, false, false, Some(15)),
            (31, true, true, Some(15)),
            (15, false, false, None),
        ];
        let alone = (0..GID_ENTRIES as u8).flat_map(|index| {
            let there = (index, true, false, Some(index));
            [there, (index, false, false, None)]
        });
        for (index, valid, ipv6, entry) in fates.into_iter().chain(alone) {
            front.write_gid(index, address, valid, ipv6);
            match front.send(&frame, false) {
                Outcome::Good(_, found) => assert_eq!(Some(found), entry),
                Outcome::Dropped(counter) => {
                    assert_eq!((counter, entry), ("rx_wrong_address", None))
                }
            }
            front.drain();
        }
        front.finish();
    }
}

#[test]
fn one_beat_packets_back_to_back() {
    let count = 4000;
    let mut front = Front::new(Width::W512, port(), 0.0, 0.0);
    for i in 0..count {
        let (opcode, len) = match i % 3 {
            0 => (Opcode::RcSendOnly, 1 + i % 4),
            1 => (Opcode::RcAck, 0),
            _ => (Opcode::UcSendMiddle, 4),
        };
        let frame = packet(front.rng(), opcode, Layout::ALL[0], len);
        assert!(frame.len() <= 64);
        front.send_good(&frame);
    }
    front.finish();
    assert!(
        front.taken.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "a packet a cycle"
    );
    assert_eq!(front.monitor.count("rx_overflow"), 0);
}

#[test]
fn latency() {
    let stated = [
        RxFront::<512, 64, 11, LOG_PACKETS>::LATENCY,
        RxFront::<64, 8, 14, LOG_PACKETS>::LATENCY,
    ];
    for (width, stated) in Width::ALL.into_iter().zip(stated) {
        assert!(stated <= 12, "the goal of the receive front");
        let mut front = Front::new(width, port(), 0.0, 0.0);
        for len in [0, 1, 64, 1024, 4096] {
            let frame = packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[2], len);
            front.send_good(&frame);
            front.drain();
        }
        front.finish();
        for (taken, end) in front.taken.iter().zip(&front.source.ends) {
            assert_eq!(taken - end, stated as u64);
        }
    }
}

#[test]
fn frames_that_start_while_disabled_are_not_seen() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        let long =
            |front: &mut Front| packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[0], 4000);
        // Disabled before it starts, enabled before it ends: not seen.
        front.set("enable", 0);
        let frame = long(&mut front);
        front.send_unseen(&frame);
        front.run(20);
        front.set("enable", 1);
        front.drain();
        assert_eq!(front.monitor.count("rx_frames"), 0);
        assert_eq!(front.monitor.count("rx_bytes"), 0);
        front.source.bytes = 0;
        // Enabled when it starts, disabled before it ends: taken.
        let frame = long(&mut front);
        front.send_good(&frame);
        front.run(20);
        front.set("enable", 0);
        front.drain();
        front.set("enable", 1);
        front.finish();
    }
}

#[test]
fn reset_forgets_everything() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        front.monitor.stalled = true;
        for _ in 0..10 {
            let frame = packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[0], 200);
            front.send_unseen(&frame);
        }
        front.drain();
        assert_eq!(front.monitor.count("rx_roce_packets"), 10);
        front.reset();
        front.monitor.counts.clear();
        front.source.bytes = 0;
        front.monitor.stalled = false;
        front.run(50);
        assert!(front.taken.is_empty(), "a packet outlived the reset");
        // The GID table is empty.
        front.set("enable", 1);
        let frame = packet(front.rng(), Opcode::RcAck, Layout::ALL[0], 0);
        front.send_unseen(&frame);
        front.drain();
        assert_eq!(front.monitor.count("rx_wrong_address"), 1);
        front.monitor.counts.clear();
        front.source.bytes = 0;
        front.configure();
        let frame = packet(front.rng(), Opcode::RcSendOnly, Layout::ALL[3], 200);
        front.send_good(&frame);
        front.finish();
    }
}

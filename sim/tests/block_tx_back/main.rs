//! The transmit back end as Verilog, against `ferroce_proto::wire`: frames byte for byte, order, drops, counters, rates.
mod packets;
mod rates;
mod setup;
mod watch;

use ferroce_proto::wire::Opcode;
use ferroce_sim::random::Pauses;

use packets::{LENGTHS, Packet, RESPONSES};
use setup::Setup;

fn uneven() -> Pauses {
    Pauses::new(0.2, 8)
}

/// Every opcode on every kind of path, with payload of every length that matters.
fn all_opcodes<const W: usize, const K: usize>() {
    let mut setup = Setup::<W, K>::new(Pauses::NONE, Pauses::NONE);
    for qpn in setup.queue_pairs() {
        for &opcode in Opcode::ALL {
            for len in [0, 1, 2, 3, 4, 63, 64, 255] {
                if len == 0 || opcode.has_payload() {
                    setup.send(Packet::new(qpn, opcode, len));
                }
            }
        }
    }
    setup.finish();
}

#[test]
fn frames_of_every_opcode() {
    all_opcodes::<512, 64>();
    all_opcodes::<64, 8>();
}

/// A header of every length that occurs before payload of every length up to 300 bytes and about the MTUs.
fn all_lengths<const W: usize, const K: usize>(lengths: &[usize]) {
    let mut setup = Setup::<W, K>::new(Pauses::NONE, Pauses::NONE);
    for qpn in setup.queue_pairs() {
        for opcode in [
            Opcode::RcSendMiddle,
            Opcode::RcSendOnlyImm,
            Opcode::RcWriteOnly,
            Opcode::UcWriteOnlyImm,
        ] {
            for &len in lengths {
                setup.send(Packet::new(qpn, opcode, len));
            }
        }
    }
    setup.finish();
}

#[test]
fn frames_of_every_length() {
    let all: Vec<usize> = (0..300).chain(LENGTHS.iter().copied()).collect();
    all_lengths::<512, 64>(&all);
    let some: Vec<usize> = (0..40).chain([255, 256, 257, 1024]).collect();
    all_lengths::<64, 8>(&some);
}

/// Both lanes, everything random; some payloads that could not be read.
fn random<const W: usize, const K: usize>(pauses: Pauses, ready: Pauses, packets: usize) {
    let mut setup = Setup::<W, K>::new(pauses, ready);
    let queue_pairs: Vec<u16> = setup.queue_pairs().collect();
    for _ in 0..packets {
        let rng = setup.rng();
        let opcode = if rng.bool() {
            RESPONSES[rng.usize(..RESPONSES.len())]
        } else {
            Opcode::ALL[rng.usize(..Opcode::ALL.len())]
        };
        let len = match rng.u8(..8) {
            _ if !opcode.has_payload() => 0,
            0 => LENGTHS[rng.usize(..LENGTHS.len())],
            1 => 0,
            _ => rng.usize(..=300),
        };
        let qpn = queue_pairs[rng.usize(..queue_pairs.len())];
        let mut packet = Packet::new(qpn, opcode, len);
        packet.unreadable = len > 0 && rng.u8(..10) == 0;
        setup.send(packet);
    }
    setup.finish();
}

#[test]
fn both_lanes_without_pause() {
    random::<512, 64>(Pauses::NONE, Pauses::NONE, 2000);
    random::<64, 8>(Pauses::NONE, Pauses::NONE, 300);
}

#[test]
fn both_lanes_whatever_waits() {
    random::<512, 64>(uneven(), uneven(), 2000);
    random::<64, 8>(uneven(), uneven(), 300);
}

#[test]
fn a_stalled_mac_loses_nothing() {
    random::<512, 64>(Pauses::NONE, Pauses::new(0.02, 400), 1000);
}

/// What finds no room for the report of its loss is not lost, and a response goes on.
#[test]
fn a_loss_waits_for_room_for_its_report() {
    fn losses<const W: usize, const K: usize>() {
        let mut setup = Setup::<W, K>::new(Pauses::NONE, Pauses::NONE);
        for psn in 0..20 {
            setup.send(Packet {
                psn,
                unreadable: true,
                ..Packet::new(0, Opcode::RcSendOnly, 64)
            });
            setup.send(Packet::new(1, Opcode::RcReadResponseOnly, 64));
        }
        while setup.watch.lost_of[0].len() < 5 {
            setup.run(1);
        }
        setup.hold_requests(true);
        setup.run(300);
        let lost = setup.watch.lost_of[0].len();
        assert!((5..=7).contains(&lost), "{lost}");
        setup.hold_requests(false);
        setup.send(Packet::new(0, Opcode::RcSendOnly, 64));
        setup.finish();
    }
    losses::<512, 64>();
    losses::<64, 8>();
}

#[test]
fn reset_forgets_what_was_under_way() {
    let mut setup = Setup::<512, 64>::new(Pauses::NONE, Pauses::NONE);
    for _ in 0..20 {
        setup.send(Packet::new(0, Opcode::RcSendMiddle, 4096));
    }
    setup.run(90);
    setup.restart();
    for len in [64, 0, 1000] {
        setup.send(Packet::new(3, Opcode::RcWriteOnly, len));
    }
    setup.finish();
}

/// The address vector may be another when the header is built. Such a packet is dropped, and all others are as they were.
#[test]
fn a_packet_aligned_for_another_path_leaves_no_trace() {
    fn packets<const W: usize, const K: usize>() {
        let mut setup = Setup::<W, K>::new(Pauses::NONE, Pauses::NONE);
        for qpn in setup.queue_pairs().take(8) {
            for aligned in 0..4 {
                for plen in [1, 8, 64, 300] {
                    for opcode in [
                        Opcode::RcSendOnly,
                        Opcode::UdSendOnly,
                        Opcode::RcReadResponseOnly,
                    ] {
                        setup.send(Packet {
                            aligned: Some(aligned),
                            ..Packet::new(qpn, opcode, plen)
                        });
                        setup.send(Packet::new(qpn ^ 1, opcode, plen + 3));
                    }
                }
            }
        }
        setup.finish();
    }
    packets::<512, 64>();
    packets::<64, 8>();
}

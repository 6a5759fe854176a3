//! More than the buffer holds: whole packets are lost, counted, and no others suffer.

use ferroce_proto::wire::Opcode;

use crate::bench::{BUFFER_BYTES, Front, LOG_PACKETS, Width};
use crate::frames::{Layout, any_packet, packet, port};

#[test]
fn a_full_buffer_drops_whole_packets() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        front.may_lose = true;
        front.monitor.stalled = true;
        // Sixteen of these and their headers are more than the buffer holds.
        let large = BUFFER_BYTES / 4096;
        for _ in 0..large + 4 {
            let frame = packet(front.rng(), Opcode::RcSendMiddle, Layout::ALL[0], 4096);
            front.send_good(&frame);
        }
        // What is small enough still fits behind them, and so does what needs no room.
        for opcode in [Opcode::RcSendOnly, Opcode::RcAck, Opcode::RcReadRequest] {
            let len = if opcode.has_payload() { 300 } else { 0 };
            let frame = packet(front.rng(), opcode, Layout::ALL[2], len);
            front.send_good(&frame);
        }
        front.drain();
        front.monitor.stalled = false;
        front.drain();
        let kept: Vec<usize> = (0..large - 1).chain(large + 4..large + 7).collect();
        assert_eq!(front.came_from, kept);
        // Afterwards there is room again.
        front.may_lose = false;
        for _ in 0..4 {
            let frame = packet(front.rng(), Opcode::RcSendMiddle, Layout::ALL[0], 4096);
            front.send_good(&frame);
        }
        front.drain();
        front.finish_with_overflow(5);
    }
}

#[test]
fn a_full_meta_queue_drops_whole_packets() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        front.may_lose = true;
        front.monitor.stalled = true;
        let sent = (1 << LOG_PACKETS) + 50;
        for i in 0..sent {
            let (opcode, len) = if i % 2 == 0 {
                (Opcode::RcAck, 0)
            } else {
                (Opcode::RcSendOnly, 5)
            };
            let frame = packet(front.rng(), opcode, Layout::ALL[0], len);
            front.send_good(&frame);
        }
        front.drain();
        front.monitor.stalled = false;
        front.drain();
        let kept = front.came_from.len();
        assert!(kept >= 1 << LOG_PACKETS, "{kept} kept");
        assert!(
            front.came_from.iter().copied().eq(0..kept),
            "the oldest are kept"
        );
        front.finish_with_overflow((sent - kept) as u64);
    }
}

#[test]
fn a_full_queue_of_datagrams_drops_whole_packets() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        front.may_lose = true;
        front.monitor.stalled = true;
        let sent = (1 << LOG_PACKETS) + 50;
        for i in 0..sent {
            let (opcode, len) = match i % 3 {
                0 => (Opcode::RcAtomicAck, 0),
                1 => (Opcode::UdSendOnly, 0),
                _ => (Opcode::UdSendOnly, 9),
            };
            let frame = packet(front.rng(), opcode, Layout::ALL[i % 4], len);
            front.send_good(&frame);
        }
        front.drain();
        front.monitor.stalled = false;
        front.drain();
        let kept = front.came_from.len();
        assert!(kept >= 1 << LOG_PACKETS, "{kept} kept");
        assert!(
            front.came_from.iter().copied().eq(0..kept),
            "the oldest are kept"
        );
        front.finish_with_overflow((sent - kept) as u64);
    }
}

#[test]
fn overload_at_random() {
    for width in Width::ALL {
        let mut front = Front::new(width, port(), 0.0, 0.0);
        front.may_lose = true;
        let mut sent = 0;
        for round in 0..12 {
            front.monitor.stalled = round % 2 == 0;
            for _ in 0..60 {
                let longest = if front.rng().bool() { 4096 } else { 64 };
                let frame = any_packet(front.rng(), longest);
                front.send_good(&frame);
                sent += 1;
            }
            let cycles = front.rng().u64(..3000) * 64 / width.lanes() as u64;
            front.run(cycles);
        }
        front.drain();
        front.monitor.stalled = false;
        front.drain();
        let lost = sent - front.taken.len() as u64;
        assert!(lost > 0, "there was room for all");
        front.finish_with_overflow(lost);
    }
}

//! `gather`: payload packed byte by byte, announced when complete, at full rate.

use ferroce_hdl::memory::gather::Gather;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::Dut;

use super::common::{byte_at, bytes, uneven};
use super::reader::{Reader, UNMAPPED};

/// A packet's payload in host memory.
struct Packet {
    lane: usize,
    pieces: Vec<(u64, usize)>,
    /// No longer wanted.
    forgotten: bool,
}

impl Packet {
    fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.1).sum()
    }

    fn beats(&self, lanes: usize) -> usize {
        (self.lane + self.len()).div_ceil(lanes)
    }

    fn fails(&self) -> bool {
        self.pieces.iter().any(|p| p.0 >= UNMAPPED)
    }
}

/// The agents of a lane, and what is to come out of it.
struct Lane {
    reader: Reader,
    command: StreamSource,
    wanted: StreamSource,
    packet: StreamSink,
    payload: StreamSink,
    packets: Vec<Packet>,
}

impl Lane {
    fn new(dut: &Dut, number: usize, lanes: usize, latency: u64, pauses: Pauses) -> Self {
        let name = |port: &str| format!("{port}_{number}");
        let payload = StreamSink::with_ports(
            dut,
            &name("payload"),
            &["data", "last"],
            ["valid", "ready"],
            pauses,
        );
        Self {
            reader: Reader::new(dut, number, lanes, latency, pauses),
            command: StreamSource::new(dut, &name("command"), pauses).unwrap(),
            wanted: StreamSource::new(dut, &name("wanted"), pauses).unwrap(),
            packet: StreamSink::new(dut, &name("packet"), pauses).unwrap(),
            payload: payload.unwrap(),
            packets: vec![],
        }
    }
}

/// Two lanes, of which one is spoken of: lane 0 at first.
struct Setup {
    bench: Bench,
    lane: Lane,
    other: Lane,
    lanes: usize,
}

impl Setup {
    fn new<const W: usize, const K: usize, const A: usize>(latency: u64, pauses: Pauses) -> Self {
        let bench = Bench::of(Gather::<W, K, A, 7>::default).unwrap();
        let lane = |number| Lane::new(bench.dut(), number, K, latency, pauses);
        let mut setup = Self {
            lane: lane(0),
            other: lane(1),
            lanes: K,
            bench,
        };
        setup.with(|bench, agents| bench.reset(agents));
        setup
    }

    /// The other lane is the one to speak of.
    fn change(&mut self) {
        std::mem::swap(&mut self.lane, &mut self.other);
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let mut agents: Vec<&mut dyn Agent> = vec![];
        for lane in [&mut self.lane, &mut self.other] {
            let Lane {
                reader,
                command,
                wanted,
                packet,
                payload,
                ..
            } = lane;
            agents.extend([reader as &mut dyn Agent, command, wanted, packet, payload]);
        }
        act(&mut self.bench, &mut agents)
    }

    fn send(&mut self, packet: Packet) {
        let Self { bench, lane, .. } = self;
        let last = packet.pieces.len() - 1;
        for (i, &(addr, len)) in packet.pieces.iter().enumerate() {
            let item = lane
                .command
                .item()
                .with("addr", addr)
                .with("len", len as u64);
            let item = item
                .with("first", u64::from(i == 0))
                .with("last", u64::from(i == last));
            // The lane of later pieces is not looked at.
            let at = if i == 0 {
                packet.lane
            } else {
                bench.rng().usize(..64)
            };
            lane.command.push(item.with("lane", at as u64));
        }
        let wanted = lane.wanted.item();
        lane.wanted
            .push(wanted.with("payload", (!packet.forgotten).into()));
        if !packet.forgotten {
            lane.packets.push(packet);
        }
    }

    /// Runs until all packets are out; the cycles of their tokens and of their first and last beats.
    fn finish(&mut self, limit: u64) -> Vec<(u64, u64, u64)> {
        let lanes = self.lanes;
        let left = |lane: &Lane| {
            let beats: usize = lane.packets.iter().map(|p| p.beats(lanes)).sum();
            beats - lane.payload.count() as usize
        };
        for _ in 0..limit {
            if left(&self.lane) + left(&self.other) == 0 {
                break;
            }
            self.with(|bench, agents| bench.step(agents)).unwrap();
        }
        self.with(|bench, agents| bench.run(agents, 50)).unwrap();
        self.change();
        self.settle();
        self.change();
        self.settle()
    }

    /// Looks at the packets of a lane.
    fn settle(&mut self) -> Vec<(u64, u64, u64)> {
        let packets = std::mem::take(&mut self.lane.packets);
        let cycles = packets.iter().map(|packet| self.check(packet)).collect();
        assert!(self.lane.payload.pop().is_none() && self.lane.packet.pop().is_none());
        cycles
    }

    fn check(&mut self, packet: &Packet) -> (u64, u64, u64) {
        let (announced, token) = self.lane.packet.pop().expect("a token a packet");
        assert_eq!(
            token.get("error") != 0,
            packet.fails(),
            "{:x?}",
            packet.pieces
        );
        let beats = packet.beats(self.lanes);
        let mut found = vec![];
        let mut cycles = vec![];
        for beat in 1..=beats {
            let (cycle, item) = self.lane.payload.pop().expect("within the limit");
            cycles.push(cycle);
            assert_eq!(
                item.get("last") != 0,
                beat == beats,
                "beat {beat} of {beats}"
            );
            found.extend(bytes(&item.words("data")));
        }
        let wanted: Vec<_> = packet
            .pieces
            .iter()
            .flat_map(|&(addr, len)| addr..addr + len as u64)
            .map(byte_at)
            .collect();
        if !packet.fails() {
            assert!(
                found[packet.lane..][..wanted.len()] == wanted,
                "lane {} of {:x?}",
                packet.lane,
                packet.pieces
            );
        }
        (announced, cycles[0], cycles[beats - 1])
    }

    fn random(&mut self, longest: usize, most_pieces: usize) -> Packet {
        let lanes = self.lanes;
        let rng = self.bench.rng();
        let mut left = match rng.u8(..4) {
            0 => longest,
            1 => rng.usize(1..=2 * lanes),
            _ => rng.usize(1..=longest),
        };
        let mut pieces = vec![];
        while left > 0 {
            let len = match rng.u8(..3) {
                _ if pieces.len() + 1 == most_pieces => left,
                0 => rng.usize(1..=left),
                1 => left.min(rng.usize(1..=lanes)),
                _ => left,
            };
            let unmapped = if rng.u8(..64) == 0 { UNMAPPED } else { 0 };
            pieces.push((unmapped | rng.u64(..1 << 40), len));
            left -= len;
        }
        Packet {
            lane: rng.usize(..lanes),
            pieces,
            forgotten: false,
        }
    }
}

fn random<const W: usize, const K: usize, const A: usize>(
    latency: u64,
    pauses: Pauses,
    packets: usize,
) {
    let mut setup = Setup::new::<W, K, A>(latency, pauses);
    for _ in 0..packets {
        let packet = setup.random(4096, 16);
        setup.send(packet);
    }
    setup.finish(400_000);
}

#[test]
fn pieces_are_packed() {
    random::<512, 64, 9>(1, Pauses::NONE, 300);
    random::<64, 8, 11>(1, Pauses::NONE, 100);
}

#[test]
fn lanes_share_the_rotator() {
    for pauses in [Pauses::NONE, uneven()] {
        let mut setup = Setup::new::<512, 64, 9>(20, pauses);
        setup.lane.reader.take_turns(false);
        setup.other.reader.take_turns(true);
        for _ in 0..300 {
            let packet = setup.random(4096, 4);
            setup.send(packet);
            setup.change();
        }
        setup.finish(400_000);
    }
}

#[test]
fn pieces_are_packed_whatever_waits() {
    random::<512, 64, 9>(100, uneven(), 300);
    random::<64, 8, 11>(300, uneven(), 100);
}

#[test]
fn what_is_not_wanted_is_forgotten() {
    for pauses in [Pauses::NONE, uneven()] {
        let mut setup = Setup::new::<512, 64, 7>(100, pauses);
        for number in 0..400 {
            let mut packet = setup.random(4096, 4);
            // never the last one, for whose end `finish` waits
            packet.forgotten = number < 399 && setup.bench.rng().bool();
            setup.send(packet);
        }
        setup.finish(400_000);
    }
}

#[test]
fn a_packet_is_forgotten_in_a_cycle() {
    let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
    for number in 0..12 {
        setup.send(Packet {
            lane: 0,
            pieces: vec![(0x1_0000 * number, 4096)],
            forgotten: (1..11).contains(&number),
        });
    }
    // All of them are there before the first one is taken.
    let Setup { bench, lane, .. } = &mut setup;
    let Lane {
        reader,
        command,
        wanted,
        ..
    } = lane;
    bench.run(&mut [reader, command, wanted], 1_000).unwrap();
    let cycles = setup.finish(1_000);
    assert!(cycles[1].1 - cycles[0].2 <= 12, "{cycles:?}");
}

#[test]
fn a_small_store_waits_for_room() {
    // 256 beats: hardly more than three packets.
    random::<512, 64, 7>(200, uneven(), 200);
}

#[test]
fn a_stalled_assembler_loses_nothing() {
    let mut setup = Setup::new::<512, 64, 9>(250, Pauses::NONE);
    for _ in 0..60 {
        let packet = setup.random(4096, 4);
        setup.send(packet);
    }
    // Nothing is taken for a long time: reads stop when the store is full.
    let Setup { bench, lane, .. } = &mut setup;
    let Lane {
        reader,
        command,
        wanted,
        ..
    } = lane;
    bench.run(&mut [reader, command, wanted], 5_000).unwrap();
    setup.finish(10_000);
}

#[test]
fn a_beat_a_cycle_without_pause() {
    for (lane, offset) in [(0, 0), (10, 0), (0, 1), (54, 33), (30, 33), (63, 63)] {
        let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
        for n in 0..40 {
            setup.send(Packet {
                lane,
                pieces: vec![(0x1_0000 * n + offset, 4096)],
                forgotten: false,
            });
        }
        let cycles = setup.finish(4_000);
        let beats = Packet {
            lane,
            pieces: vec![(0, 4096)],
            forgotten: false,
        }
        .beats(64) as u64;
        for (announced, first, last) in &cycles {
            assert_eq!(last - first + 1, beats, "a packet comes in one go");
            assert_eq!(first - announced, 2);
        }
        let took = cycles[39].2 - cycles[0].2;
        let memory = 64 + u64::from(offset > 0);
        assert_eq!(took, 39 * beats.max(memory), "lane {lane}, offset {offset}");
    }
}

#[test]
fn small_packets_one_a_cycle() {
    for (lane, offset, every) in [(0, 0, 1), (10, 0, 2), (0, 5, 2), (58, 60, 2)] {
        let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
        for n in 0..300 {
            setup.send(Packet {
                lane,
                pieces: vec![(0x1_0000 * n + offset, 64)],
                forgotten: false,
            });
        }
        let cycles = setup.finish(2_000);
        assert_eq!(
            cycles[299].2 - cycles[0].2,
            299 * every,
            "lane {lane}, offset {offset}"
        );
    }
}

#[test]
fn reads_under_way_hide_a_microsecond() {
    let mut setup = Setup::new::<512, 64, 9>(250, Pauses::NONE);
    for n in 0..600 {
        setup.send(Packet {
            lane: 6,
            pieces: vec![(0x1_0000 * n, 64)],
            forgotten: false,
        });
    }
    let cycles = setup.finish(10_000);
    let each = (cycles[599].2 - cycles[300].2) as f64 / 299.0;
    assert!(each < 2.2, "a packet of 64 bytes in {each} cycles");
}

#[test]
fn latency() {
    let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
    setup.send(Packet {
        lane: 0,
        pieces: vec![(0x1000, 4096)],
        forgotten: false,
    });
    let start = setup.bench.cycle();
    let cycles = setup.finish(200);
    assert_eq!(setup.lane.reader.first_request, Some(start + 1));
    assert_eq!(cycles[0].0 - setup.lane.reader.last_beat, 2);
    assert_eq!(cycles[0].1 - setup.lane.reader.last_beat, 4);
}

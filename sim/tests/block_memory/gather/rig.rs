//! `gather` between its readers and the assembler.

use ferroce_hdl::memory::gather::Gather;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::Dut;

use super::super::common::{byte_at, bytes};
use super::super::reader::{Reader, UNMAPPED};
use super::ahead::Commands;

/// A packet's payload in host memory.
pub(super) struct Packet {
    pub(super) lane: usize,
    pub(super) pieces: Vec<(u64, usize)>,
    /// No longer wanted.
    pub(super) forgotten: bool,
}

impl Packet {
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.1).sum()
    }

    pub(super) fn beats(&self, lanes: usize) -> usize {
        (self.lane + self.len()).div_ceil(lanes)
    }

    pub(super) fn fails(&self) -> bool {
        self.pieces.iter().any(|p| p.0 >= UNMAPPED)
    }
}

/// The agents of a lane, and what is to come out of it.
pub(super) struct Lane {
    pub(super) reader: Reader,
    pub(super) command: Commands,
    pub(super) wanted: StreamSource,
    pub(super) packet: StreamSink,
    pub(super) payload: StreamSink,
    pub(super) packets: Vec<Packet>,
}

impl Lane {
    pub(super) fn new(
        dut: &Dut,
        number: usize,
        lanes: usize,
        latency: u64,
        pauses: Pauses,
    ) -> Self {
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
            command: Commands::new(dut, number, pauses),
            wanted: StreamSource::new(dut, &name("wanted"), pauses).unwrap(),
            packet: StreamSink::new(dut, &name("packet"), pauses).unwrap(),
            payload: payload.unwrap(),
            packets: vec![],
        }
    }
}

/// Two lanes, of which one is spoken of: lane 0 at first.
pub(super) struct Setup {
    pub(super) bench: Bench,
    pub(super) lane: Lane,
    pub(super) other: Lane,
    pub(super) lanes: usize,
}

impl Setup {
    pub(super) fn new<const W: usize, const K: usize, const A: usize>(
        latency: u64,
        pauses: Pauses,
    ) -> Self {
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
    pub(super) fn change(&mut self) {
        std::mem::swap(&mut self.lane, &mut self.other);
    }

    pub(super) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R,
    ) -> R {
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

    pub(super) fn send(&mut self, packet: Packet) {
        let Self { bench, lane, .. } = self;
        let last = packet.pieces.len() - 1;
        for (i, &(addr, len)) in packet.pieces.iter().enumerate() {
            let item = lane
                .command
                .source
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
    pub(super) fn finish(&mut self, limit: u64) -> Vec<(u64, u64, u64)> {
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
    pub(super) fn settle(&mut self) -> Vec<(u64, u64, u64)> {
        let packets = std::mem::take(&mut self.lane.packets);
        let cycles = packets.iter().map(|packet| self.check(packet)).collect();
        assert!(self.lane.payload.pop().is_none() && self.lane.packet.pop().is_none());
        cycles
    }

    pub(super) fn check(&mut self, packet: &Packet) -> (u64, u64, u64) {
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

    pub(super) fn random(&mut self, longest: usize, most_pieces: usize) -> Packet {
        let lanes = self.lanes;
        let most_pieces = if self.lane.command.ahead.is_some() {
            1
        } else {
            most_pieces
        };
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

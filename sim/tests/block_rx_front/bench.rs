//! The receive front in Verilog between a source of frames and monitors of everything that comes out.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::eth::gid_table::GID_ENTRIES;
use ferroce_hdl::eth::rx_front::RxFront;
use ferroce_proto::abi::classes::{BUFFER_PACKETS, BUFFER_UNITS};
use ferroce_proto::wire::{Gid, Headers};
use ferroce_sim::bench::classes::write_classes;
use ferroce_sim::bench::{Bench, StreamSink};
use ferroce_sim::model::classes::Tables;
use ferroce_sim::random::{Chance, Pauses};
use ferroce_sim::verilator::Input;

use crate::expected::{Expected, Run};
use crate::filter::{Outcome, Port};
use crate::ports::{COUNTERS, Monitor, Source};

/// Log2 of the packets the buffer under test holds.
pub(crate) const LOG_PACKETS: usize = BUFFER_PACKETS.ilog2() as usize;
/// Payload bytes its beats hold.
pub(crate) const BUFFER_BYTES: usize = 64 * BUFFER_UNITS;

/// A width of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    W512,
    W64,
}

impl Width {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::W512, Self::W64];

    /// Bytes of a beat.
    pub(crate) fn lanes(self) -> usize {
        match self {
            Self::W512 => 64,
            Self::W64 => 8,
        }
    }

    fn bench(self) -> Bench {
        match self {
            Self::W512 => Bench::of(RxFront::<512, 64, 11, LOG_PACKETS>::default),
            Self::W64 => Bench::of(RxFront::<64, 8, 14, LOG_PACKETS>::default),
        }
        .unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The receive front and what is around it. Every frame sent is judged, and every packet that comes out compared.
pub(crate) struct Front {
    pub(crate) width: Width,
    bench: Bench,
    pub(crate) source: Source,
    pub(crate) monitor: Monitor,
    meta: StreamSink,
    meta_ready: Input,
    port: Port,
    pub(crate) tables: Tables,
    expected: VecDeque<Expected>,
    // Packets whose payload is not there yet.
    unpaid: VecDeque<Expected>,
    /// Packets may be missing among those that come out.
    pub(crate) may_lose: bool,
    dropped: BTreeMap<&'static str, u64>,
    frames: u64,
    /// Cycle in which each packet was taken.
    pub(crate) taken: Vec<u64>,
    /// Number of the frame of each packet.
    pub(crate) came_from: Vec<usize>,
}

impl Front {
    /// A front for `port`, after reset; `idle` and `pause`: chances of a cycle without beat in, and out.
    pub(crate) fn new(width: Width, port: Port, idle: f64, pause: f64) -> Self {
        let mut bench = width.bench();
        let tables = write_classes(&mut bench);
        let dut = bench.dut();
        let mut front = Self {
            width,
            source: Source::new(dut, width.lanes(), Chance::new(idle)),
            monitor: Monitor::new(dut, Chance::new(pause)),
            meta: StreamSink::new(dut, "meta", Pauses::new(pause, 3)).expect("a stream"),
            meta_ready: dut.input("meta_ready").expect("a port"),
            bench,
            port,
            tables,
            expected: VecDeque::new(),
            unpaid: VecDeque::new(),
            may_lose: false,
            dropped: BTreeMap::new(),
            frames: 0,
            taken: Vec::new(),
            came_from: Vec::new(),
        };
        for field in ["sends", "xoff", "xon", "lossy", "storm"] {
            front.set(&format!("classes.{field}"), 0);
        }
        front.reset();
        front.configure();
        front
    }

    /// The generator of the run.
    pub(crate) fn rng(&mut self) -> &mut Rng {
        self.bench.rng()
    }

    /// Drives an input of up to 64 bits.
    pub(crate) fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("a port");
        self.bench.dut_mut().set(input, value);
    }

    /// An output of up to 64 bits.
    pub(crate) fn get(&self, name: &str) -> u64 {
        let output = self.bench.dut().output(name).expect("a port");
        self.bench.dut().get(output)
    }

    /// Class of a packet.
    pub(crate) fn class_of(&self, headers: &Headers) -> u8 {
        let pcp = headers.eth.vlan.map(|tag| (tag >> 13) as u8);
        let priority = self.tables.priority(headers.ip.traffic_class(), pcp);
        self.tables.class(priority)
    }

    /// While nothing is taken: beats and packets that the buffer holds, by class. The first beat stands at the output.
    pub(crate) fn held(&self) -> [(u64, u64); 4] {
        let lanes = self.width.lanes();
        let mut held = [(0, 0); 4];
        let waiting = self.unpaid.iter().chain(&self.expected);
        let mut gone = self.monitor.beats.len() + 1;
        for (i, expected) in waiting.enumerate() {
            let (beats, packets) = &mut held[usize::from(self.class_of(&expected.packet.headers))];
            let runs = expected.runs(lanes);
            let all: usize = runs.iter().map(|run| run.beats).sum();
            // a GRH and the original value of an atomic take none
            let is_atomic = expected.packet.headers.ext.atomic_ack.is_some();
            let counted = if is_atomic {
                0
            } else {
                runs[runs.len() - 1].beats
            };
            let left = all - gone.min(all);
            gone -= gone.min(all);
            *beats += left.min(counted) as u64;
            let meta_is_taken = i < self.unpaid.len();
            *packets += u64::from(if all == 0 { !meta_is_taken } else { left > 0 });
        }
        held
    }

    /// Resets the front and everything around it; what was on its way is forgotten.
    pub(crate) fn reset(&mut self) {
        self.set("gid_write", 0);
        self.set("enable", 0);
        self.set("rx_backlog", 0);
        let Self {
            bench,
            source,
            monitor,
            meta,
            ..
        } = self;
        bench.reset(&mut [source, monitor, meta]);
    }

    /// Writes the configuration of the port.
    pub(crate) fn configure(&mut self) {
        let mut mac = [0; 8];
        mac[..6].copy_from_slice(&self.port.mac.0);
        self.set("mac", u64::from_le_bytes(mac));
        self.set("promiscuous", u64::from(self.port.promiscuous));
        for (index, (gid, ipv6)) in self.port.gids.clone() {
            self.write_gid(index, gid, true, ipv6);
        }
        self.set("enable", 1);
    }

    /// Writes an entry of the GID table, here and there.
    pub(crate) fn write_gid(&mut self, index: u8, gid: Gid, valid: bool, ipv6: bool) {
        self.port.gids.remove(&index);
        if valid && usize::from(index) < GID_ENTRIES {
            self.port.gids.insert(index, (gid, ipv6));
        }
        let entry = self.bench.dut().input("gid.gid").expect("a field");
        let words: Vec<u32> = gid
            .0
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes")))
            .collect();
        self.bench.dut_mut().write(entry, &words);
        self.set("gid.index", index.into());
        self.set("gid.valid", valid.into());
        self.set("gid.ipv6", ipv6.into());
        self.set("gid_write", 1);
        self.run(1);
        self.set("gid_write", 0);
    }

    /// Queues a frame that goes unseen.
    pub(crate) fn send_unseen(&mut self, frame: &[u8]) {
        self.source.queue.push_back((frame.to_vec(), false));
    }

    /// Queues a frame and gives what must become of it.
    pub(crate) fn send(&mut self, frame: &[u8], bad: bool) -> Outcome {
        let outcome = self.port.filter(frame, bad);
        self.source.queue.push_back((frame.to_vec(), bad));
        match outcome.clone() {
            Outcome::Good(packet, gid_index) => self.expected.push_back(Expected {
                number: self.frames as usize,
                frame: frame.to_vec(),
                packet,
                gid_index,
            }),
            Outcome::Dropped(counter) => *self.dropped.entry(counter).or_default() += 1,
        }
        self.frames += 1;
        outcome
    }

    /// Queues a packet that must come out.
    pub(crate) fn send_good(&mut self, frame: &[u8]) {
        let outcome = self.send(frame, false);
        assert!(
            matches!(outcome, Outcome::Good(..)),
            "{outcome:?}: {frame:02x?}"
        );
    }

    /// Runs for some cycles.
    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            let Self {
                bench,
                source,
                monitor,
                meta,
                meta_ready,
                ..
            } = self;
            let step = if monitor.stalled {
                bench.dut_mut().set(*meta_ready, 0);
                bench.step(&mut [source, monitor])
            } else {
                bench.step(&mut [source, monitor, meta])
            };
            step.unwrap_or_else(|failure| panic!("{failure}"));
            self.collect();
        }
    }

    /// Sends everything queued, and runs until nothing can be on its way.
    pub(crate) fn drain(&mut self) {
        let queued = |front: &Self| front.source.queue.len();
        while queued(self) > 0 {
            self.run(1);
        }
        let mut quiet = 0;
        while quiet < 40 {
            let before = (self.taken.len(), self.monitor.beats.len());
            self.run(1);
            quiet = if before == (self.taken.len(), self.monitor.beats.len()) {
                quiet + 1
            } else {
                0
            };
        }
    }

    /// [`Front::drain`]; then all that was sent must be accounted for, and nothing lost for lack of room.
    pub(crate) fn finish(&mut self) {
        self.drain();
        assert!(
            self.expected.is_empty(),
            "{} packets did not come out",
            self.expected.len()
        );
        self.finish_with_overflow(0);
    }

    /// The counters must tell what became of each frame, `overflow` of them lost for lack of room.
    pub(crate) fn finish_with_overflow(&mut self, overflow: u64) {
        assert!(self.monitor.beats.is_empty(), "payload without packet");
        assert!(self.unpaid.is_empty(), "packet without payload");
        let mut counts = self.dropped.clone();
        counts.insert("rx_frames", self.frames);
        counts.insert("rx_overflow", overflow);
        counts.insert("rx_roce_packets", self.taken.len() as u64);
        for name in COUNTERS {
            let expected = counts.get(name).copied().unwrap_or(0);
            assert_eq!(self.monitor.count(name), expected, "{name}");
        }
        let not_roce = counts.get("rx_not_roce").copied().unwrap_or(0);
        assert_eq!(self.monitor.count("exception"), not_roce, "exception");
        assert_eq!(
            self.monitor.count("rx_bytes"),
            self.source.bytes,
            "rx_bytes"
        );
    }

    /// Compares what was taken: each packet at once, its payload when it is there.
    fn collect(&mut self) {
        while let Some((cycle, item)) = self.meta.pop() {
            self.taken.push(cycle);
            loop {
                let expected = self.expected.pop_front();
                let expected = expected.unwrap_or_else(|| panic!("nobody sent {item:?}"));
                let class = self.class_of(&expected.packet.headers);
                let difference = expected.differs(&item, self.width.lanes(), class);
                match difference {
                    None => {
                        self.came_from.push(expected.number);
                        self.unpaid.push_back(expected);
                        break;
                    }
                    Some(_) if self.may_lose => continue,
                    Some(what) => panic!("{what}\n{item:?}\n{:?}", expected.packet),
                }
            }
        }
        while let Some(expected) = self.unpaid.front() {
            let runs = expected.runs(self.width.lanes());
            if self.monitor.beats.len() < runs.iter().map(|run| run.beats).sum() {
                break;
            }
            for Run { lane, beats, bytes } in runs {
                let taken: Vec<(Vec<u8>, bool)> = self.monitor.beats.drain(..beats).collect();
                for (i, (_, last)) in taken.iter().enumerate() {
                    assert_eq!(*last, i + 1 == beats, "`last` of beat {i} of {beats}");
                }
                let found: Vec<u8> = taken.into_iter().flat_map(|(bytes, _)| bytes).collect();
                let found = found.get(lane..lane + bytes.len()).unwrap_or_default();
                assert_eq!(found, bytes, "bytes for the host");
            }
            self.unpaid.pop_front();
        }
    }
}

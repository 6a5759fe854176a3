//! The queue in Verilog between received beats, host memory and the wire.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use fastrand::Rng;
use ferroce_hdl::eth::exceptions::Exceptions;
use ferroce_proto::abi::exception::{Config, HEAD_BYTES, Head};
use ferroce_sim::bench::classes::write_classes;
use ferroce_sim::bench::{AxisSink, AxisSource, Bench, Frame};
use ferroce_sim::model::classes::Tables;
use ferroce_sim::random::{self, Chance};
use ferroce_sim::verilator::Output;

use crate::host::{BASE, Memory, Raw, Reader, Writer};
use crate::pulses::Pulses;
use crate::room::Room;

/// First byte of the frames of the transport, which tells them from those of the host.
pub(crate) const TRANSPORT: u8 = 0xaa;
/// Their marks.
const TRANSPORT_MARK: u64 = 0x16;

/// The queue and what is around it.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) memory: Memory,
    pub(crate) raw: Raw,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) transport: AxisSource,
    wire: AxisSink,
    pub(crate) host_room: Room,
    pulses: Pulses,
    tables: Tables,
    outputs: [Output; 2],
    beat_bytes: usize,
    pub(crate) config: Config,
    /// Index of the next slot to look at, and the one last written to the card.
    pub(crate) polled: u16,
    pub(crate) producer: u16,
    /// Frames for the host that must come, in order; some may be missing if `may_drop`.
    pub(crate) expected: VecDeque<Vec<u8>>,
    pub(crate) may_drop: bool,
    pub(crate) missing: u64,
    pub(crate) to_send: VecDeque<Vec<u8>>,
    pub(crate) from_transport: VecDeque<Vec<u8>>,
    /// Pulses seen.
    pub(crate) events: u64,
    pub(crate) stored: u64,
    pub(crate) dropped: u64,
    pub(crate) refused: u64,
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    /// Frames of the host that the wire has seen, and their bytes.
    pub(crate) seen: u64,
    pub(crate) seen_bytes: u64,
}

impl Rig {
    pub(crate) fn new<const W: usize, const K: usize, const A: usize>(
        idle: f64,
        pause: f64,
    ) -> Self {
        let bench =
            Bench::of(Exceptions::<W, K, A>::default).unwrap_or_else(|error| panic!("{error}"));
        let dut = bench.dut();
        let memory: Memory = Rc::new(RefCell::new(vec![0x5a; 16 << 20]));
        let pauses = random::Pauses::new(pause, 3);
        let names = [
            "notify",
            "stored",
            "dropped",
            "refused",
            "sent",
            "sent_bytes",
        ];
        let output = |name: &str| dut.output(name).expect("a port");
        let mut rig = Self {
            raw: Raw::new(dut, Chance::new(idle)),
            writer: Writer::new(dut, memory.clone(), Chance::new(pause)),
            reader: Reader::new(dut, memory.clone(), Chance::new(pause)),
            transport: AxisSource::new(dut, "s_axis", random::Pauses::new(idle, 3))
                .expect("a port"),
            wire: AxisSink::new(dut, "m_axis", pauses).expect("a port"),
            host_room: Room::new(dut),
            pulses: Pulses {
                outputs: names.map(output),
                other: dut.input("other").expect("a port"),
                is_other: false,
                counts: [0; 6],
                wire: ["m_axis_tvalid", "m_axis_tlast", "mark"].map(output),
                marks: BTreeMap::new(),
            },
            tables: Tables::default(),
            outputs: ["consumer", "busy"].map(output),
            beat_bytes: K,
            bench,
            memory,
            config: Config::default(),
            polled: 0,
            producer: 0,
            expected: VecDeque::new(),
            may_drop: false,
            missing: 0,
            to_send: VecDeque::new(),
            from_transport: VecDeque::new(),
            events: 0,
            stored: 0,
            dropped: 0,
            refused: 0,
            sent: 0,
            sent_bytes: 0,
            seen: 0,
            seen_bytes: 0,
        };
        for name in [
            "log_slots",
            "large",
            "on",
            "rx_consumer",
            "arm",
            "tx_producer",
        ] {
            rig.set(&format!("setup.{name}"), 0);
        }
        rig.set("setup.base", BASE);
        rig.set("enable", 1);
        rig.set("s_mark", TRANSPORT_MARK);
        rig.tables = write_classes(&mut rig.bench);
        let Rig {
            bench,
            raw,
            writer,
            reader,
            transport,
            wire,
            host_room,
            ..
        } = &mut rig;
        bench.reset(&mut [raw, writer, reader, transport, wire, host_room]);
        rig
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        self.bench.rng()
    }

    pub(crate) fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("a port");
        self.bench.dut_mut().set(input, value);
    }

    pub(crate) fn get(&self, name: usize) -> u64 {
        self.bench.dut().get(self.outputs[name])
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.get(1) != 0
    }

    /// Turns the queue on.
    pub(crate) fn on(&mut self, log_slots: u8, large: bool) {
        assert!(!self.is_busy(), "it is off");
        self.config = Config {
            log_slots,
            large,
            on: true,
        };
        let slots = (2 * self.config.slot_bytes()) << log_slots;
        self.memory.borrow_mut()[..slots].fill(0);
        (self.polled, self.producer) = (0, 0);
        self.set("setup.log_slots", log_slots.into());
        self.set("setup.large", large.into());
        self.set("setup.rx_consumer", 0);
        self.set("setup.tx_producer", 0);
        self.set("setup.on", 1);
    }

    /// Turns it off and waits until the card is done.
    pub(crate) fn off(&mut self) {
        self.set("setup.on", 0);
        self.set("setup.rx_consumer", 0);
        self.set("setup.tx_producer", 0);
        self.run(2);
        for _ in 0..20_000 {
            if !self.is_busy() {
                return;
            }
            self.run(1);
        }
        panic!("the queue stays busy");
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            let Rig {
                bench,
                raw,
                writer,
                reader,
                transport,
                wire,
                pulses,
                host_room,
                ..
            } = self;
            bench
                .step(&mut [raw, writer, reader, transport, wire, pulses, host_room])
                .unwrap_or_else(|failure| panic!("{failure}"));
            [
                self.events,
                self.stored,
                self.dropped,
                self.refused,
                self.sent,
                self.sent_bytes,
            ] = self.pulses.counts;
            while let Some((cycle, frame)) = self.wire.pop() {
                let mark = if frame.bytes[0] == TRANSPORT {
                    TRANSPORT_MARK
                } else {
                    self.tables.class_of_frame(&frame.bytes).into()
                };
                assert_eq!(self.pulses.marks.get(&cycle), Some(&mark));
                let expected = if frame.bytes[0] == TRANSPORT {
                    self.from_transport.pop_front()
                } else {
                    self.seen += 1;
                    let beats = frame.bytes.len().div_ceil(self.beat_bytes) as u64;
                    assert_eq!(self.host_room.gone.pop_front(), Some([mark, beats]));
                    self.seen_bytes += frame.bytes.len() as u64;
                    self.to_send.pop_front()
                };
                assert_eq!(Some(frame.bytes), expected);
                assert!(!frame.bad);
            }
        }
    }

    /// A received frame; `take`: it is for the host.
    pub(crate) fn receive(&mut self, frame: Vec<u8>, take: bool) {
        if take && self.config.on && frame.len() <= self.config.max_frame() {
            self.expected.push_back(frame.clone());
        }
        self.raw.queue.push_back((frame, take));
    }

    /// Looks at the next slot to receive; compares its frame at once.
    pub(crate) fn poll(&mut self) -> bool {
        let slot = usize::from(self.polled) & ((1 << self.config.log_slots) - 1);
        let at = slot * self.config.slot_bytes();
        let memory = self.memory.borrow();
        let head = Head::parse(memory[at..at + Head::BYTES].try_into().expect("8 bytes"));
        if head.owner != (self.polled >> self.config.log_slots & 1 == 0) {
            return false;
        }
        let frame = &memory[at + HEAD_BYTES..][..usize::from(head.length)];
        loop {
            let expected = self.expected.pop_front();
            if expected.as_deref() == Some(frame) {
                break;
            }
            assert!(
                self.may_drop && expected.is_some(),
                "another frame: {frame:02x?}"
            );
            self.missing += 1;
        }
        drop(memory);
        self.polled = self.polled.wrapping_add(1);
        true
    }

    /// Gives back what was polled.
    pub(crate) fn give(&mut self) {
        self.set("setup.rx_consumer", self.polled.into());
    }

    /// Room of the transmit ring.
    pub(crate) fn room(&self) -> u16 {
        (1 << self.config.log_slots) - self.producer.wrapping_sub(self.get(0) as u16)
    }

    /// Address of the next slot to send.
    pub(crate) fn tx_slot(&self) -> u64 {
        let slots = 1 << self.config.log_slots;
        let slot = slots + (u64::from(self.producer) & (slots - 1));
        BASE + slot * self.config.slot_bytes() as u64
    }

    /// Puts a frame of stated length into the next slot; the caller says whether it will leave.
    pub(crate) fn post(&mut self, frame: &[u8], length: u16, leaves: bool) {
        assert!(self.room() > 0);
        let at = (self.tx_slot() - BASE) as usize;
        let head = Head {
            length,
            rsv0: 0x5555_5555_5555,
            owner: true,
        };
        let mut memory = self.memory.borrow_mut();
        memory[at..at + Head::BYTES].copy_from_slice(&head.emit());
        memory[at + HEAD_BYTES..][..frame.len()].copy_from_slice(frame);
        drop(memory);
        self.producer = self.producer.wrapping_add(1);
        if leaves {
            self.to_send.push_back(frame.to_vec());
        }
        self.set("setup.tx_producer", self.producer.into());
    }

    /// A frame of the transport.
    pub(crate) fn send_transport(&mut self, len: usize) {
        let mut frame = self.bytes(len);
        frame[0] = TRANSPORT;
        self.transport.push(&Frame::new(frame.clone()));
        self.from_transport.push_back(frame);
    }

    /// Random bytes, the first of which is not [`TRANSPORT`]; some are of IP, some have a tag.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let rng = self.rng();
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        let mut at = 12;
        if len >= 20 && rng.bool() {
            bytes[12..14].copy_from_slice(&[0x81, 0]);
            at = 16;
        }
        if len >= 20 && rng.bool() {
            let types = [[8, 0], [0x86, 0xdd]];
            bytes[at..at + 2].copy_from_slice(&types[rng.usize(..2)]);
        }
        bytes[0] = 1;
        bytes
    }

    /// Runs until everything that was expected came, giving slots back at once.
    pub(crate) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            let before = (self.polled, self.seen);
            if self.config.on && self.poll() {
                self.give();
            }
            self.run(1);
            let moved = before != (self.polled, self.seen) || !self.raw.queue.is_empty();
            quiet = if moved { 0 } else { quiet + 1 };
            if quiet > 3000 {
                break;
            }
        }
        if self.may_drop {
            self.missing += self.expected.len() as u64;
            self.expected.clear();
        }
        assert!(
            self.expected.is_empty(),
            "{} did not come",
            self.expected.len()
        );
        assert!(
            self.to_send.is_empty(),
            "{} did not leave",
            self.to_send.len()
        );
        assert!(self.from_transport.is_empty());
        assert_eq!((self.sent, self.sent_bytes), (self.seen, self.seen_bytes));
    }
}

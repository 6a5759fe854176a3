//! Both ends of an AXI4-Stream `X_tdata`, `X_tkeep`, `X_tlast`, `X_tuser`, `X_tvalid`, `X_tready`
//! that carries frames.

use std::mem;

use fastrand::Rng;

use super::log::Log;
use super::{Agent, StreamSink, StreamSource};
use crate::bits;
use crate::random::Pauses;
use crate::verilator::{Dut, Error};

const PAYLOAD: [&str; 4] = ["tdata", "tkeep", "tlast", "tuser"];
const HANDSHAKE: [&str; 2] = ["tvalid", "tready"];

/// A frame and its `tuser` mark.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// First byte on the wire first.
    pub bytes: Vec<u8>,
    /// `tuser` of the last beat: the frame is bad.
    pub bad: bool,
}

impl Frame {
    /// A good frame.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            bad: false,
        }
    }

    /// The frame marked as bad.
    #[must_use]
    pub fn bad(mut self) -> Self {
        self.bad = true;
        self
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.bad { ", bad" } else { "" };
        write!(f, "{} bytes{mark}:", self.bytes.len())?;
        self.bytes
            .iter()
            .try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

/// Drives frames into an AXI4-Stream of up to 512 bits. Pauses may fall within frames.
#[derive(Debug)]
pub struct AxisSource {
    stream: StreamSource,
    lanes: usize,
}

impl AxisSource {
    /// The source of the ports `name_tdata` and so on.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn new(dut: &Dut, name: &str, pauses: Pauses) -> Result<Self, Error> {
        Ok(Self {
            stream: StreamSource::with_ports(dut, name, &PAYLOAD, HANDSHAKE, pauses)?,
            lanes: dut.input(&format!("{name}_tdata"))?.width() / 8,
        })
    }

    /// Queues a frame. Lanes behind its end are 0.
    ///
    /// # Panics
    /// If it is empty: a frame has at least one byte.
    pub fn push(&mut self, frame: &Frame) {
        assert!(!frame.bytes.is_empty(), "a frame has at least one byte");
        let beats = frame.bytes.len().div_ceil(self.lanes);
        for (index, bytes) in frame.bytes.chunks(self.lanes).enumerate() {
            let last = index + 1 == beats;
            let mut words = vec![0; (self.lanes * 8).div_ceil(32)];
            for (lane, byte) in bytes.iter().enumerate() {
                words[lane / 4] |= u32::from(*byte) << (lane % 4 * 8);
            }
            let mut item = self.stream.item();
            item.set_words("tdata", &words);
            item.set("tkeep", bits::mask(bytes.len()));
            item.set("tlast", u64::from(last));
            item.set("tuser", u64::from(last && frame.bad));
            self.stream.push(item);
        }
    }

    /// Beats that were taken.
    pub fn sent(&self) -> u64 {
        self.stream.sent()
    }

    /// Cycle in which the latest one was taken.
    pub fn last_sent(&self) -> Option<u64> {
        self.stream.last_sent()
    }
}

impl Agent for AxisSource {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.stream.drive(dut, rng);
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.stream.observe(dut, cycle)
    }

    fn pending(&self) -> Option<String> {
        self.stream.pending()
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.stream.reset(dut);
    }
}

/// Takes frames from an AXI4-Stream of up to 512 bits, and checks that a beat once offered stays
/// until it is taken, and that `tkeep` has no gaps and is full before the last beat.
#[derive(Debug)]
pub struct AxisSink {
    name: String,
    stream: StreamSink,
    lanes: usize,
    current: Vec<u8>,
    log: Log<Frame>,
}

impl AxisSink {
    /// The sink of the ports `name_tdata` and so on.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn new(dut: &Dut, name: &str, pauses: Pauses) -> Result<Self, Error> {
        Ok(Self {
            stream: StreamSink::with_ports(dut, name, &PAYLOAD, HANDSHAKE, pauses)?,
            lanes: dut.output(&format!("{name}_tdata"))?.width() / 8,
            current: Vec::new(),
            log: Log::new(name),
            name: name.into(),
        })
    }

    /// The next frame not yet expected must be `frame`. From the first call on, any other frame is
    /// a failure.
    pub fn expect(&mut self, frame: Frame) {
        self.log.expect(frame);
    }

    /// The oldest frame that arrived while none was expected, with the cycle of its last beat.
    pub fn pop(&mut self) -> Option<(u64, Frame)> {
        self.log.pop()
    }

    /// Frames that arrived.
    pub fn count(&self) -> u64 {
        self.log.count()
    }
}

impl Agent for AxisSink {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.stream.drive(dut, rng);
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let Some(beat) = self.stream.transfer(dut)? else {
            return Ok(());
        };
        let (keep, last) = (beat.get("tkeep"), beat.get("tlast") != 0);
        let bytes = keep.trailing_ones() as usize;
        if bytes == 0 || keep != bits::mask(bytes) || (!last && bytes < self.lanes) {
            return Err(format!(
                "`{}` has tkeep {keep:#x} with tlast {}: expected lanes from 0 up without gap, \
                 and all of them before the last beat",
                self.name,
                u8::from(last)
            ));
        }
        let words = beat.words("tdata");
        let data = words.iter().flat_map(|word| word.to_le_bytes());
        self.current.extend(data.take(bytes));
        if !last {
            return Ok(());
        }
        let frame = Frame {
            bytes: mem::take(&mut self.current),
            bad: beat.get("tuser") != 0,
        };
        self.log.arrive(cycle, frame)
    }

    fn pending(&self) -> Option<String> {
        match self.current.len() {
            0 => self.log.pending(),
            bytes => Some(format!("`{}` is {bytes} bytes into a frame", self.name)),
        }
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.current.clear();
        self.stream.reset(dut);
    }
}

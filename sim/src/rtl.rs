//! The engine at its pins, as a [`Nic`]: [`Engine`] gives [`Pins`] host memory, a register master and the two sides of a network
//! port, and checks the rules of all of them in every cycle.

pub mod build;
pub mod verilated;

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;

use crate::axi::check::Hold;
use crate::axi::lite::{self, FromHost, Master, ToHost};
use crate::axi::stream::{Beat, Sink, Source, Stand};
use crate::axi::{self, FromMaster, Memory, Slave, ToMaster, Violation, Violations};
use crate::bench::RESET_CYCLES;
use crate::ethernet::mac::Mac;
use crate::fabric::Line;
use crate::memory::HostMemory;
use crate::nic::{NS_PER_CYCLE, Nic};
use crate::random::{Pauses, Pausing};

pub use verilated::VerilatedPins;

/// Bytes of BAR0 that the 22 address bits of `s_axil` reach.
const BAR_BYTES: u64 = 1 << 22;

/// What the world drives at the engine, but for `clk`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs {
    /// `rst`.
    pub rst: bool,
    /// `s_axis_rx`.
    pub rx: Beat,
    /// `m_axis_tx_tready`.
    pub tx_ready: bool,
    /// `pause_req`.
    pub pause_req: u8,
    /// `rx_backlog`.
    pub rx_backlog: bool,
    /// `s_axil`.
    pub lite: FromHost,
    /// `m_axi`.
    pub axi: ToMaster,
    /// `irq_ready`.
    pub irq_ready: bool,
}

/// What the engine drives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outputs {
    /// `s_axis_rx_tready`.
    pub rx_ready: bool,
    /// `m_axis_tx`.
    pub tx: Beat,
    /// `pause_ack`.
    pub pause_ack: u8,
    /// `pause_send`.
    pub pause_send: u8,
    /// `s_axil`.
    pub lite: ToHost,
    /// `m_axi`.
    pub axi: FromMaster,
    /// `irq_valid`.
    pub irq_valid: bool,
    /// `irq_vector`, 11 bits.
    pub irq_vector: u16,
}

/// The ports of an engine. Names and widths: `docs/architecture.md`.
pub trait Pins {
    /// Bytes of the data path, a power of two up to [`axi::MAX_LANES`].
    fn lanes(&self) -> usize;

    /// Drives the inputs, lets the logic settle and reads the outputs, all between two clock edges.
    ///
    /// Payload of a channel whose valid is 0 may be left as it was, on either side.
    fn settle(&mut self, inputs: &Inputs, outputs: &mut Outputs);

    /// A rising edge of `clk`.
    fn clock(&mut self);
}

/// How the world around an engine behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host memory.
    pub memory: axi::Config,
    /// Register accesses.
    pub lite: lite::Config,
    /// Pauses between the beats of a frame and between frames at `s_axis_rx`.
    pub rx: Pauses,
    /// Pauses of `m_axis_tx_tready`.
    pub tx: Pauses,
    /// Frames that wait to be taken by [`Nic::transmit`] before the port takes no more: the queue of a
    /// MAC. `usize::MAX` for a port that never waits.
    pub tx_room: usize,
    /// The wire behind `m_axis_tx` stands once.
    pub tx_stand: Stand,
    /// Pauses of `irq_ready`.
    pub irq: Pauses,
    /// Seed of the pauses named here.
    pub seed: u64,
}

impl Default for Options {
    /// The fastest world, with a MAC that queues four frames.
    fn default() -> Self {
        Self {
            memory: axi::Config::default(),
            lite: lite::Config::default(),
            rx: Pauses::NONE,
            tx: Pauses::NONE,
            tx_room: 4,
            tx_stand: Stand::default(),
            irq: Pauses::NONE,
            seed: 1,
        }
    }
}

impl Options {
    /// A loaded host on a network port that never pauses, see [`axi::Config::host`].
    #[must_use]
    pub fn host(seed: u64) -> Self {
        Self {
            memory: axi::Config::host(seed),
            seed,
            ..Self::default()
        }
    }

    /// Everything the protocols allow at once: pauses on every channel, see [`axi::Config::hostile`].
    #[must_use]
    pub fn hostile(seed: u64) -> Self {
        let pauses = Pauses::new(0.2, 8);
        Self {
            memory: axi::Config::hostile(seed),
            lite: lite::Config {
                aw: pauses,
                w: pauses,
                b: pauses,
                ar: pauses,
                r: pauses,
                seed,
            },
            rx: pauses,
            tx: pauses,
            tx_room: 2,
            tx_stand: Stand::default(),
            irq: pauses,
            seed,
        }
    }
}

/// An engine and the world at its ports.
pub struct Engine<P> {
    pins: P,
    inputs: Inputs,
    outputs: Outputs,
    now: u64,
    reset_left: u64,
    axi: Box<dyn Slave>,
    lite: Master,
    rx: Source,
    tx: Sink,
    mac: Mac,
    pauses: VecDeque<Vec<u8>>,
    irq: Hold<u16>,
    irq_pausing: Pausing,
    /// Vectors, each with the cycle in which memory shows what was written before.
    interrupts: VecDeque<(u64, u16)>,
    rng: Rng,
    log: Violations,
}

impl<P: Pins> Engine<P> {
    /// Surrounds `pins` with a world whose DMA reaches `memory`; the first steps are a reset.
    ///
    /// # Panics
    /// If `options` cannot work, see [`Memory::new`] and [`Sink::new`].
    #[must_use]
    pub fn new(pins: P, memory: Rc<dyn HostMemory>, options: &Options) -> Self {
        let memory = Memory::new(memory, pins.lanes(), &options.memory);
        Self::with_memory(pins, memory, options)
    }

    /// Surrounds `pins` with a world that has `memory` behind `m_axi`, whatever `options` say of memory.
    ///
    /// # Panics
    /// If `options` cannot work, see [`Sink::new`].
    #[must_use]
    pub fn with_memory(pins: P, memory: impl Slave + 'static, options: &Options) -> Self {
        let lanes = pins.lanes();
        let mut seeds = Rng::with_seed(options.seed);
        let mut engine = Self {
            pins,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            now: 0,
            reset_left: 0,
            axi: Box::new(memory),
            lite: Master::new(&options.lite),
            rx: Source::new(lanes, options.rx, seeds.u64(..)),
            tx: Sink::new(lanes, options.tx, options.tx_room, seeds.u64(..))
                .standing(options.tx_stand),
            // 512 bits are the data path of 100 Gb/s, 64 that of 10
            mac: Mac::new(Line::ethernet(if lanes == 64 { 100 } else { 10 }, 1)),
            pauses: VecDeque::new(),
            irq: Hold::new("irq"),
            irq_pausing: Pausing::new(options.irq),
            interrupts: VecDeque::new(),
            rng: seeds,
            log: Violations::default(),
        };
        engine.reset();
        engine
    }

    /// The engine itself, to trace or to look into.
    pub fn pins(&mut self) -> &mut P {
        &mut self.pins
    }

    /// What will stand at the inputs in the next step, but for frames handed over before it.
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// What stood at the outputs in the last step.
    #[must_use]
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Queues a frame that the MAC found bad: TUSER is set on its last beat.
    pub fn receive_bad(&mut self, frame: &[u8]) {
        self.rx.push(frame, true);
    }

    /// Counters of the memory port.
    #[must_use]
    pub fn dma_stats(&self) -> &axi::Stats {
        self.axi.stats()
    }

    /// Rules of the ports that the engine broke, by cycle.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let logs = [
            self.axi.violations(),
            self.lite.violations(),
            self.rx.violations(),
            self.tx.violations(),
            &self.log,
        ];
        let mut all: Vec<_> = logs.iter().flat_map(|log| log.list()).cloned().collect();
        all.sort_by_key(|violation| violation.cycle);
        all
    }

    /// One cycle in reset: no valid after its second clock edge (AXI4 A3.1.2), as the core's reset is a register behind the pin.
    fn in_reset(&mut self) {
        self.inputs = Inputs {
            rst: true,
            ..Inputs::default()
        };
        self.pins.settle(&self.inputs, &mut self.outputs);
        let o = &self.outputs;
        let valids = [
            ("m_axi AW", o.axi.aw.valid),
            ("m_axi W", o.axi.w.valid),
            ("m_axi AR", o.axi.ar.valid),
            ("m_axis_tx", o.tx.valid),
            ("s_axil B", o.lite.bvalid),
            ("s_axil R", o.lite.rvalid),
            ("irq", o.irq_valid),
        ];
        let late = self.reset_left < RESET_CYCLES - 1;
        for (channel, _) in valids.iter().filter(|(_, valid)| late && *valid) {
            let what = "valid in reset; it must be 0";
            self.log.add(self.now, channel, what);
        }
        self.reset_left -= 1;
        self.inputs.rst = self.reset_left > 0;
    }

    fn in_service(&mut self) {
        let (now, i, o) = (self.now, &mut self.inputs, &mut self.outputs);
        self.pins.settle(i, o);
        self.axi.write_waits(self.lite.waits_since());
        self.axi.step(now, &o.axi, &mut i.axi);
        if o.lite.rvalid {
            self.axi.register_was_read(now);
        }
        self.lite.step(now, &mut i.lite, &o.lite);
        self.rx.step(now, &mut i.rx, o.rx_ready);
        self.tx.step(now, &o.tx, &mut i.tx_ready);
        self.mac.pass(NS_PER_CYCLE * 1000, o.pause_ack);
        i.pause_req = self.mac.requests();
        match self.mac.send(o.pause_send, NS_PER_CYCLE * 1000) {
            Ok(pause) => self.pauses.extend(pause),
            Err(what) => self.log.add(now, "pause_send", what),
        }
        self.irq
            .check(now, o.irq_valid, i.irq_ready, &o.irq_vector, &mut self.log);
        if o.irq_valid && i.irq_ready {
            self.interrupts
                .push_back((self.axi.posted_until(), o.irq_vector));
        }
        i.irq_ready = !self.irq_pausing.now(&mut self.rng);
    }
}

impl<P: Pins> Nic for Engine<P> {
    fn write32(&mut self, offset: u64, value: u32) {
        self.lite.write(bar_offset(offset), value);
    }

    fn start_read32(&mut self, offset: u64) {
        self.lite.start_read(bar_offset(offset));
    }

    fn take_read32(&mut self) -> Option<u32> {
        self.lite.take_read()
    }

    fn step(&mut self) {
        if self.reset_left > 0 {
            self.in_reset();
        } else {
            self.in_service();
        }
        self.pins.clock();
        self.now += 1;
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn ports_are_idle(&self) -> bool {
        self.axi.idle() && self.lite.idle() && self.rx.idle() && self.tx.idle()
    }

    fn hurry(&mut self, on: bool) {
        self.axi.hurry(on);
    }

    fn receive(&mut self, frame: &[u8]) {
        if !self.mac.take(frame) {
            self.rx.push(frame, false);
        }
    }

    fn arriving(&self) -> usize {
        self.rx.waiting()
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.pauses.pop_front().or_else(|| self.tx.pop())
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.interrupts.front().filter(|next| next.0 < self.now)?;
        self.interrupts.pop_front().map(|next| next.1)
    }

    fn failures(&self) -> Vec<String> {
        let faults = self.axi.faults().into_iter().map(|fault| fault.to_string());
        faults
            .chain(self.violations().iter().map(ToString::to_string))
            .collect()
    }

    fn reset(&mut self) {
        self.axi.reset();
        self.lite.reset();
        self.rx.reset();
        self.tx.reset();
        self.irq.reset();
        self.mac.forget();
        self.pauses.clear();
        self.interrupts.clear();
        self.now = 0;
        self.reset_left = RESET_CYCLES;
    }
}

/// # Panics
/// If `offset` is not that of a 32-bit register of BAR0.
fn bar_offset(offset: u64) -> u32 {
    assert!(
        offset < BAR_BYTES && offset.is_multiple_of(4),
        "register offset {offset:#x}; a multiple of 4 below {BAR_BYTES:#x} is expected"
    );
    offset as u32
}

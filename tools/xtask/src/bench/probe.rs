//! An engine with an eye on its pins: the cycles in which things first happen at its ports.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Engine, VerilatedPins};

/// Cycles of the card; each is `None` until it happened after [`Marks::default`].
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// First register write: its data was taken.
    pub(super) doorbell: Option<u64>,
    /// First beat at `m_axis_tx`.
    pub(super) first_tx: Option<u64>,
    /// First last beat of a frame at `s_axis_rx`.
    pub(super) last_rx: Option<u64>,
    /// First read address at `m_axi`, that of the WQE.
    pub(super) first_read: Option<u64>,
    /// Last beat of the first read.
    pub(super) first_data: Option<u64>,
    /// Read addresses so far, and last beats of reads.
    reads: (u64, u64),
    /// Second read address, that of the payload.
    pub(super) second_read: Option<u64>,
    /// Last beat of the second read.
    pub(super) second_data: Option<u64>,
    /// First W beat at `m_axi`.
    pub(super) first_write: Option<u64>,
    /// A trace of all signals is written to this file from the next cycle on.
    pub(super) trace: Option<PathBuf>,
}

/// A card that keeps [`Marks`].
pub(super) struct Probe {
    pub(super) engine: Engine<VerilatedPins>,
    pub(super) marks: Rc<RefCell<Marks>>,
}

impl Nic for Probe {
    fn write32(&mut self, offset: u64, value: u32) {
        self.engine.write32(offset, value);
    }

    fn start_read32(&mut self, offset: u64) {
        self.engine.start_read32(offset);
    }

    fn take_read32(&mut self) -> Option<u32> {
        self.engine.take_read32()
    }

    fn step(&mut self) {
        let now = self.engine.now();
        if let Some(path) = self.marks.borrow_mut().trace.take() {
            let traced = self.engine.pins().dut().trace(path);
            traced.expect("the engine is built for it, and the folder is there");
        }
        let inputs = self.engine.inputs();
        let (wvalid, last) = (inputs.lite.wvalid, inputs.rx.valid && inputs.rx.last);
        let (arready, data) = (inputs.axi.arready, inputs.axi.r.valid && inputs.axi.r.last);
        self.engine.step();
        let outputs = self.engine.outputs();
        let mut marks = self.marks.borrow_mut();
        let read = arready && outputs.axi.ar.valid;
        let data = data && outputs.axi.rready;
        marks.reads.0 += u64::from(read);
        marks.reads.1 += u64::from(data);
        let seen = marks.reads;
        let mut mark = |place: fn(&mut Marks) -> &mut Option<u64>, happened: bool| {
            if happened {
                place(&mut marks).get_or_insert(now);
            }
        };
        mark(|m| &mut m.doorbell, wvalid && outputs.lite.wready);
        mark(|m| &mut m.first_tx, outputs.tx.valid);
        mark(|m| &mut m.last_rx, last && outputs.rx_ready);
        mark(|m| &mut m.first_read, read);
        mark(|m| &mut m.first_data, data);
        mark(|m| &mut m.second_read, read && seen.0 == 2);
        mark(|m| &mut m.second_data, data && seen.1 == 2);
        mark(|m| &mut m.first_write, outputs.axi.w.valid);
    }

    fn now(&self) -> u64 {
        self.engine.now()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.engine.receive(frame);
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.engine.transmit()
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.engine.interrupt()
    }

    fn failures(&self) -> Vec<String> {
        self.engine.failures()
    }

    fn reset(&mut self) {
        self.engine.reset();
    }
}

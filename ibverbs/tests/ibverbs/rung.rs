//! A card that notes what is written to the doorbells of send queues.

use std::sync::{Arc, Mutex};

use ferroce_proto::abi::doorbell;
use ferroce_sim::nic::Nic;
use ferroce_sim::vfio_user::pair::ServedPair;
use ferroce_sim::vfio_user::{self, Card};
use ferroce_system::packages::Tool;

use crate::library::Cards;

/// Values but 0, which a queue pair in RESET has.
pub(crate) type Doorbells = Arc<Mutex<Vec<u32>>>;

pub(crate) struct Rung {
    pub(crate) card: Box<dyn Card>,
    pub(crate) doorbells: Doorbells,
}

impl Nic for Rung {
    fn write32(&mut self, offset: u64, value: u32) {
        let queues = doorbell::QP_BASE..doorbell::CQ_BASE;
        let of_sends = (offset - doorbell::QP_BASE.min(offset)).is_multiple_of(doorbell::STRIDE);
        if queues.contains(&offset) && of_sends && value > 0 {
            self.doorbells.lock().unwrap().push(value);
        }
        self.card.write32(offset, value);
    }

    fn start_read32(&mut self, offset: u64) {
        self.card.start_read32(offset);
    }

    fn take_read32(&mut self) -> Option<u32> {
        self.card.take_read32()
    }

    fn step(&mut self) {
        self.card.step();
    }

    fn now(&self) -> u64 {
        self.card.now()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.card.receive(frame);
    }

    fn arriving(&self) -> usize {
        self.card.arriving()
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.card.transmit()
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.card.interrupt()
    }

    fn failures(&self) -> Vec<String> {
        self.card.failures()
    }

    fn reset(&mut self) {
        self.card.reset();
    }

    fn ports_are_idle(&self) -> bool {
        self.card.ports_are_idle()
    }

    fn idle_until(&self) -> Option<u64> {
        self.card.idle_until()
    }

    fn run_until(&mut self, cycle: u64) {
        self.card.run_until(cycle);
    }
}

impl Card for Rung {
    fn is_waiting(&self) -> bool {
        self.card.is_waiting()
    }
}

impl Cards {
    /// Golden models that note doorbells of send queues.
    pub(crate) fn rung(tools: &[Tool]) -> Option<(Self, Doorbells)> {
        let doorbells = Doorbells::default();
        let noted = doorbells.clone();
        let cards = Self::serve(tools, |folder| {
            ServedPair::of(folder, move |dma| {
                let (card, doorbells) = (vfio_user::card(None, dma).unwrap(), noted.clone());
                Box::new(Rung { card, doorbells })
            })
        })?;
        Some((cards, doorbells))
    }
}

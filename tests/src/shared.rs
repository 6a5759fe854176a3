//! A card that several hold.

use std::cell::RefCell;
use std::rc::Rc;

use ferroce_sim::nic::Nic;

/// A card that a host and its surroundings step in turns.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Rc<RefCell<Box<dyn Nic>>>);

impl Shared {
    pub(crate) fn new(nic: Box<dyn Nic>) -> Self {
        Self(Rc::new(RefCell::new(nic)))
    }
}

impl Nic for Shared {
    fn write32(&mut self, offset: u64, value: u32) {
        self.0.borrow_mut().write32(offset, value);
    }
    fn start_read32(&mut self, offset: u64) {
        self.0.borrow_mut().start_read32(offset);
    }
    fn take_read32(&mut self) -> Option<u32> {
        self.0.borrow_mut().take_read32()
    }
    fn step(&mut self) {
        self.0.borrow_mut().step();
    }
    fn now(&self) -> u64 {
        self.0.borrow().now()
    }
    fn receive(&mut self, frame: &[u8]) {
        self.0.borrow_mut().receive(frame);
    }
    fn arriving(&self) -> usize {
        self.0.borrow().arriving()
    }
    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.0.borrow_mut().transmit()
    }
    fn interrupt(&mut self) -> Option<u16> {
        self.0.borrow_mut().interrupt()
    }
    fn failures(&self) -> Vec<String> {
        self.0.borrow().failures()
    }
    fn reset(&mut self) {
        self.0.borrow_mut().reset();
    }
    fn ports_are_idle(&self) -> bool {
        self.0.borrow().ports_are_idle()
    }
    fn hurry(&mut self, on: bool) {
        self.0.borrow_mut().hurry(on);
    }
    fn idle_until(&self) -> Option<u64> {
        self.0.borrow().idle_until()
    }
    fn run_until(&mut self, cycle: u64) {
        self.0.borrow_mut().run_until(cycle);
    }
}

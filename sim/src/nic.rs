//! The card as seen from its pins.
//!
//! Everything above (link model, simulated card, conformance cases, replay, demo) is written against
//! [`Nic`] and runs unchanged on the golden model and on the Verilated engine. Host memory is handed
//! to an implementation when it is built, as an `Rc<dyn `[`HostMemory`](crate::memory::HostMemory)`>`.

/// Nanoseconds of one [`Nic::step`].
pub const NS_PER_CYCLE: u64 = 4;

/// A card: registers on one side, frames on the other, time in cycles of 4 ns.
///
/// Calls other than [`step`](Nic::step) take no time: what they hand over is seen by the card in the
/// following steps, in the order of the calls.
///
/// ```
/// # use ferroce_sim::nic::Nic;
/// /// Reads a register, `None` if the card does not answer within `cycles`.
/// fn read32(nic: &mut dyn Nic, offset: u64, cycles: u64) -> Option<u32> {
///     nic.start_read32(offset);
///     for _ in 0..cycles {
///         nic.step();
///         if let Some(value) = nic.take_read32() {
///             return Some(value);
///         }
///     }
///     None
/// }
/// ```
pub trait Nic {
    /// Posts a 32-bit write to a register or doorbell of BAR0. `offset` is in bytes, a multiple of 4.
    ///
    /// Writes take effect in the order posted and before any read started later.
    fn write32(&mut self, offset: u64, value: u32);

    /// Starts a 32-bit read of BAR0. `offset` is in bytes, a multiple of 4.
    ///
    /// # Panics
    /// If the answer of an earlier read was not taken: one read is outstanding at most.
    fn start_read32(&mut self, offset: u64);

    /// The answer of the read started last, once, when it is there; unmapped offsets answer 0.
    fn take_read32(&mut self) -> Option<u32>;

    /// Advances time by one cycle of [`NS_PER_CYCLE`].
    fn step(&mut self);

    /// Cycles since the card was built or last reset.
    fn now(&self) -> u64;

    /// Hands over a frame that has fully arrived at the port: from the destination MAC address to the
    /// last byte before the FCS, with whatever padding the link added.
    ///
    /// Frames queue inside the implementation until the port takes them; none is lost here.
    fn receive(&mut self, frame: &[u8]);

    /// Frames of [`receive`](Nic::receive) that have not come in whole.
    fn arriving(&self) -> usize {
        0
    }

    /// The next frame whose last beat left the port in an earlier step, without FCS and not padded to
    /// the Ethernet minimum of 60 bytes.
    fn transmit(&mut self) -> Option<Vec<u8>>;

    /// The next MSI-X vector requested.
    fn interrupt(&mut self) -> Option<u16>;

    /// What makes the run a failed one, in words: DMA faults, and rules of the ports that were broken.
    fn failures(&self) -> Vec<String> {
        Vec::new()
    }

    /// Resets the card as a function-level reset does: registers, tables, queues and frames under way
    /// are gone, [`now`](Nic::now) is 0. Host memory stays as it is.
    fn reset(&mut self);

    /// Nothing is under way at a port: no frame that was handed over waits, no access has begun.
    fn ports_are_idle(&self) -> bool {
        true
    }

    /// Host memory answers without latency from now on, or again as it was made to: what is set up before a test begins
    /// need not take long.
    fn hurry(&mut self, _on: bool) {}

    /// The first cycle at which the card may do something by itself (`u64::MAX`: never), given that
    /// no call comes before; `None` when the card does not know or is busy.
    fn idle_until(&self) -> Option<u64> {
        None
    }

    /// Steps until [`now`](Nic::now) is `cycle`. An implementation that answers
    /// [`idle_until`](Nic::idle_until) skips the steps that do nothing.
    fn run_until(&mut self, cycle: u64) {
        while self.now() < cycle {
            self.step();
        }
    }
}

impl<T: Nic + ?Sized> Nic for Box<T> {
    fn write32(&mut self, offset: u64, value: u32) {
        (**self).write32(offset, value);
    }

    fn start_read32(&mut self, offset: u64) {
        (**self).start_read32(offset);
    }

    fn take_read32(&mut self) -> Option<u32> {
        (**self).take_read32()
    }

    fn step(&mut self) {
        (**self).step();
    }

    fn now(&self) -> u64 {
        (**self).now()
    }

    fn receive(&mut self, frame: &[u8]) {
        (**self).receive(frame);
    }

    fn arriving(&self) -> usize {
        (**self).arriving()
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        (**self).transmit()
    }

    fn interrupt(&mut self) -> Option<u16> {
        (**self).interrupt()
    }

    fn failures(&self) -> Vec<String> {
        (**self).failures()
    }

    fn reset(&mut self) {
        (**self).reset();
    }

    fn ports_are_idle(&self) -> bool {
        (**self).ports_are_idle()
    }

    fn hurry(&mut self, on: bool) {
        (**self).hurry(on);
    }

    fn idle_until(&self) -> Option<u64> {
        (**self).idle_until()
    }

    fn run_until(&mut self, cycle: u64) {
        (**self).run_until(cycle);
    }
}

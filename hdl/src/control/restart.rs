//! Restart: resets the engine without breaking the protocols at its ports.
//!
//! The host asks with CONTROL.reset. First the DMA takes nothing new; when every burst has its answer and no frame has
//! been leaving for 32 cycles, reset goes out for 16 cycles. What a peer or the host expected is lost, as with any reset.
//!
//! ```text
//!  Run ─request─► Halt ─idle for 32 cycles─► Reset ─16 cycles─► Done ─request gone─► Run
//! ```
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum RestartState {
    /// Nothing.
    Run,
    /// Waits until the ports are idle.
    Halt,
    /// Holds the engine in reset.
    Reset,
    /// Tells so until the request is taken back.
    Done,
}

/// The block; in the reset domain of the pin.
#[derive(LogicBlock)]
pub struct Restart {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The host asks for a reset, until `done`.
    pub request: Signal<In, Bit>,
    /// The DMA has nothing under way and no frame is leaving.
    pub idle: Signal<In, Bit>,
    /// The DMA must not begin anything.
    pub halt: Signal<Out, Bit>,
    /// Reset of the engine; also while the pin asks for it.
    pub core_rst: Signal<Out, Bit>,
    /// The reset is over.
    pub done: Signal<Out, Bit>,

    state: Reg<RestartState>,
    count: Reg<Bits<6>>,
    halted: Reg<Bit>,
    resets: Reg<Bit>,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            request: Signal::default(),
            idle: Signal::default(),
            halt: Signal::default(),
            core_rst: Signal::default(),
            done: Signal::default(),
            state: Reg::new(RestartState::Run),
            count: Reg::default(),
            halted: Reg::default(),
            resets: Reg::new(true),
        }
    }
}

impl Logic for Restart {
    describe!("restart", "Resets the engine when its ports are idle.");

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, count, halted, resets);
        self.resets.d.next = false;
        match self.state.q.val() {
            RestartState::Run => {
                self.count.d.next = bits::<6>(0);
                self.halted.d.next = self.request.val();
                if self.request.val() {
                    self.state.d.next = RestartState::Halt;
                }
            }
            RestartState::Halt => {
                self.count.d.next = bits::<6>(0);
                if self.idle.val() {
                    self.count.d.next = self.count.q.val() + 1;
                }
                if self.count.q.val().get_bit(5) {
                    self.count.d.next = bits::<6>(0);
                    self.state.d.next = RestartState::Reset;
                }
            }
            RestartState::Reset => {
                self.resets.d.next = true;
                self.halted.d.next = false;
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == 15 {
                    self.state.d.next = RestartState::Done;
                }
            }
            RestartState::Done => {
                if !self.request.val() {
                    self.state.d.next = RestartState::Run;
                }
            }
            _ => {
                self.state.d.next = RestartState::Run;
            }
        }
        self.halt.next = self.halted.q.val();
        self.core_rst.next = self.clock.rst.val() | self.resets.q.val();
        self.done.next = self.state.q.val() == RestartState::Done;
    }
}

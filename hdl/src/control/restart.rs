//! Restart: resets the engine without breaking the protocols at its ports.
//!
//! The host asks with CONTROL.engine_reset. First the DMA takes nothing new; when every burst has its answer and no frame has
//! been leaving for 32 cycles, reset goes out for 16 cycles. What a peer or the host expected is lost, as with any reset.
//!
//! ```text
//!  Run ─request─► Halt ─idle for 32 cycles─► Reset ─16 cycles─► Done ─request gone─► Run
//! ```
//!
//! The reset comes from registers, one a part of the core, so it follows the pin by a cycle, both when it comes and when it
//! goes.
use crate::prelude::*;

/// Parts of the core with a reset of their own.
pub const PARTS: usize = 4;
/// The receive path and the responder.
pub const RECEIVE: usize = 1;
/// The transmit path and the requester.
pub const TRANSMIT: usize = 2;
/// Commands, completions and events.
pub const CONTROL: usize = 3;
/// All else.
pub const REST: usize = 0;

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
#[derive(Block)]
pub struct Restart {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The host asks for a reset, until `done`.
    pub request: Signal<In, Bit>,
    /// The DMA has nothing under way and no frame is leaving.
    pub idle: Signal<In, Bit>,
    /// The DMA must not begin anything.
    pub stall: Signal<Out, Bit>,
    /// Reset of each part of the core, all the same; also while the pin asks for it.
    pub core_rst: Signal<Out, Bits<PARTS>>,
    /// The reset is over.
    pub done: Signal<Out, Bit>,

    #[init(Reg::new(RestartState::Run))]
    state: Reg<RestartState>,
    count: Reg<Bits<6>>,
    halted: Reg<Bit>,
    resets: ResetCopies<PARTS>,
}

impl Logic for Restart {
    describe!("restart", "Resets the engine when its ports are idle.");

    #[kernel]
    fn update(&mut self) {
        resets.d = state == RestartState::Reset;
        match state {
            RestartState::Run => {
                count = bits::<6>(0);
                halted = request;
                if request {
                    state = RestartState::Halt;
                }
            }
            RestartState::Halt => {
                count = bits::<6>(0);
                if idle {
                    count = count + 1;
                }
                if count.bit(5) {
                    count = bits::<6>(0);
                    state = RestartState::Reset;
                }
            }
            RestartState::Reset => {
                halted = false;
                count = count + 1;
                if count == 15 {
                    state = RestartState::Done;
                }
            }
            RestartState::Done => {
                if !request {
                    state = RestartState::Run;
                }
            }
            _ => {
                state = RestartState::Run;
            }
        }
        stall = halted;
        core_rst = resets.q;
        done = state == RestartState::Done;
    }
}

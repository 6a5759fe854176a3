//! Models of what surrounds the engine's AXI ports, acting on plain values.
//!
//! A port is a pair of structs: what the engine drives and what the model drives. A model's `step` is
//! called once a cycle with the values that stood at the ports in that cycle; a transfer happened where
//! valid and ready were both set. It leaves behind what it drives in the next cycle. So every output of
//! a model is registered and depends on nothing the engine does in the same cycle, and the models work
//! the same for a Verilated engine and for one written in Rust.

pub mod check;
pub mod lite;
pub mod memory;
mod read;
pub mod remote;
pub mod stream;
mod write;

pub use check::{Violation, Violations};
pub use memory::{Config, Memory, Stats};
pub use remote::RemotePort;

use crate::memory::Fault;

/// Bytes of the widest data path. A narrower engine uses the first lanes.
pub const MAX_LANES: usize = 64;
/// Transaction IDs: AxID is 4 bits.
pub const IDS: usize = 16;
/// Bursts do not cross multiples of this (AXI4 A3.4.1).
pub const BOUNDARY: u64 = 4096;
/// Bytes that memory is read in at once, if it tears.
pub const LINE: u64 = 64;
/// Most beats of a burst.
pub const MAX_BEATS: usize = 256;

/// AxBURST of an incrementing burst.
pub const INCR: u8 = 1;
/// xRESP of a good access.
pub const OKAY: u8 = 0;
/// xRESP of an access that nothing answers.
pub const DECERR: u8 = 3;

/// The AW or the AR channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// AxVALID.
    pub valid: bool,
    /// AxID, 3 bits.
    pub id: u8,
    /// AxADDR, in bytes.
    pub addr: u64,
    /// AxLEN: beats less one.
    pub len: u8,
    /// AxSIZE: log2 of the bytes of a beat.
    pub size: u8,
    /// AxBURST.
    pub burst: u8,
}

impl Address {
    /// Beats of the burst.
    #[must_use]
    pub fn beats(&self) -> usize {
        usize::from(self.len) + 1
    }
}

/// The W channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteData {
    /// WVALID.
    pub valid: bool,
    /// WLAST.
    pub last: bool,
    /// WSTRB: bit i for byte i.
    pub strb: u64,
    /// WDATA, byte lanes in order.
    pub data: [u8; MAX_LANES],
}

impl Default for WriteData {
    fn default() -> Self {
        Self {
            valid: false,
            last: false,
            strb: 0,
            data: [0; MAX_LANES],
        }
    }
}

/// The B channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteResponse {
    /// BVALID.
    pub valid: bool,
    /// BID.
    pub id: u8,
    /// BRESP.
    pub resp: u8,
}

/// The R channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadData {
    /// RVALID.
    pub valid: bool,
    /// RLAST.
    pub last: bool,
    /// RID.
    pub id: u8,
    /// RRESP.
    pub resp: u8,
    /// RDATA, byte lanes in order.
    pub data: [u8; MAX_LANES],
}

impl Default for ReadData {
    fn default() -> Self {
        Self {
            valid: false,
            last: false,
            id: 0,
            resp: OKAY,
            data: [0; MAX_LANES],
        }
    }
}

/// What the engine drives at `m_axi`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromMaster {
    /// Write address.
    pub aw: Address,
    /// Write data.
    pub w: WriteData,
    /// BREADY.
    pub bready: bool,
    /// Read address.
    pub ar: Address,
    /// RREADY.
    pub rready: bool,
}

/// What memory drives at `m_axi`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToMaster {
    /// AWREADY.
    pub awready: bool,
    /// WREADY.
    pub wready: bool,
    /// Write response.
    pub b: WriteResponse,
    /// ARREADY.
    pub arready: bool,
    /// Read data.
    pub r: ReadData,
}

/// Host memory behind `m_axi`.
pub trait Slave {
    /// One cycle `now`: `from` and `to` stood at the port; `to` becomes what the memory drives next.
    fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster);

    /// Forgets everything under way, as a reset of both sides does.
    fn reset(&mut self);

    /// The oldest register write that the bridge passed on and that has no response came in cycle `since`.
    fn write_waits(&mut self, _since: Option<u64>) {}

    /// A register read is answered: on PCIe its completion pushes the posted writes before it, which are visible then.
    fn register_was_read(&mut self, _now: u64) {}

    /// The cycle in which memory shows all that was posted so far: on PCIe an interrupt does not pass it.
    fn posted_until(&self) -> u64 {
        0
    }

    /// Answers have no latency from now on, or again that of the configuration.
    fn hurry(&mut self, _on: bool) {}

    /// Nothing is outstanding.
    fn idle(&self) -> bool;

    /// Counters since the start.
    fn stats(&self) -> &Stats;

    /// Rules the engine broke.
    fn violations(&self) -> &Violations;

    /// Accesses that make the run a failed one.
    fn faults(&self) -> Vec<Fault>;
}

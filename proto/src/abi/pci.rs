//! The card on the bus: identity, BARs, interrupts. One home for the boards' PCIe blocks, the simulated card and the
//! driver.
//!
//! Vendor and device are the defaults of the PCIe block of the FPGA's vendor, free for experiments. **A product needs an
//! identity of its own**, from the PCI-SIG.

/// Vendor ID.
pub const VENDOR: u16 = 0x10ee;
/// Device ID.
pub const DEVICE: u16 = 0x9038;
/// Subsystem vendor ID.
pub const SUBSYSTEM_VENDOR: u16 = VENDOR;
/// Subsystem ID of a card in hardware.
pub const SUBSYSTEM_HARDWARE: u16 = 0x0007;
/// Subsystem ID of a simulated card: its time passes slower than the host's, by about [`SIMULATED_SLOWDOWN`].
pub const SUBSYSTEM_SIMULATED: u16 = 0x51b0;
/// Nanoseconds of the host in which a simulated card gets through one of its own, about: what bounds a wait for the card
/// is that many times longer.
pub const SIMULATED_SLOWDOWN: u64 = 100;
/// Revision ID.
pub const REVISION: u8 = 1;
/// Class code: network controller, Ethernet.
pub const CLASS: u32 = 0x02_0000;

/// BAR of the registers and doorbells, [`super::regs::BAR0_BYTES`] long: 64 bits, not prefetchable. It takes BAR 1 too.
pub const REGISTER_BAR: u8 = 0;
/// BAR of the MSI-X table and pending bits, 64 bits, not prefetchable. It takes BAR 3 too.
pub const MSIX_BAR: u8 = 2;
/// Bytes of [`MSIX_BAR`].
pub const MSIX_BAR_BYTES: u64 = 0x1_0000;
/// MSI-X vectors.
pub const MSIX_VECTORS: u16 = 64;
/// Offset of the MSI-X table in [`MSIX_BAR`].
pub const MSIX_TABLE: u32 = 0;
/// Offset of the pending bits in [`MSIX_BAR`].
pub const MSIX_PBA: u32 = 0x8000;

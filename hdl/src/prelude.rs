//! What a file with a block in it imports: `use crate::prelude::*;`.
pub use rust_hdl_core::prelude::*;

pub use crate::bus::axi::{AxiLiteIn, AxiOut, AxiReadOut, AxiWriteOut};
pub use crate::bus::axis::{AxisIn, AxisOut};
pub use crate::bus::dma::{
    KeyChangeIn, KeyChangeOut, MrCheckIn, MrCheckOut, PayloadIn, PayloadOut, ReadBeatIn,
    ReadBeatOut, WriteBeatIn, WriteBeatOut,
};
pub use crate::bus::frame::{FrameIn, FrameOut, PartsIn, PartsOut};
pub use crate::bus::stream::{StreamIn, StreamOut};
pub use crate::cell::arbiter::{Arbiter, Merge};
pub use crate::cell::bypass::Bypass;
pub use crate::cell::byte_mux::ByteMux;
pub use crate::cell::byte_reg::ByteReg;
pub use crate::cell::carry::Carry;
pub use crate::cell::clock::ClkRst;
pub use crate::cell::deep::Deep;
pub use crate::cell::fifo::Fifo;
pub use crate::cell::hold::Hold;
pub use crate::cell::pick::Pick;
pub use crate::cell::product::Product;
pub use crate::cell::ram::{Ram, Style};
pub use crate::cell::ram_bytes::RamBytes;
pub use crate::cell::reg::{Dff, Reg};
pub use crate::cell::reset_copies::ResetCopies;
pub use crate::cell::ring_ram::RingRam;
pub use crate::cell::rmw::Rmw;
pub use crate::cell::rotate::Rotate;
pub use crate::cell::skid::Skid;
pub use crate::cell::skid_ram::SkidRam;
pub use crate::cell::slice::Slice;
pub use crate::cell::swept_ram::SweptRam;
pub use crate::cell::zero::Zero;
// Named: it stands over the macro of the same name in the glob above.
pub use crate::describe;
pub use ferroce_kernel::{Block, kernel, kernel_fn};

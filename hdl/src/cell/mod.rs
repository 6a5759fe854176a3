//! Cells: the small blocks everything else is made of.
pub mod arbiter;
pub mod byte_mux;
pub mod clock;
pub mod crc;
pub mod crc_undo;
pub mod delay;
pub mod fifo;
pub mod ram;
pub mod ram_bytes;
pub mod reg;
pub mod ring_ram;
pub mod rmw;
pub mod rotate;
pub mod skid;
pub mod zero;

//! Control: registers, commands, statistics, and what ends things in order.
pub mod axil;
mod bar;
pub mod command;
pub mod command_check;
pub mod command_events;
pub mod command_images;
pub mod command_ring;
pub mod command_steps;
pub mod command_types;
pub mod csr;
pub mod doorbells;
pub mod drain;
pub mod exception_csr;
pub mod notify_csr;
pub mod restart;
pub mod stat_sums;
pub mod stats;

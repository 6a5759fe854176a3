//! Cycle-accurate simulation of the engine.
#![deny(unsafe_code)]

pub mod axi;
pub mod bench;
pub mod bits;
#[allow(unsafe_code)]
pub mod card;
pub mod ethernet;
pub mod fabric;
pub mod link;
#[allow(unsafe_code)]
pub mod memory;
pub mod model;
pub mod mutation;
pub mod nic;
pub mod packet;
pub mod pcap;
pub mod pcapng;
pub mod random;
pub mod rate;
pub mod remote;
pub mod replay;
pub mod rtl;
pub mod scoreboard;
pub mod simbricks;
pub mod testhost;
#[allow(unsafe_code)]
pub mod verilator;
pub mod vfio_user;
pub mod world;

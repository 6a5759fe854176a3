//! The reader of frames that are no RoCE: ARP, neighbour discovery, ping.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| ferroce_driver::fuzz::neighbour(frame));

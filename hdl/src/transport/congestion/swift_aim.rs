//! The target delay of a window, and how far a round trip exceeds it; and the bounds of windows.
//!
//! Latency: 4 cycles from `product`, and one from `rtt` and `packet`. Throughput: one a cycle.
use super::swift_types::SwiftParams;
use crate::prelude::*;

/// The aim.
#[derive(Block)]
pub struct SwiftAim {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Parameters.
    pub params: Signal<In, SwiftParams>,
    /// Log2 of the bytes of a packet.
    pub packet: Signal<In, Bits<4>>,
    /// `fs_alpha` * 1024 / root of the window in packets.
    pub product: Signal<In, Bits<44>>,
    /// The round trip, in cycles.
    pub rtt: Signal<In, Bits<24>>,
    /// What it is above the target delay, ns; bit 26: it is below.
    pub excess: Signal<Out, Bits<32>>,
    /// Least window, in 2^-8 bytes.
    pub least: Signal<Out, Bits<32>>,
    /// Largest window.
    pub most: Signal<Out, Bits<32>>,
    /// That of a new queue pair.
    pub opening: Signal<Out, Bits<32>>,

    /// Bit 34: less than nothing.
    more: Dff<Bits<35>>,
    added: Dff<Bits<20>>,
    target: Dff<Bits<27>>,
    excess_q: Dff<Bits<27>>,
    least_q: Dff<Bits<32>>,
    most_q: Dff<Bits<32>>,
    opening_q: Dff<Bits<32>>,
}

impl Logic for SwiftAim {
    describe!("swift_aim", "The target delay of a window.");

    #[kernel]
    fn update(&mut self) {
        more = product.slice::<34>(10).resize::<35>() - params.fs_beta.resize::<35>();
        added = more.low::<20>();
        if more.bit(34) {
            added = bits::<20>(0);
        } else if more.low::<34>() > params.fs_range.resize::<34>() {
            added = params.fs_range;
        }
        target = params.base_target.resize::<27>() + added.resize::<27>();
        excess_q = (rtt.resize::<27>() << 2) - target;
        excess = excess_q.resize::<32>();

        let low = (params.min_cwnd.resize::<32>() << packet) >> 2;
        least_q = low;
        if !low.slice::<24>(8).any() {
            least_q = bits::<32>(256);
        }
        most_q = (params.max_cwnd.resize::<32>() << packet) << 8;
        opening_q = (params.initial_cwnd.resize::<32>() << packet) << 8;
        least = least_q;
        most = most_q;
        opening = opening_q;
    }
}

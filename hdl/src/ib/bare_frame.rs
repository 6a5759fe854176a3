//! Frames of packets without payload, from their headers (docs/blocks/transmit.md).
//!
//! A frame is headers and 4 bytes of 0 where the ICRC will stand. One at a time; a beat a cycle, one cycle from `s` to `m`.
//!
//! Assumes: behind the BTH stand bytes of 0 only; frames are 2 modulo 4 bytes long, so the last beat is never full.
use super::tx_types::TxHeader;
use crate::bus::frame::FrameBeat;
use crate::bus::layout::Layout;
use crate::prelude::*;

/// Bits of the longest headers up to the BTH.
const BITS: usize = 8 * Layout::ALL[3].ext();

/// Frames of beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct BareFrame<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Headers.
    pub s: StreamIn<TxHeader>,
    /// Frames.
    pub m: FrameOut<W>,
    valid: Reg<Bit>,
    bytes: Dff<Bits<BITS>>,
    beat: Dff<FrameBeat>,
    /// Beats that are covered whole, and the last one.
    covered: Dff<Bits<10>>,
    end: Dff<Bits<10>>,
}

impl<const W: usize, const K: usize> BareFrame<W, K> {
    const LOG_K: u64 = K.ilog2() as u64;
    const LANES: u64 = K as u64 - 1;
    const BEAT: u64 = W as u64;
}

impl<const W: usize, const K: usize> Logic for BareFrame<W, K> {
    describe!(
        "bare_frame",
        format!("w{W}"),
        "Frames of packets without payload."
    );

    #[kernel]
    fn update(&mut self) {
        let load = !valid | (m.ready & beat.last);
        s.ready = load;
        let next = beat.index + 1;
        if load {
            valid = s.valid;
            bytes = s.payload.bytes.low::<BITS>();
            covered = (s.payload.covered >> Self::LOG_K).resize::<10>();
            end = (s.payload.length >> Self::LOG_K).resize::<10>();
            copy!(beat <= s.payload; ipv6, vlan, ack, packet_class, length);
            beat.cnp = true;
            beat.response = false;
            beat.index = bits::<10>(0);
            beat.last = (s.payload.length >> Self::LOG_K) == 0;
            beat.whole = (s.payload.covered >> Self::LOG_K) != 0;
            beat.partial = (s.payload.covered >> Self::LOG_K) == 0;
            beat.tail = (s.payload.covered & Self::LANES).resize::<6>();
            beat.bytes = (s.payload.length & Self::LANES).resize::<6>();
        } else if m.ready {
            bytes = bytes >> Self::BEAT;
            beat.index = next;
            beat.last = next == end;
            beat.whole = next < covered;
            beat.partial = next == covered;
        }
        m.data = bytes.resize::<W>();
        m.beat = beat;
        m.valid = valid;
    }
}

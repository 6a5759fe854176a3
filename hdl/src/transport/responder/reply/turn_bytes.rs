//! Counts the bytes of a turn, as rates count them: of a READ response its payload and 64, of the response to an atomic 64.
//!
//! Latency: a cycle behind the last packet of the turn.
use super::types::CutPacket;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_types::PaceGrant;
use ferroce_proto::abi::qpc::RATE_HEADERS;

/// Counter of the bytes of a turn.
#[derive(Block)]
pub struct TurnBytes {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A packet is cut.
    pub valid: Signal<In, Bit>,
    /// The packet.
    pub packet: Signal<In, CutPacket>,
    /// A turn ended: its queue pair and bytes.
    pub sent: Signal<Out, Valid<PaceGrant>>,

    /// Bytes of the packets before it.
    before: Reg<Bits<17>>,
    ended: Reg<Bit>,
    grant: Dff<PaceGrant>,
}

impl Logic for TurnBytes {
    describe!("reply_turn_bytes", "Counts the bytes of a turn.");

    #[kernel]
    fn update(&mut self) {
        let total = if packet.void {
            before
        } else {
            before + packet.plen.resize::<17>() + RATE_HEADERS
        };
        if valid {
            before = if packet.ends { 0 } else { total };
        }
        ended = valid & packet.ends;
        grant.qpn = packet.qpn;
        grant.bytes = total;
        sent.valid = ended;
        sent.payload = grant;
    }
}

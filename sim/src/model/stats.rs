//! Statistics, by the names of [`STATS`].

use ferroce_proto::abi::regs::STATS;

/// A counter: its place in [`STATS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat(usize);

/// The counter of a name; fails to compile when used in a constant and there is none.
const fn stat(name: &str) -> Stat {
    let mut i = 0;
    while i < STATS.len() {
        if same(STATS[i].as_bytes(), name.as_bytes()) {
            return Stat(i);
        }
        i += 1;
    }
    panic!("no such statistic")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

macro_rules! counters {
    ($($constant:ident $name:literal)*) => { $(pub(super) const $constant: Stat = stat($name);)* };
}

counters! {
    RX_FRAMES "rx_frames"
    RX_BYTES "rx_bytes"
    RX_ROCE_PACKETS "rx_roce_packets"
    RX_ICRC_ERRORS "rx_icrc_errors"
    RX_MALFORMED "rx_malformed"
    RX_NOT_ROCE "rx_not_roce"
    RX_UNKNOWN_QP "rx_unknown_qp"
    RX_QP_STATE "rx_qp_state"
    RX_WRONG_TRANSPORT "rx_wrong_transport"
    RX_PKEY_VIOLATIONS "rx_pkey_violations"
    RX_WRONG_ADDRESS "rx_wrong_address"
    RX_QKEY_VIOLATIONS "rx_qkey_violations"
    RX_WRITE_REQUESTS "rx_write_requests"
    RX_SEND_REQUESTS "rx_send_requests"
    RX_READ_REQUESTS "rx_read_requests"
    RX_ATOMIC_REQUESTS "rx_atomic_requests"
    OUT_OF_SEQUENCE "out_of_sequence"
    DUPLICATE_REQUEST "duplicate_request"
    RNR_NAK_SENT "rnr_nak_sent"
    INVALID_REQUEST_ERRORS "invalid_request_errors"
    ACCESS_ERRORS "access_errors"
    OPERATIONAL_ERRORS "operational_errors"
    RX_ACKS "rx_acks"
    RX_GHOST_ACKS "rx_ghost_acks"
    PACKET_SEQ_ERR "packet_seq_err"
    IMPLIED_NAK_SEQ_ERR "implied_nak_seq_err"
    RNR_NAK_RECEIVED "rnr_nak_received"
    REMOTE_ERRORS "remote_errors"
    LOCAL_ACK_TIMEOUT_ERR "local_ack_timeout_err"
    RETRY_EXCEEDED_ERR "retry_exceeded_err"
    RNR_NAK_RETRY_ERR "rnr_nak_retry_err"
    RETRANSMISSIONS "retransmissions"
    TX_FRAMES "tx_frames"
    TX_BYTES "tx_bytes"
    TX_ROCE_PACKETS "tx_roce_packets"
    TX_ACKS "tx_acks"
    CQ_OVERFLOWS "cq_overflows"
    COMMANDS "commands"
    COMMAND_ERRORS "command_errors"
    RX_EXCEPTIONS "rx_exceptions"
    RX_EXCEPTION_DROPS "rx_exception_drops"
    TX_EXCEPTIONS "tx_exceptions"
}

/// The counters.
#[derive(Clone)]
pub(super) struct Stats {
    counters: [u64; STATS.len()],
    /// High half of the counter whose low half was read last.
    latch: u32,
}

impl Stats {
    pub(super) const fn new() -> Self {
        Self {
            counters: [0; STATS.len()],
            latch: 0,
        }
    }

    pub(super) fn count(&mut self, stat: Stat) {
        self.add(stat, 1);
    }

    pub(super) fn add(&mut self, stat: Stat, n: u64) {
        self.counters[stat.0] = self.counters[stat.0].wrapping_add(n);
    }

    /// Value of 32-bit word `word` of the statistics page.
    pub(super) fn read32(&mut self, word: usize) -> u32 {
        let Some(&counter) = self.counters.get(word / 2) else {
            return 0;
        };
        if word % 2 == 1 {
            return self.latch;
        }
        self.latch = (counter >> 32) as u32;
        counter as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_half_latches_the_high_half() {
        let mut s = Stats::new();
        s.add(RX_BYTES, 0x1_ffff_ffff);
        assert_eq!(s.read32(2), 0xffff_ffff);
        s.count(RX_BYTES);
        assert_eq!(s.read32(3), 1, "as it was when the low half was read");
        assert_eq!((s.read32(2), s.read32(3)), (0, 2));
        assert_eq!(s.read32(2 * STATS.len()), 0);
    }
}

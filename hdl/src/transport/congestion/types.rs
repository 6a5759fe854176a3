//! Events and results of congestion control, and what DCQCN remembers.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

/// What happened to a queue pair.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum CongestionEventKind {
    /// Nothing.
    None,
    /// A CNP came.
    Cnp,
    /// `bytes` were granted to it.
    Sent,
    /// `bytes` were acknowledged, after a round trip of `rtt`.
    Ack,
    /// A NAK for a PSN sequence error came.
    Nak,
    /// The ACK timer ran out.
    Timeout,
    /// It starts afresh: nothing is remembered.
    Reset,
}

payload! {
    /// An event of a queue pair. Fields that a kind does not name are ignored.
    CongestionEvent {
        /// What it is.
        kind: CongestionEventKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Sent, Ack: bytes.
        bytes: Bits<24>,
        /// Ack: round trip, in cycles.
        rtt: Bits<24>,
        /// Reset: path MTU, IB code, if the algorithm is chosen; 0: it is not.
        packet: Bits<3>,
    }

    /// What a queue pair may do from now on.
    RateUpdate {
        /// Queue pair.
        qpn: Bits<16>,
        /// It is paced; else it sends with the rate of the line.
        limited: Bit,
        /// Rate, Mb/s.
        rate: Bits<20>,
        /// PSNs that may be outstanding; 0: any number.
        window: Bits<16>,
    }

    /// Parameters of DCQCN, named and counted as mlx5 does. Values beyond the ranges of docs/congestion.md are not looked for here.
    DcqcnParams {
        /// A decrease always takes the target down to the rate.
        clamp_tgt_rate: Bit,
        /// So does one behind an increase by time.
        clamp_tgt_rate_after_time_inc: Bit,
        /// Microseconds between increases by time.
        rpg_time_reset: Bits<17>,
        /// 64 bytes between increases by bytes; 0: there are none.
        rpg_byte_reset: Bits<18>,
        /// Increases of fast recovery.
        rpg_threshold: Bits<5>,
        /// Highest rate, Mb/s; 0: `line_rate`.
        rpg_max_rate: Bits<20>,
        /// Step of an additive increase, Mb/s.
        rpg_ai_rate: Bits<20>,
        /// Step of a hyper increase, Mb/s.
        rpg_hai_rate: Bits<20>,
        /// A decrease takes off rate * alpha >> `rpg_gd`, alpha in 1/1024.
        rpg_gd: Bits<4>,
        /// What a decrease leaves at least, percent.
        rpg_min_dec_fac: Bits<7>,
        /// Lowest rate, Mb/s.
        rpg_min_rate: Bits<20>,
        /// Rate behind the first CNP, Mb/s; 0: as it was.
        rate_to_set_on_first_cnp: Bits<20>,
        /// What a tick leaves of alpha, 1/1024.
        dce_tcp_g: Bits<10>,
        /// Microseconds between ticks of alpha.
        dce_tcp_rtt: Bits<17>,
        /// Microseconds between decreases; 0: one at each CNP.
        rate_reduce_monitor_period: Bits<17>,
        /// Alpha at the first CNP, 1/1024.
        initial_alpha_value: Bits<10>,
        /// A tick of alpha comes before a decrease of the same time.
        alpha_first: Bit,
        /// Alpha is in whole 1/1024, each tick rounded down; else in 1/65536.
        alpha_whole: Bit,
        /// Rate of the line, Mb/s.
        line_rate: Bits<20>,
    }

    /// What DCQCN remembers of a queue pair. Times are microseconds modulo 2^20.
    DcqcnState {
        /// A CNP came.
        active: Bit,
        /// Current rate, Mb/s.
        rate: Bits<20>,
        /// Target rate, Mb/s.
        target: Bits<20>,
        /// Alpha behind its last rise, 1/65536.
        alpha: Bits<16>,
        /// Ticks of alpha since, up to 16383.
        alpha_ticks: Bits<14>,
        /// A CNP came since the last tick of alpha.
        alpha_cnp: Bit,
        /// A CNP came in this monitor period.
        decrease_cnp: Bit,
        /// Increases by time since the last decrease, up to 63.
        time_stage: Bits<6>,
        /// Increases by bytes since then, up to 63.
        byte_stage: Bits<6>,
        /// Bytes since the last of these.
        byte_count: Bits<24>,
        /// Next tick of alpha.
        alpha_at: Bits<20>,
        /// End of the monitor period.
        decrease_at: Bits<20>,
        /// Next increase by time.
        increase_at: Bits<20>,
    }

    /// A queue pair was looked at.
    DcqcnLook {
        /// Queue pair.
        qpn: Bits<16>,
        /// On a visit; else an event came.
        visit: Bit,
        /// When, microseconds modulo 2^20.
        at: Bits<20>,
        /// What is remembered now.
        state: DcqcnState,
    }
}

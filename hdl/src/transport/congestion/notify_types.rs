//! Types of the notification point.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// What the host says of CNPs to send (`ferroce_proto::abi::regs`).
    NotifySetup {
        /// Microseconds between two of a queue pair at least.
        min_time: Bits<16>,
        /// Their DSCP.
        dscp: Bits<6>,
        /// Their PCP.
        prio: Bits<3>,
        /// They are sent.
        enable: Bit,
    }

    /// A CNP came, or a marked packet that is none (`rx_check` to `notify`).
    Notice {
        /// Queue pair.
        qpn: Bits<16>,
        /// It is a CNP.
        cnp: Bit,
        /// It fits the image of the queue pair, which is one of a connection: transport, partition, addresses. Of what is no CNP always 1.
        of_peer: Bit,
    }

    /// Counter pulses, named as `ferroce_proto::abi::regs::STATS`.
    NotifyCounts {
        /// Of `np_ecn_marked_roce_packets`.
        marked: Bit,
        /// Of `rp_cnp_handled`.
        handled: Bit,
        /// Of `rp_cnp_ignored`.
        ignored: Bit,
    }

    /// When a queue pair was last given a CNP.
    LatestCnp {
        /// Cycles, modulo 2^25.
        at: Bits<25>,
        /// It was, and `at` has not come round since.
        valid: Bit,
    }
}

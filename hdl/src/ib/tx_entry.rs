//! Which packet enters the header builder next: a CNP before all descriptors, else a lane with room, in turns.
//!
//! A descriptor enters only when there is room behind the pipeline, which therefore never stalls; of CNPs there is one at a
//! time. A packet a cycle.
use ferroce_proto::wire::Opcode;

use super::tx_types::TxSlot;
use crate::bus::types::{Activity, TxDesc};
use crate::cell::count::one_less;
use crate::prelude::*;

/// Lanes: requests, responses.
pub const LANES: usize = 2;
/// Descriptors that may be between `s` and `left` for one more to enter; two more may before the count shows.
const MOST: u64 = 29;
/// CNPs that are here, or made (`transport/congestion/notify`).
const CNPS: u64 = 18;
const CNP: u64 = Opcode::Cnp.code() as u64;

/// Entry of [`header_tx`](super::header_tx).
#[derive(Clone, Debug, Block)]
pub struct TxEntry {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets, by lane.
    pub s: [StreamIn<TxDesc>; LANES],
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamIn<Bits<16>>,
    /// The headers of a packet leave, by lane.
    pub left: [Signal<In, Bit>; LANES],
    /// Those of a CNP leave.
    pub cnp_left: Signal<In, Bit>,
    /// The packet that entered in the cycle before.
    pub desc: Signal<Out, TxDesc>,
    /// Whether there was one, and where it belongs.
    pub slot: Signal<Out, TxSlot>,
    /// Packets between `s` and `left`.
    pub activity: [Signal<Out, Activity>; LANES],
    /// CNPs between `cnp` and `cnp_left`.
    pub cnp_activity: Signal<Out, Activity>,
    arbiter: Arbiter<LANES>,
    used: [Reg<Bits<6>>; LANES],
    room: [Reg<Bit>; LANES],
    entered: [Signal<Local, Bit>; LANES],
    desc_q: Dff<TxDesc>,
    slot_q: Reg<TxSlot>,
    /// A CNP is under way.
    cnp_busy: Reg<Bit>,
    no_desc: Zero<TxDesc>,
}

impl Logic for TxEntry {
    describe!(
        "header_tx_entry",
        "Which packet enters the header builder next."
    );

    #[kernel]
    fn update(&mut self) {
        let mut requests: Bits<LANES> = bits::<LANES>(0);
        for i in 0..LANES {
            requests = requests.replace_bit(i, s[i].valid & room[i]);
        }
        let enters_cnp = cnp.valid & !cnp_busy;
        cnp.ready = !cnp_busy;
        arbiter.request = requests;
        arbiter.take = !enters_cnp;
        for i in 0..LANES {
            s[i].ready = arbiter.grant.bit(i) & !enters_cnp;
            entered[i] = arbiter.grant.bit(i) & !enters_cnp;
            if entered[i] & !left[i] {
                used[i] = used[i] + 1;
            } else if !entered[i] & left[i] {
                used[i] = one_less(used[i]);
            }
            room[i] = used[i] < MOST;
            activity[i].busy = used[i].any();
            activity[i].moved = left[i];
            activity[i].level = used[i].resize::<16>();
        }
        if cnp_left {
            cnp_busy = false;
        }
        if enters_cnp {
            cnp_busy = true;
        }
        cnp_activity.busy = cnp_busy;
        cnp_activity.moved = cnp_left;
        cnp_activity.level = CNPS;

        slot_q.valid = requests.any() | enters_cnp;
        slot_q.lane = arbiter.grant.bit(1);
        slot_q.bare = enters_cnp;
        let mut packet = if arbiter.grant.bit(1) {
            s[1].payload
        } else {
            s[0].payload
        };
        if enters_cnp {
            packet = no_desc;
            packet.qpn = cnp.payload;
            packet.opcode = bits::<8>(CNP);
        }
        desc_q = packet;
        desc = desc_q;
        slot = slot_q;
    }
}

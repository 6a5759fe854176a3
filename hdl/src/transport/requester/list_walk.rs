//! Walks the payload of the part of a message that was granted: gather entries in, runs of bytes out.
//!
//! An entry a cycle: the first two come with the WQE, the others from the entry table. Entries before the part are passed
//! over, those without bytes left out; the runs end with the one that holds the last byte of the part, so the runs of a
//! part add up to its bytes. A part without payload has one run of 0 bytes. The next part follows without pause.
//!
//! ```text
//!  WQE, grant ─► offset (1) ─► entry (2) ─► pass over (3) ─► clip (4) ─► m
//! ```
//!
//! Latency: 4 cycles; of a part that is a whole message of one run one cycle, as it goes past the stages when these are
//! empty. Throughput: an entry a cycle.
use super::send_types::{CheckedWqe, GrantedWqe, SendEntry, SendRun};
use crate::prelude::*;

/// The walker, with its table of 32 * 16 entries.
#[derive(Block)]
pub struct ListWalk {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Writes `entry` into the table.
    pub entry_we: Signal<In, Bit>,
    /// Where: 16 * `tag` + number.
    pub entry_at: Signal<In, Bits<9>>,
    /// The entry.
    pub entry: Signal<In, SendEntry>,
    /// Parts to be walked.
    pub s: StreamIn<GrantedWqe>,
    /// Runs.
    pub m: StreamOut<SendRun>,
    /// The run's part; the remote address of its WQE is that of the part.
    pub m_part: Signal<Out, GrantedWqe>,
    /// Queue pair of the run that `m` has in the next cycle, if it has one.
    pub next_qpn: Signal<Out, Bits<16>>,
    /// A part is inside.
    pub busy: Signal<Out, Bit>,
    /// A part has entries in the table that are still to be read.
    pub unread_valid: Signal<Out, Bit>,
    /// Its tag.
    pub unread: Signal<Out, Bits<5>>,

    table: Ram<SendEntry, 9>,

    // stage 1: byte offset and bytes of the part
    valid_1: Reg<Bit>,
    part_1: Dff<GrantedWqe>,
    offset_1: Dff<Bits<32>>,
    len_1: Dff<Bits<32>>,
    number_1: Dff<Bits<4>>,
    // stage 2: entry
    valid_2: Reg<Bit>,
    first_2: Dff<Bit>,
    entry_2: Dff<SendEntry>,
    part_2: Dff<GrantedWqe>,
    len_2: Dff<Bits<32>>,
    left_2: Dff<Bits<32>>,
    /// Bytes of the offset behind the entries before.
    skip: Dff<Bits<32>>,
    // stage 3: entries before the part have no bytes
    valid_3: Reg<Bit>,
    first_3: Dff<Bit>,
    entry_3: Dff<SendEntry>,
    over_3: Dff<Bits<32>>,
    part_3: Dff<GrantedWqe>,
    left_3: Dff<Bits<32>>,
    plen_3: Dff<Bits<13>>,
    /// Bytes of the part from the entry on.
    part_left: Dff<Bits<32>>,
    closed: Reg<Bit>,
    /// The entry in stage 4 is the first of its part, or none before it had a run.
    opening: Reg<Bit>,
    // stage 4: run
    valid_4: Reg<Bit>,
    /// The entry has a run; known late, so nothing but this register looks at it before the next cycle.
    kept_4: Dff<Bit>,
    run_4: Dff<SendRun>,
    part_4: Dff<GrantedWqe>,
}

/// Payload of the first of the packets that have `left` bytes; a READ or atomic has none.
#[kernel_fn]
fn first_plen(wqe: CheckedWqe, left: Bits<32>) -> Bits<13> {
    let mtu = bits::<32>(128) << wqe.mtu;
    let plen: Bits<13> = if wqe.answered {
        0
    } else if left < mtu {
        left.low::<13>()
    } else {
        mtu.low::<13>()
    };
    plen
}

impl Logic for ListWalk {
    describe!(
        "list_walk",
        "Walks the gather list of the part of a message that is sent."
    );

    #[kernel]
    fn update(&mut self) {
        let wqe = s.payload.wqe;
        let grant = s.payload.grant;
        let has_4 = valid_4 & kept_4;
        let free_4 = !has_4 | m.ready;
        let go_3 = valid_3 & free_4;
        let go_2 = valid_2 & (!valid_3 | go_3);
        let go_1 = valid_1 & (!valid_2 | go_2);
        let end_1 = number_1 == part_1.wqe.entries;
        s.ready = !valid_1 | (go_1 & end_1);
        let accept = s.valid & (!valid_1 | (go_1 & end_1));

        // These are empty.
        let clear = !(valid_1 | valid_2 | valid_3);
        let whole = !grant.offset.any() & (wqe.answered | (grant.final_part & !wqe.entries.any()));
        // The part goes past the stages.
        let straight = s.valid & clear & whole & free_4;

        table.we = entry_we;
        table.waddr = entry_at;
        table.wdata = entry;
        // 1: what of a READ or atomic goes out has no payload
        let number_next = if go_1 { number_1 + 1 } else { number_1 };
        if go_1 & end_1 {
            valid_1 = false;
        }
        number_1 = number_next;
        if accept {
            valid_1 = !straight;
            number_1 = 0;
            part_1 = s.payload;
            offset_1 = (grant.offset.resize::<32>() << 7) << wqe.mtu;
            len_1 = (grant.count.resize::<32>() << 7) << wqe.mtu;
            if wqe.answered {
                len_1 = 0;
            }
        }
        table.re = true;
        table.raddr = (part_1.wqe.tag.resize::<9>() << 4) | number_next.resize::<9>();

        // 2: the entry; a part that goes on from the middle is at a remote address further on
        valid_2 = go_1 | (valid_2 & !go_2);
        if go_1 {
            first_2 = number_1 == 0;
            entry_2 = table.rdata;
            if number_1 == 0 {
                entry_2.addr = part_1.wqe.addr_0;
                entry_2.len = part_1.wqe.len_0;
                part_2 = part_1;
                part_2.wqe.remote_addr = part_1.wqe.remote_addr + offset_1.resize::<64>();
                len_2 = len_1;
                left_2 = part_1.wqe.length - offset_1;
            } else if number_1 == 1 {
                entry_2.addr = part_1.wqe.addr_1;
                entry_2.len = part_1.wqe.word_1.low::<32>();
            }
        }

        // 3: what is left of the offset passes over whole entries
        // Of these, bytes behind this entry; bit 32: it has more bytes.
        let skipped = skip.resize::<33>() - entry_2.len.resize::<33>();
        let plen_2 = first_plen(part_2.wqe, left_2);
        valid_3 = go_2 | (valid_3 & !go_3);
        if go_2 {
            first_3 = first_2;
            entry_3 = entry_2;
            over_3 = skip;
            if skipped.bit(32) {
                entry_3.len = entry_2.len - skip;
                skip = 0;
            } else {
                entry_3.len = 0;
                skip = skipped.resize::<32>();
            }
            if first_2 {
                part_3 = part_2;
                left_3 = left_2;
                plen_3 = plen_2;
            }
        }

        // no entry of the part before is in stage 2 any more when the first of a part comes there
        if go_1 & (number_1 == 0) {
            skip = offset_1;
        }

        // 4: until the part has its bytes
        let open = !closed | first_3;
        let enough = entry_3.len >= part_left;
        // None of the entries before had a run.
        let leads = first_3 | (opening & !kept_4);
        if m.ready {
            valid_4 = false;
        }
        if go_3 {
            valid_4 = true;
            kept_4 = open & (enough | entry_3.len.any());
            closed = !open | enough;
            part_left -= entry_3.len;
            opening = leads;
            run_4 = SendRun {
                addr: entry_3.addr + over_3.resize::<64>(),
                len: if enough { part_left } else { entry_3.len },
                first: leads,
                last: enough,
                left: left_3,
                plen: plen_3,
            };
            if first_3 {
                part_4 = part_3;
            }
        }

        // nor in stage 3 when it comes there
        if go_2 & first_2 {
            part_left = if left_2 < len_2 { left_2 } else { len_2 };
        }

        // past the stages: all of one entry, from its start
        let plen_0 = first_plen(wqe, wqe.length);
        if straight {
            valid_4 = true;
            kept_4 = true;
            part_4 = s.payload;
            run_4 = SendRun {
                addr: wqe.addr_0,
                len: if wqe.answered { 0 } else { wqe.length },
                first: true,
                last: true,
                left: wqe.length,
                plen: plen_0,
            };
        }
        m.valid = has_4;
        m.payload = run_4;
        m_part = part_4;
        next_qpn = part_4.wqe.qpn;
        if go_3 & first_3 {
            next_qpn = part_3.wqe.qpn;
        }
        if straight {
            next_qpn = wqe.qpn;
        }
        unread_valid = valid_1;
        unread = part_1.wqe.tag;
        let spoils = entry_we & valid_1 & (entry_at.slice::<5>(4) == part_1.wqe.tag);
        assert!(!spoils, "an entry is written over that is still to be read");
        busy = valid_1 | valid_2 | valid_3 | has_4;
    }
}

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
use super::event::{CheckedWqe, StartGrant};
use super::send_types::{SendEntry, SendRun};
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
    /// A part is to be walked.
    pub s_valid: Signal<In, Bit>,
    /// Its WQE.
    pub s_wqe: Signal<In, CheckedWqe>,
    /// Its grant.
    pub s_grant: Signal<In, StartGrant>,
    /// It is taken.
    pub s_ready: Signal<Out, Bit>,
    /// Runs.
    pub m: StreamOut<SendRun>,
    /// WQE of the run's part; its remote address that of the part.
    pub m_wqe: Signal<Out, CheckedWqe>,
    /// Grant of the run's part.
    pub m_grant: Signal<Out, StartGrant>,
    /// Queue pair of the run that `m` has in the next cycle, if it has one.
    pub next_qpn: Signal<Out, Bits<16>>,
    /// A part is inside.
    pub busy: Signal<Out, Bit>,

    table: Ram<SendEntry, 9>,

    // stage 1: byte offset and bytes of the part
    valid_1: Reg<Bit>,
    wqe_1: Dff<CheckedWqe>,
    grant_1: Dff<StartGrant>,
    offset_1: Dff<Bits<32>>,
    part_1: Dff<Bits<32>>,
    number_1: Dff<Bits<4>>,
    // stage 2: entry
    valid_2: Reg<Bit>,
    first_2: Dff<Bit>,
    entry_2: Dff<SendEntry>,
    wqe_2: Dff<CheckedWqe>,
    grant_2: Dff<StartGrant>,
    part_2: Dff<Bits<32>>,
    left_2: Dff<Bits<32>>,
    /// Bytes of the offset behind the entries before.
    skip: Dff<Bits<32>>,
    // stage 3: entries before the part have no bytes
    valid_3: Reg<Bit>,
    first_3: Dff<Bit>,
    entry_3: Dff<SendEntry>,
    over_3: Dff<Bits<32>>,
    wqe_3: Dff<CheckedWqe>,
    grant_3: Dff<StartGrant>,
    left_3: Dff<Bits<32>>,
    plen_3: Dff<Bits<13>>,
    /// Bytes of the part from the entry on.
    rest: Dff<Bits<32>>,
    closed: Reg<Bit>,
    /// The entry in stage 4 is the first of its part, or none before it had a run.
    opening: Reg<Bit>,
    // stage 4: run
    valid_4: Reg<Bit>,
    /// The entry has a run; known late, so nothing but this register looks at it before the next cycle.
    kept_4: Dff<Bit>,
    run_4: Dff<SendRun>,
    wqe_4: Dff<CheckedWqe>,
    grant_4: Dff<StartGrant>,
}

impl Logic for ListWalk {
    describe!(
        "list_walk",
        "Walks the gather list of the part of a message that is sent."
    );

    #[kernel]
    fn update(&mut self) {
        let has_4 = valid_4 & kept_4;
        let free_4 = !has_4 | m.ready;
        let go_3 = valid_3 & free_4;
        let go_2 = valid_2 & (!valid_3 | go_3);
        let go_1 = valid_1 & (!valid_2 | go_2);
        let end_1 = number_1 == wqe_1.entries;
        s_ready = !valid_1 | (go_1 & end_1);
        let accept = s_valid & (!valid_1 | (go_1 & end_1));

        // These are empty.
        let clear = !(valid_1 | valid_2 | valid_3);
        let whole =
            !s_grant.offset.any() & (s_wqe.answered | (s_grant.final_part & !s_wqe.entries.any()));
        // The part goes past the stages.
        let straight = s_valid & clear & whole & free_4;

        table.we = entry_we;
        table.waddr = entry_at;
        table.wdata = entry;

        // 1: what of a READ or atomic goes out has no payload
        let mut number_next = number_1;
        if go_1 {
            number_next = number_1 + 1;
            if end_1 {
                valid_1 = false;
            }
        }
        number_1 = number_next;
        if accept {
            valid_1 = !straight;
            number_1 = bits::<4>(0);
            wqe_1 = s_wqe;
            grant_1 = s_grant;
            offset_1 = (s_grant.offset.resize::<32>() << 7) << s_wqe.mtu;
            part_1 = (s_grant.count.resize::<32>() << 7) << s_wqe.mtu;
            if s_wqe.answered {
                wqe_1.entries = bits::<4>(0);
                part_1 = bits::<32>(0);
            }
        }
        table.re = true;
        table.raddr = (wqe_1.tag.resize::<9>() << 4) | number_next.resize::<9>();

        // 2: the entry; a part that goes on from the middle is at a remote address further on
        if go_2 {
            valid_2 = false;
        }
        if go_1 {
            valid_2 = true;
            first_2 = number_1 == 0;
            entry_2 = table.rdata;
            if number_1 == 0 {
                entry_2.addr = wqe_1.addr_0;
                entry_2.len = wqe_1.len_0;
                wqe_2 = wqe_1;
                wqe_2.remote_addr = wqe_1.remote_addr + offset_1.resize::<64>();
                grant_2 = grant_1;
                part_2 = part_1;
                left_2 = wqe_1.length - offset_1;
            } else if number_1 == 1 {
                entry_2.addr = wqe_1.addr_1;
                entry_2.len = wqe_1.word_1.low::<32>();
            }
        }

        // 3: what is left of the offset passes over whole entries
        // Of these, bytes behind this entry; bit 32: it has more bytes.
        let skipped = skip.resize::<33>() - entry_2.len.resize::<33>();
        let mtu = bits::<32>(128) << wqe_2.mtu;
        if go_3 {
            valid_3 = false;
        }
        if go_2 {
            valid_3 = true;
            first_3 = first_2;
            entry_3 = entry_2;
            over_3 = skip;
            if skipped.bit(32) {
                entry_3.len = entry_2.len - skip;
                skip = bits::<32>(0);
            } else {
                entry_3.len = bits::<32>(0);
                skip = skipped.resize::<32>();
            }
            if first_2 {
                wqe_3 = wqe_2;
                grant_3 = grant_2;
                left_3 = left_2;
                plen_3 = mtu.low::<13>();
                if left_2 < mtu {
                    plen_3 = left_2.low::<13>();
                }
                if wqe_2.answered {
                    plen_3 = bits::<13>(0);
                }
            }
        }

        // no entry of the part before is in stage 2 any more when the first of a part comes there
        if go_1 & (number_1 == 0) {
            skip = offset_1;
        }

        // 4: until the part has its bytes
        let open = !closed | first_3;
        let enough = entry_3.len >= rest;
        // None of the entries before had a run.
        let lead = opening & !kept_4;
        let keep = open & (enough | entry_3.len.any());
        if m.ready {
            valid_4 = false;
        }
        if go_3 {
            valid_4 = true;
            kept_4 = keep;
            closed = !open | enough;
            rest = rest - entry_3.len;
            opening = first_3 | lead;
            run_4.addr = entry_3.addr + over_3.resize::<64>();
            run_4.len = entry_3.len;
            if enough {
                run_4.len = rest;
            }
            run_4.first = first_3 | lead;
            run_4.last = enough;
            run_4.left = left_3;
            run_4.plen = plen_3;
            if first_3 {
                wqe_4 = wqe_3;
                grant_4 = grant_3;
            }
        }

        // nor in stage 3 when it comes there
        if go_2 & first_2 {
            rest = part_2;
            if left_2 < part_2 {
                rest = left_2;
            }
        }

        // past the stages: all of one entry, from its start
        let mtu_0 = bits::<32>(128) << s_wqe.mtu;
        if straight {
            valid_4 = true;
            kept_4 = true;
            wqe_4 = s_wqe;
            grant_4 = s_grant;
            run_4.addr = s_wqe.addr_0;
            run_4.len = s_wqe.length;
            run_4.first = true;
            run_4.last = true;
            run_4.left = s_wqe.length;
            run_4.plen = mtu_0.low::<13>();
            if s_wqe.length < mtu_0 {
                run_4.plen = s_wqe.length.low::<13>();
            }
            if s_wqe.answered {
                wqe_4.entries = bits::<4>(0);
                run_4.len = bits::<32>(0);
                run_4.plen = bits::<13>(0);
            }
        }
        m.valid = has_4;
        m.payload = run_4;
        m_wqe = wqe_4;
        m_grant = grant_4;
        next_qpn = wqe_4.qpn;
        if go_3 & first_3 {
            next_qpn = wqe_3.qpn;
        }
        if straight {
            next_qpn = s_wqe.qpn;
        }
        busy = valid_1 | valid_2 | valid_3 | has_4;
    }
}

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
#[derive(LogicBlock, Default)]
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
    pub coming_qpn: Signal<Out, Bits<16>>,
    /// A part is inside.
    pub busy: Signal<Out, Bit>,

    table: Ram<SendEntry, 9>,
    accept: Signal<Local, Bit>,
    /// The part goes past the stages.
    straight: Signal<Local, Bit>,
    /// These are empty.
    clear: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    mtu_0: Signal<Local, Bits<32>>,

    // stage 1: byte offset and bytes of the part
    valid_1: Reg<Bit>,
    wqe_1: Dff<CheckedWqe>,
    grant_1: Dff<StartGrant>,
    offset_1: Dff<Bits<32>>,
    part_1: Dff<Bits<32>>,
    number_1: Dff<Bits<4>>,
    number_next: Signal<Local, Bits<4>>,
    end_1: Signal<Local, Bit>,
    go_1: Signal<Local, Bit>,
    // stage 2: entry
    valid_2: Reg<Bit>,
    first_2: Dff<Bit>,
    entry_2: Dff<SendEntry>,
    wqe_2: Dff<CheckedWqe>,
    grant_2: Dff<StartGrant>,
    part_2: Dff<Bits<32>>,
    left_2: Dff<Bits<32>>,
    go_2: Signal<Local, Bit>,
    /// Bytes of the offset behind the entries before.
    skip: Dff<Bits<32>>,
    /// Of these, bytes behind this entry; bit 32: it has more bytes.
    skipped: Signal<Local, Bits<33>>,
    mtu: Signal<Local, Bits<32>>,
    // stage 3: entries before the part have no bytes
    valid_3: Reg<Bit>,
    first_3: Dff<Bit>,
    entry_3: Dff<SendEntry>,
    over_3: Dff<Bits<32>>,
    wqe_3: Dff<CheckedWqe>,
    grant_3: Dff<StartGrant>,
    left_3: Dff<Bits<32>>,
    plen_3: Dff<Bits<13>>,
    go_3: Signal<Local, Bit>,
    /// Bytes of the part from the entry on.
    rest: Dff<Bits<32>>,
    closed: Reg<Bit>,
    /// The entry in stage 4 is the first of its part, or none before it had a run.
    opening: Reg<Bit>,
    /// None of the entries before had a run.
    lead: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    keep: Signal<Local, Bit>,
    // stage 4: run
    valid_4: Reg<Bit>,
    /// The entry has a run; known late, so nothing but this register looks at it before the next cycle.
    kept_4: Dff<Bit>,
    has_4: Signal<Local, Bit>,
    free_4: Signal<Local, Bit>,
    run_4: Dff<SendRun>,
    wqe_4: Dff<CheckedWqe>,
    grant_4: Dff<StartGrant>,
}

impl Logic for ListWalk {
    describe!(
        "list_walk",
        "Walks the gather list of the part of a message that is sent."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table);
        dff_setup!(
            self, clock, valid_1, wqe_1, grant_1, offset_1, part_1, number_1, valid_2
        );
        dff_setup!(
            self, clock, first_2, entry_2, wqe_2, grant_2, part_2, left_2, skip
        );
        dff_setup!(
            self, clock, valid_3, first_3, entry_3, over_3, wqe_3, grant_3, left_3
        );
        dff_setup!(
            self, clock, plen_3, rest, closed, opening, valid_4, kept_4, run_4, wqe_4, grant_4
        );

        self.has_4.next = self.valid_4.q.val() & self.kept_4.q.val();
        self.free_4.next = !self.has_4.val() | self.m.ready.val();
        self.go_3.next = self.valid_3.q.val() & self.free_4.val();
        self.go_2.next = self.valid_2.q.val() & (!self.valid_3.q.val() | self.go_3.val());
        self.go_1.next = self.valid_1.q.val() & (!self.valid_2.q.val() | self.go_2.val());
        self.end_1.next = self.number_1.q.val() == self.wqe_1.q.val().entries;
        self.s_ready.next = !self.valid_1.q.val() | (self.go_1.val() & self.end_1.val());
        self.accept.next =
            self.s_valid.val() & (!self.valid_1.q.val() | (self.go_1.val() & self.end_1.val()));

        self.clear.next = !(self.valid_1.q.val() | self.valid_2.q.val() | self.valid_3.q.val());
        self.whole.next = !self.s_grant.val().offset.any()
            & (self.s_wqe.val().answered
                | (self.s_grant.val().final_part & !self.s_wqe.val().entries.any()));
        self.straight.next =
            self.s_valid.val() & self.clear.val() & self.whole.val() & self.free_4.val();

        self.table.we.next = self.entry_we.val();
        self.table.waddr.next = self.entry_at.val();
        self.table.wdata.next = self.entry.val();

        // 1: what of a READ or atomic goes out has no payload
        self.number_next.next = self.number_1.q.val();
        if self.go_1.val() {
            self.number_next.next = self.number_1.q.val() + 1;
            if self.end_1.val() {
                self.valid_1.d.next = false;
            }
        }
        self.number_1.d.next = self.number_next.val();
        if self.accept.val() {
            self.valid_1.d.next = !self.straight.val();
            self.number_1.d.next = bits::<4>(0);
            self.wqe_1.d.next = self.s_wqe.val();
            self.grant_1.d.next = self.s_grant.val();
            self.offset_1.d.next =
                (bit_cast::<32, 24>(self.s_grant.val().offset) << 7) << self.s_wqe.val().mtu;
            self.part_1.d.next =
                (bit_cast::<32, 8>(self.s_grant.val().count) << 7) << self.s_wqe.val().mtu;
            if self.s_wqe.val().answered {
                self.wqe_1.d.next.entries = bits::<4>(0);
                self.part_1.d.next = bits::<32>(0);
            }
        }
        self.table.re.next = true;
        self.table.raddr.next = (bit_cast::<9, 5>(self.wqe_1.q.val().tag) << 4)
            | bit_cast::<9, 4>(self.number_next.val());

        // 2: the entry; a part that goes on from the middle is at a remote address further on
        if self.go_2.val() {
            self.valid_2.d.next = false;
        }
        if self.go_1.val() {
            self.valid_2.d.next = true;
            self.first_2.d.next = self.number_1.q.val() == 0;
            self.entry_2.d.next = self.table.rdata.val();
            if self.number_1.q.val() == 0 {
                self.entry_2.d.next.addr = self.wqe_1.q.val().addr_0;
                self.entry_2.d.next.len = self.wqe_1.q.val().len_0;
                self.wqe_2.d.next = self.wqe_1.q.val();
                self.wqe_2.d.next.remote_addr =
                    self.wqe_1.q.val().remote_addr + bit_cast::<64, 32>(self.offset_1.q.val());
                self.grant_2.d.next = self.grant_1.q.val();
                self.part_2.d.next = self.part_1.q.val();
                self.left_2.d.next = self.wqe_1.q.val().length - self.offset_1.q.val();
            } else if self.number_1.q.val() == 1 {
                self.entry_2.d.next.addr = self.wqe_1.q.val().addr_1;
                self.entry_2.d.next.len = self.wqe_1.q.val().word_1.get_bits::<32>(0);
            }
        }

        // 3: what is left of the offset passes over whole entries
        self.skipped.next =
            bit_cast::<33, 32>(self.skip.q.val()) - bit_cast::<33, 32>(self.entry_2.q.val().len);
        self.mtu.next = bits::<32>(128) << self.wqe_2.q.val().mtu;
        if self.go_3.val() {
            self.valid_3.d.next = false;
        }
        if self.go_2.val() {
            self.valid_3.d.next = true;
            self.first_3.d.next = self.first_2.q.val();
            self.entry_3.d.next = self.entry_2.q.val();
            self.over_3.d.next = self.skip.q.val();
            if self.skipped.val().get_bit(32) {
                self.entry_3.d.next.len = self.entry_2.q.val().len - self.skip.q.val();
                self.skip.d.next = bits::<32>(0);
            } else {
                self.entry_3.d.next.len = bits::<32>(0);
                self.skip.d.next = bit_cast::<32, 33>(self.skipped.val());
            }
            if self.first_2.q.val() {
                self.wqe_3.d.next = self.wqe_2.q.val();
                self.grant_3.d.next = self.grant_2.q.val();
                self.left_3.d.next = self.left_2.q.val();
                self.plen_3.d.next = self.mtu.val().get_bits::<13>(0);
                if self.left_2.q.val() < self.mtu.val() {
                    self.plen_3.d.next = self.left_2.q.val().get_bits::<13>(0);
                }
                if self.wqe_2.q.val().answered {
                    self.plen_3.d.next = bits::<13>(0);
                }
            }
        }

        // no entry of the part before is in stage 2 any more when the first of a part comes there
        if self.go_1.val() & (self.number_1.q.val() == 0) {
            self.skip.d.next = self.offset_1.q.val();
        }

        // 4: until the part has its bytes
        self.open.next = !self.closed.q.val() | self.first_3.q.val();
        self.enough.next = self.entry_3.q.val().len >= self.rest.q.val();
        self.lead.next = self.opening.q.val() & !self.kept_4.q.val();
        self.keep.next = self.open.val() & (self.enough.val() | self.entry_3.q.val().len.any());
        if self.m.ready.val() {
            self.valid_4.d.next = false;
        }
        if self.go_3.val() {
            self.valid_4.d.next = true;
            self.kept_4.d.next = self.keep.val();
            self.closed.d.next = !self.open.val() | self.enough.val();
            self.rest.d.next = self.rest.q.val() - self.entry_3.q.val().len;
            self.opening.d.next = self.first_3.q.val() | self.lead.val();
            self.run_4.d.next.addr =
                self.entry_3.q.val().addr + bit_cast::<64, 32>(self.over_3.q.val());
            self.run_4.d.next.len = self.entry_3.q.val().len;
            if self.enough.val() {
                self.run_4.d.next.len = self.rest.q.val();
            }
            self.run_4.d.next.first = self.first_3.q.val() | self.lead.val();
            self.run_4.d.next.last = self.enough.val();
            self.run_4.d.next.left = self.left_3.q.val();
            self.run_4.d.next.plen = self.plen_3.q.val();
            if self.first_3.q.val() {
                self.wqe_4.d.next = self.wqe_3.q.val();
                self.grant_4.d.next = self.grant_3.q.val();
            }
        }

        // nor in stage 3 when it comes there
        if self.go_2.val() & self.first_2.q.val() {
            self.rest.d.next = self.part_2.q.val();
            if self.left_2.q.val() < self.part_2.q.val() {
                self.rest.d.next = self.left_2.q.val();
            }
        }

        // past the stages: all of one entry, from its start
        self.mtu_0.next = bits::<32>(128) << self.s_wqe.val().mtu;
        if self.straight.val() {
            self.valid_4.d.next = true;
            self.kept_4.d.next = true;
            self.wqe_4.d.next = self.s_wqe.val();
            self.grant_4.d.next = self.s_grant.val();
            self.run_4.d.next.addr = self.s_wqe.val().addr_0;
            self.run_4.d.next.len = self.s_wqe.val().length;
            self.run_4.d.next.first = true;
            self.run_4.d.next.last = true;
            self.run_4.d.next.left = self.s_wqe.val().length;
            self.run_4.d.next.plen = self.mtu_0.val().get_bits::<13>(0);
            if self.s_wqe.val().length < self.mtu_0.val() {
                self.run_4.d.next.plen = self.s_wqe.val().length.get_bits::<13>(0);
            }
            if self.s_wqe.val().answered {
                self.wqe_4.d.next.entries = bits::<4>(0);
                self.run_4.d.next.len = bits::<32>(0);
                self.run_4.d.next.plen = bits::<13>(0);
            }
        }
        self.m.valid.next = self.has_4.val();
        self.m.payload.next = self.run_4.q.val();
        self.m_wqe.next = self.wqe_4.q.val();
        self.m_grant.next = self.grant_4.q.val();
        self.coming_qpn.next = self.wqe_4.q.val().qpn;
        if self.go_3.val() & self.first_3.q.val() {
            self.coming_qpn.next = self.wqe_3.q.val().qpn;
        }
        if self.straight.val() {
            self.coming_qpn.next = self.s_wqe.val().qpn;
        }
        self.busy.next =
            self.valid_1.q.val() | self.valid_2.q.val() | self.valid_3.q.val() | self.has_4.val();
    }
}

//! AXI4-Lite slave: the protocol, for an owner with registers.
//!
//! A write: `write` is 1 with `waddr`, `wdata` and `whole` from the cycle behind the later of address and word until
//! the owner says `wrote`; the response follows in the next cycle. A write every second cycle. One of less than 4 bytes
//! (`whole` is 0) is answered with SLVERR.
//!
//! A read: `read` is 1 with `raddr` from the cycle behind the address until the owner says `found`, with the word in
//! `rdata`; it leaves in the next cycle. One read at a time. Writes and reads do not wait for each other.
use crate::prelude::*;

const SLVERR: u64 = 2;

/// What the read channels are doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum AxilRead {
    /// Wait for an address.
    Idle,
    /// The owner looks it up.
    Look,
    /// Wait for the master to take the word.
    Answer,
}

/// The slave.
#[derive(LogicBlock, Default)]
pub struct AxilSlave {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The bus.
    pub s_axil: AxiLiteIn,
    /// A write is there.
    pub write: Signal<Out, Bit>,
    /// Its byte address.
    pub waddr: Signal<Out, Bits<22>>,
    /// Its word.
    pub wdata: Signal<Out, Bits<32>>,
    /// It is of all 4 bytes.
    pub whole: Signal<Out, Bit>,
    /// The write is done.
    pub wrote: Signal<In, Bit>,
    /// A read is there.
    pub read: Signal<Out, Bit>,
    /// Its byte address.
    pub raddr: Signal<Out, Bits<22>>,
    /// `rdata` is the word read.
    pub found: Signal<In, Bit>,
    /// The word.
    pub rdata: Signal<In, Bits<32>>,

    aw_held: Reg<Bit>,
    aw: Dff<Bits<22>>,
    w_held: Reg<Bit>,
    data: Dff<Bits<32>>,
    strb: Dff<Bits<4>>,
    answered: Reg<Bit>,
    refused: Dff<Bit>,
    reading: Reg<AxilRead>,
    ar: Dff<Bits<22>>,
    word: Dff<Bits<32>>,
}

impl Logic for AxilSlave {
    describe!("axil_slave", "AXI4-Lite slave: the protocol."; SLVERR);

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, aw_held, aw, w_held, data, strb, answered, refused, reading, ar, word
        );

        // writes: address and word may come in any order
        if !self.aw_held.q.val() {
            self.aw_held.d.next = self.s_axil.awvalid.val();
            self.aw.d.next = self.s_axil.awaddr.val();
        }
        if !self.w_held.q.val() {
            self.w_held.d.next = self.s_axil.wvalid.val();
            self.data.d.next = self.s_axil.wdata.val();
            self.strb.d.next = self.s_axil.wstrb.val();
        }
        if self.s_axil.bready.val() {
            self.answered.d.next = false;
        }
        if self.wrote.val() {
            self.aw_held.d.next = false;
            self.w_held.d.next = false;
            self.answered.d.next = true;
            self.refused.d.next = !self.strb.q.val().all();
        }
        self.write.next = self.aw_held.q.val() & self.w_held.q.val() & !self.answered.q.val();
        self.waddr.next = self.aw.q.val();
        self.wdata.next = self.data.q.val();
        self.whole.next = self.strb.q.val().all();

        // reads
        match self.reading.q.val() {
            AxilRead::Idle => {
                self.ar.d.next = self.s_axil.araddr.val();
                if self.s_axil.arvalid.val() {
                    self.reading.d.next = AxilRead::Look;
                }
            }
            AxilRead::Look => {
                self.word.d.next = self.rdata.val();
                if self.found.val() {
                    self.reading.d.next = AxilRead::Answer;
                }
            }
            AxilRead::Answer => {
                if self.s_axil.rready.val() {
                    self.reading.d.next = AxilRead::Idle;
                }
            }
            _ => {
                self.reading.d.next = AxilRead::Idle;
            }
        }
        self.read.next = self.reading.q.val() == AxilRead::Look;
        self.raddr.next = self.ar.q.val();

        self.s_axil.awready.next = !self.aw_held.q.val();
        self.s_axil.wready.next = !self.w_held.q.val();
        self.s_axil.bvalid.next = self.answered.q.val();
        self.s_axil.bresp.next = bits::<2>(0);
        if self.refused.q.val() {
            self.s_axil.bresp.next = bits::<2>(SLVERR);
        }
        self.s_axil.arready.next = self.reading.q.val() == AxilRead::Idle;
        self.s_axil.rvalid.next = self.reading.q.val() == AxilRead::Answer;
        self.s_axil.rresp.next = bits::<2>(0);
        self.s_axil.rdata.next = self.word.q.val();
    }
}

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
#[derive(Block)]
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
    describe!("axil_slave", "AXI4-Lite slave: the protocol.");

    #[kernel]
    fn update(&mut self) {
        // writes: address and word may come in any order
        if !aw_held {
            aw_held = s_axil.awvalid;
            aw = s_axil.awaddr;
        }
        if !w_held {
            w_held = s_axil.wvalid;
            data = s_axil.wdata;
            strb = s_axil.wstrb;
        }
        if s_axil.bready {
            answered = false;
        }
        if wrote {
            aw_held = false;
            w_held = false;
            answered = true;
            refused = !strb.all();
        }
        write = aw_held & w_held & !answered;
        waddr = aw;
        wdata = data;
        whole = strb.all();

        // reads
        match reading {
            AxilRead::Idle => {
                ar = s_axil.araddr;
                if s_axil.arvalid {
                    reading = AxilRead::Look;
                }
            }
            AxilRead::Look => {
                word = rdata;
                if found {
                    reading = AxilRead::Answer;
                }
            }
            AxilRead::Answer => {
                if s_axil.rready {
                    reading = AxilRead::Idle;
                }
            }
            _ => {
                reading = AxilRead::Idle;
            }
        }
        read = reading == AxilRead::Look;
        raddr = ar;

        s_axil.awready = !aw_held;
        s_axil.wready = !w_held;
        s_axil.bvalid = answered;
        s_axil.bresp = bits::<2>(0);
        if refused {
            s_axil.bresp = bits::<2>(SLVERR);
        }
        s_axil.arready = reading == AxilRead::Idle;
        s_axil.rvalid = reading == AxilRead::Answer;
        s_axil.rresp = bits::<2>(0);
        s_axil.rdata = word;
    }
}

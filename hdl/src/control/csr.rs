//! Registers and doorbells: BAR0 as an AXI4-Lite slave.
//!
//! The registers are those of `ferroce_proto::abi::regs`, the doorbells those of `ferroce_proto::abi::doorbell`. Besides:
//!
//! * Address bits 1:0 are not looked at. Reads of what does not exist give 0, writes to it and to read-only registers do
//!   nothing; all with OKAY.
//! * A write of less than 4 bytes does nothing and is answered with SLVERR.
//! * CMD_LOG_SIZE is not written while enabled; values above 8 are taken as 8.
//! * A doorbell is answered when its event stands in the output register, so that a consumer that waits holds up the
//!   bus and loses nothing ([`Doorbells`]). Those that come while not enabled do nothing.
//! * Writing CONTROL.reset clears all registers and asks for a reset of the engine: `reset` is 1 until `reset_done`. This
//!   block is in the reset domain of the pin, not of the engine. Meanwhile STATUS.ready and counters read 0.
//!
//! Writes and reads do not wait for each other ([`AxilSlave`]). A write every second cycle; its effect is there one
//! cycle after address and word are, its response with it. A read takes 2 cycles, of a counter up to 70.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation

use super::axil::AxilSlave;
use super::bar::*;
use super::doorbells::Doorbells;
use super::exception_csr::{ExceptionCsr, ExceptionStatus};
use crate::bus::payload::payload;
use crate::eth::exception_types::ExceptionSetup;
use crate::prelude::*;
use crate::queue::cq_write::CqArm;
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::RqEvent;

payload! {
    /// The registers.
    CsrState {
        /// CONTROL.enable.
        enable: Bit,
        /// CONTROL.reset.
        reset: Bit,
        /// STATUS: a DMA access failed.
        dma_error: Bit,
        /// CMD_BASE, low half.
        cmd_base_lo: Bits<32>,
        /// CMD_BASE, high half.
        cmd_base_hi: Bits<32>,
        /// CPL_BASE, low half.
        cpl_base_lo: Bits<32>,
        /// CPL_BASE, high half.
        cpl_base_hi: Bits<32>,
        /// CMD_LOG_SIZE.
        cmd_log_size: Bits<4>,
        /// CMD_PI.
        cmd_pi: Bits<32>,
        /// SCRATCH.
        scratch: Bits<32>,
        /// High half of the counter whose low half was read last.
        stat_high: Bits<32>,
    }
}

/// Registers and doorbells of a build of 2^Q queue pairs and 2^C completion queues.
#[derive(LogicBlock, Default)]
pub struct Csr<const Q: usize, const C: usize> {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// BAR0.
    pub s_axil: AxiLiteIn,
    /// Value of PARAMS.
    pub params: Signal<In, Bits<32>>,
    /// Value of PARAMS2.
    pub params2: Signal<In, Bits<32>>,
    /// Value of PARAMS3.
    pub params3: Signal<In, Bits<32>>,
    /// Value of FEATURES.
    pub features: Signal<In, Bits<32>>,
    /// Value of BUILD.
    pub build: Signal<In, Bits<32>>,
    /// The link is up.
    pub link_up: Signal<In, Bit>,
    /// All tables of the engine are swept.
    pub ready: Signal<In, Bit>,
    /// A DMA access failed in this cycle.
    pub dma_error: Signal<In, Bit>,
    /// Frames are accepted, doorbells heard, commands carried out.
    pub enable: Signal<Out, Bit>,
    /// The engine is to be reset.
    pub reset: Signal<Out, Bit>,
    /// It was.
    pub reset_done: Signal<In, Bit>,
    /// Address of the command ring.
    pub cmd_base: Signal<Out, Bits<64>>,
    /// Address of the ring of command completions.
    pub cpl_base: Signal<Out, Bits<64>>,
    /// Log2 of the entries of both, 0 to 8.
    pub cmd_log_size: Signal<Out, Bits<4>>,
    /// Command producer index.
    pub cmd_pi: Signal<Out, Bits<16>>,
    /// Commands completed.
    pub cmd_ci: Signal<In, Bits<16>>,
    /// Send queue doorbells.
    pub sq_doorbell: StreamOut<SqEvent>,
    /// Receive queue doorbells.
    pub rq_doorbell: StreamOut<RqEvent>,
    /// What the host says about the exception queue.
    pub exception: Signal<Out, ExceptionSetup>,
    /// What the card says about it.
    pub exception_status: Signal<In, ExceptionStatus>,
    /// Arm doorbells of completion queues.
    pub cq_doorbell: StreamOut<CqArm>,
    /// Counter to read.
    pub stat_index: Signal<Out, Bits<6>>,
    /// It is to be read; 1 until `stat_valid`, or until a reset of the engine.
    pub stat_read: Signal<Out, Bit>,
    /// Its value.
    pub stat_value: Signal<In, Bits<64>>,
    /// `stat_value` is there.
    pub stat_valid: Signal<In, Bit>,

    state: Reg<CsrState>,
    bus: AxilSlave,
    exceptions: ExceptionCsr,
    counting: Reg<Bit>,
    doorbells: Doorbells<Q, C>,

    at: Signal<Local, Bits<22>>,
    data: Signal<Local, Bits<32>>,
    act: Signal<Local, Bit>,
    written: Signal<Local, Bit>,
    forgets: Signal<Local, Bit>,
    log: Signal<Local, Bits<4>>,
    from: Signal<Local, Bits<22>>,
    status: Signal<Local, Bits<32>>,
    looked_up: Signal<Local, Bits<32>>,
    counter: Signal<Local, Bit>,
    no_state: Zero<CsrState>,
}

impl<const Q: usize, const C: usize> Logic for Csr<Q, C> {
    describe!(
        "csr",
        format!("q{Q}_c{C}"),
        "Registers and doorbells.";
        MAGIC, VERSION, BUILD, PARAMS, PARAMS2, FEATURES, CONTROL, STATUS, CMD_BASE_LO, CMD_BASE_HI,
        CPL_BASE_LO, CPL_BASE_HI, CMD_LOG_SIZE, CMD_PI, CMD_CI, SCRATCH, PARAMS3, STATS_AT, STATS, MAGIC_VALUE,
        VERSION_VALUE, ENABLE, RESET, MAX_LOG
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, bus, doorbells, exceptions);
        dff_setup!(self, clock, state, counting);
        AxiLiteIn::link(&mut self.s_axil, &mut self.bus.s_axil);

        // what the engine says
        if self.dma_error.val() {
            self.state.d.next.dma_error = true;
        }
        if self.state.q.val().reset {
            self.state.d.next.dma_error = false;
            self.state.d.next.reset = !self.reset_done.val();
        }

        // a write: a doorbell waits until the one before it was taken
        self.at.next = self.bus.waddr.val();
        self.data.next = self.bus.wdata.val();
        self.act.next = self.bus.write.val()
            & !(self.at.val().get_bits::<2>(20).any() & self.doorbells.waits.val());
        self.bus.wrote.next = self.act.val();

        self.doorbells.write.next = self.act.val()
            & self.bus.whole.val()
            & self.state.q.val().enable
            & !self.state.q.val().reset;
        self.doorbells.at.next = self.at.val();
        self.doorbells.data.next = self.data.val();
        self.forgets.next = false;

        // registers
        self.log.next = self.data.val().get_bits::<4>(0);
        if self.data.val() > MAX_LOG {
            self.log.next = bits::<4>(MAX_LOG);
        }
        if self.state.q.val().enable {
            self.log.next = self.state.q.val().cmd_log_size;
        }
        self.written.next =
            self.act.val() & self.bus.whole.val() & !self.at.val().get_bits::<15>(7).any();
        self.exceptions.write.next = self.written.val();
        self.exceptions.at.next = self.at.val().get_bits::<5>(2);
        self.exceptions.data.next = self.data.val();
        self.exceptions.clear.next = self.state.q.val().reset;
        self.exceptions.from.next = self.bus.raddr.val().get_bits::<5>(2);
        self.exceptions.status.next = self.exception_status.val();
        self.exception.next = self.exceptions.setup.val();
        if self.written.val() {
            match self.at.val().get_bits::<5>(2).index() {
                CONTROL => {
                    self.state.d.next.enable = self.data.val().get_bit(ENABLE);
                    self.forgets.next = self.data.val().get_bit(RESET);
                }
                CMD_BASE_LO => {
                    self.state.d.next.cmd_base_lo = self.data.val();
                }
                CMD_BASE_HI => {
                    self.state.d.next.cmd_base_hi = self.data.val();
                }
                CPL_BASE_LO => {
                    self.state.d.next.cpl_base_lo = self.data.val();
                }
                CPL_BASE_HI => {
                    self.state.d.next.cpl_base_hi = self.data.val();
                }
                CMD_LOG_SIZE => {
                    self.state.d.next.cmd_log_size = self.log.val();
                }
                CMD_PI => {
                    self.state.d.next.cmd_pi = self.data.val();
                }
                SCRATCH => {
                    self.state.d.next.scratch = self.data.val();
                }
                _ => {}
            }
        }
        // over all else: the registers' own reset then does it
        if self.forgets.val() {
            self.state.d.next = self.no_state.val();
            self.state.d.next.reset = true;
        }

        // a read
        self.from.next = self.bus.raddr.val();
        self.status.next = bits::<32>(0)
            .replace_bit(0, self.link_up.val())
            .replace_bit(1, self.ready.val() & !self.state.q.val().reset)
            .replace_bit(2, self.state.q.val().dma_error);
        self.looked_up.next = self.exceptions.value.val();
        match self.from.val().get_bits::<5>(2).index() {
            MAGIC => {
                self.looked_up.next = bits::<32>(MAGIC_VALUE);
            }
            VERSION => {
                self.looked_up.next = bits::<32>(VERSION_VALUE);
            }
            BUILD => {
                self.looked_up.next = self.build.val();
            }
            PARAMS => {
                self.looked_up.next = self.params.val();
            }
            PARAMS2 => {
                self.looked_up.next = self.params2.val();
            }
            PARAMS3 => {
                self.looked_up.next = self.params3.val();
            }
            FEATURES => {
                self.looked_up.next = self.features.val();
            }
            CONTROL => {
                self.looked_up.next = bits::<32>(0)
                    .replace_bit(ENABLE, self.state.q.val().enable)
                    .replace_bit(RESET, self.state.q.val().reset);
            }
            STATUS => {
                self.looked_up.next = self.status.val();
            }
            CMD_BASE_LO => {
                self.looked_up.next = self.state.q.val().cmd_base_lo;
            }
            CMD_BASE_HI => {
                self.looked_up.next = self.state.q.val().cmd_base_hi;
            }
            CPL_BASE_LO => {
                self.looked_up.next = self.state.q.val().cpl_base_lo;
            }
            CPL_BASE_HI => {
                self.looked_up.next = self.state.q.val().cpl_base_hi;
            }
            CMD_LOG_SIZE => {
                self.looked_up.next = bit_cast::<32, 4>(self.state.q.val().cmd_log_size);
            }
            CMD_PI => {
                self.looked_up.next = self.state.q.val().cmd_pi;
            }
            CMD_CI => {
                self.looked_up.next = bit_cast::<32, 16>(self.cmd_ci.val());
            }
            SCRATCH => {
                self.looked_up.next = self.state.q.val().scratch;
            }
            _ => {}
        }
        self.counter.next = (self.from.val().get_bits::<13>(9) == STATS_AT)
            & (self.from.val().get_bits::<6>(3) < STATS);
        self.bus.found.next = false;
        self.bus.rdata.next = bits::<32>(0);
        if self.counting.q.val() {
            // the counters do not answer in a reset of the engine
            self.bus.found.next = self.stat_valid.val() | self.state.q.val().reset;
            self.counting.d.next = !self.stat_valid.val() & !self.state.q.val().reset;
            if self.stat_valid.val() {
                self.bus.rdata.next = self.stat_value.val().get_bits::<32>(0);
                self.state.d.next.stat_high = self.stat_value.val().get_bits::<32>(32);
            }
        } else if self.bus.read.val() {
            self.bus.found.next = true;
            if !self.from.val().get_bits::<15>(7).any() {
                self.bus.rdata.next = self.looked_up.val();
            } else if self.counter.val() & self.from.val().get_bit(2) {
                self.bus.rdata.next = self.state.q.val().stat_high;
            } else if self.counter.val() {
                self.bus.found.next = false;
                self.counting.d.next = true;
            }
        }

        self.enable.next = self.state.q.val().enable & !self.state.q.val().reset;
        self.reset.next = self.state.q.val().reset;
        self.cmd_base.next = (bit_cast::<64, 32>(self.state.q.val().cmd_base_hi) << 32)
            | bit_cast::<64, 32>(self.state.q.val().cmd_base_lo);
        self.cpl_base.next = (bit_cast::<64, 32>(self.state.q.val().cpl_base_hi) << 32)
            | bit_cast::<64, 32>(self.state.q.val().cpl_base_lo);
        self.cmd_log_size.next = self.state.q.val().cmd_log_size;
        self.cmd_pi.next = self.state.q.val().cmd_pi.get_bits::<16>(0);
        self.doorbells.forget.next = self.forgets.val();
        StreamOut::<SqEvent>::link(&mut self.sq_doorbell, &mut self.doorbells.sq);
        StreamOut::<RqEvent>::link(&mut self.rq_doorbell, &mut self.doorbells.rq);
        StreamOut::<CqArm>::link(&mut self.cq_doorbell, &mut self.doorbells.cq);
        self.stat_index.next = self.from.val().get_bits::<6>(3);
        self.stat_read.next = self.counting.q.val();
    }
}

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
//! * Writing CONTROL.engine_reset clears all registers and asks for a reset of the engine: `reset` is 1 until `reset_done`. This
//!   block is in the reset domain of the pin, not of the engine. Meanwhile STATUS.ready and counters read 0.
//!
//! Writes and reads do not wait for each other ([`AxilSlave`]). A write every second cycle; its effect is there one
//! cycle after address and word are, its response with it. A read takes 3 cycles, of a counter up to 135.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation

use super::axil::AxilSlave;
use super::bar::*;
use super::class_csr::ClassCsr;
use super::doorbells::Doorbells;
use super::exception_csr::{ExceptionCsr, ExceptionStatus};
use super::notify_csr::NotifyCsr;
use super::reaction_csr::ReactionCsr;
use super::register_access::RegisterAccess;
use crate::bus::payload::payload;
use crate::egress::types::ClassSetup;
use crate::eth::exception_types::ExceptionSetup;
use crate::prelude::*;
use crate::queue::cq_write::CqArm;
use crate::transport::congestion::notify_types::NotifySetup;
use crate::transport::congestion::pace_types::CongestionSetup;
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::RqEvent;

payload! {
    /// The registers.
    CsrState {
        /// CONTROL.enable.
        enable: Bit,
        /// CONTROL.engine_reset.
        reset: Bit,
        /// STATUS: a DMA access failed.
        dma_error: Bit,
        /// STATUS: the write of an entry of a ring did.
        ring_error: Bit,
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
#[derive(Block)]
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
    /// The write of a CQE, an event or the completion of a command failed; one cycle.
    pub ring_error: Signal<In, Bit>,
    /// The engine accepts frames and doorbells, and executes commands.
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
    /// What the host says of CNPs.
    pub notify: Signal<Out, NotifySetup>,
    /// What the host says of congestion control.
    pub congestion: Signal<Out, CongestionSetup>,
    /// What the host says of classes.
    pub classes: Signal<Out, ClassSetup>,
    /// Rate of the port of this build, Mb/s.
    pub line_rate: Signal<In, Bits<20>>,
    /// Arm doorbells of completion queues.
    pub cq_doorbell: StreamOut<CqArm>,
    /// Counter to read.
    pub stat_index: Signal<Out, Bits<7>>,
    /// It is to be read; 1 until `stat_valid`, or until a reset of the engine.
    pub stat_read: Signal<Out, Bit>,
    /// Its value.
    pub stat_value: Signal<In, Bits<64>>,
    /// `stat_value` is there.
    pub stat_valid: Signal<In, Bit>,

    state: Reg<CsrState>,
    bus: AxilSlave,
    exceptions: ExceptionCsr,
    cnps: NotifyCsr,
    rates: ReactionCsr,
    traffic: ClassCsr,
    /// The blocks that have registers have decoded the address of a read.
    decoded: Reg<Bit>,
    /// The register at that address, if another block has it.
    other: Dff<Bits<32>>,
    /// The register at the address of the read.
    found: Dff<Bits<32>>,
    /// It is there.
    found_valid: Reg<Bit>,
    counting: Reg<Bit>,
    doorbells: Doorbells<Q, C>,

    no_state: Zero<CsrState>,
    no_access: Zero<RegisterAccess>,
}

impl<const Q: usize, const C: usize> Logic for Csr<Q, C> {
    describe!("csr", format!("q{Q}_c{C}"), "Registers and doorbells.");

    #[kernel]
    fn update(&mut self) {
        forward!(s_axil <= bus.s_axil);

        // what the engine says
        if dma_error {
            state.dma_error = true;
        }
        if ring_error {
            state.ring_error = true;
        }
        if state.reset {
            state.dma_error = false;
            state.ring_error = false;
            state.reset = !reset_done;
        }

        // a write: a doorbell waits until the one before it was taken
        let at = bus.waddr;
        let data = bus.wdata;
        let act = bus.write & !(at.slice::<2>(20).any() & doorbells.waits);
        bus.wrote = act;

        doorbells.write = act & bus.whole & state.enable & !state.reset;
        doorbells.at = at;
        doorbells.data = data;
        let mut resets = false;

        // registers
        let capped: Bits<4> = if data > MAX_LOG {
            MAX_LOG
        } else {
            data.low::<4>()
        };
        let log = if state.enable {
            state.cmd_log_size
        } else {
            capped
        };
        let written = act & bus.whole & !at.slice::<14>(8).any();
        let mut access = no_access;
        access.write = written;
        access.at = at.slice::<6>(2);
        access.data = data;
        access.clear = state.reset;
        access.from = bus.raddr.slice::<6>(2);
        exceptions.access = access;
        exceptions.status = exception_status;
        exception = exceptions.setup;
        cnps.access = access;
        notify = cnps.setup;
        rates.access = access;
        rates.build_rate = line_rate;
        congestion = rates.setup;
        traffic.access = access;
        classes = traffic.setup;
        if written {
            match at.slice::<6>(2) {
                CONTROL => {
                    state.enable = data.bit(ENABLE);
                    resets = data.bit(RESET);
                }
                CMD_BASE_LO => state.cmd_base_lo = data,
                CMD_BASE_HI => state.cmd_base_hi = data,
                CPL_BASE_LO => state.cpl_base_lo = data,
                CPL_BASE_HI => state.cpl_base_hi = data,
                CMD_LOG_SIZE => state.cmd_log_size = log,
                CMD_PI => state.cmd_pi = data,
                SCRATCH => state.scratch = data,
                _ => {}
            }
        }
        // over all else: the registers' own reset then does it
        if resets {
            state = no_state;
            state.reset = true;
        }

        // a read
        let from = bus.raddr;
        let status = bits::<32>(0)
            .replace_bit(0, link_up)
            .replace_bit(1, ready & !state.reset)
            .replace_bit(2, state.dma_error)
            .replace_bit(3, state.ring_error);
        let control = bits::<32>(0)
            .replace_bit(ENABLE, state.enable)
            .replace_bit(RESET, state.reset);
        let register: Bits<32> = match from.slice::<6>(2) {
            MAGIC => MAGIC_VALUE,
            VERSION => VERSION_VALUE,
            BUILD => build,
            PARAMS => params,
            PARAMS2 => params2,
            PARAMS3 => params3,
            FEATURES => features,
            CONTROL => control,
            STATUS => status,
            CMD_BASE_LO => state.cmd_base_lo,
            CMD_BASE_HI => state.cmd_base_hi,
            CPL_BASE_LO => state.cpl_base_lo,
            CPL_BASE_HI => state.cpl_base_hi,
            CMD_LOG_SIZE => state.cmd_log_size.resize::<32>(),
            CMD_PI => state.cmd_pi,
            CMD_CI => cmd_ci.resize::<32>(),
            SCRATCH => state.scratch,
            _ => other,
        };
        other = exceptions.value | cnps.value | rates.value | traffic.value;
        let counter = (from.slice::<12>(10) == STATS_AT) & (from.slice::<7>(3) < STATS);
        found = register;
        decoded = bus.read & !decoded & !found_valid & !counting;
        found_valid = decoded;
        bus.found = false;
        bus.rdata = bits::<32>(0);
        if counting {
            // the counters do not answer in a reset of the engine
            bus.found = stat_valid | state.reset;
            counting = !stat_valid & !state.reset;
            if stat_valid {
                bus.rdata = stat_value.low::<32>();
                state.stat_high = stat_value.slice::<32>(32);
            }
        } else if found_valid {
            bus.found = true;
            if !from.slice::<14>(8).any() {
                bus.rdata = found;
            } else if counter & from.bit(2) {
                bus.rdata = state.stat_high;
            } else if counter {
                bus.found = false;
                counting = true;
            }
        }

        enable = state.enable & !state.reset;
        reset = state.reset;
        cmd_base = (state.cmd_base_hi.resize::<64>() << 32) | state.cmd_base_lo.resize::<64>();
        cpl_base = (state.cpl_base_hi.resize::<64>() << 32) | state.cpl_base_lo.resize::<64>();
        cmd_log_size = state.cmd_log_size;
        cmd_pi = state.cmd_pi.low::<16>();
        doorbells.discard = resets;
        forward!(sq_doorbell <= doorbells.sq);
        forward!(rq_doorbell <= doorbells.rq);
        forward!(cq_doorbell <= doorbells.cq);
        stat_index = from.slice::<7>(3);
        stat_read = counting;
    }
}

//! Command ring: reads an entry a cycle, checks it, executes it, writes its completion.

use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl, CmdHead, GidEntry, PortConfig, opcode, status};
use ferroce_proto::abi::cq::{self, CqCtx};
use ferroce_proto::abi::eq::{self, EqCtx};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, MAX_RD_ATOMIC, RqCtx, SqCtx, SrqCtx, qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::{RECORD_BYTES, RING_ALIGN};
use ferroce_proto::wire::{Mtu, Psn};

use super::completion::Cq;
use super::events::Eq;
use super::{Model, Params, stats};

/// Answer of a command: `value`, or its error status.
type Answer = Result<u128, u8>;

/// A command that was carried out and is not answered.
#[derive(Clone)]
pub(super) struct Held {
    /// Frames that came to the queues before.
    frames: u64,
    addr: u64,
    completion: CmdCpl,
}

impl Model {
    /// A command is waiting.
    pub(super) fn has_command(&self) -> bool {
        self.csr.enabled && self.csr.cmd_pi as u16 != self.csr.cmd_ci
    }

    /// One cycle: at most one command. One that takes something away is answered when the frames that waited then have left.
    pub(super) fn step_command(&mut self) {
        if let Some(held) = &self.held {
            if !self.egress.holds(held.frames) {
                let Held {
                    addr, completion, ..
                } = self.held.take().expect("it is there");
                self.answer_command(addr, &completion);
            }
            return;
        }
        if !self.has_command() {
            return;
        }
        let ci = self.csr.cmd_ci;
        let log_size = self.csr.cmd_log_size;
        let entry = u64::from(ci) & ((1 << log_size) - 1);
        let addr = self.csr.cmd_base.wrapping_add(entry * CMD_BYTES as u64);
        let bytes: [u8; CMD_BYTES] = self.env.dma.read_array(addr);
        let image = |i: usize| {
            bytes[i * 64..]
                .first_chunk()
                .expect("an entry has four images")
        };
        let head = CmdHead::parse(image(0));
        let answer = self.execute_command(&head, image(1), image(2), image(3));
        self.env.stats.count(stats::COMMANDS);
        if answer.is_err() {
            self.env.stats.count(stats::COMMAND_ERRORS);
        }
        let completion = CmdCpl {
            token: head.token,
            opcode: head.opcode,
            status: answer.err().unwrap_or(status::OK),
            index: head.index,
            value: answer.unwrap_or(0),
            owner: ci >> log_size & 1 == 0,
            ..CmdCpl::default()
        };
        let addr = self.csr.cpl_base.wrapping_add(entry * CmdCpl::BYTES as u64);
        let frames = self.egress.came();
        if completion.status == status::OK && takes_away(&head) && self.egress.holds(frames) {
            self.held = Some(Held {
                frames,
                addr,
                completion,
            });
        } else {
            self.answer_command(addr, &completion);
        }
    }

    fn answer_command(&mut self, addr: u64, completion: &CmdCpl) {
        self.env.dma.write_entry(addr, &completion.emit());
        self.csr.cmd_ci = self.csr.cmd_ci.wrapping_add(1);
    }

    fn execute_command(
        &mut self,
        head: &CmdHead,
        first: &[u8; 64],
        second: &[u8; 64],
        third: &[u8; 64],
    ) -> Answer {
        let index = head.index as usize;
        let needed = match head.opcode {
            opcode::CREATE_EQ | opcode::DESTROY_EQ => feature::EVENTS,
            opcode::WRITE_AH => feature::UD,
            opcode::CREATE_SRQ | opcode::DESTROY_SRQ | opcode::ARM_SRQ => feature::SRQ,
            _ => 0,
        };
        if !self.env.has(needed) && needed != 0 {
            return Err(status::BAD_OPCODE);
        }
        match head.opcode {
            opcode::NOP => {}
            opcode::MODIFY_QP => {
                self.qps.get(index).ok_or(status::BAD_INDEX)?;
                let (sq, av, rq) = (
                    SqCtx::parse(first),
                    AvCtx::parse(second),
                    RqCtx::parse(third),
                );
                self.modify_qp(head, sq, av, rq)?;
            }
            opcode::QUERY_QP => {
                let qp = self.qps.get(index).ok_or(status::BAD_INDEX)?;
                return Ok(u128::from_le_bytes(qp.query().emit()));
            }
            opcode::CREATE_CQ | opcode::RESIZE_CQ => {
                let cq = self.env.cqs.get_mut(index).ok_or(status::BAD_INDEX)?;
                let ctx = CqCtx::parse(first);
                require((cq::MIN_LOG_CQE..=cq::MAX_LOG_CQE).contains(&ctx.log_size))?;
                require(u32::from(ctx.eqn) < 1 << self.params.log_eq)?;
                require(
                    ctx.base.is_multiple_of(RING_ALIGN)
                        && ctx.consumer.is_multiple_of(RECORD_BYTES),
                )?;
                if head.opcode == opcode::RESIZE_CQ {
                    return cq.resize(ctx, head.cq_taken).ok_or(status::BAD_STATE);
                }
                absent(cq.ctx.is_none())?;
                *cq = Cq::create(ctx);
            }
            opcode::DESTROY_CQ => {
                *self.env.cqs.get_mut(index).ok_or(status::BAD_INDEX)? = Cq::default();
            }
            opcode::WRITE_MR => {
                let ctx = MrCtx::parse(first);
                let own = self.env.regions.index(ctx.key) == index;
                let region = self
                    .env
                    .regions
                    .get_mut(head.index)
                    .ok_or(status::BAD_INDEX)?;
                require(!ctx.valid || (own && ctx.base <= ctx.last))?;
                *region = ctx;
            }
            opcode::CREATE_EQ => {
                let eq = self.env.eqs.get_mut(index).ok_or(status::BAD_INDEX)?;
                let ctx = EqCtx::parse(first);
                require((eq::MIN_LOG_EQE..=eq::MAX_LOG_EQE).contains(&ctx.log_size))?;
                require(
                    ctx.base.is_multiple_of(RING_ALIGN)
                        && ctx.consumer.is_multiple_of(RECORD_BYTES),
                )?;
                absent(eq.ctx.is_none())?;
                *eq = Eq::create(ctx);
            }
            opcode::DESTROY_EQ => {
                *self.env.eqs.get_mut(index).ok_or(status::BAD_INDEX)? = Eq::default();
            }
            opcode::SET_GID => {
                *self.env.gids.get_mut(index).ok_or(status::BAD_INDEX)? = GidEntry::parse(first);
            }
            opcode::SET_PORT => self.env.config = PortConfig::parse(first),
            opcode::WRITE_AH => {
                let ctx = AvCtx::parse(first);
                let ah = self.env.ahs.get_mut(index).ok_or(status::BAD_INDEX)?;
                require(u32::from(ctx.sgid_index) < 1 << self.params.log_gid)?;
                *ah = ctx;
            }
            opcode::CREATE_SRQ | opcode::DESTROY_SRQ | opcode::ARM_SRQ => {
                let ctx = SrqCtx::parse(first);
                let eqs = 1 << self.params.log_eq;
                let srq = self.env.srqs.get_mut(index).ok_or(status::BAD_INDEX)?;
                match head.opcode {
                    opcode::CREATE_SRQ => {
                        let aligned = [ctx.base, ctx.numbers]
                            .iter()
                            .all(|address| address.is_multiple_of(RING_ALIGN));
                        require(aligned && u32::from(ctx.eqn) < eqs)?;
                        absent(srq.ctx.is_none())?;
                        srq.create(ctx);
                    }
                    opcode::DESTROY_SRQ => srq.destroy(),
                    _ => {
                        let armed = self.env.arm_srq(index as u16, ctx.limit);
                        armed.ok_or(status::BAD_STATE)?;
                    }
                }
            }
            _ => return Err(status::BAD_OPCODE),
        }
        Ok(0)
    }

    /// Checks all of the command before any of it takes effect.
    fn modify_qp(&mut self, head: &CmdHead, sq: SqCtx, av: AvCtx, rq: RqCtx) -> Result<(), u8> {
        let qp = &mut self.qps[head.index as usize];
        let features = self.env.features;
        require(!head.qp_sq || check_sq(&self.params, features, &sq))?;
        require(!head.qp_av || u32::from(av.sgid_index) < 1 << self.params.log_gid)?;
        require(!head.qp_rq || check_rq(&self.params, features, &rq))?;
        let srq = self.env.srqs.get(usize::from(rq.srqn));
        require(!head.qp_rq || !rq.srq_valid || srq.is_some_and(|srq| srq.ctx.is_some()))?;
        require(!head.qp_sq_state || head.sq_state <= state::ERR)?;
        require(!head.qp_rq_state || head.rq_state <= state::ERR)?;
        let has_sq = head.qp_sq || qp.sq.configured;
        let has_rq = head.qp_rq || qp.rq.configured;
        if head.qp_sq_state && is_open(head.sq_state) && !has_sq
            || head.qp_rq_state && is_open(head.rq_state) && !has_rq
        {
            return Err(status::BAD_STATE);
        }
        if head.qp_sq {
            qp.sq.ctx = sq;
            qp.sq.configured = true;
            qp.sq.pacing.set_limit(sq.rate_limit);
        }
        if head.qp_av {
            qp.av = av;
        }
        if head.qp_rq {
            self.notify.renew(head.index);
            qp.rq.ctx = rq;
            qp.rq.configured = true;
        }
        if head.qp_sq_state {
            if head.sq_state == state::RESET {
                qp.sq.pacing.set_limit(0);
            }
            if head.sq_reset || head.sq_state == state::RESET {
                self.egress.start_afresh(head.index);
                qp.sq.pacing.reset();
            }
            if head.sq_reset && qp.sq.configured && head.sq_state != state::RESET {
                qp.sq.pacing.choose(&self.env, &qp.sq.ctx);
            }
            if head.sq_reset {
                qp.sq.reset(Psn::new(head.sq_psn));
            }
            // IB1 10.3.1: out of Error only to Reset, out of SQE also to RTS and Error
            let ends = matches!(head.sq_state, state::RESET | state::ERR);
            let leaves = match qp.sq.state {
                state::ERR => ends,
                state::SQE => ends || head.sq_state == state::RTS,
                _ => true,
            };
            if leaves || head.sq_reset {
                // IB1 10.3.1: what fails of an RC queue pair is the whole of it
                let is_rc = qp.sq.ctx.qp_type == qp_type::RC;
                let state = match head.sq_state {
                    state::SQE if is_rc => state::ERR,
                    state => state,
                };
                qp.enter_sq_state(&mut self.env, state);
            }
        }
        if head.qp_rq_state {
            if head.rq_reset {
                qp.rq.reset(Psn::new(head.rq_psn));
            }
            // what failed meanwhile stays so (IB1 10.3.1: out of Error only to Reset)
            let ends = matches!(head.rq_state, state::RESET | state::ERR);
            if qp.rq.state != state::ERR || head.rq_reset || ends {
                qp.enter_rq_state(&mut self.env, head.rq_state);
            }
        }
        self.schedule(head.index, false);
        Ok(())
    }
}

fn require(condition: bool) -> Result<(), u8> {
    if condition {
        Ok(())
    } else {
        Err(status::BAD_PARAM)
    }
}

/// What is to be created is not there yet.
fn absent(condition: bool) -> Result<(), u8> {
    if condition {
        Ok(())
    } else {
        Err(status::BAD_STATE)
    }
}

/// The command takes something away that frames may need: to RESET, the end of an object, another region or address.
fn takes_away(head: &CmdHead) -> bool {
    match head.opcode {
        opcode::MODIFY_QP => {
            head.qp_sq_state && head.sq_state == state::RESET
                || head.qp_rq_state && head.rq_state == state::RESET
        }
        opcode::WRITE_MR | opcode::WRITE_AH | opcode::RESIZE_CQ => true,
        opcode::DESTROY_CQ | opcode::DESTROY_EQ | opcode::DESTROY_SRQ => true,
        _ => false,
    }
}

/// Packets flow in this state.
fn is_open(state: u8) -> bool {
    matches!(state, state::RTR | state::RTS | state::SQD | state::SQE)
}

fn is_transport(code: u8, features: u32) -> bool {
    match code {
        qp_type::RC => features & feature::RC != 0,
        qp_type::UC => features & feature::UC != 0,
        qp_type::UD => features & feature::UD != 0,
        _ => false,
    }
}

fn check_sq(params: &Params, features: u32, ctx: &SqCtx) -> bool {
    let entries = 1u32 << ctx.ot_log;
    is_transport(ctx.qp_type, features)
        && Mtu::from_code(ctx.mtu).is_some()
        && ctx.max_rd_atomic <= MAX_RD_ATOMIC
        && u32::from(ctx.cqn) < 1 << params.log_cq
        && ctx.sq_base.is_multiple_of(RING_ALIGN)
        && ctx.ot_base.is_multiple_of(entries)
        && ctx.ot_base + entries <= 1 << params.log_outstanding
}

fn check_rq(params: &Params, features: u32, ctx: &RqCtx) -> bool {
    is_transport(ctx.qp_type, features)
        && Mtu::from_code(ctx.mtu).is_some()
        && ctx.max_dest_rd_atomic <= MAX_RD_ATOMIC
        && u32::from(ctx.cqn) < 1 << params.log_cq
        && u32::from(ctx.sgid_index) < 1 << params.log_gid
        && ctx.rq_base.is_multiple_of(RING_ALIGN)
        && (!ctx.srq_valid || features & feature::SRQ != 0)
}

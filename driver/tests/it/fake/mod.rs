//! A card at the level of its rings: it answers commands, records doorbells and writes the CQEs a test tells it to.

mod backend;
mod paged;
mod rings;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use ferroce_driver::{DmaAccess, Features, Opened};
use ferroce_proto::abi::cmd::{self, CmdCpl, CmdHead, GidEntry, PortConfig, opcode, status};
use ferroce_proto::abi::cq::{CqCtx, Cqe, opcode as cqe_opcode, status as cqe_status};
use ferroce_proto::abi::eq::{EqCtx, Eqe, event};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, SrqCtx, state};
use ferroce_proto::abi::regs::{self, Params};

pub(crate) use paged::Paged;

/// Page size in bytes; larger than that of most systems.
pub(crate) const PAGE: usize = 0x1_0000;
/// Time of one turn of a wait loop in ns.
const TURN_NS: u64 = 10_000;

pub(crate) const ALL: Features = Features::all();
pub(crate) const BASIC: Features = Features::RC.union(Features::READ).union(Features::ATOMIC);

/// How the card answers a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(u8),
    Never,
    WrongToken,
    /// The card is gone in the middle of the command.
    Vanish,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct QpImages {
    pub(crate) sq: SqCtx,
    pub(crate) av: AvCtx,
    pub(crate) rq: RqCtx,
    pub(crate) sq_state: u8,
    pub(crate) rq_state: u8,
    pub(crate) sq_psn: u32,
    pub(crate) rq_psn: u32,
}

pub(crate) struct State {
    pub(crate) magic: u32,
    pub(crate) version: u32,
    pub(crate) params: Params,
    pub(crate) features: Features,
    /// Turns until STATUS.ready; `None`: never.
    pub(crate) ready_in: Option<u64>,
    /// STATUS.ring_error.
    pub(crate) ring_error: bool,
    pub(crate) control: u32,
    pub(crate) resets: u32,
    pub(crate) now_ns: u64,
    registers: HashMap<u32, u32>,
    commands_done: u32,
    /// Answers other than OK, by opcode.
    pub(crate) answers: HashMap<u8, Answer>,
    pub(crate) commands: Vec<CmdHead>,
    pub(crate) doorbells: Vec<(u64, u32)>,
    /// Length of mapped ranges by their first address.
    pub(crate) mapped: BTreeMap<usize, usize>,
    /// What they are mapped for.
    pub(crate) accesses: BTreeMap<usize, DmaAccess>,
    /// First address and end of what the process may not write.
    pub(crate) read_only: Option<(usize, usize)>,
    pub(crate) refuse_map: bool,
    pub(crate) refuse_unmap: bool,
    /// Registers read as all ones, and writes go nowhere.
    pub(crate) gone: bool,
    /// Registers of the shell from 0x8000 on, if there is one.
    pub(crate) shell: Option<[u32; 3]>,
    pub(crate) qps: HashMap<u32, QpImages>,
    pub(crate) cqs: HashMap<u32, (CqCtx, u32)>,
    pub(crate) mrs: HashMap<u32, MrCtx>,
    pub(crate) gids: HashMap<u32, GidEntry>,
    pub(crate) ahs: HashMap<u32, AvCtx>,
    pub(crate) srqs: HashMap<u32, SrqCtx>,
    /// Event queues with the events written.
    pub(crate) eqs: HashMap<u32, (EqCtx, u32)>,
    pub(crate) port: PortConfig,
    pub(crate) bar_len: u64,
    pub(crate) vectors: u32,
    pub(crate) interrupts: HashMap<u32, OwnedFd>,
    /// Of the numbers that the driver chooses.
    pub(crate) seed: Option<u64>,
    /// States of requester and responder that a queue pair comes to while the next MODIFY_QP is on its way.
    pub(crate) fails: Option<(u8, u8)>,
    /// A queue pair that has taken a request of a shared receive queue, and the number of that: ERR flushes it.
    pub(crate) takes: Option<(u32, u32)>,
    /// Commands to come that are answered well, whatever `answers` says.
    pub(crate) good: u32,
}

/// A handle of the card; clones are handles of the same.
#[derive(Clone)]
pub(crate) struct Fake(Arc<Mutex<State>>, Arc<Opened>);

impl Fake {
    pub(crate) fn new(features: Features) -> Self {
        let params = Params {
            log_qp: 4,
            log_mr: 6,
            log_cq: 3,
            log_outstanding: 8,
            log_gid: 3,
            log_eq: 2,
        };
        let state = State {
            magic: regs::MAGIC_VALUE,
            version: regs::ABI_VERSION,
            params,
            features,
            ready_in: Some(0),
            ring_error: false,
            control: 0,
            resets: 0,
            now_ns: 0,
            registers: HashMap::new(),
            commands_done: 0,
            answers: HashMap::new(),
            commands: Vec::new(),
            doorbells: Vec::new(),
            mapped: BTreeMap::new(),
            accesses: BTreeMap::new(),
            read_only: None,
            refuse_map: false,
            refuse_unmap: false,
            gone: false,
            shell: None,
            qps: HashMap::new(),
            cqs: HashMap::new(),
            mrs: HashMap::new(),
            gids: HashMap::new(),
            ahs: HashMap::new(),
            srqs: HashMap::new(),
            eqs: HashMap::new(),
            port: PortConfig::default(),
            bar_len: regs::BAR0_BYTES,
            vectors: 4,
            interrupts: HashMap::new(),
            seed: Some(0),
            good: 0,
            fails: None,
            takes: None,
        };
        Self(Arc::new(Mutex::new(state)), Arc::default())
    }

    /// The card as another process finds it.
    pub(crate) fn afresh(&self) -> Self {
        Self(self.0.clone(), Arc::default())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Commands that changed a queue pair.
    pub(crate) fn modifies(&self) -> usize {
        let state = self.state();
        let modify = |c: &&CmdHead| c.opcode == opcode::MODIFY_QP;
        state.commands.iter().filter(modify).count()
    }

    /// Doorbells rung since the last call.
    pub(crate) fn take_doorbells(&self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.state().doorbells)
    }
}

impl State {
    fn register(&self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn run_commands(&mut self) {
        while self.commands_done != self.register(regs::CMD_PI) {
            let log_size = self.register(regs::CMD_LOG_SIZE);
            let base = |lo, hi| u64::from(self.register(lo)) | u64::from(self.register(hi)) << 32;
            let place = u64::from(self.commands_done & ((1 << log_size) - 1));
            let entry = base(regs::CMD_BASE_LO, regs::CMD_BASE_HI) + place * cmd::CMD_BYTES as u64;
            let images: [[u8; 64]; 4] = std::array::from_fn(|i| self.read(entry + 64 * i as u64));
            let owner = self.commands_done >> log_size & 1 == 0;
            let at = base(regs::CPL_BASE_LO, regs::CPL_BASE_HI) + place * CmdCpl::BYTES as u64;
            self.commands_done = self.commands_done.wrapping_add(1);
            let head = CmdHead::parse(&images[0]);
            self.commands.push(head);
            let answer = match self.good.checked_sub(1) {
                Some(left) => {
                    self.good = left;
                    None
                }
                None => self.answers.get(&head.opcode).copied(),
            };
            let answer = answer.unwrap_or(Answer::Status(status::OK));
            let (mut status, mut token, mut value) = (status::OK, head.token, 0);
            match answer {
                Answer::Never => continue,
                Answer::Vanish => {
                    self.gone = true;
                    return;
                }
                Answer::WrongToken => token ^= 0x8000,
                Answer::Status(status::OK) => value = self.execute(&head, &images),
                Answer::Status(other) => status = other,
            }
            let cpl = CmdCpl {
                token,
                opcode: head.opcode,
                status,
                index: head.index,
                value,
                owner,
                ..CmdCpl::default()
            };
            self.write(at, &cpl.emit());
        }
    }

    fn execute(&mut self, head: &CmdHead, images: &[[u8; 64]; 4]) -> u128 {
        match head.opcode {
            opcode::MODIFY_QP => {
                let qp = self.qps.entry(head.index).or_default();
                if let Some(states) = self.fails.take() {
                    (qp.sq_state, qp.rq_state) = states;
                }
                if head.qp_sq {
                    qp.sq = SqCtx::parse(&images[1]);
                }
                if head.qp_av {
                    qp.av = AvCtx::parse(&images[2]);
                }
                if head.qp_rq {
                    qp.rq = RqCtx::parse(&images[3]);
                }
                let stays = match qp.sq_state {
                    state::ERR => head.sq_state != state::ERR,
                    state::SQE => !matches!(head.sq_state, state::ERR | state::RTS),
                    _ => false,
                };
                let ends = head.sq_state == state::RESET;
                if head.qp_sq_state && (!stays || ends || head.sq_reset) {
                    qp.sq_state = head.sq_state;
                    qp.sq_psn = if head.sq_reset {
                        head.sq_psn
                    } else {
                        qp.sq_psn
                    };
                }
                let enters_err = head.rq_state == state::ERR && qp.rq_state != state::ERR;
                if head.qp_rq_state {
                    qp.rq_state = head.rq_state;
                    qp.rq_psn = if head.rq_reset {
                        head.rq_psn
                    } else {
                        qp.rq_psn
                    };
                }
                let (cqn, send_cqn) = (qp.rq.cqn.into(), u32::from(qp.sq.cqn));
                if enters_err && qp.rq.srq_valid {
                    let reached = Eqe {
                        event: event::LAST_WQE_REACHED,
                        object: head.index,
                        ..Eqe::default()
                    };
                    let eqn = self.cqs[&send_cqn].0.eqn;
                    assert!(self.put_event(eqn.into(), reached), "the EQ has room");
                }
                if head.rq_state == state::ERR
                    && let Some((qpn, number)) = self.takes.take_if(|(qpn, _)| *qpn == head.index)
                {
                    let flushed = Cqe {
                        qpn,
                        wqe_index: number as u16,
                        status: cqe_status::WR_FLUSH_ERR,
                        opcode: cqe_opcode::RECV,
                        recv: true,
                        ..Cqe::default()
                    };
                    assert!(self.put_cqe(cqn, flushed), "the CQ has room");
                }
            }
            opcode::QUERY_QP => {
                let qp = self.qps[&head.index];
                let state = cmd::QpState {
                    sq_state: qp.sq_state,
                    rq_state: qp.rq_state,
                    sq_psn: qp.sq_psn,
                    una_psn: qp.sq_psn,
                    rq_psn: qp.rq_psn,
                    msn: 7,
                    rq_index: 9,
                    ..cmd::QpState::default()
                };
                return u128::from_le_bytes(state.emit());
            }
            opcode::CREATE_CQ => {
                let created = (CqCtx::parse(&images[1]), 0);
                assert!(
                    self.cqs.insert(head.index, created).is_none(),
                    "CQ {} is free",
                    head.index
                );
            }
            opcode::RESIZE_CQ => {
                let (ctx, producer) = self.cqs.get_mut(&head.index).expect("the CQ exists");
                *ctx = CqCtx::parse(&images[1]);
                let waiting = producer.wrapping_sub(head.cq_taken) & 0xff_ffff;
                assert!(waiting <= 1 << ctx.log_size, "the test tells of a refusal");
                return (*producer & 0xff_ffff).into();
            }
            opcode::DESTROY_CQ => {
                self.cqs
                    .remove(&head.index)
                    .expect("the CQ to destroy exists");
            }
            opcode::WRITE_MR => {
                self.mrs.insert(head.index, MrCtx::parse(&images[1]));
            }
            opcode::SET_GID => {
                self.gids.insert(head.index, GidEntry::parse(&images[1]));
            }
            opcode::WRITE_AH => {
                self.ahs.insert(head.index, AvCtx::parse(&images[1]));
            }
            opcode::CREATE_SRQ => {
                let created = self.srqs.insert(head.index, SrqCtx::parse(&images[1]));
                assert!(created.is_none(), "SRQ {} is free", head.index);
            }
            opcode::DESTROY_SRQ => {
                let destroyed = self.srqs.remove(&head.index);
                destroyed.expect("the SRQ to destroy exists");
            }
            opcode::ARM_SRQ => {
                let srq = self.srqs.get_mut(&head.index).expect("the SRQ exists");
                srq.limit = SrqCtx::parse(&images[1]).limit;
            }
            opcode::CREATE_EQ => {
                let created = (EqCtx::parse(&images[1]), 0);
                let before = self.eqs.insert(head.index, created);
                assert!(before.is_none(), "EQ {} is free", head.index);
            }
            opcode::DESTROY_EQ => {
                let destroyed = self.eqs.remove(&head.index);
                destroyed.expect("the EQ to destroy exists");
            }
            opcode::SET_PORT => self.port = PortConfig::parse(&images[1]),
            _ => {}
        }
        0
    }
}

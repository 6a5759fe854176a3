//! What `scatter` is to do, in plain Rust, a placement at a time.

use std::collections::{HashMap, HashSet};

use ferroce_hdl::bus::axi::burst_bytes;
use ferroce_proto::abi::cq::{NO_NUMBER, status};
use ferroce_proto::abi::mr::{Access, MrCtx, Right};

use super::wqe::Wqe;

/// A placement and its payload.
#[derive(Clone, Debug, Default)]
pub(super) struct Placement {
    pub(super) qpn: u16,
    pub(super) kind: u8,
    pub(super) addr: u64,
    pub(super) key: u32,
    pub(super) pd: u32,
    pub(super) offset: u32,
    pub(super) data: Vec<u8>,
    pub(super) lane: usize,
    pub(super) reset: bool,
    pub(super) rsp_flush: bool,
    pub(super) last_wqe: bool,
    pub(super) incarnation: u8,
    pub(super) end: bool,
    pub(super) ack: bool,
    pub(super) unreliable: bool,
    pub(super) psn: u32,
    pub(super) msn: u32,
    pub(super) syndrome: u8,
    pub(super) complete: bool,
    /// Of the receive WQE of a shared receive queue that it completes.
    pub(super) number: Option<u16>,
    pub(super) status: u8,
    pub(super) reply: bool,
    /// With `reply`: an atomic that is no duplicate.
    pub(super) runs: bool,
    pub(super) answer: bool,
    pub(super) implied: bool,
    pub(super) good: bool,
    pub(super) closed: bool,
    /// Key to invalidate.
    pub(super) inv: Option<u32>,
    /// Protection domain of that key.
    pub(super) inv_pd: u32,
    pub(super) wqe: Wqe,
}

/// What `ack` receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token {
    /// PSN, MSN, syndrome.
    Ack(u32, u32, u8),
    /// It is void.
    Reply(bool),
    Reset,
    RspFlush,
}

/// What is seen of a placement outside.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) ack: Option<Token>,
    /// The acknowledgement waits for the completion.
    pub(super) judged: bool,
    /// Data, status and fence.
    pub(super) answer: Option<(bool, u8, u16)>,
    /// Status of the CQE and its fence.
    pub(super) cqe: Option<(u8, u16)>,
    /// The CQE waits for this many atomics of the queue pair.
    pub(super) after_atomics: Option<u8>,
    /// It is a marker, no CQE.
    pub(super) marker: bool,
    /// Syndrome and status.
    pub(super) error: Option<(u8, u8)>,
    /// The queue pair goes on.
    pub(super) spared: bool,
}

/// Whether a region of the test permits an access.
pub(super) fn allowed(
    regions: &[MrCtx],
    key: u32,
    pd: u32,
    addr: u64,
    len: u64,
    remote: bool,
) -> bool {
    let access = Access {
        key,
        pd,
        qpn: 0,
        addr,
        len: len as u32,
        right: if remote {
            Right::RemoteWrite
        } else {
            Right::LocalWrite
        },
    };
    len == 0 || regions.iter().any(|mr| mr.permits(&access))
}

/// Makes a key invalid; whether it was there.
pub(super) fn invalidate(regions: &mut [MrCtx], key: u32, pd: u32) -> bool {
    let mr = regions
        .iter_mut()
        .find(|mr| mr.key == key && mr.pd == pd && mr.valid);
    mr.map(|mr| mr.valid = false).is_some()
}

/// Memory regions with their contents, and the poisoned queue pairs.
pub(super) struct Model {
    pub(super) regions: Vec<MrCtx>,
    pub(super) contents: Vec<Vec<u8>>,
    /// Status that the next CQE is to tell.
    poison: HashMap<u16, Option<u8>>,
    /// Queue pairs that drop the rest of a message.
    dropping: HashSet<u16>,
    /// Atomics of a queue pair, modulo 32, and whether one came since its latest completion.
    pub(super) atomics: HashMap<u16, (u8, bool)>,
    pub(super) bursts: u64,
    pub(super) beats: u64,
    lanes: usize,
}

impl Model {
    pub(super) fn new(regions: Vec<MrCtx>, lanes: usize) -> Self {
        let contents = regions
            .iter()
            .map(|mr| vec![0xee; (mr.last - mr.base) as usize + 1]);
        Self {
            contents: contents.collect(),
            regions,
            poison: HashMap::new(),
            dropping: HashSet::new(),
            atomics: HashMap::new(),
            bursts: 0,
            beats: 0,
            lanes,
        }
    }

    /// The pieces of a placement, or why it fails: NAK code and status.
    fn pieces(&self, p: &Placement) -> Result<Vec<(u64, usize)>, (u8, u8)> {
        let len = p.data.len();
        if p.kind < 2 {
            let good = p.kind == 0 || allowed(&self.regions, p.key, p.pd, p.addr, len as u64, true);
            let pieces = vec![(p.addr, if p.kind == 0 { 0 } else { len })];
            return if good {
                Ok(pieces)
            } else {
                Err((2, status::GENERAL_ERR))
            };
        }
        let (mut skip, mut left) = (u64::from(p.offset), len);
        let (mut pieces, mut denied, mut short, mut broken) = (vec![], false, false, false);
        for (sge, unusable) in p.wqe.entries() {
            let start = skip.min(sge.length.into());
            let n = left.min(sge.length as usize - start as usize);
            let addr = sge.addr.wrapping_add(start);
            denied |= !allowed(&self.regions, sge.lkey, p.pd, addr, n as u64, false);
            broken |= unusable;
            pieces.push((addr, n));
            skip -= start;
            left -= n;
            if left == 0 && u64::from(sge.length) >= start {
                break;
            }
        }
        short |= left > 0;
        if p.kind == 3 && (broken || short) {
            Err((0, status::LOC_QP_OP_ERR))
        } else if p.kind == 3 && denied {
            Err((0, status::LOC_PROT_ERR))
        } else if broken {
            Err((3, status::LOC_QP_OP_ERR))
        } else if short {
            Err((1, status::LOC_LEN_ERR))
        } else if denied {
            Err((3, status::LOC_PROT_ERR))
        } else {
            Ok(pieces)
        }
    }

    fn write(&mut self, addr: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let window = burst_bytes(self.lanes) as u64;
        let touched = |unit: u64| (addr + data.len() as u64 - 1) / unit - addr / unit + 1;
        self.bursts += touched(window);
        self.beats += touched(self.lanes as u64);
        let at = self
            .regions
            .iter()
            .position(|mr| (mr.base..=mr.last).contains(&addr));
        let region = at.expect("the check passed");
        let offset = (addr - self.regions[region].base) as usize;
        self.contents[region][offset..offset + data.len()].copy_from_slice(data);
    }

    /// Does one placement, and counts atomics.
    pub(super) fn place(&mut self, p: &Placement) -> Outcome {
        let mut outcome = self.execute(p);
        let (atomics, after) = self.atomics.entry(p.qpn).or_default();
        if outcome.cqe.is_some() {
            outcome.after_atomics = after.then_some(*atomics);
            *after &= outcome.marker;
        }
        if p.runs && outcome.ack == Some(Token::Reply(false)) {
            (*atomics, *after) = ((*atomics + 1) % 32, true);
        }
        outcome
    }

    fn execute(&mut self, p: &Placement) -> Outcome {
        let mut outcome = Outcome::default();
        if p.reset {
            self.poison.remove(&p.qpn);
            self.dropping.remove(&p.qpn);
            outcome.ack = Some(Token::Reset);
            return outcome;
        }
        if p.rsp_flush {
            outcome.ack = Some(Token::RspFlush);
            return outcome;
        }
        if p.last_wqe {
            let cause = self.poison.get(&p.qpn);
            let status = cause.map_or(p.status, |cause| cause.unwrap_or(status::WR_FLUSH_ERR));
            (outcome.marker, outcome.cqe) = (true, Some((status, self.bursts as u16)));
            return outcome;
        }
        let due = |status: u8, bursts: u64| p.complete.then_some((status, bursts as u16));
        if let Some(cause) = self.poison.get_mut(&p.qpn) {
            let reported = cause.unwrap_or(status::WR_FLUSH_ERR);
            if p.complete {
                *cause = None;
            }
            outcome.cqe = due(reported, self.bursts);
            outcome.ack = p.reply.then_some(Token::Reply(true));
            outcome.answer =
                (p.answer && p.closed).then_some((false, p.status, self.bursts as u16));
            return outcome;
        }
        let lost = p.number == Some(NO_NUMBER);
        let mut result = self.pieces(p);
        if lost {
            result = Err((3, status::LOC_QP_OP_ERR));
        }
        if p.kind == 1 && p.unreliable && !lost {
            let late = p.offset > 0 && self.dropping.contains(&p.qpn);
            if late || result.is_err() {
                self.dropping.insert(p.qpn);
                outcome.spared = true;
                outcome.error = (!late).then_some((0x62, status::GENERAL_ERR));
                outcome.cqe = due(status::LOC_ACCESS_ERR, self.bursts);
                return outcome;
            }
        }
        if p.kind == 2 && p.unreliable && !lost {
            let late = p.offset > 0 && self.dropping.contains(&p.qpn);
            if late || matches!(result, Err((1, _))) {
                self.dropping.insert(p.qpn);
                outcome.spared = true;
                outcome.error = (!late).then_some((0x61, status::LOC_LEN_ERR));
                outcome.cqe = due(status::LOC_LEN_ERR, self.bursts);
                return outcome;
            }
        }
        if (p.kind == 1 || (p.kind == 2 && p.unreliable)) && result.is_ok() {
            self.dropping.remove(&p.qpn);
        }
        if let Ok(pieces) = &result {
            let mut data = &p.data[..];
            for &(addr, len) in pieces {
                self.write(addr, &data[..len]);
                data = &data[len..];
            }
            let key = p.inv.filter(|_| p.complete && p.kind == 2);
            if key.is_some_and(|key| !invalidate(&mut self.regions, key, p.inv_pd)) {
                result = Err((2, status::GENERAL_ERR));
            }
        }
        match result {
            Ok(_) => {
                outcome.judged = p.complete && !p.unreliable && p.status == status::SUCCESS;
                outcome.ack =
                    (p.ack || outcome.judged).then_some(Token::Ack(p.psn, p.msn, p.syndrome));
                if p.reply {
                    outcome.ack = Some(Token::Reply(false));
                }
                outcome.cqe = due(p.status, self.bursts);
                outcome.answer = p.answer.then_some((p.good, p.status, self.bursts as u16));
            }
            Err((code, found)) => {
                if code > 0 {
                    let msn = p.msn.wrapping_sub(p.end.into()) & 0xff_ffff;
                    if !p.unreliable {
                        outcome.ack = Some(Token::Ack(p.psn, msn, 0x60 | code));
                    }
                    outcome.error = Some((0x60 | code, found));
                }
                let own = (p.kind == 2 || lost) && code != 2;
                let reported = if own { found } else { status::WR_FLUSH_ERR };
                outcome.cqe = due(reported, self.bursts);
                outcome.answer = p.answer.then_some((false, found, self.bursts as u16));
                let later = (own && !p.complete).then_some(found);
                self.poison.insert(p.qpn, later);
            }
        }
        outcome
    }
}

//! Notification point: marks of congestion that arrive, CNPs that answer them, CNPs that arrive (A17.9.3, docs/congestion.md).

use std::collections::VecDeque;

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::{self, CNP_CONFIG_RESET, CnpConfig, REGISTERS};
use ferroce_proto::wire::{Headers, ip};

use super::{Model, rx, stats};
use crate::nic::NS_PER_CYCLE;

/// Cycles of a microsecond.
const CYCLES_PER_US: u64 = 1000 / NS_PER_CYCLE;

/// The notification point.
#[derive(Clone)]
pub(super) struct Notify {
    /// Microseconds between two CNPs of a queue pair at least, 16 bits.
    min_time: u64,
    pub(super) config: CnpConfig,
    /// When each queue pair was last given a CNP.
    latest: Vec<Option<u64>>,
    /// Queue pairs whose peer is due a CNP.
    pub(super) due: VecDeque<u32>,
}

impl Notify {
    pub(super) fn new(qps: u32) -> Self {
        let min_time = REGISTERS
            .iter()
            .find(|r| r.offset == regs::MIN_TIME_BETWEEN_CNPS);
        Self {
            min_time: min_time.expect("a register of the card").reset.into(),
            config: CnpConfig::parse(&CNP_CONFIG_RESET.to_le_bytes()),
            latest: vec![None; qps as usize],
            due: VecDeque::new(),
        }
    }

    /// Writes a register; false if it is another's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        match offset {
            regs::MIN_TIME_BETWEEN_CNPS => {
                self.min_time = value.min(regs::LONGEST_TIME_BETWEEN_CNPS).into();
            }
            regs::CNP_CONFIG => {
                self.config = CnpConfig {
                    rsv0: 0,
                    rsv1: 0,
                    ..CnpConfig::parse(&value.to_le_bytes())
                };
            }
            _ => return false,
        }
        true
    }

    /// Reads a register, if it is one of these.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        match offset {
            regs::MIN_TIME_BETWEEN_CNPS => Some(self.min_time as u32),
            regs::CNP_CONFIG => Some(u32::from_le_bytes(self.config.emit())),
            _ => None,
        }
    }

    /// The queue pair is another one from now on: its first mark draws a CNP.
    pub(super) fn renew(&mut self, qpn: u32) {
        self.latest[qpn as usize] = None;
    }

    /// A packet of a queue pair was marked.
    fn mark(&mut self, now: u64, qpn: u32) {
        let latest = &mut self.latest[qpn as usize];
        let early = latest.is_some_and(|at| now - at < self.min_time * CYCLES_PER_US);
        if self.config.enable && !early {
            *latest = Some(now);
            self.due.push_back(qpn);
        }
    }
}

impl Model {
    /// A CNP arrived.
    pub(super) fn receive_cnp(&mut self, headers: &Headers) {
        if !self.is_connected(headers) {
            self.env.stats.count(stats::RP_CNP_IGNORED);
            return;
        }
        self.env.stats.count(stats::RP_CNP_HANDLED);
        let qpn = headers.bth.dest_qp;
        let pacing = &mut self.qps[qpn as usize].sq.pacing;
        pacing.on_cnp(self.env.now, &self.reaction);
    }

    /// A packet that is no CNP arrived; its mark tells of the path, also if the packet is not executed.
    pub(super) fn look_for_mark(&mut self, headers: &Headers) {
        let qpn = headers.bth.dest_qp;
        let marked = headers.ip.ecn() == ip::ECN_CE && self.is_connected(headers);
        if marked && self.qps[qpn as usize].rq.ctx.qp_type == headers.bth.opcode.class() as u8 {
            self.env.stats.count(stats::NP_ECN_MARKED_ROCE_PACKETS);
            self.notify.mark(self.env.now, qpn);
        }
    }

    /// The packet is for a queue pair that is connected, in its partition and from its peer.
    fn is_connected(&self, headers: &Headers) -> bool {
        let qpn = headers.bth.dest_qp;
        let qp = self.qps.get(qpn as usize);
        qp.filter(|qp| qpn != 0 && qp.rq.configured)
            .is_some_and(|qp| {
                let ctx = &qp.rq.ctx;
                ctx.qp_type != qp_type::UD && rx::stranger(ctx, &self.env, headers).is_none()
            })
    }
}

//! Placements at random.

use ferroce_proto::abi::cq::{NO_NUMBER, status};
use ferroce_proto::abi::wqe::Sge;

use super::model::Placement;
use super::setup::{QUEUE_PAIRS, REGION, Setup, VICTIMS, victim};
use super::wqe::Wqe;

impl Setup {
    /// A placement of any kind, most of them good.
    pub(super) fn random(&mut self) -> Placement {
        let lanes = self.lanes;
        let regions = self.model.regions.clone();
        let rng = self.bench.rng();
        let qpn = rng.u16(..QUEUE_PAIRS);
        let pd = 1 + u32::from(qpn) % 2;
        let mut p = Placement {
            qpn,
            pd,
            kind: [0, 1, 1, 2, 2, 2, 3, 3][rng.usize(..8)],
            lane: rng.usize(..lanes),
            reset: rng.u8(..16) == 0,
            rsp_flush: rng.u8(..32) == 0,
            last_wqe: rng.u8(..32) == 0,
            incarnation: rng.u8(..4),
            end: rng.bool(),
            ack: rng.bool(),
            unreliable: rng.u8(..4) == 0,
            psn: rng.u32(..1 << 24),
            msn: rng.u32(..1 << 24),
            syndrome: rng.u8(..),
            complete: rng.bool(),
            status: [0, 0, status::WR_FLUSH_ERR][rng.usize(..3)],
            ..Placement::default()
        };
        p.rsp_flush &= !p.reset;
        p.last_wqe &= !p.reset && !p.rsp_flush;
        if p.reset || p.rsp_flush || p.last_wqe {
            p.kind = 0;
            (p.ack, p.complete) = (false, false);
            return p;
        }
        if p.kind == 3 || (p.kind == 0 && rng.bool()) {
            // of the requester's
            (p.answer, p.ack, p.complete, p.end) = (true, false, false, false);
            (p.implied, p.good) = (rng.bool(), p.kind == 3);
            p.closed = p.kind == 0 && rng.u8(..4) == 0;
            p.status = [0, 0, status::BAD_RESP_ERR][rng.usize(..3)];
            if p.kind == 3 || p.closed {
                p.status = 0;
            }
        } else if p.kind == 0 && rng.bool() {
            (p.reply, p.ack, p.complete) = (true, false, false);
            p.runs = rng.bool();
        }
        if p.kind == 2 && rng.u8(..6) == 0 {
            p.inv = Some(victim(rng.u64(..VICTIMS)));
            p.inv_pd = 1 + rng.u32(..2);
        }
        let mut len = match rng.u8(..5) {
            0 => 0,
            1 => 4096,
            2 => rng.usize(1..=lanes),
            _ => rng.usize(1..=4096),
        };
        // Mostly a region that permits it.
        let region = |rng: &mut fastrand::Rng, remote: bool| loop {
            let mr = regions[rng.usize(..6)];
            let right = mr.pd == pd
                && if remote {
                    mr.remote_write
                } else {
                    mr.local_write
                };
            if right || rng.u8(..100) == 0 {
                return mr;
            }
        };
        if p.kind >= 2 {
            let entries = [1, 1, 2, 3, 4, 8, 16][rng.usize(..7)];
            let list = (0..entries).map(|_| {
                let mr = region(rng, false);
                let length = [0, rng.u32(..64), rng.u32(..600), rng.u32(..5000)][rng.usize(..4)];
                let addr = mr.base + rng.u64(..REGION - 10 - u64::from(length));
                Sge {
                    addr,
                    length,
                    lkey: mr.key,
                }
            });
            p.wqe = if p.kind == 3 {
                Wqe::send(list.collect())
            } else {
                Wqe::new(list.collect())
            };
            let total: u32 = p.wqe.list.iter().map(|sge| sge.length).sum();
            p.offset = if rng.bool() { 0 } else { rng.u32(..=total) };
            if rng.u8(..32) > 0 {
                len = len.min((total - p.offset) as usize);
            }
            match rng.u8(..128) {
                0 => p.wqe.unreadable = Some(rng.usize(..p.wqe.slots)),
                1 => p.wqe.num_sge = rng.u8(..),
                2 => p.wqe.slots = (2 * p.wqe.slots).min(8),
                _ => {}
            }
        } else {
            let mr = region(rng, true);
            p.key = mr.key ^ u32::from(rng.u8(..100) == 0);
            p.offset = rng.u32(..2) * 4096;
            p.addr = mr.base + rng.u64(..REGION - 10 - len as u64);
            if rng.u8(..50) == 0 {
                p.addr = mr.last - rng.u64(..4096);
            }
        }
        p.data = (0..len).map(|_| rng.u8(..)).collect();
        if p.complete && rng.bool() {
            p.number = Some(rng.u16(..1 << 15));
            if rng.u8(..32) == 0 {
                p.number = Some(NO_NUMBER);
                p.wqe.unreadable = Some(0);
            }
        }
        p
    }
}

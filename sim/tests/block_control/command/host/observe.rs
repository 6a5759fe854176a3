//! What the block does in a cycle: checked, and noted.

use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::eq::EqCtx;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::verilator::{Dut, Output, Signal};

use super::{Effect, Event, Host};

/// Values of the variants of the events' kinds.
const SQ_COMMAND: u64 = 8;
const RQ_COMMAND: u64 = 5;
const SRQ_COMMAND: u64 = 9;

/// A port of `width` bits with its value in bytes.
fn bytes(dut: &Dut, output: Output, len: usize) -> Vec<u8> {
    let width = Signal::from(output).words();
    let mut words = vec![0; width];
    dut.read(output, &mut words);
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.resize(len, 0);
    bytes
}

impl Host {
    fn images(&mut self, dut: &Dut) {
        let p = &self.ports;
        let qpn = dut.get(p.image_qpn);
        let effect: [fn(u64, Vec<u8>) -> Effect; 4] =
            [Effect::Sq, Effect::Av, Effect::Rq, Effect::Mr];
        for (i, effect) in effect.into_iter().enumerate() {
            if dut.is_set(p.enables[i]) {
                let index = if i == 3 { dut.get(p.mr_index) } else { qpn };
                self.effects
                    .push(effect(index, bytes(dut, p.images[i], 64)));
            }
        }
        if dut.is_set(p.enables[6]) {
            let image = bytes(dut, p.images[4], 64);
            let srqn = dut.get(p.srq_srqn);
            self.effects.push(Effect::Srq(srqn, image));
        }
        if dut.is_set(p.enables[5]) {
            let image = bytes(dut, p.images[1], 64);
            self.effects.push(Effect::Ah(qpn, image));
        }
        if dut.is_set(p.enables[4]) {
            let mut image = bytes(dut, p.gid[1], 64);
            image[16] = (dut.get(p.gid[2]) | dut.get(p.gid[3]) << 1) as u8;
            self.effects.push(Effect::Gid(dut.get(p.gid[0]), image));
        }
    }

    fn write_beat(&mut self, dut: &Dut) -> Result<(), String> {
        let Some((at, start)) = self.burst else {
            return Err("a beat without burst".into());
        };
        let strb = dut.get(self.ports.beats[1]);
        let data = bytes(dut, self.ports.beats[0], self.lanes as usize);
        let base = at & !(self.lanes - 1);
        for (i, byte) in (0..self.lanes).zip(data) {
            let inside = (start..start + 32).contains(&(base + i));
            if (strb >> i & 1 == 1) != inside {
                return Err(format!("strobes {strb:#x} at {at:#x} of {start:#x}"));
            }
            if inside {
                self.memory.write(base + i, &[byte]).expect("mapped");
            }
        }
        let next = base + self.lanes;
        let last = next >= start + 32;
        if dut.is_set(self.ports.beats[2]) != last {
            return Err(format!("last is {} at {at:#x}", !last));
        }
        self.burst = Some((next, start));
        if last {
            self.burst = None;
            self.effects.push(Effect::Completion(start));
        }
        Ok(())
    }

    fn events(&mut self, dut: &Dut) -> Result<(), String> {
        let p = &self.ports;
        let event = |ports: &[Output]| Event {
            qpn: dut.get(ports[1]),
            psn: dut.get(ports[2]),
            state: dut.get(ports[3]),
            set: dut.is_set(ports[4]),
            reset: dut.is_set(ports[5]),
            image: dut.is_set(ports[6]),
        };
        let sq = dut.is_set(p.sq_event[7]) && self.ready[3];
        let rq = dut.is_set(p.rq_event[9]) && self.ready[4];
        let kinds = (dut.get(p.sq_event[0]), dut.get(p.rq_event[0]));
        let (for_sq, for_rq) = (event(&p.sq_event), event(&p.rq_event));
        if rq && kinds.1 == SRQ_COMMAND {
            let [srqn, limit] = [p.rq_event[7], p.rq_event[8]].map(|port| dut.get(port));
            let (set, image) = (for_rq.set, for_rq.image);
            self.open[1] = Some(srqn);
            self.due = 1;
            self.effects.push(Effect::SrqEvent {
                srqn,
                set,
                image,
                limit,
            });
            return if sq {
                Err("the requester has no part in it".into())
            } else {
                Ok(())
            };
        }
        if (sq && kinds.0 != SQ_COMMAND) || (rq && kinds.1 != RQ_COMMAND) {
            return Err(format!("events of the kinds {kinds:?}"));
        }
        if sq {
            self.open[0] = Some(for_sq.qpn);
            self.effects.push(Effect::SqEvent(for_sq));
        }
        if rq {
            self.open[1] = Some(for_rq.qpn);
            self.effects.push(Effect::RqEvent(for_rq));
        }
        // the order of the two does not matter
        if let [.., Effect::RqEvent(_), Effect::SqEvent(_)] = &self.effects[..] {
            let n = self.effects.len();
            self.effects.swap(n - 1, n - 2);
        }
        Ok(())
    }

    /// What the command under way did to a completion queue.
    fn cq_effect(&self) -> Option<&Effect> {
        let done = |e: &Effect| matches!(e, Effect::Done { .. });
        let from = self.effects.iter().rposition(done).map_or(0, |at| at + 1);
        let of_cq = |e: &&Effect| matches!(e, Effect::Cq { .. });
        self.effects[from..].iter().find(of_cq)
    }

    pub(super) fn observe_all(&mut self, dut: &Dut) -> Result<(), String> {
        self.images(dut);
        for i in 0..2 {
            if self.telling[i] {
                self.open[i] = None;
                self.answers += 1;
            }
        }
        if self.answers == self.due {
            self.answers = 0;
            self.due = 2;
            self.effects.push(Effect::Answered);
        }
        self.events(dut)?;
        let p = &self.ports;
        if dut.is_set(p.cq[4]) && self.ready[2] {
            let [base, consumer, log_size, eqn] = p.cq_image.map(|field| dut.get(field));
            let image = CqCtx {
                base,
                consumer,
                log_size: log_size as u8,
                eqn: eqn as u8,
            };
            let image = image.emit().to_vec();
            let (cqn, open) = (dut.get(p.cq[0]), dut.is_set(p.cq[1]));
            let resize = dut.is_set(p.cq[2]).then(|| dut.get(p.cq[3]));
            self.effects.push(Effect::Cq {
                cqn,
                open,
                resize,
                image,
            });
        }
        let p = &self.ports;
        if dut.is_set(p.eq[2]) && self.ready[2] {
            let [base, consumer, log_size, vector, moderation] =
                p.eq_image.map(|field| dut.get(field));
            let image = EqCtx {
                base,
                consumer,
                log_size: log_size as u8,
                vector: vector as u16,
                moderation: moderation as u16,
            };
            let image = image.emit().to_vec();
            let (eqn, open) = (dut.get(p.eq[0]), dut.is_set(p.eq[1]));
            self.effects.push(Effect::Eq { eqn, open, image });
        }
        if self.ending {
            self.draining = false;
            self.effects.push(Effect::DrainDone);
        }
        if dut.is_set(self.ports.drain_start) {
            if self.draining {
                return Err("a drain begins before the last one is done".into());
            }
            self.draining = true;
            self.effects.push(Effect::DrainStart);
        }
        let p = &self.ports;
        if dut.is_set(p.read[2]) && self.ready[0] {
            let (addr, len) = (dut.get(p.read[0]), dut.get(p.read[1]));
            if addr % 64 != 0 || len != CMD_BYTES as u64 || !self.reads.is_empty() {
                return Err(format!("a read of {len} bytes at {addr:#x}"));
            }
            let beats = len / self.lanes;
            let beat = |i| (addr + i * self.lanes, i + 1 == beats);
            self.reads.extend((0..beats).map(beat));
        }
        if dut.is_set(self.ports.beats[3]) && self.ready[1] {
            self.write_beat(dut)?;
        }
        let p = &self.ports;
        if dut.is_set(p.write[2]) && self.burst.is_none() && self.ready[1] {
            let (addr, beats) = (dut.get(p.write[0]), dut.get(p.write[1]) + 1);
            if addr % 32 != 0 || beats != (CmdCpl::BYTES as u64).div_ceil(self.lanes) {
                return Err(format!("{beats} beats at {addr:#x}"));
            }
            self.burst = Some((addr, addr));
        }
        if dut.is_set(p.done) {
            let failed = dut.is_set(p.failed);
            if let Some(Effect::Cq {
                resize: Some(_), ..
            }) = self.cq_effect()
            {
                self.resizes.pop_front();
            }
            self.effects.push(Effect::Done { failed });
        } else if dut.is_set(p.failed) {
            return Err("failed without done".into());
        }
        Ok(())
    }
}

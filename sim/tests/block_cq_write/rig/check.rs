//! Each burst and each loss against the tokens that were pushed.

use ferroce_proto::abi::cq::Cqe;
use ferroce_sim::bench::Item;

use super::{FROM_SEND, OLD, Rig, Token, is_judged};

impl Rig {
    pub(super) fn compare(&mut self) -> Result<(), String> {
        while let Some((cycle, item)) = self.write.pop() {
            let beats = item.get("len") + 1;
            if beats != (32 / self.lanes as u64).max(1) {
                return Err(format!("a burst of {beats} beats"));
            }
            self.bursts.push_back((item.get("addr"), cycle));
            self.fenced(&item)?;
        }
        while let Some((_, item)) = self.beats.pop() {
            let strb = item.get("strb");
            let at = self.bytes.len() as u64;
            let words = item.words("data");
            for lane in (0..self.lanes).filter(|lane| strb >> lane & 1 == 1) {
                let byte = words[lane / 4].to_le_bytes()[lane % 4];
                self.bytes.push((
                    at / self.lanes as u64 * self.lanes as u64 + lane as u64,
                    byte,
                ));
            }
            if item.get("last") == 1 {
                self.ended.push_back(std::mem::take(&mut self.bytes));
            }
        }
        while !self.bursts.is_empty() && !self.ended.is_empty() {
            let (addr, cycle) = self.bursts.pop_front().expect("looked at");
            let bytes = self.ended.pop_front().expect("looked at");
            self.landed(addr, cycle, &bytes)?;
        }
        while let Some((_, item)) = self.lost.pop() {
            let qpn = item.get("qpn") as u16;
            if self.takes_refusal(qpn) {
                continue;
            }
            if is_judged(qpn) {
                return Err(format!("{qpn:#x} is lost by its outcome alone"));
            }
            self.was_lost(qpn, item.get("cqn") as u16)?;
        }
        self.compare_outcome()?;
        while let Some((_, item)) = self.marks.pop() {
            self.was_marked(item.get("qpn") as u16, item.get("recv") == 0)?;
        }
        Ok(())
    }

    /// Payload of a token was refused, and its status tells of it.
    pub(super) fn is_refused(&self, qpn: u16, fence: u64, fenced: bool) -> bool {
        let since = self.spoiled.get(&qpn);
        since.is_some_and(|&end| fenced && (fence >= end || end >= OLD))
    }

    /// A refused token that was a success otherwise is reported beside its CQE, once: takes it off the list.
    fn takes_refusal(&mut self, qpn: u16) -> bool {
        let end = self.spoiled.get(&qpn);
        end.is_some_and(|_| self.due_refusals.remove(&qpn))
    }

    /// Outcomes come in the order of the tokens. That of a token which is no CQE in the end tells that it was lost.
    fn compare_outcome(&mut self) -> Result<(), String> {
        let outcome = self.bench.dut().get(self.outcome);
        if outcome & 2 == 0 {
            return Ok(());
        }
        let (qpn, cqn) = self.judged.pop_front().ok_or("an outcome of nothing")?;
        let refused = self.takes_refusal(qpn);
        match outcome & 1 {
            0 if refused => Err(format!("a good outcome of {qpn:#x}")),
            1 if refused => Ok(()),
            0 => Ok(()),
            _ => self.was_lost(qpn, cqn),
        }
    }

    /// No burst leaves before the payload of a completion that can be its own.
    fn fenced(&self, item: &Item) -> Result<(), String> {
        let is_due = |token: &Token| token.fence <= self.done;
        if !self.tokens.iter().flatten().any(is_due) {
            return Err(format!("nothing is due, and yet {item:?}"));
        }
        Ok(())
    }

    /// A marker comes behind all tokens of its input before it, their CQEs and the payload in host memory.
    fn was_marked(&mut self, qpn: u16, of_sends: bool) -> Result<(), String> {
        let input = usize::from(of_sends);
        let place = self.tokens[input].iter().position(|t| t.marker);
        let token = place.and_then(|place| self.tokens[input].remove(place));
        let Some(token) = token.filter(|t| t.qpn == qpn) else {
            return Err(format!("marker {qpn:#x} is not the next"));
        };
        // what is in front of it yet was lost
        let before = self.tokens[input].iter_mut().take(place.unwrap_or(0));
        before.for_each(|t| t.passed = true);
        let mut flying = self.seen[self.reports.landed()..].iter();
        if flying.any(|(_, of, _)| (of & FROM_SEND != 0) == of_sends && *of < qpn) {
            return Err(format!("{token:?} before the CQEs in front of it"));
        }
        if token.fence > self.done {
            return Err(format!("{token:?} before its payload"));
        }
        self.drains += 1;
        Ok(())
    }

    fn landed(&mut self, addr: u64, cycle: u64, bytes: &[(u64, u8)]) -> Result<(), String> {
        let first = addr % self.lanes as u64;
        let places = bytes.iter().map(|(place, _)| *place);
        if !places.eq(first..first + 32) {
            return Err(format!("bytes of the burst at {addr:#x}: {bytes:?}"));
        }
        let bytes: Vec<u8> = bytes.iter().map(|(_, byte)| *byte).collect();
        let cqe = Cqe::parse(bytes.first_chunk().expect("32 bytes"));
        let input = usize::from(cqe.qpn as u16 & FROM_SEND != 0);
        let place = self.tokens[input]
            .iter()
            .position(|t| u32::from(t.qpn) == cqe.qpn);
        let token = place.and_then(|place| self.tokens[input].remove(place));
        let Some(token) = token else {
            return Err(format!("a CQE of no token, or its second: {cqe:?}"));
        };
        if token.passed {
            return Err(format!("{token:?} behind a marker that came behind it"));
        }
        if token.fence > self.done {
            return Err(format!("{token:?} before its payload, {} done", self.done));
        }
        let over = self.accesses.map(|counts| counts[1]);
        if token.cqe.with_inv && (over[0] < token.begun[0] || over[1] < token.begun[1]) {
            return Err(format!("{token:?} before accesses, {over:?} are over"));
        }
        if let Some((due, over)) = self.own_atomics.get(&token.qpn)
            && over < due
        {
            return Err(format!("{token:?} before its atomics: {over} of {due}"));
        }
        let ring = &mut self.rings[usize::from(token.cqn)];
        let ctx = ring.current();
        let slot = ring.written & ((1 << ctx.log_size) - 1);
        let expected = Cqe {
            owner: ring.written >> ctx.log_size & 1 == 0,
            ..token.cqe
        };
        let at = ctx.base + u64::from(slot) * Cqe::BYTES as u64;
        if (at, expected) != (addr, cqe) {
            return Err(format!(
                "{cqe:?} at {addr:#x}, expected {expected:?} at {at:#x}"
            ));
        }
        ring.written += 1;
        ring.pass();
        let solicited = cqe.solicited || cqe.status != 0;
        self.reports.written(token.cqn, ring.written, solicited);
        ring.pending -= 1;
        if ring.written - ring.consumed > ring.size() {
            return Err(format!("queue {} wrote over an entry", token.cqn));
        }
        let is_ordered = ring.last_cqe[input].is_none_or(|last| last < token.qpn)
            && ring.first_lost[input].is_none_or(|lost| lost > token.qpn);
        if !ring.open || !is_ordered {
            return Err(format!(
                "{token:?} out of order, or not in an open queue: {ring:?}"
            ));
        }
        ring.last_cqe[input] = Some(token.qpn);
        self.seen.push((token.cqn, token.qpn, cycle));
        Ok(())
    }

    fn was_lost(&mut self, qpn: u16, cqn: u16) -> Result<(), String> {
        let input = usize::from(qpn & FROM_SEND != 0);
        let place = self.tokens[input]
            .iter()
            .position(|t| (t.qpn, t.cqn) == (qpn, cqn));
        let token = place.and_then(|place| self.tokens[input].remove(place));
        let Some(token) = token else {
            return Err(format!(
                "no token of {qpn:#x} for queue {cqn}, or lost twice"
            ));
        };
        self.losses += 1;
        let ring = &mut self.rings[usize::from(cqn)];
        ring.pending -= 1;
        if ring.open && ring.first_lost == [None; 2] {
            self.expected_overflows += 1;
            // that it was full shows when all CQEs are there
            let after = ring
                .looks
                .iter()
                .filter(|(asked, _)| Some(*asked) > token.taken);
            ring.full_by = after.map(|(_, known)| *known).collect();
            if ring.full_by.is_empty() {
                return Err(format!("{token:?} lost without a look after it: {ring:?}"));
            }
        }
        if ring.last_cqe[input].is_some_and(|last| last > qpn) {
            return Err(format!("{token:?} lost, a later one written"));
        }
        ring.first_lost[input].get_or_insert(qpn);
        Ok(())
    }
}

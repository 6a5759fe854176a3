//! The messages of a [`Line`]: what is posted, and what has to come of it.

use fastrand::Rng;
use ferroce_proto::abi::cq::{Cqe, opcode, status};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe;
use ferroce_sim::testhost::{Host, Mr, Work};

use super::end::{Inbound, Sent};
use super::kernel::Kernel;
use super::lent;
use super::line::{GRH, Line, SPOILT, State, UNTOUCHED, WINDOW, message};

/// Kinds of what is posted: a SEND with invalidate, and one, with a fence, of what the READ in front of it brings.
const GIVE_BACK: u8 = 9;
const ECHO: u8 = 10;
/// Cycles a byte that a host takes for messages which no acknowledgement bounds: a model sends them at once, and a dozen such
/// queue pairs would fill the port of an engine for good.
const UNBOUNDED: u64 = 2;

impl Line {
    /// Posts a message, now and then; if it is the `last`, it asks for a completion.
    pub(super) fn post(&mut self, side: usize, host: &mut Host, now: u64, last: bool) {
        let kind = self.shape.options.qp_type;
        let far = &self.ends[1 - side];
        let crowded = far.inbound.len() >= WINDOW && !self.shape.lossy;
        let rests = now < self.ends[side].rests_until;
        if self.ends[side].sent.len() >= WINDOW || crowded || rests || self.rng.u8(..4) > 0 {
            return;
        }
        let (remote, far_qpn) = (far.memory.expect("it is open"), far.qpn);
        let longest = match kind {
            qp_type::UD => self.shape.longest.min(1 << self.shape.options.mtu.log2()),
            _ => self.shape.longest,
        };
        let len = match self.rng.u8(..4) {
            0 => self.rng.usize(8..=64),
            _ => self.rng.usize(8..=longest),
        };
        let number = self.ends[side].next;
        let uses = |sent: &Sent, slot| sent.slot == slot || sent.echoes == Some(slot);
        let taken = |slot: &usize| self.ends[side].sent.iter().any(|sent| uses(sent, *slot));
        let Some(slot) = (0..WINDOW).find(|slot| !taken(slot)) else {
            return;
        };
        let written = |slot: &usize| far.inbound.iter().any(|c| c.written == Some(*slot));
        let free = (0..WINDOW).find(|slot| !written(slot));
        let mr = self.ends[side].memory.expect("it is open");
        let source = self.at(0, slot);
        let bytes = message(self.shape.mark, number, len);
        host.write(mr.addr + source as u64, &bytes);
        let list = self.list(&mr, source, len);
        let send = |rng: &mut Rng| match rng.u8(..4) {
            0 if len <= 200 => Work::send(&[]).inline(&bytes),
            _ => Work::send(&list),
        };
        let places: [u64; WINDOW] = std::array::from_fn(|slot| self.at(2, slot) as u64);
        let (area, area_read) = (self.at(3, slot), self.at(4, 0) as u64);
        let counter = self.at(5, 0) as u64;
        // A WRITE that no completion tells of is looked at with the next that does.
        let unannounced = far
            .inbound
            .iter()
            .filter(|inbound| !inbound.announced)
            .count();
        let what = match kind {
            qp_type::RC if unannounced < WINDOW - 2 => self.rng.u8(..10),
            _ => self.rng.u8(..2),
        };
        // That it waits for what is in front shows best if it follows at once.
        let follows = self.rng.bool();
        let front = self.ends[side].sent.back().filter(|_| follows);
        let mut echoes = None;
        let what = match front {
            Some(front) if front.lent && self.shape.lossy => GIVE_BACK,
            Some(front) if front.opcode == wqe::opcode::READ && !front.lent => {
                echoes = Some((front.slot, front.number as usize, front.len));
                ECHO
            }
            Some(front) if front.opcode == wqe::opcode::FETCH_ADD => what % 2,
            _ => what,
        };
        let mut inbound = Inbound {
            number,
            len,
            imm: None,
            inv: None,
            written: None,
            echo: None,
            added: self.ends[side].added,
            announced: true,
        };
        let mut comes = true;
        // A READ that is asked for finds its key gone, unless it waits for the fence: where a connection may give up.
        let borrowed = self.lent[1 - side].usable();
        let uses_it = self.ends[side].sent.iter().any(|sent| sent.lent);
        let gives_back = !uses_it || self.shape.lossy && self.rng.bool();
        let (mut is_lent, mut expected, mut takes) = (false, number, len);
        let mut work = match (what, free) {
            (0, _) => send(&mut self.rng),
            (2 | 3, Some(slot)) => {
                (inbound.written, inbound.announced) = (Some(slot), what == 3);
                Work::write(&list, &remote, places[slot])
            }
            (4 | 5, _) => {
                comes = false;
                let from = self.rng.usize(..=self.shape.longest - len) as u64;
                let work = Work::read(&self.list(&mr, area, len), &remote, area_read + from);
                host.write(mr.addr + area as u64, &vec![UNTOUCHED; len + 8]);
                work
            }
            (6, _) => {
                comes = false;
                self.ends[side].added += 1;
                Work::fetch_add(mr.sge(area as u64, 8), &remote, counter, 1)
            }
            (7, _) if let Some(borrowed) = &borrowed => {
                (comes, is_lent, takes) = (false, true, lent::size(self.shape.longest));
                let list = [mr.sge(area as u64, takes as u32)];
                Work::read(&list, borrowed, lent::COUNTER as u64)
            }
            (8, _) if let Some(borrowed) = &borrowed => {
                (comes, is_lent) = (false, true);
                let lent = &mut self.lent[1 - side];
                expected = lent.count as u32;
                lent.count += 1;
                Work::fetch_add(mr.sge(area as u64, 8), borrowed, 0, 1)
            }
            (GIVE_BACK, _) if let Some(borrowed) = borrowed.filter(|_| gives_back) => {
                self.lent[1 - side].give_back(uses_it);
                inbound.inv = Some(borrowed.key);
                // of an empty one the key alone is waited for
                let is_empty = self.rng.bool();
                inbound.len = if is_empty { 0 } else { len };
                let list = if is_empty { &[][..] } else { &list };
                let mut work = Work::new(wqe::opcode::SEND_INV, list);
                work.head.imm = borrowed.key;
                work
            }
            (ECHO, _) if let Some((read, from, len)) = echoes => {
                (inbound.len, inbound.echo) = (len, Some(from));
                let at = self.at(3, read) as u64;
                let mut work = Work::send(&[mr.sge(at, len as u32)]);
                work.head.fence = true;
                work
            }
            _ => send(&mut self.rng),
        };
        if what == 1 || what == 3 && inbound.written.is_some() {
            work = work.imm(number ^ self.shape.mark);
            inbound.imm = Some(number ^ self.shape.mark);
        }
        if kind == qp_type::UD {
            work.head.remote_addr = u64::from(far_qpn) << 32 | u64::from(self.number);
            work.head.rkey = self.shape.options.qkey;
        }
        // At least one in three asks for a completion.
        let latest = self.ends[side].sent.iter().rev();
        let unsignaled = latest.take_while(|sent| !sent.signaled).count();
        work.head.signaled = last || unsignaled >= WINDOW - 2 || self.rng.u8(..3) > 0;
        work.head.solicited = self.rng.u8(..8) == 0;
        let since = now;
        let index = host.post_send(self.ends[side].qpn, &work);
        // Bytes 8 on of a READ say where it was read.
        let number = if work.head.opcode == wqe::opcode::READ && !is_lent {
            (work.head.remote_addr - remote.addr - area_read) as u32
        } else {
            expected
        };
        self.ends[side].sent.push_back(Sent {
            number,
            index,
            slot,
            len: takes,
            opcode: work.head.opcode,
            lent: is_lent,
            echoes: echoes.map(|(read, ..)| read),
            signaled: work.head.signaled,
            since,
        });
        self.ends[side].next += 1;
        if kind != qp_type::RC && self.shape.lossy {
            self.ends[side].rests_until = now + UNBOUNDED * len as u64;
        }
        if comes {
            self.ends[1 - side].inbound.push_back(inbound);
        }
    }

    /// The bytes in up to three pieces.
    fn list(&self, mr: &Mr, at: usize, len: usize) -> Vec<wqe::Sge> {
        let cut = (len * 7 / 11, len * 10 / 11);
        let piece = |from: usize, to: usize| mr.sge((at + from) as u64, (to - from) as u32);
        match len % 3 {
            0 => vec![piece(0, len)],
            1 => vec![piece(0, cut.0), piece(cut.0, len)],
            _ => vec![piece(0, cut.0), piece(cut.0, cut.1), piece(cut.1, len)],
        }
    }

    pub(super) fn completed(
        &mut self,
        side: usize,
        (host, kernel): (&mut Host, &mut Kernel),
        cqe: &Cqe,
    ) {
        let name = self.name(side);
        assert!(!self.ends[side].closed, "{name}: {cqe:?} behind its end");
        assert_eq!(cqe.qpn, self.ends[side].qpn, "{name}: {cqe:?}");
        if matches!(self.state, State::Dying | State::Closed) || self.gave_up {
            return;
        }
        // A request with a key that is gone fails, or is not answered if it is a READ that is repeated, and the responder's
        // receives are flushed.
        let [own, other] = [side, 1 - side].map(|side| self.lent[side].raced);
        let may_end = match cqe.status {
            status::REM_ACCESS_ERR | status::RETRY_EXC_ERR => other,
            status::WR_FLUSH_ERR => own,
            _ => false,
        };
        let ends = self.shape.lossy && may_end || self.refused && cqe.status != status::SUCCESS;
        if ends {
            self.gave_up = true;
            return;
        }
        assert_eq!(cqe.status, status::SUCCESS, "{name}: {cqe:?}");
        if cqe.recv {
            self.received(side, host, cqe);
            if cqe.with_inv {
                self.lent[side].came_back(host, cqe.imm, &name);
                self.lend(side, host, kernel);
            }
        } else {
            self.was_sent(side, host, cqe);
        }
    }

    /// A completion is of a message, and of those before it that ask for none.
    fn was_sent(&mut self, side: usize, host: &Host, cqe: &Cqe) {
        let name = self.name(side);
        loop {
            let sent = self.ends[side].sent.pop_front();
            let sent = sent.unwrap_or_else(|| panic!("{name}: {cqe:?} of what was not sent"));
            let is_last = cqe.wqe_index == sent.index;
            assert!(is_last == sent.signaled, "{name}: {cqe:?}");
            if is_last && sent.opcode == wqe::opcode::READ {
                let says = (cqe.opcode, cqe.byte_len as usize);
                assert_eq!(says, (opcode::READ, sent.len), "{name}: {cqe:?}");
            }
            self.is_done(side, host, &sent);
            if is_last {
                return;
            }
        }
    }

    fn is_done(&mut self, side: usize, host: &Host, sent: &Sent) {
        let name = self.name(side);
        let mr = self.ends[side].memory.expect("it is open");
        let result = mr.addr + self.at(3, sent.slot) as u64;
        match sent.opcode {
            wqe::opcode::READ if sent.lent => {
                let expected = self.lent_bytes();
                let bytes = host.read(result, expected.len());
                self.compare(side, "READ of what is lent", &bytes, &expected);
            }
            wqe::opcode::READ => {
                let from = sent.number as usize;
                let expected = &self.fixed()[from..from + sent.len];
                let mut bytes = host.read(result, sent.len + 8);
                assert_eq!(
                    bytes.split_off(sent.len),
                    [UNTOUCHED; 8],
                    "{name}: behind a READ"
                );
                self.compare(side, "READ", &bytes, expected);
            }
            wqe::opcode::FETCH_ADD => {
                let before = u64::from_le_bytes(host.read(result, 8).try_into().expect("8 bytes"));
                let expected = match sent.lent {
                    true => u64::from(sent.number),
                    false => self.ends[side].counter,
                };
                assert_eq!(before, expected, "{name}: an atomic");
                self.ends[side].counter += u64::from(!sent.lent);
                self.tally.messages += 1;
            }
            _ => {
                let source = mr.addr + self.at(0, sent.slot) as u64;
                host.write(source, &vec![SPOILT; sent.len]);
            }
        }
    }

    fn expected(&self, inbound: &Inbound) -> Vec<u8> {
        match inbound.echo {
            Some(from) => self.fixed()[from..from + inbound.len].to_vec(),
            None => message(self.shape.mark, inbound.number, inbound.len),
        }
    }

    fn received(&mut self, side: usize, host: &mut Host, cqe: &Cqe) {
        let name = self.name(side);
        let slot = self.ends[side].receives.remove(&cqe.wqe_index);
        let slot = slot.unwrap_or_else(|| panic!("{name}: {cqe:?} of what was not posted"));
        let mr = self.ends[side].memory.expect("it is open");
        let skip = if self.shape.options.qp_type == qp_type::UD {
            GRH
        } else {
            0
        };
        let place = mr.addr + (self.at(1, slot) + skip) as u64;
        let repeats = self.shape.options.qp_type == qp_type::RC;
        loop {
            let inbound = self.ends[side].inbound.pop_front();
            let inbound = inbound.unwrap_or_else(|| panic!("{name}: {cqe:?} of what was not sent"));
            let is_write = inbound.written.is_some();
            let from = match inbound.written {
                Some(slot) => mr.addr + self.at(2, slot) as u64,
                None => place,
            };
            let bytes = host.read(from, inbound.len);
            let expected = self.expected(&inbound);
            let its_own = cqe.byte_len as usize == inbound.len + skip
                && cqe.imm == inbound.imm.or(inbound.inv).unwrap_or(0)
                && bytes == expected;
            if (self.shape.lossy || self.refused) && !repeats && !its_own {
                self.tally.lost += 1;
                continue;
            }
            self.compare(side, "message", &bytes, &expected);
            // One that raced with the end of its key may be refused, and with it those behind it.
            if repeats && !self.lent[side].raced {
                let counter = host.read(mr.addr + self.at(5, 0) as u64, 8);
                let done = u64::from_le_bytes(counter.try_into().expect("8 bytes"));
                assert!(
                    done >= inbound.added,
                    "{name}: {cqe:?}: {done} atomics of {} before it",
                    inbound.added
                );
            }
            if !inbound.announced {
                continue;
            }
            let code = if is_write {
                opcode::RECV_WRITE_IMM
            } else {
                opcode::RECV
            };
            assert_eq!(
                (
                    cqe.opcode,
                    cqe.byte_len as usize,
                    cqe.with_imm.then_some(cqe.imm),
                    cqe.with_inv.then_some(cqe.imm)
                ),
                (code, inbound.len + skip, inbound.imm, inbound.inv),
                "{name}: {cqe:?}"
            );
            break;
        }
        let spoilt = vec![UNTOUCHED; self.shape.longest + GRH];
        host.write(mr.addr + self.at(1, slot) as u64, &spoilt);
        self.ends[side].owed.push_back(slot);
    }

    fn compare(&mut self, side: usize, what: &str, found: &[u8], expected: &[u8]) {
        if let Some(at) = (0..expected.len()).find(|&at| found[at] != expected[at]) {
            panic!(
                "{}: byte {at} of {} of a {what} is {:#x}, not {:#x}",
                self.name(side),
                expected.len(),
                found[at],
                expected[at]
            );
        }
        self.tally.messages += 1;
        self.tally.bytes += expected.len() as u64;
    }
}

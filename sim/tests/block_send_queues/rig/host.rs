//! The host: contexts, commands, rings, doorbells, completions.

use std::collections::{BTreeMap, VecDeque};

use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_proto::abi::qpc::{SqCtx, state};
use ferroce_proto::abi::wqe::SendWqe;
use ferroce_sim::bench::{Agent, Item};
use ferroce_sim::verilator::Dut;

use super::path::CQE_OPCODES;
use super::{Done, Kind, Message, Post, Qp, RING, Rig};

const DOORBELL: u64 = SqEventKind::Doorbell as u64;
const COMMAND: u64 = SqEventKind::Command as u64;
const FAILED: u64 = SqEventKind::Failed as u64;
const UNREAD: u64 = SqEventKind::Unread as u64;

/// Answers the reads of slots, `latency` cycles later.
pub(crate) struct Memory {
    latency: u64,
    slots: BTreeMap<u64, [u8; 64]>,
    queue: VecDeque<(u64, [u8; 64], bool)>,
    /// Addresses of the slots that were read.
    reads: Vec<u64>,
    cycle: u64,
}

impl Memory {
    pub(super) fn new(latency: u64) -> Self {
        Self {
            latency,
            slots: BTreeMap::new(),
            queue: VecDeque::new(),
            reads: Vec::new(),
            cycle: 0,
        }
    }

    pub(super) fn read(&mut self, addr: u64, len: u64) {
        for i in 0..len / 64 {
            self.reads.push(addr + 64 * i);
            let slot = self.slots.get(&(addr + 64 * i));
            let slot = *slot.expect("a slot that was posted");
            self.queue
                .push_back((self.cycle + self.latency, slot, i + 1 == len / 64));
        }
    }
}

impl Agent for Memory {
    fn drive(&mut self, dut: &mut Dut, _: &mut fastrand::Rng) {
        let valid = dut.input("beat_valid").unwrap();
        dut.set(valid, 0);
        let is_due = |f: &(u64, [u8; 64], bool)| f.0 <= self.cycle;
        if self.queue.front().is_some_and(is_due) {
            let (_, bytes, last) = self.queue.pop_front().unwrap();
            let word = |c: &[u8]| u32::from_le_bytes(c.try_into().unwrap());
            let words: Vec<u32> = bytes.chunks(4).map(word).collect();
            dut.set(valid, 1);
            dut.write(dut.input("beat_data").unwrap(), &words);
            dut.set(dut.input("beat_last").unwrap(), last.into());
            dut.set(dut.input("beat_error").unwrap(), 0);
        }
        self.cycle += 1;
    }
    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "reads not answered".into())
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("beat_valid").unwrap(), 0);
    }
}

impl Rig {
    /// Brings queue pair `qpn` to RTS.
    pub(crate) fn open(&mut self, qpn: u64, ctx: SqCtx, psn: u32) {
        let ctx = SqCtx {
            ot_log: RING.ilog2() as u8,
            ot_base: (qpn * RING) as u32,
            sq_base: 0x1000_0000 + (qpn << 24),
            cqn: 5,
            ..ctx
        };
        let image = self.bench.dut().input("sq_image").unwrap();
        let word = |c: &[u8]| u32::from_le_bytes(c.try_into().unwrap());
        let mut words: Vec<u32> = ctx.emit().chunks(4).map(word).collect();
        words.truncate(image.width().div_ceil(32));
        if !image.width().is_multiple_of(32) {
            *words.last_mut().unwrap() &= (1 << (image.width() % 32)) - 1;
        }
        self.bench.dut_mut().write(image, &words);
        self.set("image_qpn", qpn);
        self.set("sq_we", 1);
        self.step();
        self.set("sq_we", 0);
        self.qps[qpn as usize] = Qp {
            ctx,
            psn,
            ..Qp::default()
        };
        self.modify(qpn, 3, Some(psn));
        self.run(20);
    }

    /// Takes queue pair `qpn` through RESET to RTS: a new life.
    pub(crate) fn reopen(&mut self, qpn: u64, ctx: SqCtx, psn: u32) {
        self.modify(qpn, state::RESET, Some(psn));
        self.run(50);
        // RESET leaves the producer index as it is
        self.ring_at(qpn, 0);
        self.run(50);
        self.failures.retain(|failure| failure.qpn != qpn);
        self.open(qpn, ctx, psn);
    }

    /// Sets the state of the send queue, `reset` to start afresh with this PSN.
    pub(crate) fn modify(&mut self, qpn: u64, state: u8, reset: Option<u32>) {
        let item = self.command.item();
        self.command.push(
            item.with("kind", COMMAND)
                .with("qpn", qpn)
                .with("psn", reset.unwrap_or(0).into())
                .with("set", 1)
                .with("reset", reset.is_some().into())
                .with("image", reset.is_some().into())
                .with("state", state.into()),
        );
    }

    /// The queue pair failed elsewhere.
    pub(crate) fn fail(&mut self, qpn: u64) {
        let item = self.failure.item();
        self.failure
            .push(item.with("kind", FAILED).with("qpn", qpn));
    }

    /// The payload of packet `psn` could not be read, in the first incarnation of the queue pair.
    pub(crate) fn unread(&mut self, qpn: u64, psn: u32) {
        let item = self.failure.item();
        self.failure.push(
            item.with("kind", UNREAD)
                .with("qpn", qpn)
                .with("psn", psn.into())
                .with("generation", 1),
        );
    }

    /// Of the packets that are granted and have not left only the first `count` leave.
    pub(crate) fn leave_only(&mut self, count: usize) {
        self.left.truncate(count);
    }

    /// Slots of `qpn` that were read, by their places in the ring.
    pub(crate) fn places_read(&self, qpn: u64) -> Vec<u64> {
        let SqCtx {
            sq_base, sq_log, ..
        } = self.qps[qpn as usize].ctx;
        let ring = sq_base..sq_base + (64 << sq_log);
        let reads = self.memory.reads.iter().copied();
        let own = reads.filter(|addr| ring.contains(addr));
        own.map(|addr| (addr - sq_base) / 64).collect()
    }

    /// Slots of the ring that hold nothing the queue pair may still read.
    pub(crate) fn room(&self, qpn: u64) -> u16 {
        let qp = &self.qps[qpn as usize];
        let free = qp.done.last().map_or(0, |last| {
            let m = qp.messages.iter().rfind(|m| m.index == last.index);
            let m = m.expect("it was posted");
            m.index.wrapping_add(m.slots.into())
        });
        (1 << qp.ctx.sq_log) - qp.producer.wrapping_sub(free)
    }

    /// Writes a WQE into the ring; answers its number.
    pub(crate) fn post(&mut self, qpn: u64, post: Post) -> usize {
        let slots = post.slots.max(1);
        let mut body = [0; 320];
        self.bench.rng().fill(&mut body);
        // what is not the head of a WQE looks like one
        for slot in 1..slots {
            body[64 * usize::from(slot) + 3] = self.bench.rng().u8(1..6);
        }
        let qp = &mut self.qps[qpn as usize];
        let index = qp.producer;
        let head = SendWqe {
            opcode: [0, 5, 6, 8][post.kind as usize],
            signaled: !post.quiet,
            fence: post.fence,
            slots,
            length: post.length,
            ..SendWqe::default()
        };
        body[..32].copy_from_slice(&head.emit());
        let mtu = 128 << qp.ctx.mtu;
        let packets = match (post.bad, post.kind) {
            (0, Kind::Atomic) => 1,
            (0, Kind::Bind) => 0,
            (0, _) => post.length.div_ceil(mtu).max(1),
            _ => 0,
        };
        for (i, slot) in (0..slots).zip(body.chunks(64)) {
            let place = u64::from(index.wrapping_add(i.into())) & ((1 << qp.ctx.sq_log) - 1);
            let addr = qp.ctx.sq_base + 64 * place;
            self.memory.slots.insert(addr, slot.try_into().unwrap());
        }
        qp.messages.push(Message {
            post,
            index,
            slots,
            first: qp.next,
            packets,
            started: false,
            answered: 0,
            writes: 0,
        });
        qp.next = qp.next.wrapping_add(packets);
        qp.producer = index.wrapping_add(slots.into());
        qp.messages.len() - 1
    }

    /// Rings the doorbell of `qpn`.
    pub(crate) fn ring(&mut self, qpn: u64) {
        self.ring_at(qpn, self.qps[qpn as usize].producer);
    }

    /// Says that the producer index is `index`.
    pub(crate) fn ring_at(&mut self, qpn: u64, index: u16) {
        let item = self.doorbell.item();
        self.doorbell.push(
            item.with("kind", DOORBELL)
                .with("qpn", qpn)
                .with("index", index.into()),
        );
    }

    pub(super) fn completed(&mut self, item: &Item) {
        let qpn = item.get("qpn");
        let qp = &mut self.qps[qpn as usize];
        if item.get("marker") == 1 {
            let is_done = |m: &Message| m.post.quiet || qp.done.iter().any(|d| d.index == m.index);
            let started = qp.messages.iter().filter(|m| m.started);
            assert!(
                started.clone().all(is_done),
                "a marker in front of {started:?}"
            );
            self.drained.push(qpn);
            return;
        }
        assert_eq!((item.get("cqn"), item.get("recv")), (5, 0));
        let done = Done {
            index: item.get("wqe_index") as u16,
            status: item.get("status") as u8,
            byte_len: item.get("byte_len") as u32,
            syndrome: item.get("vendor_err") as u8,
        };
        let at = |index| qp.messages.iter().rposition(|m| m.index == index);
        let place = at(done.index).expect("a completion of what was posted");
        let message = &qp.messages[place];
        let answered = message.post.kind.is_answered() && message.post.bad == 0;
        // it says of READs and atomics without completion in front of it that they are done
        let last_done = qp.done.last().and_then(|last| at(last.index));
        let unsignaled = &qp.messages[last_done.map_or(0, |last| last + 1)..place];
        let unsignaled = unsignaled
            .iter()
            .rfind(|m| m.answered == m.packets && m.post.bad == 0 && m.post.kind.is_answered());
        let fenced = item.get("fenced") == 1;
        if answered && message.started {
            assert!(fenced, "{message:?} does not wait for its data");
        } else if let Some(read) = unsignaled {
            assert!(
                fenced || !message.started,
                "{message:?} does not wait for the data of {read:?}"
            );
            let late = (item.get("fence") as u16).wrapping_sub(read.writes);
            assert!(
                !fenced || late < 0x8000,
                "{message:?} completes before the data of {read:?}"
            );
        } else {
            assert!(!fenced, "{message:?} waits for nothing");
        }
        if answered && done.status == 0 {
            assert_eq!(
                message.answered, message.packets,
                "{message:?} has its data"
            );
            let late = (item.get("fence") as u16).wrapping_sub(message.writes);
            assert!(
                late < 0x8000,
                "{message:?} completes before its data is written"
            );
            assert_eq!(done.byte_len, message.post.length);
        } else {
            assert_eq!(done.byte_len, 0);
        }
        let opcode = CQE_OPCODES[message.post.kind as usize];
        assert_eq!(item.get("opcode"), opcode, "{message:?}");
        assert!(done.status != 0 || !message.post.quiet, "{message:?}");
        qp.done.push(done);
    }
}

//! Completion queues of a [`Host`].

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use ferroce_proto::abi::doorbell;

use super::Host;

/// A completion queue.
#[derive(Clone)]
pub(super) struct Cq {
    base: u64,
    record: u64,
    log_size: u8,
    consumer: u32,
}

impl Cq {
    /// Address and bytes of the ring.
    pub(super) const fn ring(&self) -> (u64, u64) {
        (self.base, (Cqe::BYTES as u64) << self.log_size)
    }
}

impl Host {
    /// A completion queue of 2^`log_size` entries. Numbers start at 0.
    pub fn create_cq(&mut self, log_size: u8) -> u16 {
        self.create_cq_as(self.cqs.len() as u16, log_size)
    }

    /// A completion queue of a number of the caller's choice.
    pub fn create_cq_as(&mut self, cqn: u16, log_size: u8) -> u16 {
        self.create_cq_with(cqn, log_size, |_| {})
    }

    /// As [`create_cq_as`](Self::create_cq_as), with its context changed by `change`.
    pub fn create_cq_with(
        &mut self,
        cqn: u16,
        log_size: u8,
        change: impl FnOnce(&mut CqCtx),
    ) -> u16 {
        let base = self.alloc_ring(Cqe::BYTES << log_size);
        let record = self.alloc_record();
        let mut ctx = CqCtx {
            base,
            consumer: record,
            log_size,
            ..CqCtx::default()
        };
        change(&mut ctx);
        self.expect(opcode::CREATE_CQ, cqn.into(), &ctx.emit());
        let cq = Cq {
            base,
            record,
            log_size,
            consumer: 0,
        };
        self.cqs.insert(cqn, cq);
        cqn
    }

    /// Forgets a completion queue; from the answer on the card must not reach its ring.
    pub fn destroy_cq(&mut self, cqn: u16) {
        let head = CmdHead {
            opcode: opcode::DESTROY_CQ,
            index: cqn.into(),
            ..CmdHead::default()
        };
        assert_eq!(self.command(head, &[]).status, status::OK);
        self.cq_was_destroyed(cqn);
    }

    /// Notes that the end of a completion queue was answered.
    pub fn cq_was_destroyed(&mut self, cqn: u16) {
        let (base, bytes) = self.cqs[&cqn].ring();
        self.reach.take_back(base, bytes);
    }

    /// Has a completion queue go on in a ring of 2^`log_size` entries; the status. What waits is carried over.
    pub fn resize_cq(&mut self, cqn: u16, log_size: u8) -> u8 {
        let base = self.alloc_ring(Cqe::BYTES << log_size);
        let record = self.alloc_record();
        let cq = &self.cqs[&cqn];
        let consumer = cq.consumer;
        // entries of this pass are not there yet
        for index in consumer..consumer + (1 << log_size) {
            let owner = index >> log_size & 1 != 0;
            let slot = u64::from(index & ((1 << log_size) - 1));
            let blank = Cqe {
                owner,
                ..Cqe::default()
            };
            self.write(base + slot * Cqe::BYTES as u64, &blank.emit());
        }
        self.write(record, &consumer.to_le_bytes());
        let ctx = CqCtx {
            base,
            consumer: record,
            log_size,
            ..CqCtx::default()
        };
        let head = CmdHead {
            opcode: opcode::RESIZE_CQ,
            index: cqn.into(),
            cq_taken: consumer & 0xff_ffff,
            ..CmdHead::default()
        };
        let answer = self.command(head, &[ctx.emit(), [0; 64], [0; 64]]);
        if answer.status != status::OK {
            return answer.status;
        }
        let waiting = (answer.value as u32).wrapping_sub(consumer) & 0xff_ffff;
        let old = self.cqs[&cqn].clone();
        for index in consumer..consumer + waiting {
            let from = u64::from(index & ((1 << old.log_size) - 1)) * Cqe::BYTES as u64;
            let to = u64::from(index & ((1 << log_size) - 1)) * Cqe::BYTES as u64;
            let bytes = self.read(old.base + from, Cqe::BYTES);
            let cqe = Cqe::parse(bytes.first_chunk().expect("32 bytes"));
            assert_eq!(
                cqe.owner,
                index >> old.log_size & 1 == 0,
                "entry {index} of {waiting} that wait is there when the command is answered"
            );
            let owner = index >> log_size & 1 == 0;
            self.write(base + to, &Cqe { owner, ..cqe }.emit());
        }
        let (taken, bytes) = old.ring();
        self.reach.take_back(taken, bytes);
        let cq = Cq {
            base,
            record,
            log_size,
            consumer,
        };
        self.cqs.insert(cqn, cq);
        status::OK
    }

    /// The next CQE of a completion queue; its place is given back to the card.
    pub fn poll(&mut self, cqn: u16) -> Option<Cqe> {
        let cqe = self.peek(cqn)?;
        let cq = self.cqs.get_mut(&cqn).expect("created");
        cq.consumer += 1;
        let (record, consumer) = (cq.record, cq.consumer);
        self.write(record, &consumer.to_le_bytes());
        Some(cqe)
    }

    /// Arms a completion queue for what is not taken yet: `doorbell::ARM_ANY` or `ARM_SOLICITED`.
    pub fn arm_cq(&mut self, cqn: u16, order: u32) {
        let consumer = self.cqs[&cqn].consumer;
        let value = order | consumer & doorbell::ARM_INDEX;
        self.nic.write32(doorbell::cq(cqn.into()), value);
    }

    /// The next CQE of a completion queue.
    #[must_use]
    pub fn peek(&self, cqn: u16) -> Option<Cqe> {
        let cq = &self.cqs[&cqn];
        let slot = cq.consumer & ((1 << cq.log_size) - 1);
        let bytes = self.read(cq.base + u64::from(slot) * Cqe::BYTES as u64, Cqe::BYTES);
        let cqe = Cqe::parse(bytes.first_chunk().expect("32 bytes"));
        (cqe.owner == (cq.consumer >> cq.log_size & 1 == 0)).then_some(cqe)
    }
}

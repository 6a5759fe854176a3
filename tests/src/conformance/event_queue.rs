//! An event queue of a card under test, and the host's end of it.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::eq::{EqCtx, Eqe, event};
use ferroce_sim::testhost::Host;

use super::check;

/// Kind, object and detail.
pub(crate) type Event = (u8, u32, u8);

/// The queue and how far the host has come in it.
pub(crate) struct Eq {
    number: u8,
    pub(super) ctx: EqCtx,
    taken: u32,
}

impl Eq {
    /// Opens it without moderation.
    pub(crate) fn new(host: &mut Host, number: u8, log_size: u8, vector: u16) -> Self {
        Self::moderated(host, number, log_size, vector, 0)
    }

    pub(super) fn moderated(
        host: &mut Host,
        number: u8,
        log_size: u8,
        vector: u16,
        moderation: u16,
    ) -> Self {
        let ctx = EqCtx {
            base: host.alloc_ring(Eqe::BYTES << log_size),
            consumer: host.alloc_record(),
            log_size,
            vector,
            moderation,
        };
        host.expect(opcode::CREATE_EQ, number.into(), &ctx.emit());
        Self {
            number,
            ctx,
            taken: 0,
        }
    }

    pub(super) fn close(self, host: &mut Host) {
        let head = CmdHead {
            opcode: opcode::DESTROY_EQ,
            index: self.number.into(),
            ..CmdHead::default()
        };
        let answer = host.command(head, &[]);
        check("answer of DESTROY_EQ", answer.status, status::OK);
    }

    /// Event `n` since the queue was opened, if it is there.
    fn at(&self, host: &Host, n: u32) -> Option<Event> {
        let place = n & ((1 << self.ctx.log_size) - 1);
        let bytes = host.read(self.ctx.base + u64::from(place) * 16, 16);
        let eqe = Eqe::parse(bytes.first_chunk().expect("16 bytes"));
        let phase = n >> self.ctx.log_size & 1 == 0;
        (eqe.owner == phase).then_some((eqe.event, eqe.object, eqe.detail))
    }

    /// The next event.
    pub(super) fn take(&mut self, host: &Host) -> Option<Event> {
        let event = self.at(host, self.taken)?;
        self.taken += 1;
        Some(event)
    }

    pub(crate) fn all(&mut self, host: &Host) -> Vec<Event> {
        std::iter::from_fn(|| self.take(host)).collect()
    }

    /// What is there and not taken; it stays.
    pub(super) fn there(&self, host: &Host) -> Vec<Event> {
        (self.taken..).map_while(|n| self.at(host, n)).collect()
    }

    /// Of these, all but COMM_EST.
    pub(super) fn failures(&self, host: &Host) -> Vec<Event> {
        let mut events = self.there(host);
        events.retain(|found| found.0 != event::COMM_EST);
        events
    }

    /// The host is done with what it took.
    pub(crate) fn give_back(&self, host: &Host) {
        host.write(self.ctx.consumer, &self.taken.to_le_bytes());
    }
}

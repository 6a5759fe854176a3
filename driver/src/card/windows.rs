//! The memory windows of a card, and what they may be bound to.
//!
//! The card binds a window when it reaches the request, so the host knows what a window is bound to when the request's
//! completion was polled. Until then it may be bound to this or to that.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::mr::MrCtx;

use super::Card;
use crate::Backend;
use crate::command::{Command, CommandError};
use crate::host::lock;
use crate::queue::Queues;

/// A bind that was posted, and did not fail as far as was polled.
pub(crate) struct Posted {
    /// Place of the region, if there is one.
    pub(crate) region: Option<u32>,
    /// Queue pair, in the life of these queues.
    pub(crate) qpn: u32,
    pub(crate) queues: Arc<Queues>,
    /// Slot of the request.
    pub(crate) at: u32,
    /// That life is over: it was executed or never will be.
    pub(crate) over: bool,
}

impl Posted {
    /// It was executed.
    fn is_done(&self) -> bool {
        !self.over && self.queues.sq.is_retired(self.at)
    }
}

/// A place of the table that has a window, or had one that requests may still name.
#[derive(Default)]
struct Window {
    /// The entry when nothing is bound.
    unbound: MrCtx,
    /// What it may be bound to, in the order in which it was posted.
    posted: Vec<Posted>,
}

impl Window {
    /// Forgets what came to nothing by a later bind.
    fn settle(&mut self) {
        let Some(last) = self.posted.iter().rposition(Posted::is_done) else {
            return;
        };
        let mut place = 0;
        self.posted.retain(|posted| {
            place += 1;
            place > last || !(posted.over || posted.is_done())
        });
    }
}

/// The windows of a card by their places. Whoever ends some holds the lock, so that a window never outlives what it is bound
/// to.
#[derive(Default)]
pub(crate) struct Windows(BTreeMap<u32, Window>);

impl Windows {
    /// Allocates the window of this entry.
    pub(crate) fn allocate<B: Backend>(
        &mut self,
        card: &Card<B>,
        entry: MrCtx,
    ) -> Result<(), CommandError> {
        let place = entry.key >> 8;
        write(card, place, entry)?;
        self.0.entry(place).or_default().unbound = entry;
        Ok(())
    }

    /// The window is none any more.
    pub(crate) fn free<B: Backend>(
        &mut self,
        card: &Card<B>,
        place: u32,
    ) -> Result<(), CommandError> {
        write(card, place, MrCtx::default())?;
        let window = self.0.entry(place).or_default();
        window.unbound = MrCtx::default();
        // What was not reached yet may bind another window at this place.
        window
            .posted
            .retain(|posted| !(posted.over || posted.is_done()));
        if window.posted.is_empty() {
            self.0.remove(&place);
        }
        Ok(())
    }

    /// A bind of the window at this place is about to be posted.
    pub(crate) fn note(&mut self, place: u32, posted: Posted) {
        let window = self.0.entry(place).or_default();
        window.settle();
        window.posted.push(posted);
    }

    /// A bind that was noted last is not posted after all.
    pub(crate) fn take_back(&mut self, place: u32) {
        if let Some(window) = self.0.get_mut(&place) {
            window.posted.pop();
        }
    }

    /// A bind failed or was flushed, as a completion tells.
    pub(crate) fn note_failure(&mut self, qpn: u32, wqe_index: u16) {
        for window in self.0.values_mut() {
            window
                .posted
                .retain(|posted| posted.over || (posted.qpn, posted.at as u16) != (qpn, wqe_index));
        }
    }

    /// Ends the windows that may be bound to a region.
    fn end_of_region<B: Backend>(
        &mut self,
        card: &Card<B>,
        region: u32,
    ) -> Result<(), CommandError> {
        for (place, window) in &mut self.0 {
            window.settle();
            let of_it = |posted: &Posted| posted.region == Some(region);
            if window.posted.iter().any(of_it) {
                write(card, *place, window.unbound)?;
                // One that was not reached yet finds the region as it is then.
                window
                    .posted
                    .retain(|posted| !of_it(posted) || !(posted.over || posted.is_done()));
            }
        }
        Ok(())
    }

    /// Ends the windows that may be those of a queue pair, whose life is over.
    fn end_of_queue_pair<B: Backend>(
        &mut self,
        card: &Card<B>,
        qpn: u32,
    ) -> Result<(), CommandError> {
        for (place, window) in &mut self.0 {
            window.settle();
            if window.unbound.qp_only && window.posted.iter().any(|posted| posted.qpn == qpn) {
                write(card, *place, window.unbound)?;
                window.posted.retain(|posted| posted.qpn != qpn);
            }
            for posted in window.posted.iter_mut().filter(|posted| posted.qpn == qpn) {
                posted.over = true;
            }
        }
        Ok(())
    }
}

/// Ends the windows of a region.
pub(crate) fn end_of_region<B: Backend>(card: &Card<B>, region: u32) -> Result<(), CommandError> {
    lock(&card.windows).end_of_region(card, region)
}

/// Ends the type 2 windows of a queue pair.
pub(crate) fn end_of_queue_pair<B: Backend>(card: &Card<B>, qpn: u32) -> Result<(), CommandError> {
    lock(&card.windows).end_of_queue_pair(card, qpn)
}

fn write<B: Backend>(card: &Card<B>, place: u32, entry: MrCtx) -> Result<(), CommandError> {
    let command = Command::new(opcode::WRITE_MR, place).with(entry.emit());
    card.execute("write MW", &command).map(drop)
}

//! The memory windows of a card, and what they may be bound to.
//!
//! The card binds a window when it reaches the request, so the host knows what a window is bound to when the request's
//! completion was polled. Until then it may be bound to this or to that.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    region: Option<u32>,
    /// Queue pair, in the life of these queues.
    qpn: u32,
    queues: Arc<Queues>,
    /// Slot of the request since that life began.
    at: u64,
    /// That life is over: it was executed or never will be.
    over: bool,
    /// Number among the binds of the place.
    number: u64,
    /// Number of the first bind that was posted when this one was past.
    past_at: Option<u64>,
}

impl Posted {
    /// The next request of these queues.
    pub(crate) fn new(region: Option<u32>, qpn: u32, queues: &Arc<Queues>) -> Self {
        Self {
            region,
            qpn,
            queues: queues.clone(),
            at: queues.sq.next(),
            over: false,
            number: 0,
            past_at: None,
        }
    }

    /// It was executed.
    fn is_done(&self) -> bool {
        self.queues.sq.is_retired(self.at)
    }

    /// It was executed or never will be.
    fn is_past(&self) -> bool {
        self.over || self.is_done()
    }

    /// If it was executed, then before `later`: queue pairs do not wait for each other.
    fn is_before(&self, later: &Self) -> bool {
        let in_turn = Arc::ptr_eq(&self.queues, &later.queues) && self.number < later.number;
        in_turn || self.past_at.is_some_and(|at| at <= later.number)
    }
}

/// A place of the table that has a window, or had one that requests may still name.
#[derive(Default)]
struct Window {
    /// The entry when nothing is bound; no window if there is none.
    unbound: MrCtx,
    /// What it may be bound to.
    posted: Vec<Posted>,
    /// Binds that were ever noted.
    noted: u64,
}

impl Window {
    /// Forgets what came to nothing by a later bind.
    fn settle(&mut self) {
        let is_displaced = |posted: &Posted| {
            let mut later = self.posted.iter();
            later.any(|later| later.is_done() && posted.is_before(later))
        };
        let displaced = self.posted.iter().filter(|posted| is_displaced(posted));
        let displaced: Vec<_> = displaced.map(|posted| posted.number).collect();
        self.posted
            .retain(|posted| !displaced.contains(&posted.number));
    }

    /// Writes the entry, over what the window is bound to.
    fn write<B: Backend>(
        &mut self,
        card: &Card<B>,
        place: u32,
        entry: MrCtx,
    ) -> Result<(), CommandError> {
        // What the card reaches meanwhile may come after the entry.
        let (past, open) = mem::take(&mut self.posted)
            .into_iter()
            .partition(Posted::is_past);
        self.posted = open;
        let command = Command::new(opcode::WRITE_MR, place).with(entry.emit());
        let written = card.execute_for_sure("write MW", &command);
        if written.is_err() {
            self.posted.extend::<Vec<_>>(past);
        }
        written.map(drop)
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
        let window = self.0.entry(place).or_default();
        window.write(card, place, entry)?;
        window.unbound = entry;
        Ok(())
    }

    /// The window is none any more.
    pub(crate) fn free<B: Backend>(
        &mut self,
        card: &Card<B>,
        place: u32,
    ) -> Result<(), CommandError> {
        let window = self.0.entry(place).or_default();
        window.write(card, place, MrCtx::default())?;
        window.unbound = MrCtx::default();
        // What was not reached yet may bind another window at this place.
        if window.posted.is_empty() {
            self.0.remove(&place);
        }
        Ok(())
    }

    /// A bind of the window at this place is about to be posted; its number.
    pub(crate) fn note(&mut self, place: u32, mut posted: Posted) -> u64 {
        posted.queues.binds.store(true, Ordering::Relaxed);
        let window = self.0.entry(place).or_default();
        window.settle();
        let number = window.noted;
        window.noted += 1;
        for past in window.posted.iter_mut().filter(|posted| posted.is_past()) {
            past.past_at.get_or_insert(number);
        }
        posted.number = number;
        window.posted.push(posted);
        number
    }

    /// The bind of this number is not posted after all.
    pub(crate) fn take_back(&mut self, place: u32, number: u64) {
        if let Some(window) = self.0.get_mut(&place) {
            window.posted.retain(|posted| posted.number != number);
        }
    }

    /// A request of these queues failed or was flushed, as a completion tells that is about to be retired.
    pub(crate) fn note_failure(&mut self, queues: &Arc<Queues>, wqe_index: u16) {
        let slot = queues.sq.slot(wqe_index);
        for window in self.0.values_mut() {
            window
                .posted
                .retain(|posted| posted.at != slot || !Arc::ptr_eq(&posted.queues, queues));
        }
    }

    /// Ends the windows that may be bound to a region. After an error the others have ended.
    fn end_of_region<B: Backend>(
        &mut self,
        card: &Card<B>,
        region: u32,
    ) -> Result<(), CommandError> {
        let mut ended = Ok(());
        for (place, window) in &mut self.0 {
            window.settle();
            let mut posted = window.posted.iter();
            if window.unbound.window && posted.any(|posted| posted.region == Some(region)) {
                ended = ended.and(window.write(card, *place, window.unbound));
            }
        }
        ended
    }

    /// Ends the windows that may be those of a queue pair, whose life is over. After an error the others have ended.
    fn end_of_queue_pair<B: Backend>(
        &mut self,
        card: &Card<B>,
        qpn: u32,
    ) -> Result<(), CommandError> {
        let mut ended = Ok(());
        for (place, window) in &mut self.0 {
            let of_it = |posted: &Posted| posted.qpn == qpn;
            window.settle();
            for posted in window.posted.iter_mut().filter(|posted| of_it(posted)) {
                posted.over = true;
            }
            if !window.unbound.window {
                window.posted.retain(|posted| !posted.over);
            } else if window.unbound.qp_only && window.posted.iter().any(of_it) {
                ended = ended.and(window.write(card, *place, window.unbound));
            }
        }
        self.0
            .retain(|_, window| window.unbound.window || !window.posted.is_empty());
        ended
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

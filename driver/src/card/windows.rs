//! The windows of a card that are bound.

use std::collections::BTreeMap;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::mr::MrCtx;

use super::Card;
use crate::Backend;
use crate::command::{Command, CommandError};
use crate::host::lock;

/// A window that is bound.
pub(crate) struct Bound {
    pub(crate) key: u32,
    pub(crate) pd: u32,
    /// Place of its region.
    pub(crate) region: u32,
    /// Of type 2: the queue pair.
    pub(crate) qpn: Option<u32>,
    /// A peer invalidated it, as a completion reported. That may be an older bind under the same key, so it ends with
    /// its region and its queue pair all the same.
    pub(crate) invalidated: bool,
}

/// The windows of a card that are bound, by their places. A command that is under way holds the lock, so that a window
/// never outlives what it is bound to.
#[derive(Default)]
pub(crate) struct Windows(pub(crate) BTreeMap<u32, Bound>);

impl Windows {
    /// Ends the windows that `ends` picks.
    pub(crate) fn end<B: Backend>(
        &mut self,
        card: &Card<B>,
        ends: impl Fn(&Bound) -> bool,
    ) -> Result<(), CommandError> {
        let picked = self.0.iter().filter(|(_, bound)| ends(bound));
        for place in picked.map(|(place, _)| *place).collect::<Vec<_>>() {
            write_window(card, place, MrCtx::default())?;
            self.0.remove(&place);
        }
        Ok(())
    }

    /// A peer invalidated a key, as a completion tells.
    pub(crate) fn note_invalidated(&mut self, key: u32) {
        let named = self.0.values_mut().filter(|bound| bound.key == key);
        named.for_each(|bound| bound.invalidated = true);
    }
}

/// Ends the windows of a region.
pub(crate) fn end_of_region<B: Backend>(card: &Card<B>, region: u32) -> Result<(), CommandError> {
    lock(&card.windows).end(card, |bound| bound.region == region)
}

/// Ends the type 2 windows of a queue pair.
pub(crate) fn end_of_queue_pair<B: Backend>(card: &Card<B>, qpn: u32) -> Result<(), CommandError> {
    lock(&card.windows).end(card, |bound| bound.qpn == Some(qpn))
}

/// Writes the entry of a window.
pub(crate) fn write_window<B: Backend>(
    card: &Card<B>,
    place: u32,
    entry: MrCtx,
) -> Result<(), CommandError> {
    let command = Command::new(opcode::WRITE_MR, place).with(entry.emit());
    card.execute("write MW", &command).map(drop)
}

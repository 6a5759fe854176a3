//! The memory region table of the card.

use std::sync::Arc;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::mr::MrCtx;

use super::{Access, MrError};
use crate::Backend;
use crate::card::{Kind, end_of_region};
use crate::command::{Command, CommandError};
use crate::host::lock;
use crate::pd::PdNumber;

/// What an entry says of its region.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) addr: usize,
    pub(super) len: usize,
    pub(super) access: Access,
}

/// An entry of the memory region table; cleared when dropped.
pub(super) struct Entry<B: Backend> {
    pub(super) pd: Arc<PdNumber<B>>,
    pub(super) place: u32,
    pub(super) key: u32,
}

impl<B: Backend> Entry<B> {
    pub(super) fn new(pd: &Arc<PdNumber<B>>, extent: Extent, kind: Kind) -> Result<Self, MrError> {
        let taken = lock(&pd.card.keys).take(kind);
        let (place, key) = taken.ok_or(MrError::Full {
            limit: pd.card.info.max_mr,
        })?;
        if let Err(e) = write(pd, place, key, extent) {
            lock(&pd.card.keys).put(place);
            return Err(e.into());
        }
        Ok(Self {
            pd: pd.clone(),
            place,
            key,
        })
    }

    /// Says something else under the same key. The card is done with what the entry said before when this returns, if the
    /// windows of that have ended, as the inner result tells.
    pub(super) fn rewrite(
        &mut self,
        pd: &Arc<PdNumber<B>>,
        extent: Extent,
    ) -> Result<Result<(), CommandError>, CommandError> {
        write(pd, self.place, self.key, extent)?;
        self.pd = pd.clone();
        Ok(end_of_region(&pd.card, self.place))
    }
}

fn write<B: Backend>(
    pd: &PdNumber<B>,
    place: u32,
    key: u32,
    extent: Extent,
) -> Result<(), CommandError> {
    let Extent { addr, len, access } = extent;
    let ctx = MrCtx {
        base: addr as u64,
        last: (addr + (len - 1)) as u64,
        key,
        pd: pd.number,
        valid: true,
        local_write: access.contains(Access::LOCAL_WRITE),
        remote_write: access.contains(Access::REMOTE_WRITE),
        remote_read: access.contains(Access::REMOTE_READ),
        remote_atomic: access.contains(Access::REMOTE_ATOMIC),
        bindable: access.contains(Access::MW_BIND),
        ..MrCtx::default()
    };
    let command = Command::new(opcode::WRITE_MR, place).with(ctx.emit());
    pd.card.execute_for_sure("register MR", &command)?;
    Ok(())
}

impl<B: Backend> Drop for Entry<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        let command = Command::new(opcode::WRITE_MR, self.place).with(MrCtx::default().emit());
        // Answered only when the card is done with the memory.
        let ended = card.execute_for_sure("deregister MR", &command);
        match ended.and_then(|_| end_of_region(card, self.place)) {
            Ok(()) => lock(&card.keys).put(self.place),
            Err(e) => tracing::error!("the table entry stays taken: {e}"),
        }
    }
}

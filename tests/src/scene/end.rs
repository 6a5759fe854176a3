//! One side of a connection: what it has posted, and what it is to find.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use ferroce_sim::testhost::Mr;

/// A message under way.
pub(super) struct Sent {
    pub(super) number: u32,
    pub(super) index: u16,
    pub(super) slot: usize,
    pub(super) len: usize,
    pub(super) opcode: u8,
    /// It is about a region that is lent.
    pub(super) lent: bool,
    /// Place of the READ whose data it sends back: it is in use, too.
    pub(super) echoes: Option<usize>,
    /// A completion of its own tells of it.
    pub(super) signaled: bool,
    pub(super) since: u64,
}

/// What a receiver is to find.
pub(super) struct Inbound {
    pub(super) number: u32,
    pub(super) len: usize,
    pub(super) imm: Option<u32>,
    /// Key of a region that is given back.
    pub(super) inv: Option<u32>,
    /// Place of a WRITE, which has no receive buffer.
    pub(super) written: Option<usize>,
    /// It has the bytes from there on that the sender may READ: it had read them just before.
    pub(super) echo: Option<usize>,
    /// Atomics before it, which are done.
    pub(super) added: u64,
    /// A completion tells.
    pub(super) announced: bool,
}

/// One side of a connection.
pub(super) struct End {
    pub(super) qpn: u32,
    pub(super) cqn: u16,
    pub(super) memory: Option<Mr>,
    pub(super) sent: VecDeque<Sent>,
    pub(super) inbound: VecDeque<Inbound>,
    pub(super) receives: BTreeMap<u16, usize>,
    /// Places of receives that are to be posted.
    pub(super) owed: VecDeque<usize>,
    pub(super) next: u32,
    /// Cycle before which nothing is posted.
    pub(super) rests_until: u64,
    pub(super) counter: u64,
    /// Atomics posted to the peer's counter.
    pub(super) added: u64,
    /// Its end was answered.
    pub(super) ended: Rc<Cell<bool>>,
    pub(super) closed: bool,
}

impl End {
    /// With nothing posted.
    pub(super) fn new(qpn: u32, cqn: u16, memory: Option<Mr>) -> Self {
        Self {
            qpn,
            cqn,
            memory,
            sent: VecDeque::new(),
            inbound: VecDeque::new(),
            receives: BTreeMap::new(),
            owed: VecDeque::new(),
            next: 0,
            rests_until: 0,
            counter: 0,
            added: 0,
            ended: Rc::default(),
            closed: false,
        }
    }
}

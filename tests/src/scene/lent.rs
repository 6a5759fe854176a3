//! A region that a peer may read and count in until it gives it back by SEND with invalidate. Then it is the host's again: its
//! bytes are looked at, and no access comes any more.

use std::cell::Cell;
use std::rc::Rc;

use ferroce_sim::testhost::{Host, Mr, Rights};

use super::kernel::Kernel;
use super::line::message;

/// Bytes that count, the first of a region.
pub(super) const COUNTER: usize = 8;
/// Bytes behind them, at most.
const MOST: usize = 16 << 10;
/// Numbers of the regions, of which a lender has so many in turn.
const FIRST: u32 = 0x101;
const TURNS: u32 = 8;
/// Number of the bytes behind the counter, as a message.
const NUMBER: u32 = u32::MAX - 1;

/// What a side lends to its peer.
#[derive(Default)]
pub(super) struct Lent {
    /// The region, from the order to the card on.
    region: Option<Mr>,
    /// The card has it.
    there: Rc<Cell<bool>>,
    /// The peer gave it back.
    returned: bool,
    /// It did so, once in this life, while it asked for it: it may have been refused.
    pub(super) raced: bool,
    /// What the peer counted.
    pub(super) count: u64,
    turn: u32,
}

/// How many bytes are behind the counter, where messages have `longest` bytes at most.
pub(super) fn size(longest: usize) -> usize {
    longest.min(MOST) & !7
}

/// These bytes.
pub(super) fn contents(mark: u32, longest: usize) -> Vec<u8> {
    message(mark, NUMBER, size(longest))
}

impl Lent {
    /// Lends a region of a line's number, with the counter and `contents`.
    pub(super) fn lend(
        &mut self,
        host: &mut Host,
        kernel: &mut Kernel,
        number: u32,
        contents: &[u8],
    ) {
        let bytes = COUNTER + contents.len();
        let addr = host.alloc(bytes);
        host.write(addr, &[0; COUNTER]);
        host.write(addr + COUNTER as u64, contents);
        self.turn = (self.turn + 1) % TURNS;
        host.number_regions(FIRST + number * TURNS + self.turn);
        let mr = host.plan_region(addr, bytes as u64);
        let there = Rc::new(Cell::new(false));
        *self = Self {
            region: Some(mr),
            there: Rc::clone(&there),
            count: 0,
            turn: self.turn,
            raced: self.raced,
            ..Self::default()
        };
        kernel.register_then(host, &mr, Rights::ALL, move || there.set(true));
    }

    /// The region, if the peer may use it.
    pub(super) fn usable(&self) -> Option<Mr> {
        let region = self.region.filter(|_| self.there.get());
        region.filter(|_| !self.returned)
    }

    /// The peer gives it back, while it asks for it or not.
    pub(super) fn give_back(&mut self, races: bool) {
        self.returned = true;
        self.raced |= races;
    }

    /// A completion names the key: the peer is done with it.
    ///
    /// # Panics
    /// If that is another key, or the peer's atomics are not all done.
    pub(super) fn came_back(&mut self, host: &mut Host, key: u32, name: &str) {
        let mr = self.region.take().expect("it was lent");
        assert_eq!(key, mr.key, "{name}: key of a SEND with invalidate");
        let found = host.read(mr.addr, COUNTER).try_into().expect("8 bytes");
        let found = u64::from_le_bytes(found);
        // One that raced with it may still be refused.
        let done = self.raced || found == self.count;
        assert!(
            done,
            "{name}: {found} atomics of {} before an invalidation",
            self.count
        );
        host.took_back(&mr);
    }

    /// All is over for it.
    pub(super) fn end(&mut self) -> Option<Mr> {
        self.raced = false;
        self.region.take()
    }
}

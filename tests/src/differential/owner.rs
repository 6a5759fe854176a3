//! Whose memory is whose while messages are under way.
//!
//! A completion gives memory back to the host, which uses it at once: what was sent is overwritten, and what came is looked at
//! then and not when all is over. So a card that reads a source late sends other bytes, and one that completes before its
//! payload is there is found.

use std::mem;

use ferroce_proto::abi::cq::status;
use ferroce_sim::testhost::{Side, pattern};

use super::bench::{Bench, SIDES, other};
use super::scenario::{Message, Operation, Piece, region};

/// Regions that messages are sent from.
const SOURCES: [usize; 2] = [region::SOURCE, region::OTHER_SOURCE];

/// The messages since the last rest, in the order of their steps.
pub(super) struct Owners {
    messages: Vec<(Message, bool)>,
    /// What each source held at first, by connection, side and place in [`SOURCES`].
    contents: Vec<[[Vec<u8>; 2]; 2]>,
    /// Something was overwritten.
    spoilt: bool,
}

impl Owners {
    /// Nothing is under way.
    pub(super) fn new(bench: &Bench) -> Self {
        let source = |link: usize, side: Side| {
            SOURCES.map(|kind| {
                let place = bench.links[link].regions[side as usize][kind];
                bench.hosts[side as usize].read(place.addr, place.len as usize)
            })
        };
        Self {
            messages: Vec::new(),
            contents: (0..bench.links.len())
                .map(|link| SIDES.map(|side| source(link, side)))
                .collect(),
            spoilt: false,
        }
    }

    /// A message is to be posted; its number.
    pub(super) fn post(&mut self, message: &Message) -> usize {
        self.messages.push((message.clone(), false));
        self.messages.len() - 1
    }

    /// All is at rest: sources hold again what they did.
    pub(super) fn rest(&mut self, bench: &Bench) {
        self.messages.clear();
        if !mem::take(&mut self.spoilt) {
            return;
        }
        for (link, sides) in bench.links.iter().zip(&self.contents) {
            for side in SIDES {
                for (kind, contents) in SOURCES.into_iter().zip(&sides[side as usize]) {
                    let place = link.regions[side as usize][kind];
                    bench.hosts[side as usize].write(place.addr, contents);
                }
            }
        }
    }

    /// A send completed. What it sent is overwritten.
    ///
    /// # Errors
    /// In words, if it brought data that is not there.
    pub(super) fn sent(&mut self, bench: &Bench, number: usize, state: u8) -> Result<(), String> {
        self.messages[number].1 = true;
        let message = &self.messages[number].0;
        if message.operation.is_answered() {
            return match state {
                status::SUCCESS => self.arrived(bench, number, message.from),
                _ => Ok(()),
            };
        }
        let (c, from) = (message.connection, message.from);
        for kind in SOURCES {
            let place = bench.links[c].regions[from as usize][kind];
            let mut free = vec![false; place.len as usize];
            mark(&mut free, &message.gather, kind, true);
            for (other, done) in &self.messages {
                if (other.connection, other.from) == (c, from) && !done {
                    mark(&mut free, &other.gather, kind, false);
                }
                // A READ may be answered again after it completed.
                if let Operation::Read(offset) = other.operation
                    && (other.connection, other.from) != (c, from)
                    && other.connection == c
                {
                    let (region, len) = (region::SOURCE, other.len());
                    mark(
                        &mut free,
                        &[Piece {
                            region,
                            offset,
                            len,
                        }],
                        kind,
                        false,
                    );
                }
            }
            self.spoilt |= free.contains(&true);
            let contents = self.source(c, from, kind);
            for (at, _) in free.iter().enumerate().filter(|(_, free)| **free) {
                let addr = place.addr + at as u64;
                bench.hosts[from as usize].write(addr, &[!contents[at]]);
            }
        }
        Ok(())
    }

    /// A receive completed with success.
    ///
    /// # Errors
    /// In words, if the message is not there.
    pub(super) fn received(&self, bench: &Bench, number: usize) -> Result<(), String> {
        self.arrived(bench, number, other(self.messages[number].0.from))
    }

    /// What a message brings is at `side`, or what one behind it brings to the same place.
    fn arrived(&self, bench: &Bench, number: usize, side: Side) -> Result<(), String> {
        let message = &self.messages[number].0;
        let c = message.connection;
        let kind = match message.operation {
            Operation::Read(_) => region::RESULT,
            Operation::CmpSwap(..) | Operation::FetchAdd(..) => return Ok(()),
            _ => region::TARGET,
        };
        let place = bench.links[c].regions[side as usize][kind];
        let mut may = vec![None; place.len as usize];
        for (at, byte) in self.writes(message) {
            may[at].get_or_insert_with(Vec::new).push(byte);
        }
        for (later, _) in &self.messages[number + 1..] {
            let same = (later.connection, later.from) == (c, message.from);
            if same && later.operation.is_answered() == message.operation.is_answered() {
                for (at, byte) in self.writes(later) {
                    if let Some(may) = &mut may[at] {
                        may.push(byte);
                    }
                }
            }
        }
        let found = bench.hosts[side as usize].read(place.addr, place.len as usize);
        for (at, may) in may.iter().enumerate() {
            let Some(may) = may else { continue };
            if !may.contains(&None) && !may.contains(&Some(found[at])) {
                return Err(format!(
                    "completion of a message whose data is not there: byte {at} is {:#04x}, {may:02x?} may be; {message}",
                    found[at]
                ));
            }
        }
        Ok(())
    }

    /// The bytes that a message writes to [`region::TARGET`] or [`region::RESULT`]; `None` for a value not known here.
    fn writes(&self, message: &Message) -> Vec<(usize, Option<u8>)> {
        let (c, from) = (message.connection, message.from);
        let whole = |region, offset: u32| Piece {
            region,
            offset,
            len: message.len(),
        };
        let (to, bytes): (Vec<Piece>, Vec<Option<u8>>) = match message.operation {
            Operation::Read(offset) => {
                let there = self.source(c, other(from), region::SOURCE);
                let at = offset as usize;
                let bytes = &there[at..at + message.len() as usize];
                (
                    message.gather.clone(),
                    bytes.iter().copied().map(Some).collect(),
                )
            }
            Operation::CmpSwap(..) | Operation::FetchAdd(..) => {
                (message.gather.clone(), vec![None; 8])
            }
            Operation::Write(offset) => {
                (vec![whole(region::TARGET, offset)], self.payload(message))
            }
            Operation::Send => {
                let scatter = message.recv.as_ref().map(|recv| recv.scatter.clone());
                (scatter.unwrap_or_default(), self.payload(message))
            }
        };
        let places = to.iter().flat_map(|piece| {
            let offset = piece.offset as usize;
            offset..offset + piece.len as usize
        });
        places.zip(bytes).collect()
    }

    fn payload(&self, message: &Message) -> Vec<Option<u8>> {
        let (c, from) = (message.connection, message.from);
        if let Some(len) = message.inline {
            let bytes = pattern(len.into(), from as u8 ^ len as u8);
            return bytes.into_iter().map(Some).collect();
        }
        let pieces = message.gather.iter().flat_map(|piece| {
            let at = piece.offset as usize;
            &self.source(c, from, piece.region)[at..at + piece.len as usize]
        });
        pieces.copied().map(Some).collect()
    }

    fn source(&self, connection: usize, side: Side, kind: usize) -> &[u8] {
        let place = SOURCES.iter().position(|source| *source == kind);
        &self.contents[connection][side as usize][place.expect("a source")]
    }
}

fn mark(bytes: &mut [bool], pieces: &[Piece], kind: usize, value: bool) {
    for piece in pieces.iter().filter(|piece| piece.region == kind) {
        let at = piece.offset as usize;
        bytes[at..at + piece.len as usize].fill(value);
    }
}

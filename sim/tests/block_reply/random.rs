//! Random requests of all queue pairs, against what may follow from them.
//!
//! The reference keeps of every queue pair the tokens taken, in order, and takes each packet that leaves off them. It
//! leaves open what depends on time: which acknowledgements coalesce, which duplicates are dropped as their answer is due.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_proto::wire::psn::MASK;
use ferroce_sim::random::Pauses;

use super::acks::{self, Token};
use super::request::{Kind, Packet, Request, answer};
use super::rig::{BASE, Q, Rig, uneven};

#[derive(Clone, Copy, Debug)]
enum Item {
    Ack(Token),
    Reply(Request),
}

#[derive(Default)]
struct Pair {
    /// Tokens that are not answered for.
    items: VecDeque<Item>,
    /// Last acknowledgement, if nothing left since.
    last: Option<Token>,
    /// Packets of the READ that is being answered, and their memory.
    rest: VecDeque<(Packet, (u64, u32))>,
    /// That is no duplicate.
    answers_new: bool,
    psn: u32,
    history: Vec<Request>,
    /// Results of its atomics, in their order.
    results: BTreeMap<u32, u64>,
    atomics: Vec<(Request, u64)>,
    issued: usize,
    answered: usize,
    duplicates: usize,
}

struct World {
    rig: Rig,
    pairs: Vec<Pair>,
    queued: VecDeque<(u32, Item)>,
    pieces: Vec<(u64, u32)>,
    next_msn: u32,
    done: u16,
    /// Classes close and open.
    closes: bool,
}

impl World {
    fn new(idle: Pauses, back: Pauses) -> Self {
        let pair = |_| Pair {
            psn: MASK - 30,
            ..Pair::default()
        };
        Self {
            rig: Rig::new(idle, back),
            pairs: (0..1 << Q).map(pair).collect(),
            queued: VecDeque::new(),
            pieces: Vec::new(),
            next_msn: 0,
            done: 0,
            closes: false,
        }
    }

    fn push(&mut self, item: Item, qpn: u32) {
        match item {
            Item::Ack(token) => self.rig.ack(qpn, token.psn, token.msn, token.syndrome),
            Item::Reply(request) => {
                let fence = self.done.wrapping_add(self.rig.bench.rng().u16(..4));
                self.rig
                    .request_after(&request, fence.wrapping_sub(2), false);
            }
        }
        self.queued.push_back((qpn, item));
    }

    fn random_request(&mut self, rng: &mut Rng, qpn: u32) {
        self.next_msn += 1;
        let pair = &mut self.pairs[qpn as usize];
        let addr = BASE + 8 * rng.u64(..6);
        let mut request = match rng.u8(..4) {
            0 => Request::new(qpn, pair.psn, Kind::Add(rng.u64(..))).at(addr),
            1 => {
                let compare = self.rig.memory.values.get(&addr).copied().unwrap_or(0);
                let swap = rng.u64(..);
                Request::new(qpn, pair.psn, Kind::Swap { compare, swap }).at(addr)
            }
            _ => {
                let len = [rng.u32(..300), rng.u32(..5000), rng.u32(..60_000)][rng.usize(..3)];
                Request::read(qpn, pair.psn, len).at(BASE + rng.u64(..1 << 30))
            }
        };
        request.mtu = 1 + (qpn % 5) as u8;
        request.msn = self.next_msn;
        let again = rng.u8(..3) == 0 && !pair.history.is_empty();
        if again || pair.issued - pair.answered == 16 {
            let Some(old) = pair.history.get(rng.usize(..pair.history.len().max(1))) else {
                return;
            };
            let mut old = old.again();
            old.msn = self.next_msn;
            if let Kind::Read(len) = old.kind {
                let skip = rng.u32(..old.packets());
                old.kind = Kind::Read(len - skip * old.mtu_bytes());
                old.va += u64::from(skip * old.mtu_bytes());
                old.psn = (old.psn + skip) & MASK;
            }
            pair.duplicates += 1;
            self.push(Item::Reply(old), qpn);
            return;
        }
        pair.psn = (pair.psn + request.packets()) & MASK;
        pair.issued += 1;
        if pair.history.len() == 16 {
            pair.history.remove(0);
        }
        pair.history.push(request);
        self.push(Item::Reply(request), qpn);
    }

    fn random_token(&mut self, rng: &mut Rng, qpn: u32) {
        self.next_msn += 1;
        let (psn, syndrome) = acks::token(rng, &mut self.pairs[qpn as usize].psn);
        let token = Token {
            psn: psn & MASK,
            msn: self.next_msn,
            syndrome,
        };
        self.push(Item::Ack(token), qpn);
    }

    fn step(&mut self) {
        let before = self.rig.tokens.sent();
        if self.rig.bench.rng().u8(..8) == 0 {
            self.done = self.done.wrapping_add(1);
            self.rig.set_done(self.done);
        }
        if self.closes && self.rig.bench.rng().u8(..100) == 0 {
            let (closed, acks_wait) = (self.rig.bench.rng().u8(..), self.rig.bench.rng().u8(..));
            self.rig.close(
                u64::from(closed & 15),
                u64::from(acks_wait & acks_wait >> 4),
            );
        }
        self.rig.step();
        if self.rig.tokens.sent() > before {
            let (qpn, item) = self.queued.pop_front().expect("it was pushed");
            self.pairs[qpn as usize].items.push_back(item);
        }
        while let Some((_, packet)) = self.rig.left() {
            self.left(packet);
        }
    }

    fn left(&mut self, packet: Packet) {
        let pair = &mut self.pairs[packet.qpn as usize];
        if let Some((next, _)) = pair.rest.front()
            && *next != packet
        {
            assert!(
                pair.is_repeated(next.psn),
                "{packet:?} in place of {next:?}"
            );
            pair.answered += usize::from(pair.answers_new);
            pair.rest.clear();
        }
        if let Some((_, piece)) = pair.rest.pop_front() {
            self.pieces.push(piece);
        } else if packet.is_ack() {
            pair.acknowledged(packet);
        } else {
            let found = pair.items.iter().position(|item| match item {
                Item::Reply(request) => (request.psn, request.msn) == (packet.psn, packet.msn),
                Item::Ack(_) => false,
            });
            let Some(found) = found else {
                panic!("{packet:?} answers none of {:?}", pair.items);
            };
            let Item::Reply(request) = pair.items[found] else {
                unreachable!("found as one")
            };
            // an answer to a duplicate shows that those before it were dropped, a new one more
            for item in pair.items.iter().take(found) {
                if let Item::Reply(passed) = item
                    && !passed.duplicate
                {
                    let may_pass = !passed.is_atomic() && pair.is_repeated(passed.psn);
                    assert!(may_pass, "{passed:?} is passed");
                    pair.answered += 1;
                }
            }
            let passed: Vec<_> = pair.items.drain(..found).collect();
            pair.items.pop_front();
            for item in passed.into_iter().rev() {
                match item {
                    Item::Reply(_) => {}
                    Item::Ack(_) if request.duplicate => pair.items.push_front(item),
                    Item::Ack(_) => {}
                }
            }
            let mut value = 0;
            if request.is_atomic() && request.duplicate {
                value = pair.results[&request.psn];
            } else if request.is_atomic() {
                value = packet.value;
                pair.results.insert(request.psn, value);
                pair.atomics.push((request, value));
            }
            if !request.duplicate {
                pair.last = None;
            }
            pair.answers_new = !request.duplicate;
            let piece = |number| {
                let addr = request.va + u64::from(number * request.mtu_bytes());
                (addr, request.plen(number))
            };
            let packets = answer(&request, value);
            pair.rest = packets.into_iter().zip((0..).map(piece)).collect();
            let (first, piece) = pair.rest.pop_front().expect("one at least");
            assert_eq!(packet, first);
            self.pieces.push(piece);
        }
        // a requester has up to 16 of which the last response has not come
        if !packet.is_ack() && pair.rest.is_empty() {
            pair.answered += usize::from(pair.answers_new);
        }
    }

    /// The results at an address are those of its atomics one after the other, those of a queue pair in their order.
    fn one_by_one(&mut self, addr: u64) {
        let of = |pair: &Pair| -> VecDeque<(Request, u64)> {
            let at = pair.atomics.iter().filter(|atomic| atomic.0.va == addr);
            at.copied().collect()
        };
        let mut left: Vec<_> = self.pairs.iter().map(of).collect();
        let mut value = 0;
        while left.iter().any(|of| !of.is_empty()) {
            // one that changes nothing first: random values do not come twice
            let next = |of: &VecDeque<(Request, u64)>, changes: bool| {
                of.front().is_some_and(|(request, found)| {
                    *found == value && (after(request, value) != value) == changes
                })
            };
            let at = left.iter().position(|of| next(of, false));
            let at = at.or_else(|| left.iter().position(|of| next(of, true)));
            let at = at.unwrap_or_else(|| panic!("{value:#x} at {addr:#x}: {left:?}"));
            let (request, _) = left[at].pop_front().expect("just seen");
            value = after(&request, value);
        }
        let host = self.rig.memory.values.get(&addr).copied().unwrap_or(0);
        assert_eq!(host, value, "memory at {addr:#x}");
    }

    fn finish(&mut self) {
        self.closes = false;
        self.rig.close(0, 0);
        for _ in 0..2_000_000 {
            if self.queued.is_empty() && self.pairs.iter().all(|p| p.issued == p.answered) {
                break;
            }
            self.step();
        }
        (0..40_000).for_each(|_| self.step());
        assert!(self.queued.is_empty(), "tokens never wait for ever");
        for pair in &self.pairs {
            assert_eq!(pair.issued, pair.answered);
            for item in &pair.items {
                match item {
                    Item::Reply(request) => assert!(request.duplicate),
                    Item::Ack(token) => {
                        let last = pair.last.expect("something was sent");
                        assert_eq!(last.merged(*token), last, "{token:?} is owed");
                    }
                }
            }
        }
        (0..6).for_each(|word| self.one_by_one(BASE + 8 * word));
        let events = self.rig.finished();
        for (qpn, pair) in self.pairs.iter().enumerate() {
            let finished = events
                .iter()
                .filter(|event| event.0 as usize == qpn)
                .count();
            assert_eq!(finished, pair.answered, "finished replies of {qpn}");
            let over = self.rig.over(qpn as u32);
            assert_eq!(over, pair.atomics.len() as u64 % 32);
        }
        assert!(self.rig.failures().is_empty());
        // The READs of different queue pairs are cut in turns, so only the sum of the pieces is in order.
        let mut pieces: Vec<_> = self.rig.pieces().iter().map(|p| (p.0, p.1)).collect();
        pieces.sort_unstable();
        self.pieces.retain(|piece| piece.1 > 0);
        self.pieces.sort_unstable();
        assert_eq!(pieces, self.pieces);
    }
}

impl Pair {
    /// The PSN may be among those of a run of duplicates that wait. Where it began is not known: its first ones may be answered.
    fn is_repeated(&self, psn: u32) -> bool {
        self.items.iter().any(|item| match item {
            Item::Reply(request) if request.duplicate => {
                let last = request.psn + request.packets() - 1;
                last.wrapping_sub(psn) & MASK <= MASK / 2
            }
            _ => false,
        })
    }

    fn acknowledged(&mut self, packet: Packet) {
        let token = Token {
            psn: packet.psn,
            msn: packet.msn,
            syndrome: packet.syndrome,
        };
        let mut sum = None::<Token>;
        let mut found = None;
        for (i, item) in self.items.iter().enumerate() {
            match item {
                Item::Reply(request) => assert!(request.duplicate, "{packet:?} passes {request:?}"),
                Item::Ack(next) => {
                    sum = Some(sum.map_or(*next, |sum| sum.merged(*next)));
                    if sum == Some(token) {
                        found = Some(i);
                        break;
                    }
                }
            }
        }
        let Some(found) = found else {
            panic!("{packet:?} of {:?}", self.items);
        };
        self.items.drain(..=found);
        self.last = Some(token);
    }
}

/// What an atomic leaves of a value.
fn after(request: &Request, value: u64) -> u64 {
    match request.kind {
        Kind::Add(add) => value.wrapping_add(add),
        Kind::Swap { compare, swap } if compare == value => swap,
        _ => value,
    }
}

fn run(idle: Pauses, back: Pauses, qps: u32, count: usize, closes: bool) {
    let mut world = World::new(idle, back);
    world.closes = closes;
    world.rig.memory.gaps = if back == Pauses::NONE { 0 } else { 60 };
    let mut rng = world.rig.bench.rng().clone();
    for _ in 0..count {
        let qpn = rng.u32(..qps);
        if rng.u8(..3) == 0 {
            world.random_request(&mut rng, qpn);
        } else {
            world.random_token(&mut rng, qpn);
        }
        for _ in 0..rng.u32(..60) {
            world.step();
        }
    }
    world.finish();
    let answered: usize = world.pairs.iter().map(|pair| pair.answered).sum();
    let duplicates: usize = world.pairs.iter().map(|pair| pair.duplicates).sum();
    assert!(answered > count / 9, "{answered} answered of {count}");
    assert!(duplicates > count / 20, "{duplicates} duplicates");
}

#[test]
fn random_requests() {
    run(Pauses::NONE, Pauses::NONE, 16, 3000, false);
    run(Pauses::NONE, Pauses::NONE, 2, 1500, false);
    run(uneven(), uneven(), 16, 3000, false);
    run(Pauses::NONE, Pauses::new(0.5, 20), 3, 1500, false);
}

#[test]
fn random_requests_while_classes_close_and_open() {
    run(Pauses::NONE, Pauses::NONE, 16, 3000, true);
    run(uneven(), uneven(), 3, 1500, true);
}

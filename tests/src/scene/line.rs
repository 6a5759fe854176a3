//! A connection whose every byte is looked at: messages of all kinds both ways, with what each has to come to.
//!
//! What a message says follows from its number, so each byte that arrives is compared with the one that was meant. A
//! source is overwritten when its completion is there. All is as the golden model has it: each message once, in order,
//! with success, unless the wire loses frames of a transport that does not send them again.

use std::cell::Cell;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::opcode as cmd;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{AvCtx, qp_type};
use ferroce_sim::testhost::{Host, Mr, QpOptions, Rights, Side};

use super::EQN;
use super::armed::Armed;
use super::end::End;
use super::kernel::Kernel;
use super::lent::{self, Lent};
use super::shape::{Shape, Tally};
use crate::conformance::event_queue::Event;

/// Messages under way one way, and receives that wait.
pub(super) const WINDOW: usize = 4;
const RECEIVES: usize = 8;
/// Connections of a scene, and the keys that one has in turn.
pub(crate) const MOST: u32 = 32;
const KEYS: u32 = 8;
/// Bytes before a datagram, where its GRH comes.
pub(super) const GRH: usize = 40;
/// Bytes between two places of a region, which no peer writes.
const GUARD: usize = 64;
pub(super) const UNTOUCHED: u8 = 0x3c;
pub(super) const SPOILT: u8 = 0xe7;

/// The bytes of a message.
pub(crate) fn message(mark: u32, number: u32, len: usize) -> Vec<u8> {
    let word = |at: u32| {
        let [a, b, c, d] = mark.to_le_bytes();
        let [e, f, g, h] = (number ^ at.wrapping_mul(0x9e37_79b1)).to_le_bytes();
        [a, b, c, d, e, f, g, h]
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8) as u32).flat_map(word).collect();
    bytes.truncate(len);
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is there.
    Closed,
    /// Commands are under way.
    Opening,
    Open,
    /// As open, but nothing is posted.
    Draining,
    /// Commands are under way that end it.
    Dying,
}

/// A connection.
pub(crate) struct Line {
    pub(crate) state: State,
    pub(super) shape: Shape,
    pub(super) number: u32,
    pub(super) ends: [End; 2],
    /// The completion queue of each side.
    armed: [Armed; 2],
    /// What each side lends to the other.
    pub(super) lent: [Lent; 2],
    pub(super) pending: Rc<Cell<u32>>,
    pub(super) rng: Rng,
    pub(crate) tally: Tally,
    /// It gave up, as it may on a wire that loses frames.
    pub(crate) gave_up: bool,
    /// Memory refuses accesses of a card: a message may fail, which ends it; what succeeds is right.
    pub(crate) refused: bool,
    pub(crate) opened: u32,
    /// Cycle since which nothing holds what it sends.
    pub(crate) free_since: u64,
}

const SIDES: [Side; 2] = [Side::A, Side::B];

/// The completion queue of a queue pair.
fn create_cq(host: &mut Host, qpn: u32) -> u16 {
    host.create_cq_with(qpn as u16, 5, |ctx| ctx.eqn = EQN)
}

impl Line {
    /// A connection of the queue pairs `qpn`, with a completion queue each.
    pub(crate) fn new(
        hosts: [&mut Host; 2],
        qpn: [u32; 2],
        number: u32,
        shape: Shape,
        seed: u64,
    ) -> Self {
        let mut hosts = hosts.into_iter();
        let ends = qpn.map(|qpn| {
            let host = hosts.next().expect("there are two");
            End::new(qpn, create_cq(host, qpn), None)
        });
        Self {
            state: State::Closed,
            shape,
            number,
            ends,
            armed: Default::default(),
            lent: Default::default(),
            pending: Rc::default(),
            rng: Rng::with_seed(seed),
            tally: Tally::default(),
            gave_up: false,
            refused: false,
            opened: 0,
            free_since: 0,
        }
    }

    /// Class of what it sends, by the tables after reset.
    pub(crate) fn class(&self) -> usize {
        usize::from(self.shape.options.tclass >> 6)
    }

    /// The region at a side.
    pub(crate) fn memory(&self, side: usize) -> Option<Mr> {
        self.ends[side].memory
    }

    /// A card was reset, so its objects are to be made again.
    pub(crate) fn was_reset(&mut self, side: Side, host: &mut Host) {
        let end = &mut self.ends[side as usize];
        end.cqn = create_cq(host, end.qpn);
        self.armed[side as usize] = Armed::default();
        let lent = self.lent[side as usize].end();
        for mr in end.memory.take().into_iter().chain(lent) {
            host.take_back(mr.addr, mr.len);
        }
        end.closed = true;
    }

    pub(super) fn ring_receives(&self, side: Side, host: &mut Host) {
        host.ring_recv(self.ends[side as usize].qpn);
    }

    fn stride(&self) -> usize {
        self.shape.longest + GRH + GUARD
    }

    /// First byte of a place: `WINDOW` of sends, `RECEIVES` of receives, `WINDOW` each of WRITEs and of READs, one that is
    /// read, and the counter.
    pub(super) fn at(&self, area: usize, slot: usize) -> usize {
        let before = [
            0,
            WINDOW,
            WINDOW + RECEIVES,
            2 * WINDOW + RECEIVES,
            3 * WINDOW + RECEIVES,
            3 * WINDOW + RECEIVES + 1,
        ];
        (before[area] + slot) * self.stride()
    }

    /// Both queue pairs are opened, with new memory.
    pub(crate) fn open(&mut self, hosts: [&mut Host; 2], kernels: &mut [Kernel; 2]) {
        assert_eq!(self.state, State::Closed);
        self.state = State::Opening;
        self.opened += 1;
        (self.gave_up, self.refused) = (false, false);
        self.pending.set(2);
        let [a, b] = hosts;
        let bytes = (3 * WINDOW + RECEIVES + 2) * self.stride();
        let fixed = self.fixed();
        let timeouts = [self.shape.timeout, None];
        for (side, host) in [&mut *a, &mut *b].into_iter().enumerate() {
            let end = &self.ends[side];
            let psn = self.rng.u32(..1 << 24);
            host.create_qp_as(
                end.qpn,
                QpOptions {
                    psn,
                    send_cq: end.cqn,
                    recv_cq: end.cqn,
                    timeout: timeouts[side].unwrap_or(self.shape.options.timeout),
                    ..self.shape.options
                },
            );
        }
        let peers = [b.peer(self.ends[1].qpn), a.peer(self.ends[0].qpn)];
        for (side, host) in [(0, a), (1, b)] {
            let addr = host.alloc(bytes);
            host.write(addr, &vec![UNTOUCHED; bytes]);
            host.write(addr + self.at(4, 0) as u64, &fixed);
            host.write(addr + self.at(5, 0) as u64, &[0; 8]);
            // A place that is used again has another key for long.
            host.number_regions(1 + self.number + MOST * (self.opened % KEYS));
            let mr = host.plan_region(addr, bytes as u64);
            let kernel = &mut kernels[side];
            kernel.register(host, &mr, Rights::ALL);
            let peer = peers[side];
            if self.shape.options.qp_type == qp_type::UD {
                let handle = AvCtx {
                    tclass: self.shape.options.tclass,
                    ..host.handle(&peer)
                };
                kernel.create(cmd::WRITE_AH, self.number, &handle.emit());
            }
            if self.shape.options.qp_type == qp_type::RC {
                self.lend(side, host, kernel);
            }
            let end = &mut self.ends[side];
            let pending = Rc::clone(&self.pending);
            let (head, images) = (host.opening(end.qpn, &peer), host.images(end.qpn, &peer));
            kernel.order(head, &images, move |host, answer| {
                super::kernel::ok(host, answer);
                pending.set(pending.get() - 1);
            });
            *end = End::new(end.qpn, end.cqn, Some(mr));
        }
    }

    /// A side lends a region to its peer.
    pub(super) fn lend(&mut self, side: usize, host: &mut Host, kernel: &mut Kernel) {
        let contents = self.lent_bytes();
        self.lent[side].lend(host, kernel, self.number, &contents);
    }

    pub(super) fn lent_bytes(&self) -> Vec<u8> {
        lent::contents(self.shape.mark, self.shape.longest)
    }

    pub(super) fn fixed(&self) -> Vec<u8> {
        message(self.shape.mark, u32::MAX, self.shape.longest)
    }

    /// Nothing more is posted.
    pub(crate) fn drain(&mut self) {
        if self.state == State::Open {
            self.state = State::Draining;
        }
    }

    /// Nothing is under way.
    pub(crate) fn at_rest(&self) -> bool {
        let may_miss = self.shape.lossy && self.shape.options.qp_type != qp_type::RC;
        let rests = |end: &End| {
            end.sent.is_empty()
                && (may_miss || end.inbound.iter().all(|inbound| !inbound.announced))
        };
        self.state == State::Closed
            || self.state == State::Draining && (self.gave_up || self.ends.iter().all(rests))
    }

    /// Both ends die, each as its host has it; those of `there` alone.
    pub(crate) fn die(&mut self, kernels: &mut [Kernel; 2], there: [bool; 2]) {
        self.state = State::Dying;
        self.pending
            .set(there.iter().filter(|t| **t).count() as u32);
        for side in SIDES
            .map(|side| side as usize)
            .into_iter()
            .filter(|s| there[*s])
        {
            let (end, kernel) = (&mut self.ends[side], &mut kernels[side]);
            let early = self.rng.u8(..4) == 0;
            if early && let Some(mr) = end.memory.take() {
                kernel.deregister(mr);
            }
            if self.rng.bool() {
                kernel.fail(end.qpn);
            }
            let (pending, ended) = (Rc::clone(&self.pending), Rc::clone(&end.ended));
            kernel.reset(end.qpn, move || {
                pending.set(pending.get() - 1);
                ended.set(true);
            });
            let lent = self.lent[side].end();
            for mr in end.memory.take().into_iter().chain(lent) {
                kernel.deregister(mr);
            }
        }
    }

    /// All has been at rest for long.
    ///
    /// # Panics
    /// If an event of a completion is still to come.
    pub(crate) fn check_events(&self) {
        for (side, armed) in self.armed.iter().enumerate() {
            let waits = armed.is_due() && !self.gave_up;
            assert!(!waits, "{}: no event of a completion", self.name(side));
        }
    }

    /// An event came.
    ///
    /// # Panics
    /// If it is of a queue pair whose end was answered.
    pub(crate) fn reported(&mut self, side: Side, (kind, object, detail): Event) {
        let name = self.name(side as usize);
        let (end, armed) = (&self.ends[side as usize], &mut self.armed[side as usize]);
        match kind {
            event::COMPLETION if object == u32::from(end.cqn) => armed.reported(),
            event::COMPLETION | event::CQ_ERROR | event::SRQ_LIMIT => {}
            _ => assert!(
                object != end.qpn || !end.closed,
                "{name}: event {kind} ({detail}) behind its end"
            ),
        }
    }

    /// What came is looked at, and new messages are posted.
    ///
    /// # Panics
    /// If anything is not as the golden model has it.
    pub(crate) fn step(&mut self, hosts: [&mut Host; 2], kernels: &mut [Kernel; 2], now: u64) {
        match self.state {
            State::Opening if self.pending.get() == 0 => {
                self.state = State::Open;
                let ends = &mut self.ends;
                ends.iter_mut().for_each(|end| end.owed.extend(0..RECEIVES));
            }
            State::Dying if self.pending.get() == 0 => self.state = State::Closed,
            _ => {}
        }
        for (side, host) in hosts.into_iter().enumerate() {
            let cqn = self.ends[side].cqn;
            while let Some(cqe) = host.poll(cqn) {
                self.armed[side].saw(&cqe, now);
                self.completed(side, (host, &mut kernels[side]), &cqe);
            }
            if matches!(self.state, State::Open | State::Draining) {
                self.receive(side, host);
            }
            if !self.gave_up {
                self.armed[side].step(host, cqn, &mut self.rng);
                let late = self.armed[side].is_late(now, self.shape.patience);
                assert!(!late, "{}: no event of a completion", self.name(side));
            }
            let end = &mut self.ends[side];
            end.closed |= end.ended.get();
            // The last asks for a completion, or it would not be known to have been sent.
            let unsignaled = self.ends[side]
                .sent
                .back()
                .is_some_and(|sent| !sent.signaled);
            match self.state {
                State::Open => self.post(side, host, now, false),
                State::Draining if unsignaled && !self.gave_up => self.post(side, host, now, true),
                _ => {}
            }
            if matches!(self.state, State::Open | State::Draining)
                && !self.gave_up
                && let Some(sent) = self.ends[side].sent.front()
            {
                let since = sent.since.max(self.free_since);
                let (number, waited) = (sent.number, now.saturating_sub(since));
                assert!(
                    waited < self.shape.patience,
                    "{}: message {number} does not end in {waited} cycles",
                    self.name(side)
                );
            }
        }
    }

    pub(super) fn name(&self, side: usize) -> String {
        let kind = ["RC", "UC", "", "UD"][usize::from(self.shape.options.qp_type)];
        format!("{kind} line {} {:?}", self.number, SIDES[side])
    }

    /// The bytes between the places of a region are as they were.
    pub(crate) fn check_guards(&self, hosts: [&Host; 2]) {
        for (side, host) in hosts.into_iter().enumerate() {
            let Some(mr) = self.ends[side].memory else {
                continue;
            };
            let bytes = host.contents(&mr);
            for guard in bytes.chunks(self.stride()) {
                let guard = &guard[self.stride() - GUARD..];
                let name = self.name(side);
                assert!(
                    guard.iter().all(|b| *b == UNTOUCHED),
                    "{name}: between two places"
                );
            }
        }
    }
}

//! What a case works with: cards of the kind under test, alone or two on a wire.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use ferroce_proto::abi::cmd::{QpState, status as cmd_status};
use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx};
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{AethRepr, Headers, Opcode, Packet};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::testhost::{Host, Pair, Peer, QpOptions, Side, Work};

use super::check;
use crate::differential::Card;
use crate::shared::Shared;

/// Cycles after which a completion that is waited for does not come any more. No case waits longer than that.
const PATIENCE: u64 = 400_000;

/// Cycles without a frame, and with nothing under way at a port, after which a card does nothing more by itself.
pub(super) const QUIET: u64 = 900;
/// Cycles after which a card that still sends is taken to send for ever.
pub(super) const ENDLESS: u64 = 4_000_000;

/// Cycles between two looks at completion queues and frames.
pub(super) const STRIDE: u64 = 16;

/// Path MTU of what has no reason for another, in bytes.
pub(super) const MTU: usize = 1024;

/// IPv4 addresses of the two hosts.
pub(super) const IP: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];

/// Makes cards and watches them.
pub struct Bench<'a> {
    card: &'a Card,
    cards: Vec<Shared>,
    refused: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(card: &'a Card) -> Self {
        Self {
            card,
            cards: Vec::new(),
            refused: false,
        }
    }

    /// The case has cards reach for memory that is not there.
    pub(super) fn expect_refusals(&mut self) {
        self.refused = true;
    }

    /// A card of the kind under test.
    pub(super) fn card(&mut self, memory: Rc<dyn HostMemory>) -> Box<dyn Nic> {
        let card = Shared::new((self.card.build)(memory, self.cards.len() as u64 + 1));
        self.cards.push(card.clone());
        Box::new(card)
    }

    /// Two hosts at the addresses of `ip`, without queue pairs.
    pub(super) fn pair(&mut self, ip: [IpAddr; 2]) -> Pair {
        let mut pair = Pair::with_ip(|memory| self.card(memory), ip);
        (pair.a.packed, pair.b.packed) = (true, true);
        pair
    }

    /// Two connected queue pairs with the same options.
    pub(super) fn connect(&mut self, options: QpOptions) -> Conn {
        self.connect_each(options, options)
    }

    /// Two connected queue pairs with options of their own.
    pub(super) fn connect_each(&mut self, a: QpOptions, b: QpOptions) -> Conn {
        Conn::new(self.pair(IP), a, b)
    }

    /// What no card may do, whatever the case: DMA faults, broken rules of ports.
    pub(super) fn failures(&self) -> Vec<String> {
        let all = self.cards.iter();
        all.flat_map(|card| card.0.borrow().failures())
            .filter(|failure| !self.refused || !failure.starts_with("DMA "))
            .collect()
    }
}

/// Two cards on a wire with a connection between them; A mostly requests.
pub(super) struct Conn {
    pub(super) pair: Pair,
    pub(super) qa: u32,
    pub(super) qb: u32,
}

impl Deref for Conn {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.pair
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut Pair {
        &mut self.pair
    }
}

impl Conn {
    pub(super) fn new(mut pair: Pair, a: QpOptions, b: QpOptions) -> Self {
        let (qa, qb) = pair.connect(a, b);
        Self { pair, qa, qb }
    }

    /// Connects afresh, with contexts changed by `change`; rings are empty, PSNs start again.
    pub(super) fn reconnect(&mut self, side: Side, change: impl FnOnce(&mut Contexts)) {
        let (own, far, qpn, peer) = match side {
            Side::A => (&mut self.pair.a, &self.pair.b, self.qa, self.qb),
            Side::B => (&mut self.pair.b, &self.pair.a, self.qb, self.qa),
        };
        open(own, qpn, &far.peer(peer), change);
    }

    /// Connects both sides afresh, with the contexts that they were made with.
    pub(super) fn start_again(&mut self) {
        for side in [Side::A, Side::B] {
            self.reconnect(side, |_| {});
        }
    }

    /// The interrupts that A has sent since they were last asked for, by vector.
    pub(super) fn interrupts(&mut self) -> Vec<u16> {
        std::iter::from_fn(|| self.pair.a.nic.interrupt()).collect()
    }

    /// Posts a send work request at A.
    pub(super) fn post(&mut self, work: &Work) -> u16 {
        self.pair.a.post_send(self.qa, work)
    }

    /// Posts several send work requests at A to one doorbell.
    pub(super) fn post_all(&mut self, works: &[Work]) {
        let (last, before) = works.split_last().expect("at least one");
        for work in before {
            self.pair.a.write_slots(self.qa, &work.slots());
        }
        self.post(last);
    }

    /// Posts a receive work request at B.
    pub(super) fn recv(&mut self, list: &[Sge]) -> u16 {
        self.pair.b.post_recv(self.qb, list)
    }

    /// The next CQE of a completion queue, which must come.
    pub(super) fn wait_on(&mut self, side: Side, cqn: u16) -> Cqe {
        let end = self.pair.a.nic.now() + PATIENCE;
        loop {
            if let Some(cqe) = self.pair.host(side).poll(cqn) {
                return cqe;
            }
            assert!(
                self.pair.a.nic.now() < end,
                "expected a completion on {side:?}, got none in {PATIENCE} cycles"
            );
            self.pair.run(STRIDE);
        }
    }

    /// The next CQE of completion queue 0, which must come.
    pub(super) fn wait(&mut self, side: Side) -> Cqe {
        self.wait_on(side, 0)
    }

    /// The next CQE must be of this WQE and status.
    #[track_caller]
    pub(super) fn ends(&mut self, side: Side, index: u16, status: u8) -> Cqe {
        let cqe = self.wait(side);
        check(
            &format!("WQE index and status of the next CQE on {side:?}"),
            (cqe.wqe_index, cqe.status),
            (index, status),
        );
        cqe
    }

    /// The next CQE must tell of the success of this WQE.
    #[track_caller]
    pub(super) fn succeeds(&mut self, side: Side, index: u16) -> Cqe {
        self.ends(side, index, status::SUCCESS)
    }

    /// Executes a send work request at A, which must succeed.
    #[track_caller]
    pub(super) fn execute(&mut self, work: &Work) -> Cqe {
        let index = self.post(work);
        self.succeeds(Side::A, index)
    }

    /// The dynamic state of the queue pair of a side.
    pub(super) fn query(&mut self, side: Side) -> QpState {
        let qpn = match side {
            Side::A => self.qa,
            Side::B => self.qb,
        };
        self.pair.host(side).query(qpn)
    }

    /// Runs until the wire has been quiet for a while.
    pub(super) fn settle(&mut self) {
        let mut seen = self.pair.sent.len();
        let mut end = self.pair.a.nic.now() + QUIET;
        let limit = end + ENDLESS;
        while self.pair.a.nic.now() < end {
            assert!(end < limit, "the cards do not stop sending");
            self.pair.run(STRIDE);
            let idle = [&self.pair.a, &self.pair.b].map(|host| host.nic.ports_are_idle());
            if self.pair.sent.len() != seen || idle != [true; 2] {
                seen = self.pair.sent.len();
                end = self.pair.a.nic.now() + QUIET;
            }
        }
    }

    /// All CQEs of completion queue 0 once the wire is quiet.
    pub(super) fn drain(&mut self, side: Side) -> Vec<Cqe> {
        self.settle();
        std::iter::from_fn(|| self.pair.host(side).poll(0)).collect()
    }

    /// Statuses of all CQEs of completion queue 0 once the wire is quiet.
    pub(super) fn statuses(&mut self, side: Side) -> Vec<u8> {
        self.drain(side).iter().map(|cqe| cqe.status).collect()
    }

    /// No completion comes on either side once the wire is quiet.
    #[track_caller]
    pub(super) fn nothing_completes(&mut self) {
        for side in [Side::A, Side::B] {
            check(
                &format!("completions on {side:?}"),
                self.statuses(side),
                vec![],
            );
        }
    }

    /// The packets a side sent.
    pub(super) fn packets(&self, side: Side) -> Vec<Sent> {
        let frames = self.pair.sent.iter().filter(|(from, _)| *from == side);
        frames.map(|(_, frame)| Sent::parse(frame)).collect()
    }

    /// Opcodes of the packets a side sent.
    pub(super) fn opcodes(&self, side: Side) -> Vec<Opcode> {
        self.packets(side).iter().map(Sent::opcode).collect()
    }

    /// Loses the frames of a side with these numbers, counted from 0 from now on.
    pub(super) fn lose(&mut self, side: Side, numbers: &[usize]) {
        let numbers = numbers.to_vec();
        let mut next = 0;
        self.pair.wire = Box::new(move |from, frame| {
            let number = next;
            next += usize::from(from == side);
            if from == side && numbers.contains(&number) {
                vec![]
            } else {
                vec![frame.to_vec()]
            }
        });
    }

    /// Loses everything from now on.
    pub(super) fn cut(&mut self) {
        self.pair.wire = Box::new(|_, _| vec![]);
    }

    /// Loses nothing from now on.
    pub(super) fn mend(&mut self) {
        self.pair.wire = Box::new(|_, frame| vec![frame.to_vec()]);
    }
}

/// A packet that a card sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) headers: Headers,
    pub(super) payload: Vec<u8>,
}

impl Sent {
    #[track_caller]
    pub(super) fn parse(frame: &[u8]) -> Self {
        let packet = Packet::parse(frame)
            .unwrap_or_else(|error| panic!("a card sent a bad packet ({error}): {frame:02x?}"));
        Self {
            headers: packet.headers,
            payload: frame[packet.payload].to_vec(),
        }
    }

    pub(super) fn opcode(&self) -> Opcode {
        self.headers.bth.opcode
    }

    pub(super) fn psn(&self) -> u32 {
        self.headers.bth.psn.value()
    }

    #[track_caller]
    pub(super) fn aeth(&self) -> AethRepr {
        let aeth = self.headers.ext.aeth;
        aeth.unwrap_or_else(|| panic!("expected an AETH, got {:?}", self.opcode()))
    }
}

/// The three context images of a queue pair.
pub(super) struct Contexts {
    pub(super) sq: SqCtx,
    pub(super) av: AvCtx,
    pub(super) rq: RqCtx,
}

/// Takes a queue pair through RESET to RTS with contexts changed by `change`; its rings are empty.
#[track_caller]
pub(super) fn open(host: &mut Host, qpn: u32, peer: &Peer, change: impl FnOnce(&mut Contexts)) {
    host.reset_qp(qpn);
    let [sq, av, rq] = host.images(qpn, peer);
    let mut contexts = Contexts {
        sq: SqCtx::parse(&sq),
        av: AvCtx::parse(&av),
        rq: RqCtx::parse(&rq),
    };
    change(&mut contexts);
    let Contexts { sq, av, rq } = contexts;
    let head = host.opening(qpn, peer);
    let answer = host.command(head, &[sq.emit(), av.emit(), rq.emit()]);
    check("answer of MODIFY_QP", answer.status, cmd_status::OK);
}

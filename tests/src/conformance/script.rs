//! A card and a peer that sends what it likes.

use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, DethRepr, Extensions, Headers, Mac, Opcode, Psn,
    RethRepr, Syndrome,
};
pub(super) use ferroce_sim::packet::frame as build;
use ferroce_sim::packet::headers;
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights, Work};

use super::bench::{Bench, Contexts, ENDLESS, IP, QUIET, STRIDE, Sent, open};
use super::check;

/// First PSN of the script's requests.
pub(super) const PEER_PSN: u32 = 0x2000;

/// Queue pair number of the script.
const PEER_QPN: u32 = 0x11;

/// Q_Key of datagrams.
pub(super) const QKEY: u32 = 0x8001_0203;

/// Bytes of the region that the script may reach.
pub(super) const TARGET: usize = 4096;

/// A card whose peer is played by the test.
pub(super) struct Script {
    pub(super) host: Host,
    pub(super) qpn: u32,
    /// The script's end of the connection.
    pub(super) peer: Peer,
    /// PSN of the script's next request.
    pub(super) psn: Psn,
    /// A region that it may use in every way, all zero at first.
    pub(super) target: Mr,
    /// Bytes handed to the card that it may not have taken yet.
    given: u64,
}

impl Bench<'_> {
    /// A connection of a card with a script; the card's PSNs start at `options.psn`.
    pub(super) fn script(&mut self, options: QpOptions) -> Script {
        let mac = |last| Mac([0x52, 0x54, 0, 0, 0, last]);
        let mut host = Host::new(|memory| self.card(memory), mac(2), IP[1]);
        host.packed = true;
        host.create_cq(6);
        let target = host.create_mr(&[0; TARGET], Rights::ALL);
        let qpn = host.create_qp(options);
        let peer = Peer {
            mac: mac(1),
            gid: IP[0].into(),
            qpn: PEER_QPN,
            psn: PEER_PSN,
        };
        let mut script = Script {
            host,
            qpn,
            peer,
            psn: Psn::new(PEER_PSN),
            target,
            given: 0,
        };
        script.reopen(|_| {});
        script
    }
}

impl Script {
    /// Connects afresh, with contexts changed by `change`: rings are empty, PSNs start again, the target is zero.
    pub(super) fn reopen(&mut self, change: impl FnOnce(&mut Contexts)) {
        open(&mut self.host, self.qpn, &self.peer, change);
        self.psn = Psn::new(self.peer.psn);
        self.host.write(self.target.addr, &[0; TARGET]);
        self.quiet();
        while self.host.poll(0).is_some() {}
    }

    /// Headers of a packet from the script without extension headers.
    fn headers(&self, opcode: Opcode, psn: Psn) -> Headers {
        let (from, to) = (self.peer, &self.host);
        headers(
            (from.mac, from.gid),
            (to.mac, to.gid),
            self.qpn,
            opcode,
            psn,
        )
    }

    /// Headers of a request of the next PSN; a RETH or AtomicETH names 8 bytes at the start of the target.
    pub(super) fn request(&self, opcode: Opcode) -> Headers {
        let mut headers = self.headers(opcode, self.psn);
        let (va, rkey) = (self.target.addr, self.target.key);
        headers.ext = Extensions {
            reth: opcode.has_reth().then_some(RethRepr {
                va,
                rkey,
                dma_len: 8,
            }),
            atomic: opcode.has_atomic_eth().then_some(AtomicEthRepr {
                va,
                rkey,
                swap_add: 1,
                compare: 0,
            }),
            deth: opcode.has_deth().then_some(DethRepr {
                qkey: QKEY,
                src_qp: PEER_QPN,
            }),
            imm: opcode.has_imm().then_some(0x0102_0304),
            ieth: opcode.has_ieth().then_some(rkey),
            ..Extensions::default()
        };
        headers
    }

    /// Headers of a WRITE packet that announces `len` bytes at the start of the target.
    pub(super) fn write(&self, opcode: Opcode, len: u32) -> Headers {
        let mut headers = self.request(opcode);
        if let Some(reth) = &mut headers.ext.reth {
            reth.dma_len = len;
        }
        headers
    }

    /// Headers of a response to the card.
    pub(super) fn response(&self, opcode: Opcode, psn: u32, syndrome: Syndrome) -> Headers {
        let mut headers = self.headers(opcode, Psn::new(psn));
        headers.ext = Extensions {
            aeth: opcode.has_aeth().then_some(AethRepr { syndrome, msn: 1 }),
            atomic_ack: opcode
                .has_atomic_ack()
                .then_some(AtomicAckEthRepr { original: 0 }),
            ..Extensions::default()
        };
        headers
    }

    /// Steps the card for `cycles`; the packets it sent.
    pub(super) fn run(&mut self, cycles: u64) -> Vec<Sent> {
        let end = self.host.nic.now() + cycles;
        self.host.nic.run_until(end);
        let frames = std::iter::from_fn(|| self.host.nic.transmit());
        frames.map(|frame| Sent::parse(&frame)).collect()
    }

    /// Hands the card a frame.
    pub(super) fn hand(&mut self, frame: &[u8]) {
        self.given += frame.len() as u64;
        self.host.nic.receive(frame);
    }

    /// Steps the card until it has sent nothing for a while; the packets it sent.
    pub(super) fn quiet(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        // A narrow data path takes 8 bytes a cycle, less if the port pauses.
        let given = std::mem::take(&mut self.given) / 2;
        let mut end = self.host.nic.now() + given + QUIET;
        let limit = end + ENDLESS;
        while self.host.nic.now() < end {
            assert!(end < limit, "the card does not stop sending");
            let more = self.run(STRIDE);
            if !more.is_empty() || !self.host.nic.ports_are_idle() {
                end = end.max(self.host.nic.now() + QUIET);
            }
            sent.extend(more);
        }
        sent
    }

    /// Steps the card until it sends something: after how many cycles, and what; `None` if it does not within `limit`.
    pub(super) fn until_sent(&mut self, limit: u64) -> Option<(u64, Vec<Sent>)> {
        let start = self.host.nic.now();
        while self.host.nic.now() - start < limit {
            let sent = self.run(STRIDE);
            if !sent.is_empty() {
                return Some((self.host.nic.now() - start, sent));
            }
        }
        None
    }

    /// Hands the card a frame, behind the doorbells that were rung; the packets it sends until it is quiet.
    pub(super) fn give(&mut self, frame: &[u8]) -> Vec<Sent> {
        self.host.read32(regs::SCRATCH);
        self.hand(frame);
        self.quiet()
    }

    /// Hands the card a packet; the packets it sends until it is quiet.
    pub(super) fn send(&mut self, headers: &Headers, payload: &[u8]) -> Vec<Sent> {
        self.give(&build(headers, payload))
    }

    /// Hands the card the packet of the next PSN and goes on to the one behind it.
    pub(super) fn next(&mut self, headers: &Headers, payload: &[u8]) -> Vec<Sent> {
        let answers = self.send(headers, payload);
        self.psn = self.psn.next();
        answers
    }

    /// Hands the card the packet of the next PSN, steps nothing, and goes on to the one behind it.
    pub(super) fn hand_next(&mut self, headers: &Headers, payload: &[u8]) {
        self.hand(&build(headers, payload));
        self.psn = self.psn.next();
    }

    /// Posts a send work request; the packets the card sends for it until it is quiet.
    pub(super) fn post(&mut self, work: &Work) -> Vec<Sent> {
        self.host.post_send(self.qpn, work);
        self.quiet()
    }

    /// Posts several send work requests to one doorbell.
    pub(super) fn ring_all(&mut self, works: &[Work]) {
        let (last, before) = works.split_last().expect("at least one");
        for work in before {
            self.host.write_slots(self.qpn, &work.slots());
        }
        self.host.post_send(self.qpn, last);
    }

    /// Likewise; the packets the card sends until it is quiet.
    pub(super) fn post_all(&mut self, works: &[Work]) -> Vec<Sent> {
        self.ring_all(works);
        self.quiet()
    }

    /// Likewise, and steps the card until the first packets are sent: it is in the midst of them.
    pub(super) fn begin(&mut self, works: &[Work]) -> Vec<Sent> {
        self.ring_all(works);
        let mut steps = (0..40_000).map(|_| self.run(1));
        steps.find(|sent| !sent.is_empty()).expect("it sends")
    }

    /// Posts a receive work request for the whole target.
    pub(super) fn recv(&mut self) -> u16 {
        self.host.post_recv(self.qpn, &[self.target.all()])
    }

    /// All CQEs there are.
    pub(super) fn cqes(&mut self) -> Vec<Cqe> {
        std::iter::from_fn(|| self.host.poll(0)).collect()
    }

    /// Steps the card until there is a CQE; `None` if there is none for long.
    pub(super) fn next_cqe(&mut self) -> Option<Cqe> {
        (0..20 * QUIET).find_map(|_| {
            self.run(1);
            self.host.poll(0)
        })
    }

    /// WQE index and status of all CQEs there are.
    pub(super) fn results(&mut self) -> Vec<(u16, u8)> {
        let cqes = self.cqes();
        cqes.iter().map(|cqe| (cqe.wqe_index, cqe.status)).collect()
    }

    /// What the target holds.
    pub(super) fn contents(&self) -> Vec<u8> {
        self.host.contents(&self.target)
    }

    /// The responder is as it was: it waits for the packet of the script's next PSN, nothing was written or completed.
    #[track_caller]
    pub(super) fn untouched(&mut self, what: &str) {
        let query = self.host.query(self.qpn);
        check(
            &format!("{what}: PSN expected"),
            query.rq_psn,
            self.psn.value(),
        );
        check(
            &format!("{what}: state of the responder"),
            query.rq_state,
            state::RTS,
        );
        super::check_bytes(
            &format!("{what}: the target"),
            &self.contents(),
            &[0; TARGET],
        );
        check(&format!("{what}: completions"), self.results(), vec![]);
    }

    /// The responder is in error.
    #[track_caller]
    pub(super) fn in_error(&mut self, what: &str) {
        let query = self.host.query(self.qpn);
        check(
            &format!("{what}: state of the responder"),
            query.rq_state,
            state::ERR,
        );
        check(
            &format!("{what}: state of the requester"),
            query.sq_state,
            state::ERR,
        );
    }

    /// A counter has risen by `by` while `f` ran.
    #[track_caller]
    pub(super) fn counts<T>(
        &mut self,
        counter: &str,
        by: u64,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.host.stat(counter);
        let result = f(self);
        check(
            &format!("counter {counter}"),
            self.host.stat(counter) - before,
            by,
        );
        result
    }
}

/// Syndromes of packets, which are all acknowledgements of some kind.
#[track_caller]
pub(super) fn syndromes(packets: &[Sent]) -> Vec<Syndrome> {
    packets
        .iter()
        .map(|packet| packet.aeth().syndrome)
        .collect()
}

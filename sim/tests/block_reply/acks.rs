//! Acknowledgements: what leaves is what the tokens say, coalesced.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_proto::wire::psn::{MASK, distance};
use ferroce_sim::bench::StreamSink;
use ferroce_sim::random::Pauses;

use super::request::{Request, answer};
use super::rig::{Q, Rig, uneven};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) psn: u32,
    /// Tells tokens apart.
    pub(crate) msn: u32,
    pub(crate) syndrome: u8,
}

impl Token {
    pub(crate) fn is_nak(self) -> bool {
        self.syndrome >> 5 & 3 != 0
    }

    /// What is due when `next` comes while this one waits.
    pub(crate) fn merged(self, next: Self) -> Self {
        if !next.is_nak() && distance(next.psn, self.psn) < 0 {
            self
        } else {
            next
        }
    }
}

/// The rig with tokens of acknowledgements alone.
struct Acks {
    rig: Rig,
    queued: VecDeque<(u32, Token)>,
    /// Tokens taken and not yet seen to be answered for, by queue pair.
    due: BTreeMap<u32, VecDeque<Token>>,
    /// Last departure of a queue pair.
    last: BTreeMap<u32, Token>,
    sent: Vec<(u64, u32, Token)>,
    next_msn: u32,
}

impl Acks {
    fn new(idle: Pauses, back: Pauses) -> Self {
        Self {
            rig: Rig::new(idle, back),
            queued: VecDeque::new(),
            due: BTreeMap::new(),
            last: BTreeMap::new(),
            sent: Vec::new(),
            next_msn: 0,
        }
    }

    fn push(&mut self, qpn: u32, psn: u32, syndrome: u8) {
        self.next_msn += 1;
        let psn = psn & MASK;
        self.rig.ack(qpn, psn, self.next_msn, syndrome);
        let token = Token {
            psn,
            msn: self.next_msn,
            syndrome,
        };
        self.queued.push_back((qpn, token));
    }

    fn step(&mut self) {
        let before = self.rig.tokens.sent();
        self.rig.step();
        if self.rig.tokens.sent() > before {
            let (qpn, token) = self.queued.pop_front().expect("it was pushed");
            self.due.entry(qpn).or_default().push_back(token);
        }
        while let Some((cycle, packet)) = self.rig.left() {
            assert!(packet.is_ack() && packet.plen == 0, "{packet:?}");
            let token = Token {
                psn: packet.psn,
                msn: packet.msn,
                syndrome: packet.syndrome,
            };
            self.left(packet.qpn, token);
            self.sent.push((cycle, packet.qpn, token));
        }
    }

    /// The departure must be what the first of the tokens that are due come to.
    fn left(&mut self, qpn: u32, token: Token) {
        let due = self.due.entry(qpn).or_default();
        let mut sum = None::<Token>;
        let merged = due.iter().position(|next| {
            sum = Some(sum.map_or(*next, |sum| sum.merged(*next)));
            sum == Some(token)
        });
        let Some(merged) = merged else {
            panic!("queue pair {qpn} sent {token:?}, due were {due:?}");
        };
        due.drain(..=merged);
        // what came while it waited and is older went into it
        self.last.insert(qpn, token);
    }

    fn finish(&mut self) {
        for _ in 0..600_000 {
            if self.queued.is_empty() {
                break;
            }
            self.step();
        }
        (0..2_000).for_each(|_| self.step());
        assert!(self.queued.is_empty(), "tokens never wait long");
        for (qpn, due) in &self.due {
            for token in due {
                let last = self.last[qpn];
                assert_eq!(last.merged(*token), last, "queue pair {qpn} owes {token:?}");
            }
        }
    }

    /// Nothing leaves from now on, or nothing holds it back.
    fn back(&mut self, back: Pauses) {
        self.rig.desc = StreamSink::new(self.rig.bench.dut(), "desc", back).expect("as before");
    }
}

/// A token as a responder makes them: PSNs go up, NAKs are followed by duplicates acknowledged again.
pub(crate) fn token(rng: &mut Rng, psn: &mut u32) -> (u32, u8) {
    match rng.u8(..8) {
        0 => (*psn, [0x60, 0x20, 0x2c][rng.usize(..3)]),
        1 => (psn.wrapping_sub(1), 0x1f),
        _ => {
            *psn = psn.wrapping_add(rng.u32(0..3));
            (psn.wrapping_sub(1), 0x1f)
        }
    }
}

fn random(idle: Pauses, back: Pauses, qps: u32) -> Acks {
    let mut acks = Acks::new(idle, back);
    let mut rng = acks.rig.bench.rng().clone();
    let mut psns = [MASK - 20; 1 << Q];
    for _ in 0..10_000 {
        let qpn = rng.u32(..qps);
        let (psn, syndrome) = token(&mut rng, &mut psns[qpn as usize]);
        acks.push(qpn, psn, syndrome);
        acks.step();
    }
    acks.finish();
    acks
}

#[test]
fn random_tokens() {
    for qps in [1, 2, 3, 16] {
        let acks = random(Pauses::NONE, Pauses::NONE, qps);
        let sent = acks.sent.len();
        assert!(sent > 1000, "{sent} acknowledgements of {qps} queue pairs");
        random(uneven(), uneven(), qps);
        random(Pauses::NONE, Pauses::new(0.5, 20), qps);
        random(Pauses::new(0.5, 20), Pauses::NONE, qps);
    }
}

#[test]
fn a_token_and_a_packet_in_every_cycle() {
    let mut acks = Acks::new(Pauses::NONE, Pauses::NONE);
    for psn in 0..1600 {
        acks.push(psn % 16, psn / 16, 0x1f);
    }
    let start = acks.rig.bench.cycle();
    acks.finish();
    assert_eq!(acks.rig.tokens.last_sent(), Some(start + 1599));
    assert_eq!(
        acks.sent.len(),
        1600,
        "nothing coalesces while the wire is free"
    );
    assert_eq!(acks.sent[0].0, start + 6, "cycles to the packet");
    assert_eq!(acks.sent[1599].0, start + 1605);
}

#[test]
fn acknowledgements_coalesce_while_the_wire_is_busy() {
    let mut acks = Acks::new(Pauses::NONE, Pauses::new(1.0, 1));
    for psn in 0..3000 {
        acks.push(psn % 3, psn / 3, 0x1f);
    }
    (0..3100).for_each(|_| acks.step());
    assert_eq!(acks.rig.tokens.sent(), 3000, "tokens do not wait");
    acks.back(Pauses::NONE);
    acks.finish();
    assert!(
        acks.sent.len() <= 16,
        "{} for three queue pairs",
        acks.sent.len()
    );
}

#[test]
fn a_reset_forgets_what_is_due() {
    let mut acks = Acks::new(Pauses::NONE, Pauses::new(1.0, 1));
    for qpn in 0..16 {
        acks.push(qpn, 0, 0x1f);
    }
    (0..40).for_each(|_| acks.step());
    acks.back(Pauses::NONE);
    acks.rig.reset();
    acks.due.clear();
    for qpn in 0..16 {
        acks.push(qpn, 5, 0x1f);
    }
    acks.finish();
    assert_eq!(acks.sent.len(), 16, "each queue pair once");
}

#[test]
fn a_fresh_start_forgets_what_is_due() {
    let mut acks = Acks::new(Pauses::NONE, Pauses::new(1.0, 1));
    // fill the way out with others
    for psn in 0..64 {
        acks.push(1 + psn % 15, psn, 0x1f);
    }
    acks.push(0, 3, 0x1f);
    (0..120).for_each(|_| acks.step());
    acks.rig.start_afresh(0);
    acks.rig.run(20);
    acks.due.remove(&0);
    acks.push(0, 1, 0x1f);
    (0..20).for_each(|_| acks.step());
    acks.back(Pauses::NONE);
    acks.finish();
    let of_first: Vec<_> = acks.sent.iter().filter(|sent| sent.1 == 0).collect();
    assert_eq!(of_first.len(), 1);
    assert_eq!(of_first[0].2.psn, 1);
}

#[test]
fn what_waits_stays_when_an_older_acknowledgement_comes() {
    for syndrome in [0x1f, 0x60, 0x63] {
        let mut acks = Acks::new(Pauses::NONE, Pauses::new(1.0, 1));
        // fill the way out with others
        for psn in 0..64 {
            acks.push(1 + psn % 15, psn, 0x1f);
        }
        acks.push(0, MASK, 0x1f);
        acks.push(0, 1, syndrome);
        acks.push(0, 0, 0x1f);
        (0..120).for_each(|_| acks.step());
        acks.back(Pauses::NONE);
        acks.finish();
        let of_first: Vec<_> = acks.sent.iter().filter(|sent| sent.1 == 0).collect();
        assert_eq!(of_first.len(), 1);
        assert_eq!((of_first[0].2.psn, of_first[0].2.syndrome), (1, syndrome));
    }
}

#[test]
fn an_acknowledgement_waits_for_the_responses_before_it() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let read = Request::read(2, 10, 5000);
    rig.request_after(&read, 1, false);
    rig.ack(2, 15, 9, 0x1f);
    rig.ack(2, 16, 10, 0x60);
    rig.ack(3, 7, 1, 0x1f);
    rig.run(100);
    let sent = rig.packets();
    assert_eq!(sent.len(), 1, "only the other queue pair: {sent:?}");
    assert_eq!((sent[0].qpn, sent[0].psn), (3, 7));
    rig.set_done(1);
    rig.run(100);
    let sent = rig.packets();
    assert_eq!(sent[..5], answer(&read, 0)[..]);
    assert_eq!(sent.len(), 6);
    assert_eq!((sent[5].psn, sent[5].msn, sent[5].syndrome), (16, 10, 0x60));
}

#[test]
fn a_new_request_makes_a_waiting_acknowledgement_superfluous() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let (first, second) = (Request::read(2, 10, 100), Request::read(2, 12, 100));
    rig.request_after(&first, 1, false);
    rig.ack(2, 11, 9, 0x1f);
    rig.request_after(&second, 1, false);
    rig.run(50);
    rig.set_done(1);
    rig.run(100);
    let sent = rig.packets();
    assert_eq!(sent, [answer(&first, 0), answer(&second, 0)].concat());
    // not so a duplicate
    rig.request_after(&first.again(), 2, false);
    rig.ack(2, 12, 9, 0x1f);
    rig.request_after(&second.again(), 2, false);
    rig.run(50);
    rig.set_done(2);
    rig.run(100);
    let sent = rig.packets();
    assert_eq!(sent.len(), 3);
    assert!(sent[2].is_ack() && sent[2].psn == 12);
}

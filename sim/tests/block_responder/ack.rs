//! Acknowledgements: what leaves is what the tokens say, coalesced.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::transport::responder::ack::AckQueue;
use ferroce_proto::wire::psn::{MASK, distance};
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::drive::{Q, uneven};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    psn: u32,
    /// Tells tokens apart.
    msn: u32,
    syndrome: u8,
}

impl Token {
    fn is_nak(self) -> bool {
        self.syndrome >> 5 & 3 != 0
    }

    /// What is due when `next` comes while this one waits.
    fn merged(self, next: Self) -> Self {
        if self.is_nak() && !next.is_nak() && distance(next.psn, self.psn) < 0 {
            self
        } else {
            next
        }
    }
}

struct Rig {
    bench: Bench,
    tokens: StreamSource,
    packets: StreamSink,
    queued: VecDeque<(u32, Token)>,
    /// Tokens taken and not yet seen to be answered for, by queue pair.
    due: BTreeMap<u32, VecDeque<Token>>,
    /// Last departure of a queue pair.
    last: BTreeMap<u32, Token>,
    sent: Vec<(u64, u32, Token)>,
    next_msn: u32,
}

impl Rig {
    fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(AckQueue::<Q>::default).expect("the block builds");
        let mut rig = Self {
            tokens: StreamSource::new(bench.dut(), "s", idle).expect("a stream in"),
            packets: StreamSink::new(bench.dut(), "m", back).expect("a stream out"),
            queued: VecDeque::new(),
            due: BTreeMap::new(),
            last: BTreeMap::new(),
            sent: Vec::new(),
            next_msn: 0,
            bench,
        };
        rig.reset();
        rig
    }

    /// Resets the block and waits for its sweep; what was due is forgotten.
    fn reset(&mut self) {
        self.bench.reset(&mut [&mut self.tokens, &mut self.packets]);
        self.due.clear();
        for _ in 0..(1 << Q) + 2 {
            self.step();
        }
    }

    fn push(&mut self, qpn: u32, psn: u32, syndrome: u8) {
        self.next_msn += 1;
        let token = Token {
            psn: psn & MASK,
            msn: self.next_msn,
            syndrome,
        };
        let item = self.tokens.item();
        self.tokens.push(
            item.with("qpn", qpn.into())
                .with("psn", token.psn.into())
                .with("msn", token.msn.into())
                .with("syndrome", syndrome.into()),
        );
        self.queued.push_back((qpn, token));
    }

    fn step(&mut self) {
        let before = self.tokens.sent();
        let mut agents: [&mut dyn Agent; 2] = [&mut self.tokens, &mut self.packets];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        if self.tokens.sent() > before {
            let (qpn, token) = self.queued.pop_front().expect("it was pushed");
            self.due.entry(qpn).or_default().push_back(token);
        }
        while let Some((cycle, item)) = self.packets.pop() {
            assert_eq!(item.get("opcode"), 0x11);
            assert_eq!(item.get("plen"), 0);
            let token = Token {
                psn: item.get("psn") as u32,
                msn: item.get("msn") as u32,
                syndrome: item.get("syndrome") as u8,
            };
            let qpn = item.get("qpn") as u32;
            self.left(qpn, token);
            self.sent.push((cycle, qpn, token));
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
        // what came while it waited and is older than a NAK went into it
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
}

/// A token as a responder makes them: PSNs go up, NAKs are followed by duplicates acknowledged again.
fn token(rng: &mut Rng, psn: &mut u32) -> (u32, u8) {
    match rng.u8(..8) {
        0 => (*psn, [0x60, 0x61, 0x2c][rng.usize(..3)]),
        1 => (psn.wrapping_sub(1), 0x1f),
        _ => {
            *psn = psn.wrapping_add(rng.u32(0..3));
            (psn.wrapping_sub(1), 0x1f)
        }
    }
}

fn random(idle: Pauses, back: Pauses, qps: u32) -> Rig {
    let mut rig = Rig::new(idle, back);
    let mut rng = rig.bench.rng().clone();
    let mut psns = [MASK - 20; 1 << Q];
    for _ in 0..20_000 {
        let qpn = rng.u32(..qps);
        let (psn, syndrome) = token(&mut rng, &mut psns[qpn as usize]);
        rig.push(qpn, psn, syndrome);
        rig.step();
    }
    rig.finish();
    rig
}

#[test]
fn random_tokens() {
    for qps in [1, 2, 3, 16] {
        let rig = random(Pauses::NONE, Pauses::NONE, qps);
        let sent = rig.sent.len();
        assert!(sent > 2000, "{sent} acknowledgements of {qps} queue pairs");
        random(uneven(), uneven(), qps);
        random(Pauses::NONE, Pauses::new(0.5, 20), qps);
        random(Pauses::new(0.5, 20), Pauses::NONE, qps);
    }
}

#[test]
fn a_token_and_a_packet_in_every_cycle() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    for psn in 0..1600 {
        rig.push(psn % 16, psn / 16, 0x1f);
    }
    let start = rig.bench.cycle();
    rig.finish();
    assert_eq!(rig.tokens.last_sent(), Some(start + 1599));
    assert_eq!(
        rig.sent.len(),
        1600,
        "nothing coalesces while the wire is free"
    );
    assert_eq!(rig.sent[0].0, start + 8, "cycles to the packet");
    assert_eq!(rig.sent[1599].0, start + 1607);
}

#[test]
fn acknowledgements_coalesce_while_the_wire_is_busy() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, 1));
    for psn in 0..3000 {
        rig.push(psn % 3, psn / 3, 0x1f);
    }
    (0..3100).for_each(|_| rig.step());
    assert_eq!(rig.tokens.sent(), 3000, "tokens do not wait");
    rig.packets = StreamSink::new(rig.bench.dut(), "m", Pauses::NONE).expect("as before");
    rig.finish();
    assert!(
        rig.sent.len() <= 12,
        "{} for three queue pairs",
        rig.sent.len()
    );
}

#[test]
fn a_reset_forgets_what_is_due() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, 1));
    for qpn in 0..16 {
        rig.push(qpn, 0, 0x1f);
    }
    (0..40).for_each(|_| rig.step());
    rig.packets = StreamSink::new(rig.bench.dut(), "m", Pauses::NONE).expect("as before");
    rig.reset();
    for qpn in 0..16 {
        rig.push(qpn, 5, 0x1f);
    }
    rig.finish();
    assert_eq!(rig.sent.len(), 16, "each queue pair once");
}

#[test]
fn a_nak_stays_when_an_older_acknowledgement_comes() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, 1));
    // fill the queue behind the table with others
    for qpn in 1..16 {
        rig.push(qpn, 0, 0x1f);
    }
    rig.push(0, MASK, 0x1f);
    rig.push(0, 1, 0x60);
    rig.push(0, 0, 0x1f);
    (0..60).for_each(|_| rig.step());
    rig.packets = StreamSink::new(rig.bench.dut(), "m", Pauses::NONE).expect("as before");
    rig.finish();
    let of_first: Vec<_> = rig.sent.iter().filter(|sent| sent.1 == 0).collect();
    assert_eq!(of_first.len(), 1);
    assert_eq!((of_first[0].2.psn, of_first[0].2.syndrome), (1, 0x60));
}

//! Acknowledgements that wait for their completion: order of a queue pair, outcomes, what waits for nothing.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::transport::responder::ack_hold::AckHold;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::rig::{Q, uneven};

/// Syndrome of NAK remote operational error.
const NAK: u64 = 0x63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An acknowledgement, or with these fields one.
    Plain,
    Reply,
    Reset,
    Halt,
    /// Its completion is waited for.
    Completes {
        unanswered: bool,
        lost: bool,
    },
}

/// What leaves: MSN, syndrome, `reply`, `reset`, `rsp_flush`.
type Left = (u64, u64, u64, u64, u64);

struct Hold {
    bench: Bench,
    s: StreamSource,
    m: StreamSink,
    errors: StreamSink,
    /// Expected, by queue pair.
    due: BTreeMap<u64, VecDeque<Left>>,
    due_errors: VecDeque<(u64, u64)>,
    /// Tokens that wait for an outcome: their number among those pushed, and the outcome.
    waiting: VecDeque<(u64, bool)>,
    pushed: u64,
    /// MSNs of the replies that are to leave, of all queue pairs.
    replies: VecDeque<u64>,
    seen: Vec<(u64, u64)>,
}

impl Hold {
    fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(AckHold::<Q>::default).expect("the block builds");
        let dut = bench.dut();
        let mut hold = Self {
            s: StreamSource::new(dut, "s", idle).expect("a stream in"),
            m: StreamSink::new(dut, "m", back).expect("a stream out"),
            errors: StreamSink::new(dut, "errors", back).expect("a stream out"),
            bench,
            due: BTreeMap::new(),
            due_errors: VecDeque::new(),
            waiting: VecDeque::new(),
            pushed: 0,
            replies: VecDeque::new(),
            seen: Vec::new(),
        };
        hold.outcome(0);
        let mut agents: [&mut dyn Agent; 3] = [&mut hold.s, &mut hold.m, &mut hold.errors];
        hold.bench.reset(&mut agents);
        // the table is written
        hold.run(1 << Q);
        hold
    }

    fn outcome(&mut self, bits: u64) {
        let dut = self.bench.dut_mut();
        let port = dut.input("outcome").unwrap();
        dut.set(port, bits);
    }

    fn push(&mut self, qpn: u64, kind: Kind) {
        self.pushed += 1;
        let msn = self.pushed;
        let (mut syndrome, mut item) = (0, self.s.item().with("qpn", qpn).with("msn", msn));
        let mut left = Some((msn, 0, 0, 0, 0));
        match kind {
            Kind::Plain => syndrome = msn % 0x80,
            Kind::Reply => item = item.with("reply", 1),
            Kind::Reset => item = item.with("reset", 1),
            Kind::Halt => item = item.with("rsp_flush", 1),
            Kind::Completes { unanswered, lost } => {
                self.waiting.push_back((self.pushed, lost));
                item = item
                    .with("completes", 1)
                    .with("unanswered", unanswered.into());
                item = item.with("incarnation", msn % 4);
                if lost {
                    left = Some((msn - 1, NAK, 0, 0, 0));
                    self.due_errors.push_back((qpn, msn % 4));
                } else if unanswered {
                    left = None;
                }
            }
        }
        if let Some(left) = &mut left {
            left.1 |= syndrome;
            (left.2, left.3, left.4) = (
                (kind == Kind::Reply).into(),
                (kind == Kind::Reset).into(),
                (kind == Kind::Halt).into(),
            );
        }
        if kind == Kind::Reply {
            self.replies.push_back(msn);
        }
        self.due.entry(qpn).or_default().extend(left);
        self.s.push(item.with("syndrome", syndrome));
    }

    fn step(&mut self) {
        let mut agents: [&mut dyn Agent; 3] = [&mut self.s, &mut self.m, &mut self.errors];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((cycle, item)) = self.m.pop() {
            let get = |field| item.get(field);
            let qpn = get("qpn");
            let left = (
                get("msn"),
                get("syndrome"),
                get("reply"),
                get("reset"),
                get("rsp_flush"),
            );
            let due = self.due.get_mut(&qpn).and_then(VecDeque::pop_front);
            assert_eq!(Some(left), due, "queue pair {qpn}, cycle {cycle}");
            if left.2 == 1 {
                assert_eq!(Some(left.0), self.replies.pop_front(), "order of replies");
            }
            if let Some(&(number, _)) = self.waiting.front() {
                assert!(left.0 != number, "it left before its outcome");
            }
            self.seen.push((cycle, qpn));
        }
        while let Some((_, item)) = self.errors.pop() {
            let found = (item.get("qpn"), item.get("incarnation"));
            assert_eq!(Some(found), self.due_errors.pop_front());
            assert_eq!((item.get("syndrome"), item.get("spared")), (NAK, 0));
        }
    }

    /// The outcome of the oldest token that waits, in the next cycle.
    fn decide(&mut self) {
        let (_, lost) = self.waiting.pop_front().expect("one waits");
        self.outcome(2 | u64::from(lost));
        self.step();
        self.outcome(0);
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.step());
    }

    fn busy(&self) -> u64 {
        let dut = self.bench.dut();
        dut.get(dut.output("activity.busy").unwrap())
    }

    #[track_caller]
    fn nothing_left(&mut self) {
        self.run(2000);
        let left: usize = self.due.values().map(VecDeque::len).sum();
        assert_eq!((left, self.due_errors.len(), self.busy()), (0, 0, 0));
    }
}

fn random_kind(rng: &mut Rng) -> Kind {
    match rng.u8(..10) {
        0..4 => Kind::Plain,
        4 => Kind::Reply,
        5 => Kind::Reset,
        6 => Kind::Halt,
        _ => Kind::Completes {
            unanswered: rng.bool(),
            lost: rng.u8(..4) == 0,
        },
    }
}

/// Outcomes at any time, before their token is taken too.
#[test]
fn each_queue_pair_keeps_its_order() {
    let mut rng = Rng::with_seed(ferroce_sim::bench::seed());
    for (judged, back) in [(0.5, Pauses::NONE), (0.1, uneven()), (0.02, uneven())] {
        let mut hold = Hold::new(uneven(), back);
        for _ in 0..4000 {
            if hold.pushed - hold.s.sent() < 4 {
                let qpn = rng.u64(..1 << Q) & rng.u64(..1 << Q);
                hold.push(qpn, random_kind(&mut rng));
            }
            match !hold.waiting.is_empty() && rng.f64() < judged {
                true => hold.decide(),
                false => hold.step(),
            }
        }
        while !hold.waiting.is_empty() {
            hold.decide();
        }
        hold.nothing_left();
    }
}

/// What completes nothing passes tokens of other queue pairs that wait, in 2 cycles.
#[test]
fn others_do_not_wait() {
    let mut hold = Hold::new(Pauses::NONE, Pauses::NONE);
    hold.push(
        1,
        Kind::Completes {
            unanswered: false,
            lost: true,
        },
    );
    hold.push(1, Kind::Plain);
    hold.run(10);
    assert_eq!((hold.seen.len(), hold.busy()), (0, 1));
    for number in 0..40 {
        hold.push(2 + number % 14, Kind::Plain);
        hold.step();
        let taken = hold.s.last_sent();
        hold.run(3);
        let &(cycle, qpn) = hold.seen.last().expect("it left");
        assert_eq!((Some(cycle - 2), qpn), (taken, 2 + number % 14));
    }
    hold.decide();
    hold.nothing_left();
}

/// Tokens of one queue pair behind its receive fill the queue: all others wait then, and nothing is lost.
#[test]
fn the_queue_runs_full() {
    let mut hold = Hold::new(Pauses::NONE, Pauses::NONE);
    let waits = Kind::Completes {
        unanswered: false,
        lost: false,
    };
    for _ in 0..400 {
        hold.push(3, waits);
    }
    for number in 0..400 {
        hold.push(3 + number % 2, Kind::Plain);
    }
    hold.run(1500);
    let taken = hold.s.sent();
    assert!((500..720).contains(&taken), "{taken} taken");
    while !hold.waiting.is_empty() {
        hold.decide();
    }
    hold.nothing_left();
}

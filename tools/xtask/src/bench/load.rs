//! Messages as fast as the engine takes them, and how long they take.

use anyhow::{Result, ensure};
use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::Mtu;
use ferroce_sim::random::Chance;
use ferroce_sim::testhost::{Host, Mr, QpOptions, Rights, Work, pattern};

use super::rig::{Rig, Setup};

/// Messages outstanding of all queue pairs together, and of one, at most.
const OUTSTANDING: u32 = 1024;
const OUTSTANDING_QP: u32 = 256;
/// Bytes that are kept in flight when messages are long.
const IN_FLIGHT: u32 = 512 << 10;
/// Cycles without any completion after which a run has failed.
const PATIENCE: u64 = 2_000_000;
/// Words that additions go to, one after the other.
const WORDS: u64 = 64;
/// READs and atomics outstanding of a queue pair.
const READS: u8 = 16;

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Write,
    /// A WRITE whose payload stands in the WQE.
    WriteInline,
    Read,
    Send,
    FetchAdd,
    CmpSwap,
}

/// A queue pair beside those that are measured, on the same cards and the same wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Beside {
    /// It does what they do.
    Same,
    /// Likewise, but this share of its requests is lost.
    Lossy(f64),
    /// It SENDs to a receiver that is never ready.
    NotReady,
}

/// Messages of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) op: Op,
    /// Bytes of a message.
    pub(super) bytes: u32,
    pub(super) mtu: u32,
    /// Queue pairs that send.
    pub(super) qps: u32,
    /// Local ACK timeout code.
    pub(super) timeout: u8,
    /// Both hosts request.
    pub(super) both: bool,
    /// A queue pair of the first host that is not measured.
    pub(super) beside: Option<Beside>,
    /// Messages that are measured, of each requester.
    pub(super) messages: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Messages completed of the slower requester, and the cycles this took.
    pub(super) messages: u64,
    pub(super) cycles: u64,
    /// Payload bytes a cycle of that one.
    pub(super) goodput: f64,
    /// Cycles of the whole run, set-up of the queue pairs not counted.
    pub(super) run: u64,
    /// Packets sent again.
    pub(super) retransmissions: u64,
    /// Local ACK timeouts.
    pub(super) timeouts: u64,
}

/// A queue pair that requests.
struct Requester {
    qpn: u32,
    /// That of the other host.
    peer: u32,
    op: Op,
    /// It is measured.
    counts: bool,
    posted: u64,
    done: u64,
}

/// The requests of a host.
struct Side {
    index: usize,
    qps: Vec<Requester>,
    source: Mr,
    target: Mr,
    done: u64,
    /// Messages done and cycle where the measurement begins, and where it ends.
    begin: Option<(u64, u64)>,
    end: Option<(u64, u64)>,
}

impl Load {
    /// Messages of a queue pair in flight.
    fn depth(&self) -> u32 {
        let by_bytes = (IN_FLIGHT / self.bytes.max(1) / self.qps).max(2);
        let by_count = (OUTSTANDING / self.qps).clamp(4, OUTSTANDING_QP);
        by_bytes.min(by_count)
    }

    /// One message in so many asks for a completion.
    fn signal(&self) -> u64 {
        u64::from(self.depth() / 4).clamp(1, 16)
    }

    fn options(&self) -> QpOptions {
        let slots = self.depth().max(2).next_power_of_two();
        QpOptions {
            mtu: Mtu::from_bytes(self.mtu as usize).expect("an MTU"),
            sq_log: (slots.ilog2() as u8 + 2).max(6),
            rq_log: (slots.ilog2() as u8 + 1).max(4),
            ot_log: (slots.ilog2() as u8).clamp(3, 8),
            timeout: self.timeout,
            max_rd_atomic: READS,
            ..QpOptions::default()
        }
    }

    fn work(&self, side: &Side, op: Op, number: u64) -> Work {
        let local = [side.source.sge(0, self.bytes)];
        let work = match op {
            Op::Write => Work::write(&local, &side.target, 0),
            Op::WriteInline => {
                Work::write(&[], &side.target, 0).inline(&pattern(self.bytes as usize, 1))
            }
            // The target is on this side then.
            Op::Read => Work::read(&[side.target.sge(0, self.bytes)], &side.source, 0),
            Op::Send => Work::send(&local),
            Op::FetchAdd => {
                let word = number % WORDS;
                Work::fetch_add(side.source.sge(0, 8), &side.target, 8 * word, 1)
            }
            Op::CmpSwap => Work::cmp_swap(side.source.sge(0, 8), &side.target, 0, 0, 0),
        };
        if (number + 1).is_multiple_of(self.signal()) {
            work
        } else {
            work.unsignaled()
        }
    }

    /// Connects the queue pairs, runs and checks what arrived.
    pub(super) fn run(&self, setup: &Setup) -> Result<Measured> {
        let mut rig = Rig::new(setup)?;
        let mut sides = self.sides(&mut rig);
        if let Some(beside) = self.beside {
            let mut requester = self.connect(&mut rig.hosts, 0);
            requester.counts = false;
            match beside {
                Beside::Same => {}
                Beside::Lossy(share) => rig.lossy = Some((requester.peer, Chance::new(share))),
                Beside::NotReady => requester.op = Op::Send,
            }
            sides[0].qps.push(requester);
        }
        let start = rig.now;
        let mut last = (0, rig.now);
        while sides.iter().any(|side| side.end.is_none()) {
            for side in &mut sides {
                self.turn(&mut rig.hosts, side, rig.now, true)?;
            }
            watch(&sides, &mut last, rig.now)?;
            rig.step();
        }
        let run = rig.now - start;
        while sides.iter().any(|side| !self.drained(side)) {
            for side in &mut sides {
                self.turn(&mut rig.hosts, side, rig.now, false)?;
            }
            watch(&sides, &mut last, rig.now)?;
            rig.step();
        }
        for side in &sides {
            self.check(&rig.hosts, side)?;
        }
        rig.check()?;
        let mut sum = |name: &str| {
            rig.hosts
                .iter_mut()
                .map(|host| host.stat(name))
                .sum::<u64>()
        };
        let (retransmissions, timeouts) = (sum("retransmissions"), sum("local_ack_timeout_err"));
        let spans = sides.iter().map(|side| {
            let ((m0, t0), (m1, t1)) = side.begin.zip(side.end).expect("measured");
            (m1 - m0, t1 - t0)
        });
        let rate = |(messages, cycles): (u64, u64)| messages as f64 / cycles.max(1) as f64;
        let (messages, cycles) = spans
            .min_by(|&a, &b| rate(a).total_cmp(&rate(b)))
            .expect("a host requests");
        Ok(Measured {
            messages,
            cycles,
            goodput: rate((messages, cycles)) * f64::from(self.bytes),
            run,
            retransmissions,
            timeouts,
        })
    }

    fn sides(&self, rig: &mut Rig) -> Vec<Side> {
        let indices = if self.both { 0..2 } else { 0..1 };
        let mut sides: Vec<Side> = Vec::new();
        for index in indices {
            // What is moved, and where to; a READ moves to the one who asks.
            let (from, to) = match self.op {
                Op::Read => (1 - index, index),
                _ => (index, 1 - index),
            };
            let len = self.bytes.max(8 * WORDS as u32) as usize;
            let atomic = matches!(self.op, Op::FetchAdd | Op::CmpSwap);
            let image = if atomic {
                vec![0; len]
            } else {
                pattern(len, 1)
            };
            let source = rig.hosts[from].create_mr(&image, Rights::ALL);
            let target = rig.hosts[to].create_mr(&vec![0; len], Rights::ALL);
            let qps = (0..self.qps).map(|_| self.connect(&mut rig.hosts, index));
            let mut side = Side {
                index,
                qps: qps.collect(),
                source,
                target,
                done: 0,
                begin: None,
                end: None,
            };
            if self.op == Op::Send {
                for qp in &mut side.qps {
                    for _ in 0..2 * self.depth() {
                        rig.hosts[to].post_recv(qp.peer, &[target.sge(0, self.bytes)]);
                    }
                }
            }
            sides.push(side);
        }
        sides
    }

    fn connect(&self, hosts: &mut [Host; 2], index: usize) -> Requester {
        let [a, b] = hosts;
        let (from, to) = if index == 0 { (a, b) } else { (b, a) };
        let (qpn, peer) = (from.create_qp(self.options()), to.create_qp(self.options()));
        let (here, there) = (from.peer(qpn), to.peer(peer));
        from.connect(qpn, &there);
        to.connect(peer, &here);
        Requester {
            qpn,
            peer,
            op: self.op,
            counts: true,
            posted: 0,
            done: 0,
        }
    }

    /// Looks at the completions and posts what there is room for.
    fn turn(&self, hosts: &mut [Host; 2], side: &mut Side, now: u64, more: bool) -> Result<()> {
        let index = side.index;
        let (depth, signal) = (u64::from(self.depth()), self.signal());
        for at in [index, 1 - index] {
            // With requests both ways the completion queue of a host has those of both.
            while let Some(cqe) = hosts[at].peek(0) {
                let receive = cqe.opcode & 0x80 != 0;
                if receive == (at == index) {
                    break;
                }
                hosts[at].poll(0);
                ensure!(
                    cqe.status == status::SUCCESS,
                    "a message ended with status {}",
                    cqe.status
                );
                if receive {
                    hosts[at].post_recv(cqe.qpn, &[side.target.sge(0, self.bytes)]);
                } else {
                    let qp = side.qps.iter_mut().find(|qp| qp.qpn == cqe.qpn);
                    let qp = qp.expect("a queue pair of this load");
                    qp.done += signal;
                    if qp.counts {
                        side.done += signal;
                    }
                }
            }
        }
        let warm = depth * u64::from(self.qps);
        if side.begin.is_none() && side.done >= warm {
            side.begin = Some((side.done, now));
        }
        let begin = side
            .begin
            .map_or(u64::MAX, |(done, _)| done + self.messages);
        if side.end.is_none() && side.done >= begin {
            side.end = Some((side.done, now));
        }
        if !more {
            return Ok(());
        }
        for place in 0..side.qps.len() {
            let Requester {
                qpn,
                op,
                posted,
                done,
                ..
            } = side.qps[place];
            // A doorbell for several messages, as an application in a hurry has them.
            if posted - done + signal > depth {
                continue;
            }
            let mut next = posted;
            while next - done + signal <= depth {
                for number in next..next + signal {
                    let slots = self.work(side, op, number).slots();
                    hosts[index].write_slots(qpn, &slots);
                }
                next += signal;
            }
            hosts[index].post_slots(qpn, &[]);
            side.qps[place].posted = next;
        }
        Ok(())
    }

    fn drained(&self, side: &Side) -> bool {
        let mut counted = side.qps.iter().filter(|qp| qp.counts);
        counted.all(|qp| qp.done == qp.posted)
    }

    /// The target holds what was moved there, or the sum of all additions.
    fn check(&self, hosts: &[Host; 2], side: &Side) -> Result<()> {
        let to = match self.op {
            Op::Read => side.index,
            _ => 1 - side.index,
        };
        let read = |len: u64| hosts[to].read(side.target.addr, len as usize);
        if self.op == Op::FetchAdd {
            let words = read(8 * WORDS);
            let words = words.as_chunks().0.iter();
            let sum: u64 = words.map(|&word| u64::from_le_bytes(word)).sum();
            ensure!(sum == side.done, "{sum} of {} were added", side.done);
            return Ok(());
        }
        let expected = match self.op {
            Op::CmpSwap => vec![0; 8],
            _ => pattern(self.bytes as usize, 1),
        };
        let found = read(self.bytes.into());
        ensure!(found == expected, "other bytes arrived than were sent");
        Ok(())
    }
}

/// Fails when nothing completes any more.
fn watch(sides: &[Side], last: &mut (u64, u64), now: u64) -> Result<()> {
    let done = sides.iter().map(|side| side.done).sum();
    if done != last.0 {
        *last = (done, now);
    }
    ensure!(
        now - last.1 < PATIENCE,
        "no message completed in {PATIENCE} cycles; {done} did before"
    );
    Ok(())
}

//! Messages as fast as the engine takes them, and how long they take.

use std::{fs, mem};

use anyhow::{Context, Result, ensure};
use ferroce_hdl::engine::builds::STANDARD;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::regs::Params;
use ferroce_proto::wire::Mtu;
use ferroce_sim::random::Chance;
use ferroce_sim::testhost::{Host, QpOptions, Rights, Work, pattern};

use super::measured::Measured;
use super::rig::{Rig, Setup};
use super::side::{Owners, Requester, Side, WORDS, owners};

/// Messages outstanding of all queue pairs together, and of one, at most.
const OUTSTANDING: u32 = 1024;
const OUTSTANDING_QP: u32 = 256;
/// Bytes that are kept in flight when messages are long.
const IN_FLIGHT: u32 = 512 << 10;
/// Cycles without any completion after which a run has failed.
const PATIENCE: u64 = 2_000_000;
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

/// Which side requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// The first host of the second.
    OneWay,
    /// Both of each other.
    BothWays,
    /// So many hosts of the first.
    Incast(usize),
    /// The first host of the second by WRITE, READ, SEND and fetch-and-add at once, on queue pairs of their own.
    Mixed,
}

impl Traffic {
    /// Hosts that it takes.
    pub(super) fn hosts(self) -> usize {
        match self {
            Self::Incast(senders) => senders + 1,
            _ => 2,
        }
    }
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
    pub(super) traffic: Traffic,
    /// A queue pair of the first host that is not measured.
    pub(super) beside: Option<Beside>,
    /// Messages that are measured, of each requester.
    pub(super) messages: u64,
    /// Numbers of queue pairs and regions are spread over all that a build with these tables has, up to the last one.
    pub(super) spread: Option<Params>,
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
            ot_log: (slots.ilog2() as u8).clamp(self.least_outstanding(), 8),
            timeout: self.timeout,
            max_rd_atomic: READS,
            ..QpOptions::default()
        }
    }

    /// Log2 of the messages of a queue pair in the table of outstanding ones, at least: 8, or its part of the table.
    fn least_outstanding(&self) -> u8 {
        let table = self.spread.unwrap_or(STANDARD).log_outstanding;
        (table - self.qps.next_power_of_two().ilog2() as u8).min(3)
    }

    /// Message `number` of the queue pair at `place`.
    fn work(&self, side: &Side, op: Op, place: usize, number: u64) -> Work {
        let local = [side.source.sge(0, side.bytes)];
        let work = match op {
            Op::Write => Work::write(&local, &side.target, 0),
            Op::WriteInline => {
                Work::write(&[], &side.target, 0).inline(&pattern(side.bytes as usize, 1))
            }
            // The target is on this side then.
            Op::Read => Work::read(&[side.target.sge(0, side.bytes)], &side.source, 0),
            Op::Send => Work::send(&local),
            Op::FetchAdd => {
                // responses go round the queue pairs: no two of a round share a word
                let word = (place as u64 + number) % WORDS;
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
        let mut rig = Rig::new(setup, self.traffic.hosts())?;
        let mut sides = self.sides(&mut rig);
        if let Some(beside) = self.beside {
            let mut requester = self.connect(&mut rig.hosts, 0, 1, self.op, self.qps);
            requester.counts = false;
            match beside {
                Beside::Same => {}
                Beside::Lossy(share) => rig.lossy = Some((requester.peer, Chance::new(share))),
                Beside::NotReady => requester.op = Op::Send,
            }
            sides[0].due.insert(self.qps as usize);
            sides[0].qps.push(requester);
        }
        let owners = owners(&sides);
        let (start, since) = (rig.now, cpu());
        let mut last = (0, rig.now);
        while sides.iter().any(|side| side.end.is_none()) {
            self.complete(&mut rig, &mut sides, &owners)?;
            for side in &mut sides {
                self.post(&mut rig.hosts[side.from], side);
            }
            watch(&sides, &mut last, rig.now)?;
            rig.step();
        }
        let (run, cpu) = (rig.now - start, cpu() - since);
        while sides.iter().any(|side| !side.is_drained()) {
            self.complete(&mut rig, &mut sides, &owners)?;
            watch(&sides, &mut last, rig.now)?;
            rig.step();
        }
        for side in &sides {
            side.check(&rig.hosts)?;
        }
        rig.check()?;
        let mut sum = |name: &str| {
            rig.hosts
                .iter_mut()
                .map(|host| host.stat(name))
                .sum::<u64>()
        };
        let (retransmissions, timeouts) = (sum("retransmissions"), sum("local_ack_timeout_err"));
        let goodputs = sides.iter().map(|side| (side, side.goodput()));
        let (slowest, goodput) = goodputs
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .context("a host requests")?;
        let (messages, cycles) = slowest.span();
        Ok(Measured {
            messages,
            cycles,
            goodput,
            total: sides.iter().map(Side::goodput).sum(),
            run,
            cpu,
            retransmissions,
            timeouts,
        })
    }

    fn sides(&self, rig: &mut Rig) -> Vec<Side> {
        let routes = match self.traffic {
            Traffic::OneWay => vec![(0, 1, self.op)],
            Traffic::BothWays => vec![(0, 1, self.op), (1, 0, self.op)],
            Traffic::Incast(senders) => (1..=senders).map(|from| (from, 0, self.op)).collect(),
            Traffic::Mixed => {
                let ops = [Op::Write, Op::Read, Op::Send, Op::FetchAdd];
                ops.map(|op| (0, 1, op)).to_vec()
            }
        };
        let side = |(from, to, op)| self.side(&mut rig.hosts, from, to, op);
        routes.into_iter().map(side).collect()
    }

    fn side(&self, hosts: &mut [Host], from: usize, to: usize, op: Op) -> Side {
        // What is moved, and where to; a READ moves data to its requester.
        let (here, there) = if op == Op::Read {
            (to, from)
        } else {
            (from, to)
        };
        let atomic = matches!(op, Op::FetchAdd | Op::CmpSwap);
        let bytes = if atomic { 8 } else { self.bytes };
        let len = bytes.max(8 * WORDS as u32) as usize;
        let image = if atomic {
            vec![0; len]
        } else {
            pattern(len, 1)
        };
        if let Some(tables) = self.spread {
            let last = (1 << tables.log_mr) - 1;
            hosts[from].number_regions(last);
            hosts[to].number_regions(last);
        }
        let source = hosts[here].create_mr(&image, Rights::ALL);
        let target = hosts[there].create_mr(&vec![0; len], Rights::ALL);
        let qps = (0..self.qps).map(|place| self.connect(hosts, from, to, op, place));
        let side = Side {
            from,
            to,
            op,
            bytes,
            qps: qps.collect(),
            source,
            target,
            posted: 0,
            done: 0,
            due: (0..self.qps as usize).collect(),
            begin: None,
            end: None,
        };
        if op == Op::Send {
            for qp in &side.qps {
                for _ in 0..2 * self.depth() {
                    hosts[to].post_recv(qp.peer, &[target.sge(0, bytes)]);
                }
            }
        }
        side
    }

    fn connect(&self, hosts: &mut [Host], from: usize, to: usize, op: Op, place: u32) -> Requester {
        let create = |host: &mut Host| match self.spread {
            None => host.create_qp(self.options()),
            Some(tables) => {
                let all = 1 << tables.log_qp;
                host.create_qp_as(all - 1 - place * (all / (self.qps + 1)), self.options())
            }
        };
        let (qpn, peer) = (create(&mut hosts[from]), create(&mut hosts[to]));
        let (here, there) = (hosts[from].peer(qpn), hosts[to].peer(peer));
        hosts[from].connect(qpn, &there);
        hosts[to].connect(peer, &here);
        Requester {
            qpn,
            peer,
            op,
            counts: true,
            posted: 0,
            done: 0,
        }
    }

    /// Takes all completions there are.
    fn complete(&self, rig: &mut Rig, sides: &mut [Side], owners: &Owners) -> Result<()> {
        for (index, host) in rig.hosts.iter_mut().enumerate() {
            while let Some(cqe) = host.poll(0) {
                ensure!(
                    cqe.status == status::SUCCESS,
                    "a message ended with status {}",
                    cqe.status
                );
                let owner = owners.get(&(index, cqe.qpn));
                let &(side, place) = owner.context("a completion of no queue pair of the load")?;
                let side = &mut sides[side];
                if cqe.opcode & 0x80 != 0 {
                    host.post_recv(cqe.qpn, &[side.target.sge(0, side.bytes)]);
                    continue;
                }
                let qp = &mut side.qps[place];
                qp.done += self.signal();
                side.due.insert(place);
                if qp.counts {
                    side.done += self.signal();
                }
            }
        }
        let warm = u64::from(self.depth() * self.qps);
        for side in sides {
            if side.begin.is_none() && side.done >= warm {
                side.begin = Some((side.done, rig.now));
            }
            let begin = side
                .begin
                .map_or(u64::MAX, |(done, _)| done + self.messages);
            if side.end.is_none() && side.done >= begin {
                side.end = Some((side.done, rig.now));
            }
        }
        Ok(())
    }

    /// Posts what there is room for.
    fn post(&self, host: &mut Host, side: &mut Side) {
        let (depth, signal) = (u64::from(self.depth()), self.signal());
        for place in mem::take(&mut side.due) {
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
                    let slots = self.work(side, op, place, number).slots();
                    host.write_slots(qpn, &slots);
                }
                next += signal;
            }
            host.post_slots(qpn, &[]);
            let qp = &mut side.qps[place];
            side.posted += if qp.counts { next - posted } else { 0 };
            qp.posted = next;
        }
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

/// CPU time of this thread in s; 0 if the system does not report it.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().map_or(Ok(0.0), str::parse::<f64>);
    ns.unwrap_or(0.0) * 1e-9
}

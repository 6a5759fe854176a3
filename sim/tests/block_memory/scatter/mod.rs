//! `scatter`: payload where it belongs or nowhere, acknowledged and completed by the rules, at full rate.

mod agents;
mod model;

use std::rc::Rc;

use ferroce_hdl::memory::scatter::Scatter;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::wqe::Sge;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::memory::Ranges;
use ferroce_sim::random::Pauses;

use super::common::{dump, uneven, words};
use agents::{Regions, Writer};
use model::{Model, Outcome, Placement, Wqe};

const QUEUE_PAIRS: u16 = 16;
const REGION: u64 = 1 << 16;

/// Six regions of 64 KiB: protection domains 1 and 2, any mixture of rights, odd addresses.
fn regions() -> Vec<MrCtx> {
    let region = |i: u64| MrCtx {
        base: (0x7f00_0000_0000 + 3 * i * REGION) | (i % 3),
        last: (0x7f00_0000_0000 + 3 * i * REGION) + REGION - 1,
        key: (0x100 * i as u32) | 0x55,
        pd: 1 + i as u32 % 2,
        valid: true,
        local_write: i < 5,
        remote_write: i != 4,
        ..MrCtx::default()
    };
    (0..6).map(region).collect()
}

struct Setup {
    bench: Bench,
    regions: Regions,
    writer: Writer,
    place: StreamSource,
    slots: StreamSource,
    payload: StreamSource,
    ack: StreamSink,
    cq: StreamSink,
    error: StreamSink,
    model: Model,
    memory: Rc<Ranges>,
    lanes: usize,
}

impl Setup {
    fn new<const W: usize, const K: usize>(pauses: Pauses) -> Self {
        let bench = Bench::of(Scatter::<W, K, 4>::default).unwrap();
        let dut = bench.dut();
        let memory = Rc::new(Ranges::new());
        let model = Model::new(regions(), K);
        for (mr, contents) in model.regions.iter().zip(&model.contents) {
            memory.map(mr.base, contents.clone()).unwrap();
        }
        let payload = StreamSource::with_ports(
            dut,
            "payload",
            &["data", "last"],
            ["valid", "ready"],
            pauses,
        );
        let mut setup = Self {
            regions: Regions::new(dut, regions()),
            writer: Writer::new(dut, memory.clone(), K, pauses),
            place: StreamSource::new(dut, "place", pauses).unwrap(),
            slots: StreamSource::new(dut, "slots", pauses).unwrap(),
            payload: payload.unwrap(),
            ack: StreamSink::new(dut, "ack", pauses).unwrap(),
            cq: StreamSink::new(dut, "cq", pauses).unwrap(),
            error: StreamSink::new(dut, "error", pauses).unwrap(),
            model,
            memory,
            lanes: K,
            bench,
        };
        setup.with(|bench, agents| {
            bench.reset(agents);
            // The poison table is swept.
            bench.run(agents, 20).unwrap();
        });
        setup
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let Self {
            regions,
            writer,
            place,
            slots,
            payload,
            ack,
            cq,
            error,
            ..
        } = self;
        act(
            &mut self.bench,
            &mut [regions, writer, place, slots, payload, ack, cq, error],
        )
    }

    /// Queues a placement with its payload and its WQE; what is to come of it, if anything is to be expected.
    fn push(&mut self, p: &Placement) -> Outcome {
        let lanes = self.lanes;
        let rng = self.bench.rng();
        let beats = if p.data.is_empty() {
            0
        } else {
            (p.lane + p.data.len()).div_ceil(lanes)
        };
        let mut frame: Vec<u8> = (0..beats * lanes).map(|_| rng.u8(..)).collect();
        if beats > 0 {
            frame[p.lane..p.lane + p.data.len()].copy_from_slice(&p.data);
        }
        for (n, beat) in frame.chunks(lanes).enumerate() {
            let mut item = self.payload.item().with("last", u64::from(n + 1 == beats));
            item.set_words("data", &words(beat));
            self.payload.push(item);
        }
        let fields = [
            ("qpn", p.qpn.into()),
            ("kind", p.kind.into()),
            ("addr", p.addr),
            ("key", p.key.into()),
            ("pd", p.pd.into()),
            ("offset", p.offset.into()),
            ("plen", p.data.len() as u64),
            ("lane", p.lane as u64),
            ("beats", beats as u64),
            ("reset", p.reset.into()),
            ("incarnation", p.incarnation.into()),
            ("end", p.end.into()),
            ("ack", p.ack.into()),
            ("psn", p.psn.into()),
            ("msn", p.msn.into()),
            ("syndrome", p.syndrome.into()),
            ("complete", p.complete.into()),
            ("status", p.status.into()),
        ];
        // Fields that pass through unchanged.
        let rng = self.bench.rng();
        let through = [
            ("cqn", "cqn", u64::from(rng.u16(..))),
            ("cqe_opcode", "opcode", u64::from(rng.u8(..))),
            ("wqe_index", "wqe_index", u64::from(rng.u16(..))),
            ("byte_len", "byte_len", u64::from(rng.u32(..))),
            ("imm", "imm", u64::from(rng.u32(..))),
            ("with_imm", "with_imm", u64::from(rng.bool())),
            ("with_inv", "with_inv", u64::from(rng.bool())),
            ("solicited", "solicited", u64::from(rng.bool())),
        ];
        let place = fields
            .iter()
            .fold(self.place.item(), |item, &(field, value)| {
                item.with(field, value)
            });
        let place = through
            .iter()
            .fold(place, |item, &(field, _, value)| item.with(field, value));
        self.place.push(place);
        if p.kind == 2 {
            for (n, slot) in p.wqe.bytes().chunks(64).enumerate() {
                let item = self
                    .slots
                    .item()
                    .with("last", u64::from(n + 1 == p.wqe.slots));
                let mut item = item.with("error", u64::from(p.wqe.unreadable == Some(n)));
                item.set_words("slot", &words(slot));
                self.slots.push(item);
            }
        }
        let outcome = self.model.place(p);
        let qpn = u64::from(p.qpn);
        if let Some((psn, msn, syndrome)) = outcome.ack {
            let item = self.ack.item().with("qpn", qpn).with("psn", psn.into());
            self.ack.expect(
                item.with("msn", msn.into())
                    .with("syndrome", syndrome.into()),
            );
        }
        if let Some((status, fence)) = outcome.cqe {
            let item = self
                .cq
                .item()
                .with("qpn", qpn)
                .with("status", status.into());
            let item = item
                .with("fence", fence.into())
                .with("recv", 1)
                .with("vendor_err", 0);
            let item = through
                .iter()
                .fold(item, |item, &(_, field, value)| item.with(field, value));
            self.cq.expect(item);
        }
        if let Some((syndrome, status)) = outcome.error {
            let item = self
                .error
                .item()
                .with("qpn", qpn)
                .with("syndrome", syndrome.into());
            let item = item.with("status", status.into());
            self.error
                .expect(item.with("incarnation", p.incarnation.into()));
        }
        outcome
    }

    /// Runs to the end and compares memory.
    fn finish(&mut self, limit: u64) {
        self.with(|bench, agents| {
            bench.finish(agents, limit).unwrap();
            bench.run(agents, 30).unwrap();
            bench.finish(agents, 1).unwrap();
        });
        assert_eq!(self.writer.ended, self.model.bursts, "bursts");
        assert_eq!(self.writer.beats.len() as u64, self.model.beats, "beats");
        for (mr, contents) in self.model.regions.iter().zip(&self.model.contents) {
            assert!(
                dump(&self.memory, mr.base, contents.len()) == *contents,
                "region {:#x}",
                mr.base
            );
        }
    }

    /// A placement of kind 1 in region 0.
    fn write_at(&mut self, offset: u64, len: usize, lane: usize) -> Placement {
        let mr = self.model.regions[0];
        Placement {
            qpn: 1,
            kind: 1,
            addr: mr.base + offset,
            key: mr.key,
            pd: mr.pd,
            data: (0..len).map(|_| self.bench.rng().u8(..)).collect(),
            lane,
            ack: true,
            psn: self.bench.rng().u32(..1 << 24),
            ..Placement::default()
        }
    }

    fn random(&mut self) -> Placement {
        let lanes = self.lanes;
        let regions = self.model.regions.clone();
        let rng = self.bench.rng();
        let qpn = rng.u16(..QUEUE_PAIRS);
        let pd = 1 + u32::from(qpn) % 2;
        let mut p = Placement {
            qpn,
            pd,
            kind: [0, 1, 1, 1, 2, 2, 2, 2][rng.usize(..8)],
            lane: rng.usize(..lanes),
            reset: rng.u8(..16) == 0,
            incarnation: rng.u8(..4),
            end: rng.bool(),
            ack: rng.bool(),
            psn: rng.u32(..1 << 24),
            msn: rng.u32(..1 << 24),
            syndrome: rng.u8(..),
            complete: rng.bool(),
            status: [0, 0, status::WR_FLUSH_ERR][rng.usize(..3)],
            ..Placement::default()
        };
        if p.reset {
            p.kind = 0;
            return p;
        }
        let mut len = match rng.u8(..5) {
            0 => 0,
            1 => 4096,
            2 => rng.usize(1..=lanes),
            _ => rng.usize(1..=4096),
        };
        // Mostly a region that permits it.
        let region = |rng: &mut fastrand::Rng, remote: bool| loop {
            let mr = regions[rng.usize(..regions.len())];
            let right = mr.pd == pd
                && if remote {
                    mr.remote_write
                } else {
                    mr.local_write
                };
            if right || rng.u8(..100) == 0 {
                return mr;
            }
        };
        if p.kind == 2 {
            let entries = [1, 1, 2, 3, 4, 8, 16][rng.usize(..7)];
            let list = (0..entries).map(|_| {
                let mr = region(rng, false);
                let length = [0, rng.u32(..64), rng.u32(..600), rng.u32(..5000)][rng.usize(..4)];
                let addr = mr.base + rng.u64(..REGION - 10 - u64::from(length));
                Sge {
                    addr,
                    length,
                    lkey: mr.key,
                }
            });
            p.wqe = Wqe::new(list.collect());
            let total: u32 = p.wqe.list.iter().map(|sge| sge.length).sum();
            p.offset = if rng.bool() { 0 } else { rng.u32(..=total) };
            if rng.u8(..32) > 0 {
                len = len.min((total - p.offset) as usize);
            }
            match rng.u8(..128) {
                0 => p.wqe.unreadable = Some(rng.usize(..p.wqe.slots)),
                1 => p.wqe.num_sge = rng.u8(..),
                2 => p.wqe.slots *= 2,
                _ => {}
            }
            p.wqe.slots = p.wqe.slots.min(8);
        } else {
            let mr = region(rng, true);
            p.key = mr.key ^ u32::from(rng.u8(..100) == 0);
            p.addr = mr.base + rng.u64(..REGION - 10 - len as u64);
            if rng.u8(..50) == 0 {
                p.addr = mr.last - rng.u64(..4096);
            }
        }
        p.data = (0..len).map(|_| rng.u8(..)).collect();
        p
    }
}

fn random<const W: usize, const K: usize>(pauses: Pauses, placements: usize) {
    let mut setup = Setup::new::<W, K>(pauses);
    let mut seen = [0; 3];
    for _ in 0..placements {
        let p = setup.random();
        let outcome = setup.push(&p);
        let found = [
            outcome.ack.is_some(),
            outcome.cqe.is_some(),
            outcome.error.is_some(),
        ];
        seen.iter_mut()
            .zip(found)
            .for_each(|(count, found)| *count += usize::from(found));
    }
    setup.finish(1_000_000);
    assert!(
        seen.iter().all(|&n| n * 60 > placements),
        "{seen:?} of {placements}: the stimulus is lopsided"
    );
}

#[test]
fn any_placement_at_full_rate() {
    random::<512, 64>(Pauses::NONE, 1500);
    random::<64, 8>(Pauses::NONE, 300);
}

#[test]
fn any_placement_whatever_waits() {
    random::<512, 64>(uneven(), 1500);
    random::<64, 8>(uneven(), 300);
}

#[test]
fn a_beat_a_cycle() {
    for (lane, offset) in [(0, 0), (54, 0), (54, 33), (0, 63), (63, 1), (20, 10)] {
        let mut setup = Setup::new::<512, 64>(Pauses::NONE);
        for n in 0..12 {
            let p = setup.write_at(4096 * n + offset, 4096, lane);
            setup.push(&p);
        }
        setup.finish(2_000);
        let beats = &setup.writer.beats;
        let source = (lane as u64 + 4096).div_ceil(64);
        let target = setup.model.beats / 12;
        let took = beats[beats.len() - 1] - beats[0] + 1;
        // No cycle is lost within a packet or between two.
        assert!(
            took <= 12 * source.max(target),
            "lane {lane}, offset {offset}: {took} cycles"
        );
    }
}

#[test]
fn small_packets() {
    for (lane, offset, most) in [(0, 0, 1), (6, 0, 2), (0, 60, 2), (58, 33, 2)] {
        let mut setup = Setup::new::<512, 64>(Pauses::NONE);
        for n in 0..200 {
            let p = setup.write_at(128 * n + offset, 64, lane);
            setup.push(&p);
        }
        setup.finish(1_000);
        let beats = &setup.writer.beats;
        let took = beats[beats.len() - 1] - beats[0] + 1;
        assert!(
            took <= 200 * most,
            "lane {lane}, offset {offset}: {took} cycles"
        );
    }
}

#[test]
fn latency() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let p = setup.write_at(0, 64, 0);
    let start = setup.bench.cycle();
    let ack = setup.bench.dut().output("ack_valid").unwrap();
    setup.push(&p);
    let mut acked = None;
    for _ in 0..30 {
        let now = setup.bench.cycle();
        setup.with(|bench, agents| bench.step(agents)).unwrap();
        if setup.bench.dut().is_set(ack) {
            acked.get_or_insert(now + 1 - start);
        }
    }
    setup.finish(1);
    let seen = (
        setup.writer.commands[0] - start,
        setup.writer.beats[0] - start,
        acked.unwrap(),
    );
    assert_eq!(seen, (11, 12, 14));
}

/// A placement of kind 2 with one scatter entry in region 0.
fn receive(setup: &mut Setup, length: u32, len: usize, complete: bool) -> Placement {
    let p = setup.write_at(0, len, 3);
    let sge = Sge {
        addr: p.addr,
        length,
        lkey: p.key,
    };
    Placement {
        kind: 2,
        wqe: Wqe::new(vec![sge]),
        complete,
        end: complete,
        msn: 7,
        ..p
    }
}

#[test]
fn a_failure_poisons_until_a_reset() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let nak = |code: u8| Some((0x60 | code, status::LOC_LEN_ERR));
    // Too long for its buffer, in the middle of a message: the NAK now, its CQE with the next completion.
    let p = receive(&mut setup, 100, 101, false);
    let failed = setup.push(&p);
    assert_eq!(
        (failed.ack, failed.cqe, failed.error),
        (Some((p.psn, 7, 0x61)), None, nak(1))
    );
    let good = receive(&mut setup, 100, 100, true);
    let void = |status| Outcome {
        cqe: Some((status, 0)),
        ..Outcome::default()
    };
    assert_eq!(setup.push(&good), void(status::LOC_LEN_ERR));
    assert_eq!(setup.push(&good), void(status::WR_FLUSH_ERR));
    // Another queue pair is not concerned, and a reset ends it.
    assert_eq!(
        setup
            .push(&Placement {
                qpn: 2,
                ..good.clone()
            })
            .ack,
        Some((good.psn, 7, 0))
    );
    setup.push(&Placement {
        qpn: 1,
        reset: true,
        ..Placement::default()
    });
    assert_eq!(setup.push(&good).cqe, Some((0, 2)));
    // An MR failure with the completion in the same placement; the MSN does not count the message.
    let mut denied = receive(&mut setup, 100, 100, true);
    denied.wqe.list[0].lkey ^= 1;
    let outcome = setup.push(&denied);
    assert_eq!(outcome.ack, Some((denied.psn, 6, 0x63)));
    assert_eq!(outcome.cqe, Some((status::LOC_PROT_ERR, 2)));
    assert_eq!(
        setup.push(&good),
        Outcome {
            cqe: Some((status::WR_FLUSH_ERR, 2)),
            ..Outcome::default()
        }
    );
    setup.push(&Placement {
        qpn: 1,
        reset: true,
        ..Placement::default()
    });
    // A WRITE beyond its region: no CQE of its own.
    let beyond = setup.write_at(REGION - 10, 11, 0);
    let outcome = setup.push(&beyond);
    assert_eq!(
        (outcome.cqe, outcome.error),
        (None, Some((0x62, status::GENERAL_ERR)))
    );
    assert_eq!(
        setup.push(&good),
        Outcome {
            cqe: Some((status::WR_FLUSH_ERR, 2)),
            ..Outcome::default()
        }
    );
    setup.finish(500);
}

#[test]
fn a_burst_ends_even_if_nobody_takes_the_completions() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    for n in 0..200 {
        let mut p = setup.write_at(200 * n, 150, 10);
        p.complete = true;
        setup.push(&p);
    }
    // `ack`, `cq` and `error` are not ready for a long time.
    {
        let Setup {
            bench,
            regions,
            writer,
            place,
            slots,
            payload,
            ack,
            cq,
            error,
            ..
        } = &mut setup;
        for sink in [ack, cq, error] {
            sink.reset(bench.dut_mut());
        }
        bench
            .run(&mut [regions, writer, place, slots, payload], 2_000)
            .unwrap();
        assert_eq!(writer.pending(), None, "a burst holds the W channel");
        assert!(writer.ended >= 30, "{} bursts", writer.ended);
    }
    setup.finish(5_000);
}

#[test]
fn acknowledgements_follow_the_last_beat() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let mut acks = vec![];
    let ack = setup.bench.dut().output("ack_valid").unwrap();
    let mut ends = vec![];
    for n in 0..30 {
        let len = setup.bench.rng().usize(1..2000);
        let p = setup.write_at(2048 * n, len, 54);
        setup.push(&p);
        ends.push(setup.model.beats as usize - 1);
    }
    for _ in 0..2_000 {
        let now = setup.bench.cycle() + 1;
        setup.with(|bench, agents| bench.step(agents)).unwrap();
        if setup.bench.dut().is_set(ack) {
            acks.push(now);
        }
    }
    setup.finish(1);
    assert_eq!(acks.len(), ends.len());
    for (ack, end) in acks.iter().zip(ends) {
        assert!(
            *ack > setup.writer.beats[end],
            "an ACK in cycle {ack}, its last beat in {}",
            setup.writer.beats[end]
        );
    }
}

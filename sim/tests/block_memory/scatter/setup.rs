//! `scatter` between its neighbours; what comes out is what the model says.

use std::rc::Rc;

use ferroce_hdl::memory::scatter::Scatter;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::memory::Ranges;
use ferroce_sim::random::Pauses;

use super::super::common::{dump, words};
use super::agents::{Owners, Regions, Writer};
use super::model::{Model, Outcome, Placement, Token};

pub(super) const QUEUE_PAIRS: u16 = 16;
pub(super) const REGION: u64 = 1 << 16;

/// Regions that are there to be invalidated.
pub(super) const VICTIMS: u64 = 64;

/// Key of a region that is there to be invalidated.
pub(super) fn victim(i: u64) -> u32 {
    0x8000 + 0x100 * i as u32
}

/// Six regions of 64 KiB: protection domains 1 and 2, any mixture of rights, odd addresses. Behind them the victims.
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
    let victim = |i: u64| MrCtx {
        base: 0x7fff_0000_0000 + i,
        last: 0x7fff_0000_0000 + i,
        key: victim(i),
        pd: 1 + i as u32 % 2,
        valid: true,
        invalidate: true,
        ..MrCtx::default()
    };
    (0..6).map(region).chain((0..VICTIMS).map(victim)).collect()
}

/// The block, its neighbours and its model.
pub(super) struct Setup {
    pub(super) bench: Bench,
    pub(super) regions: Regions,
    pub(super) writer: Writer,
    pub(super) place: StreamSource,
    pub(super) slots: StreamSource,
    pub(super) numbers: StreamSource,
    pub(super) payload: StreamSource,
    pub(super) ack: StreamSink,
    pub(super) answer: StreamSink,
    pub(super) cq: StreamSink,
    pub(super) error: StreamSink,
    pub(super) owners: Owners,
    pub(super) model: Model,
    memory: Rc<Ranges>,
    pub(super) lanes: usize,
}

impl Setup {
    pub(super) fn new<const W: usize, const K: usize>(pauses: Pauses) -> Self {
        let bench = Bench::of(Scatter::<W, K, 4>::default).unwrap();
        let dut = bench.dut();
        let memory = Rc::new(Ranges::new());
        let model = Model::new(regions(), K);
        for (mr, contents) in model.regions.iter().zip(&model.contents).take(6) {
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
            numbers: StreamSource::new(dut, "numbers", pauses).unwrap(),
            payload: payload.unwrap(),
            ack: StreamSink::new(dut, "ack", pauses).unwrap(),
            answer: StreamSink::new(dut, "answer", pauses).unwrap(),
            cq: StreamSink::new(dut, "cq", pauses).unwrap(),
            error: StreamSink::new(dut, "error", pauses).unwrap(),
            owners: Owners::new(dut),
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

    pub(super) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R,
    ) -> R {
        let Self {
            regions,
            writer,
            place,
            slots,
            numbers,
            payload,
            ack,
            answer,
            cq,
            error,
            owners,
            ..
        } = self;
        act(
            &mut self.bench,
            &mut [
                regions, writer, place, slots, numbers, payload, ack, answer, cq, error, owners,
            ],
        )
    }

    /// Queues a placement with its payload and its WQE; what is to come of it, if anything is to be expected.
    pub(super) fn push(&mut self, p: &Placement) -> Outcome {
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
            ("key", p.inv.map_or(p.key, |_| p.inv_pd).into()),
            ("pd", p.pd.into()),
            ("offset", p.offset.into()),
            ("plen", p.data.len() as u64),
            ("lane", p.lane as u64),
            ("beats", beats as u64),
            ("reset", p.reset.into()),
            ("rsp_flush", p.rsp_flush.into()),
            ("last_wqe", p.last_wqe.into()),
            ("incarnation", p.incarnation.into()),
            ("end", p.end.into()),
            ("ack", p.ack.into()),
            ("unreliable", p.unreliable.into()),
            ("psn", p.psn.into()),
            ("msn", p.msn.into()),
            ("syndrome", p.syndrome.into()),
            ("complete", p.complete.into()),
            ("numbered", p.number.is_some().into()),
            ("status", p.status.into()),
            ("reply", p.reply.into()),
            ("runs", p.runs.into()),
            ("answer", p.answer.into()),
            ("implied", p.implied.into()),
            ("data", p.good.into()),
            ("closed", p.closed.into()),
        ];
        // Fields that pass through unchanged.
        let rng = self.bench.rng();
        let mut through = [
            ("cqn", "cqn", u64::from(rng.u16(..))),
            ("cqe_opcode", "opcode", u64::from(rng.u8(..))),
            ("wqe_index", "wqe_index", u64::from(rng.u16(..))),
            ("byte_len", "byte_len", u64::from(rng.u32(..))),
            ("imm", "imm", u64::from(p.inv.unwrap_or(rng.u32(..)))),
            ("with_imm", "with_imm", u64::from(rng.bool())),
            ("with_inv", "with_inv", u64::from(p.inv.is_some())),
            ("src_qpn", "src_qpn", u64::from(rng.u32(..1 << 24))),
            ("pkey", "pkey", u64::from(rng.u16(..))),
            ("grh", "grh", u64::from(rng.bool())),
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
        if let Some(number) = p.number {
            through[2].2 = number.into();
            let item = self.numbers.item();
            self.numbers.push(item.with("payload", number.into()));
        }
        if p.kind >= 2 {
            for (n, slot) in p.wqe.bytes().chunks(64).enumerate() {
                let item = self
                    .slots
                    .item()
                    .with("last", u64::from(n + 1 == p.wqe.slots))
                    .with("slots", p.wqe.slots as u64);
                let mut item = item.with("error", u64::from(p.wqe.unreadable == Some(n)));
                item.set_words("slot", &words(slot));
                self.slots.push(item);
            }
        }
        let before = self.model.bursts;
        let outcome = self.model.place(p);
        let qpn = u64::from(p.qpn);
        if self.model.bursts != before {
            let owner = qpn
                | u64::from(p.kind == 3) << 16
                | u64::from(p.incarnation) << 17
                | u64::from(p.unreliable) << 19
                | (self.model.bursts & 0xffff) << 20;
            self.owners.expected.push_back(owner);
        }
        if let Some(token) = outcome.ack {
            let item = self.ack.item().with("qpn", qpn);
            let (psn, msn, syndrome) = match token {
                Token::Ack(psn, msn, syndrome) => (psn, msn, syndrome),
                Token::Reply(_) | Token::Reset | Token::RspFlush => (p.psn, p.msn, p.syndrome),
            };
            let item = item
                .with("psn", psn.into())
                .with("msn", msn.into())
                .with("syndrome", syndrome.into())
                .with("reply", matches!(token, Token::Reply(_)).into())
                .with("void", (token == Token::Reply(true)).into())
                .with("reset", (token == Token::Reset).into())
                .with("rsp_flush", (token == Token::RspFlush).into())
                .with("completes", outcome.judged.into())
                .with("unanswered", (outcome.judged && !p.ack).into())
                .with("incarnation", p.incarnation.into());
            self.ack
                .expect(item.with("fence", self.model.bursts & 0xffff));
        }
        if let Some((data, status, fence)) = outcome.answer {
            let fields = [
                ("qpn", qpn),
                ("psn", p.psn.into()),
                ("syndrome", p.syndrome.into()),
                ("data", data.into()),
                ("implied", p.implied.into()),
                ("missing", p.msn.into()),
                ("status", status.into()),
                ("closed", p.closed.into()),
                ("fence", fence.into()),
            ];
            let item = fields
                .iter()
                .fold(self.answer.item(), |item, &(f, value)| item.with(f, value));
            self.answer.expect(item);
        }
        if let Some((status, fence)) = outcome.cqe {
            let atomics = self.model.atomics[&p.qpn].0;
            let item = self
                .cq
                .item()
                .with("qpn", qpn)
                .with("status", status.into());
            let item = item
                .with("fence", fence.into())
                .with("fenced", 1)
                .with("recv", 1)
                .with("marker", outcome.marker.into())
                .with("judged", outcome.judged.into())
                .with("after_atomics", outcome.after_atomics.is_some().into())
                .with("atomics", atomics.into())
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
            let item = item.with("spared", outcome.spared.into());
            self.error
                .expect(item.with("incarnation", p.incarnation.into()));
        }
        outcome
    }

    /// Runs to the end and compares memory.
    pub(super) fn finish(&mut self, limit: u64) {
        self.with(|bench, agents| {
            bench.finish(agents, limit).unwrap();
            bench.run(agents, 30).unwrap();
            bench.finish(agents, 1).unwrap();
        });
        assert_eq!(self.writer.ended, self.model.bursts, "bursts");
        assert_eq!(self.writer.beats.len() as u64, self.model.beats, "beats");
        for (mr, contents) in self.model.regions.iter().zip(&self.model.contents).take(6) {
            assert!(
                dump(&self.memory, mr.base, contents.len()) == *contents,
                "region {:#x}",
                mr.base
            );
        }
    }

    /// A placement of kind 1 in region 0.
    pub(super) fn write_at(&mut self, offset: u64, len: usize, lane: usize) -> Placement {
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
}

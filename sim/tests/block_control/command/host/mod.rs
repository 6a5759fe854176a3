//! Everything around the command block: host memory behind `dma_read` and `dma_write`, requester, responder, completion
//! queues, drain. What the block does to them is noted in order.

mod observe;

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::QpState;
use ferroce_sim::bench::Agent;
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::verilator::{Dut, Input, Output};

/// An event for the requester or the responder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) qpn: u64,
    pub(crate) psn: u64,
    pub(crate) state: u64,
    pub(crate) set: bool,
    pub(crate) reset: bool,
    /// Of the responder: the image was written.
    pub(crate) image: bool,
}

/// An action of the command block, or an answer to it. Images are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Sq(u64, Vec<u8>),
    Av(u64, Vec<u8>),
    Rq(u64, Vec<u8>),
    Mr(u64, Vec<u8>),
    Gid(u64, Vec<u8>),
    Cq {
        cqn: u64,
        open: bool,
        /// To be resized, with this count of entries taken.
        resize: Option<u64>,
        image: Vec<u8>,
    },
    Eq {
        eqn: u64,
        open: bool,
        image: Vec<u8>,
    },
    Ah(u64, Vec<u8>),
    Srq(u64, Vec<u8>),
    /// Event on a shared receive queue, for the responder.
    SrqEvent {
        srqn: u64,
        set: bool,
        image: bool,
        limit: u64,
    },
    SqEvent(Event),
    RqEvent(Event),
    /// All events of the command are answered.
    Answered,
    DrainStart,
    DrainDone,
    /// A completion is in host memory, from this address on.
    Completion(u64),
    Done {
        failed: bool,
    },
}

/// Dynamic state that the stand-ins of requester and responder answer with.
pub(crate) fn qp_state(qpn: u64) -> QpState {
    let mix = (qpn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    QpState {
        sq_state: (mix & 7) as u8,
        rq_state: (mix >> 3 & 7) as u8,
        sq_psn: (mix >> 6 & 0xff_ffff) as u32,
        una_psn: (mix >> 12 & 0xff_ffff) as u32,
        rsv0: 0,
        rq_psn: (mix >> 18 & 0xff_ffff) as u32,
        msn: (mix >> 24 & 0xff_ffff) as u32,
        rq_index: (mix >> 30) as u16,
    }
}

struct Ports {
    read: [Output; 3],
    read_ready: Input,
    beat: [Input; 4],
    write: [Output; 3],
    write_ready: Input,
    beats: [Output; 4],
    beats_ready: Input,
    enables: [Output; 7],
    images: [Output; 5],
    srq_srqn: Output,
    image_qpn: Output,
    mr_index: Output,
    gid: [Output; 4],
    cq: [Output; 5],
    cq_refused: Input,
    cq_switched: Input,
    cq_image: [Output; 4],
    cq_ready: Input,
    eq: [Output; 3],
    eq_image: [Output; 5],
    eq_ready: Input,
    sq_event: [Output; 8],
    sq_event_ready: Input,
    rq_event: [Output; 10],
    rq_event_ready: Input,
    sq_query: [Input; 2],
    rq_query: [Input; 2],
    drain_start: Output,
    drain_done: Input,
    done: Output,
    failed: Output,
}

impl Ports {
    fn new(dut: &Dut) -> Self {
        let input = |name: &str| dut.input(name).expect("an input");
        let output = |name: &str| dut.output(name).expect("an output");
        let stream = |name: &str, fields: &[&str]| -> Vec<Output> {
            let payload = fields.iter().map(|f| format!("{name}_payload.{f}"));
            let names = payload.chain([format!("{name}_valid")]);
            names.map(|name| output(&name)).collect()
        };
        let event = [
            "kind", "qpn", "psn", "state", "set", "reset", "image", "srqn", "index",
        ];
        Self {
            read: stream("read", &["addr", "len"]).try_into().unwrap(),
            read_ready: input("read_ready"),
            beat: ["data", "last", "error", "valid"].map(|f| input(&format!("beat_{f}"))),
            write: stream("write", &["addr", "len"]).try_into().unwrap(),
            write_ready: input("write_ready"),
            beats: ["data", "strb", "last", "valid"].map(|f| output(&format!("beats_{f}"))),
            beats_ready: input("beats_ready"),
            enables: ["sq", "av", "rq", "mr", "gid", "ah", "srq"]
                .map(|f| output(&format!("{f}_we"))),
            images: ["sq", "av", "rq", "mr", "srq"].map(|f| output(&format!("{f}_image"))),
            srq_srqn: output("srq_srqn"),
            image_qpn: output("image_qpn"),
            mr_index: output("mr_index"),
            gid: ["index", "gid", "valid", "ipv6"].map(|f| output(&format!("gid.{f}"))),
            cq: stream("cq", &["cqn", "open", "resize", "taken"])
                .try_into()
                .unwrap(),
            cq_refused: input("cq_refused"),
            cq_switched: input("cq_switched"),
            cq_image: ["base", "consumer", "log_size", "eqn"]
                .map(|f| output(&format!("cq_payload.image.{f}"))),
            cq_ready: input("cq_ready"),
            eq: stream("eq", &["eqn", "open"]).try_into().unwrap(),
            eq_image: ["base", "consumer", "log_size", "vector", "moderation"]
                .map(|f| output(&format!("eq_payload.image.{f}"))),
            eq_ready: input("eq_ready"),
            sq_event: stream("sq_event", &event[..7]).try_into().unwrap(),
            sq_event_ready: input("sq_event_ready"),
            rq_event: stream("rq_event", &event).try_into().unwrap(),
            rq_event_ready: input("rq_event_ready"),
            sq_query: [input("sq_query"), input("sq_query_valid")],
            rq_query: [input("rq_query"), input("rq_query_valid")],
            drain_start: output("drain_start"),
            drain_done: input("drain_done"),
            done: output("done"),
            failed: output("failed"),
        }
    }
}

/// Everything around the command block.
pub(crate) struct Host {
    ports: Ports,
    memory: Rc<Ranges>,
    lanes: u64,
    /// Chance that something is not ready or not yet due in a cycle, in 1/256.
    pub(crate) hesitation: u8,
    /// What happened.
    pub(crate) effects: Vec<Effect>,
    ready: [bool; 5],
    /// Beats to come: address, last.
    reads: VecDeque<(u64, bool)>,
    /// The burst under way: next address and the completion's address.
    burst: Option<(u64, u64)>,
    /// Events not answered: of the requester, of the responder.
    open: [Option<u64>; 2],
    telling: [bool; 2],
    /// Answers given to the command under way, and how many there will be.
    answers: u8,
    due: u8,
    /// What resizes are answered: the first entry of the new ring, or that they are refused.
    pub(crate) resizes: VecDeque<Option<u64>>,
    draining: bool,
    ending: bool,
    /// Nothing moves.
    pub(crate) stalled: bool,
}

impl Host {
    pub(crate) fn new(dut: &Dut, memory: Rc<Ranges>, lanes: usize, hesitation: u8) -> Self {
        Self {
            ports: Ports::new(dut),
            memory,
            lanes: lanes as u64,
            hesitation,
            effects: vec![],
            ready: [false; 5],
            reads: VecDeque::new(),
            burst: None,
            open: [None; 2],
            telling: [false; 2],
            answers: 0,
            due: 2,
            resizes: VecDeque::new(),
            draining: false,
            ending: false,
            stalled: false,
        }
    }

    /// Commands answered.
    pub(crate) fn done(&self) -> usize {
        let done = |e: &&Effect| matches!(e, Effect::Done { .. });
        self.effects.iter().filter(done).count()
    }
}

impl Agent for Host {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let (p, hesitation, stalled) = (&self.ports, self.hesitation, self.stalled);
        let mut willing = || !stalled && rng.u8(..) >= hesitation;
        self.ready = std::array::from_fn(|_| willing());
        dut.set(p.read_ready, self.ready[0].into());
        dut.set(p.beats_ready, self.ready[1].into());
        dut.set(
            p.write_ready,
            (self.ready[1] && self.burst.is_none()).into(),
        );
        dut.set(p.cq_ready, self.ready[2].into());
        dut.set(p.eq_ready, self.ready[2].into());
        dut.set(p.sq_event_ready, self.ready[3].into());
        dut.set(p.rq_event_ready, self.ready[4].into());

        self.telling = self.open.map(|open| open.is_some() && willing());
        self.ending = self.draining && willing();
        let due = if willing() {
            self.reads.pop_front()
        } else {
            None
        };
        for (i, [query, valid]) in [p.sq_query, p.rq_query].into_iter().enumerate() {
            // what belongs to the other block is noise
            let own = self.open[i].map_or_else(QpState::default, qp_state);
            let noise: [u8; 16] = std::array::from_fn(|_| rng.u8(..));
            let noise = QpState::parse(&noise);
            let mixed = if i == 0 {
                QpState {
                    sq_state: own.sq_state,
                    sq_psn: own.sq_psn,
                    una_psn: own.una_psn,
                    ..noise
                }
            } else {
                QpState {
                    sq_state: noise.sq_state,
                    sq_psn: noise.sq_psn,
                    una_psn: noise.una_psn,
                    rsv0: noise.rsv0,
                    ..own
                }
            };
            let words: Vec<u32> = mixed
                .emit()
                .chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes")))
                .collect();
            dut.write(query, &words);
            dut.set(valid, self.telling[i].into());
        }
        dut.set(p.drain_done, self.ending.into());
        let resized = self.resizes.front().copied();
        let switched = resized.flatten();
        dut.set(
            p.cq_refused,
            resized.map_or(rng.bool(), |ring| ring.is_none()).into(),
        );
        dut.set(p.cq_switched, switched.unwrap_or(rng.u64(..1 << 24)));
        let mut data = vec![0; self.lanes as usize];
        data.fill_with(|| rng.u8(..));
        let error = due.is_some_and(|(addr, _)| self.memory.read(addr, &mut data).is_err());
        let words: Vec<u32> = data
            .chunks(4)
            .map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes")))
            .collect();
        dut.write(p.beat[0], &words);
        dut.set(p.beat[1], due.map_or(rng.bool(), |(_, last)| last).into());
        dut.set(p.beat[2], due.map_or(rng.bool(), |_| error).into());
        dut.set(p.beat[3], due.is_some().into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        self.observe_all(dut)
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.reads.clear();
        self.burst = None;
        self.open = [None; 2];
        self.telling = [false; 2];
        self.answers = 0;
        self.resizes.clear();
        self.draining = false;
        self.ending = false;
        self.effects.clear();
        let p = &self.ports;
        for input in [
            p.beat[3],
            p.sq_query[1],
            p.rq_query[1],
            p.drain_done,
            p.read_ready,
        ] {
            dut.set(input, 0);
        }
    }
}

//! WQEs that send nothing: handed over as a change of a key, and reported when that is done.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_proto::abi::cq::{opcode as cqe, status};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::bench::{Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::Dut;

use super::setup::{Plan, Setup};
use super::work::{Work, ctx, sge};

/// Both ends of what executes them.
pub(crate) struct Executes {
    pub(super) key: StreamSink,
    pub(super) done: StreamSource,
    /// Requests due.
    due: VecDeque<Item>,
    /// Events due.
    events: VecDeque<[u64; 7]>,
    ended: usize,
}

/// Bits of an item from `at` on.
const FIELDS: [&str; 6] = [
    "qpn",
    "slots",
    "cqe_opcode",
    "signaled",
    "incarnation",
    "refused",
];

impl Executes {
    pub(super) fn new(dut: &Dut, pauses: Pauses) -> Self {
        Self {
            key: StreamSink::new(dut, "key", pauses).unwrap(),
            done: StreamSource::new(dut, "key_done", pauses).unwrap(),
            due: VecDeque::new(),
            events: VecDeque::new(),
            ended: 0,
        }
    }

    /// This WQE is to be executed.
    pub(super) fn expect(&mut self, work: &Work, incarnation: u64) {
        let operands = work.operands.expect("the bytes of a bind");
        let item = self
            .key
            .item()
            .with("change.binds", u64::from(work.cqe_opcode() == cqe::BIND_MW))
            .with("change.key", work.head.imm.into())
            .with("change.pd", ctx(work.qpn).pd.into())
            .with("change.qpn", work.qpn.into())
            .with("change.lkey", operands.swap_add & 0xffff_ffff)
            .with("change.addr", 0xeeee_eeee_eeee_eeee)
            .with("change.length", operands.compare)
            .with("change.remote_write", operands.swap_add >> 32 & 1)
            .with("change.remote_read", operands.swap_add >> 33 & 1)
            .with("change.remote_atomic", operands.swap_add >> 34 & 1)
            .with("done.qpn", work.qpn.into())
            .with("done.slots", work.head.slots.into())
            .with("done.cqe_opcode", work.cqe_opcode().into())
            .with("done.signaled", work.head.signaled.into())
            .with("done.refused", 0)
            .with("done.incarnation", incarnation);
        self.due.push_back(item);
    }

    /// Takes requests, and says that they are done, or refused.
    pub(super) fn step(&mut self, rng: &mut Rng) {
        while let Some((_, item)) = self.key.pop() {
            assert_eq!(Some(&item), self.due.pop_front().as_ref());
            let mut done = self.done.item();
            for field in FIELDS {
                done = done.with(field, item.get(&format!("done.{field}")));
            }
            let refused = rng.bool();
            self.done.push(done.with("refused", refused.into()));
            let of = |field: &str| item.get(&format!("done.{field}"));
            let status = if refused { status::MW_BIND_ERR } else { 0 };
            self.events.push_back([
                of("qpn"),
                of("slots"),
                of("cqe_opcode"),
                of("signaled"),
                of("incarnation"),
                status.into(),
                0,
            ]);
        }
    }

    /// The event tells of one.
    pub(super) fn ends(&mut self, event: &Item) -> bool {
        let fields = [
            "qpn",
            "slots",
            "cqe_opcode",
            "signaled",
            "generation",
            "status",
            "packets",
        ];
        let is_end = event.get("kind") == SqEventKind::Executed as u64;
        if is_end {
            assert_eq!(Some(fields.map(|f| event.get(f))), self.events.pop_front());
            assert_eq!(event.get("answered"), 0);
            self.ended += 1;
        }
        is_end
    }

    pub(super) fn finish(&self) {
        assert!(self.due.is_empty() && self.events.is_empty());
    }
}

fn executes(pauses: Pauses) {
    let mut setup = Setup::new(pauses);
    let mut count = 0;
    for _ in 0..40 {
        for qpn in 0..15 {
            let kind = ctx(qpn).qp_type;
            let op = [opcode::BIND_MW, opcode::LOCAL_INV][usize::from(setup.rng().bool())];
            let work = Work::new(qpn, op, &[]);
            if kind != qp_type::UD {
                setup.post(work, Plan::Execute);
                count += 1;
            }
            let send = Work::new(qpn, opcode::SEND, &[sge(0x5003, 70)]);
            let plan = Plan::Send {
                from: 0,
                to: send.packets(),
                again: 0,
            };
            setup.post(send, plan);
            setup.run_until_few_wait(20);
        }
    }
    setup.finish();
    assert_eq!(setup.executes.ended, count);
}

#[test]
fn what_sends_nothing_is_executed() {
    executes(Pauses::NONE);
    executes(Pauses::new(0.3, 12));
}

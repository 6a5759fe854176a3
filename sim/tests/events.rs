//! Events and interrupts through a whole card: the same on the golden model and on the engine.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::status as wc;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::{EqCtx, Eqe, event};
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs::{self, feature};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Host, Pair, QpOptions, Rights, Side, Work};
use ferroce_sim::verilator;

/// Log2 of the entries of the event queues.
const LOG_SIZE: u8 = 3;
/// Event queue that the completion queues name.
const EQN: u32 = 0;

/// An event queue of a host, and what was taken from it.
struct Events {
    ctx: EqCtx,
    taken: u32,
}

impl Events {
    fn new(host: &mut Host, vector: u16) -> Self {
        let (base, consumer) = (host.alloc(Eqe::BYTES << LOG_SIZE), host.alloc(4));
        let ctx = EqCtx {
            base,
            consumer,
            log_size: LOG_SIZE,
            vector,
            moderation: 0,
        };
        host.expect(opcode::CREATE_EQ, EQN, &ctx.emit());
        Self { ctx, taken: 0 }
    }

    /// The events that are there: kind, detail, object. Each came with an interrupt.
    fn take(&mut self, host: &mut Host) -> Vec<(u8, u8, u32)> {
        let mut found = vec![];
        loop {
            let slot = u64::from(self.taken % (1 << LOG_SIZE)) * Eqe::BYTES as u64;
            let bytes = host.read(self.ctx.base + slot, Eqe::BYTES);
            let eqe = Eqe::parse(bytes.first_chunk().unwrap());
            if eqe.owner != (self.taken >> LOG_SIZE & 1 == 0) {
                break;
            }
            found.push((eqe.event, eqe.detail, eqe.object));
            self.taken += 1;
        }
        host.write(self.ctx.consumer, &self.taken.to_le_bytes());
        let mut interrupts = 0;
        while let Some(vector) = host.nic.interrupt() {
            assert_eq!(vector, self.ctx.vector);
            interrupts += 1;
        }
        assert!(interrupts <= found.len(), "{interrupts} for {found:?}");
        assert_eq!(interrupts > 0, !found.is_empty(), "{found:?}");
        found
    }
}

fn quiet(pair: &mut Pair) {
    pair.settle();
    pair.run(3_000);
}

fn send(pair: &mut Pair, (qa, qb): (u32, u32)) {
    pair.b.post_recv(qb, &[]);
    pair.a.post_send(qa, &Work::send(&[]));
    pair.wait(Side::A, 0);
    quiet(pair);
}

fn arm(pair: &mut Pair, order: u32, index: u32) {
    pair.a.nic.write32(doorbell::cq(0), order | index);
    quiet(pair);
}

fn armed_queues_report(mut pair: Pair) {
    let mut events = Events::new(&mut pair.a, 5);
    let qps = pair.connect(QpOptions::default(), QpOptions::default());
    let completion = vec![(event::COMPLETION, 0, 0)];
    send(&mut pair, qps);
    assert_eq!(events.take(&mut pair.a), [], "not armed");
    arm(&mut pair, doorbell::ARM_ANY, 1);
    assert_eq!(events.take(&mut pair.a), [], "nothing new");
    send(&mut pair, qps);
    assert_eq!(events.take(&mut pair.a), completion);
    send(&mut pair, qps);
    assert_eq!(events.take(&mut pair.a), [], "armed for one");
    arm(&mut pair, doorbell::ARM_ANY, 2);
    assert_eq!(events.take(&mut pair.a), completion, "it was there");
    arm(&mut pair, doorbell::ARM_SOLICITED, 3);
    send(&mut pair, qps);
    assert_eq!(events.take(&mut pair.a), [], "not solicited");
    // the ring wraps
    for index in 4..4 + (3 << LOG_SIZE) {
        arm(&mut pair, doorbell::ARM_ANY, index);
        send(&mut pair, qps);
        assert_eq!(events.take(&mut pair.a), completion, "{index}");
    }
    // a destroyed queue takes no events
    arm(&mut pair, doorbell::ARM_ANY, 4 + (3 << LOG_SIZE));
    pair.a.expect(opcode::DESTROY_EQ, EQN, &[0; 64]);
    send(&mut pair, qps);
    assert_eq!(events.take(&mut pair.a), []);
    pair.assert_no_faults();
}

fn queue_pairs_report(mut pair: Pair) {
    let (mut of_a, mut of_b) = (Events::new(&mut pair.a, 1), Events::new(&mut pair.b, 2));
    // numbers that are no completion queue's
    for _ in 0..3 {
        pair.connect(QpOptions::default(), QpOptions::default());
    }
    let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
    send(&mut pair, (qa, qb));
    pair.a.modify_state(qa, state::SQD);
    quiet(&mut pair);
    assert_eq!(of_a.take(&mut pair.a), [(event::SQ_DRAINED, 0, qa)]);
    pair.a.modify_state(qa, state::RTS);
    quiet(&mut pair);
    assert_eq!(of_a.take(&mut pair.a), []);

    // one event on either side
    let local = pair.a.create_mr(&[1; 64], Rights::ALL);
    let remote = pair.b.create_mr(&[0; 64], Rights::NONE);
    let list = [ferroce_proto::abi::wqe::Sge {
        addr: local.addr,
        lkey: local.key,
        length: 64,
    }];
    pair.a.post_send(qa, &Work::write(&list, &remote, 0));
    assert_eq!(pair.wait(Side::A, 0).status, wc::REM_ACCESS_ERR);
    quiet(&mut pair);
    assert_eq!(
        of_a.take(&mut pair.a),
        [(event::QP_FATAL, wc::REM_ACCESS_ERR, qa)]
    );
    let [(kind, _, object)] = of_b.take(&mut pair.b)[..] else {
        panic!("the responder's side has one event");
    };
    assert_eq!((kind, object), (event::QP_ACCESS_ERR, qb));
    // a command that says so is no news
    let (qc, _) = pair.connect(QpOptions::default(), QpOptions::default());
    pair.a.modify_state(qc, state::ERR);
    quiet(&mut pair);
    assert_eq!(of_a.take(&mut pair.a), []);

    // a completion queue that overflows, and its queue pair
    let small = pair.a.create_cq(1);
    let options = QpOptions {
        send_cq: small,
        ..QpOptions::default()
    };
    let (qd, qe) = pair.connect(options, QpOptions::default());
    for _ in 0..3 {
        pair.b.post_recv(qe, &[]);
        pair.a.post_send(qd, &Work::send(&[]));
        quiet(&mut pair);
    }
    let mut found = of_a.take(&mut pair.a);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (event::CQ_ERROR, 0, small.into()),
            (event::QP_FATAL, wc::GENERAL_ERR, qd),
        ]
    );
    pair.assert_no_faults();
}

fn model() -> Pair {
    Pair::new(|memory| Box::new(Model::new(DEFAULT_PARAMS, memory)))
}

/// Two engines of the standard build, on a bus that reorders.
fn engine(width: usize) -> Pair {
    let model = build::model(width, &verilator::Options::default()).expect("the engine builds");
    let mut pair = Pair::new(|memory| {
        let engine = build::engine(&model, memory, &Options::host(1));
        Box::new(engine.expect("there is memory for an engine"))
    });
    let features = pair.a.read32(regs::FEATURES);
    assert!(features & feature::EVENTS != 0, "the build has events");
    pair
}

#[test]
fn armed_queues_report_on_the_model() {
    armed_queues_report(model());
}

#[test]
fn queue_pairs_report_on_the_model() {
    queue_pairs_report(model());
}

#[test]
fn armed_queues_report_on_the_engine() {
    armed_queues_report(engine(64));
}

#[test]
fn queue_pairs_report_on_the_engine() {
    queue_pairs_report(engine(64));
}

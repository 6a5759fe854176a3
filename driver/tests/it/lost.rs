//! A card that is gone: its registers read as all ones and nothing comes from it any more.

use std::time::Duration;

use ferroce_driver::{
    Access, AsyncEvent, Backend, COMMAND_LIMIT_NS, Classes, CommandError, Context, CqError,
    EventAttr, MrError, Notify, OpenError, OwnedQueues, Qp, RecvWr, SendOp, SendWr, Wc, WcOpcode,
    WcStatus, eventfd,
};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::eq::event;

use crate::fake::{ALL, Answer, Fake};
use crate::setup::{Connected, LOCAL_MAC, REMOTE, open, peer, sges};

/// Longest time in ns of the card from its end to that of a wait.
const NOTICED_NS: u64 = 25_000_000;
/// Polls of an empty queue in which it is noticed.
const POLLS: u32 = 1 << 17;
const FOR_EVER: Duration = Duration::MAX;

/// Runs `what` within the time in which the end of the card is noticed.
fn soon<T>(fake: &Fake, what: impl FnOnce() -> T) -> T {
    let start = fake.state().now_ns;
    let answer = what();
    let taken = fake.state().now_ns - start;
    assert!(taken <= NOTICED_NS, "it took {taken} ns");
    answer
}

fn sends(n: u64) -> Vec<SendWr<'static>> {
    let write = |wr_id| SendWr::inline(SendOp::Write(REMOTE), b"x").wr_id(wr_id);
    (0..n).map(write).collect()
}

/// What is left of a completion that no card wrote.
fn summary(wcs: &[Wc]) -> Vec<(u64, WcOpcode, u32)> {
    assert!(wcs.iter().all(|wc| wc.status == WcStatus::FatalErr));
    let part = |wc: &Wc| (wc.wr_id, wc.opcode, wc.qp_num);
    wcs.iter().map(part).collect()
}

#[test]
fn a_command_under_way_ends() {
    let (fake, context) = open(ALL);
    fake.state()
        .answers
        .insert(opcode::SET_PORT, Answer::Vanish);
    let e = soon(&fake, || context.set_mac(LOCAL_MAC).unwrap_err());
    let lost = CommandError::Lost {
        operation: "set port",
        index: 0,
    };
    assert_eq!(e, lost);
    let words = e.to_string();
    for part in [
        "cannot set port 0: the card is gone",
        "all ones",
        "open it anew",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert!(context.is_lost() && context.status().absent);
    // Every later one ends at once.
    let now = fake.state().now_ns;
    let e = context.create_cq(8).map(drop).unwrap_err();
    assert!(matches!(e, CqError::Command(CommandError::Lost { .. })));
    let e = context.alloc_pd().alloc_mr(8, Access::empty()).err();
    assert!(matches!(
        e,
        Some(MrError::Command(CommandError::Lost { .. }))
    ));
    assert_eq!(fake.state().now_ns, now);
    assert!(
        fake.state().mapped.is_empty(),
        "nothing new is in its reach"
    );
}

#[test]
fn a_card_without_answers_is_not_taken_for_lost() {
    let (fake, context) = open(ALL);
    fake.state().answers.insert(opcode::SET_PORT, Answer::Never);
    let e = context.set_mac(LOCAL_MAC).unwrap_err();
    assert!(matches!(
        e,
        CommandError::Timeout {
            limit_ns: COMMAND_LIMIT_NS,
            ..
        }
    ));
    assert!(!context.is_lost() && !fake.state().mapped.is_empty());
}

/// A class may be paused as long as its watchdog lets it, and a command waits for what stands in it.
#[test]
fn a_command_may_take_as_long_as_a_pause() {
    let (fake, context) = open(ALL);
    let classes = Classes {
        watchdog_ms: 1000,
        ..Classes::default()
    };
    context.set_classes(&classes).unwrap();
    fake.state().answers.insert(opcode::SET_PORT, Answer::Never);
    let e = context.set_mac(LOCAL_MAC).unwrap_err();
    let CommandError::Timeout { limit_ns, .. } = e else {
        panic!("{e}");
    };
    assert_eq!(limit_ns, 1_150_000_000);
}

#[test]
fn what_was_posted_completes_in_error() {
    let Connected {
        fake,
        context,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 8, |b| b);
    let n = qp.qpn();
    qp.post_send(&sends(3)).unwrap();
    qp.post_recv(&[RecvWr::new(10, &[]), RecvWr::new(11, &sges(2))])
        .unwrap();
    // What came before comes first.
    assert!(fake.complete_send(n, 0, 0));
    fake.state().gone = true;
    let mut wcs = [Wc::default(); 3];
    assert_eq!(cq.wait(&mut wcs, FOR_EVER), 1);
    assert_eq!((wcs[0].wr_id, wcs[0].status), (0, WcStatus::Success));
    assert_eq!(soon(&fake, || cq.wait(&mut wcs, FOR_EVER)), 3);
    let (send, recv) = (WcOpcode::Send, WcOpcode::Recv);
    assert_eq!(summary(&wcs), [(1, send, n), (2, send, n), (10, recv, n)]);
    let words = wcs[0].ok().unwrap_err().to_string();
    assert!(
        words.contains("fatal error") && words.contains("the card is gone"),
        "{words}"
    );
    assert!(fake.state().mapped.is_empty(), "it reaches nothing of that");
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(summary(&wcs[..1]), [(11, recv, n)]);
    // Nothing is left, and nothing will come.
    let now = fake.state().now_ns;
    assert_eq!(cq.wait(&mut wcs, FOR_EVER), 0);
    assert_eq!(fake.state().now_ns, now);
    assert_eq!((qp.send_slots_free(), qp.recv_free()), (64, 64));
    assert_eq!(cq.unknown_cqes(), 0);

    // What is posted from now on ends in the same way.
    qp.post_send(&sends(1)).unwrap();
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(summary(&wcs[..1]), [(0, send, n)]);
    drop((qp, cq, context));
}

#[test]
fn each_completion_queue_has_its_own() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let [mut sent, mut received] = [8, 8].map(|n| context.create_cq(n).unwrap());
    let build = || {
        let builder = Qp::builder(&pd).send_cq(&sent).recv_cq(&received);
        let mut qp = builder.build().unwrap();
        qp.connect(&peer()).unwrap();
        qp
    };
    let mut qps = [build(), build()];
    for qp in &mut qps {
        qp.post_send(&sends(1)).unwrap();
        qp.post_recv(&[RecvWr::new(5, &[])]).unwrap();
    }
    let [a, b] = [0, 1].map(|i: usize| qps[i].qpn());
    fake.state().gone = true;
    assert!(context.is_lost());
    let mut wcs = [Wc::default(); 4];
    assert_eq!(received.poll(&mut wcs), 2);
    let recv = WcOpcode::Recv;
    assert_eq!(summary(&wcs[..2]), [(5, recv, a), (5, recv, b)]);
    let [_, gone] = qps;
    drop(gone);
    assert_eq!(sent.poll(&mut wcs), 1, "none of a queue pair that is gone");
    assert_eq!(summary(&wcs[..1]), [(0, WcOpcode::Send, a)]);
}

#[test]
fn a_program_that_only_polls_gets_the_error() {
    polls_until_lost(|fake| fake.state().gone = true);
}

#[test]
fn a_completion_that_could_not_be_written_ends_the_wait() {
    polls_until_lost(|fake| fake.state().ring_error = true);
}

fn polls_until_lost(lose: impl FnOnce(&Fake)) {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 8, |b| b);
    qp.post_send(&sends(1)).unwrap();
    let mut wcs = [Wc::default(); 2];
    for _ in 0..2 * POLLS {
        assert_eq!(cq.poll(&mut wcs), 0, "the card lives");
    }
    lose(&fake);
    let found = (0..POLLS).find_map(|_| match cq.poll(&mut wcs) {
        0 => None,
        found => Some(found),
    });
    assert_eq!(found, Some(1));
    assert_eq!(summary(&wcs[..1]).len(), 1);
}

#[test]
fn buffers_come_back() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut queues = OwnedQueues::new(context.create_cq(16).unwrap());
    let mut qp = Qp::builder(&pd).cq(queues.cq()).build().unwrap();
    qp.connect(&peer()).unwrap();
    let qpn = queues.add(qp).unwrap();
    let buf = pd.alloc_buf(100).unwrap();
    queues.send(qpn, SendOp::Send, buf, .., 77).unwrap();
    fake.state().gone = true;
    let mut done = soon(&fake, || queues.wait(FOR_EVER)).unwrap();
    assert_eq!((done.wc.wr_id, done.wc.status), (77, WcStatus::FatalErr));
    assert!(fake.state().mapped.is_empty(), "it is ours alone");
    done.buf.fill(1);
    assert!(queues.wait(FOR_EVER).is_none());
}

#[test]
fn each_queue_is_reported_though_a_full_ring_was_too() {
    let (fake, context) = open(ALL);
    let attr = EventAttr {
        entries: 2,
        ..EventAttr::default()
    };
    let mut channel = context.create_comp_channel(&attr).unwrap();
    let cqs = [(); 3].map(|()| context.create_cq_on(8, &channel).unwrap());
    let all = cqs.each_ref().map(|cq| cq.cqn());
    for _ in 0..2 {
        assert!(fake.put_event(1, event::COMPLETION, 0, all[0]));
    }
    let taken = [(); 4].map(|()| channel.try_event());
    assert_eq!(taken, [all[0], all[0], all[0], all[1]].map(Some));
    // In the middle of that the card is lost.
    fake.state().gone = true;
    assert!(context.is_lost());
    let taken: Vec<_> = std::iter::from_fn(|| channel.try_event()).collect();
    assert_eq!(taken, all);
    assert_eq!(channel.try_event(), None);
}

#[test]
fn events_report() {
    let (fake, context) = open(ALL);
    let attr = EventAttr::default();
    let mut events = context.async_events(&attr).unwrap();
    let mut channel = context.create_comp_channel(&attr).unwrap();
    let mut cqs = [8, 8, 8].map(|n| context.create_cq_on(n, &channel).unwrap());
    cqs[0].req_notify(Notify::Any).unwrap();
    fake.state().gone = true;
    // The driver has not noticed yet, and makes no event up.
    assert_eq!((events.try_event(), channel.try_event()), (None, None));
    let event = soon(&fake, || events.get_event(FOR_EVER));
    assert_eq!(event, Some(AsyncEvent::DeviceFatal));
    assert!(eventfd::wait(&channel, 0), "who waits there is woken too");
    let now = fake.state().now_ns;
    for cq in &cqs {
        assert_eq!(channel.get_event(FOR_EVER), Some(cq.cqn()));
    }
    // Once.
    assert_eq!(channel.get_event(FOR_EVER), None);
    assert_eq!(events.get_event(FOR_EVER), None);
    assert_eq!(fake.state().now_ns, now);
    assert!(!eventfd::wait(&channel, 0) && !eventfd::wait(&events, 0));
    // No event would follow.
    let e = cqs[0].req_notify(Notify::Any).unwrap_err();
    assert!(
        matches!(e, CqError::Command(CommandError::Lost { .. })),
        "{e}"
    );
}

#[test]
fn a_channel_notices_by_itself() {
    let (fake, context) = open(ALL);
    let mut channel = context.create_comp_channel(&EventAttr::default()).unwrap();
    let cq = context.create_cq_on(8, &channel).unwrap();
    fake.state().gone = true;
    let summary = soon(&fake, || channel.get_event(FOR_EVER));
    assert_eq!(summary, Some(cq.cqn()));
}

#[test]
fn closing_does_not_wait() {
    let (fake, context) = open(ALL);
    let attr = EventAttr::default();
    let pd = context.alloc_pd();
    let events = context.async_events(&attr).unwrap();
    let channel = context.create_comp_channel(&attr).unwrap();
    let cq = context.create_cq_on(8, &channel).unwrap();
    let raw = context.create_exception_queue(4, false).unwrap();
    let srq = pd.create_srq(8, 1).unwrap();
    let qps = [0; 3].map(|_| {
        let mut qp = Qp::builder(&pd).cq(&cq).srq(&srq).build().unwrap();
        qp.connect(&peer()).unwrap();
        qp
    });
    let region = pd.alloc_mr(5000, Access::empty()).unwrap();
    let commands = fake.state().commands.len();
    fake.state().gone = true;
    let everything = (events, channel, cq, raw, srq, qps, region, pd, context);
    soon(&fake, || drop(everything));
    assert_eq!(fake.state().commands.len(), commands);
    assert!(fake.state().mapped.is_empty());
    let e = Context::open(fake.clone()).map(drop).unwrap_err();
    assert!(matches!(e, OpenError::Absent), "{e}");
    fake.state().gone = false;
    Context::open(fake).unwrap();
}

#[test]
fn one_that_comes_back_is_opened_anew() {
    let (fake, context) = open(ALL);
    fake.state().gone = true;
    assert!(context.is_lost());
    fake.state().gone = false;
    assert!(context.is_lost(), "it forgot what it was told");
    assert!(context.set_mac(LOCAL_MAC).is_err());
    drop(context);
    let context = Context::open(fake).unwrap();
    context.set_mac(LOCAL_MAC).unwrap();
    assert!(!context.is_lost());
}

#[test]
fn one_that_dies_while_it_is_opened_is_absent() {
    let fake = Fake::new(ALL);
    fake.state().answers.insert(opcode::NOP, Answer::Vanish);
    let e = soon(&fake, || Context::open(fake.clone()).map(drop).unwrap_err());
    assert!(
        matches!(e, OpenError::Command(CommandError::Lost { .. })),
        "{e}"
    );
    assert!(fake.state().mapped.is_empty());
}

#[test]
fn memory_that_cannot_be_taken_from_it_is_not_given_back() {
    let Connected {
        fake,
        context,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 8, |b| b);
    qp.post_send(&sends(1)).unwrap();
    fake.state().gone = true;
    fake.state().refuse_unmap = true;
    assert!(!context.is_lost() && context.status().absent);
    let mut wcs = [Wc::default()];
    assert_eq!(
        cq.wait(&mut wcs, Duration::from_millis(50)),
        0,
        "it might still write"
    );
    fake.state().refuse_unmap = false;
    assert_eq!(soon(&fake, || cq.wait(&mut wcs, FOR_EVER)), 1);
    assert_eq!(summary(&wcs).len(), 1);
}

#[test]
fn a_backend_may_know_better() {
    let (fake, _) = open(ALL);
    assert!(!fake.is_lost());
    fake.state().gone = true;
    assert!(fake.is_lost() && ferroce_driver::Backend::is_lost(&&fake));
}

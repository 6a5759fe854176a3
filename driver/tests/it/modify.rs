//! States of queue pairs and the images that go with them.

use ferroce_driver::{
    Access, ChangeAttr, Features, InitAttr, ModifyError, PostCause, Qp, QpAttr, QpState, RecvWr,
    RtrAttr, RtsAttr, SendOp, SendWr, Wc,
};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::state;

use crate::fake::{ALL, Answer, Fake};
use crate::setup::{Connected, open, path, peer};

pub(crate) fn steps() -> [QpAttr; 5] {
    [
        QpAttr::Reset,
        QpAttr::Init(InitAttr::default()),
        QpAttr::Rtr(RtrAttr::new(path(), 5, 6)),
        QpAttr::Rts(RtsAttr::new(7)),
        QpAttr::Err,
    ]
}

/// Brings a queue pair from RESET to the state of `steps()[to]`.
pub(crate) fn bring(qp: &mut Qp<Fake>, to: usize) {
    let way = match to {
        4 => &steps()[4..],
        to => &steps()[1..=to],
    };
    for attr in way {
        qp.modify(attr).unwrap();
    }
}

#[test]
fn legal_transitions_and_no_others() {
    let legal = [
        "RESET RESET",
        "RESET INIT",
        "RESET ERR",
        "INIT RESET",
        "INIT INIT",
        "INIT RTR",
        "INIT ERR",
        "RTR RESET",
        "RTR RTS",
        "RTR ERR",
        "RTS RESET",
        "RTS ERR",
        "ERR RESET",
        "ERR ERR",
    ];
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    for from in 0..5 {
        for attr in steps() {
            let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
            bring(&mut qp, from);
            let state = qp.state();
            let commands = fake.modifies();
            let name = format!("{state} {}", attr.state());
            match qp.modify(&attr) {
                Ok(()) => {
                    assert!(legal.contains(&name.as_str()), "{name}");
                    assert_eq!(qp.state(), attr.state());
                }
                Err(e) => {
                    assert!(!legal.contains(&name.as_str()), "{name}: {e}");
                    assert!(
                        e.to_string()
                            .contains(&format!("cannot go from {state} to {}", attr.state())),
                        "{e}"
                    );
                    assert_eq!((qp.state(), fake.modifies()), (state, commands));
                }
            }
        }
    }
}

#[test]
fn the_responder_changes_while_it_runs() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    let change = ChangeAttr {
        access: Some(Access::REMOTE_READ),
        min_rnr_timer: Some(20),
        ..ChangeAttr::default()
    };
    for to in [0, 1, 4] {
        qp.modify(&QpAttr::Reset).unwrap();
        bring(&mut qp, to);
        let e = qp.change(&change).unwrap_err();
        assert!(matches!(e, ModifyError::Change { .. }), "{e}");
    }
    qp.modify(&QpAttr::Reset).unwrap();
    bring(&mut qp, 3);
    let before = fake.state().qps[&qp.qpn()].rq;
    assert!(before.remote_write && before.min_rnr_timer != 20);
    qp.change(&change).unwrap();
    let mut expected = before;
    (expected.remote_write, expected.remote_atomic) = (false, false);
    expected.min_rnr_timer = 20;
    assert_eq!(fake.state().qps[&qp.qpn()].rq, expected);
    let wrong = ChangeAttr {
        min_rnr_timer: Some(32),
        ..ChangeAttr::default()
    };
    let e = qp.change(&wrong).unwrap_err();
    assert!(matches!(e, ModifyError::Range { .. }), "{e}");
    assert_eq!(fake.state().qps[&qp.qpn()].rq, expected);
    assert_eq!(qp.state(), QpState::Rts);
}

#[test]
fn a_rate_limit_lasts_until_reset() {
    let limit = |rate| ChangeAttr {
        rate_limit: Some(rate),
        ..ChangeAttr::default()
    };
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    let limit_of = |qp: &Qp<_>| fake.state().qps[&qp.qpn()].sq.rate_limit;
    // of responses it counts in RTR already
    bring(&mut qp, 2);
    qp.change(&limit(1000)).unwrap();
    assert_eq!(limit_of(&qp), 1000);
    qp.modify(&steps()[3]).unwrap();
    assert_eq!(limit_of(&qp), 1000);
    let before = fake.state().qps[&qp.qpn()].sq;
    qp.change(&limit(0)).unwrap();
    let mut expected = before;
    expected.rate_limit = 0;
    assert_eq!(fake.state().qps[&qp.qpn()].sq, expected);
    let e = qp.change(&limit(1 << 20)).unwrap_err();
    assert_eq!(
        e.to_string(),
        "rate_limit of queue pair 2 is 1048576, possible is 0 to 1048575"
    );
    qp.change(&limit(7)).unwrap();
    qp.modify(&QpAttr::Reset).unwrap();
    bring(&mut qp, 3);
    assert_eq!(limit_of(&qp), 0);

    let (_, context) = open(ALL - Features::RATES);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    bring(&mut qp, 3);
    let e = qp.change(&limit(1)).unwrap_err();
    assert!(e.to_string().ends_with("is 1, possible is 0 to 0"), "{e}");
}

#[test]
fn a_window_lasts_until_reset() {
    let window = |psns| ChangeAttr {
        window: Some(psns),
        ..ChangeAttr::default()
    };
    let (fake, context) = open(ALL | Features::SEND_WINDOW);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    let window_of = |qp: &Qp<_>| fake.state().qps[&qp.qpn()].sq.window;
    bring(&mut qp, 2);
    qp.change(&window(16)).unwrap();
    qp.modify(&steps()[3]).unwrap();
    assert_eq!(window_of(&qp), 16);
    qp.change(&window(0xffff)).unwrap();
    assert_eq!(window_of(&qp), 0xffff);
    qp.modify(&QpAttr::Reset).unwrap();
    bring(&mut qp, 3);
    assert_eq!(window_of(&qp), 0);

    let (_, context) = open(ALL - Features::SEND_WINDOW);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    bring(&mut qp, 3);
    let e = qp.change(&window(1)).unwrap_err();
    assert!(e.to_string().ends_with("is 1, possible is 0 to 0"), "{e}");
}

#[test]
fn an_illegal_transition_names_the_legal_ones() {
    let (_, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    assert_eq!(
        qp.modify(&steps()[3]).unwrap_err().to_string(),
        "queue pair 2 cannot go from RESET to RTS: from RESET it goes to INIT, ERR, RESET"
    );
}

#[test]
fn a_refused_transition_leaves_the_state() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    fake.state()
        .answers
        .insert(opcode::MODIFY_QP, Answer::Status(3));
    let e = qp.modify(&steps()[1]).unwrap_err();
    assert!(
        e.to_string()
            .starts_with("the card refused to bring to INIT QP 2"),
        "{e}"
    );
    assert_eq!(qp.state(), QpState::Reset);
}

#[test]
fn requests_are_posted_in_the_right_states() {
    let (_, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    // RESET, INIT, RTR, RTS, ERR: may be sent, may be received.
    for (to, sends, receives) in [
        (0, false, false),
        (1, false, true),
        (2, false, true),
        (3, true, true),
        (4, true, true),
    ] {
        let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
        bring(&mut qp, to);
        let sent = qp.post_send(&[SendWr::new(SendOp::Send, &[])]);
        let received = qp.post_recv(&[RecvWr::new(0, &[])]);
        assert_eq!(
            (sent.is_ok(), received.is_ok()),
            (sends, receives),
            "{}",
            qp.state()
        );
        if let Err(e) = sent {
            assert_eq!(
                e.cause,
                PostCause::State {
                    state: qp.state(),
                    needed: QpState::Rts
                }
            );
        }
    }
}

#[test]
fn reset_forgets_what_was_posted() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 8, |b| b.max_send_wr(4).max_recv_wr(4));
    let send = SendWr::new(SendOp::Send, &[]).signaled();
    qp.post_send(&[send.wr_id(1); 4]).unwrap();
    qp.post_recv(&[RecvWr::new(2, &[]); 4]).unwrap();
    assert_eq!((qp.send_slots_free(), qp.recv_free()), (0, 0));
    assert!(fake.complete_send(qp.qpn(), 0, 0) && fake.complete_recv(qp.qpn(), 0, 0));
    fake.take_doorbells();
    qp.modify(&QpAttr::Reset).unwrap();
    assert_eq!((qp.send_slots_free(), qp.recv_free()), (4, 4));
    // The card starts from index 0 again, and so do its producer indices.
    assert_eq!(
        fake.take_doorbells(),
        [(doorbell::sq(qp.qpn()), 0), (doorbell::rq(qp.qpn()), 0)]
    );
    qp.connect(&peer()).unwrap();
    qp.post_send(&[send.wr_id(3)]).unwrap();
    assert_eq!(fake.take_doorbells(), [(doorbell::sq(qp.qpn()), 1)]);
    assert!(fake.complete_send(qp.qpn(), 0, 0));
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(wcs[0].wr_id, 3);
}

/// The card goes to SQE and ERR by itself, and is asked.
#[test]
fn states_of_the_card_count() {
    let Connected { fake, mut qp, .. } = Connected::new(ALL, 8, |b| b.uc());
    let number = qp.qpn();
    let set = |sq, rq| {
        let mut card = fake.state();
        let qp = card.qps.get_mut(&number).unwrap();
        (qp.sq_state, qp.rq_state) = (sq, rq);
    };
    let get = || {
        let qp = fake.state().qps[&number];
        (qp.sq_state, qp.rq_state)
    };
    let refused = |e: ModifyError, from| match e {
        ModifyError::Transition { from: found, .. } => assert_eq!(found, from),
        e => panic!("{e}"),
    };
    set(state::SQE, state::RTS);
    refused(qp.modify(&QpAttr::Sqd).unwrap_err(), QpState::Sqe);
    assert_eq!(qp.state(), QpState::Sqe);
    qp.post_send(&[SendWr::new(SendOp::Send, &[])]).unwrap();
    let rts = QpAttr::Rts(RtsAttr::new(7));
    let e = qp.modify(&rts).unwrap_err();
    assert!(matches!(e, ModifyError::Resume { .. }), "{e}");
    qp.modify(&QpAttr::Resume).unwrap();
    assert_eq!(
        (qp.state(), get()),
        (QpState::Rts, (state::RTS, state::RTS))
    );
    qp.modify(&QpAttr::Sqd).unwrap();
    assert_eq!(get(), (state::SQD, state::RTS));
    for attr in [QpAttr::Resume, QpAttr::Sqd] {
        set(state::ERR, state::ERR);
        refused(qp.modify(&attr).unwrap_err(), QpState::Err);
        assert_eq!(
            (qp.state(), get()),
            (QpState::Err, (state::ERR, state::ERR))
        );
    }
    qp.modify(&QpAttr::Reset).unwrap();
    qp.modify(&QpAttr::Init(InitAttr::default())).unwrap();
}

/// The card fails when it was asked and the command is on its way.
#[test]
fn a_failure_beside_a_command_counts() {
    for (sq, rq, state) in [
        (state::SQE, state::RTS, QpState::Sqe),
        (state::ERR, state::RTS, QpState::Err),
        (state::RTS, state::ERR, QpState::Err),
    ] {
        let Connected { fake, mut qp, .. } = Connected::new(ALL, 8, |b| b.uc());
        fake.state().fails = Some((sq, rq));
        let e = qp.modify(&QpAttr::Sqd).unwrap_err();
        assert!(
            matches!(e, ModifyError::Transition { from, .. } if from == state),
            "{e}"
        );
        assert_eq!(qp.state(), state);
    }
}

/// What flushes is what the card knows of the queues: without it those of the last life of the number are asked.
#[test]
fn a_queue_pair_in_error_has_its_images() {
    for to in 0..4 {
        let (fake, context) = open(ALL);
        let (pd, old) = (context.alloc_pd(), context.create_cq(8).unwrap());
        let mut before = Qp::builder(&pd).cq(&old).build().unwrap();
        bring(&mut before, 3);
        let images = |qpn| {
            let qp = fake.state().qps[&qpn];
            (
                (qp.sq.sq_base, qp.sq.cqn, qp.sq.sq_log),
                (qp.rq.rq_base, qp.rq.cqn, qp.rq.rq_log),
            )
        };
        let first = images(before.qpn());
        let (other, cq) = (before.qpn(), context.create_cq(8).unwrap());
        // The ring of the old life stays where it is, so that the new one is elsewhere.
        let build = || Qp::builder(&pd).cq(&cq).outstanding(1).max_send_wr(16);
        let mut qp = build().build().unwrap();
        assert_ne!(qp.qpn(), other);
        bring(&mut qp, to);
        qp.modify(&QpAttr::Err).unwrap();
        let (sq, rq) = images(qp.qpn());
        assert_eq!((sq.2, rq.1), (4, sq.1), "{to}");
        assert!(sq.0 != first.0.0 && sq.0 != 0 && rq.0 != 0 && sq.1 != first.0.1);
        qp.post_send(&[SendWr::new(SendOp::Send, &[])]).unwrap();
    }
}

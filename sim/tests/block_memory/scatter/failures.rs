//! Placements that fail: what is poisoned, what is answered, and what goes on.

use ferroce_proto::abi::cq::status;
use ferroce_sim::random::Pauses;

use super::model::{Outcome, Placement, Token};
use super::setup::{REGION, Setup};
use super::{answer, receive};

#[test]
fn a_failure_poisons_until_a_reset() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let nak = |code: u8| Some((0x60 | code, status::LOC_LEN_ERR));
    // Too long for its buffer, in the middle of a message: the NAK now, its CQE with the next completion.
    let p = receive(&mut setup, 100, 101, false);
    let failed = setup.push(&p);
    assert_eq!(
        (failed.ack, failed.cqe, failed.error),
        (Some(Token::Ack(p.psn, 7, 0x61)), None, nak(1))
    );
    let good = receive(&mut setup, 100, 100, true);
    let void = |status| Outcome {
        cqe: Some((status, 0)),
        ..Outcome::default()
    };
    assert_eq!(setup.push(&good), void(status::LOC_LEN_ERR));
    assert_eq!(setup.push(&good), void(status::WR_FLUSH_ERR));
    // Its responder is halted nevertheless, which changes nothing here.
    let rsp_flush = Placement {
        qpn: 1,
        rsp_flush: true,
        ..Placement::default()
    };
    assert_eq!(setup.push(&rsp_flush).ack, Some(Token::RspFlush));
    assert_eq!(setup.push(&good), void(status::WR_FLUSH_ERR));
    // Another queue pair is not concerned, and a reset ends it.
    assert_eq!(
        setup
            .push(&Placement {
                qpn: 2,
                ..good.clone()
            })
            .ack,
        Some(Token::Ack(good.psn, 7, 0))
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
    assert_eq!(outcome.ack, Some(Token::Ack(denied.psn, 6, 0x63)));
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
    let outside = setup.write_at(REGION - 10, 11, 0);
    let outcome = setup.push(&outside);
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
fn a_failure_of_an_unreliable_queue_pair_is_not_answered() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let short = Placement {
        unreliable: true,
        ack: false,
        ..receive(&mut setup, 100, 101, true)
    };
    let outcome = setup.push(&short);
    assert_eq!(
        (outcome.ack, outcome.cqe),
        (None, Some((status::LOC_LEN_ERR, 0)))
    );
    assert_eq!(outcome.error, Some((0x61, status::LOC_LEN_ERR)));
    setup.finish(500);
}

#[test]
fn a_message_longer_than_its_buffer_is_dropped_alone() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let part = |setup: &mut Setup, offset, len, complete| Placement {
        unreliable: true,
        ack: false,
        offset,
        ..receive(setup, 100, len, complete)
    };
    let dropped = Outcome {
        spared: true,
        ..Outcome::default()
    };
    let first = part(&mut setup, 0, 64, false);
    let outside = part(&mut setup, 64, 64, false);
    let middle = part(&mut setup, 90, 5, false);
    let last = part(&mut setup, 95, 5, true);
    assert_eq!(setup.push(&first), Outcome::default());
    let outcome = setup.push(&outside);
    assert_eq!(outcome.error, Some((0x61, status::LOC_LEN_ERR)));
    assert_eq!((outcome.cqe, outcome.spared), (None, true));
    // What of the rest would fit is dropped too, in silence; the receive WQE completes at the end.
    assert_eq!(setup.push(&middle), dropped);
    let ended = setup.push(&last);
    assert_eq!((ended.error, ended.spared), (None, true));
    assert!(matches!(ended.cqe, Some((status::LOC_LEN_ERR, _))));
    // The next message is received, also behind one whose end was lost.
    for whole in [&first, &outside, &first] {
        setup.push(whole);
    }
    let outcome = setup.push(&last);
    assert!(matches!(outcome.cqe, Some((0, _))), "{outcome:?}");
    setup.finish(500);
}

#[test]
fn a_write_of_an_unreliable_queue_pair_fails_alone() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let packet = |setup: &mut Setup, at, offset| Placement {
        unreliable: true,
        ack: false,
        offset,
        ..setup.write_at(at, 64, 7)
    };
    let first = packet(&mut setup, 0, 0);
    let middle = packet(&mut setup, 64, 64);
    let outside = packet(&mut setup, REGION, 128);
    let last = Placement {
        end: true,
        ..packet(&mut setup, 192, 192)
    };
    let dropped = Outcome {
        spared: true,
        ..Outcome::default()
    };
    for p in [&first, &middle] {
        assert_eq!(setup.push(p), Outcome::default());
    }
    let outcome = setup.push(&outside);
    assert_eq!(outcome.error, Some((0x62, status::GENERAL_ERR)));
    assert_eq!((outcome.ack, outcome.spared), (None, true));
    // The rest of the message is dropped in silence, that of another queue pair is not.
    assert_eq!(setup.push(&last), dropped);
    assert_eq!(
        setup.push(&Placement {
            qpn: 2,
            ..last.clone()
        }),
        Outcome::default()
    );
    // The next message is written, and what the queue pair receives by a WQE.
    for p in [&first, &last] {
        assert_eq!(setup.push(p), Outcome::default());
    }
    let send = Placement {
        unreliable: true,
        ack: false,
        ..receive(&mut setup, 100, 100, true)
    };
    assert!(matches!(setup.push(&send).cqe, Some((0, _))));
    // A first packet that fails; discarded beats in between change nothing.
    let denied = Placement {
        key: first.key ^ 1,
        ..first.clone()
    };
    assert!(setup.push(&denied).error.is_some());
    let stray = Placement {
        kind: 0,
        ..first.clone()
    };
    assert_eq!(setup.push(&stray), Outcome::default());
    assert_eq!(setup.push(&middle), dropped);
    // The last packet has taken a receive WQE: it completes, in error, and the queue pair goes on.
    let last = Placement {
        complete: true,
        ..last
    };
    let ended = setup.push(&last);
    assert_eq!((ended.error, ended.spared), (None, true));
    assert!(matches!(ended.cqe, Some((status::LOC_ACCESS_ERR, _))));
    assert!(matches!(setup.push(&send).cqe, Some((0, _))));
    // It fails alone, too.
    assert_eq!(setup.push(&first), Outcome::default());
    let gone = Placement {
        key: last.key ^ 1,
        ..last.clone()
    };
    let ended = setup.push(&gone);
    assert_eq!(ended.error, Some((0x62, status::GENERAL_ERR)));
    assert!(matches!(ended.cqe, Some((status::LOC_ACCESS_ERR, _))));
    assert!(matches!(setup.push(&send).cqe, Some((0, _))));
    setup.finish(500);
}

/// Whatever of it the packet needs.
#[test]
fn a_list_longer_than_its_slots_is_reported_with_its_first_entry() {
    for (slots, num_sge) in [(1, 4), (2, 8), (4, 16), (8, 17), (1, 17), (8, 255)] {
        let mut setup = Setup::new::<512, 64>(Pauses::NONE);
        let mut p = receive(&mut setup, 100, 100, true);
        (p.wqe.slots, p.wqe.num_sge) = (slots, num_sge);
        let failed = setup.push(&p);
        assert_eq!(failed.error, Some((0x63, status::LOC_QP_OP_ERR)), "{p:?}");
        setup.finish(500);
    }
}

#[test]
fn a_response_that_cannot_be_written_fails_the_requester_alone() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let good = answer(&mut setup, &[(0, 100)], 0, 100);
    let mut denied = good.clone();
    denied.wqe.list[0].lkey ^= 1;
    let mut unreadable = good.clone();
    unreadable.wqe.unreadable = Some(0);
    let short = answer(&mut setup, &[(0, 99)], 0, 100);
    let reset = Placement {
        qpn: 1,
        reset: true,
        ..Placement::default()
    };
    let closed = Placement {
        qpn: 1,
        answer: true,
        closed: true,
        ..Placement::default()
    };
    let request = receive(&mut setup, 100, 100, true);
    let reply = Placement {
        qpn: 1,
        reply: true,
        ..Placement::default()
    };
    for (bad, status) in [
        (&denied, status::LOC_PROT_ERR),
        (&unreadable, status::LOC_QP_OP_ERR),
        (&short, status::LOC_QP_OP_ERR),
    ] {
        assert_eq!(
            setup.push(&reply).ack,
            Some(Token::Reply(false)),
            "the turn of a reply"
        );
        let outcome = setup.push(bad);
        assert!(
            matches!(outcome.answer, Some((false, s, _)) if s == status),
            "{outcome:?}"
        );
        assert_eq!((outcome.ack, outcome.error), (None, None));
        // Poisoned: no answer but that all is over, no acknowledgement, void replies, flushed receive WQEs.
        assert_eq!(setup.push(&good), Outcome::default());
        assert!(matches!(setup.push(&closed).answer, Some((false, 0, _))));
        assert_eq!(setup.push(&reply).ack, Some(Token::Reply(true)));
        let outcome = setup.push(&request);
        assert!(matches!(outcome.cqe, Some((status::WR_FLUSH_ERR, _))));
        assert_eq!((outcome.ack, outcome.error), (None, None));
        assert_eq!(setup.push(&reset).ack, Some(Token::Reset));
        assert!(matches!(setup.push(&good).answer, Some((true, 0, _))));
    }
    setup.finish(1_000);
}

#[test]
fn a_failed_request_silences_the_answers() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let outside = setup.write_at(REGION - 10, 11, 0);
    setup.push(&outside);
    let good = answer(&mut setup, &[(0, 100)], 0, 100);
    assert_eq!(setup.push(&good), Outcome::default());
    setup.finish(500);
}

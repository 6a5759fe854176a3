//! `scatter`: payload where it belongs or nowhere, acknowledged and completed by the rules, at full rate.

mod agents;
mod model;
mod setup;

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::Sge;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Pauses;

use super::common::uneven;
use model::{Outcome, Placement, Token, Wqe};
use setup::{REGION, Setup, victim};

fn random<const W: usize, const K: usize>(pauses: Pauses, placements: usize) {
    let mut setup = Setup::new::<W, K>(pauses);
    let mut seen = [0; 4];
    for _ in 0..placements {
        let p = setup.random();
        let outcome = setup.push(&p);
        let found = [
            outcome.ack.is_some(),
            outcome.cqe.is_some(),
            outcome.error.is_some(),
            outcome.answer.is_some(),
        ];
        seen.iter_mut()
            .zip(found)
            .for_each(|(count, found)| *count += usize::from(found));
    }
    setup.finish(1_000_000);
    assert!(
        seen.iter().all(|&n| n * 200 > placements),
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
    assert_eq!(seen, (6, 7, 9));
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
    // The last packet has taken a receive WQE: it completes, in error, and the queue pair ends.
    let last = Placement {
        complete: true,
        ..last
    };
    let ended = setup.push(&last);
    assert_eq!(ended.error, Some((0x62, status::GENERAL_ERR)));
    assert!(matches!(ended.cqe, Some((status::WR_FLUSH_ERR, _))));
    assert!(matches!(
        setup.push(&send).cqe,
        Some((status::WR_FLUSH_ERR, _))
    ));
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
fn a_burst_ends_even_if_no_completion_is_taken() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    for n in 0..200 {
        let mut p = setup.write_at(200 * n, 150, 10);
        p.complete = true;
        setup.push(&p);
    }
    // `ack`, `answer`, `cq` and `error` are not ready for a long time.
    {
        let Setup {
            bench,
            regions,
            writer,
            place,
            slots,
            payload,
            ack,
            answer,
            cq,
            error,
            ..
        } = &mut setup;
        for sink in [ack, answer, cq, error] {
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

/// A placement of kind 3 of `len` bytes at `offset`, by the entries of a send WQE in region 0.
fn answer(setup: &mut Setup, entries: &[(u64, u32)], offset: u32, len: usize) -> Placement {
    let p = setup.write_at(0, len, 5);
    let list = entries.iter().map(|&(at, length)| Sge {
        addr: p.addr + at,
        length,
        lkey: p.key,
    });
    Placement {
        kind: 3,
        wqe: Wqe::send(list.collect()),
        offset,
        ack: false,
        answer: true,
        good: true,
        msn: 0x123,
        ..p
    }
}

#[test]
fn a_response_goes_where_its_send_wqe_says() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    // Entries of the first slot, of the second, and of a packet in the middle; a count of 0 without data.
    for (entries, offset, len) in [
        (&[(7, 100)][..], 0, 100),
        (&[(7, 30), (200, 70)], 0, 100),
        (&[(7, 30), (200, 70), (300, 50), (400, 9)], 90, 60),
        (&[(0, 256); 16], 256 * 14 + 3, 300),
        (&[], 0, 0),
    ] {
        let p = answer(&mut setup, entries, offset, len);
        let outcome = setup.push(&p);
        assert!(
            matches!(outcome.answer, Some((true, 0, _))),
            "{entries:?}: {outcome:?}"
        );
    }
    setup.finish(500);
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

#[test]
fn a_key_is_invalidated_once_by_its_protection_domain() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    let mut send = receive(&mut setup, 100, 100, true);
    let refused = |outcome: &Outcome| {
        matches!(outcome.ack, Some(Token::Ack(_, 6, 0x62)))
            && outcome.error == Some((0x62, status::GENERAL_ERR))
            && matches!(outcome.cqe, Some((status::WR_FLUSH_ERR, _)))
    };
    let reset = Placement {
        qpn: 1,
        reset: true,
        ..Placement::default()
    };
    // Domain 1 has the even victims; it need not be that of the list.
    assert_eq!(send.pd, 1);
    send.inv_pd = 1;
    send.inv = Some(victim(4));
    let outcome = setup.push(&send);
    assert!(matches!(outcome.cqe, Some((0, _))), "{outcome:?}");
    let again = setup.push(&send);
    assert!(refused(&again), "{again:?}");
    // Poisoned, and a failed placement: the key stays.
    send.inv = Some(victim(6));
    setup.push(&send);
    setup.push(&reset);
    let mut short = receive(&mut setup, 99, 100, true);
    (short.inv, short.inv_pd) = (Some(victim(6)), 1);
    assert!(matches!(
        setup.push(&short).cqe,
        Some((status::LOC_LEN_ERR, _))
    ));
    setup.push(&reset);
    let outcome = setup.push(&send);
    assert!(matches!(outcome.cqe, Some((0, _))), "{outcome:?}");
    send.inv = Some(victim(5));
    let foreign = setup.push(&send);
    assert!(refused(&foreign), "{foreign:?}");
    setup.push(&reset);
    send.inv_pd = 2;
    let outcome = setup.push(&send);
    assert!(matches!(outcome.cqe, Some((0, _))), "{outcome:?}");
    // A packet that does not complete its message invalidates nothing.
    let mut first = receive(&mut setup, 100, 100, false);
    first.inv = Some(victim(5));
    assert_eq!(setup.push(&first).error, None);
    setup.finish(1_000);
}

//! `scatter`: payload where it belongs or nowhere, acknowledged and completed by the rules, at full rate.

mod agents;
mod failures;
mod model;
mod random;
mod setup;
mod wqe;

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::Sge;
use ferroce_sim::bench::{Agent, StreamSource};
use ferroce_sim::random::Pauses;

use super::common::uneven;
use model::{Outcome, Placement, Token};
use setup::{Setup, victim};
use wqe::Wqe;

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

/// What ends a queue pair or its ring waits for placements: none may end while its WQE is still being read.
#[test]
fn a_placement_ends_with_the_last_slot_of_its_wqe() {
    let mut setup = Setup::new::<512, 64>(Pauses::NONE);
    setup.slots = StreamSource::new(setup.bench.dut(), "slots", Pauses::new(0.8, 40)).unwrap();
    for slots in [8, 1, 4, 2, 8] {
        let mut p = receive(&mut setup, 100, 100, true);
        p.wqe.slots = slots;
        setup.push(&p);
        let (before, placed) = (setup.slots.sent(), setup.place.sent());
        while setup.place.sent() == placed {
            setup.with(|bench, agents| bench.step(agents)).unwrap();
        }
        assert_eq!(setup.slots.sent() - before, slots as u64);
    }
    setup.finish(1_000);
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
            owners,
            ..
        } = &mut setup;
        for sink in [ack, answer, cq, error] {
            sink.reset(bench.dut_mut());
        }
        bench
            .run(&mut [regions, writer, place, slots, payload, owners], 2_000)
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

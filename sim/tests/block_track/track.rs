//! `track`: every rule of its page, and how fast it is.

use fastrand::Rng;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::random::Pauses;

use super::reference::{Issue, Outcome, PSN, QueuePair, Read, Response};
use super::rig::{Change, QPS, Rig};

pub(crate) const NAK_SEQUENCE: u8 = 0x60;
pub(crate) const RNR: u8 = 0x2a;
pub(crate) const ACK: u8 = 0x1f;

/// A READ of `length` bytes in the queue pair.
pub(crate) fn read(qp: &QueuePair, psn: u32, length: u32) -> Issue {
    Issue {
        psn: psn & PSN,
        packets: length.div_ceil(qp.mtu()).max(1),
        length,
        index: 5,
        slots: 1,
        ..Issue::default()
    }
}

/// The response that is due, if one is.
pub(crate) fn due(qp: &QueuePair, rng: &mut Rng) -> Option<Response> {
    let oldest = qp.under_way.front()?;
    let offset = qp.taken * qp.mtu();
    let plen = if oldest.atomic {
        8
    } else {
        (oldest.length - offset).min(qp.mtu())
    };
    let lane = rng.u8(..64);
    Some(Response {
        psn: qp.due()?,
        syndrome: [0, ACK][rng.usize(..2)],
        read: !oldest.atomic,
        atomic: oldest.atomic,
        last: qp.taken + 1 == oldest.packets,
        plen: plen as u16,
        lane,
        beats: (u32::from(lane) + plen).div_ceil(64) as u16 * u16::from(plen > 0),
    })
}

pub(crate) fn ack(psn: u32, syndrome: u8) -> Response {
    Response {
        psn: psn & PSN,
        syndrome,
        ..Response::default()
    }
}

/// A rig whose queue pair 3 has an MTU of 1024 and a ring of 16 slots.
pub(crate) fn rig() -> Rig {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let ctx = SqCtx {
        mtu: 3,
        sq_log: 4,
        pd: 0x1234,
        sq_base: 0x7000_0000,
        ..SqCtx::default()
    };
    rig.image(3, ctx);
    rig
}

/// Takes the next response that is due.
fn next(rig: &mut Rig) -> Outcome {
    let mut rng = rig.bench.rng().fork();
    let r = due(&rig.qps[3], &mut rng).expect("a READ is under way");
    let outcome = rig.respond(3, r);
    assert!(outcome.data.is_some());
    outcome
}

fn bad() -> Outcome {
    Outcome {
        answer: true,
        status: status::BAD_RESP_ERR,
        ..Outcome::default()
    }
}

fn passed() -> Outcome {
    Outcome {
        answer: true,
        ..Outcome::default()
    }
}

#[test]
fn data_goes_to_its_offset_by_its_wqe() {
    let mut rig = rig();
    // The PSN wraps, and so does the WQE.
    let mut issue = read(&rig.qps[3], PSN, 2500);
    (issue.index, issue.slots) = (0x7e, 5);
    rig.issue(3, issue);
    let atomic = Issue {
        psn: 2,
        packets: 1,
        atomic: true,
        length: 8,
        index: 0x83,
        slots: 1,
    };
    rig.issue(3, atomic);
    let empty = read(&rig.qps[3], 3, 0);
    rig.issue(3, empty);
    rig.settle();
    let wqe = Read {
        addr: 0x7000_0000 + 14 * 64,
        slots: 5,
        head: 2,
        base: 0x7000_0000,
    };
    for offset in [0, 1024, 2048] {
        let outcome = next(&mut rig);
        assert_eq!((outcome.data, outcome.read), (Some(offset), Some(wqe)));
    }
    let outcome = next(&mut rig);
    assert_eq!(
        outcome.read.map(|read| read.addr),
        Some(0x7000_0000 + 3 * 64)
    );
    let outcome = next(&mut rig);
    assert_eq!((outcome.data, outcome.read), (Some(0), None), "no bytes");
    rig.settle();
}

#[test]
fn data_of_another_form_is_a_bad_response() {
    let mut rig = rig();
    let issue = read(&rig.qps[3], 100, 1500);
    rig.issue(3, issue);
    rig.settle();
    let mut rng = rig.bench.rng().fork();
    for at in 0..2 {
        let good = due(&rig.qps[3], &mut rng).unwrap();
        for r in [
            Response {
                plen: good.plen - 1,
                ..good
            },
            Response {
                plen: good.plen + 1,
                ..good
            },
            Response {
                last: !good.last,
                ..good
            },
            Response {
                read: false,
                atomic: true,
                plen: 8,
                ..good
            },
        ] {
            let expected = Outcome {
                status: if r.read {
                    status::LOC_LEN_ERR
                } else {
                    status::BAD_RESP_ERR
                },
                ..bad()
            };
            assert_eq!(rig.respond(3, r), expected, "response {at}: {r:?}");
        }
        next(&mut rig);
    }
    let issue = Issue {
        psn: 102,
        packets: 1,
        atomic: true,
        length: 8,
        slots: 1,
        ..Issue::default()
    };
    rig.settle();
    rig.issue(3, issue);
    rig.settle();
    let r = Response {
        psn: 102,
        read: true,
        last: true,
        plen: 8,
        beats: 1,
        ..Response::default()
    };
    assert_eq!(rig.respond(3, r), bad(), "READ data for an atomic");
    next(&mut rig);
    assert_eq!(rig.respond(3, r), bad(), "nothing under way");
    rig.settle();
}

#[test]
fn what_shows_a_response_missing() {
    let mut rig = rig();
    let issue = read(&rig.qps[3], 100, 3000);
    rig.issue(3, issue);
    rig.settle();
    next(&mut rig);
    let implied = Outcome {
        implied: Some(101),
        ..passed()
    };
    let data = Response {
        psn: 102,
        read: true,
        last: true,
        plen: 952,
        beats: 15,
        ..Response::default()
    };
    let dropped = Outcome {
        is_data: true,
        ..implied
    };
    assert_eq!(rig.respond(3, data), dropped, "data beyond");
    assert_eq!(rig.respond(3, ack(102, ACK)), implied, "an ACK beyond");
    assert_eq!(
        rig.respond(3, ack(105, NAK_SEQUENCE)),
        implied,
        "a NAK beyond"
    );
    assert_eq!(rig.respond(3, ack(101, ACK)), implied, "an ACK of the READ");
    assert_eq!(rig.respond(3, ack(101 + (1 << 23) - 1, ACK)), implied);
    assert_eq!(rig.respond(3, ack(101, NAK_SEQUENCE)), passed(), "its NAK");
    assert_eq!(rig.respond(3, ack(101, RNR)), passed(), "its RNR NAK");
    assert_eq!(rig.respond(3, ack(100, ACK)), passed(), "before it");
    assert_eq!(rig.respond(3, ack(99, NAK_SEQUENCE)), passed());
    let old = Response {
        psn: 100,
        plen: 1024,
        last: false,
        ..data
    };
    assert_eq!(rig.respond(3, old), bad(), "data a second time");
    let nak = Response {
        psn: 101,
        syndrome: 0x63,
        ..data
    };
    assert_eq!(rig.respond(3, nak), passed(), "data with a NAK is a NAK");
    next(&mut rig);
    next(&mut rig);
    assert_eq!(rig.respond(3, ack(102, ACK)), passed(), "nothing under way");
    rig.settle();
}

#[test]
fn a_failed_send_queue_is_closed_until_a_reset() {
    let mut rig = rig();
    let issue = read(&rig.qps[3], 100, 3000);
    rig.issue(3, issue);
    rig.settle();
    next(&mut rig);
    rig.settle();
    rig.control(3, Change::Fails);
    rig.settle();
    let data = Response {
        psn: 101,
        read: true,
        plen: 1024,
        beats: 16,
        ..Response::default()
    };
    assert_eq!(rig.respond(3, data), Outcome::default());
    assert_eq!(rig.respond(3, ack(101, ACK)), Outcome::default());
    rig.settle();
    // What is issued meanwhile is forgotten.
    rig.issue(3, issue);
    rig.settle();
    rig.control(3, Change::Starts);
    rig.settle();
    assert_eq!(rig.respond(3, data), bad());
    rig.settle();
    rig.issue(3, issue);
    rig.settle();
    for _ in 0..3 {
        next(&mut rig);
    }
    // Reset with a READ under way.
    rig.settle();
    rig.issue(3, issue);
    rig.settle();
    rig.control(3, Change::Starts);
    rig.settle();
    assert_eq!(rig.respond(3, ack(100, ACK)), passed());
    rig.settle();
    // Reset without a start: a READ that was granted before is issued late, and its responses find nothing.
    rig.control(3, Change::Resets);
    rig.settle();
    rig.issue(3, issue);
    rig.settle();
    assert_eq!(rig.respond(3, data), Outcome::default());
    rig.settle();
    rig.control(3, Change::Starts);
    rig.settle();
    assert_eq!(rig.respond(3, data), bad());
    rig.settle();
}

/// Cycles a response, of `count`.
fn pace(rig: &mut Rig, count: usize) -> f64 {
    rig.cycles.clear();
    rig.settle();
    assert_eq!(rig.cycles.len(), count);
    (rig.cycles[count - 1] - rig.cycles[0]) as f64 / (count - 1) as f64
}

#[test]
fn how_fast() {
    let mut rig = rig();
    let mut rng = rig.bench.rng().fork();
    // ACKs of one queue pair
    for psn in 0..200 {
        rig.respond(3, ack(psn, ACK));
    }
    let acks = pace(&mut rig, 200);
    // one READ of many responses
    let issue = read(&rig.qps[3], 0, 200 * 1024);
    rig.issue(3, issue);
    rig.settle();
    for _ in 0..200 {
        next(&mut rig);
    }
    let long = pace(&mut rig, 200);
    // READs of one response
    for n in 0..16 {
        let issue = read(&rig.qps[3], n, 64);
        rig.issue(3, issue);
    }
    rig.settle();
    for _ in 0..16 {
        next(&mut rig);
    }
    let short = pace(&mut rig, 16);
    // READs of all queue pairs, round robin
    for qpn in 0..QPS {
        let length = rig.qps[qpn].mtu() * 20;
        let issue = read(&rig.qps[qpn], 50, length);
        rig.issue(qpn, issue);
    }
    rig.settle();
    for n in 0..20 * QPS {
        let r = due(&rig.qps[n % QPS], &mut rng).unwrap();
        rig.respond(n % QPS, r);
    }
    let many = pace(&mut rig, 20 * QPS);
    println!("cycles: ACK {acks:.2}, READ {long:.2}, short READs {short:.2}, all {many:.2}");
    assert!(acks <= 1.01 && many <= 1.01, "an event a cycle");
    assert!(long <= 4.01 && short <= 4.01, "4 cycles a response");
}

#[test]
fn latency() {
    let mut rig = rig();
    let start = rig.bench.cycle();
    rig.respond(3, ack(1, ACK));
    rig.settle();
    assert_eq!(rig.cycles[0] - start, 6);
}

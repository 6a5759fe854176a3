//! Send work queue entries that make no sense: a local error, and nothing is sent for them.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::{self, MAX_MSG, SendWqe};
use ferroce_proto::wire::{Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{Host, Mr, QpOptions, Rights, Side, Work};

use super::bench::{Bench, MTU, QUIET};
use super::{ATOMIC, LONG, RC, READ, UC, cases, check};

cases! {
    send_wqe_of_unknown_operation, RC, "abi wqe", "An operation that does not exist is a local operation error.";
    send_wqe_without_slots, RC, "abi wqe", "A WQE of no slots, or of more than there are, is a local operation error.";
    send_wqe_of_more_slots_than_posted, LONG, "abi wqe", "A WQE of more slots than the host has posted is a local operation error.";
    send_wqe_of_too_many_pieces, RC, "abi wqe", "A gather list longer than its slots hold is a local operation error.";
    send_wqe_of_another_length, RC, "abi wqe", "A length that is not the sum of the gather list is a local operation error.";
    send_wqe_longer_than_2_31, RC, "IB1 9.7.7", "A message of more than 2^31 bytes is a local length error.";
    send_wqe_inline_past_its_slots, RC, "abi wqe", "Inline payload beyond the slots of its WQE is a local operation error.";
    send_wqe_inline_read, READ, "abi wqe", "A READ cannot be inline: local operation error.";
    send_wqe_atomic_of_two_pieces, ATOMIC, "abi wqe", "An atomic has one buffer: local operation error.";
    send_payload_unread_waits, RC, "IB1 9.9.2", "A request whose payload cannot be read from memory fails with a general error, and only when those before it are acknowledged.";
    send_payload_unread_in_part, UC, "IB1 9.9.2", "So does one of several packets of which one cannot be read, of UC too; the request before it completes, the one behind is flushed.";
    send_payload_unread_and_no_answer, RC, "IB1 9.7.6.1.3", "A request in front of one whose payload cannot be read is sent again like any other, until its retries are over.";
    send_wqe_error_keeps_its_order, RC, "IB1 10.8", "The WQE before completes with success, the one behind is flushed.";
}

/// A SEND of 64 bytes whose head `spoil` changes must end with `expected`, unsignaled as it is.
fn spoilt(bench: &mut Bench, expected: u8, spoil: impl FnOnce(&mut SendWqe)) {
    let mut c = bench.connect(QpOptions::default());
    let local = c.a.create_mr(&[1; 64], Rights::ALL);
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    let mut slots = Work::send(&[local.all()]).unsignaled().slots();
    let mut head = SendWqe::parse(slots[0].first_chunk().expect("a slot has 64 bytes"));
    spoil(&mut head);
    slots[0][..SendWqe::BYTES].copy_from_slice(&head.emit());
    let qa = c.qa;
    let index = c.a.post_slots(qa, &slots);
    let cqe = c.ends(Side::A, index, expected);
    check("syndrome in the CQE", cqe.vendor_err, 0);
    c.settle();
    check("packets sent", c.packets(Side::A).len(), 1);
    check("state", c.query(Side::A).sq_state, state::ERR);
}

const OP: u8 = status::LOC_QP_OP_ERR;
const LEN: u8 = status::LOC_LEN_ERR;

fn send_wqe_of_unknown_operation(bench: &mut Bench) {
    for opcode in [10, 11, 0x80, 0xff] {
        spoilt(bench, OP, |head| head.opcode = opcode);
    }
}

fn send_wqe_without_slots(bench: &mut Bench) {
    for slots in [0, 6, 255] {
        spoilt(bench, OP, |head| head.slots = slots);
    }
}

fn send_wqe_of_more_slots_than_posted(bench: &mut Bench) {
    for slots in [2, 5] {
        spoilt(bench, OP, |head| head.slots = slots);
    }
}

fn send_wqe_of_too_many_pieces(bench: &mut Bench) {
    for num_sge in [3, 17, 255] {
        spoilt(bench, OP, |head| head.num_sge = num_sge);
    }
}

fn send_wqe_of_another_length(bench: &mut Bench) {
    for length in [0, 63, 65, MAX_MSG] {
        spoilt(bench, OP, |head| head.length = length);
    }
}

fn send_wqe_longer_than_2_31(bench: &mut Bench) {
    for length in [MAX_MSG + 1, u32::MAX] {
        spoilt(bench, LEN, |head| head.length = length);
    }
}

fn send_wqe_inline_past_its_slots(bench: &mut Bench) {
    for length in [33, 289, MAX_MSG] {
        spoilt(bench, OP, |head| {
            head.inline_data = true;
            head.length = length;
        });
    }
}

fn send_wqe_inline_read(bench: &mut Bench) {
    spoilt(bench, OP, |head| {
        head.opcode = wqe::opcode::READ;
        head.inline_data = true;
        head.length = 8;
    });
}

fn send_wqe_atomic_of_two_pieces(bench: &mut Bench) {
    for opcode in [wqe::opcode::CMP_SWAP, wqe::opcode::FETCH_ADD] {
        spoilt(bench, OP, |head| {
            head.opcode = opcode;
            head.num_sge = 2;
        });
    }
}

fn send_wqe_error_keeps_its_order(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let mut bad = Work::send(&[]);
    bad.head.opcode = 0x40;
    c.recv(&[]);
    c.post_all(&[Work::send(&[]), bad, Work::send(&[]).unsignaled()]);
    c.succeeds(Side::A, 0);
    c.ends(Side::A, 1, OP);
    c.ends(Side::A, 2, status::WR_FLUSH_ERR);
    c.succeeds(Side::B, 0);
}

/// A region over memory that is not there.
pub(super) fn nowhere(host: &mut Host) -> Mr {
    host.register(0x7ead_0000_0000, 4096, Rights::ALL)
}

fn send_payload_unread_waits(bench: &mut Bench) {
    bench.expect_refusals();
    let options = QpOptions {
        timeout: 0,
        ..QpOptions::default()
    };
    let mut s = bench.script(options);
    let good = s.host.create_mr(&[7; 64], Rights::NONE);
    let bad = nowhere(&mut s.host);
    for source in [good.all(), bad.sge(0, 64), good.all()] {
        s.host
            .post_send(s.qpn, &Work::write(&[source], &s.target, 0));
    }
    s.run(4 * QUIET);
    check("completions", s.results(), vec![]);
    check("state", s.host.query(s.qpn).sq_state, state::RTS);
    let first = Psn::new(options.psn).value();
    s.send(&s.response(Opcode::RcAck, first, Syndrome::ACK), &[]);
    let expected = [status::SUCCESS, status::GENERAL_ERR, status::WR_FLUSH_ERR];
    let expected = (0..).zip(expected).collect::<Vec<_>>();
    check("completions", s.results(), expected);
}

fn send_payload_unread_and_no_answer(bench: &mut Bench) {
    bench.expect_refusals();
    let mut c = bench.connect(QpOptions {
        timeout: 2,
        retry_cnt: 2,
        ..QpOptions::default()
    });
    let good = c.a.create_mr(&[7; 64], Rights::NONE);
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    let bad = nowhere(&mut c.a);
    c.cut();
    c.post_all(&[
        Work::write(&[good.all()], &target, 0),
        Work::write(&[bad.sge(0, 64)], &target, 0),
    ]);
    c.ends(Side::A, 0, status::RETRY_EXC_ERR);
    c.ends(Side::A, 1, status::WR_FLUSH_ERR);
    check("packets sent", c.packets(Side::A).len(), 3);
}

fn send_payload_unread_in_part(bench: &mut Bench) {
    bench.expect_refusals();
    let len = MTU as u32;
    for (qp_type, failed) in [(qp_type::RC, state::ERR), (qp_type::UC, state::SQE)] {
        for is_last in [true, false] {
            let mut c = bench.connect(QpOptions {
                qp_type,
                ..QpOptions::default()
            });
            let good = c.a.create_mr(&[7; MTU], Rights::NONE);
            let target = c.b.create_mr(&[0; 2 * MTU], Rights::ALL);
            let bad = nowhere(&mut c.a);
            let mut pieces = [bad.sge(0, len), good.sge(0, len)];
            if is_last {
                pieces.reverse();
            }
            c.post_all(&[
                Work::write(&[good.all()], &target, 0),
                Work::write(&pieces, &target, 0),
                Work::write(&[good.all()], &target, 0),
            ]);
            for (index, expected) in [
                (0, status::SUCCESS),
                (1, status::GENERAL_ERR),
                (2, status::WR_FLUSH_ERR),
            ] {
                c.ends(Side::A, index, expected);
            }
            check("state", c.query(Side::A).sq_state, failed);
        }
    }
}

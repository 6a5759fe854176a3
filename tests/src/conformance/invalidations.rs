//! Keys that the card invalidates when it reaches the request, and what binds and these have in common.
//!
//! Second source of the rules: as in `binds`.

use ferroce_proto::abi::cq::{opcode as cqe, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::{SendWqe, WindowBind, opcode};
use ferroce_sim::testhost::{PD, QpOptions, Rights, Side, Work};

use super::bench::Bench;
use super::binds::*;
use super::{WINDOW, cases, check};

cases! {
    bind_and_loss, WINDOW, "IB1 9.7.5.1.1", "Requests around binds that are sent again leave the order of completions as it is; each bind is executed once.";
    bind_to_what_may_be_invalidated, WINDOW, "abi mr", "A region whose key may be invalidated has no window bound to it, as that would outlive the key.";
    bind_unsignaled, WINDOW, "IB1 10.8", "A bind that asks for no completion has none on success.";
    bind_of_an_unreliable_queue_pair, WINDOW | feature::UC | feature::UD, "IB1 10.6.7", "UC binds, and goes to SQE where a rule forbids it; UD has no binds.";
    bind_has_no_payload, WINDOW, "abi wqe", "A bind or local invalidate with a length, a list or inline data is a local operation error.";
    local_inv_in_its_turn, WINDOW, "IB1 10.8.3.3", "A key is invalidated when the request is reached: a peer uses it while one in front waits for its receiver, and not after its completion.";
    local_inv_is_flushed, WINDOW, "IB1 10.3.1", "A local invalidate that is flushed leaves the key.";
    local_inv_once, WINDOW, "IB1 10.6.5", "A key that is not valid cannot be invalidated: a memory management operation error.";
    local_inv_of_another_queue_pair, WINDOW, "IB1 10.6.7.2", "A window of another queue pair, of another domain or of type 1 stays, and so does a region that is registered for good.";
    bind_after_local_inv, WINDOW, "IB1 10.6.7.2", "A window of type 2 that was invalidated, locally or by its peer, is bound again.";
}

fn bind_and_loss(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    let qb = c.qb;
    let target = c.a.create_mr(&[0; 64], Rights::ALL);
    for (round, lost) in [0, 1, 2, 3].into_iter().enumerate() {
        let works: Vec<_> = (0..8)
            .map(|i| match i % 4 {
                1 => Work::bind(KEY, span(&region)),
                3 => Work::local_inv(KEY),
                _ => Work::write(&[], &target, 8 * i).inline(&[i as u8 + 1; 8]),
            })
            .collect();
        c.lose(Side::B, &[lost]);
        for work in &works {
            c.b.post_send(qb, work);
        }
        for i in 0..8 {
            c.succeeds(Side::B, 8 * round as u16 + i);
        }
    }
    check("state", c.query(Side::B).sq_state, state::RTS);
}

fn bind_to_what_may_be_invalidated(bench: &mut Bench) {
    for type_2 in [false, true] {
        let (mut c, _) = start(bench, type_2);
        let lent = region(&mut c.b, |entry| entry.invalidate = true);
        refused(&mut c, &Work::bind(KEY, span(&lent)));
        check("bound", reaches(&mut c, &by(KEY, &lent)), false);
        c.start_again();
        check("its key ends", at_b(&mut c, &Work::local_inv(lent.key)), 0);
    }
}

fn bind_unsignaled(bench: &mut Bench) {
    let (mut c, region) = start(bench, false);
    let (qa, qb) = (c.qa, c.qb);
    c.a.post_recv(qa, &[]);
    c.b.post_send(qb, &Work::bind(KEY, span(&region)).unsignaled());
    c.b.post_send(qb, &Work::send(&[]));
    c.succeeds(Side::B, 1);
    c.succeeds(Side::A, 0);
    check("bound", writes(&mut c, &by(KEY, &region)), true);
    let refusal = Work::bind(
        NEXT,
        WindowBind {
            lkey: 0,
            ..span(&region)
        },
    );
    c.start_again();
    refused(&mut c, &refusal.unsignaled());
}

fn bind_of_an_unreliable_queue_pair(bench: &mut Bench) {
    let of = |qp_type| QpOptions {
        qp_type,
        ..QpOptions::default()
    };
    let (mut c, region) = start_as(bench, true, of(qp_type::UC));
    bound(&mut c, KEY, span(&region));
    check(
        "again",
        at_b(&mut c, &Work::bind(NEXT, span(&region))),
        BIND_ERR,
    );
    check("state", c.query(Side::B).sq_state, state::SQE);
    let (mut c, region) = start_as(bench, true, of(qp_type::UD));
    for work in [Work::bind(KEY, span(&region)), Work::local_inv(KEY)] {
        check("UD", at_b(&mut c, &work), status::LOC_QP_OP_ERR);
        c.start_again();
    }
}

fn bind_has_no_payload(bench: &mut Bench) {
    let spoils: [fn(&mut SendWqe); 3] = [
        |head| head.length = 8,
        |head| head.num_sge = 1,
        |head| head.inline_data = true,
    ];
    for spoil in spoils {
        for inv in [false, true] {
            let (mut c, region) = start(bench, true);
            bound(&mut c, KEY, span(&region));
            let work = match inv {
                false => Work::bind(NEXT, span(&region)),
                true => Work::local_inv(KEY),
            };
            let mut slots = work.slots();
            let mut head = SendWqe::parse(slots[0].first_chunk().expect("a slot has 64 bytes"));
            spoil(&mut head);
            slots[0][..SendWqe::BYTES].copy_from_slice(&head.emit());
            let qb = c.qb;
            let index = c.b.post_slots(qb, &slots);
            c.ends(Side::B, index, status::LOC_QP_OP_ERR);
        }
    }
}

fn local_inv_in_its_turn(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    let (qa, qb) = (c.qa, c.qb);
    bound(&mut c, KEY, span(&region));
    let window = by(KEY, &region);
    c.b.post_send(qb, &Work::send(&[]));
    c.b.post_send(qb, &Work::local_inv(KEY));
    check("before its turn", writes(&mut c, &window), true);
    check("and again", writes(&mut c, &window), true);
    c.a.post_recv(qa, &[]);
    c.succeeds(Side::B, 1);
    let done = c.succeeds(Side::B, 2);
    check("CQE", done.opcode, cqe::LOCAL_INV);
    c.succeeds(Side::A, 0);
    check("after it", writes(&mut c, &window), false);
}

fn local_inv_is_flushed(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    bound(&mut c, KEY, span(&region));
    let qb = c.qb;
    let fails = failing(&mut c);
    for work in [fails, Work::local_inv(KEY)] {
        c.b.post_send(qb, &work);
    }
    c.ends(Side::B, 1, status::REM_ACCESS_ERR);
    c.ends(Side::B, 2, status::WR_FLUSH_ERR);
    // it is still that of the queue pair's number
    c.start_again();
    check("the key is there", writes(&mut c, &by(KEY, &region)), true);
}

fn local_inv_once(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    bound(&mut c, KEY, span(&region));
    check("first", at_b(&mut c, &Work::local_inv(KEY)), 0);
    refused(&mut c, &Work::local_inv(KEY));
    for key in [KEY ^ 1, KEY + 0x100, KEY ^ 1 << 31, 0] {
        let (mut c, region) = start(bench, true);
        bound(&mut c, KEY, span(&region));
        refused(&mut c, &Work::local_inv(key));
        c.start_again();
        check("the key is there", writes(&mut c, &by(KEY, &region)), true);
    }
}

fn local_inv_of_another_queue_pair(bench: &mut Bench) {
    let (mut c, own) = start(bench, true);
    bound(&mut c, KEY, span(&own));
    let (_, qb) = c.pair.connect(QpOptions::default(), QpOptions::default());
    c.b.post_send(qb, &Work::local_inv(KEY));
    let cqe = c.wait(Side::B);
    check("CQE", (cqe.qpn, cqe.status), (qb, BIND_ERR));
    c.execute(&write(&by(KEY, &own)));
    refused(&mut c, &Work::local_inv(own.key));

    let (mut c, region) = start(bench, false);
    bound(&mut c, KEY, span(&region));
    refused(&mut c, &Work::local_inv(KEY));
    check("type 1", reaches(&mut c, &by(KEY, &region)), true);

    let (mut c, region) = start(bench, true);
    let foreign = MrCtx {
        base: region.addr,
        last: region.addr + 63,
        key: KEY,
        pd: PD + 1,
        valid: true,
        qp_only: true,
        qpn: c.qb,
        ..unbound()
    };
    put(&mut c.b, foreign);
    refused(&mut c, &Work::local_inv(KEY));
}

fn bind_after_local_inv(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    let mut key = KEY;
    for by_peer in [false, true, false] {
        bound(&mut c, key, span(&region));
        c.execute(&write(&by(key, &region)));
        if by_peer {
            let mut send = Work::new(opcode::SEND_INV, &[]);
            send.head.imm = key;
            let taken = c.recv(&[]);
            c.execute(&send);
            c.succeeds(Side::B, taken);
        } else {
            check("status", at_b(&mut c, &Work::local_inv(key)), 0);
        }
        key += 1;
    }
    bound(&mut c, key, span(&region));
    check(
        "the former key",
        writes(&mut c, &by(key - 1, &region)),
        false,
    );
}

//! Queue pair states.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status as cmd_status};
use ferroce_proto::abi::cq::status::{GENERAL_ERR, REM_ACCESS_ERR, SUCCESS, WR_FLUSH_ERR};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Sent};
use super::event_queue::Eq;
use super::script::{PEER_PSN, syndromes};
use super::wqe::nowhere;
use super::{ATOMIC, EVENTS, RC, cases, check};

cases! {
    state_reset_hears_nothing, RC, "IB1 10.3.1", "In RESET packets are dropped and nothing is sent.";
    state_init_hears_nothing, RC, "IB1 10.3.1", "In INIT packets are dropped; receive WQEs may be posted already.";
    state_rtr_receives_only, RC, "IB1 10.3.1", "In RTR requests are executed and answered; nothing posted is sent before RTS.";
    state_rtr_event, EVENTS | feature::UC, "IB1 11.6.3.1", "The first request that a connected queue pair accepts in RTR is reported, once.";
    state_rts_goes_on, RC, "IB1 10.3.1", "From RTR to RTS what was posted is sent.";
    state_sqd_finishes, RC, "IB1 10.3.1", "In SQD messages begun are finished and completed, no further one is begun; RTS goes on.";
    state_sqd_still_receives, RC, "IB1 10.3.1", "In SQD the responder works as before.";
    state_sqd_event, EVENTS, "IB1 10.3.1", "When the send queue has drained in SQD, that is reported once; the next time again.";
    state_sqd_event_comes_last, EVENTS, "IB1 11.6.3.1", "The event of a send queue that drained comes when its completions are there.";
    state_sqd_again, EVENTS, "IB1 10.3.1", "SQD in SQD changes nothing of what is under way, and starts nothing; a queue that has drained is reported to each command, one that drains later once.";
    state_err_draws_no_answer, RC, "IB1 10.3.1", "In the error state packets are dropped and counted.";
    state_err_stays, RC, "IB1 10.3.1", "A responder in the error state leaves it by RESET, or to start afresh, only.";
    state_err_stays_of_sends, RC, "IB1 10.3.1", "So does a requester: neither SQD nor RTS revives it, and what is posted is flushed.";
    state_needs_contexts, RC, "abi cmd", "A queue pair without contexts cannot be opened.";
    card_disabled_hears_nothing, RC, "abi regs", "A card that is not enabled takes no frames and sends none.";
    state_reset_after_a_refusal, ATOMIC, "IB1 9.9.3", "A message whose payload host memory refused is neither acknowledged nor completed with success, also if RESET comes before its completion.";
}

fn state_reset_hears_nothing(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.reset_qp(s.qpn);
    let request = s.request(Opcode::RcWriteOnly);
    let answers = s.counts("rx_unknown_qp", 1, |s| s.send(&request, &[1; 8]));
    check("answers", answers.len(), 0);
    let ack = s.response(Opcode::RcAck, 0, Syndrome::ACK);
    s.counts("rx_unknown_qp", 1, |s| s.send(&ack, &[]));
    check("sent", s.post(&Work::send(&[])).len(), 0);
    super::check_bytes("the target", &s.contents()[..8], &[0; 8]);
    check("completions", s.results(), vec![]);
}

fn state_init_hears_nothing(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::INIT);
    s.recv();
    let request = s.request(Opcode::RcSendOnly);
    let answers = s.counts("rx_qp_state", 1, |s| s.send(&request, &[1; 8]));
    check("answers", answers.len(), 0);
    s.host.modify_state(s.qpn, state::RTR);
    let answers = s.send(&request, &[1; 8]);
    check("answer in RTR", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![(0, 0)]);
}

fn state_rtr_receives_only(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::RTR);
    check("sent in RTR", s.post(&Work::send(&[])).len(), 0);
    let request = s.request(Opcode::RcWriteOnly);
    let answers = s.send(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![]);
}

fn state_rts_goes_on(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::RTR);
    check("sent in RTR", s.post(&Work::send(&[])).len(), 0);
    s.host.modify_state(s.qpn, state::RTS);
    check("sent in RTS", s.quiet().len(), 1);
}

fn state_sqd_finishes(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (qa, size) = (c.qa, 1024 * 1024);
    let local = c.a.create_mr(&pattern(size, 1), Rights::ALL);
    let target = c.b.create_mr(&vec![0; size], Rights::ALL);
    c.recv(&[]);
    c.post_all(&[Work::write(&[local.all()], &target, 0), Work::send(&[])]);
    while c.sent.is_empty() {
        c.run(1);
    }
    c.a.modify_state(qa, state::SQD);
    c.succeeds(Side::A, 0);
    check("completions in SQD", c.statuses(Side::A), vec![]);
    check("messages executed", c.query(Side::B).msn, 1);
    c.a.modify_state(qa, state::RTS);
    c.succeeds(Side::A, 1);
    super::check_bytes("the target", &c.b.contents(&target), &pattern(size, 1));
}

fn state_sqd_still_receives(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::SQD);
    s.recv();
    let request = s.request(Opcode::RcSendOnly);
    let answers = s.next(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![(0, 0)]);
    check("sent", s.post(&Work::send(&[])).len(), 0);
}

fn state_rtr_event(bench: &mut Bench) {
    for (qp_type, opcode) in [
        (qp_type::RC, Opcode::RcWriteOnly),
        (qp_type::UC, Opcode::UcWriteOnly),
    ] {
        let mut s = bench.script(QpOptions {
            qp_type,
            ..QpOptions::default()
        });
        let mut eq = Eq::new(&mut s.host, 0, 4, 0);
        let request = s.request(opcode);
        s.next(&request, &[1; 8]);
        check("an event in RTS", eq.take(&s.host), None);
        s.reopen(|_| {});
        s.host.modify_state(s.qpn, state::RTR);
        check("an event before a request", eq.take(&s.host), None);
        let request = s.request(opcode);
        s.next(&request, &[1; 8]);
        let expected = (event::COMM_EST, s.qpn, 0);
        check("event", eq.take(&s.host), Some(expected));
        let request = s.request(opcode);
        s.next(&request, &[1; 8]);
        check("a second event", eq.take(&s.host), None);
    }
}

fn state_sqd_event(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let psn = s.post(&Work::send(&[]))[0].psn();
    s.host.modify_state(s.qpn, state::SQD);
    s.quiet();
    check("an event while a SEND is under way", eq.take(&s.host), None);
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    let expected = (event::SQ_DRAINED, s.qpn, 0);
    check("event", eq.take(&s.host), Some(expected));
    s.send(&ack, &[]);
    check("sent in SQD", s.post(&Work::send(&[])).len(), 0);
    s.run(2000);
    check("a second event", eq.take(&s.host), None);
    s.host.modify_state(s.qpn, state::RTS);
    let psn = s.quiet()[0].psn();
    s.host.modify_state(s.qpn, state::SQD);
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    let again = eq.take(&s.host);
    check("event of the second time", again, Some(expected));
    s.host.modify_state(s.qpn, state::RTS);
    s.host.modify_state(s.qpn, state::SQD);
    s.quiet();
    check("event with nothing sent", eq.take(&s.host), Some(expected));
}

fn state_sqd_event_comes_last(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let sent = s.post_all(&[(); 16].map(|()| Work::send(&[])));
    s.host.modify_state(s.qpn, state::SQD);
    let ack = s.response(Opcode::RcAck, sent[15].psn(), Syndrome::ACK);
    s.hand(&super::script::build(&ack, &[]));
    let found = (0..2000).find_map(|_| {
        s.run(1);
        eq.take(&s.host)
    });
    check("event", found, Some((event::SQ_DRAINED, s.qpn, 0)));
    check("completions at the event", s.results().len(), 16);
}

fn state_sqd_again(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let psn = s.post(&Work::send(&[]))[0].psn();
    for _ in 0..2 {
        s.host.modify_state(s.qpn, state::SQD);
        check("sent in SQD", s.post(&Work::send(&[])).len(), 0);
        check("an event while a SEND is under way", eq.take(&s.host), None);
    }
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0)]);
    let expected = (event::SQ_DRAINED, s.qpn, 0);
    check("events", eq.all(&s.host), vec![expected]);
    s.host.modify_state(s.qpn, state::SQD);
    check("sent in SQD", s.quiet().len(), 0);
    check("events", eq.all(&s.host), vec![expected]);
    s.host.modify_state(s.qpn, state::RTS);
    check("sent in RTS", s.quiet().len(), 2);
}

fn state_err_draws_no_answer(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::ERR);
    for opcode in [Opcode::RcWriteOnly, Opcode::RcSendOnly] {
        let request = s.request(opcode);
        let answers = s.counts("rx_qp_state", 1, |s| s.send(&request, &[1; 8]));
        check("answers", answers.len(), 0);
    }
    super::check_bytes("the target", &s.contents()[..8], &[0; 8]);
}

fn state_err_stays(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut refused = s.request(Opcode::RcWriteOnly);
    if let Some(reth) = &mut refused.ext.reth {
        reth.rkey = 0;
    }
    s.send(&refused, &[1; 8]);
    for state in [state::RTR, state::RTS] {
        s.host.modify_state(s.qpn, state);
        check("state", s.host.query(s.qpn).rq_state, state::ERR);
        let request = s.request(Opcode::RcWriteOnly);
        let answers = s.counts("rx_qp_state", 1, |s| s.send(&request, &[1; 8]));
        check("answers", answers.len(), 0);
    }
    let (qpn, peer) = (s.qpn, s.peer);
    s.host.connect(qpn, &peer);
    check("state", s.host.query(qpn).rq_state, state::RTS);
}

fn state_err_stays_of_sends(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.post(&Work::send(&[]))[0].psn();
    let refusal = Syndrome::Nak(NakCode::RemoteAccess);
    s.send(&s.response(Opcode::RcAck, psn, refusal), &[]);
    check("completions", s.results(), vec![(0, REM_ACCESS_ERR)]);
    for (index, state) in (1..).zip([state::SQD, state::RTS]) {
        s.host.modify_state(s.qpn, state);
        check("state", s.host.query(s.qpn).sq_state, state::ERR);
        check("sent", s.post(&Work::send(&[])).len(), 0);
        check("completions", s.results(), vec![(index, WR_FLUSH_ERR)]);
    }
}

fn state_needs_contexts(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for (qp_sq_state, qp_rq_state) in [(true, false), (false, true)] {
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: 99,
            qp_sq_state,
            qp_rq_state,
            sq_state: state::RTS,
            rq_state: state::RTR,
            ..CmdHead::default()
        };
        let answer = s.host.command(head, &[]);
        check("answer", answer.status, cmd_status::BAD_STATE);
    }
}

fn card_disabled_hears_nothing(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write32(regs::CONTROL, 0);
    s.quiet();
    let request = s.request(Opcode::RcWriteOnly);
    check("answers", s.send(&request, &[1; 8]).len(), 0);
    s.host.write32(regs::CONTROL, regs::control::ENABLE);
    s.quiet();
    s.untouched("while the card was disabled");
    let answers = s.send(&request, &[1; 8]);
    check("answer then", syndromes(&answers), vec![Syndrome::ACK]);
}

/// The completion waits for the atomics in front of it, and RESET comes at any moment of that.
fn state_reset_after_a_refusal(bench: &mut Bench) {
    const ATOMICS: u32 = 4;
    bench.expect_refusals();
    let mut s = bench.script(QpOptions::default());
    let bad = nowhere(&mut s.host);
    let mut refused = 0;
    for round in 0..24 {
        s.host.post_recv(s.qpn, &[bad.sge(0, 8)]);
        s.quiet();
        for _ in 0..ATOMICS {
            s.hand_next(&s.request(Opcode::RcFetchAdd), &[]);
        }
        let message = PEER_PSN + ATOMICS;
        s.hand_next(&s.request(Opcode::RcSendOnly), &[1; 8]);
        let mut packets = s.run(50 + 50 * round);
        let reset = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: s.qpn,
            qp_rq_state: true,
            rq_reset: true,
            ..CmdHead::default()
        };
        let command = s.host.start(reset, &[]);
        let mut statuses = Vec::new();
        let answered = (0..20_000).any(|_| {
            packets.extend(s.run(8));
            statuses.extend(s.cqes().iter().map(|cqe| cqe.status));
            s.host.answer(&command).is_some()
        });
        check("answered", answered, true);
        check("success", statuses.contains(&SUCCESS), false);
        refused += usize::from(statuses.contains(&GENERAL_ERR));
        let acknowledges =
            |packet: &Sent| (packet.psn(), packet.aeth().syndrome) == (message, Syndrome::ACK);
        check("acknowledged", packets.iter().any(acknowledges), false);
        s.host.was_reset(s.qpn);
        s.reopen(|_| {});
    }
    check("refused", refused > 0, true);
}

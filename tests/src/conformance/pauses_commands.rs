//! Pauses of the peer, and the commands of the host that wait for what they hold.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::{Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Work};

use super::bench::{Bench, MTU, QUIET, Sent};
use super::classes::{CLASSES, LONG, pause, script, write};
use super::script::{QKEY, build};
use super::{cases, check, check_bytes, ud};

cases! {
    pause_before_a_command, CLASSES, "abi cmd", "A queue pair is in RESET when what of it waits in a paused class has left.";
    pause_before_an_address_handle, CLASSES | feature::UD | feature::VLAN, "abi cmd", "An address handle changes when the datagrams that were begun and wait in a paused class have left for the address of before; other queue pairs do not notice.";
    pause_across_a_reset, CLASSES | feature::UD, "IB1 10.3.1", "Datagrams that wait in a paused class when their queue pair goes through RESET complete none of those that are posted then.";
    pause_in_each_life, CLASSES, "IB1 9.7.5", "A packet that waits in a paused class is not acknowledged, whatever former lives of its queue pair have sent, and however many there were.";
}

fn pause_before_a_command(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 1 << 14);
    s.begin(&vec![work; 16]);
    pause(&mut s, 1, LONG);
    s.quiet();
    let reset = CmdHead {
        opcode: opcode::MODIFY_QP,
        index: s.qpn,
        qp_sq_state: true,
        sq_reset: true,
        ..CmdHead::default()
    };
    let command = s.host.start(reset, &[]);
    check("packets", s.run(QUIET).len(), 0);
    check("answered", s.host.answer(&command).is_some(), false);
    pause(&mut s, 1, 0);
    check("packets that waited", s.quiet().is_empty(), false);
    let answered = (0..100).any(|_| {
        check("packets later", s.run(200).len(), 0);
        s.host.answer(&command).is_some()
    });
    check("answered", answered, true);
}

/// A tag moves the payload of what was made without it.
fn pause_before_an_address_handle(bench: &mut Bench) {
    // all are begun before the first has left
    const DATAGRAMS: usize = 23;
    let (mut s, source) = script(
        bench,
        QpOptions {
            ot_log: 6,
            ..ud::options()
        },
    );
    let peer = s.peer;
    s.host.write_ah(0, &peer, |_| {});
    let beside = s.host.create_qp(QpOptions {
        timeout: 0,
        ..QpOptions::default()
    });
    s.host.connect(beside, &peer);
    let piece = |i: usize| source.sge(64 * i as u64, MTU as u32);
    let datagram = |i| Work::datagram(&[piece(i)], 0, 0x11, QKEY);
    let mut before = s.begin(&(0..DATAGRAMS).map(datagram).collect::<Vec<_>>());
    pause(&mut s, 1, LONG);
    before.extend(s.quiet());
    s.host.post_send(beside, &Work::send(&[piece(DATAGRAMS)]));
    check("packets", s.quiet().len(), 0);
    let head = CmdHead {
        opcode: opcode::WRITE_AH,
        ..CmdHead::default()
    };
    let tagged = AvCtx {
        vlan_valid: true,
        ..s.host.handle(&peer)
    };
    let command = s.host.start(head, &[tagged.emit()]);
    check("packets", s.quiet().len(), 0);
    check("answered", s.host.answer(&command).is_some(), false);
    pause(&mut s, 1, 0);
    let sent = s.quiet();
    let answer = s.host.answer(&command).map(|answer| answer.status);
    check("answer", answer, Some(status::OK));
    let (connected, mut sent): (Vec<_>, Vec<_>) = sent
        .into_iter()
        .partition(|p| p.opcode() == Opcode::RcSendOnly);
    sent.splice(..0, before);
    sent.extend(s.post(&datagram(DATAGRAMS)));
    check("datagrams", sent.len(), DATAGRAMS + 1);
    let data = s.host.contents(&source);
    let has_piece = |what, packet: &Sent, i| {
        check_bytes(what, &packet.payload, &data[64 * i..][..MTU]);
    };
    for (i, packet) in sent.iter().enumerate() {
        has_piece("a datagram", packet, i);
    }
    check("packets beside", connected.len(), 1);
    has_piece("the packet beside", &connected[0], DATAGRAMS);
    let tags: Vec<_> = sent.iter().map(|p| p.headers.eth.vlan.is_some()).collect();
    check("tags come once", tags.is_sorted(), true);
    check("tag of the last", tags[DATAGRAMS], true);
}

fn pause_across_a_reset(bench: &mut Bench) {
    let (mut s, source) = script(bench, ud::options());
    let peer = s.peer;
    s.host.write_ah(0, &peer, |_| {});
    let datagram = |to| Work::datagram(&[source.sge(0, MTU as u32)], 0, to, QKEY);
    // the first life has 32 of them, the second 15 with the PSNs of the first
    s.begin(&vec![datagram(1); 32]);
    pause(&mut s, 1, 2_000);
    s.host.reset_qp(s.qpn);
    s.results();
    s.host.connect(s.qpn, &peer);
    s.ring_all(&vec![datagram(2); 15]);
    // two may be on their way to the end of the wire
    let (mut left, mut completed) = (0, 0);
    for _ in 0..50_000 {
        let sent = s.run(1);
        left += sent.iter().filter(|p| p.headers.bth.dest_qp == 2).count();
        completed += s.results().len();
        assert!(
            completed <= left + 2,
            "expected completions of what has left, got {completed} with {left} gone"
        );
    }
    check("completions", (left, completed), (15, 15));
}

fn pause_in_each_life(bench: &mut Bench) {
    const MESSAGES: usize = 4;
    let (mut s, source) = script(bench, QpOptions::default());
    let works = vec![write(&s, &source, 1 << 14); MESSAGES];
    let all = MESSAGES * (1 << 14) / MTU;
    check("packets of the first life", s.post_all(&works).len(), all);
    for lives in 1..=8 {
        for _ in 0..lives {
            s.reopen(|_| {});
        }
        let mut left = s.begin(&works).len();
        pause(&mut s, 1, LONG);
        left += s.quiet().len();
        assert!(
            (1..all).contains(&left),
            "{left} of {all} packets have left"
        );
        let ghosts = s.host.stat("rx_ghost_acks");
        let next = QpOptions::default().psn + left as u32;
        let ack = build(&s.response(Opcode::RcAck, next, Syndrome::ACK), &[]);
        check("packets", s.give(&ack).len(), 0);
        check("results", s.results(), vec![]);
        check("ghosts", s.host.stat("rx_ghost_acks"), ghosts + 1);
        pause(&mut s, 1, 0);
        check("packets that waited", s.quiet().len(), all - left);
    }
}

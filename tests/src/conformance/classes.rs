//! Traffic classes: which class a packet has, and pauses of the peer by priority (PFC).

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::{Opcode, Syndrome};
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Work, pattern};

use super::bench::{Bench, MTU, QUIET, Sent, open};
use super::notification::mark;
use super::script::{QKEY, Script, build};
use super::{cases, check, check_bytes, ud};

const CLASSES: u32 = feature::RC | feature::CLASSES;

cases! {
    class_of_a_dscp, CLASSES, "RFC 2474 3", "The DSCP of a packet says its priority, that its class: a pause of them holds it, pauses of all others do not.";
    class_of_other_tables, CLASSES, "abi regs", "The tables of DSCPs and priorities are what the host writes.";
    class_of_a_pcp, CLASSES | feature::VLAN, "802.1Q 6.9.3", "With trust PCP the PCP of the tag says the priority, whatever the DSCP.";
    class_of_what_has_no_tag, CLASSES, "802.1Q 6.9.3", "With trust PCP the default priority is that of what has no tag.";
    class_of_a_datagram, CLASSES | feature::UD, "abi regs", "A datagram has the class of its address handle.";
    class_of_a_cnp, CLASSES | feature::CNP, "abi regs", "A CNP has the class of its own DSCP.";
    pause_of_each_priority, CLASSES, "802.1Q 36.1.3.2", "A pause of any priority holds its class, and its counter counts it.";
    pause_amid_a_frame, CLASSES, "802.1Q 36.1.3.2", "A frame that has begun goes to its end; nothing of its class follows until the pause is over, then all in order.";
    pause_lasts_its_quanta, CLASSES, "802.1Q 36.1.3.2", "A pause lasts its quanta of 512 bits, not less; it ends by itself.";
    pause_ends_by_0_quanta, CLASSES, "802.1Q 36.1.3.2", "0 quanta end a pause.";
    pause_of_one_class, CLASSES, "802.1Q 36.1.3.2", "What waits in a paused class holds up no other queue pair.";
    pause_not_obeyed, CLASSES, "abi regs", "A pause of a priority that is not in PFC_CONFIG has no effect and counts nothing.";
    pause_counts_beginnings, CLASSES, "abi regs", "A pause that is asked for again before it ends counts once.";
    pause_of_acknowledgements, CLASSES, "802.1Q 36.1.3.2", "An acknowledgement of a paused class waits too.";
    pause_takes_no_time, CLASSES, "IB1 9.7.6.1.3", "No timer counts while a packet waits in a paused class, and nothing acknowledges it.";
    pause_of_a_datagram, CLASSES | feature::UD, "IB1 9.8.3", "A datagram in a paused class is complete when it has left.";
    pause_before_a_command, CLASSES, "abi cmd", "A queue pair is in RESET when what of it waits in a paused class has left.";
    pause_for_ever, CLASSES, "abi regs", "A pause without end is obeyed for as long as PFC_WATCHDOG says, until it has ended.";
    ack_before_data, CLASSES, "abi regs", "An acknowledgement leaves before data of its class that waits.";
    ack_behind_read_responses, CLASSES | feature::READ, "IB1 9.7.5.1.4", "An acknowledgement does not pass READ responses: they would be taken for lost.";
}

/// Quanta that no case waits for.
const LONG: u16 = u16::MAX;
/// Classes of the priorities after reset.
const AFTER_RESET: [u8; 8] = [0, 0, 1, 1, 2, 2, 3, 3];

/// The peer pauses priorities, a bit each; with 0 quanta they may go on.
fn pause(s: &mut Script, priorities: u8, quanta: u16) {
    let mut pause = Pause::default();
    for (priority, place) in pause.quanta.iter_mut().enumerate() {
        *place = (priorities >> priority & 1 == 1).then_some(quanta);
    }
    // behind the registers that were written; and the card sees it
    s.host.read32(regs::SCRATCH);
    s.host.nic.receive(&pause.emit(s.peer.mac));
    s.host.read32(regs::SCRATCH);
}

/// A card that obeys pauses of all priorities, and memory to send from. Nothing is sent again while it waits.
fn script(bench: &mut Bench, options: QpOptions) -> (Script, Mr) {
    let mut s = bench.script(QpOptions {
        timeout: 20,
        ..options
    });
    s.host.write32(regs::PFC_CONFIG, 0xff);
    let source = s.host.create_mr(&pattern(1 << 14, 1), Rights::NONE);
    (s, source)
}

fn path(s: &mut Script, tclass: u8) {
    s.reopen(|contexts| contexts.av.tclass = tclass);
}

fn write(s: &Script, source: &Mr, len: u32) -> Work {
    Work::write(&[source.sge(0, len)], &s.target, 0)
}

/// What is posted now is of this class: it waits while one of its priorities is paused, and not while all others are.
#[track_caller]
fn has_class(s: &mut Script, what: &str, work: &Work, classes: [u8; 8], class: u8) {
    let of_class = (0..8).filter(|&p| classes[p] == class);
    let own: u8 = of_class.map(|p| 1 << p).sum();
    pause(s, own, LONG);
    check(&format!("packets of {what}"), s.post(work).len(), 0);
    pause(s, own, 0);
    check(&format!("packets of {what} later"), s.quiet().len(), 1);
    pause(s, !own, LONG);
    let sent = s.post(work).len();
    check(&format!("packets of {what} beside pauses"), sent, 1);
    pause(s, !own, 0);
}

fn class_of_a_dscp(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    for dscp in [0, 7, 8, 22, 31, 32, 40, 48, 63] {
        path(&mut s, dscp << 2 | 1);
        let class = AFTER_RESET[usize::from(dscp >> 3)];
        has_class(&mut s, &format!("DSCP {dscp}"), &work, AFTER_RESET, class);
    }
}

fn class_of_other_tables(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    let classes = [3, 0, 2, 1, 1, 2, 0, 3];
    s.host.write32(regs::PRIO_CLASS, 0x3021_1203);
    s.host.write32(regs::DSCP_PRIO_3, 0x0765_4321);
    for (dscp, priority) in [(24, 1), (26, 3), (30, 7), (32, 4)] {
        path(&mut s, dscp << 2);
        let class = classes[priority];
        has_class(&mut s, &format!("DSCP {dscp}"), &work, classes, class);
    }
}

fn class_of_a_pcp(bench: &mut Bench) {
    for pcp in [0, 3, 5, 6] {
        let options = QpOptions {
            vlan: Some(pcp << 13 | 0x123),
            tclass: 0x50,
            ..QpOptions::default()
        };
        let (mut s, source) = script(bench, options);
        let work = write(&s, &source, 8);
        s.host.write32(regs::TRUST, 2 << 8 | 1);
        let class = AFTER_RESET[usize::from(pcp)];
        has_class(&mut s, &format!("PCP {pcp}"), &work, AFTER_RESET, class);
        // the DSCP again
        s.host.write32(regs::TRUST, 2 << 8 | 2);
        has_class(&mut s, "DSCP 20", &work, AFTER_RESET, 1);
    }
}

fn class_of_what_has_no_tag(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    path(&mut s, 0x50);
    for priority in [0, 3, 4, 7] {
        s.host.write32(regs::TRUST, priority << 8 | 1);
        let class = AFTER_RESET[priority as usize];
        has_class(&mut s, "what has no tag", &work, AFTER_RESET, class);
    }
}

fn class_of_a_datagram(bench: &mut Bench) {
    let (mut s, source) = script(bench, ud::options());
    let peer = s.peer;
    for (ah, class) in [(0, 0), (1, 2), (2, 3)] {
        s.host.write_ah(ah, &peer, |av| av.tclass = class << 6);
        let work = Work::datagram(&[source.sge(0, 8)], ah, 0x11, QKEY);
        has_class(&mut s, "a datagram", &work, AFTER_RESET, class);
    }
}

fn class_of_a_cnp(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    // DSCP 48: priority 6, class 3
    for (priorities, opcodes) in [
        (0x40, vec![Opcode::RcAck]),
        (0x3f, vec![Opcode::Cnp]),
        (0x80, vec![Opcode::RcAck]),
    ] {
        s.host.write32(regs::MIN_TIME_BETWEEN_CNPS, 0);
        pause(&mut s, priorities, LONG);
        let request = s.request(Opcode::RcWriteOnly);
        let sent = s.give(&mark(&build(&request, &[1; 8])));
        s.psn = s.psn.next();
        check("packets", sent.iter().map(Sent::opcode).collect(), opcodes);
        pause(&mut s, priorities, 0);
        check("packets later", s.quiet().len(), 1);
    }
}

fn pause_of_each_priority(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    for priority in 0..8_u8 {
        path(&mut s, priority << 5);
        pause(&mut s, 1 << priority, LONG);
        check("packets", s.post(&work).len(), 0);
        pause(&mut s, 1 << priority, 0);
        check("packets later", s.quiet().len(), 1);
        for other in 0..8 {
            let count = s.host.stat(&format!("rx_prio{other}_pause"));
            check("pauses", count, u64::from(other <= priority));
        }
    }
}

fn pause_amid_a_frame(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let packets = 8;
    let work = write(&s, &source, (packets * MTU) as u32);
    for step in 0..24 {
        path(&mut s, 0);
        s.host.post_send(s.qpn, &work);
        // somewhere in its frames
        let mut sent = match s.until_sent(40_000) {
            Some((_, sent)) => sent,
            None => panic!("nothing is sent"),
        };
        sent.extend(s.run(7 * step));
        pause(&mut s, 1, LONG);
        sent.extend(s.quiet());
        check("packets", s.run(QUIET).len(), 0);
        pause(&mut s, 1, 0);
        sent.extend(s.quiet());
        let psns: Vec<_> = sent.iter().map(|packet| packet.headers.bth.psn).collect();
        let first = psns[0];
        let expected = (0..packets).map(|i| first.add(i as u32)).collect();
        check("PSNs", psns, expected);
        let bytes: Vec<_> = sent.iter().flat_map(|p| p.payload.clone()).collect();
        check_bytes("payload", &bytes, &pattern(1 << 14, 1)[..packets * MTU]);
    }
}

fn pause_lasts_its_quanta(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    for quanta in [800, 3000] {
        path(&mut s, 0);
        pause(&mut s, 1, quanta);
        let start = s.host.nic.now();
        s.host.post_send(s.qpn, &work);
        let sent = s.until_sent(200_000);
        let end = s.host.nic.now();
        check("packets", sent.map(|(_, sent)| sent.len()), Some(1));
        // 512 bits in cycles of 4 ns: 1.28 at 100 Gb/s, 12.8 at 10; the card saw the pause a register read before `start`
        let least = u64::from(quanta) * 128 / 100 - 200;
        let most = u64::from(quanta) * 128 / 10 + 400;
        assert!(
            (least..most).contains(&(end - start)),
            "{quanta} quanta took {} cycles",
            end - start
        );
    }
}

fn pause_ends_by_0_quanta(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    pause(&mut s, 0xff, LONG);
    check("packets", s.post(&work).len(), 0);
    // of another priority
    pause(&mut s, 0xfc, 0);
    check("packets", s.quiet().len(), 0);
    pause(&mut s, 1, 0);
    check("packets", s.quiet().len(), 0);
    pause(&mut s, 2, 0);
    check("packets", s.quiet().len(), 1);
}

fn pause_of_one_class(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    let (first, peer) = (s.qpn, s.peer);
    let second = s.host.create_qp(QpOptions::default());
    open(&mut s.host, second, &peer, |contexts| {
        contexts.av.tclass = 0x60;
    });
    pause(&mut s, 1, LONG);
    for _ in 0..8 {
        s.host.post_send(first, &work);
    }
    check("packets of the paused class", s.quiet().len(), 0);
    for _ in 0..8 {
        s.host.post_send(second, &work);
    }
    let sent = s.quiet();
    check("packets of the other", sent.len(), 8);
    let all = sent.iter().all(|p| p.headers.ip.traffic_class() == 0x60);
    check("their class", all, true);
    pause(&mut s, 1, 0);
    check("packets later", s.quiet().len(), 8);
}

fn pause_not_obeyed(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    s.host.write32(regs::PFC_CONFIG, 0xfe);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 1);
    check("pauses", s.host.stat("rx_prio0_pause"), 0);
    check("frames", s.host.stat("rx_frames"), 0);
    // it still lasts
    s.host.write32(regs::PFC_CONFIG, 1);
    check("packets", s.post(&work).len(), 0);
    check("pauses", s.host.stat("rx_prio0_pause"), 1);
}

fn pause_counts_beginnings(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    for quanta in [LONG, LONG, 1000, 0, 0, LONG] {
        pause(&mut s, 4, quanta);
    }
    check("pauses", s.host.stat("rx_prio2_pause"), 2);
}

fn pause_of_acknowledgements(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    pause(&mut s, 1, LONG);
    let request = s.request(Opcode::RcWriteOnly);
    check("packets", s.next(&request, &[1; 8]).len(), 0);
    pause(&mut s, 1, 0);
    let sent = s.quiet();
    check(
        "packets",
        sent.iter().map(Sent::opcode).collect(),
        vec![Opcode::RcAck],
    );
}

fn pause_takes_no_time(bench: &mut Bench) {
    // 8 * 4.096 us
    let timeout = 8192;
    let mut s = bench.script(QpOptions {
        timeout: 3,
        retry_cnt: 1,
        ..QpOptions::default()
    });
    s.host.write32(regs::PFC_CONFIG, 0xff);
    let source = s.host.create_mr(&pattern(64, 1), Rights::NONE);
    let work = write(&s, &source, 8);
    pause(&mut s, 1, LONG);
    s.host.post_send(s.qpn, &work);
    check("packets", s.run(5 * timeout).len(), 0);
    let psn = QpOptions::default().psn;
    let ack = build(&s.response(Opcode::RcAck, psn, Syndrome::ACK), &[]);
    check("packets", s.give(&ack).len(), 0);
    check("results", s.results(), vec![]);
    check("acknowledgements", s.host.stat("rx_ghost_acks"), 1);
    pause(&mut s, 1, 0);
    let sent = s.until_sent(timeout / 2);
    check("packets", sent.map(|(_, sent)| sent.len()), Some(1));
    s.hand(&ack);
    s.run(timeout);
    check("results", s.results().len(), 1);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 0);
}

fn pause_of_a_datagram(bench: &mut Bench) {
    let (mut s, source) = script(bench, ud::options());
    let peer = s.peer;
    s.host.write_ah(0, &peer, |_| {});
    let work = Work::datagram(&[source.sge(0, 8)], 0, 0x11, QKEY);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
    check("results", s.results(), vec![]);
    pause(&mut s, 1, 0);
    check("packets", s.quiet().len(), 1);
    check("results", s.results().len(), 1);
}

fn pause_before_a_command(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
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
    check("packets", s.quiet().len(), 1);
    let answered = (0..100).any(|_| {
        check("packets later", s.run(200).len(), 0);
        s.host.answer(&command).is_some()
    });
    check("answered", answered, true);
}

fn pause_for_ever(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    s.host.write32(regs::PFC_WATCHDOG, 1);
    pause(&mut s, 1, LONG);
    s.host.post_send(s.qpn, &work);
    // asked for again before it ends
    let paused = |s: &mut Script, times: u64| {
        let mut sent = vec![];
        for _ in 0..times {
            sent.extend(s.run(50_000));
            pause(s, 1, LONG);
        }
        sent.len()
    };
    check("packets", paused(&mut s, 4), 0);
    // a millisecond, and one more at most
    check("packets", paused(&mut s, 7), 1);
    check("packets", s.post(&work).len(), 1);
    pause(&mut s, 1, 0);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
}

/// Opcodes of what leaves when priority 0 may go on.
fn resumed(s: &mut Script) -> Vec<Opcode> {
    check("packets", s.quiet().len(), 0);
    pause(s, 1, 0);
    s.quiet().iter().map(Sent::opcode).collect()
}

fn ack_before_data(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 3 * MTU as u32);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
    s.hand(&build(&s.request(Opcode::RcWriteOnly), &[1; 8]));
    let expected = [
        Opcode::RcAck,
        Opcode::RcWriteFirst,
        Opcode::RcWriteMiddle,
        Opcode::RcWriteLast,
    ];
    check("packets", resumed(&mut s), expected.to_vec());
}

fn ack_behind_read_responses(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    pause(&mut s, 1, LONG);
    let read = s.request(Opcode::RcReadRequest);
    s.hand_next(&read, &[]);
    check("packets", s.quiet().len(), 0);
    let request = s.request(Opcode::RcWriteOnly);
    s.hand_next(&request, &[1; 8]);
    let expected = vec![Opcode::RcReadResponseOnly, Opcode::RcAck];
    check("packets", resumed(&mut s), expected);
}

//! Traffic classes: which class a packet has, and what leaves first in one.

use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::Opcode;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Work, pattern};

use super::bench::{Bench, MTU, Sent, open};
use super::notification::mark;
use super::script::{QKEY, Script, build};
use super::{cases, check, ud};

pub(super) const CLASSES: u32 = feature::RC | feature::CLASSES;

cases! {
    class_of_a_dscp, CLASSES, "RFC 2474 3", "The DSCP of a packet says its priority, that its class: a pause of them holds it, pauses of all others do not.";
    class_of_other_tables, CLASSES, "abi regs", "The tables of DSCPs and priorities are what the host writes.";
    class_of_a_pcp, CLASSES | feature::VLAN, "802.1Q 6.9.3", "With trust PCP the PCP of the tag says the priority, whatever the DSCP.";
    class_of_what_has_no_tag, CLASSES, "802.1Q 6.9.3", "With trust PCP the default priority is that of what has no tag.";
    class_of_a_datagram, CLASSES | feature::UD, "abi regs", "A datagram has the class of its address handle.";
    class_of_a_cnp, CLASSES | feature::CNP, "abi regs", "A CNP has the class of its own DSCP.";
    ack_before_data, CLASSES, "abi regs", "An acknowledgement leaves before data of its class that waits.";
    ack_behind_read_responses, CLASSES | feature::READ, "IB1 9.7.5.1.4", "An acknowledgement does not pass READ responses: they would be taken for lost.";
}

/// Bytes of a long message: a whole part.
pub(super) const LENGTH: usize = 1 << 16;
/// Quanta that no case waits for.
pub(super) const LONG: u16 = u16::MAX;
/// Classes of the priorities after reset.
const AFTER_RESET: [u8; 8] = [0, 0, 1, 1, 2, 2, 3, 3];

/// The peer pauses priorities, a bit each; with 0 quanta they may go on.
pub(super) fn pause(s: &mut Script, priorities: u8, quanta: u16) {
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
pub(super) fn script(bench: &mut Bench, options: QpOptions) -> (Script, Mr) {
    let mut s = bench.script(QpOptions {
        timeout: 20,
        ..options
    });
    s.host.write32(regs::PFC_CONFIG, 0xff);
    let source = s.host.create_mr(&pattern(1 << 14, 1), Rights::NONE);
    (s, source)
}

/// A card with a second queue pair, of another class than the first; and memory to send from.
pub(super) fn two_classes(bench: &mut Bench) -> (Script, Mr, u32) {
    let options = QpOptions {
        timeout: 20,
        max_rd_atomic: 16,
        ..QpOptions::default()
    };
    let (mut s, _) = script(bench, options);
    let source = s.host.create_mr(&pattern(LENGTH, 5), Rights::ALL);
    let peer = s.peer;
    let second = s.host.create_qp(options);
    open(&mut s.host, second, &peer, |contexts| {
        contexts.av.tclass = 0x60;
    });
    (s, source, second)
}

pub(super) fn path(s: &mut Script, tclass: u8) {
    s.reopen(|contexts| contexts.av.tclass = tclass);
}

pub(super) fn write(s: &Script, source: &Mr, len: u32) -> Work {
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

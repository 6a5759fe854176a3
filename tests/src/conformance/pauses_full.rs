//! More of a paused class than its queue takes.

use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::Opcode;
use ferroce_sim::testhost::{ExceptionQueue, QpOptions, pattern};

use super::bench::{Bench, MTU, Sent};
use super::classes::{CLASSES, LENGTH, LONG, pause, script, two_classes, write};
use super::notification::mark;
use super::script::{Script, build};
use super::{cases, check, check_bytes};

cases! {
    pause_of_long_messages, CLASSES, "802.1Q 36.1.3.2", "Requests of a paused class hold up no other class, however many are posted; all of them leave later.";
    pause_of_long_responses, CLASSES | feature::READ, "802.1Q 36.1.3.2", "READ responses of a paused class hold up no other class, however many are due; all of them leave later.";
    pause_of_many_acknowledgements, CLASSES, "802.1Q 36.1.3.2", "Acknowledgements of a paused class hold up no other class, however many are due; the last one acknowledges all.";
    pause_of_many_cnps, CLASSES | feature::CNP, "802.1Q 36.1.3.2", "CNPs of a paused class hold up no other class, however many are due.";
    pause_of_many_frames, CLASSES | feature::EXCEPTION, "802.1Q 36.1.3.2", "Frames of the host of a paused class hold up no other class, however many are posted; all of them leave later.";
}

/// All of some packets are of this class, and bring this many times the bytes of the source.
#[track_caller]
fn brings(what: &str, sent: &[Sent], tclass: u8, times: usize) {
    let alike = sent.iter().all(|p| p.headers.ip.traffic_class() == tclass);
    check(&format!("class of {what}"), alike, true);
    let bytes: Vec<_> = sent.iter().flat_map(|p| p.payload.clone()).collect();
    check_bytes(what, &bytes, &pattern(LENGTH, 5).repeat(times));
}

fn pause_of_long_messages(bench: &mut Bench) {
    let (mut s, source, second) = two_classes(bench);
    let work = write(&s, &source, LENGTH as u32);
    let mut sent = s.begin(&vec![work.clone(); 9]);
    pause(&mut s, 1, LONG);
    sent.extend(s.quiet());
    for _ in 0..2 {
        s.host.post_send(second, &work);
    }
    brings("the other class", &s.quiet(), 0x60, 2);
    pause(&mut s, 1, 0);
    sent.extend(s.quiet());
    brings("the paused class", &sent, 0, 9);
}

fn pause_of_long_responses(bench: &mut Bench) {
    let (mut s, source, second) = two_classes(bench);
    let mut read = s.request(Opcode::RcReadRequest);
    if let Some(reth) = &mut read.ext.reth {
        (reth.va, reth.rkey, reth.dma_len) = (source.addr, source.key, LENGTH as u32);
    }
    let first = read.bth.psn;
    let mut ask = |s: &mut Script, qpn, number| {
        read.bth.dest_qp = qpn;
        read.bth.psn = first.add((number * LENGTH / MTU) as u32);
        s.hand(&build(&read, &[]));
    };
    for number in 0..16 {
        let qpn = s.qpn;
        ask(&mut s, qpn, number);
    }
    let (_, mut sent) = s.until_sent(40_000).expect("the first packet");
    pause(&mut s, 1, LONG);
    sent.extend(s.quiet());
    for number in 0..2 {
        ask(&mut s, second, number);
    }
    brings("the other class", &s.quiet(), 0x60, 2);
    pause(&mut s, 1, 0);
    sent.extend(s.quiet());
    brings("the paused class", &sent, 0, 16);
}

/// More of the short packets of a class than its queue holds.
const MANY: usize = 400;

/// Hands the card so many WRITEs of `frame`; those that answer them.
fn many(s: &mut Script, count: usize, frame: fn(&[u8]) -> Vec<u8>) -> Vec<Sent> {
    for _ in 0..count {
        let request = s.request(Opcode::RcWriteOnly);
        s.psn = s.psn.next();
        s.hand(&frame(&build(&request, &[1; 8])));
    }
    s.quiet()
}

fn pause_of_many_acknowledgements(bench: &mut Bench) {
    let (mut s, source, other) = two_classes(bench);
    pause(&mut s, 1, LONG);
    let last = s.psn.add(MANY as u32 - 1);
    check("packets", many(&mut s, MANY, <[u8]>::to_vec).len(), 0);
    s.host.post_send(other, &write(&s, &source, 8));
    check("packets of the other class", s.quiet().len(), 1);
    pause(&mut s, 1, 0);
    let sent = s.quiet();
    let acks = sent.iter().all(|p| p.opcode() == Opcode::RcAck);
    check("acknowledgements alone", acks, true);
    let psns = sent.last().map(|p| p.headers.bth.psn);
    check("PSN of the last", psns, Some(last));
}

fn pause_of_many_cnps(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    s.host.write32(regs::MIN_TIME_BETWEEN_CNPS, 0);
    // DSCP 48: priority 6
    pause(&mut s, 0x40, LONG);
    let last = s.psn.add(MANY as u32 - 1);
    let sent = many(&mut s, MANY, mark);
    let acks = sent.iter().all(|p| p.opcode() == Opcode::RcAck);
    check("acknowledgements alone", acks, true);
    let psns = sent.last().map(|p| p.headers.bth.psn);
    check("PSN of the last", psns, Some(last));
    pause(&mut s, 0x40, 0);
    let sent = s.quiet();
    let cnps = sent.iter().all(|p| p.opcode() == Opcode::Cnp);
    check("CNPs alone", cnps && !sent.is_empty(), true);
}

fn pause_of_many_frames(bench: &mut Bench) {
    let (mut s, source, other) = two_classes(bench);
    let mut queue = ExceptionQueue::open(&mut s.host, 8, false);
    // of no protocol, so of DSCP 0
    let mut frames = vec![[0x88; 1514]; 200];
    for (number, frame) in frames.iter_mut().enumerate() {
        frame[14] = number as u8;
        queue.put(&s.host, frame, frame.len() as u16);
    }
    pause(&mut s, 1, LONG);
    queue.ring(&mut s.host);
    check("packets", s.quiet().len(), 0);
    s.host.post_send(other, &write(&s, &source, 8));
    check("packets of the other class", s.quiet().len(), 1);
    pause(&mut s, 1, 0);
    for frame in &frames {
        let limit = s.host.nic.now() + 100_000;
        let sent = loop {
            if let Some(sent) = s.host.nic.transmit() {
                break sent;
            }
            assert!(s.host.nic.now() < limit, "a frame does not leave");
            let end = s.host.nic.now() + 16;
            s.host.nic.run_until(end);
        };
        check_bytes("a frame", &sent, frame);
    }
}

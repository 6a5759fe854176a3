//! Windows: PSNs that a queue pair may have outstanding.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{Mtu, NakCode, Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Sent};
use super::script::Script;
use super::{READ, cases, check};

const WINDOW: u32 = feature::RC | feature::SEND_WINDOW;

cases! {
    send_window_of_a_long_message, WINDOW, "abi qpc", "No more packets are outstanding than the window has, and the last of them asks for an acknowledgement.";
    send_window_of_short_messages, WINDOW, "abi qpc", "Messages of a packet count as one each.";
    send_window_of_one, WINDOW, "abi qpc", "A window of one packet does not stop a queue pair.";
    send_window_of_reads, WINDOW | feature::READ, "abi qpc", "A READ of more than the window goes, and what stands behind it when its responses are there.";
    send_window_after_a_nak, WINDOW, "IB1 9.7.5", "What is sent again counts from where it begins.";
    send_window_after_a_timeout, WINDOW, "IB1 9.7.6", "A window whose acknowledgement is lost is sent again, and no more.";
    send_window_and_error, WINDOW, "IBA 10.3.1", "What waits for a window is flushed when its queue pair goes into error.";
    read_of_most_psns, READ, "IB1 9.7.2", "A READ may take 2^23 - 1 PSNs, over the wrap too: the first response counts, the last shows that others are lost, what is behind it is a ghost.";
    read_of_half_the_psns, READ, "IB1 9.7.2", "A READ of 2^23 packets is a local length error.";
    send_window_ends_with_reset, WINDOW, "IBA 10.3.1", "The window of a queue pair is none of the next one of its number.";
}

fn windowed(window: u16, timeout: u8) -> QpOptions {
    QpOptions {
        window,
        timeout,
        ..QpOptions::default()
    }
}

/// A WRITE of `packets` packets.
fn write(s: &mut Script, packets: u32) -> Work {
    let len = packets as usize * 1024;
    let source = s.host.create_mr(&pattern(len, 1), Rights::ALL);
    Work::write(&[source.sge(0, len as u32)], &s.target, 0)
}

fn psns(sent: &[Sent]) -> Vec<u32> {
    sent.iter().map(Sent::psn).collect()
}

/// Acknowledges `psn`; the PSNs that the card sends then.
fn ack(s: &mut Script, psn: u32) -> Vec<u32> {
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    let mut sent = s.send(&ack, &[]);
    if sent.is_empty() {
        // its WQE is read again, and slow memory takes its time
        sent.extend(
            s.until_sent(20_000)
                .map(|(_, sent)| sent)
                .unwrap_or_default(),
        );
        sent.extend(s.quiet());
    }
    psns(&sent)
}

fn send_window_of_a_long_message(bench: &mut Bench) {
    let mut s = bench.script(windowed(4, 0));
    let work = write(&mut s, 10);
    let sent = s.post(&work);
    let first = sent[0].psn();
    check("PSNs", psns(&sent), (first..first + 4).collect());
    check("AckReq of the last", sent[3].headers.bth.ack_req, true);
    let more = ack(&mut s, first + 1);
    check("two more", more, vec![first + 4, first + 5]);
    let more = ack(&mut s, first + 5);
    check("four more", more, (first + 6..first + 10).collect());
    check("none more", ack(&mut s, first + 9), vec![]);
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
}

fn send_window_of_short_messages(bench: &mut Bench) {
    let mut s = bench.script(windowed(3, 0));
    let sent = s.post_all(&vec![Work::send(&[]); 8]);
    let first = sent[0].psn();
    check("PSNs", psns(&sent), (first..first + 3).collect());
    let mut sent = 3;
    for acked in 0..8 {
        let more = ack(&mut s, first + acked);
        check(
            "PSNs",
            more,
            (first + sent..first + 8.min(acked + 4)).collect(),
        );
        sent = 8.min(acked + 4);
    }
    let done = (0..8).map(|index| (index, status::SUCCESS)).collect();
    check("completions", s.results(), done);
}

fn send_window_of_one(bench: &mut Bench) {
    let mut c = bench.connect(windowed(1, 14));
    let source = c.a.create_mr(&pattern(1 << 13, 1), Rights::ALL);
    let target = c.b.create_mr(&[0; 1 << 13], Rights::ALL);
    c.post_all(&vec![Work::write(&[source.sge(0, 1 << 13)], &target, 0); 3]);
    for index in 0..3 {
        c.succeeds(Side::A, index);
    }
    check("timeouts", c.pair.a.stat("local_ack_timeout_err"), 0);
}

fn send_window_of_reads(bench: &mut Bench) {
    let mut c = bench.connect(windowed(2, 14));
    let own = c.a.create_mr(&[0; 1 << 13], Rights::ALL);
    let far = c.b.create_mr(&pattern(1 << 13, 1), Rights::ALL);
    let read = Work::read(&[own.sge(0, 1 << 13)], &far, 0);
    let write = Work::write(&[own.sge(0, 100)], &far, 0);
    c.post_all(&[read.clone(), write.clone(), read, write]);
    for index in 0..4 {
        c.succeeds(Side::A, index);
    }
    check("timeouts", c.pair.a.stat("local_ack_timeout_err"), 0);
}

fn send_window_after_a_nak(bench: &mut Bench) {
    let mut s = bench.script(windowed(4, 0));
    let work = write(&mut s, 10);
    let first = s.post(&work)[0].psn();
    let nak = Syndrome::Nak(NakCode::PsnSequence);
    let nak = s.response(Opcode::RcAck, first + 1, nak);
    let again = psns(&s.send(&nak, &[]));
    check(
        "three again, and one",
        again,
        (first + 1..first + 5).collect(),
    );
    let more = ack(&mut s, first + 4);
    check("four more", more, (first + 5..first + 9).collect());
}

fn send_window_after_a_timeout(bench: &mut Bench) {
    let mut s = bench.script(windowed(3, 6));
    let work = write(&mut s, 8);
    let first = s.post(&work)[0].psn();
    let (_, mut again) = s.until_sent(5 << 16).expect("it is sent again");
    again.extend(s.quiet());
    check("PSNs", psns(&again), (first..first + 3).collect());
    let more = ack(&mut s, first + 2);
    check("three more", more, (first + 3..first + 6).collect());
}

fn send_window_and_error(bench: &mut Bench) {
    let mut s = bench.script(windowed(1, 0));
    check("packets", s.post_all(&vec![Work::send(&[]); 4]).len(), 1);
    s.host.modify_state(s.qpn, state::ERR);
    check("packets", s.quiet().len(), 0);
    let flushed = (0..4).map(|index| (index, status::WR_FLUSH_ERR)).collect();
    check("completions", s.results(), flushed);
}

fn send_window_ends_with_reset(bench: &mut Bench) {
    let mut s = bench.script(windowed(2, 0));
    check("packets", s.post_all(&vec![Work::send(&[]); 6]).len(), 2);
    s.reopen(|contexts| contexts.sq.window = 0);
    check("packets", s.post_all(&vec![Work::send(&[]); 6]).len(), 6);
}

/// Bytes of a packet of the READs that take many PSNs.
const LEAST: u32 = 256;

/// A script of the shortest packets whose PSNs begin with `psn`, and a READ of `packets` packets.
fn long_read(bench: &mut Bench, psn: u32, packets: u32) -> (Script, Work) {
    let mut s = bench.script(QpOptions {
        mtu: Mtu::Mtu256,
        psn,
        ..windowed(0, 0)
    });
    let all = s.host.register(0x1000, u64::MAX - 0x2000, Rights::ALL);
    let mut work = Work::read(&[], &all, 0);
    work.list = vec![Sge {
        addr: s.target.addr,
        length: packets * LEAST,
        lkey: all.key,
    }];
    (s, work)
}

fn read_of_most_psns(bench: &mut Bench) {
    let packets = (1 << 23) - 1;
    for first in [0, 0x80_0003, 0xff_ffff] {
        let (mut s, read) = long_read(bench, first, packets);
        let [next, last, after] = [1, packets - 1, packets].map(|n| Psn::new(first).add(n).value());
        check("PSNs", psns(&s.post(&read)), vec![first]);
        let data = [5; LEAST as usize];
        let response = s.response(Opcode::RcReadResponseFirst, first, Syndrome::ACK);
        check("sent for the first", s.send(&response, &data).len(), 0);
        let ghost = s.response(Opcode::RcAck, after, Syndrome::ACK);
        let sent = s.counts("rx_ghost_acks", 1, |s| s.send(&ghost, &[]));
        check("sent for a PSN behind it", sent.len(), 0);
        let response = s.response(Opcode::RcReadResponseLast, last, Syndrome::ACK);
        let sent = s.counts("implied_nak_seq_err", 1, |s| s.send(&response, &data));
        let asked = sent[0].headers.ext.reth.map(|reth| reth.dma_len);
        check("sent again", psns(&sent), vec![next]);
        check("bytes asked for", asked, Some((packets - 1) * LEAST));
        check("completions", s.results(), vec![]);
    }
}

fn read_of_half_the_psns(bench: &mut Bench) {
    let (mut s, read) = long_read(bench, 0, 1 << 23);
    check("sent", s.post(&read).len(), 0);
    check("completions", s.results(), vec![(0, status::LOC_LEN_ERR)]);
}

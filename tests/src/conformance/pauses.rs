//! Pauses of the peer by priority (PFC): what they hold, for how long, and what goes on meanwhile.

use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Work, pattern};

use super::bench::{Bench, MTU, QUIET, Sent, open};
use super::classes::{CLASSES, LONG, path, pause, script, write};
use super::script::{QKEY, Script, build, syndromes};
use super::{ATOMIC, READ, cases, check, check_bytes, ud};

cases! {
    pause_of_each_priority, CLASSES, "802.1Q 36.1.3.2", "A pause of any priority holds its class, and its counter counts it.";
    pause_amid_a_frame, CLASSES, "802.1Q 36.1.3.2", "A frame that has begun goes to its end; nothing of its class follows until the pause is over, then all in order.";
    pause_lasts_its_quanta, CLASSES, "802.1Q 36.1.3.2", "A pause lasts its quanta of 512 bits, not less; it ends by itself.";
    pause_ends_by_0_quanta, CLASSES, "802.1Q 36.1.3.2", "0 quanta end a pause.";
    pause_of_one_class, CLASSES, "802.1Q 36.1.3.2", "What waits in a paused class holds up no other queue pair.";
    pause_not_obeyed, CLASSES, "abi regs", "A pause of a priority that is not in PFC_CONFIG has no effect, counts nothing, and runs out.";
    pause_counts_beginnings, CLASSES, "abi regs", "A pause that is asked for again before it ends counts once.";
    pause_of_acknowledgements, CLASSES, "802.1Q 36.1.3.2", "An acknowledgement of a paused class waits too.";
    pause_takes_no_time, CLASSES, "IB1 9.7.6.1.3", "No timer counts while a packet waits in a paused class, and nothing acknowledges it.";
    pause_of_a_datagram, CLASSES | feature::UD, "IB1 9.8.3", "A datagram in a paused class is complete when it has left.";
    pause_behind_an_invalidation, CLASSES | feature::INVALIDATE, "IB1 10.6.5", "Nothing is read under a key behind the completion that names it as invalid, whether responses wait in a paused class or are being read.";
    pause_behind_an_atomic, CLASSES | ATOMIC | READ, "IB1 9.5", "An atomic is executed, and what comes behind it completes, while the answers before it wait in a paused class.";
    pause_for_ever, CLASSES, "abi regs", "A pause without end is obeyed for as long as PFC_WATCHDOG says, until it has ended for a 128th of that time.";
    pause_in_turns, CLASSES, "abi regs", "A class whose priorities are paused in turns is held for as long as PFC_WATCHDOG says.";
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
        // behind it the WQE is read again, and its payload
        let most = u64::from(quanta) * 128 / 10 + 1000;
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
    pause(&mut s, 1, 0);
    s.quiet();
    // its time runs meanwhile
    s.host.write32(regs::PFC_CONFIG, 0xfe);
    pause(&mut s, 1, 800);
    s.run(800 * 128 / 10 + 100);
    s.host.write32(regs::PFC_CONFIG, 1);
    check("packets behind its end", s.post(&work).len(), 1);
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
    const MESSAGES: usize = 4;
    let source = s.host.create_mr(&pattern(1 << 14, 1), Rights::NONE);
    let work = write(&s, &source, 1 << 14);
    let (each, all) = ((1 << 14) / MTU, MESSAGES * (1 << 14) / MTU);
    let mut left = s.begin(&vec![work; MESSAGES]).len();
    pause(&mut s, 1, LONG);
    left += s.quiet().len();
    assert!(
        (1..all).contains(&left),
        "{left} of {all} packets have left"
    );
    let psn = QpOptions::default().psn;
    let ack = |s: &Script, packets: usize| {
        let last = psn + packets as u32 - 1;
        build(&s.response(Opcode::RcAck, last, Syndrome::ACK), &[])
    };
    // of what has left, and of what has not
    let first = ack(&s, left);
    check("packets", s.give(&first).len(), 0);
    check("results", s.results().len(), left / each);
    check("packets", s.run(5 * timeout).len(), 0);
    let next = ack(&s, left + 1);
    check("packets", s.give(&next).len(), 0);
    check("results", s.results(), vec![]);
    check("acknowledgements", s.host.stat("rx_ghost_acks"), 1);
    pause(&mut s, 1, 0);
    check("packets", s.quiet().len(), all - left);
    let last = ack(&s, all);
    check("packets", s.give(&last).len(), 0);
    check("results", s.results().len(), MESSAGES - left / each);
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

fn pause_behind_an_invalidation(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    let packets = 96;
    let data = pattern(packets * MTU, 7);
    // in a paused class nothing of it is read; in another one some of it is being read
    for (quanta, wait) in [
        (LONG, 20 * QUIET),
        (0, 0),
        (0, 250),
        (0, 500),
        (0, 1000),
        (0, 2000),
    ] {
        s.reopen(|_| {});
        let region = s.host.create_mr(&data, Rights::ALL);
        s.recv();
        pause(&mut s, 1, quanta);
        let mut read = s.request(Opcode::RcReadRequest);
        if let Some(reth) = &mut read.ext.reth {
            (reth.va, reth.rkey, reth.dma_len) = (region.addr, region.key, data.len() as u32);
        }
        s.hand(&build(&read, &[]));
        let mut sent = s.run(wait);
        s.psn = s.psn.add(packets as u32);
        let mut send = s.request(Opcode::RcSendOnlyInv);
        send.ext.ieth = Some(region.key);
        s.hand(&build(&send, &[]));
        let mut cqe = None;
        for _ in 0..20 * QUIET {
            sent.extend(s.run(1));
            cqe = s.host.poll(0);
            if cqe.is_some() {
                break;
            }
        }
        s.host.write(region.addr, &vec![0; data.len()]);
        let named = cqe.map(|cqe| (cqe.with_inv, cqe.imm));
        check("CQE", named, Some((true, region.key)));
        if quanta > 0 {
            check("packets", sent.len(), 0);
        }
        pause(&mut s, 1, 0);
        sent.extend(s.quiet());
        let end = sent.pop().expect("the READ is answered");
        // the READ may have been executed before the SEND, or for a part
        let last = match sent.len() {
            all if all == packets => Syndrome::Ack { credits: 31 },
            _ => Syndrome::Nak(NakCode::RemoteAccess),
        };
        check("the rest", syndromes(&[end]), vec![last]);
        for response in sent {
            let at = response.headers.bth.psn.since(read.bth.psn) as usize * MTU;
            check_bytes("response", &response.payload, &data[at..at + MTU]);
        }
    }
}

fn pause_behind_an_atomic(bench: &mut Bench) {
    let (mut s, _) = script(bench, QpOptions::default());
    let packets = 96;
    let data = pattern(packets * MTU, 7);
    let region = s.host.create_mr(&data, Rights::ALL);
    for _ in 0..4 {
        s.reopen(|_| {});
        s.recv();
        pause(&mut s, 1, LONG);
        let mut read = s.request(Opcode::RcReadRequest);
        if let Some(reth) = &mut read.ext.reth {
            (reth.va, reth.rkey, reth.dma_len) = (region.addr, region.key, data.len() as u32);
        }
        s.hand(&build(&read, &[]));
        s.psn = s.psn.add(packets as u32);
        for _ in 0..3 {
            let add = s.request(Opcode::RcFetchAdd);
            s.hand_next(&add, &[]);
        }
        let send = s.request(Opcode::RcSendOnly);
        s.hand_next(&send, &[]);
        check("status", s.next_cqe().map(|cqe| cqe.status), Some(0));
        check("the place", s.contents()[0], 3);
        check("packets", s.quiet().len(), 0);
        pause(&mut s, 1, 0);
        let mut sent = s.quiet();
        let ack = sent.pop().expect("the SEND is answered");
        check("PSN of the ACK", ack.psn(), s.psn.sub(1).value());
        let sums = sent.split_off(packets).into_iter();
        let sums: Vec<_> = sums
            .map(|p| p.headers.ext.atomic_ack.map(|ack| ack.original))
            .collect();
        check("results", sums, vec![Some(0), Some(1), Some(2)]);
        for (packet, bytes) in sent.iter().zip(data.chunks(MTU)) {
            check_bytes("response", &packet.payload, bytes);
        }
    }
}

fn pause_for_ever(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    s.host.write32(regs::PFC_WATCHDOG, 1);
    pause(&mut s, 1, LONG);
    s.host.post_send(s.qpn, &work);
    // asked for again before it ends
    check("packets", kept_up(&mut s, 4, &|_| 1), 0);
    check("packets", kept_up(&mut s, 7, &|_| 1), 1);
    check("packets", s.post(&work).len(), 1);
    pause(&mut s, 1, 0);
    check("packets", s.run(3_000).len(), 0);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
}

fn pause_in_turns(bench: &mut Bench) {
    let (mut s, source) = script(bench, QpOptions::default());
    let work = write(&s, &source, 8);
    s.host.write32(regs::PFC_WATCHDOG, 1);
    pause(&mut s, 1, LONG);
    s.host.post_send(s.qpn, &work);
    // two of one class
    let turns = |round| [2, 1][round % 2];
    check("packets", kept_up(&mut s, 4, &turns), 0);
    check("packets", kept_up(&mut s, 7, &turns), 1);
    pause(&mut s, 3, 0);
    check("packets", s.run(3_000).len(), 0);
    pause(&mut s, 1, LONG);
    check("packets", s.post(&work).len(), 0);
}

/// Packets that leave in times of 0.2 ms, after each of which `paused` says what is paused from then on.
fn kept_up(s: &mut Script, times: usize, paused: &dyn Fn(usize) -> u8) -> usize {
    let mut sent = 0;
    for round in 0..times {
        sent += s.run(50_000).len();
        pause(s, paused(round), LONG);
        pause(s, 3 & !paused(round), 0);
    }
    sent
}

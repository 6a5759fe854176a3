//! Round trips, which the requester measures.

use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Work};

use super::bench::Bench;
use super::script::Script;
use super::{RC, cases, check};

cases! {
    round_trip_of_a_packet, RC, "SIGCOMM 2020 Swift", "The acknowledgement of a packet gives its round trip: the time since it left.";
    round_trip_of_the_first_of_many, RC, "abi regs", "An acknowledgement that goes further than the packet measured is no sample.";
    round_trip_after_a_nak, RC, "Karn 1987", "What is sent again after a NAK gives no sample, what is sent behind it does.";
    round_trip_after_a_timeout, RC, "Karn 1987", "What is sent again after a timeout gives no sample.";
    round_trip_after_an_rnr_nak, RC, "Karn 1987", "What a receiver was not ready for gives no sample.";
    round_trip_after_reset, RC, "IBA 10.3.1", "A packet of a queue pair gives no sample to the next one of its number.";
}

/// Cycles of a round trip, beside those in which nothing is sent.
const TRIP: u64 = 5000;

fn options(timeout: u8) -> QpOptions {
    QpOptions {
        timeout,
        ..QpOptions::default()
    }
}

fn send() -> Work {
    Work::send(&[])
}

/// Samples, and their cycles.
fn samples(s: &mut Script) -> (u64, u64) {
    (s.host.stat("rp_rtt_samples"), s.host.stat("rp_rtt_cycles"))
}

fn answer(s: &mut Script, psn: u32, syndrome: Syndrome) -> Vec<u32> {
    let response = s.response(Opcode::RcAck, psn, syndrome);
    let sent = s.send(&response, &[]);
    sent.iter().map(|sent| sent.psn()).collect()
}

/// Posts a message, and acknowledges it after a round trip; the samples since.
fn round_trip(s: &mut Script) -> (u64, u64) {
    let before = samples(s);
    let psn = s.post(&send())[0].psn();
    s.run(TRIP);
    answer(s, psn, Syndrome::ACK);
    let after = samples(s);
    (after.0 - before.0, after.1 - before.1)
}

fn round_trip_of_a_packet(bench: &mut Bench) {
    let mut s = bench.script(options(0));
    for _ in 0..3 {
        let begin = s.host.nic.now();
        let (count, cycles) = round_trip(&mut s);
        let most = s.host.nic.now() - begin;
        check("samples", count, 1);
        check("of this time", (TRIP..most).contains(&cycles), true);
    }
}

fn round_trip_of_the_first_of_many(bench: &mut Bench) {
    let mut s = bench.script(options(0));
    let first = s.post_all(&vec![send(); 3])[0].psn();
    answer(&mut s, first + 1, Syndrome::ACK);
    check("samples", samples(&mut s).0, 0);
    answer(&mut s, first + 2, Syndrome::ACK);
    check("samples", samples(&mut s).0, 0);
    check("samples of the next", round_trip(&mut s).0, 1);
}

/// The first of two packets is refused in this way, and both are sent again.
fn refused(s: &mut Script, syndrome: Syndrome) {
    let first = s.post_all(&vec![send(); 2])[0].psn();
    let mut again = answer(s, first, syndrome);
    if again.is_empty() {
        let (_, sent) = s.until_sent(400_000).expect("they are sent again");
        again.extend(sent.iter().map(|sent| sent.psn()));
        again.extend(s.quiet().iter().map(|sent| sent.psn()));
    }
    check("sent again", again, vec![first, first + 1]);
    answer(s, first, Syndrome::ACK);
    answer(s, first + 1, Syndrome::ACK);
    check("samples", samples(s).0, 0);
    check("samples of the next", round_trip(s).0, 1);
}

fn round_trip_after_a_nak(bench: &mut Bench) {
    let mut s = bench.script(options(0));
    refused(&mut s, Syndrome::Nak(NakCode::PsnSequence));
}

fn round_trip_after_an_rnr_nak(bench: &mut Bench) {
    let mut s = bench.script(options(0));
    refused(&mut s, Syndrome::RnrNak { timer: 6 });
}

fn round_trip_after_a_timeout(bench: &mut Bench) {
    let mut s = bench.script(options(6));
    let psn = s.post(&send())[0].psn();
    s.until_sent(5 << 16).expect("it is sent again");
    answer(&mut s, psn, Syndrome::ACK);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 1);
    check("samples", samples(&mut s).0, 0);
}

fn round_trip_after_reset(bench: &mut Bench) {
    let mut s = bench.script(options(0));
    let psn = s.post(&send())[0].psn();
    s.reopen(|_| {});
    answer(&mut s, psn, Syndrome::ACK);
    check("samples", samples(&mut s).0, 0);
    check("samples of the next", round_trip(&mut s).0, 1);
}

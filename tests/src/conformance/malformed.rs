//! Frames that no healthy peer sends: each is dropped and counted, answers nothing and changes nothing.

use ferroce_proto::abi::cmd::{PortConfig, opcode};
use ferroce_proto::wire::{Error, Opcode, Packet, Syndrome, icrc, ipv4};
use ferroce_sim::testhost::{QpOptions, pattern};

use super::bench::Bench;
use super::script::{Script, build, syndromes};
use super::{ATOMIC, RC, cases, check};

cases! {
    icrc_bad, RC, "A17 CA17-22", "A packet whose ICRC is wrong in any bit is dropped.";
    icrc_covers_every_byte, RC, "A17 CA17-22", "A bit flipped anywhere in what the ICRC covers is noticed.";
    frame_shorter_than_its_headers, RC, "A17 CA17-24", "A frame that ends inside its Ethernet, IP or UDP header is dropped.";
    frame_shorter_than_its_datagram, RC, "A17 CA17-24", "A frame that ends before the length of its IP header says is dropped.";
    frame_padded_by_the_link, RC, "IEEE 802.3 3.2", "Bytes behind the ICRC are the link's and are ignored.";
    ip_length_over_the_udp_length, RC, "A17 CA17-6, CA17-21", "IP and UDP lengths that disagree are malformed.";
    ip_checksum_bad, RC, "RFC 791 3.1", "An IPv4 header whose checksum is wrong is malformed.";
    ip_checksum_of_ones, RC, "RFC 1624 3", "Where an IPv4 header sums up to ones its checksum is 0 or 0xffff.";
    ip_options, RC, "A17 CA17-3", "An IPv4 header with options is not RoCEv2.";
    ip_fragment, RC, "A17 CA17-8", "A fragment is not RoCEv2.";
    ip_protocol, RC, "A17.3", "A datagram that is not UDP is not RoCEv2.";
    udp_port, RC, "A17.3.2", "UDP to another port is not RoCEv2.";
    port_of_another, RC, "RFC 1122 3.2.1.3", "A promiscuous port executes no packet that is to the MAC address of another.";
    ethertype, RC, "A17.3", "A frame of another EtherType is not RoCEv2.";
    udp_ends_in_the_bth, RC, "A17 CA17-24", "A datagram too short for a BTH and an ICRC is malformed.";
    udp_ends_in_the_reth, RC, "A17 CA17-24", "A WRITE too short for its RETH is malformed.";
    udp_ends_in_the_aeth, RC, "A17 CA17-24", "An acknowledgement too short for its AETH is malformed.";
    udp_ends_in_the_atomic_eth, ATOMIC, "A17 CA17-24", "An atomic too short for its AtomicETH is malformed.";
}

/// A WRITE of 64 bytes from the script.
pub(super) fn frame(s: &Script) -> Vec<u8> {
    build(&s.write(Opcode::RcWriteOnly, 64), &pattern(64, 1))
}

/// A frame must be dropped without a trace but for this counter.
#[track_caller]
pub(super) fn dropped(s: &mut Script, what: &str, counter: &str, frame: &[u8]) {
    let answers = s.counts(counter, 1, |s| s.give(frame));
    check(&format!("{what}: answers"), answers.len(), 0);
}

/// The datagram's IP checksum and ICRC made right, whatever it says.
pub(super) fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    let header: [u8; 20] = *frame[14..].first_chunk().expect("an IPv4 header");
    let checksum = ipv4::Header::new(header).computed_checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    // The lengths say where the ICRC stands; with lengths that make no sense there is none to be made right.
    let _ = icrc::seal(&mut frame[14..]);
    frame
}

pub(super) fn run(bench: &mut Bench, spoil: impl FnOnce(&mut Script)) {
    let mut s = bench.script(QpOptions::default());
    spoil(&mut s);
    s.untouched("after all that");
    let request = s.request(Opcode::RcWriteOnly);
    let answers = s.send(&request, &[1; 8]);
    check(
        "answer to a good packet",
        syndromes(&answers),
        vec![Syndrome::ACK],
    );
}

fn icrc_bad(bench: &mut Bench) {
    run(bench, |s| {
        let good = frame(s);
        for bit in 0..32 {
            let mut bad = good.clone();
            let last = bad.len() - 1;
            bad[last - bit / 8] ^= 1 << (bit % 8);
            dropped(s, &format!("bit {bit}"), "rx_icrc_errors", &bad);
        }
    });
}

fn icrc_covers_every_byte(bench: &mut Bench) {
    run(bench, |s| {
        let good = frame(s);
        for at in 14..good.len() - 4 {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            match Packet::parse(&bad) {
                Err(Error::Icrc { .. }) if !(26..34).contains(&at) => {
                    dropped(s, &format!("byte {at}"), "rx_icrc_errors", &bad);
                }
                // What is not covered, and what is noticed before, have their own cases.
                _ => {}
            }
        }
    });
}

fn frame_shorter_than_its_headers(bench: &mut Bench) {
    run(bench, |s| {
        let good = frame(s);
        for len in [1, 13, 14, 20, 33, 34, 41] {
            dropped(s, &format!("{len} bytes"), "rx_malformed", &good[..len]);
        }
    });
}

fn frame_shorter_than_its_datagram(bench: &mut Bench) {
    run(bench, |s| {
        let good = frame(s);
        for len in [42, 53, 54, 69, 70, 71, 100, good.len() - 4, good.len() - 1] {
            dropped(s, &format!("{len} bytes"), "rx_malformed", &good[..len]);
        }
    });
}

fn frame_padded_by_the_link(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for pad in [1, 2, 60, 64, 200] {
        let mut padded = frame(&s);
        padded.extend(vec![0xaa; pad]);
        let answers = s.give(&padded);
        s.psn = s.psn.next();
        check(
            &format!("{pad} bytes behind"),
            syndromes(&answers),
            vec![Syndrome::ACK],
        );
    }
}

fn ip_length_over_the_udp_length(bench: &mut Bench) {
    run(bench, |s| {
        for (ip, udp) in [(4, 0), (0, 4), (-4, 0), (0, -4), (0, -200), (1000, 1000)] {
            let mut bad = frame(s);
            for (at, change) in [(16, ip), (38, udp)] {
                let len = i16::from_be_bytes([bad[at], bad[at + 1]]) + change;
                bad[at..at + 2].copy_from_slice(&len.to_be_bytes());
            }
            let what = format!("IP length {ip:+}, UDP length {udp:+}");
            dropped(s, &what, "rx_malformed", &seal(bad));
        }
    });
}

fn ip_checksum_bad(bench: &mut Bench) {
    run(bench, |s| {
        for at in [24, 25] {
            let mut bad = frame(s);
            bad[at] ^= 1;
            dropped(s, &format!("byte {at}"), "rx_malformed", &bad);
        }
    });
}

fn ip_checksum_of_ones(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for checksum in [0, 0xffff] {
        let request = s.request(Opcode::RcWriteOnly);
        let mut bytes = build(&request, &[1; 8]);
        // the identification makes up for the other words
        bytes[18..20].fill(0);
        let header = ipv4::Header::new(*bytes[14..].first_chunk::<20>().expect("an IPv4 header"));
        bytes[18..20].copy_from_slice(&header.computed_checksum().to_be_bytes());
        let mut sealed = seal(bytes);
        check("checksum of the header", &sealed[24..26], &[0, 0][..]);
        sealed[24..26].copy_from_slice(&u16::to_be_bytes(checksum));
        let answers = s.give(&sealed);
        check(
            &format!("{checksum:#x}"),
            syndromes(&answers),
            vec![Syndrome::ACK],
        );
        s.psn = s.psn.next();
    }
}

fn port_of_another(bench: &mut Bench) {
    run(bench, |s| {
        let [a, b, c, d, e, f] = s.host.mac.0;
        let port = PortConfig {
            mac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            promiscuous: true,
        };
        s.host.expect(opcode::SET_PORT, 0, &port.emit());
        for byte in 0..6 {
            let mut other = frame(s);
            other[byte] ^= 2;
            dropped(s, &format!("byte {byte}"), "rx_not_roce", &other);
        }
    });
}

/// Bytes changed in a good frame, all sums made right, must count as this.
pub(super) fn changed(bench: &mut Bench, counter: &str, changes: &[(usize, u8)]) {
    run(bench, |s| {
        for &(at, byte) in changes {
            let mut bad = frame(s);
            bad[at] = byte;
            dropped(s, &format!("byte {at} is {byte:#x}"), counter, &seal(bad));
        }
    });
}

fn ip_options(bench: &mut Bench) {
    changed(
        bench,
        "rx_not_roce",
        &[(14, 0x46), (14, 0x4f), (14, 0x44), (14, 0x55)],
    );
}

fn ip_fragment(bench: &mut Bench) {
    changed(
        bench,
        "rx_not_roce",
        &[(20, 0x20), (20, 0x60), (21, 1), (20, 0x5f)],
    );
}

fn ip_protocol(bench: &mut Bench) {
    changed(bench, "rx_not_roce", &[(23, 6), (23, 16), (23, 0)]);
}

fn udp_port(bench: &mut Bench) {
    changed(bench, "rx_not_roce", &[(36, 0x13), (37, 0xb6), (37, 0)]);
}

fn ethertype(bench: &mut Bench) {
    changed(bench, "rx_not_roce", &[(13, 6), (12, 0x88), (13, 0xdd)]);
}

/// The frame of a packet cut to `transport` bytes from the BTH through the ICRC, lengths and sums right.
pub(super) fn cut(frame: &[u8], transport: usize) -> Vec<u8> {
    let mut bad = frame[..42 + transport].to_vec();
    bad[16..18].copy_from_slice(&(28 + transport as u16).to_be_bytes());
    bad[38..40].copy_from_slice(&(8 + transport as u16).to_be_bytes());
    seal(bad)
}

/// A packet cut short inside its headers is malformed, up to the last byte.
fn cut_short(bench: &mut Bench, opcode: Opcode, lengths: &[usize]) {
    run(bench, |s| {
        let headers = match opcode.is_request() {
            true => s.request(opcode),
            false => s.response(opcode, 0x1000, Syndrome::ACK),
        };
        let good = build(&headers, &[]);
        check("headers and ICRC", good.len() - 42, opcode.header_len() + 4);
        for &len in lengths {
            dropped(
                s,
                &format!("{len} bytes of UDP"),
                "rx_malformed",
                &cut(&good, len),
            );
        }
    });
}

fn udp_ends_in_the_bth(bench: &mut Bench) {
    cut_short(bench, Opcode::RcSendOnly, &[0, 4, 8, 12, 15]);
}

fn udp_ends_in_the_reth(bench: &mut Bench) {
    cut_short(bench, Opcode::RcWriteOnly, &[16, 20, 28, 31]);
}

fn udp_ends_in_the_aeth(bench: &mut Bench) {
    cut_short(bench, Opcode::RcAck, &[16, 19]);
}

fn udp_ends_in_the_atomic_eth(bench: &mut Bench) {
    cut_short(bench, Opcode::RcFetchAdd, &[16, 32, 40, 43]);
}

//! Captures of soft-RoCE against the device under test: `cargo xtask replay` over all of them.

mod damaged;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

use anyhow::Result;
use ferroce_proto::wire::{Headers, NakCode, Packet, Syndrome};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::pcap::{self, Capture};
use ferroce_sim::replay::{self, Match, Options, Outcome, Role};
use ferroce_sim::rtl::{self, build};
use ferroce_sim::verilator;

/// Builds a device under test.
type Build = fn(Rc<dyn HostMemory>) -> Result<Box<dyn Nic>>;

/// Every device that captures are replayed against.
const DEVICES: [(&str, Build); 3] = [
    ("model", model),
    ("RTL of 512 bits", rtl_512),
    ("RTL of 64 bits", rtl_64),
];

fn model(memory: Rc<dyn HostMemory>) -> Result<Box<dyn Nic>> {
    Ok(Box::new(Model::new(DEFAULT_PARAMS, memory)))
}

fn rtl_512(memory: Rc<dyn HostMemory>) -> Result<Box<dyn Nic>> {
    static MODEL: OnceLock<verilator::Model> = OnceLock::new();
    rtl(&MODEL, 512, memory)
}

fn rtl_64(memory: Rc<dyn HostMemory>) -> Result<Box<dyn Nic>> {
    static MODEL: OnceLock<verilator::Model> = OnceLock::new();
    rtl(&MODEL, 64, memory)
}

fn rtl(
    model: &OnceLock<verilator::Model>,
    width: usize,
    memory: Rc<dyn HostMemory>,
) -> Result<Box<dyn Nic>> {
    let model = match model.get() {
        Some(model) => model,
        None => {
            let built = build::model(width, &verilator::Options::default())?;
            model.get_or_init(|| built)
        }
    };
    let engine = build::engine(model, memory, &rtl::Options::host(1))?;
    Ok(Box::new(engine))
}

/// All captures, by name.
fn captures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures");
    let files = dir
        .read_dir()
        .expect("tests/captures is part of the sources");
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "pcap")
    });
    paths.sort();
    paths
}

/// Captures in which packets were lost, sent twice or refused for a time.
fn is_irregular(name: &str) -> bool {
    name.starts_with("loss5_") || name.starts_with("dup_") || name == "rnr"
}

fn capture(name: &str) -> Capture {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("captures")
        .join(name);
    pcap::read(path.with_extension("pcap")).unwrap()
}

fn run(capture: &Capture) -> Result<Outcome, replay::Error<anyhow::Error>> {
    replay::run(capture, &Options::default(), model)
}

fn assert_same(name: &str, outcome: &Outcome) {
    let lines: Vec<_> = outcome
        .differences
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(lines.is_empty(), "{name}:\n{}", lines.join("\n"));
}

/// Changes the last packet of a capture that `pick` finds, and gives it a right ICRC.
fn change(
    capture: &mut Capture,
    pick: impl Fn(&Packet) -> bool,
    change: impl FnOnce(&mut Headers),
) -> usize {
    let places = capture.packets.iter().enumerate();
    let found = places.filter_map(|(at, p)| Some((at, Packet::parse(&p.data).ok()?)));
    let (at, packet) = found.filter(|(_, p)| pick(p)).last().expect("a packet");
    let old = &mut capture.packets[at].data;
    let payload = old[packet.payload.clone()].to_vec();
    let mut headers = packet.headers;
    change(&mut headers);
    let mut bytes = vec![0; headers.frame_len(payload.len())];
    headers.build(&payload, &mut bytes).unwrap();
    *old = bytes;
    at + 1
}

fn is_answer(packet: &Packet) -> bool {
    packet.headers.bth.opcode.is_response()
}

fn holds_answer(recorded: &pcap::Packet) -> bool {
    Packet::parse(&recorded.data).is_ok_and(|packet| is_answer(&packet))
}

/// Replays every capture against a device.
fn replay_all((device, build): (&str, Build), options: &Options) {
    let paths = captures();
    assert_eq!(paths.len(), 39);
    for path in &paths {
        let capture = pcap::read(path).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy();
        let name = format!("{device}, {file}, {options:?}");
        let outcome = match replay::run(&capture, options, build) {
            Ok(outcome) => outcome,
            Err(error) => panic!("{name}: {error}"),
        };
        let counts = outcome.counts;
        println!("{name}: {counts:?}");
        assert_same(&name, &outcome);
        assert_eq!(
            counts.sent,
            counts.same + counts.added + counts.repeated,
            "{name}"
        );
        assert!(
            counts.same + counts.completions + counts.bytes > 0,
            "{name}"
        );
        assert_eq!(
            counts.malformed,
            if options.malformed.is_some() {
                counts.fed
            } else {
                0
            }
        );
        if !is_irregular(&file) {
            assert_eq!(counts.recorded, counts.same + counts.coalesced, "{name}");
            assert_eq!(counts.repeated, 0, "{name}");
        }
    }
}

/// Replays every capture in a role.
fn replay_as(role: Role, device: (&str, Build), malformed: Option<u64>) {
    let options = Options {
        role,
        malformed,
        ..Options::default()
    };
    replay_all(device, &options);
}

/// Replays every capture in both roles.
fn replay_both(device: (&str, Build), malformed: Option<u64>) {
    for role in [Role::Responder, Role::Requester] {
        replay_as(role, device, malformed);
    }
}

#[test]
fn the_model_does_in_both_roles_as_soft_roce_did() {
    replay_both(DEVICES[0], None);
}

#[test]
fn the_engine_of_512_bits_responds_as_soft_roce_did() {
    replay_as(Role::Responder, DEVICES[1], None);
}

#[test]
fn the_engine_of_64_bits_requests_as_soft_roce_did() {
    replay_as(Role::Requester, DEVICES[2], None);
}

/// The roles that the two tests above leave out.
#[test]
#[ignore = "takes minutes"]
fn the_engines_do_in_the_other_role_as_soft_roce_did() {
    replay_as(Role::Requester, DEVICES[1], None);
    replay_as(Role::Responder, DEVICES[2], None);
}

#[test]
fn malformed_packets_in_between_change_nothing() {
    for seed in 1..=2 {
        replay_both(DEVICES[0], Some(seed));
    }
    for (device, build) in &DEVICES[1..] {
        for name in [
            "rc_send_imm_multi",
            "rc_read_multi_10000",
            "rc_faa",
            "uc_write",
        ] {
            for role in [Role::Responder, Role::Requester] {
                let options = Options {
                    role,
                    malformed: Some(1),
                    ..Options::default()
                };
                let outcome = replay::run(&capture(name), &options, build).unwrap();
                assert_same(&format!("{device}, {name}, {role:?}"), &outcome);
                assert_eq!(outcome.counts.malformed, outcome.counts.fed);
            }
        }
    }
}

/// 38 times the receiver is not ready; soft-RoCE sends a NAK sequence error for the packet behind.
#[test]
fn rnr_naks_come_until_a_receive_is_posted() {
    for (device, build) in DEVICES {
        let outcome = replay::run(&capture("rnr"), &Options::default(), build).unwrap();
        assert_same(device, &outcome);
        let omitted = outcome.comparisons.iter();
        let omitted = omitted.filter(|c| c.result == Match::Omitted).count();
        let counts = outcome.counts;
        assert_eq!(omitted, 38, "{device}");
        // 38 RNR NAKs and 2 ACKs, which may be one.
        assert_eq!(counts.same + counts.coalesced, 40, "{device}");
        assert_eq!(outcome.counts.completions, 2, "{device}");
    }
}

#[test]
fn the_refusal_of_a_long_send_is_the_one_permitted_nak() {
    let outcome = run(&capture("nak_recv_too_small")).unwrap();
    let [answer] = outcome.comparisons.as_slice() else {
        panic!("{:?}", outcome.comparisons);
    };
    assert_eq!(answer.result, Match::Same);
    let nak = answer
        .differences
        .iter()
        .find(|d| d.field == "AETH NAK code");
    let nak = nak.expect("the codes differ");
    assert_eq!(nak.expected, format!("{:?}", NakCode::RemoteOperational));
    assert_eq!(nak.found, format!("{:?}", NakCode::InvalidRequest));
}

/// What the comparison must notice: a recorded answer that is not the right one.
#[test]
fn a_different_answer_is_found() {
    type Change = fn(&mut Headers);
    let changes: [(&str, Change); 7] = [
        ("AETH MSN", |h| h.ext.aeth.as_mut().unwrap().msn += 1),
        ("AETH syndrome", |h| {
            h.ext.aeth.as_mut().unwrap().syndrome = Syndrome::RnrNak { timer: 3 };
        }),
        ("BTH AckReq", |h| h.bth.ack_req = true),
        ("BTH SE", |h| h.bth.solicited = true),
        ("BTH P_Key", |h| h.bth.pkey = 0x7fff),
        ("destination MAC", |h| h.eth.dst.0[5] ^= 1),
        ("BTH FECN", |h| h.bth.fecn = true),
    ];
    for (field, make) in changes {
        let mut recorded = capture("rc_write_imm");
        let number = change(&mut recorded, is_answer, make);
        let outcome = run(&recorded).unwrap();
        let found = |d: &replay::Difference| d.packet == Some(number);
        assert!(
            outcome.differences.iter().any(found),
            "{field}: {:?}",
            outcome.differences
        );
    }
}

#[test]
fn a_missing_answer_and_one_too_many_are_found() {
    let mut recorded = capture("rc_send_multi_3000");
    let last = recorded.packets.iter().rposition(holds_answer).unwrap();
    recorded.packets.remove(last);
    let outcome = run(&recorded).unwrap();
    assert_eq!(outcome.differences.len(), 1, "{:?}", outcome.differences);
    assert_eq!(
        outcome.comparisons.last().unwrap().result,
        Match::Unexpected
    );

    let mut recorded = capture("rc_send_multi_3000");
    let number = change(&mut recorded, is_answer, |h| h.bth.psn = h.bth.psn.next());
    let outcome = run(&recorded).unwrap();
    assert!(outcome.differences.iter().any(|d| d.packet == Some(number)));
}

#[test]
fn a_coalesced_answer_is_no_difference() {
    let mut recorded = capture("rc_send_imm");
    let first = recorded.packets.iter().position(holds_answer).unwrap();
    recorded.packets.remove(first);
    let outcome = run(&recorded).unwrap();
    assert_same("first ACK coalesced by the recorded side", &outcome);
    assert_eq!(
        outcome.counts.added + outcome.counts.same,
        outcome.counts.sent
    );
}

#[test]
fn numbers_outside_the_build_are_mapped() {
    let mut recorded = capture("rc_write_multi_5001");
    for at in 0..recorded.packets.len() {
        let bytes = &recorded.packets[at].data;
        let Ok(Packet {
            mut headers,
            payload,
        }) = Packet::parse(bytes)
        else {
            continue;
        };
        let payload = bytes[payload].to_vec();
        headers.bth.dest_qp += 0xab_0000;
        let mut bytes = vec![0; headers.frame_len(payload.len())];
        headers.build(&payload, &mut bytes).unwrap();
        recorded.packets[at].data = bytes;
    }
    let outcome = run(&recorded).unwrap();
    assert_same("large queue pair numbers", &outcome);
    assert_eq!(outcome.responder.qpn, 0xab_001b);
    assert_eq!(outcome.local_qpn, 0x1b);
}

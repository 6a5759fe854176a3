//! The run, as a function.

use std::sync::atomic::AtomicBool;

use ferroce::demo::{Job, Op, Options, Outcome, Transport, demo};
use ferroce::dut::Dut;
use ferroce_driver::Mtu;
use indicatif::ProgressBar;

fn model() -> Options {
    Options {
        dut: Dut::Model,
        ..Options::default()
    }
}

/// A file in which no two places look alike.
fn file(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect()
}

fn run(options: &Options, file: &[u8]) -> Outcome {
    let job = Job {
        options,
        file,
        pcap: None,
        wave: None,
        interrupt: &AtomicBool::new(false),
        progress: &ProgressBar::hidden(),
    };
    demo(&job).expect("the options are valid")
}

pub(crate) fn figure(outcome: &Outcome, name: &str) -> f64 {
    let mut found = outcome.figures.iter().filter(|figure| figure.name == name);
    let figure = found
        .next()
        .unwrap_or_else(|| panic!("no figure {name}: {outcome:?}"));
    assert!(found.next().is_none(), "two figures {name}");
    figure.value.as_f64()
}

/// The file arrives intact.
pub(crate) fn intact(options: &Options, len: usize) -> Outcome {
    let outcome = run(options, &file(len));
    assert_eq!(outcome.failures, [""; 0], "{options}, {len} bytes");
    assert_eq!(figure(&outcome, "payload_bytes"), len as f64);
    outcome
}

#[test]
fn files_of_every_size_arrive() {
    for mtu in [Mtu::Mtu256, Mtu::Mtu4096] {
        for qps in [1, 3] {
            let bytes = mtu.bytes();
            for len in [0, 1, bytes - 1, bytes, bytes + 1, 2 * bytes, 300_001] {
                let outcome = intact(
                    &Options {
                        mtu,
                        qps,
                        ..model()
                    },
                    len,
                );
                assert_eq!(figure(&outcome, "retransmissions"), 0.0);
            }
        }
    }
}

#[test]
fn every_operation_moves_the_file_on_a_hard_wire() {
    let share = |text: &str| text.parse().unwrap();
    for (op, len) in [
        (Op::Write, 300_001),
        (Op::Read, 300_001),
        (Op::Send, 300_001),
        (Op::Atomic, 4_003),
    ] {
        for hardship in ["0", "5%"] {
            let options = Options {
                op,
                qps: 2,
                loss: share(hardship),
                reorder: share(hardship),
                duplicate: share(hardship),
                corrupt: share(hardship),
                ..model()
            };
            let outcome = intact(&options, len);
            let again = figure(&outcome, "retransmissions");
            assert_eq!(again > 0.0, hardship != "0", "{options}: {again}");
        }
    }
}

#[test]
fn unreliable_transports_lose_whole_messages() {
    for (transport, op) in [
        (Transport::Uc, Op::Write),
        (Transport::Uc, Op::Send),
        (Transport::Ud, Op::Send),
    ] {
        let options = Options {
            transport,
            op,
            ..model()
        };
        assert_eq!(intact(&options, 300_001).missing.0, 0);
        let options = Options {
            loss: "1%".parse().unwrap(),
            reorder: "0.5%".parse().unwrap(),
            ..options
        };
        let (missing, all) = intact(&options, 2 << 20).missing;
        assert!(
            missing > 0 && missing < all,
            "{options}: {missing} of {all}"
        );
    }
}

#[test]
fn a_clean_wire_carries_a_beat_a_cycle() {
    const LEN: usize = 1 << 20;
    let outcome = intact(&model(), LEN);
    let goodput = figure(&outcome, "goodput_bytes_per_cycle");
    assert!((60.0..64.0).contains(&goodput), "{goodput} bytes a cycle");
    assert_eq!(figure(&outcome, "cycles"), (LEN as f64 / goodput).round());
    // 256 packets of the file, the announcement and 32 small messages, and no more ACKs than those.
    let packets = figure(&outcome, "packets");
    assert!((289.0..=578.0).contains(&packets), "{packets} packets");
    assert!(
        figure(&outcome, "write_latency_cycles") >= 25.0,
        "the wire alone takes 25"
    );

    let slow = Options {
        rate: Some(10),
        ..model()
    };
    let goodput = figure(&intact(&slow, LEN), "goodput");
    assert!((9.5..10.0).contains(&goodput), "{goodput} Gb/s on 10 Gb/s");
}

#[test]
fn hardship_does_not_change_the_file() {
    let share = |text: &str| text.parse().unwrap();
    for (hardship, count) in [
        (
            Options {
                loss: share("1%"),
                ..model()
            },
            "lost",
        ),
        (
            Options {
                loss: share("5%"),
                reorder: share("1%"),
                ..model()
            },
            "reordered",
        ),
        (
            Options {
                corrupt: share("1%"),
                ..model()
            },
            "corrupted",
        ),
        (
            Options {
                duplicate: share("2%"),
                ..model()
            },
            "duplicated",
        ),
        (
            Options {
                loss: share("1%"),
                qps: 64,
                mtu: Mtu::Mtu1024,
                ..model()
            },
            "lost",
        ),
        (
            Options {
                loss: share("2%"),
                mtu: Mtu::Mtu256,
                ..model()
            },
            "lost",
        ),
    ] {
        let outcome = intact(&hardship, 2 << 20);
        assert!(figure(&outcome, count) > 0.0, "{hardship}");
        if count != "duplicated" {
            assert!(figure(&outcome, "retransmissions") > 0.0, "{hardship}");
        }
    }
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let options = |seed| Options {
        loss: "3%".parse().unwrap(),
        qps: 2,
        seed,
        ..model()
    };
    let figures = |seed| intact(&options(seed), 500_000).figures;
    assert_eq!(figures(7), figures(7));
    assert_ne!(figures(7), figures(8));
}

#[test]
fn a_wire_that_loses_everything_ends_in_an_error() {
    let lost = Options {
        loss: "100%".parse().unwrap(),
        ..model()
    };
    let outcome = run(&lost, &file(1000));
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    let error = &outcome.failures[0];
    assert!(
        error.contains("sender") || error.contains("receiver"),
        "{error}"
    );
    assert!(
        error.contains("transport retry counter exceeded"),
        "{error}"
    );
    assert!(figure(&outcome, "lost") > 1.0 && figure(&outcome, "retransmissions") > 1.0);
}

#[test]
fn a_run_without_progress_names_the_side_that_waits() {
    let impatient = Options {
        patience: Some(10),
        ..model()
    };
    let error = run(&impatient, &file(1000)).failures.remove(0);
    for part in [
        "no progress for 11 cycles",
        "queue pair 2 has 1 requests outstanding",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn an_interrupt_ends_the_run() {
    let job = Job {
        options: &model(),
        file: &file(1000),
        pcap: None,
        wave: None,
        interrupt: &AtomicBool::new(true),
        progress: &ProgressBar::hidden(),
    };
    let outcome = demo(&job).unwrap();
    assert!(
        outcome.failures[0].starts_with("interrupted"),
        "{outcome:?}"
    );
}

#[test]
fn more_queue_pairs_than_the_build_has_are_a_mistake() {
    let job = |qps| {
        let options = Options { qps, ..model() };
        demo(&Job {
            options: &options,
            file: b"",
            pcap: None,
            wave: None,
            interrupt: &AtomicBool::new(false),
            progress: &ProgressBar::hidden(),
        })
    };
    let error = job(255).unwrap_err();
    assert!(error.is::<ferroce::Usage>(), "{error:?}");
    assert!(format!("{error:#}").contains("give 1 to 253"), "{error:#}");
    assert_eq!(job(253).unwrap().failures, [""; 0]);
}

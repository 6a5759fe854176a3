//! The command: exit codes, files, what it says.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ferroce::report::Report;
use ferroce_sim::pcap;

fn demo(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferroce"))
        .current_dir(dir)
        .arg("demo")
        .args(words)
        .output()
        .unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn report(path: &Path) -> Report {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_run_leaves_a_report_and_a_capture() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("file"), vec![7; 100_000]).unwrap();
    let words =
        "--dut model --file file --qps 2 --loss 1% --seed 5 --report out.json --pcap out.pcapng";
    let words: Vec<_> = words.split(' ').collect();
    let output = demo(dir, &words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("the file is intact") && text.contains("retransmissions"),
        "{text}"
    );
    assert_eq!(names(dir), ["file", "out.json", "out.pcapng"]);

    let report = report(&dir.join("out.json"));
    assert!(report.ok);
    assert_eq!(report.seed, 5);
    assert_eq!(report.command[..2], ["ferroce", "demo"]);
    assert_eq!(report.command[2..], words);
    let figure = |name: &str| {
        let figure = report.figures.iter().find(|figure| figure.name == name);
        figure
            .unwrap_or_else(|| panic!("no figure {name}"))
            .value
            .as_f64()
    };
    assert_eq!(figure("payload_bytes"), 100_000.0);
    let goodput = figure("goodput_bytes_per_cycle");
    assert!((100_000.0 / figure("cycles") - goodput).abs() < 1e-6);

    let capture = pcap::parse(&fs::read(dir.join("out.pcapng")).unwrap()).unwrap();
    assert_eq!(capture.interfaces, ["sender", "receiver"]);
    let sent = capture
        .packets
        .iter()
        .filter(|packet| packet.comments[0].contains(" tx "))
        .count();
    assert_eq!(sent as f64, figure("packets"));
}

#[test]
fn a_failed_run_reports_too() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["--dut", "model", "--loss", "100%", "--report", "out.json"];
    let output = demo(dir.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.starts_with(b"error: "), "{output:?}");
    assert!(!report(&dir.path().join("out.json")).ok);
}

#[test]
fn mistakes_are_one_line_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (words, part) in [
        ("--dut model --file missing", "missing"),
        ("--dut model --file .", "not a regular file"),
        ("--dut model --mtu 300", "256, 512"),
        ("--dut rtl100", "rtl512, rtl64"),
        ("--dut model --qps 300", "1 to 253"),
        ("--dut model --qps 0", "--qps"),
        ("--dut model --loss 101%", "0% to 100%"),
        ("--dut model --wave out.fst", "--dut model"),
        (
            "--dut model --pcap missing/out.pcapng",
            "missing/out.pcapng",
        ),
        ("--dut model --bogus", "--bogus"),
    ] {
        let mut all = vec!["--report", "out.json"];
        all.extend(words.split(' '));
        let output = demo(dir, &all);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert_eq!(text.lines().count(), 1, "{words}: {text}");
        assert!(
            text.starts_with("error: ") && text.contains(part),
            "{words}: {text}"
        );
        assert_eq!(names(dir), [""; 0], "{words}");
    }
    let output = demo(dir, &["--dut", "model", "--report", "missing/out.json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

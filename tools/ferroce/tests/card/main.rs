//! `cargo xtask card`: cards in processes of their own, driven over their sockets, killed, and ended.

mod c_program;
#[path = "../../../../driver/examples/two_cards/exercise.rs"]
mod exercise;
mod guest;
mod lifetime;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use exercise::{operations, outside, pair};
use ferroce_driver::vfio_user::VfioUser;

/// A card in a process.
struct Served {
    child: Child,
    output: BufReader<ChildStdout>,
    socket: PathBuf,
}

impl Served {
    fn start(folder: &Path, dut: &str, name: &str, peer: &str) -> Self {
        let socket = folder.join(name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_ferroce"))
            .args(["simnic", "--dut", dut, "--socket"])
            .arg(&socket)
            .arg("--wire")
            .arg(folder.join(format!("{name}.wire")))
            .arg("--peer")
            .arg(folder.join(format!("{peer}.wire")))
            .arg("--pcap")
            .arg(folder.join(format!("{name}.pcapng")))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("serving"), "{line}");
        Self {
            child,
            output,
            socket,
        }
    }

    fn pair(folder: &Path, duts: [&str; 2]) -> [Self; 2] {
        let [a, b] = duts;
        [
            Self::start(folder, a, "a", "b"),
            Self::start(folder, b, "b", "a"),
        ]
    }

    fn connect(&self) -> VfioUser {
        VfioUser::connect(&self.socket).unwrap()
    }

    /// Ends it without a word: its sockets stay.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM: how it ended and what it said.
    fn end(mut self) -> (ExitStatus, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap(), text)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the programs are that tests start, built by the cargo that builds this, all at once so that nothing is built with
/// other features.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let status = Command::new(env!("CARGO"))
            .args(["build", "-q", "--workspace"])
            .args(["--example", "two_cards", "--example", "one_card"])
            .status();
        assert!(status.unwrap().success());
        let xtask = Path::new(env!("CARGO_BIN_EXE_ferroce"));
        xtask.parent().unwrap().to_owned()
    })
}

/// Builds the verbs library for unmodified programs in `folder`.
fn library(folder: &Path) {
    let status = Command::new(env!("CARGO_BIN_EXE_ferroce"))
        .args(["lib", "--out"])
        .arg(folder)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn counters_of_a_served_card() {
    let folder = tempfile::tempdir().unwrap();
    let cards = Served::pair(folder.path(), ["model", "model"]);
    let name = format!("unix:{}", cards[0].socket.display());
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ferroce"))
            .arg("stats")
            .args(args)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let device = ["-d", name.as_str(), "--ip", "10.0.0.1"];
    let (code, text, error) = run(&[&device[..], &["-I", "0.01", "-c", "3", "-r"]].concat());
    assert_eq!((code, text.lines().count()), (Some(0), 3), "{text}{error}");
    let (code, text, _) = run(&device);
    assert_eq!(code, Some(0));
    let words: Vec<_> = text.split_whitespace().collect();
    assert_eq!(words[..2], ["link", &format!("{name}/1")]);
    let names: Vec<_> = words[2..].iter().step_by(2).copied().collect();
    assert_eq!(names, ferroce_proto::abi::regs::STATS);
    // announcements of both addresses
    let sent = names.iter().position(|n| *n == "tx_exceptions").unwrap();
    assert_eq!(words[2 + 2 * sent + 1], "2", "{text}");
    for (args, part) in [
        (&["-d", "unix:a", "--peek"][..], "no registers to peek at"),
        (&["-d", "card"], "card"),
        (&["-d", "unix:a", "-I", "0"], "--interval 0"),
        (&["-d", "unix:a", "-r"], "--interval"),
    ] {
        let (code, _, error) = run(args);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.contains(part) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn two_processes_and_the_wire_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let cards = Served::pair(folder.path(), ["model", "rtl512"]);
    let (mut a, mut b) = pair(cards[0].connect(), cards[1].connect()).unwrap();
    operations(&mut a, &mut b).unwrap();
    operations(&mut b, &mut a).unwrap();
    outside(&mut a, &b).unwrap();
    drop((a, b));
    for card in cards {
        let socket = card.socket.clone();
        let (status, text) = card.end();
        assert!(status.success(), "{status}: {text}");
        assert!(text.contains(" sent, 0 dropped (no peer)"), "{text}");
        assert!(!socket.exists() && !socket.with_extension("wire").exists());
        let capture = std::fs::read(socket.with_extension("pcapng")).unwrap();
        assert!(capture.len() > 4 * 10_000, "{} bytes", capture.len());
    }
}

#[test]
fn impossible_options_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "text").unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ferroce"))
            .args(["simnic", "--dut", "model", "--socket"])
            .args(args)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&[path.to_str().unwrap()]);
    assert!(text.contains("not a socket"), "{text}");
    let text = run(&["/no/such/folder/a"]);
    assert!(text.contains("its folder exists"), "{text}");
    let text = run(&["x", "--peer", "y"]);
    assert!(text.contains("--wire"), "{text}");
    let text = run(&["x", "--loss", "2"]);
    assert!(text.contains("0% to 100%"), "{text}");
}

#[test]
fn a_part_of_a_simulation_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (file, pci) = (folder.path().join("file"), folder.path().join("pci"));
    std::fs::write(&file, "text").unwrap();
    let [file, pci] = [&file, &pci].map(|path| path.to_str().unwrap());
    for (args, text) in [
        (["--simbricks-pci", file, "--dut", "model"], "not a socket"),
        (
            ["--simbricks-pci", "/no/such/folder/a", "--dut", "model"],
            "its folder exists",
        ),
        (
            ["--simbricks-pci", pci, "--socket", "x"],
            "cannot be used with",
        ),
        (
            ["--simbricks-eth", pci, "--dut", "model"],
            "--simbricks-pci",
        ),
        (
            ["--simbricks-pci", pci, "--simbricks-latency", "0"],
            "0 is not in 1..=1000000000",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_ferroce"))
            .arg("simnic")
            .args(args)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.contains(text) && error.lines().count() == 1,
            "{error}"
        );
    }
}

//! `cargo xtask simnic`: cards in processes of their own, driven over their sockets, killed, and ended.

#[path = "../../../../driver/examples/two_cards/exercise.rs"]
mod exercise;
mod guest;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use exercise::{End, operations, outside, pair};
use ferroce_driver::vfio_user::VfioUser;
use ferroce_driver::{Backend, WcStatus};
use ferroce_proto::abi::regs;

/// Where the cards of a client that is to be killed are.
const VICTIM: &str = "FERROCE_SIMNIC_VICTIM";

/// A card in a process.
struct Served {
    child: Child,
    output: BufReader<ChildStdout>,
    socket: PathBuf,
}

impl Served {
    fn start(folder: &Path, dut: &str, name: &str, peer: &str) -> Self {
        let socket = folder.join(name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
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
        assert!(text.contains(" sent, 0 sent to nobody"), "{text}");
        assert!(!socket.exists() && !socket.with_extension("wire").exists());
        let capture = std::fs::read(socket.with_extension("pcapng")).unwrap();
        assert!(capture.len() > 4 * 10_000, "{} bytes", capture.len());
    }
}

#[test]
fn a_server_that_is_killed_is_missed_by_its_client_and_by_the_peer() {
    let folder = tempfile::tempdir().unwrap();
    let [mut first, second] = Served::pair(folder.path(), ["model", "model"]);
    let mut a = End::open(first.connect(), 1).unwrap();
    let mut b = End::open(second.connect(), 2).unwrap();
    // The shortest timeout: nobody is going to answer.
    a.connect(&b, 1).unwrap();
    b.connect(&a, 1).unwrap();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let wc = b.write(&a).unwrap();
    assert_eq!(wc.status, WcStatus::RetryExcErr);
    assert!(a.write(&b).is_err(), "no completion comes");
    assert_eq!(a.context.backend().read32(regs::MAGIC.into()), u32::MAX);
    drop((a, b));

    // Its sockets are left behind.
    assert!(first.socket.exists());
    let again = Served::start(folder.path(), "model", "a", "b");
    let (mut a, mut b) = pair(again.connect(), second.connect()).unwrap();
    operations(&mut a, &mut b).unwrap();
}

#[test]
fn a_client_that_is_killed_leaves_cards_that_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let cards = Served::pair(folder.path(), ["model", "rtl64"]);
    for _ in 0..3 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["victim", "--exact", "--ignored", "--nocapture"])
            .env(VICTIM, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let going = lines
            .map_while(Result::ok)
            .any(|line| line.contains("going"));
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(going, "it ended before it was killed");
    }
    let (mut a, mut b) = pair(cards[0].connect(), cards[1].connect()).unwrap();
    operations(&mut a, &mut b).unwrap();
}

/// Transfers without end, for [`a_client_that_is_killed_leaves_cards_that_can_be_opened`].
#[test]
#[ignore = "a helper of another test"]
fn victim() {
    let Some(folder) = std::env::var_os(VICTIM).map(PathBuf::from) else {
        return;
    };
    let connect = |name| VfioUser::connect(&folder.join(name)).unwrap();
    let (mut a, mut b) = pair(connect("a"), connect("b")).unwrap();
    println!("going");
    loop {
        operations(&mut a, &mut b).unwrap();
    }
}

#[test]
fn what_cannot_be_is_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "text").unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
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

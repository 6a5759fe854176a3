//! The binaries as processes, each with a card of its own that is served at a socket.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ferroce_sim::vfio_user::pair::ServedPair;
use ferroce_system::process::{self, free_port};
use rustix::process::{Pid, Signal, kill_process};

const DEVINFO: &str = env!("CARGO_BIN_EXE_ferroce-devinfo");
const PINGPONG: &str = env!("CARGO_BIN_EXE_ferroce-rc-pingpong");
const UC_PINGPONG: &str = env!("CARGO_BIN_EXE_ferroce-uc-pingpong");
const UD_PINGPONG: &str = env!("CARGO_BIN_EXE_ferroce-ud-pingpong");
const PERF: &str = env!("CARGO_BIN_EXE_ferroce-perf");
/// Only against hanging.
const LIMIT: Duration = Duration::from_secs(600);

/// Two cards on a wire, each served at a socket.
struct Served {
    // Goes after the sockets in it.
    cards: ServedPair,
    _folder: tempfile::TempDir,
}

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cards = ServedPair::new(folder.path());
        Self {
            cards,
            _folder: folder,
        }
    }

    fn spawn(&self, program: &str, card: &str, options: &str) -> Child {
        let name = self.cards.device(card);
        let mut command = Command::new(program);
        command.args(options.split_whitespace()).args(["-d", &name]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Both sides of a program, which must succeed; what the client prints, and the server.
    fn both(&self, program: &str, options: &str) -> [String; 2] {
        let port = free_port().unwrap();
        let server = self.spawn(program, "b", &format!("{options} -p {port} --ip 10.0.0.2"));
        let client = self.spawn(
            program,
            "a",
            &format!("{options} -p {port} --ip 10.0.0.1 127.0.0.1"),
        );
        [client, server].map(|side| {
            let ended = wait(side);
            let text = String::from_utf8(ended.stdout).unwrap();
            let error = String::from_utf8(ended.stderr).unwrap();
            assert!(ended.status.success(), "{options}: {error}\n{text}");
            text
        })
    }

    /// Each card can be opened; then both end.
    fn assert_open(self) {
        for card in ["a", "b"] {
            let ended = wait(self.spawn(DEVINFO, card, ""));
            let text = String::from_utf8_lossy(&ended.stdout);
            assert!(
                ended.status.success() && text.contains("PORT_ACTIVE"),
                "{text}"
            );
        }
        self.assert_healthy();
    }

    fn assert_healthy(self) {
        self.cards.assert_healthy();
    }
}

fn wait(side: Child) -> Output {
    process::finish(side, LIMIT).unwrap()
}

/// Waits until a side has printed a line more.
fn line(side: &mut Child) -> String {
    let mut text = Vec::new();
    let out = side.stdout.as_mut().unwrap();
    while text.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "the program ended early");
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn signal(side: &Child, signal: Signal) {
    kill_process(Pid::from_child(side), signal).unwrap();
}

#[test]
fn pingpong() {
    let cards = Served::new();
    for (program, options) in [
        (PINGPONG, "-n 20 -s 2000 -c"),
        (PINGPONG, "-n 5 -s 64 -g 1 -e -c"),
        (UC_PINGPONG, "-n 5 -c"),
        (UD_PINGPONG, "-n 5 -e -c"),
    ] {
        for text in cards.both(program, options) {
            assert!(
                text.contains("usec/iter of host time") && text.contains("usec/iter of card time"),
                "{text}"
            );
            assert!(
                text.contains("  remote address:  LID 0x0000, QPN 0x"),
                "{text}"
            );
        }
    }
    cards.assert_healthy();
}

#[test]
fn every_test_of_perf() {
    let cards = Served::new();
    for (test, size) in [
        ("write_bw -s 3000", "3000"),
        ("read_bw -s 3000", "3000"),
        ("send_bw -s 3000 -r 4", "3000"),
        ("atomic_bw", "8"),
        ("send_bw -s 256 -t 4 -b -e", "256"),
        ("write_lat -s 64", "64"),
        ("read_lat -s 64", "64"),
        ("send_lat -s 64", "64"),
        ("atomic_lat", "8"),
    ] {
        let [client, _] = cards.both(PERF, &format!("{test} -n 12 --validate"));
        let rows = client.lines().filter(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(size) && words.next() == Some("12")
        });
        assert_eq!(rows.count(), 2, "{test}: {client}");
    }
    cards.assert_healthy();
}

/// Ctrl-C ends a program in order, and the next one opens the card.
#[test]
fn interrupted() {
    let cards = Served::new();
    let mut server = cards.spawn(PINGPONG, "b", &format!("-p {}", free_port().unwrap()));
    // Its address: it waits for its peer.
    line(&mut server);
    signal(&server, Signal::INT);
    let ended = wait(server);
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(
        ended.stderr,
        b"ferroce-rc-pingpong: interrupted; the card is reset\n"
    );
    cards.assert_open();
}

/// A program that is killed leaves a card that the next can open, and its peer says so.
#[test]
fn killed() {
    let cards = Served::new();
    for (program, options) in [
        (PINGPONG, "-n 1000000 -e"),
        (UD_PINGPONG, "-n 1000000"),
        (PERF, "write_bw -D 100000 -q 2 -b"),
    ] {
        let port = free_port().unwrap();
        let server = cards.spawn(program, "b", &format!("{options} -p {port}"));
        let mut client = cards.spawn(program, "a", &format!("{options} -p {port} 127.0.0.1"));
        // The remote address is printed when the connection stands.
        while !line(&mut client).contains("remote address") {}
        signal(&server, Signal::KILL);
        assert!(!wait(server).status.success());
        let ended = wait(client);
        let text = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{options}: {text}");
        assert_eq!(text.lines().count(), 1, "{options}: {text}");
    }
    cards.assert_open();
}

//! What ends in the middle of transfers: an application by kill -9, a card by reset, a server by kill -9. The peer must
//! get the error that says so, and the next to come finds everything as new.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ferroce_driver::WcStatus;
use ferroce_driver::vfio_user::VfioUser;

use crate::exercise::{End, Peer};
use crate::{Served, programs};

/// Codes of the ACK timeout. An engine's time is slow, so that little of it is long for its peer; the model's is ours,
/// and
/// 0.54 s is long enough for an engine on a busy machine.
fn timeout(dut: &str) -> u8 {
    if dut == "model" { 17 } else { 2 }
}

/// An application in a process of its own, see the example `one_card`.
struct App {
    child: Child,
    orders: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl App {
    fn start(program: &Path, card: &Served, dut: &str) -> Self {
        let mut child = Command::new(program)
            .arg(format!("unix:{}", card.socket.display()))
            .args(["1", &timeout(dut).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let orders = child.stdin.take().unwrap();
        Self {
            child,
            orders,
            output,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn order(&mut self, order: &str, answer: &str) {
        writeln!(self.orders, "{order}").unwrap();
        assert_eq!(self.line(), answer);
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end: whether that was a good one, and its last words.
    fn end(self) -> (bool, String) {
        drop(self.orders);
        let output = self.child.wait_with_output().unwrap();
        // A signal is neither.
        let code = output.status.code().expect("it ends by itself");
        (code == 0, String::from_utf8(output.stderr).unwrap())
    }
}

/// Two cards, the first for applications, the second driven by this process.
struct Stage<'a> {
    program: &'a Path,
    duts: [&'a str; 2],
}

impl Stage<'_> {
    /// An application on `card`, connected to a new end of `peer`; each has written to the other.
    fn connect<'c>(&self, card: &Served, peer: &'c VfioUser) -> (App, End<&'c VfioUser>, Peer) {
        let mut app = App::start(self.program, card, self.duts[0]);
        let mut end = End::open(peer, 2).unwrap();
        let other: Peer = app.line().parse().unwrap();
        end.connect(&other, timeout(self.duts[1])).unwrap();
        writeln!(app.orders, "{}", end.describe().unwrap()).unwrap();
        app.order("write", "wrote Success");
        assert_eq!(end.write(&other).unwrap().status, WcStatus::Success);
        (app, end, other)
    }

    /// The next application finds a card as new.
    fn is_as_new(&self, card: &Served, peer: &VfioUser) {
        let (mut app, _end, _) = self.connect(card, peer);
        app.order("end", "closed");
        assert_eq!(app.end(), (true, String::new()));
    }
}

/// The peer that is gone is noticed, by the error that says so.
fn is_missed(mut end: End<&VfioUser>, other: &Peer) {
    let wc = end.write(other).unwrap();
    assert_eq!(wc.status, WcStatus::RetryExcErr, "{wc:?}");
}

fn ends_are_noticed(duts: [&str; 2]) {
    let program = &programs().join("examples/one_card");
    let folder = tempfile::tempdir().unwrap();
    let [mut card, second] = Served::pair(folder.path(), duts);
    let (stage, peer) = (Stage { program, duts }, second.connect());

    let (mut app, end, other) = stage.connect(&card, &peer);
    app.order("forever", "going");
    app.kill();
    is_missed(end, &other);
    stage.is_as_new(&card, &peer);

    let (mut app, end, other) = stage.connect(&card, &peer);
    app.order("reset", "reset");
    assert_eq!(app.end(), (true, String::new()));
    is_missed(end, &other);
    stage.is_as_new(&card, &peer);

    let (mut app, end, other) = stage.connect(&card, &peer);
    app.order("forever", "going");
    card.kill();
    let (good, words) = app.end();
    assert!(!good && words.contains("the card is gone"), "{words}");
    is_missed(end, &other);
    // Its sockets were left behind, and are taken over.
    assert!(card.socket.exists());
    let card = Served::start(folder.path(), duts[0], "a", "b");
    stage.is_as_new(&card, &peer);
}

#[test]
fn the_end_of_a_models_user_card_or_server_is_noticed() {
    ends_are_noticed(["model", "model"]);
}

#[test]
fn the_end_of_an_engines_user_card_or_server_is_noticed() {
    ends_are_noticed(["rtl64", "model"]);
}

#[test]
fn an_engine_notices_the_end_of_its_peer() {
    ends_are_noticed(["model", "rtl64"]);
}

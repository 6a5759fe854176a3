//! Debian's `rping`, `rdma_server` and `rdma_client`, both sides on a card of their own.

use std::fs::{self, File};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use ferroce_system::packages::{CXX, RDMACM_UTILS, Tool};

use crate::library::{Cards, LIMIT, finish};

const TOOLS: [Tool; 2] = [RDMACM_UTILS, CXX];

/// A server that listens, and the file to which it says what goes wrong.
struct Server {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Server {
    fn start(cards: &Cards, options: &str) -> Self {
        Self::of(cards, "rping", options)
    }

    fn of(cards: &Cards, program: &str, options: &str) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = cards.command("b", program, options);
        command.stderr(File::create(log.path()).unwrap());
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        // The caller that waits for the server's end shows the output of one that ended.
        while !Self::output(&log).contains("listens at port") && child.try_wait().unwrap().is_none()
        {
            assert!(start.elapsed() < LIMIT, "the server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Self { child, log }
    }

    fn output(log: &tempfile::NamedTempFile) -> String {
        fs::read_to_string(log.path()).unwrap()
    }
}

/// Pings of `count` messages; both sides must end well, and the client show all of them.
fn ping(cards: Option<Cards>, server: &str, client: &str, count: usize) {
    let Some(cards) = cards else { return };
    let options = format!("-V -v -C {count}");
    let server = Server::start(&cards, &format!("-s {options} {server}"));
    let client = cards.spawn("a", "rping", &format!("-c {options} {client}"));
    let client = finish(client);
    let Server { child, log } = server;
    let server = finish(child);
    let output = Server::output(&log);
    for side in [&client, &server] {
        assert!(
            side.status.success(),
            "client: {client:?}\nserver: {server:?}\n{output}"
        );
    }
    let text = String::from_utf8(client.stdout).unwrap();
    for n in 0..count {
        let line = format!("ping data: rdma-ping-{n}: ");
        assert!(text.contains(&line), "{text}");
    }
    assert!(output.contains("server DISCONNECT EVENT"), "{output}");
    cards.assert_healthy();
}

#[test]
fn over_ipv4() {
    ping(
        Cards::with(&TOOLS),
        "-a 10.0.0.2 -S 5001",
        "-a 10.0.0.2 -S 5001",
        10,
    );
}

#[test]
fn over_ipv6_to_any_address() {
    ping(
        Cards::with(&TOOLS),
        "-a ::0 -p 5",
        "-a fd00::2 -p 5 -I fd00::1",
        3,
    );
}

#[test]
fn with_queue_pairs_of_the_program() {
    ping(Cards::with(&TOOLS), "-q", "-q -a 10.0.0.2", 3);
}

#[test]
fn on_engines() {
    ping(
        Cards::engines(512, &TOOLS),
        "-a 10.0.0.2 -S 5001",
        "-a 10.0.0.2 -S 5001",
        3,
    );
}

#[test]
fn no_listener_is_there() {
    let Some(cards) = Cards::with(&TOOLS) else {
        return;
    };
    let mut server = Server::start(&cards, "-s -p 1000");
    let client = finish(cards.spawn("a", "rping", "-c -a 10.0.0.2 -p 1001"));
    let text = String::from_utf8_lossy(&client.stderr);
    assert!(text.contains("RDMA_CM_EVENT_REJECTED, error 8"), "{text}");
    assert!(!client.status.success());
    server.child.kill().unwrap();
    finish(server.child);
    cards.assert_healthy();
}

#[test]
fn no_host_has_the_address() {
    let Some(cards) = Cards::with(&TOOLS) else {
        return;
    };
    let client = finish(cards.spawn("a", "rping", "-c -a 10.0.0.9"));
    let text = String::from_utf8_lossy(&client.stderr);
    assert!(
        text.contains("RDMA_CM_EVENT_ADDR_ERROR, error -110"),
        "{text}"
    );
    assert!(!client.status.success());
    cards.assert_healthy();
}

#[test]
fn a_server_serves_one_after_the_other() {
    let Some(cards) = Cards::with(&TOOLS) else {
        return;
    };
    let mut server = Server::start(&cards, "-s -P");
    for _ in 0..3 {
        let client = finish(cards.spawn("a", "rping", "-c -a 10.0.0.2 -C 2 -V"));
        assert!(client.status.success(), "{client:?}");
    }
    server.child.kill().unwrap();
    finish(server.child);
    cards.assert_healthy();
}

/// They make their identifiers in one call, and leave the type of the queue pair to that.
#[test]
fn endpoints_exchange_a_message() {
    let Some(cards) = Cards::with(&TOOLS) else {
        return;
    };
    let server = Server::of(&cards, "rdma_server", "-p 7471");
    let client = finish(cards.spawn("a", "rdma_client", "-s 10.0.0.2 -p 7471"));
    let Server { child, log } = server;
    let server = finish(child);
    let output = Server::output(&log);
    for side in [&client, &server] {
        assert!(
            side.status.success(),
            "client: {client:?}\nserver: {server:?}\n{output}"
        );
    }
    cards.assert_healthy();
}

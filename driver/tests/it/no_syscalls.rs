//! Posting and polling make no system call.

use std::io::Write;
use std::process::Command;

use ferroce_driver::{RecvWr, SendOp, SendWr, Wc};
use ferroce_proto::abi::doorbell;

use crate::setup::{Connected, REMOTE, sge};

const BEGIN: &str = "posting begins";
const END: &str = "posting ended";
const ROUNDS: u32 = 500;

/// Leaves a line in the trace.
fn mark(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

#[test]
fn post_and_poll_make_no_system_call() {
    let log = std::env::temp_dir().join(format!("ferroce-strace-{}", std::process::id()));
    let run = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "no_syscalls::traced", "--ignored"])
        .output();
    let trace = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let reason = match &run {
        Err(e) => format!("strace cannot be started ({e}): install it"),
        Ok(out) if trace.is_empty() => {
            let output = String::from_utf8_lossy(&out.stderr);
            format!("strace cannot trace here: {}", output.trim())
        }
        Ok(out) => {
            assert!(out.status.success(), "{out:?}");
            String::new()
        }
    };
    if !reason.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    let mut lines = trace.lines().skip_while(|line| !line.contains(BEGIN));
    let begin = lines.next().expect("the trace has the beginning");
    let thread = begin.split(' ').next();
    let mut calls = lines.filter(|line| line.split(' ').next() == thread);
    let end = calls.next().expect("the trace goes on");
    assert!(
        end.contains(END),
        "a system call while posting or polling: {end}"
    );
}

#[test]
#[ignore = "run under strace by the test above"]
fn traced() {
    let Connected {
        fake,
        context,
        mut cq,
        mut qp,
        ..
    } = Connected::paged(64);
    let list = [sge(64, 8, 3)];
    let sends = [
        SendWr::new(SendOp::Write(REMOTE), &list).signaled(),
        SendWr::inline(SendOp::Send, b"inline").signaled(),
    ];
    let mut wcs = [Wc::default(); 8];
    let mut round = |round: u32| {
        qp.post_send(&sends).unwrap();
        qp.post_recv(&[RecvWr::new(1, &list)]).unwrap();
        assert!(fake.complete_send(qp.qpn(), 2 * round, 0));
        assert!(fake.complete_send(qp.qpn(), 2 * round + 1, 0));
        assert!(fake.complete_recv(qp.qpn(), round, 0));
        assert_eq!(cq.poll(&mut wcs), 3);
    };
    // The first poll after a queue pair came takes over the table made for it.
    round(0);
    mark(BEGIN);
    (1..ROUNDS).for_each(&mut round);
    mark(END);
    let rung = context.backend().rung(doorbell::sq(qp.qpn()));
    assert_eq!(rung, 2 * ROUNDS, "the doorbell is memory");
}

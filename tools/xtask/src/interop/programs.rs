//! How the programs are called on both sides, and what they must have said in the end.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce_system::process::listens;

use super::card::{OURS, THEIRS};
use super::matrix::{Cell, Family, Ip, Side};

/// Bytes of a message where the program lets choose: several packets at any MTU, with pad bytes.
const SIZE: u32 = 5001;
/// Work that the peer has to do is little, as an engine is slow; with loss enough that frames are lost.
const ITERATIONS: u32 = 20;
const ITERATIONS_WITH_LOSS: u32 = 200;
/// An atomic is two packets only.
const ATOMICS_WITH_LOSS: u32 = 400;
/// A ping is four messages of several packets, one after the other.
const PINGS_WITH_LOSS: u32 = 50;
/// Waves of `mixed` have two or three rounds: that is some hundred.
const ROUNDS_WITH_LOSS: u32 = 300;
/// READs and atomics under way: what either side allows.
const OUTSTANDING: u32 = 4;
/// Code of the ACK timeout where the program lets choose: 0.27 s, as an engine is slow.
const TIMEOUT: u32 = 16;

/// Compiles `mixed` into a folder, with the system's header of verbs.
///
/// # Errors
/// The compiler does not start, or refuses the program.
pub(super) fn compile(folder: &Path) -> Result<()> {
    let source = folder.join("mixed.c");
    fs::write(&source, include_str!("mixed.c")).with_context(|| source.display().to_string())?;
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
    cc.arg(folder.join("mixed")).arg(&source).arg("-libverbs");
    let output = cc.output().context("cannot start cc")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cc refuses mixed.c: {text}");
    Ok(())
}

/// How often the program does what it does.
pub(super) fn iterations(cell: &Cell) -> u32 {
    match (cell.loss, is_atomic(cell)) {
        (false, _) => ITERATIONS,
        (true, _) if cell.program.family == Family::Rping => PINGS_WITH_LOSS,
        (true, _) if cell.program.family == Family::Mixed => ROUNDS_WITH_LOSS,
        (true, false) => ITERATIONS_WITH_LOSS,
        (true, true) => ATOMICS_WITH_LOSS,
    }
}

fn is_atomic(cell: &Cell) -> bool {
    cell.program.name.contains("atomic")
}

/// Bytes of a message.
fn size(cell: &Cell) -> u32 {
    match cell.program.name {
        // A datagram is one packet.
        "ibv_ud_pingpong" => cell.mtu - 3,
        _ if is_atomic(cell) => 8,
        _ => SIZE,
    }
}

/// Index of the GID in the tables of both sides.
pub(super) fn gid_index(ip: Ip) -> u32 {
    match ip {
        Ip::V4 => 1,
        Ip::V6 => 2,
    }
}

/// Where the server of a cell is, as the network of the cards has it.
fn server(cell: &Cell) -> &'static str {
    let at = match cell.side {
        Side::Client => &THEIRS,
        Side::Server => &OURS,
    };
    match cell.ip {
        Ip::V4 => at.ipv4,
        Ip::V6 => at.ipv6,
    }
}

/// Whether the server of a program on this machine has begun to listen: at the TCP port `port`, or as it says in its log.
pub(super) fn is_listening(cell: &Cell, port: u16, log: &Path) -> bool {
    match cell.program.family {
        Family::Rping => {
            fs::read_to_string(log).is_ok_and(|text| text.contains("librdmacm: listens at port"))
        }
        Family::PingPong | Family::Perftest { .. } | Family::Mixed => listens(port),
    }
}

/// Program and arguments of a client of the server at `host` and TCP `port`, or without a host of the server.
pub(super) fn words(cell: &Cell, host: Option<&str>, port: u16) -> Vec<String> {
    let name = cell.program.name;
    let (gid, iterations, size, mtu) = (gid_index(cell.ip), iterations(cell), size(cell), cell.mtu);
    if cell.program.family == Family::Rping {
        let role = if host.is_some() { "-c" } else { "-s" };
        let at = server(cell);
        let text = format!("{name} {role} -a {at} -C {iterations} -S {size} -v -V");
        return text.split(' ').map(str::to_owned).collect();
    }
    let mut text = format!("{name} -p {port} -n {iterations}");
    match cell.program.family {
        // Above.
        Family::Rping => {}
        Family::PingPong => {
            text += &format!(" -g {gid} -s {size} -c");
            if name != "ibv_ud_pingpong" {
                text += &format!(" -m {mtu}");
            }
            // What is posted at a time is shared by the queue pairs of an SRQ.
            text += match name {
                "ibv_srq_pingpong" => " -q 4 -r 64",
                _ => " -r 16",
            };
        }
        Family::Mixed => text += &format!(" -g {gid} -s {size} -m {mtu}"),
        Family::Perftest { .. } => {
            text += &format!(" -F -x {gid} -m {mtu} -u {TIMEOUT}");
            if !is_atomic(cell) {
                text += &format!(" -s {size}");
            }
            if is_atomic(cell) || name.contains("read") {
                text += &format!(" -o {OUTSTANDING}");
            }
        }
    }
    text.split(' ')
        .map(str::to_owned)
        .chain(host.map(str::to_owned))
        .collect()
}

/// Whether a side said that it did all; what is missing.
pub(super) fn check(cell: &Cell, side: Side, text: &str) -> Result<(), String> {
    let iterations = iterations(cell);
    let is_there = match cell.program.family {
        Family::PingPong => {
            if let Some(line) = text.lines().find(|l| l.contains("invalid data")) {
                return Err(format!("says: {}", line.trim()));
            }
            let all = format!("{iterations} iters in ");
            text.lines().any(|line| line.starts_with(&all))
        }
        Family::Perftest { both_show } => {
            let row = [size(cell), iterations].map(|n| n.to_string());
            let is_row = |line: &str| line.split_whitespace().take(2).eq(&row);
            (side == Side::Server && !both_show) || text.lines().any(is_row)
        }
        Family::Mixed => {
            let all = format!("{iterations} rounds, ");
            text.lines().any(|line| line.starts_with(&all))
        }
        Family::Rping => (0..iterations).all(|ping| {
            let side_name = if side == Side::Server { "server " } else { "" };
            let start = format!("{side_name}ping data: rdma-ping-{ping}: ");
            text.lines().any(|line| line.starts_with(&start))
        }),
    };
    match is_there {
        true => Ok(()),
        false => Err(format!("does not say that it did all {iterations}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::matrix::all;

    /// Options that both sides must agree in.
    fn shared(words: &[String]) -> Vec<&String> {
        let port = words.iter().position(|w| w == "-p").unwrap() + 1;
        let words = words.iter().enumerate();
        words
            .filter(|(at, _)| *at != port)
            .map(|(_, w)| w)
            .collect()
    }

    #[test]
    fn the_command_lines_of_both_sides_agree() {
        let by_port = |cell: &Cell| cell.program.family != Family::Rping;
        for cell in all().into_iter().filter(by_port) {
            let server = words(&cell, None, 1000);
            let client = words(&cell, Some("10.0.2.2"), 2000);
            let (host, rest) = client.split_last().unwrap();
            assert_eq!(host, "10.0.2.2");
            assert_eq!(shared(&server), shared(rest), "{cell}");
            assert!(server.contains(&"1000".to_owned()) && rest.contains(&"2000".to_owned()));
            let mtu = server.iter().any(|w| *w == cell.mtu.to_string());
            assert!(mtu || cell.program.name == "ibv_ud_pingpong", "{server:?}");
        }
    }

    #[test]
    fn both_sides_of_rping_name_the_server() {
        for (name, at) in [
            ("rping-client-model-ipv4-1024-clean", "10.0.0.2"),
            ("rping-server-rtl512-ipv6-4096-loss", "fd00::1"),
        ] {
            let cell = cell(name);
            for (host, role) in [(None, "-s"), (Some("10.0.2.2"), "-c")] {
                let text = words(&cell, host, 1000).join(" ");
                let start = format!("rping {role} -a {at} -C {} ", iterations(&cell));
                assert!(text.starts_with(&start), "{text}");
            }
        }
    }

    #[test]
    fn results_of_rping_are_read() {
        let cell = cell("rping-client-model-ipv4-1024-clean");
        let output = |side_name: &str, pings: u32| -> String {
            let line = |n| format!("{side_name}ping data: rdma-ping-{n}: ABC\n");
            (0..pings).map(line).collect()
        };
        assert_eq!(check(&cell, Side::Client, &output("", 20)), Ok(()));
        assert_eq!(check(&cell, Side::Server, &output("server ", 20)), Ok(()));
        assert!(check(&cell, Side::Client, &output("", 19)).is_err());
        assert!(check(&cell, Side::Server, &output("", 20)).is_err());
    }

    fn cell(name: &str) -> Cell {
        let mut cells = all().into_iter();
        cells.find(|c| c.to_string() == name).unwrap()
    }

    #[test]
    fn results_of_ping_pong_are_read() {
        let cell = cell("ibv_rc_pingpong-client-model-ipv4-1024-clean");
        let good = "  local address: ...\n200040 bytes in 0.03 seconds = 51.1 Mbit/sec\n\
                    20 iters in 0.03 seconds = 1564.20 usec/iter\n";
        for side in [Side::Client, Side::Server] {
            assert_eq!(check(&cell, side, good), Ok(()));
            let few = good.replace("20 iters", "19 iters");
            assert!(check(&cell, side, &few).unwrap_err().contains("all 20"));
            let wrong = format!("invalid data in page 1\n{good}");
            assert!(check(&cell, side, &wrong).unwrap_err().contains("page 1"));
        }
        assert!(check(&cell, Side::Server, "").is_err());
    }

    #[test]
    fn results_of_mixed_operations_are_read() {
        let cell = cell("mixed-client-model-ipv6-1024-loss");
        for side in [Side::Client, Side::Server] {
            assert_eq!(check(&cell, side, "300 rounds, 749 operations\n"), Ok(()));
            assert!(check(&cell, side, "mixed: round 7: wrong data of a READ\n").is_err());
        }
    }

    #[test]
    fn results_of_perftest_are_read() {
        let row =
            " #bytes     #iterations    BW peak[MB/sec]\n 5001       20     0.13    0.12    0.01\n";
        let bandwidth = cell("ib_write_bw-server-rtl512-ipv6-4096-clean");
        assert_eq!(check(&bandwidth, Side::Client, row), Ok(()));
        assert_eq!(check(&bandwidth, Side::Server, row), Ok(()));
        assert!(check(&bandwidth, Side::Server, "").is_err());
        let latency = cell("ib_read_lat-client-model-ipv6-4096-clean");
        assert_eq!(check(&latency, Side::Server, ""), Ok(()));
        assert!(check(&latency, Side::Client, "5001 19 1.0").is_err());
        let atomic = cell("ib_atomic_bw-client-model-ipv4-4096-loss");
        assert_eq!(check(&atomic, Side::Client, " 8  400  1.0 "), Ok(()));
    }
}

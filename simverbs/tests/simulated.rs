//! Programs of Debian with a card that is simulated inside of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use ferroce_simverbs::{SONAME, version_script};
use ferroce_system::packages::{CXX, IBVERBS_UTILS, Tool, VERILATOR, ZLIB, check_present};
use ferroce_system::{cache, link, or_skip, process};
use tempfile::TempDir;

/// Only against hanging.
const LIMIT: Duration = Duration::from_secs(300);
const TOOLS: [Tool; 4] = [IBVERBS_UTILS, CXX, VERILATOR, ZLIB];

/// The folder of the shared library, which is linked once a run; `cache` in it leads to the engines of the other tests.
fn folder() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let archive = link::archive("ferroce_simverbs").unwrap();
        link::shared(&archive, &version_script(), SONAME, folder.path()).unwrap();
        let place = folder.path().join("cache");
        fs::create_dir(&place).unwrap();
        symlink(cache::target_dir(""), place.join("ferroce")).unwrap();
        folder
    });
    FOLDER.path()
}

/// Starts a program on card `what` with the last number of its address, and the sockets of its wire in `wires`.
fn spawn(what: &str, wires: &Path, number: u8, program: &str, options: &str) -> Child {
    let [here, peer] = [number, 3 - number].map(|number| wires.join(number.to_string()));
    Command::new(program)
        .args(options.split_whitespace())
        .env("LD_LIBRARY_PATH", folder())
        .env("XDG_CACHE_HOME", folder().join("cache"))
        .env("FERROCE_DEVICE", what)
        .env(
            "FERROCE_WIRE",
            format!("{},{}", here.display(), peer.display()),
        )
        .env("FERROCE_IP", format!("10.0.0.{number}"))
        .env("FERROCE_LOG", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(side: Child) -> Output {
    process::finish(side, LIMIT).unwrap()
}

/// A ping-pong of two processes, each with a card of its own inside.
fn play(what: &str, iters: u32) {
    if or_skip(check_present(&TOOLS)).is_none() {
        return;
    }
    let wires = tempfile::tempdir().unwrap();
    let port = process::free_port().unwrap();
    let options = format!("-g 1 -s 3000 -r 16 -c -n {iters} -p {port}");
    let mut server = spawn(what, wires.path(), 1, "ibv_rc_pingpong", &options);
    process::wait_for_port(&mut server, port, LIMIT).unwrap();
    let options = format!("{options} 127.0.0.1");
    let client = spawn(what, wires.path(), 2, "ibv_rc_pingpong", &options);
    for side in [finish(client), finish(server)] {
        assert!(side.status.success(), "{side:?}");
        let text = String::from_utf8(side.stdout).unwrap();
        let all = format!("{iters} iters in ");
        assert!(text.lines().any(|line| line.starts_with(&all)), "{text}");
    }
    // Cards take their sockets away.
    assert_eq!(fs::read_dir(wires.path()).unwrap().count(), 0);
}

#[test]
fn models_in_two_processes() {
    play("sim:model", 20);
}

#[test]
fn engines_in_two_processes() {
    play("sim:rtl64", 5);
}

#[test]
fn a_card_that_there_is_not_is_refused() {
    if or_skip(check_present(&TOOLS)).is_none() {
        return;
    }
    let wires = tempfile::tempdir().unwrap();
    let side = finish(spawn("sim:other", wires.path(), 1, "ibv_devinfo", ""));
    let output = String::from_utf8_lossy(&side.stderr);
    assert!(
        !side.status.success() && output.contains("sim:rtl512"),
        "{side:?}"
    );
}

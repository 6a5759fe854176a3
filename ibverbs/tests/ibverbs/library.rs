//! The cards that libraries run on, and programs that run with them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ferroce_sim::rtl::build;
use ferroce_sim::vfio_user::pair::ServedPair;
use ferroce_sim::{verilator, vfio_user};
use ferroce_system::packages::{Tool, VERILATOR, ZLIB, check_present};
use ferroce_system::{or_skip, process};
use tempfile::TempDir;

use crate::folder::folder;

/// Only against hanging.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Compiles the program `source` in C against the libraries of `sonames`. Sanitizers watch its accesses, and what the
/// libraries allocate, free and leave behind; the libraries' own accesses are not instrumented.
pub(crate) fn compile(source: &str, sonames: &[&str], program: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-g", "-fsanitize=address,undefined"]);
    cc.args(["-fno-sanitize-recover=all", "-o"]).arg(program);
    cc.arg(format!("{}/{source}", env!("CARGO_MANIFEST_DIR")));
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../ibverbs/tests/ibverbs");
    cc.args(["-I", shared, "-L"]).arg(folder());
    cc.args(sonames.iter().map(|soname| format!("-l:{soname}")));
    let output = cc.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Two cards on a wire.
pub(crate) struct Cards {
    // Goes after the sockets in it.
    pair: ServedPair,
    _folder: TempDir,
}

impl Cards {
    /// Golden models, or `None` with a printed reason if packages are missing.
    pub(crate) fn with(tools: &[Tool]) -> Option<Self> {
        Self::serve(tools, ServedPair::new)
    }

    /// Engines with a data path of `width` bits, or `None` with a printed reason if packages are missing.
    pub(crate) fn engines(width: usize, tools: &[Tool]) -> Option<Self> {
        Self::serve(&[tools, &[VERILATOR, ZLIB]].concat(), |folder| {
            // Built once, for both.
            build::model(width, &verilator::Options::default()).unwrap();
            ServedPair::of(folder, move |dma| {
                vfio_user::card(Some(width), dma).unwrap()
            })
        })
    }

    /// Those that `pair` makes in a folder for their sockets.
    pub(crate) fn serve(tools: &[Tool], pair: impl FnOnce(&Path) -> ServedPair) -> Option<Self> {
        or_skip(check_present(tools))?;
        let folder = tempfile::tempdir().unwrap();
        let pair = pair(folder.path());
        Some(Self {
            pair,
            _folder: folder,
        })
    }

    /// A program on card `a` or `b`, which has the addresses 10.0.0.1 and fd00::1, or 10.0.0.2 and fd00::2.
    pub(crate) fn command(&self, card: &str, program: &str, options: &str) -> Command {
        let (mac, ip) = match card {
            "a" => ("02:00:00:00:00:01", "10.0.0.1,fd00::1"),
            _ => ("02:00:00:00:00:02", "10.0.0.2,fd00::2"),
        };
        let mut command = Command::new(program);
        command
            .args(options.split_whitespace())
            .env("LD_LIBRARY_PATH", folder())
            .env("FERROCE_DEVICE", self.pair.device(card))
            .env("FERROCE_MAC", mac)
            .env("FERROCE_IP", ip)
            .env("FERROCE_LOG", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a program on a card, as [`command`](Self::command) has it.
    pub(crate) fn spawn(&self, card: &str, program: &str, options: &str) -> Child {
        self.command(card, program, options).spawn().unwrap()
    }

    /// Runs a program on card `a`; what it prints.
    pub(crate) fn run(&self, program: &str, options: &str) -> String {
        succeeded(program, self.spawn("a", program, options))
    }

    /// Runs a program as server on card `b` and as client on card `a`, which find each other by `port`.
    pub(crate) fn both(&self, program: &str, options: &str) -> [String; 2] {
        let port = process::free_port().unwrap();
        let options = format!("{options} -p {port}");
        let mut server = self.spawn("b", program, &options);
        process::wait_for_port(&mut server, port, LIMIT).unwrap();
        let client = self.spawn("a", program, &format!("{options} 127.0.0.1"));
        let client = finish(client);
        let server = finish(server);
        for side in [&client, &server] {
            assert!(
                side.status.success(),
                "{program} {options}\nclient: {client:?}\nserver: {server:?}"
            );
        }
        [client, server].map(|side| String::from_utf8(side.stdout).unwrap())
    }

    /// Ends the cards, which must not have failed.
    pub(crate) fn assert_healthy(self) {
        self.pair.assert_healthy();
    }
}

pub(crate) fn finish(side: Child) -> Output {
    process::finish(side, LIMIT).unwrap()
}

/// What a program printed, which must have ended well.
pub(crate) fn succeeded(program: &str, side: Child) -> String {
    let ended = finish(side);
    assert!(ended.status.success(), "{program}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

//! The runner without a guest: against the golden model, and against peers that fail.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use ferroce_system::packages::{CXX, IBVERBS_DEV, IBVERBS_UTILS, RDMACM_UTILS, check_present};
use ferroce_system::{link, or_skip};
use tempfile::TempDir;

use super::matrix::{Cell, all};
use super::peer::{Model, Peer, PeerReport};
use super::programs;
use super::run::{Outcome, Place, Words, run, run_words};

const NAME: &str = "ibv_rc_pingpong-client-model-ipv4-1024-clean";
/// What the program says on either side when it did all.
const GOOD: &str = "20 iters in 0.01 seconds = 1.00 usec/iter";

fn cell(name: &str) -> Cell {
    let mut cells = all().into_iter();
    cells.find(|cell| cell.to_string() == name).unwrap()
}

#[test]
fn programs_run_against_the_model() {
    if or_skip(check_present(&[
        IBVERBS_DEV,
        IBVERBS_UTILS,
        RDMACM_UTILS,
        CXX,
    ]))
    .is_none()
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("lib");
    let archive = link::archive("ferroce_ibverbs").unwrap();
    let script = ferroce_ibverbs::version_script();
    link::shared(&archive, &script, ferroce_ibverbs::SONAME, &library).unwrap();
    let archive = link::archive("ferroce_rdmacm").unwrap();
    let script = ferroce_rdmacm::version_script();
    let (soname, others) = (ferroce_rdmacm::SONAME, [ferroce_ibverbs::SONAME]);
    link::shared_with(&archive, &script, soname, &library, &others).unwrap();
    let logs = folder.path().join("logs");
    let place = Place {
        library: &library,
        sockets: folder.path(),
        logs: &logs,
    };
    let mut peer = Model::new(folder.path(), &library, 1).unwrap();
    programs::compile(folder.path()).unwrap();
    for name in [
        NAME,
        "ibv_ud_pingpong-server-model-ipv6-4096-clean",
        "rping-client-model-ipv6-4096-clean",
        "rping-server-model-ipv4-1024-clean",
        "mixed-client-model-ipv4-1024-clean",
        "mixed-server-model-ipv6-4096-loss",
    ] {
        let outcome = run(&cell(name), &mut peer, &place);
        assert_eq!(outcome.failure, None, "{outcome:?}");
        // At least a packet a message each way.
        let frames = &outcome.frames;
        assert!(frames.sent >= 20 && frames.received >= 20, "{frames:?}");
        for file in ["wire.pcapng", "ours.log", "peer.log", "commands.log"] {
            assert!(outcome.folder.join(file).exists(), "{file}");
        }
    }
}

/// A peer whose program has ended before it began.
struct Fake {
    wire: PathBuf,
    our_wire: PathBuf,
    report: PeerReport,
    is_gone: bool,
    is_prepared: bool,
}

impl Peer for Fake {
    fn name(&self) -> String {
        "a fake".into()
    }

    fn wire(&self) -> &Path {
        &self.wire
    }

    fn our_wire(&self) -> &Path {
        &self.our_wire
    }

    fn prepare(&mut self, _: &Cell) -> Result<()> {
        if !self.is_prepared {
            bail!("the guest did not boot: why\nand all it said");
        }
        Ok(())
    }

    fn is_usable(&self) -> bool {
        self.is_prepared
    }

    fn server(&self) -> (&str, u16) {
        ("127.0.0.1", 1)
    }

    fn listens_at(&self) -> u16 {
        1
    }

    fn our_host(&self) -> &str {
        "127.0.0.1"
    }

    fn start(&mut self, _: &[String], _: bool) -> Result<()> {
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool> {
        if self.is_gone {
            bail!("the guest is gone");
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<PeerReport> {
        if self.is_gone {
            bail!("the guest does not run");
        }
        Ok(self.report.clone())
    }
}

/// Runs `ours` by a shell against a peer; its outcome, and its folder, deleted with the second value.
fn against(ours: &str, change: impl FnOnce(&mut Fake)) -> (Outcome, TempDir) {
    against_in(NAME, ours, change)
}

/// As [`against`], in another cell.
fn against_in(name: &str, ours: &str, change: impl FnOnce(&mut Fake)) -> (Outcome, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut peer = Fake {
        wire: folder.path().join("peer.wire"),
        our_wire: folder.path().join("card.wire"),
        report: PeerReport {
            text: GOOD.into(),
            status: Some(0),
            ..PeerReport::default()
        },
        is_gone: false,
        is_prepared: true,
    };
    change(&mut peer);
    let logs = folder.path().join("logs");
    let place = Place {
        library: folder.path(),
        sockets: folder.path(),
        logs: &logs,
    };
    let words = Words {
        ours: ["sh", "-c", ours].map(str::to_owned).into(),
        theirs: vec![],
        port: 1,
    };
    (run_words(&cell(name), Ok(words), &mut peer, &place), folder)
}

fn failure(outcome: &Outcome) -> &str {
    outcome.failure.as_deref().unwrap()
}

#[test]
fn a_failing_program_is_a_failing_cell_and_leaves_its_files() {
    let (outcome, _folder) = against("echo it broke >&2; exit 3", |_| ());
    let why = failure(&outcome);
    assert!(why.contains("our side ended with 3: it broke"), "{why}");
    let read = |name: &str| fs::read_to_string(outcome.folder.join(name)).unwrap();
    assert_eq!(read("ours.log"), "it broke\n");
    assert_eq!(read("peer.log"), GOOD);
    assert!(read("failure.log").contains("it broke"));
    assert!(read("commands.log").contains("sh -c"));
    assert!(outcome.folder.join("wire.pcapng").exists());

    let (outcome, _folder) = against(&format!("echo {GOOD}"), |peer| {
        peer.report.text = "Failed to modify QP to RTR".into();
        peer.report.status = Some(1);
    });
    let why = failure(&outcome);
    assert!(
        why.contains("the peer ended with 1: Failed to modify"),
        "{why}"
    );

    let (outcome, _folder) = against(&format!("echo {GOOD}"), |peer| peer.report.status = None);
    assert!(failure(&outcome).contains("the peer did not end"));
}

#[test]
fn a_rping_that_did_all_and_ended_badly_is_run_again() {
    let pings = |side_name, pings| -> String {
        let line = |n| format!("{side_name}ping data: rdma-ping-{n}: A\n");
        (0..pings).map(line).collect()
    };
    let ours = format!("echo '{}'", pings("", 20));
    for (count, status, is_cut_off) in [(20, 255, true), (19, 255, false), (20, 254, false)] {
        let (outcome, _folder) = against_in("rping-client-model-ipv4-1024-clean", &ours, |peer| {
            peer.report.text = "rdma_get_cm_event: Bad file descriptor\n".to_owned();
            peer.report.text += &pings("server ", count);
            peer.report.status = Some(status);
        });
        let why = failure(&outcome);
        assert!(
            why.contains(&format!("the peer ended with {status}")),
            "{why}"
        );
        assert_eq!(outcome.is_cut_off, is_cut_off, "{count} pings, {status}");
    }
}

#[test]
fn programs_that_end_well_without_doing_it_fail() {
    let (outcome, _folder) = against("true", |_| ());
    let why = failure(&outcome);
    assert!(
        why.contains("our side does not say that it did all 20"),
        "{why}"
    );
    assert!(why.contains("0 packets were sent and 0 received"), "{why}");
}

#[test]
fn a_peer_that_vanishes_ends_the_cell() {
    let (outcome, folder) = against("exec sleep 100000", |peer| peer.is_gone = true);
    let why = failure(&outcome);
    assert!(why.contains("the guest is gone"), "{why}");
    assert!(!folder.path().join("card").exists(), "the card's socket");
}

#[test]
fn a_guest_that_does_not_boot_is_one_line() {
    let (outcome, _folder) = against("true", |peer| peer.is_prepared = false);
    assert_eq!(failure(&outcome), "the guest did not boot: why");
    assert!(!outcome.is_run);
    let text = fs::read_to_string(outcome.folder.join("failure.log")).unwrap();
    assert!(text.contains("and all it said"));
}

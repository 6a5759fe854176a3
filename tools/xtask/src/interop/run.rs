//! One cell: a card is served, both programs run, and what passed is judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ferroce_system::process::{Running, free_port};

use super::capture::{self, Frames};
use super::card::{OURS, OurCard, Port};
use super::matrix::{Cell, Family, Side};
use super::peer::{Peer, PeerReport};
use super::programs;
use crate::demo::Share;

/// Bounds a cell against hanging only: it takes seconds, with loss on an engine a minute or two.
const LIMIT: Duration = Duration::from_secs(300);
/// When one side has ended the other has as long; it may have to give up on what the first does not answer any more.
const GRACE: Duration = Duration::from_secs(60);
/// Runs of a cell in which one side was cut off.
const TRIES: u32 = 4;
/// Exit status of a rping that did all: its thread asks for a connection event when the main one has taken the channel
/// away already, and says so (rdma-core before its pull request 1622).
const LATE_THREAD: i32 = 255;
/// From one look at both sides to the next.
const LOOK: Duration = Duration::from_millis(20);

/// Where cells are run.
pub(super) struct Place<'a> {
    /// Folder of the verbs library.
    pub library: &'a Path,
    /// Folder of sockets: their paths must be short.
    pub sockets: &'a Path,
    /// Folder of logs and captures, one of each cell in it.
    pub logs: &'a Path,
}

/// What became of a cell.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub cell: Cell,
    /// Why it failed.
    pub failure: Option<String>,
    /// The peer was ready for it.
    pub is_run: bool,
    /// A program that did all did not end well for a reason of its own, or as it gets no answers any more.
    pub is_cut_off: bool,
    /// Runs of the cell, this one included.
    pub tries: u32,
    pub frames: Frames,
    /// Frames lost each way, if the peer counts them.
    pub lost: Option<u64>,
    pub took: Duration,
    /// Its logs and capture.
    pub folder: PathBuf,
}

/// The command lines of both sides.
pub(super) struct Words {
    pub ours: Vec<String>,
    pub theirs: Vec<String>,
    /// Where our server listens.
    pub port: u16,
}

impl Words {
    /// Those of `cell`, against `peer`.
    ///
    /// # Errors
    /// No TCP port is free.
    pub(super) fn of(cell: &Cell, peer: &dyn Peer) -> Result<Self> {
        let port = free_port().context("no TCP port is free")?;
        let (ours, theirs) = match cell.side {
            Side::Client => {
                let (host, there) = peer.server();
                let theirs = programs::words(cell, None, peer.listens_at());
                (programs::words(cell, Some(host), there), theirs)
            }
            Side::Server => {
                let theirs = programs::words(cell, Some(peer.our_host()), port);
                (programs::words(cell, None, port), theirs)
            }
        };
        Ok(Self { ours, theirs, port })
    }
}

/// Runs a cell. What fails is in the outcome.
///
/// A program that has done all ends. If the last acknowledgement that it owed was lost, the other side asks for it in vain:
/// no transport helps against that, and a cell with loss is run again. So is one whose program is unreliable: its
/// last datagram is not sent again if it leaves with the program. And so is one whose rping ended by [`LATE_THREAD`].
pub(super) fn run(cell: &Cell, peer: &mut dyn Peer, place: &Place<'_>) -> Outcome {
    let mut tries = 1;
    loop {
        let words = Words::of(cell, peer);
        let outcome = run_words(cell, words, peer, place);
        if !outcome.is_cut_off || tries == TRIES {
            return Outcome { tries, ..outcome };
        }
        tries += 1;
    }
}

/// As [`run`], with other command lines.
pub(super) fn run_words(
    cell: &Cell,
    words: Result<Words>,
    peer: &mut dyn Peer,
    place: &Place<'_>,
) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome {
        cell: *cell,
        failure: None,
        is_run: false,
        is_cut_off: false,
        tries: 1,
        frames: Frames::default(),
        lost: None,
        took: Duration::ZERO,
        folder: place.logs.join(cell.to_string()),
    };
    let result = words.and_then(|words| outcome.fill(&words, peer, place));
    if let Err(error) = result {
        let text = format!("{error:#}");
        // All of it is in the folder, the table has a line; without a folder it has it all.
        let is_written = fs::write(outcome.folder.join("failure.log"), &text).is_ok();
        let line = text.lines().next().unwrap_or_default().to_owned();
        outcome.failure = Some(if is_written { line } else { text });
    }
    outcome.took = start.elapsed();
    outcome
}

impl Outcome {
    fn fill(&mut self, words: &Words, peer: &mut dyn Peer, place: &Place<'_>) -> Result<()> {
        let folder = self.folder.clone();
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        let at = |name: &str| folder.join(name);
        let lines = [("ours", &words.ours), ("peer", &words.theirs)];
        let lines = lines.map(|(side, words)| format!("{side}: {}\n", words.join(" ")));
        fs::write(at("commands.log"), lines.concat()).context("commands.log")?;

        let port = Port {
            wire: peer.our_wire(),
            peer: peer.wire(),
            pcap: Some(&at("wire.pcapng")),
            loss: Share::default(),
            seed: 0,
        };
        let card = OurCard::start(self.cell.card, &place.sockets.join("card"), &port)?;
        peer.prepare(&self.cell)?;
        self.is_run = true;
        let log = at("ours.log");
        let program =
            |words: &[String]| card.program(&self.cell, words, &OURS, place.library, &log);
        let ready = || programs::is_listening(&self.cell, words.port, &log);
        let ended = both(&self.cell, words, peer, program, ready);
        // What the peer knows is written whatever happened, unless it is gone.
        let report = peer.finish();
        let card_failed = card.end().err();
        if let Ok(report) = &report {
            fs::write(at("peer.log"), &report.text).context("peer.log")?;
            fs::write(at("peer.counters"), &report.notes).context("peer.counters")?;
            self.lost = report.lost;
        }
        let frames = capture::check(&at("wire.pcapng"), OURS.mac);
        self.frames = frames
            .as_ref()
            .map_or_else(|_| Frames::default(), Clone::clone);
        let ours = ended?;
        let judged = self.check(ours, &report?, &log);
        self.is_cut_off &= frames.is_ok() && card_failed.is_none();
        judged?;
        frames?;
        card_failed.map_or(Ok(()), Err)
    }

    /// Whether both sides did all, and nothing wrong passed the wire.
    fn check(&mut self, ours: Option<i32>, report: &PeerReport, log: &Path) -> Result<()> {
        let text = fs::read(log).context("the log of our side")?;
        let text = String::from_utf8_lossy(&text);
        let other = match self.cell.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let sides = [
            ("our side", ours, &*text, self.cell.side),
            ("the peer", report.status, &*report.text, other),
        ];
        let mut faults = vec![];
        let mut did_all = 0;
        for (side_name, status, text, side) in sides {
            match status {
                Some(0) => {
                    let done = programs::check(&self.cell, side, text);
                    did_all += usize::from(done.is_ok());
                    faults.extend(done.err().map(|why| format!("{side_name} {why}")));
                }
                Some(status) => {
                    let is_late = status == LATE_THREAD
                        && self.cell.program.family == Family::Rping
                        && text.contains("rdma_get_cm_event");
                    did_all +=
                        usize::from(is_late && programs::check(&self.cell, side, text).is_ok());
                    let why = last_line(text);
                    faults.push(format!("{side_name} ended with {status}: {why}"));
                }
                None => faults.push(format!("{side_name} did not end: {}", last_line(text))),
            }
        }
        let wrong = &self.frames.wrong;
        let may_lose = self.cell.loss || !self.cell.program.is_reliable;
        let both_did_all = did_all == 2 && !faults.is_empty();
        self.is_cut_off =
            wrong.is_empty() && (both_did_all || may_lose && did_all == 1 && faults.len() == 1);
        if let Some(first) = wrong.first() {
            faults.push(format!("{} wrong packets: {first}", wrong.len()));
        }
        if self.frames.sent == 0 || self.frames.received == 0 {
            let (sent, received) = (self.frames.sent, self.frames.received);
            faults.push(format!("{sent} packets were sent and {received} received"));
        }
        ensure!(faults.is_empty(), "{}", faults.join("; "));
        Ok(())
    }
}

/// Runs both programs, the server first; the exit status of ours, `None` if it was killed.
fn both(
    cell: &Cell,
    words: &Words,
    peer: &mut dyn Peer,
    start: impl Fn(&[String]) -> Result<Running>,
    is_listening: impl Fn() -> bool,
) -> Result<Option<i32>> {
    let began = Instant::now();
    let mut ours;
    match cell.side {
        Side::Client => {
            peer.start(&words.theirs, true)?;
            ours = start(&words.ours)?;
        }
        Side::Server => {
            ours = start(&words.ours)?;
            while !is_listening() && ours.ended()?.is_none() {
                ensure!(began.elapsed() < LIMIT, "our server does not listen");
                sleep(LOOK);
            }
            peer.start(&words.theirs, false)?;
        }
    }
    // Since when one side has ended.
    let mut since = None;
    let mut theirs_ended = false;
    loop {
        theirs_ended = theirs_ended || peer.has_ended().context("while our side ran")?;
        let status = ours.ended()?;
        if let Some(status) = status
            && theirs_ended
        {
            return Ok(status.code());
        }
        if status.is_some() || theirs_ended {
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() > GRACE {
                return Ok(status.and_then(|status| status.code()));
            }
        }
        if began.elapsed() > LIMIT {
            if status.is_some() {
                return Ok(status.and_then(|status| status.code()));
            }
            bail!("no side ended within {LIMIT:?}");
        }
        sleep(LOOK);
    }
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or("it said nothing")
}

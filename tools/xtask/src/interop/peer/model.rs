//! A peer without a guest: the golden model, and our library.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ferroce_system::process::{Running, free_port};

use super::{Peer, PeerReport};
use crate::demo::Share;
use crate::dut::Dut;
use crate::interop::card::{OurCard, Port, THEIRS};
use crate::interop::matrix::Cell;
use crate::interop::programs;

/// A server listens long before.
const LIMIT: Duration = Duration::from_secs(60);

/// The golden model on this machine.
pub(in crate::interop) struct Model {
    folder: PathBuf,
    library: PathBuf,
    wire: PathBuf,
    our_wire: PathBuf,
    seed: u64,
    port: u16,
    cell: Option<Cell>,
    /// Ends before the card.
    program: Option<Running>,
    card: Option<OurCard>,
}

impl Model {
    /// Sockets are in `folder`, as is `mixed`, the verbs library in `library`.
    ///
    /// # Errors
    /// No TCP port is free.
    pub(in crate::interop) fn new(folder: &Path, library: &Path, seed: u64) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            library: library.to_owned(),
            wire: folder.join("peer.wire"),
            our_wire: folder.join("card.wire"),
            seed,
            port: free_port().context("no TCP port is free")?,
            cell: None,
            program: None,
            card: None,
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("peer.log")
    }
}

impl Peer for Model {
    fn name(&self) -> String {
        "the golden model with the library of the project".into()
    }

    fn wire(&self) -> &Path {
        &self.wire
    }

    fn our_wire(&self) -> &Path {
        &self.our_wire
    }

    fn prepare(&mut self, cell: &Cell) -> Result<()> {
        self.program = None;
        // Its sockets are free before the next one takes them.
        self.card = None;
        let port = Port {
            wire: &self.wire,
            peer: &self.our_wire,
            pcap: None,
            loss: cell.lost().parse::<Share>().map_err(anyhow::Error::msg)?,
            seed: self.seed,
        };
        self.card = Some(OurCard::start(
            Dut::Model,
            &self.folder.join("peer"),
            &port,
        )?);
        // Its own time is that of a model, whatever ours is.
        self.cell = Some(Cell {
            card: Dut::Model,
            ..*cell
        });
        Ok(())
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn server(&self) -> (&str, u16) {
        ("127.0.0.1", self.port)
    }

    fn listens_at(&self) -> u16 {
        self.port
    }

    fn our_host(&self) -> &str {
        "127.0.0.1"
    }

    fn start(&mut self, words: &[String], is_server: bool) -> Result<()> {
        let (card, cell) = self
            .card
            .as_ref()
            .zip(self.cell.as_ref())
            .context("no cell")?;
        let mut program = card.program(cell, words, &THEIRS, &self.library, &self.log())?;
        let start = Instant::now();
        let log = self.log();
        let is_listening = || programs::is_listening(cell, self.port, &log);
        while is_server && !is_listening() && program.ended()?.is_none() {
            ensure!(start.elapsed() < LIMIT, "the peer's server does not listen");
            sleep(Duration::from_millis(5));
        }
        self.program = Some(program);
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool> {
        let program = self.program.as_mut().context("no program was started")?;
        Ok(program.ended()?.is_some())
    }

    fn finish(&mut self) -> Result<PeerReport> {
        let mut program = self.program.take().context("no program was started")?;
        let status = program.ended()?;
        drop(program);
        let text = fs::read_to_string(self.log()).context("the log of the peer")?;
        if let Some(card) = self.card.take() {
            card.end()?;
        }
        Ok(PeerReport {
            text,
            status: status.and_then(|status| status.code()),
            ..PeerReport::default()
        })
    }
}

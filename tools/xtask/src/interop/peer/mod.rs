//! The other side: where the same programs run on something else.

mod model;
mod rxe;

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use super::matrix::Cell;

pub(super) use model::Model;
pub(super) use rxe::Rxe;
pub(crate) use rxe::soft_roce;

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Linux soft-RoCE (rdma_rxe) in a guest, with Debian's own library of verbs.
    Rxe,
    /// The golden model on this machine, with the library of the project: no guest is needed.
    Model,
}

/// What is known when its program is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerReport {
    /// What the program said.
    pub text: String,
    /// Exit status; of a program that was killed none.
    pub status: Option<i32>,
    /// Frames that were lost each way, if that is counted.
    pub lost: Option<u64>,
    /// What else may help: counters.
    pub notes: String,
}

/// Another machine, or what stands for one. It runs one program at a time.
pub(super) trait Peer {
    /// What it is, once it has been set up.
    fn name(&self) -> String;

    /// Socket of its end of the wire.
    fn wire(&self) -> &Path;

    /// Socket of our end.
    fn our_wire(&self) -> &Path;

    /// Sets up its port for a cell.
    ///
    /// # Errors
    /// It cannot, or does not answer: in words, with all it said.
    fn prepare(&mut self, cell: &Cell) -> Result<()>;

    /// Whether there is hope for another cell.
    fn is_usable(&self) -> bool;

    /// The host and TCP port by which our client finds its server.
    fn server(&self) -> (&str, u16);

    /// The TCP port at which its server listens, on its own side.
    fn listens_at(&self) -> u16;

    /// The host by which its client finds our server.
    fn our_host(&self) -> &str;

    /// Starts a program; a server listens when this returns, unless it has ended.
    ///
    /// # Errors
    /// As of [`prepare`](Self::prepare).
    fn start(&mut self, words: &[String], is_server: bool) -> Result<()>;

    /// Whether its program has ended.
    ///
    /// # Errors
    /// The peer is gone.
    fn has_ended(&mut self) -> Result<bool>;

    /// Ends its program if it still runs, and tells of it.
    ///
    /// # Errors
    /// As of [`prepare`](Self::prepare).
    fn finish(&mut self) -> Result<PeerReport>;
}

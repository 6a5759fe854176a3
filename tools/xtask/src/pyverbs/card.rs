//! The card that the tests run on, served by a thread of its own. No cable is plugged in: its queue pairs talk to each
//! other.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use ferroce_sim::vfio_user::dma::Dma;
use ferroce_sim::vfio_user::{Server, Stop};

use crate::simnic::Dut;

/// A served card.
pub(super) struct ServedCard {
    socket: PathBuf,
    stop: Stop,
    thread: Option<JoinHandle<Result<Vec<String>>>>,
}

impl ServedCard {
    /// Serves a card at `socket`. It can be opened when this returns.
    pub(super) fn new(socket: &Path, dut: Dut) -> Result<Self> {
        let stop = Stop::new().context("no file descriptor is left")?;
        let (ready, is_ready) = channel();
        let (path, ended) = (socket.to_owned(), stop.clone());
        let thread = thread::spawn(move || serve(&path, dut, &ended, &ready));
        let mut card = Self {
            socket: socket.to_owned(),
            stop,
            thread: Some(thread),
        };
        match is_ready.recv() {
            Ok(()) => Ok(card),
            // Why not is what it ended with.
            Err(_) => Err(card
                .join()
                .err()
                .unwrap_or_else(|| anyhow!("the card is not served"))),
        }
    }

    /// The name by which the driver opens it.
    pub(super) fn device(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// Ends it: what it did that it may not.
    pub(super) fn end(mut self) -> Result<Vec<String>> {
        self.join()
    }

    fn join(&mut self) -> Result<Vec<String>> {
        self.stop.set();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(anyhow!("the thread of the card panicked")),
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for ServedCard {
    fn drop(&mut self) {
        // Who drops it has an error to tell already.
        let _ = self.join();
    }
}

fn serve(socket: &Path, dut: Dut, stop: &Stop, ready: &Sender<()>) -> Result<Vec<String>> {
    let dma = Rc::new(Dma::new(false));
    let card = dut.card(dma.clone())?;
    let mut server = Server::new(socket, card, dma)?;
    // Who asked may have gone.
    let _ = ready.send(());
    server.run(stop)?;
    Ok(server.card().failures())
}

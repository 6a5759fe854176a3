//! Two cards on a wire, each served at a socket by a thread of its own: cards for tests of programs.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::dma::Dma;
use super::wire::DatagramWire;
use super::{Card, Server, Stop};
use crate::link;
use crate::model::DEFAULT_PARAMS;
use crate::remote::RemoteModel;

/// Two served cards, `a` and `b`.
pub struct ServedPair {
    folder: PathBuf,
    cards: Vec<(Stop, JoinHandle<Vec<String>>)>,
}

impl ServedPair {
    /// Serves golden models at sockets in `folder`. They can be opened when this returns.
    ///
    /// # Panics
    /// If the sockets cannot be had.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self::of(folder, |dma| {
            Box::new(RemoteModel::new(DEFAULT_PARAMS, dma))
        })
    }

    /// Serves what `card` makes.
    ///
    /// # Panics
    /// If the sockets cannot be had, or `card` panics.
    #[must_use]
    pub fn of(
        folder: &Path,
        card: impl Fn(Rc<Dma>) -> Box<dyn Card> + Clone + Send + 'static,
    ) -> Self {
        let cards = [("a", "b"), ("b", "a")].map(|(name, peer)| {
            let stop = Stop::new().expect("a file descriptor is left");
            let (folder, ended) = (folder.to_owned(), stop.clone());
            let (ready, is_ready) = channel();
            let card = card.clone();
            let thread = thread::spawn(move || serve(&folder, [name, peer], card, &ended, &ready));
            is_ready.recv().expect("the card is served");
            (stop, thread)
        });
        Self {
            folder: folder.to_owned(),
            cards: cards.into(),
        }
    }

    /// The name by which the driver opens card `a` or `b`.
    #[must_use]
    pub fn device(&self, card: &str) -> String {
        format!("unix:{}", self.folder.join(card).display())
    }

    /// Ends the cards.
    ///
    /// # Panics
    /// If one did what it may not.
    pub fn assert_healthy(self) {
        for (stop, thread) in self.cards {
            stop.set();
            let failures = thread.join().expect("the card is served to the end");
            assert!(failures.is_empty(), "{failures:?}");
        }
    }
}

fn serve(
    folder: &Path,
    [name, peer]: [&str; 2],
    card: impl Fn(Rc<Dma>) -> Box<dyn Card>,
    stop: &Stop,
    ready: &Sender<()>,
) -> Vec<String> {
    let dma = Rc::new(Dma::new(false));
    let card = card(dma.clone());
    let mut server = Server::new(&folder.join(name), card, dma).expect("the socket can be had");
    let at = |name: &str| folder.join(format!("{name}.wire"));
    let wire = DatagramWire::bind(&at(name), Some(&at(peer)), link::Config::default());
    server.plug(wire.expect("the socket of the wire can be had"));
    // Who asked may have gone.
    let _ = ready.send(());
    if let Err(error) = server.run(stop) {
        return vec![error.to_string()];
    }
    server.card().failures()
}

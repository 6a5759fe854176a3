//! Two cards on a wire, each served at a socket by a thread of its own: cards for tests of programs.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::dma::Dma;
use super::served::Served;
use super::wire::DatagramWire;
use super::{Card, ServeError, Server};
use crate::link;
use crate::model::DEFAULT_PARAMS;
use crate::remote::RemoteModel;

/// Two served cards, `a` and `b`.
pub struct ServedPair {
    folder: PathBuf,
    cards: [Served<ServeError>; 2],
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
            let (folder, card) = (folder.to_owned(), card.clone());
            let served = Served::start(move || server(&folder, [name, peer], card));
            served.expect("the sockets can be had")
        });
        Self {
            folder: folder.to_owned(),
            cards,
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
        for card in self.cards {
            let failures = card.end().expect("the card is served to the end");
            assert!(failures.is_empty(), "{failures:?}");
        }
    }
}

fn server(
    folder: &Path,
    [name, peer]: [&str; 2],
    card: impl FnOnce(Rc<Dma>) -> Box<dyn Card>,
) -> Result<Server<Box<dyn Card>>, ServeError> {
    let dma = Rc::new(Dma::new(false));
    let card = card(dma.clone());
    let mut server = Server::new(&folder.join(name), card, dma)?;
    let at = |name: &str| folder.join(format!("{name}.wire"));
    server.plug(DatagramWire::bind(
        &at(name),
        Some(&at(peer)),
        link::Config::default(),
    )?);
    Ok(server)
}

//! A card that a thread serves: for tests of programs, and for tasks that run some.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use super::{Card, ServeError, Server, Stop};

/// A served card. When it is dropped it is served no more.
pub struct Served<E> {
    stop: Stop,
    thread: Option<JoinHandle<Result<Vec<String>, E>>>,
}

impl<E: From<ServeError> + Send + 'static> Served<E> {
    /// Serves what `server` makes, in the thread that serves it. It can be opened when this returns.
    ///
    /// # Errors
    /// That of `server`, or no file descriptor is left.
    ///
    /// # Panics
    /// If `server` panics.
    pub fn start(
        server: impl FnOnce() -> Result<Server<Box<dyn Card>>, E> + Send + 'static,
    ) -> Result<Self, E> {
        let stop = Stop::new().map_err(ServeError::from)?;
        let is_set = stop.clone();
        let (ready, is_ready) = channel();
        let thread = thread::spawn(move || {
            let mut server = server()?;
            // `start` waits for it.
            let _ = ready.send(());
            server.run(&is_set)?;
            Ok(server.card().failures())
        });
        let mut served = Self {
            stop,
            thread: Some(thread),
        };
        if is_ready.recv().is_err() {
            served.join()?;
        }
        Ok(served)
    }

    /// Ends it, its capture is whole then: what the card did that it may not.
    ///
    /// # Errors
    /// It could not be served any longer.
    ///
    /// # Panics
    /// If its thread did.
    pub fn end(mut self) -> Result<Vec<String>, E> {
        self.join()
    }
}

impl<E> Served<E> {
    fn join(&mut self) -> Result<Vec<String>, E> {
        self.stop.set();
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(Vec::new()), |end| {
            end.expect("the thread does not panic")
        })
    }
}

impl<E> Drop for Served<E> {
    fn drop(&mut self) {
        self.stop.set();
        // How it went is asked for by `end`.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

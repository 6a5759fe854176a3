//! Cards served over vfio-user: the driver finds them as it finds any, and no client harms them.

mod clients;
mod driven;
#[path = "../../../driver/examples/two_cards/exercise.rs"]
mod exercise;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::{self, JoinHandle};

use ferroce_sim::link::Config;
use ferroce_sim::rtl::build;
use ferroce_sim::verilator;
use ferroce_sim::vfio_user::dma::Dma;
use ferroce_sim::vfio_user::wire::DatagramWire;
use ferroce_sim::vfio_user::{self, Card, Server, Stop};

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dut {
    Model,
    Rtl(usize),
}

/// A card served by a thread of its own; ended when dropped.
struct Served {
    stop: Stop,
    thread: Option<JoinHandle<Vec<String>>>,
    socket: PathBuf,
}

impl Served {
    /// A card at `name` in a folder, its wire to that of `peer`.
    fn start(folder: &Path, dut: Dut, name: &str, peer: &str) -> Self {
        if let Dut::Rtl(width) = dut {
            // Built once, before anything waits for it.
            build::model(width, &verilator::Options::default()).unwrap();
        }
        let socket = folder.join(name);
        let wires = [name, peer].map(|name| folder.join(format!("{name}.wire")));
        let stop = Stop::new().unwrap();
        let (up, is_up) = std::sync::mpsc::channel();
        let thread = thread::spawn({
            let (socket, stop) = (socket.clone(), stop.clone());
            move || {
                let dma = Rc::new(Dma::new(false));
                let mut server = Server::new(&socket, card(dut, dma.clone()), dma).unwrap();
                let [here, there] = wires;
                let wire = DatagramWire::bind(&here, Some(&there), Config::default()).unwrap();
                server.plug(wire);
                up.send(()).unwrap();
                server.run(&stop).unwrap();
                server.card().failures()
            }
        });
        is_up.recv().expect("the server did not start");
        Self {
            stop,
            thread: Some(thread),
            socket,
        }
    }

    /// Ends it: the rules of its ports that were broken.
    fn end(&mut self) -> Vec<String> {
        self.stop.set();
        let thread = self.thread.take();
        thread.map_or_else(Vec::new, |thread| thread.join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

fn card(dut: Dut, dma: Rc<Dma>) -> Box<dyn Card> {
    let width = match dut {
        Dut::Model => None,
        Dut::Rtl(width) => Some(width),
    };
    vfio_user::card(width, dma).unwrap()
}

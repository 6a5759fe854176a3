//! The verbs library, `libibverbs.so.1`, with a simulated card inside: `FERROCE_DEVICE` is `sim:model`, `sim:rtl512` or
//! `sim:rtl64`, and the process that opens the device simulates it, in a thread of the library. `docs/ibverbs.md` has more.
//!
//! It is a library of its own because it holds the model, the crates that emit the engine, and what compiles it; programs
//! that have a card, or the socket of one, need none of that.

use std::env;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ferroce_driver::{AnyBackend, open};
use ferroce_ibverbs::opener::{self, BoxError, Keep};
use ferroce_sim::link;
use ferroce_sim::vfio_user::dma::Dma;
use ferroce_sim::vfio_user::served::Served;
use ferroce_sim::vfio_user::wire::DatagramWire;
use ferroce_sim::vfio_user::{self, Card, Server};

pub use ferroce_ibverbs::{SONAME, version_script};

/// The sockets of the card's port with a comma between them: its own, and that at the other end of the wire.
const WIRE_VARIABLE: &str = "FERROCE_WIRE";

/// Run by the loader, before a program can ask for a device.
#[allow(
    unsafe_code,
    reason = "a section is named; what stands there is a function as it must be"
)]
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    opener::set_simulated(simulate);
}

/// Starts card `what` and opens it. It is simulated until what is kept is dropped.
fn simulate(what: &str) -> Result<(AnyBackend, Keep), BoxError> {
    let folder = tempfile::tempdir()?;
    let (socket, what) = (folder.path().join("card"), what.to_owned());
    let at = socket.clone();
    let served = Served::<BoxError>::start(move || {
        let dma = Rc::new(Dma::new(false));
        let mut server = Server::new(&at, card(&what, dma.clone())?, dma)?;
        if let Some((here, peer)) = wire() {
            let incoming = link::Config::default();
            server.plug(DatagramWire::bind(&here, peer.as_deref(), incoming)?);
        }
        Ok(server)
    })?;
    // Once it is connected the server takes no other client, and the folder is removed.
    let card = open::open(&format!("unix:{}", socket.display()))?;
    Ok((card, Box::new(served)))
}

fn card(what: &str, dma: Rc<Dma>) -> Result<Box<dyn Card>, BoxError> {
    let width = match what {
        "model" => None,
        "rtl512" => Some(512),
        "rtl64" => Some(64),
        _ => {
            let text = "there is no simulated card of that name; there are sim:model, sim:rtl512 and sim:rtl64";
            return Err(text.into());
        }
    };
    Ok(vfio_user::card(width, dma)?)
}

/// The socket of the port and that of its peer, if there is a wire.
fn wire() -> Option<(PathBuf, Option<PathBuf>)> {
    let text = env::var(WIRE_VARIABLE)
        .ok()
        .filter(|text| !text.is_empty())?;
    Some(match text.split_once(',') {
        Some((here, peer)) => (here.into(), Some(Path::new(peer).to_owned())),
        None => (text.into(), None),
    })
}

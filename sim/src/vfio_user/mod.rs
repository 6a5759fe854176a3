//! A card served over vfio-user: a PCIe device to QEMU, or to a driver that drives the socket itself.
//!
//! One thread does it all, in turns: take messages and frames, step the card, hand out what it made. So simulated time
//! passes between messages, and nothing waits for anything: a write is answered when it comes and reaches the card in its
//! order, a read when the card has answered, and while the card waits for host memory everything is served as ever.
//! A card with nothing to do costs nothing: the thread sleeps until a message, a frame or the card's next timer. See
//! `docs/simnic.md`.

mod client;
pub mod config_space;
pub mod dma;
pub mod irqs;
pub(crate) mod pace;
pub mod pair;
pub mod place;
pub(crate) mod registers;
mod requests;
pub mod served;
mod server;
mod stop;
mod windows;
pub mod wire;

use std::os::fd::AsFd;
use std::rc::Rc;

use ferroce_vfio_user::header::Header;
use ferroce_vfio_user::payload::Region;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::model::DEFAULT_PARAMS;
use crate::nic::Nic;
use crate::remote::{RemoteMemory, RemoteModel};
use crate::rtl::build::{self, BuildError};
use crate::rtl::{Engine, Options, Pins};
use crate::verilator;

use config_space::ConfigSpace;
use dma::Dma;
use irqs::Irqs;
use registers::Registers;

pub use place::PlaceError;
pub use server::{ServeError, Server};
pub use stop::Stop;

/// A card that can be served.
pub trait Card: Nic {
    /// It waits for host memory, and a step does nothing.
    fn is_waiting(&self) -> bool;
}

/// A card that reaches its host's memory: the standard build with a data path of `width` bits, or the golden model.
///
/// # Errors
/// The engine cannot be built.
pub fn card(
    width: Option<usize>,
    memory: Rc<dyn RemoteMemory>,
) -> Result<Box<dyn Card>, BuildError> {
    let Some(width) = width else {
        return Ok(Box::new(RemoteModel::new(DEFAULT_PARAMS, memory)));
    };
    let model = build::model(width, &verilator::Options::default())?;
    let engine = build::remote_engine(&model, memory, &Options::default())?;
    Ok(Box::new(engine))
}

impl Card for RemoteModel {
    fn is_waiting(&self) -> bool {
        Self::is_waiting(self)
    }
}

impl<P: Pins> Card for Engine<P> {
    /// An engine goes on while its bursts are under way.
    fn is_waiting(&self) -> bool {
        false
    }
}

impl<T: Card + ?Sized> Card for Box<T> {
    fn is_waiting(&self) -> bool {
        (**self).is_waiting()
    }
}

/// The device around the card.
struct Device {
    config: ConfigSpace,
    irqs: Irqs,
    msix_table: Vec<u8>,
    /// Each read with its request.
    registers: Registers<(Header, Region)>,
    dma: Rc<Dma>,
}

impl Device {
    fn new(dma: Rc<Dma>) -> Self {
        Self {
            config: ConfigSpace::new(),
            irqs: Irqs::default(),
            msix_table: requests::msix_table(),
            registers: Registers::default(),
            dma,
        }
    }

    /// What the command register says holds.
    fn follow_config(&self) {
        self.dma.open(self.config.is_master());
    }

    /// As a function-level reset leaves it; attached eventfds stay. Replies to the reads that the card now will not
    /// answer.
    fn reset(&mut self) -> Vec<Vec<u8>> {
        self.config = ConfigSpace::new();
        self.irqs.reset();
        self.msix_table = requests::msix_table();
        self.follow_config();
        let unanswered = self.registers.reset();
        unanswered.iter().map(requests::region_reply).collect()
    }
}

/// Whether a descriptor is in a state now.
fn is_now(fd: impl AsFd, state: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), state)];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(state)
}

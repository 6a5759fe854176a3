//! `cargo xtask card`: a card served over vfio-user, to QEMU or to a driver that drives the socket itself.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use ferroce_sim::link;
use ferroce_sim::rate::Rate;
use ferroce_sim::vfio_user::dma::Dma;
use ferroce_sim::vfio_user::wire::DatagramWire;
use ferroce_sim::vfio_user::{self, Card, Server, Stop};

use crate::demo::Share;
use crate::tools;

/// Cycles on the way in: one, as the wire proper is between two processes.
const LATENCY: u64 = 1;

/// Options of the task.
#[derive(Clone, clap::Args)]
pub struct Args {
    /// Where clients connect: QEMU's vfio-user-pci, or the driver.
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Datagram socket of the card's port: one datagram a frame. Without it no cable is plugged in.
    #[arg(long, value_name = "PATH")]
    pub wire: Option<PathBuf>,
    /// Datagram socket at the other end of the wire; that which sends first unless given.
    #[arg(long, value_name = "PATH", requires = "wire")]
    pub peer: Option<PathBuf>,
    /// What is served.
    #[arg(long, value_enum, default_value = "rtl512")]
    pub dut: Dut,
    /// Reach memory that the client shares directly instead of by messages.
    #[arg(long)]
    pub shared_memory: bool,
    /// Capture what passes the port, with simulated time, for Wireshark.
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,
    /// Share of the frames that come in and are lost, such as 1% or 0.01.
    #[arg(long, value_name = "SHARE", default_value_t)]
    pub loss: Share,
    /// Share of the frames that come in and are held back until later ones have passed.
    #[arg(long, value_name = "SHARE", default_value_t)]
    pub reorder: Share,
    /// Share of the frames that come in and have a bit flipped.
    #[arg(long, value_name = "SHARE", default_value_t)]
    pub corrupt: Share,
    /// Share of the frames that come in twice.
    #[arg(long, value_name = "SHARE", default_value_t)]
    pub duplicate: Share,
    /// Seed of what happens to frames.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dut {
    /// The golden model: its behaviour without its timing.
    Model,
    /// The emitted Verilog with a data path of 512 bits.
    Rtl512,
    /// The emitted Verilog with a data path of 64 bits.
    Rtl64,
}

impl Dut {
    /// Bytes of the data path.
    fn lanes(self) -> u32 {
        match self {
            Self::Model | Self::Rtl512 => 64,
            Self::Rtl64 => 8,
        }
    }

    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Rtl512 => "rtl512",
            Self::Rtl64 => "rtl64",
        }
    }

    fn card(self, dma: Rc<Dma>) -> Result<Box<dyn Card>> {
        let width = match self {
            Self::Model => None,
            Self::Rtl512 | Self::Rtl64 => Some(8 * self.lanes() as usize),
        };
        if width.is_some() {
            tools::ensure_present(&[tools::VERILATOR, tools::CXX, tools::ZLIB])?;
        }
        Ok(vfio_user::card(width, dma)?)
    }
}

impl Args {
    /// `dut` at `socket`, and no cable.
    pub fn new(socket: &Path, dut: Dut) -> Self {
        Self {
            socket: socket.to_owned(),
            wire: None,
            peer: None,
            dut,
            shared_memory: false,
            pcap: None,
            loss: Share::default(),
            reorder: Share::default(),
            corrupt: Share::default(),
            duplicate: Share::default(),
            seed: 1,
        }
    }

    /// The card with its wire and capture, ready to be served.
    ///
    /// # Errors
    /// The sockets cannot be had, the card not be built, or the capture not be written.
    pub fn server(&self) -> Result<Server<Box<dyn Card>>> {
        let dma = Rc::new(Dma::new(self.shared_memory));
        let card = self.dut.card(dma.clone())?;
        let mut server = Server::new(&self.socket, card, dma)?;
        if let Some(path) = &self.wire {
            let wire = DatagramWire::bind(path, self.peer.as_deref(), self.incoming())?;
            server.plug(wire);
        }
        if let Some(path) = &self.pcap {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            server.capture("card", BufWriter::new(file))?;
        }
        Ok(server)
    }

    /// What frames meet on their way in.
    fn incoming(&self) -> link::Config {
        link::Config {
            latency: LATENCY,
            rate: Some(Rate::new(self.dut.lanes(), 1)),
            loss: self.loss.chance(),
            reordering: self.reorder.chance(),
            corruption: self.corrupt.chance(),
            duplication: self.duplicate.chance(),
            seed: self.seed,
            ..link::Config::default()
        }
    }
}

/// Runs the task, until it is ended by a signal.
///
/// # Errors
/// The sockets cannot be had, the card not be built, or the capture not be written.
pub fn run(args: &Args) -> Result<()> {
    let mut server = args.server()?;
    let stop = Stop::new().context("no file descriptor is left")?;
    let ended = stop.clone();
    ctrlc::set_handler(move || ended.set()).context("cannot watch for signals")?;

    let dut = args.dut.to_possible_value();
    let dut = dut.as_ref().map_or("a card", |value| value.get_name());
    println!("serving {dut} at {}", args.socket.display());
    server.run(&stop)?;
    let cycles = server.cycles();
    println!("ended after {cycles} cycles");
    if let Some(stats) = server.wire_stats() {
        println!(
            "frames: {} sent, {} dropped (no peer), {} received, {} malformed",
            stats.sent, stats.unplugged, stats.received, stats.bad
        );
    }
    let failures = server.card().failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\nerror: "));
    Ok(())
}

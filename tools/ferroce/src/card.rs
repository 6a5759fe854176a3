//! `cargo xtask card`: a card served over vfio-user, to QEMU or to a driver that drives the socket itself, or a part of a
//! SimBricks simulation.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use ferroce_sim::link;
use ferroce_sim::rate::Rate;
use ferroce_sim::remote::RemoteMemory;
use ferroce_sim::simbricks::{self, Bus, SimbricksError, Simulated};
use ferroce_sim::vfio_user::dma::Dma;
use ferroce_sim::vfio_user::wire::DatagramWire;
use ferroce_sim::vfio_user::{self, Card, Server, Stop};

use crate::Usage;
use crate::demo::Share;
use crate::dut::Dut;

/// Cycles on the way in: one, as the wire proper is between two processes.
const LATENCY: u64 = 1;

/// Options of the task.
#[derive(Clone, clap::Args)]
pub struct Args {
    /// Where clients connect: QEMU's vfio-user-pci, or the driver.
    #[arg(long, value_name = "PATH", required_unless_present = "simbricks_pci")]
    pub socket: Option<PathBuf>,
    /// Where the host of a SimBricks simulation connects, instead of `--socket`.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["socket", "wire", "shared_memory", "loss", "reorder", "corrupt", "duplicate"]
    )]
    pub simbricks_pci: Option<PathBuf>,
    /// Where its network connects. Without it no cable is plugged in.
    #[arg(long, value_name = "PATH", requires = "simbricks_pci")]
    pub simbricks_eth: Option<PathBuf>,
    /// Whether time follows that of its host and network.
    #[arg(
        long,
        value_enum,
        default_value = "offered",
        requires = "simbricks_pci"
    )]
    pub simbricks_sync: Sync,
    /// Nanoseconds that a message takes from the card to its host or network.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000),
        requires = "simbricks_pci"
    )]
    pub simbricks_latency: u64,
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

/// Whether the time of a simulation is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    /// Each simulator runs as fast as it can.
    Off,
    /// With each peer that offers it.
    Offered,
    /// A peer that does not is refused.
    Required,
}

/// The card that is served.
fn card(dut: Dut, memory: Rc<dyn RemoteMemory>) -> Result<Box<dyn Card>> {
    dut.ensure_buildable()?;
    let width = (dut != Dut::Model).then_some(dut.width() as usize);
    Ok(vfio_user::card(width, memory)?)
}

impl Args {
    /// `dut` at `socket`, and no cable.
    pub fn new(socket: &Path, dut: Dut) -> Self {
        Self {
            socket: Some(socket.to_owned()),
            simbricks_pci: None,
            simbricks_eth: None,
            simbricks_sync: Sync::Offered,
            simbricks_latency: 500,
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
        let socket = self.socket.as_deref().context("no socket was given")?;
        let dma = Rc::new(Dma::new(self.shared_memory));
        let card = card(self.dut, dma.clone())?;
        let mut server = Server::new(socket, card, dma)?;
        if let Some(path) = &self.wire {
            let wire = DatagramWire::bind(path, self.peer.as_deref(), self.incoming())?;
            server.plug(wire);
        }
        if let Some(file) = self.capture()? {
            server.capture("card", file)?;
        }
        Ok(server)
    }

    fn capture(&self) -> Result<Option<BufWriter<File>>> {
        let create = |path: &PathBuf| {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(BufWriter::new(file))
        };
        self.pcap.as_ref().map(create).transpose()
    }

    /// What frames meet on their way in.
    fn incoming(&self) -> link::Config {
        link::Config {
            latency: LATENCY,
            rate: Some(Rate::new(self.dut.width() / 8, 1)),
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
    if let Some(pci) = &args.simbricks_pci {
        return simulate(args, pci);
    }
    let mut server = args.server()?;
    let stop = stop_of_signals()?;
    if let Some(socket) = &args.socket {
        println!("serving {} at {}", args.dut.name(), socket.display());
    }
    server.run(&stop)?;
    let cycles = server.cycles();
    println!("ended after {cycles} cycles");
    if let Some(stats) = server.wire_stats() {
        println!(
            "frames: {} sent, {} dropped (no peer), {} received, {} malformed",
            stats.sent, stats.unplugged, stats.received, stats.bad
        );
    }
    ensure_none(&server.card().failures())
}

/// A part of a SimBricks simulation, until its host ends or a signal comes.
fn simulate(args: &Args, pci: &Path) -> Result<()> {
    let plain = |error: SimbricksError| {
        if error.is_usage() {
            Usage(format!("{:#}", anyhow::Error::from(error))).into()
        } else {
            anyhow::Error::from(error)
        }
    };
    let config = simbricks::Config {
        pci: pci.to_owned(),
        eth: args.simbricks_eth.clone(),
        sync: match args.simbricks_sync {
            Sync::Off => simbricks::Sync::Off,
            Sync::Offered => simbricks::Sync::Offered,
            Sync::Required => simbricks::Sync::Required,
        },
        latency_ps: args.simbricks_latency * 1000,
    };
    let bus = Rc::new(Bus::new());
    let card = card(args.dut, bus.clone())?;
    let mut card = Simulated::new(config, card, bus).map_err(plain)?;
    if let Some(file) = args.capture()? {
        card.capture("card", file).map_err(plain)?;
    }
    let stop = stop_of_signals()?;
    println!("serving {} at {}", args.dut.name(), pci.display());
    let report = card.run(&stop).map_err(plain)?;
    println!("ended after {} cycles", report.cycles);
    println!(
        "frames: {} sent, {} dropped (no peer), {} received, {} malformed",
        report.sent, report.unplugged, report.received, report.bad
    );
    ensure_none(&report.failures)
}

/// What SIGINT and SIGTERM set.
fn stop_of_signals() -> Result<Stop> {
    let stop = Stop::new().context("no file descriptor is left")?;
    let ended = stop.clone();
    ctrlc::set_handler(move || ended.set()).context("cannot watch for signals")?;
    Ok(stop)
}

fn ensure_none(failures: &[String]) -> Result<()> {
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\nerror: "));
    Ok(())
}

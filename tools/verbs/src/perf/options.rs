//! Options of `ferroce-perf`.

use anyhow::Result;
use clap::{Parser, ValueEnum, value_parser};
use ferroce_driver::{Backend, Features, Mtu};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::device::{Device, DeviceArgs, parse_mtu};
use crate::program::BadInput;

/// Longest `-D` in seconds.
const LONGEST: f64 = 1e6;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of perftest's programs")]
pub enum Test {
    WriteBw,
    WriteLat,
    ReadBw,
    ReadLat,
    SendBw,
    SendLat,
    AtomicBw,
    AtomicLat,
}

/// Operation of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// SEND.
    Send,
    /// An atomic.
    Atomic,
}

/// Figure of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bytes in a time.
    Bandwidth,
    /// Time of a message.
    Latency,
}

impl Test {
    /// Its operation.
    #[must_use]
    pub fn operation(self) -> Operation {
        match self {
            Self::WriteBw | Self::WriteLat => Operation::Write,
            Self::ReadBw | Self::ReadLat => Operation::Read,
            Self::SendBw | Self::SendLat => Operation::Send,
            Self::AtomicBw | Self::AtomicLat => Operation::Atomic,
        }
    }

    /// Its figure.
    #[must_use]
    pub fn measure(self) -> Measure {
        match self {
            Self::WriteBw | Self::ReadBw | Self::SendBw | Self::AtomicBw => Measure::Bandwidth,
            _ => Measure::Latency,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Transport of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "UPPER")]
pub enum Connection {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
}

/// Which atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Atomic {
    /// Compare and swap.
    CmpAndSwap,
    /// Fetch and add.
    FetchAndAdd,
}

/// Options.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-perf",
    version,
    about = "Bandwidth and latency; without SERVER waits for a client"
)]
pub struct Args {
    /// What to measure
    #[arg(value_enum)]
    pub test: Test,
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// TCP port of the server
    #[arg(short, long, default_value_t = 18515)]
    pub port: u16,
    /// Connection type
    #[arg(short, long, value_enum, ignore_case = true, default_value = "RC")]
    pub connection: Connection,
    /// Path MTU in bytes
    #[arg(short, long, default_value = "1024", value_parser = parse_mtu)]
    pub mtu: Mtu,
    /// Bytes of a message [default: 65536 for bandwidth, 2 for latency; atomics have 8]
    #[arg(short, long)]
    pub size: Option<u32>,
    /// All sizes from 2 to 2^23 bytes
    #[arg(short, long, conflicts_with = "size")]
    pub all: bool,
    /// Messages of a queue pair
    #[arg(short = 'n', long, default_value_t = 1000, conflicts_with = "duration")]
    pub iters: u32,
    /// Run for a time instead of a number of messages; seconds of the card's clock, which may be a fraction
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "all")]
    pub duration: Option<f64>,
    /// Queue pairs (bandwidth)
    #[arg(short, long, default_value_t = 1)]
    pub qp: u32,
    /// Both sides send at a time (bandwidth)
    #[arg(short, long)]
    pub bidirectional: bool,
    /// Sleep on completion events instead of polling
    #[arg(short, long)]
    pub events: bool,
    /// Messages posted at a time on a queue pair
    #[arg(short, long, default_value_t = 128)]
    pub tx_depth: u32,
    /// Receives posted at a time on a queue pair (SEND)
    #[arg(short, long, default_value_t = 512)]
    pub rx_depth: u32,
    /// READs and atomics outstanding on a queue pair
    #[arg(short, long, default_value_t = 16)]
    pub outs: u8,
    /// Messages from one completion to the next (bandwidth)
    #[arg(short = 'Q', long, default_value_t = 100)]
    pub cq_mod: u32,
    /// Largest message that is posted inline
    #[arg(short = 'I', long, value_name = "BYTES", default_value_t = 0)]
    pub inline_size: u32,
    /// Code of the ACK timeout: 4.096 us * 2^code [default: 14; 20 with a simulated card]
    #[arg(short = 'u', long)]
    pub qp_timeout: Option<u8>,
    /// Service level: if not 0, frames have an 802.1Q tag of VLAN 0 with this priority
    #[arg(short = 'S', long, default_value_t = 0, value_parser = value_parser!(u8).range(0..=7))]
    pub sl: u8,
    /// Local GID index
    #[arg(short = 'x', long, short_alias = 'g', default_value_t = 0)]
    pub gid_index: u8,
    /// Atomic to use
    #[arg(short = 'A', long, value_enum, default_value = "FETCH_AND_ADD")]
    pub atomic_type: Atomic,
    /// Report in Gb/s instead of MB/s
    #[arg(long)]
    pub report_gbits: bool,
    /// Do not look for the peak
    #[arg(short = 'N', long)]
    pub no_peak: bool,
    /// Print every time measured (latency)
    #[arg(short = 'U', long)]
    pub report_unsorted: bool,
    /// Check the bytes at the end
    #[arg(long)]
    pub validate: bool,
    /// Accepted for the habit: there is no CPU frequency to check
    #[arg(short = 'F', long = "CPU-freq")]
    pub cpu_freq: bool,
    /// Host of the server
    pub server: Option<String>,
}

impl Args {
    /// Bytes of a message.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        match (self.test.operation(), self.test.measure()) {
            (Operation::Atomic, _) => 8,
            (_, Measure::Bandwidth) => self.size.unwrap_or(65536),
            (_, Measure::Latency) => self.size.unwrap_or(2),
        }
    }

    /// There is a message after `count` of a queue pair; with `-D` that is for the clock to say.
    pub(super) fn goes_on(&self, count: u64) -> bool {
        self.duration.is_some() || count < self.iters.into()
    }

    /// It is time to end a run of `-D`.
    pub(super) fn is_over<B: Backend>(&self, clock: &Clock, device: &Device<B>) -> bool {
        self.duration
            .is_some_and(|duration| clock.card(device) >= duration)
    }

    /// Messages of a turn of a latency test, of which one is timed: there and back, as the peer answers in kind.
    pub(super) fn parts(&self) -> f64 {
        match self.test.operation() {
            Operation::Write | Operation::Send => 2.0,
            Operation::Read | Operation::Atomic => 1.0,
        }
    }

    /// Receives of a queue pair at the start of a run.
    pub(super) fn receives(&self) -> u32 {
        match self.duration {
            Some(_) => self.rx_depth,
            None => self.rx_depth.min(self.iters),
        }
    }

    /// What the limits of the card do not say.
    pub(super) fn check<B: Backend>(&self, device: &Device<B>) -> Result<()> {
        let wrong = self
            .wrong_numbers(device)
            .or_else(|| self.wrong_together(device));
        match wrong {
            Some(wrong) => Err(BadInput(wrong).into()),
            None => device.gid(self.gid_index).map(drop),
        }
    }

    /// A number that cannot be.
    fn wrong_numbers<B: Backend>(&self, device: &Device<B>) -> Option<String> {
        let info = device.context.query_device();
        let (bytes, longest) = (self.bytes(), info.max_msg_size);
        // Numbers 0 and 1 are reserved.
        let qps = info.max_qp - 2;
        let counts = [self.iters, self.tx_depth, self.rx_depth, self.cq_mod];
        let seconds = self.duration.unwrap_or(1.0);
        Some(match () {
            () if counts.contains(&0) => "-n, -t, -r and -Q are at least 1".into(),
            () if bytes == 0 => "a message has at least 1 byte: give another -s".into(),
            () if bytes > longest => format!(
                "a message of {bytes} bytes, the card has at most {longest}: give a smaller -s"
            ),
            () if !(seconds > 0.0 && seconds <= LONGEST) => {
                format!("-D is {seconds} s, possible is more than 0 to {LONGEST} s")
            }
            () if self.qp == 0 || self.qp > qps => {
                format!("-q is {}, possible is 1 to {qps}", self.qp)
            }
            () if self.outs == 0 || self.outs > info.max_rd_atomic.max(1) => {
                let limit = info.max_rd_atomic;
                format!("-o is {}, possible is 1 to {limit}", self.outs)
            }
            () if self.qp_timeout.is_some_and(|code| code > 31) => {
                "-u is a code from 0 to 31".into()
            }
            () => return None,
        })
    }

    /// What does not go together.
    fn wrong_together<B: Backend>(&self, device: &Device<B>) -> Option<String> {
        let features = device.context.query_device().features;
        let (operation, name) = (self.test.operation(), self.test.name());
        let atomic = operation == Operation::Atomic;
        let fetches = atomic || operation == Operation::Read;
        let needed = match operation {
            Operation::Read => Features::READ,
            Operation::Atomic => Features::ATOMIC,
            _ => Features::empty(),
        };
        let latency = self.test.measure() == Measure::Latency;
        let refused = |flag, why| format!("{flag} is not for {name}: {why}");
        Some(match () {
            () if atomic && (self.all || self.size.is_some_and(|size| size != 8)) => {
                "an atomic has 8 bytes: leave out -s and -a".into()
            }
            () if self.connection == Connection::Uc && fetches => {
                "UC has no READs and no atomics: leave out -c UC".into()
            }
            () if !features.contains(needed) => {
                format!("this build of the card has no {operation:?}, only {features}")
            }
            () if self.report_unsorted && !latency => "-U is for latency tests".into(),
            () if self.report_unsorted && self.duration.is_some() => {
                "-U and -D do not go together: times are listed of a number of messages".into()
            }
            () if self.qp > 1 && latency => refused("-q", "latency is of one queue pair"),
            () if self.bidirectional && latency => {
                refused("-b", "latency is of one message at a time")
            }
            () if self.events && self.test == Test::WriteLat => {
                refused("-e", "no completion tells of the peer's WRITE")
            }
            () if self.inline_size > 0 && fetches => refused("-I", "it sends no data"),
            () => return None,
        })
    }
}

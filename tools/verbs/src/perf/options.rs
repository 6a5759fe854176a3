//! Options of `ferroce-perf`.

use anyhow::Result;
use clap::{Parser, ValueEnum};
use ferroce_driver::{Backend, Features, Mtu};
use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceArgs};
use crate::pingpong::parse_mtu;
use crate::program::BadInput;

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
    /// Messages
    #[arg(short = 'n', long, default_value_t = 1000)]
    pub iters: u32,
    /// Messages posted at a time
    #[arg(short, long, default_value_t = 128)]
    pub tx_depth: u32,
    /// Receives posted at a time (SEND)
    #[arg(short, long, default_value_t = 512)]
    pub rx_depth: u32,
    /// READs and atomics outstanding
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

    /// What the limits of the card do not say.
    pub(super) fn check<B: Backend>(&self, device: &Device<B>) -> Result<()> {
        let info = device.context.query_device();
        let operation = self.test.operation();
        let fetches = matches!(operation, Operation::Read | Operation::Atomic);
        let atomic_sizes =
            operation == Operation::Atomic && (self.all || self.size.is_some_and(|size| size != 8));
        let lacks = |feature| !info.features.contains(feature);
        let wrong = match () {
            () if self.iters == 0
                || self.tx_depth == 0
                || self.rx_depth == 0
                || self.cq_mod == 0 =>
            {
                "-n, -t, -r and -Q are at least 1".into()
            }
            () if self.bytes() == 0 => "a message has at least 1 byte: give another -s".into(),
            () if self.bytes() > info.max_msg_size => {
                format!(
                    "a message of {} bytes, the card has at most {}: give a smaller -s",
                    self.bytes(),
                    info.max_msg_size
                )
            }
            () if atomic_sizes => "an atomic has 8 bytes: leave out -s and -a".into(),
            () if self.connection == Connection::Uc && fetches => {
                "UC has no READs and no atomics: leave out -c UC".into()
            }
            () if operation == Operation::Read && lacks(Features::READ)
                || operation == Operation::Atomic && lacks(Features::ATOMIC) =>
            {
                format!(
                    "this build of the card has no {operation:?}, only {}",
                    info.features
                )
            }
            () if self.outs == 0 || self.outs > info.max_rd_atomic.max(1) => {
                format!(
                    "-o is {}, possible is 1 to {}",
                    self.outs, info.max_rd_atomic
                )
            }
            () if self.qp_timeout.is_some_and(|code| code > 31) => {
                "-u is a code from 0 to 31".into()
            }
            () if self.report_unsorted && self.test.measure() == Measure::Bandwidth => {
                "-U is for latency tests".into()
            }
            () => {
                device.gid(self.gid_index)?;
                return Ok(());
            }
        };
        Err(BadInput(wrong).into())
    }
}

//! Options of the ping-pong programs.

use anyhow::Result;
use clap::{Parser, value_parser};
use ferroce_driver::{Mtu, QpType};

use crate::device::{DeviceArgs, parse_mtu};
use crate::program::BadInput;

/// Options of all.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// TCP port of the server
    #[arg(short, long, default_value_t = 18515)]
    pub port: u16,
    /// Bytes of a message [default: 4096; 1024 of datagrams]
    #[arg(short, long)]
    pub size: Option<u32>,
    /// Receives posted at a time
    #[arg(short, long, default_value_t = 500)]
    pub rx_depth: u32,
    /// Exchanges
    #[arg(short = 'n', long, default_value_t = 1000)]
    pub iters: u32,
    /// Service level: if not 0, frames have an 802.1Q tag of VLAN 0 with this priority
    #[arg(short = 'l', long, default_value_t = 0, value_parser = value_parser!(u8).range(0..=7))]
    pub sl: u8,
    /// Sleep on completion events instead of polling
    #[arg(short, long)]
    pub events: bool,
    /// Local GID index
    #[arg(short, long, default_value_t = 0)]
    pub gid_idx: u8,
    /// Check the bytes received
    #[arg(short, long)]
    pub chk: bool,
    /// Host of the server
    pub server: Option<String>,
}

/// Options of `ferroce-rc-pingpong`.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-rc-pingpong",
    version,
    about = "Ping-pong over a reliable connection; without SERVER waits for a client"
)]
pub struct RcArgs {
    /// Of all.
    #[command(flatten)]
    pub common: Common,
    /// Path MTU in bytes
    #[arg(short, long, default_value = "1024", value_parser = parse_mtu)]
    pub mtu: Mtu,
    /// Refused: completions of the card carry no time
    #[arg(short = 't', long)]
    pub ts: bool,
}

/// Options of `ferroce-uc-pingpong`.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-uc-pingpong",
    version,
    about = "Ping-pong over an unreliable connection; without SERVER waits for a client"
)]
pub struct UcArgs {
    /// Of all.
    #[command(flatten)]
    pub common: Common,
    /// Path MTU in bytes
    #[arg(short, long, default_value = "1024", value_parser = parse_mtu)]
    pub mtu: Mtu,
}

/// Options of `ferroce-ud-pingpong`.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-ud-pingpong",
    version,
    about = "Ping-pong by datagrams; without SERVER waits for a client"
)]
pub struct UdArgs {
    /// Of all.
    #[command(flatten)]
    pub common: Common,
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Args {
    /// Transport.
    pub qp_type: QpType,
    /// Path MTU; of datagrams the longest.
    pub mtu: Mtu,
    /// Bytes of a message.
    pub size: u32,
    /// The rest.
    pub common: Common,
}

impl TryFrom<RcArgs> for Args {
    type Error = anyhow::Error;

    fn try_from(args: RcArgs) -> Result<Self> {
        if args.ts {
            return Err(
                BadInput("completions of the card carry no time: leave out -t".into()).into(),
            );
        }
        Ok(Self::new(QpType::Rc, args.mtu, 4096, args.common))
    }
}

impl From<UcArgs> for Args {
    fn from(args: UcArgs) -> Self {
        Self::new(QpType::Uc, args.mtu, 4096, args.common)
    }
}

impl From<UdArgs> for Args {
    fn from(args: UdArgs) -> Self {
        Self::new(QpType::Ud, Mtu::Mtu4096, 1024, args.common)
    }
}

impl Args {
    /// Messages of `usual` bytes unless asked for others.
    fn new(qp_type: QpType, mtu: Mtu, usual: u32, common: Common) -> Self {
        Self {
            qp_type,
            mtu,
            size: common.size.unwrap_or(usual),
            common,
        }
    }

    /// What a queue pair would not say better; `max_msg_size` is the card's.
    pub(super) fn check(&self, max_msg_size: u32) -> Result<()> {
        let Common {
            iters, rx_depth, ..
        } = self.common;
        let longest = match self.qp_type {
            QpType::Ud => self.mtu.bytes() as u32,
            _ => max_msg_size,
        };
        let wrong = match () {
            () if iters == 0 || rx_depth == 0 => "-n and -r are at least 1".into(),
            () if self.size == 0 || self.size > longest => {
                let (size, qp_type) = (self.size, self.qp_type);
                format!("-s is {size}, a message over {qp_type} has 1 to {longest} bytes")
            }
            () => return Ok(()),
        };
        Err(BadInput(wrong).into())
    }
}

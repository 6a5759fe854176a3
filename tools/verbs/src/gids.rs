//! `ferroce-show-gids`: the addresses of a card, as `show_gids`.

use std::io::Write;
use std::net::IpAddr;

use anyhow::Result;
use clap::Parser;
use ferroce_driver::Backend;

use crate::device::{Device, DeviceArgs};
use crate::devinfo::gids;

/// Options.
#[derive(Clone, Debug, Parser)]
#[command(name = "ferroce-show-gids", version, about = "The GID table of a card")]
pub struct Args {
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Prints the GID table.
///
/// # Errors
/// The output is closed.
pub fn run<B: Backend>(device: &Device<B>, _: &Args, out: &mut impl Write) -> Result<()> {
    writeln!(out, "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV")?;
    writeln!(
        out,
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---"
    )?;
    let mut found = 0;
    for (index, gid) in gids(device) {
        let ipv4 = match gid.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(_) => String::new(),
        };
        writeln!(
            out,
            "{}\t1\t{index}\t{gid}\t{ipv4:<12}\tv2\t{}",
            device.name,
            device.context.mac()
        )?;
        found += 1;
    }
    writeln!(out, "n_gids_found={found}")?;
    Ok(())
}

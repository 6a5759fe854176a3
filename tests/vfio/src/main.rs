//! What a test has a guest check about `driver::vfio`: `vfio-checks CHECK ADDRESS ...`.
//!
//! The device is QEMU's `edu`: it copies between memory and a buffer of its own, and raises an interrupt on request.

mod edu;
mod memory;

use std::io::{BufRead, stdin};

use anyhow::{Context, Result, bail, ensure};
use ferroce_driver::vfio::{Vfio, VfioError};
use ferroce_driver::{Backend, BackendError, OpenError};

use memory::Memory;

fn main() -> Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["edu", address] => edu::check(&Vfio::open(address)?),
        ["device-memory", address, file] => edu::check_device_memory(&Vfio::open(address)?, file),
        ["error", address, expected] => error(address, expected),
        ["bar", address] => bar(address),
        ["limit", address] => limit(address),
        ["hold", address] => hold(address),
        _ => bail!("no such check: {words:?}"),
    }
}

/// Opening fails with the error named `expected`.
fn error(address: &str, expected: &str) -> Result<()> {
    let Err(error) = Vfio::open(address) else {
        bail!("{address} was opened, expected {expected}");
    };
    println!("{error}");
    let found = match error {
        VfioError::Address { .. } => "Address",
        VfioError::Absent { .. } => "Absent",
        VfioError::NoIommu { .. } => "NoIommu",
        VfioError::Driver { .. } => "Driver",
        VfioError::NoRights { .. } => "NoRights",
        VfioError::Busy { .. } => "Busy",
        VfioError::NotViable { .. } => "NotViable",
        other => bail!("an error without a check: {other:?}"),
    };
    ensure!(found == expected, "{found} instead of {expected}");
    Ok(())
}

/// A device whose BAR is too small for the card's registers is named as such.
fn bar(address: &str) -> Result<()> {
    match ferroce_driver::Context::open(Vfio::open(address)?) {
        Err(error @ OpenError::Bar { found, .. }) => {
            println!("{error}");
            ensure!(found == edu::BAR_BYTES, "BAR0 has {found} bytes");
            Ok(())
        }
        Err(other) => bail!("another error: {other}"),
        Ok(_) => bail!("edu was taken for a card"),
    }
}

/// More memory than the process may lock is refused, less is mapped.
fn limit(address: &str) -> Result<()> {
    let card = Vfio::open(address)?;
    let memory = Memory::low(1 << 20)?;
    match memory.map(&card) {
        Err(error @ BackendError::MemoryLimit { limit: Some(_), .. }) => println!("{error}"),
        other => bail!("1 MiB over the limit: {other:?}"),
    }
    let page = Memory::high(card.page_size())?;
    page.map(&card).context("a page within the limit")?;
    page.unmap(&card)?;
    Ok(())
}

/// Keeps the card and 8 MiB of memory until a line is read, or for good.
fn hold(address: &str) -> Result<()> {
    let card = Vfio::open(address)?;
    let memory = Memory::low(8 << 20)?;
    memory.map(&card)?;
    edu::start_endless(&card, &memory);
    println!("holding");
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    drop(card);
    println!("dropped");
    Ok(())
}

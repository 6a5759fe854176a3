//! `ferroce-stats`: the counters of a card, once or live, as `rdma statistic`. A card that is not in use answers its
//! neighbours meanwhile, and can be a network interface of the kernel by a TAP device.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use ferroce_driver::{Backend, Peek, Tap};

use crate::device::{Device, DeviceArgs};
use crate::program::{BadInput, check_interrupt};

/// Options.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-stats",
    version,
    about = "Counters of a card, once or live"
)]
pub struct Args {
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Read the registers of a card in hardware that a program uses (needs root)
    #[arg(long)]
    pub peek: bool,
    /// Seconds from one line to the next; without it there is one line
    #[arg(short = 'I', long, value_name = "SECONDS")]
    pub interval: Option<f64>,
    /// Lines; without it until Ctrl-C
    #[arg(short = 'c', long, requires = "interval")]
    pub count: Option<u32>,
    /// Only counters that changed since the line before, with the change a second
    #[arg(short = 'r', long, requires = "interval")]
    pub rates: bool,
    /// Make the card a network interface of this name (needs CAP_NET_ADMIN; %d becomes a free number)
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "peek",
        requires = "interval"
    )]
    pub tap: Option<String>,
}

type Counters = Vec<(&'static str, u64)>;

/// Prints counters of a card, which is this program's.
///
/// # Errors
/// Bad input; Ctrl-C, unless it ends a run without `--count`; the output is closed.
pub fn run<B: Backend>(device: &mut Device<B>, args: &Args, out: &mut impl Write) -> Result<()> {
    if let Some(name) = &args.tap {
        let tap = Tap::new(name, device.context.mac(), 1500)?;
        writeln!(out, "network interface {}", tap.name())?;
        device.neighbours.bridge(tap)?;
    }
    let name = device.name.clone();
    print(&name, args, out, |until| {
        while Instant::now() < until {
            device.idle()?;
        }
        Ok(device.context.statistics())
    })
}

/// Prints counters of a card in hardware that another program uses.
///
/// # Errors
/// As of [`run`]; no such card, or no right to its registers.
pub fn peek(args: &Args, out: &mut impl Write) -> Result<()> {
    let name = args.device.name()?;
    if name.contains('/') || name.starts_with("unix:") {
        let text = format!(
            "`{name}` has no registers to peek at: give the PCI address of a card, as 0000:01:00.0"
        );
        return Err(BadInput(text).into());
    }
    let registers = Peek::open(&name)?;
    print(&name, args, out, |until| {
        while let Some(left) = until
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            check_interrupt()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(registers.statistics())
    })
}

/// Prints lines, each with what `read` finds at its time.
fn print(
    name: &str,
    args: &Args,
    out: &mut impl Write,
    mut read: impl FnMut(Instant) -> Result<Counters>,
) -> Result<()> {
    let Some(seconds) = args.interval else {
        return line(out, name, &read(Instant::now())?);
    };
    if !(0.01..=86_400.0).contains(&seconds) {
        return Err(BadInput(format!(
            "an interval of {seconds} s, possible is 0.01 to 86400"
        ))
        .into());
    }
    let interval = Duration::from_secs_f64(seconds);
    let mut next = Instant::now();
    let mut before: Option<Counters> = None;
    for turn in 0u64.. {
        if args.count.is_some_and(|count| turn >= count.into()) {
            break;
        }
        let found = match read(next) {
            // The way to end it.
            Err(e) if e.is::<crate::program::Interrupted>() && args.count.is_none() => break,
            other => other?,
        };
        match &before {
            Some(before) if args.rates => changes(out, name, before, &found, seconds)?,
            _ => line(out, name, &found)?,
        }
        out.flush()?;
        before = Some(found);
        next += interval;
    }
    Ok(())
}

fn line(out: &mut impl Write, name: &str, counters: &Counters) -> Result<()> {
    write!(out, "link {name}/1")?;
    for (counter, value) in counters {
        write!(out, " {counter} {value}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn changes(
    out: &mut impl Write,
    name: &str,
    before: &Counters,
    now: &Counters,
    seconds: f64,
) -> Result<()> {
    write!(out, "link {name}/1")?;
    for ((counter, value), (_, old)) in now.iter().zip(before) {
        let change = value.wrapping_sub(*old);
        if change > 0 {
            write!(
                out,
                " {counter} {value} (+{:.0}/s)",
                change as f64 / seconds
            )?;
        }
    }
    writeln!(out)?;
    Ok(())
}

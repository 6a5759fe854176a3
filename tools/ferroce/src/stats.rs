//! `ferroce stats`: the counters of a card, once or live, as `rdma statistic`. A card that is not in use answers its
//! neighbours meanwhile, and can be a network interface of the kernel by a TAP device.

use std::io::{Write, stdout};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ferroce_driver::{AnyBackend, Backend, Context, Mac, NeighbourConfig, Neighbours};
use ferroce_driver::{Peek, Tap, open};

use crate::Usage;

/// Ctrl-C was pressed.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Options of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Card: PCI address of one bound to vfio-pci (0000:01:00.0), or unix:PATH of a served one; $FERROCE_DEVICE, or the only
    /// card bound to vfio-pci, unless given.
    #[arg(short, long, value_name = "CARD")]
    device: Option<String>,
    /// MAC address of the card; made from the names of host and card unless given.
    #[arg(long, value_name = "MAC", value_parser = open::parse_mac)]
    mac: Option<Mac>,
    /// Address of the card, GID 1 and up in the order given; GID 0 is the link-local address of the MAC.
    #[arg(long = "ip", value_name = "ADDRESS")]
    ips: Vec<IpAddr>,
    /// Read the registers of a card in hardware that a program uses (needs root).
    #[arg(long)]
    peek: bool,
    /// Seconds from one line to the next; without it there is one line.
    #[arg(short = 'I', long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// Lines; without it until Ctrl-C.
    #[arg(short, long, value_name = "N", requires = "interval")]
    count: Option<u32>,
    /// Only counters that changed since the line before, with the change a second.
    #[arg(short, long, requires = "interval")]
    rates: bool,
    /// Make the card a network interface of this name (needs CAP_NET_ADMIN; %d becomes a free number).
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "peek",
        requires = "interval"
    )]
    tap: Option<String>,
}

/// Counters and their names.
type Counters = Vec<(&'static str, u64)>;

/// Runs the command.
///
/// # Errors
/// [`Usage`]: a mistake of the caller; else why the card cannot be used, or the output is closed.
pub fn run(args: &Args) -> Result<()> {
    let interval = args.interval.map(interval).transpose()?;
    let name = name(args)?;
    let out = &mut stdout();
    let lines = Lines {
        name: &name,
        interval,
        count: args.count,
        rates: args.rates,
    };
    ctrlc::set_handler(|| ENDED.store(true, Ordering::Relaxed))
        .context("cannot watch for signals")?;
    if args.peek {
        let registers = Peek::open(&name)?;
        return lines.print(out, |until| {
            while Instant::now() < until && !ENDED.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(10));
            }
            registers.statistics()
        });
    }
    let backend = open::open(&name).map_err(|error| match error {
        open::OpenDeviceError::Form { .. } => Usage(error.to_string()).into(),
        other => anyhow::Error::from(other),
    })?;
    let (context, mut neighbours) = start(&name, backend, args)?;
    if let Some(tap) = &args.tap {
        let tap = Tap::new(tap, context.mac(), 1500)?;
        writeln!(out, "network interface {}", tap.name())?;
        neighbours.bridge(tap)?;
    }
    lines.print(out, |until| {
        while Instant::now() < until && !ENDED.load(Ordering::Relaxed) {
            if neighbours.poll() == 0 {
                context.backend().relax();
                sleep(Duration::from_micros(20));
            }
        }
        context.statistics()
    })
}

/// Name of the card.
fn name(args: &Args) -> Result<String, Usage> {
    let name = args.device.clone().or_else(open::chosen_device);
    let name = name.ok_or_else(|| {
        Usage(format!(
            "no card, or more than one, is bound to vfio-pci here: name one by -d or in ${}, {}",
            open::DEVICE_VARIABLE,
            open::FORMS
        ))
    })?;
    if args.peek && (name.contains('/') || name.starts_with("unix:")) {
        return Err(Usage(format!(
            "{name} has no registers to peek at: give the PCI address of a card, as 0000:01:00.0"
        )));
    }
    Ok(name)
}

/// Time from line to line.
fn interval(seconds: f64) -> Result<Duration, Usage> {
    if (0.01..=86_400.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Usage(format!(
        "--interval {seconds}: 0.01 to 86400 seconds"
    )))
}

/// The card with its addresses, and what answers its neighbours.
fn start(
    name: &str,
    backend: AnyBackend,
    args: &Args,
) -> Result<(Context<AnyBackend>, Neighbours<AnyBackend>)> {
    let context = Context::open(backend).with_context(|| name.to_owned())?;
    let mac = args.mac.unwrap_or_else(|| open::default_mac(name));
    context.set_mac(mac)?;
    for (index, gid) in open::gids(mac, &args.ips) {
        let set = context.set_gid(index, gid);
        set.map_err(|e| Usage(format!("--ip {}: {e}", gid.ip())))?;
    }
    let config = NeighbourConfig::default();
    let mut neighbours = Neighbours::new(&context, config).with_context(|| name.to_owned())?;
    neighbours.announce();
    Ok((context, neighbours))
}

/// How lines are printed.
struct Lines<'a> {
    name: &'a str,
    interval: Option<Duration>,
    count: Option<u32>,
    rates: bool,
}

impl Lines<'_> {
    /// Prints lines, each with what `read` finds at its time.
    fn print(&self, out: &mut impl Write, mut read: impl FnMut(Instant) -> Counters) -> Result<()> {
        let Some(interval) = self.interval else {
            return self.line(out, &read(Instant::now()), None);
        };
        let mut next = Instant::now();
        let mut before = None;
        for turn in 0u32.. {
            let found = read(next);
            if ENDED.load(Ordering::Relaxed) || self.count == Some(turn) {
                break;
            }
            self.line(out, &found, before.as_ref().filter(|_| self.rates))?;
            out.flush()?;
            before = Some(found);
            next += interval;
        }
        Ok(())
    }

    /// A line with all counters, or with those that are not as `before`.
    fn line(&self, out: &mut impl Write, now: &Counters, before: Option<&Counters>) -> Result<()> {
        write!(out, "link {}/1", self.name)?;
        for (index, (counter, value)) in now.iter().enumerate() {
            let Some(before) = before else {
                write!(out, " {counter} {value}")?;
                continue;
            };
            let change = value.wrapping_sub(before[index].1);
            if change > 0 {
                let seconds = self.interval.map_or(1.0, |i| i.as_secs_f64());
                let rate = change as f64 / seconds;
                write!(out, " {counter} {value} (+{rate:.0}/s)")?;
            }
        }
        writeln!(out)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_all_counters_and_then_what_changed() {
        let lines = Lines {
            name: "card",
            interval: Some(Duration::from_millis(500)),
            count: Some(2),
            rates: true,
        };
        let mut value = 0;
        let mut text = Vec::new();
        let read = |_| {
            value += 5;
            vec![("sent", value), ("lost", 1)]
        };
        lines.print(&mut text, read).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "link card/1 sent 5 lost 1\nlink card/1 sent 10 (+10/s)\n"
        );
        assert!(interval(0.0).is_err() && interval(f64::NAN).is_err());
    }
}

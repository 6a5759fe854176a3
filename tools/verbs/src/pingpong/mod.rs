//! `ferroce-rc-pingpong`, `ferroce-uc-pingpong`, `ferroce-ud-pingpong`: messages to and fro, as `ibv_rc_pingpong` and its
//! sisters, with which they exchange addresses too.

mod address;
mod link;
mod options;

use std::io::Write;

use anyhow::Result;
use ferroce_driver::{Backend, Wc};

use crate::clock::{Clock, Times};
use crate::device::Device;
use crate::oob::Oob;
use crate::wait::Completions;
use address::Address;
use link::{Link, RECV, SEND};
pub use options::{Args, Common, RcArgs, UcArgs, UdArgs};

/// A program: one side with the card that it names, and standard output.
///
/// # Errors
/// As of [`run`]; no such card.
pub fn main<A>(args: A) -> Result<()>
where
    Args: TryFrom<A>,
    anyhow::Error: From<<Args as TryFrom<A>>::Error>,
{
    let args = Args::try_from(args)?;
    let mut device = args.common.device.open()?;
    run(&mut device, &args, &mut std::io::stdout())
}

/// Runs one side.
///
/// # Errors
/// Bad input; the peer or the card failed; wrong bytes received; Ctrl-C.
pub fn run<B: Backend>(device: &mut Device<B>, args: &Args, out: &mut impl Write) -> Result<()> {
    args.check(device.context.query_device().max_msg_size)?;
    let common = &args.common;
    device.gid(common.gid_idx)?;
    let entries = common.rx_depth.saturating_add(1);
    let mut completions = Completions::new(device, entries, common.events)?;
    let mut link = Link::new(device, &completions.cq, args)?;
    let local = link.address()?;
    local.print(out, "local")?;
    let mut oob = Oob::open(device, common.server.as_deref(), common.port)?;
    let mut posted = meet(device, args, &mut link, &mut oob, &local, out)?;

    let clock = Clock::start(device);
    let (mut sent, mut got, mut pending) = (0, 0, RECV);
    if common.server.is_some() {
        link.post_send()?;
        pending |= SEND;
    }
    let mut wcs = [Wc::default(); 16];
    while sent < common.iters || got < common.iters {
        for wc in completions.next(device, &mut wcs)? {
            pending &= !wc.wr_id;
            if wc.wr_id == SEND {
                sent += 1;
            } else {
                got += 1;
                posted -= 1;
                link.check(wc)?;
                if posted <= 1 {
                    posted += link.post_recvs(common.rx_depth - posted)?;
                }
            }
            if sent < common.iters && pending == 0 {
                link.post_send()?;
                pending = RECV | SEND;
            }
        }
    }
    print(out, device, args, clock.times(device))?;
    // The last acknowledgement may still be on its way to the peer: leave together.
    oob.finish(device)
}

/// Exchanges addresses and connects; returns the receives posted, when both sides have some.
fn meet<B: Backend>(
    device: &mut Device<B>,
    args: &Args,
    link: &mut Link<B>,
    oob: &mut Oob,
    local: &Address,
    out: &mut impl Write,
) -> Result<u32> {
    let is_server = args.common.server.is_none();
    let mut message = [0; address::BYTES];
    if !is_server {
        oob.send(device, &local.emit())?;
    }
    oob.receive(device, &mut message)?;
    let remote = Address::parse(&message)?;
    link.connect(device, args, &remote)?;
    let posted = link.post_recvs(args.common.rx_depth)?;
    remote.print(out, "remote")?;
    if is_server {
        // Ready for what the client sends: now it may know.
        oob.send(device, &local.emit())?;
        oob.receive(device, &mut [0; 5])?;
    } else {
        oob.send(device, b"done\0")?;
    }
    Ok(posted)
}

fn print<B: Backend>(
    out: &mut impl Write,
    device: &Device<B>,
    args: &Args,
    [host, card]: Times,
) -> Result<()> {
    let iters = f64::from(args.common.iters);
    let bytes = f64::from(args.size) * iters * 2.0;
    let times = if device.simulated {
        vec![(" of host time", host), (" of card time", card)]
    } else {
        vec![("", host)]
    };
    for (which, seconds) in times {
        writeln!(
            out,
            "{bytes:.0} bytes in {seconds:.2} seconds = {:.2} Mbit/sec{which}",
            bytes * 8.0 / seconds / 1e6
        )?;
        writeln!(
            out,
            "{iters} iters in {seconds:.2} seconds = {:.2} usec/iter{which}",
            seconds * 1e6 / iters
        )?;
    }
    Ok(())
}

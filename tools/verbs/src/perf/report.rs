//! Tables of perftest.

use std::io::Write;

use anyhow::Result;
use ferroce_driver::{Backend, QpEndpoint};

use super::bandwidth::Times;
use super::options::{Args, Measure, Operation};
use super::side::Side;
use crate::device::Device;

const RULE: &str =
    "---------------------------------------------------------------------------------------";

/// Figures of a bandwidth test.
pub(super) struct Bandwidth {
    pub(super) size: u32,
    pub(super) iters: u32,
    pub(super) times: Times,
    /// Messages a second of the host at best.
    pub(super) peak: Option<f64>,
}

/// What is measured, with what, between whom, and the names of the columns.
pub(super) fn head<B: Backend>(
    out: &mut impl Write,
    device: &Device<B>,
    args: &Args,
    side: &Side<B>,
) -> Result<()> {
    let title = match args.test.operation() {
        Operation::Write => "RDMA_Write",
        Operation::Read => "RDMA_Read",
        Operation::Send => "Send",
        Operation::Atomic => "Atomic",
    };
    let (measure, columns) = match args.test.measure() {
        Measure::Bandwidth => ("BW", bandwidth_columns(args)),
        Measure::Latency => ("Latency", LATENCY_COLUMNS.to_owned()),
    };
    let connection = format!("{:?}", args.connection).to_uppercase();
    writeln!(out, "{RULE}\n                    {title} {measure} Test")?;
    writeln!(
        out,
        " Dual-port       : OFF\t\tDevice         : {}",
        device.name
    )?;
    writeln!(out, " Number of qps   : 1\t\tTransport type : IB")?;
    writeln!(
        out,
        " Connection type : {connection}\t\tUsing SRQ      : OFF"
    )?;
    writeln!(
        out,
        " TX depth        : {}\n CQ Moderation   : {}",
        args.tx_depth, args.cq_mod
    )?;
    writeln!(
        out,
        " Mtu             : {}[B]\n Link type       : Ethernet",
        args.mtu.bytes()
    )?;
    writeln!(
        out,
        " GID index       : {}\n Max inline data : {}[B]",
        args.gid_index, args.inline_size
    )?;
    writeln!(out, " Data ex. method : Ethernet\n{RULE}")?;
    for (which, end) in [("local", &side.local), ("remote", &side.remote)] {
        address(out, which, end)?;
    }
    writeln!(out, "{RULE}\n{columns}")?;
    out.flush()?;
    Ok(())
}

fn address(out: &mut impl Write, which: &str, end: &QpEndpoint) -> Result<()> {
    let QpEndpoint { qpn, psn, gid, .. } = end;
    writeln!(
        out,
        " {which} address: LID 0000 QPN {qpn:#06x} PSN {psn:#x}\n GID: {}",
        gid.ip()
    )?;
    Ok(())
}

/// Line at the end.
pub(super) fn foot(out: &mut impl Write) -> Result<()> {
    writeln!(out, "{RULE}")?;
    Ok(())
}

fn bandwidth_columns(args: &Args) -> String {
    let unit = if args.report_gbits {
        "Gb/sec"
    } else {
        "MB/sec"
    };
    format!(" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]")
}

const LATENCY_COLUMNS: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ";

/// Whose time the figures of a line are: said only where there are two.
fn times(simulated: bool) -> &'static [(usize, &'static str)] {
    if simulated {
        &[
            (0, "   (host time; the card is simulated)"),
            (1, "   (card time)"),
        ]
    } else {
        &[(0, "")]
    }
}

/// A line of a bandwidth test, in host time, with a simulated card in card time too.
pub(super) fn bandwidth<B: Backend>(
    out: &mut impl Write,
    device: &Device<B>,
    args: &Args,
    figures: &Bandwidth,
) -> Result<()> {
    let size = f64::from(figures.size);
    let unit = if args.report_gbits {
        size * 8.0 / 1e9
    } else {
        size / f64::from(1 << 20)
    };
    for &(which, note) in times(device.simulated) {
        let rate = f64::from(figures.iters) / figures.times[which];
        // The peak is known in host time only.
        let peak = figures.peak.filter(|_| which == 0).unwrap_or(0.0) * unit;
        writeln!(
            out,
            " {:<7}    {:<10}       {peak:<7.2}            {:<7.2}\t\t     {:<7.6}{note}",
            figures.size,
            figures.iters,
            rate * unit,
            rate / 1e6
        )?;
    }
    Ok(())
}

/// A line of a latency test, in host time, with a simulated card in card time too.
pub(super) fn latency<B: Backend>(
    out: &mut impl Write,
    device: &Device<B>,
    args: &Args,
    size: u32,
    all: &[Times],
) -> Result<()> {
    for &(which, note) in times(device.simulated) {
        let mut us: Vec<_> = all.iter().map(|times| times[which] * 1e6).collect();
        if args.report_unsorted {
            for (i, time) in us.iter().enumerate() {
                writeln!(out, "{}, {time:.3}{note}", i + 1)?;
            }
        }
        us.sort_by(f64::total_cmp);
        let [min, max, typical, average, deviation, p99, p999] = summary(&us);
        writeln!(
            out,
            " {size:<7} {:<10}          {min:<7.2}        {max:<7.2}      {typical:<7.2}  \t       {average:<7.2}     \t{deviation:<7.2}\t\t{p99:<7.2} \t\t{p999:<7.2}{note}",
            us.len()
        )?;
    }
    Ok(())
}

/// Least, most, median, mean, standard deviation, 99 % and 99.9 % of sorted times.
fn summary(sorted: &[f64]) -> [f64; 7] {
    let count = sorted.len() as f64;
    let average = sorted.iter().sum::<f64>() / count;
    let variance = sorted.iter().map(|t| (t - average).powi(2)).sum::<f64>() / count;
    let at = |part: f64| sorted[((count * part).ceil() as usize).clamp(1, sorted.len()) - 1];
    [
        at(0.0),
        at(1.0),
        at(0.5),
        average,
        variance.sqrt(),
        at(0.99),
        at(0.999),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_times() {
        let times: Vec<_> = (1..=1000).map(f64::from).collect();
        let [min, max, typical, average, deviation, p99, p999] = summary(&times);
        assert_eq!((min, max, typical, average), (1.0, 1000.0, 500.0, 500.5));
        assert!((deviation - 288.675).abs() < 0.001, "{deviation}");
        assert_eq!((p99, p999), (990.0, 999.0));
        assert_eq!(summary(&[7.0]), [7.0, 7.0, 7.0, 7.0, 0.0, 7.0, 7.0]);
    }
}

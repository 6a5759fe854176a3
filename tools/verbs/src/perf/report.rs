//! Tables of perftest.

use std::io::Write;

use anyhow::Result;
use ferroce_driver::{Backend, QpEndpoint};

use super::exchange::Outcome;
use super::options::{Args, Measure, Operation};
use super::side::Side;
use crate::clock::Times;
use crate::device::Device;

const RULE: &str =
    "---------------------------------------------------------------------------------------";

/// What is measured, with what, between which cards, and the names of the columns.
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
        Measure::Latency if args.duration.is_some() => ("Latency", DURATION_COLUMNS.to_owned()),
        Measure::Latency => ("Latency", LATENCY_COLUMNS.to_owned()),
    };
    let ways = if args.bidirectional {
        " Bidirectional"
    } else {
        ""
    };
    let connection = format!("{:?}", args.connection).to_uppercase();
    writeln!(
        out,
        "{RULE}\n                    {title}{ways} {measure} Test"
    )?;
    writeln!(
        out,
        " Dual-port       : OFF\t\tDevice         : {}",
        device.name
    )?;
    writeln!(out, " Number of qps   : {}\t\tTransport type : IB", args.qp)?;
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
    for end in &side.ends {
        address(out, "local", &end.local)?;
    }
    for end in &side.ends {
        address(out, "remote", &end.remote)?;
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

const DURATION_COLUMNS: &str = " #bytes        #iterations       t_avg[usec]    tps average";

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

/// A line of a bandwidth test, in host time, with a simulated card in card time too. A bidirectional test shows the sum of
/// both sides.
pub(super) fn bandwidth<B: Backend>(
    out: &mut impl Write,
    device: &Device<B>,
    args: &Args,
    size: u32,
    here: &Outcome,
    there: &Outcome,
) -> Result<()> {
    let unit = if args.report_gbits {
        f64::from(size) * 8.0 / 1e9
    } else {
        f64::from(size) / f64::from(1 << 20)
    };
    let sides: &[_] = if args.bidirectional {
        &[here, there]
    } else {
        &[here]
    };
    for &(which, note) in times(device.simulated) {
        let rates = sides.iter().filter_map(|side| {
            let times = side.times?;
            Some(side.messages as f64 / times[which])
        });
        let Some(rate) = rates.reduce(|a, b| a + b) else {
            continue;
        };
        // The peak is known in host time only.
        let peaks = sides.iter().filter_map(|side| side.peak);
        // Not a sum, which of nothing is -0.
        let peak = peaks.fold(0.0, |a, b| a + b);
        let peak = if which == 0 { peak * unit } else { 0.0 };
        writeln!(
            out,
            " {size:<7}    {:<10}       {peak:<7.2}            {:<7.2}\t\t     {:<7.6}{note}",
            here.messages,
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
    outcome: &Outcome,
    all: &[Times],
) -> Result<()> {
    for &(which, note) in times(device.simulated) {
        if args.duration.is_some() {
            let seconds = outcome.times.map_or(f64::NAN, |times| times[which]);
            let messages = outcome.messages as f64;
            // There and back are two messages of a test that the peer answers in kind.
            let average = seconds * 1e6 / messages / args.parts();
            writeln!(
                out,
                " {size:<7}       {:<7}            {average:<7.2}        {:<7.2}{note}",
                outcome.messages,
                messages / seconds
            )?;
            continue;
        }
        let mut us: Vec<_> = all
            .iter()
            .map(|times| times[which] * 1e6 / args.parts())
            .collect();
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

//! `cargo xtask hostile`: attacks on a card, from the wire, from the host or by the bus, beside connections that must
//! not notice.

use anyhow::Result;
use ferroce_system::pool;
use ferroce_tests::hostile::{Disturbed, Misuse, Report as Attacked, attack, disturb, misuse};

use crate::conformance::target;
use crate::dut::Dut;
use crate::report::{self, Figure};

/// Frames of one attack, acts of one owner and bursts of one bus; a longer campaign has several seeds.
const FRAMES: u64 = 5000;
const ACTS: u64 = 500;
const BURSTS: u64 = 10;

/// Runs spent on fewer acts.
const SHRINKING: u32 = 60;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The device under attack.
    #[arg(long, value_enum, default_value = "rtl512")]
    dut: Dut,
    /// Frames in all.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    frames: u64,
    /// The enemy is the owner of queues of the card, not the wire.
    #[arg(long, conflicts_with_all = ["bus", "frames"])]
    owner: bool,
    /// Acts of the owner in all.
    #[arg(long, default_value_t = 10_000, requires = "owner", value_parser = clap::value_parser!(u64).range(1..))]
    acts: u64,
    /// The enemy is the bus: errors, lost writes, late answers, resets.
    #[arg(long, conflicts_with = "frames")]
    bus: bool,
    /// Bursts of trouble on the bus in all, a reset behind each.
    #[arg(long, default_value_t = 200, requires = "bus", value_parser = clap::value_parser!(u64).range(1..))]
    bursts: u64,
    /// First seed; attacks of 5000 frames, 500 acts or 10 bursts have a seed each.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// What broke first.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = args.report.open()?;
    args.dut.ensure_buildable()?;
    let campaign = one_of(args);
    let ok = campaign.is_ok();
    let figures = campaign.as_ref().map_or_else(|_| vec![], Clone::clone);
    file.write(&report::Report::new(ok, args.seed, figures))?;
    campaign.map(drop)
}

/// The campaign that `args` ask for: what it counted.
fn one_of(args: &Args) -> Result<Vec<Figure>> {
    let target = target(args.dut);
    let name = target.name();
    if args.owner {
        let sum: Misuse = campaign(args.acts, ACTS, args.seed, |acts, seed| {
            misuse(target, acts, seed, SHRINKING)
        })?;
        println!(
            "{name}: {} acts of owners in {} cycles, {} of their completions, {} deaths, {} messages of bystanders right beside them, {} cycles for a command at most",
            sum.acts, sum.cycles, sum.completions, sum.deaths, sum.messages, sum.slowest
        );
        Ok(vec![
            Figure::new("acts", sum.acts, "acts"),
            Figure::new("cycles", sum.cycles, "cycles"),
            Figure::new("completions", sum.completions, "completions"),
            Figure::new("deaths", sum.deaths, "owners"),
            Figure::new("messages", sum.messages, "messages"),
            Figure::new("slowest_command", sum.slowest, "cycles"),
        ])
    } else if args.bus {
        let sum: Disturbed = campaign(args.bursts, BURSTS, args.seed, |bursts, seed| {
            disturb(target, bursts, seed)
        })?;
        println!(
            "{name}: {} bursts of trouble on the bus, {} accesses failed, {} were late, {} resets, {} messages right beside and behind them",
            sum.bursts, sum.failed, sum.late, sum.resets, sum.messages
        );
        Ok(vec![
            Figure::new("bursts", sum.bursts, "bursts"),
            Figure::new("failed", sum.failed, "accesses"),
            Figure::new("late", sum.late, "accesses"),
            Figure::new("resets", sum.resets, "resets"),
            Figure::new("messages", sum.messages, "messages"),
        ])
    } else {
        let sum: Attacked = campaign(args.frames, FRAMES, args.seed, |frames, seed| {
            attack(target, frames, seed)
        })?;
        println!(
            "{name}: {} hostile frames, {} messages of the neighbour right beside them, {} queue pairs opened again",
            sum.frames, sum.messages, sum.revived
        );
        Ok(vec![
            Figure::new("frames", sum.frames, "frames"),
            Figure::new("messages", sum.messages, "messages"),
            Figure::new("revived", sum.revived, "queue pairs"),
        ])
    }
}

/// `count` of something, `part` with each seed from `first` on, on all processors.
fn campaign<R: Default + std::ops::AddAssign + Send>(
    count: u64,
    part: u64,
    first: u64,
    one: impl Fn(u64, u64) -> Result<R, String> + Sync,
) -> Result<R> {
    let seeds = first..first + count.div_ceil(part);
    let share = |seed| part.min(count - (seed - first) * part);
    let one = &one;
    let reports = pool::try_each(pool::processors(), seeds, || {
        move |seed| one(share(seed), seed)
    });
    let mut sum = R::default();
    for report in reports.map_err(anyhow::Error::msg)? {
        sum += report;
    }
    Ok(sum)
}

//! The command line.

use anyhow::Result;
use clap::{CommandFactory, Parser};

use crate::{
    bench, conformance, coverage, docs, fabric, formal, fuzz, hostile, interop, mutate, pyverbs,
    release, seeded, soak, synth, test,
};

/// Tasks of the Ferroce project.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    version,
    arg_required_else_help = true
)]
pub(crate) enum Task {
    /// The commands of users.
    #[command(flatten)]
    User(ferroce::cli::Command),
    /// Measure the engine in cycles and bytes a cycle, and compare with the baseline.
    Bench(bench::Args),
    /// Run the conformance suite: the rules of the transport, a case each, on the golden model and on the engine.
    Conformance(conformance::Args),
    /// Count what of the emitted Verilog the conformance suite and the differential test reach.
    Coverage(coverage::Args),
    /// Write every page and file that is made from the sources: registers, host contract, tasks, boards, constraints.
    Docs(docs::Args),
    /// Run many hosts on one Ethernet: incast, collectives, storage, with congestion control or without.
    Fabric(fabric::Args),
    /// Prove properties of blocks on their emitted Verilog.
    Formal(formal::Args),
    /// Give strangers' bytes to what reads them first, by the code that they reach.
    Fuzz(fuzz::Args),
    /// Attack a card from the wire, as the owner of queues or by the bus, beside connections that must not notice.
    Hostile(hostile::Args),
    /// Run unmodified verbs programs on a card against the same programs on Linux soft-RoCE in a guest.
    Interop(interop::Args),
    /// Break the emitted Verilog of the transport in many ways and show what the tests do not notice.
    Mutate(mutate::Args),
    /// Run rdma-core's own tests of verbs on a served card.
    Pyverbs(pyverbs::Args),
    /// Write what is read and built without Rust: the Verilog of every build, with its pages, as one archive.
    Release(release::Args),
    /// Put defects back that were mended, and show which random campaign finds each, and how soon.
    Seeded(seeded::Args),
    /// Endurance: many queue pairs on a bad wire, processes that die, cards that are reset, classes that pause; each byte compared.
    Soak(soak::Args),
    /// Map the blocks of the engine by Yosys and show what they take and how deep their logic is.
    Synth(synth::Args),
    /// Run all tests.
    Test(test::Args),
}

impl Task {
    /// Runs the task.
    ///
    /// # Errors
    /// [`Usage`](crate::Usage): a mistake of the caller; else what went wrong.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::User(command) => command.run(),
            Self::Bench(args) => bench::run(args),
            Self::Conformance(args) => conformance::run(args),
            Self::Coverage(args) => coverage::run(args),
            Self::Docs(args) => docs::run(args, Self::command()),
            Self::Fabric(args) => fabric::run(args),
            Self::Formal(args) => formal::run(args),
            Self::Fuzz(args) => fuzz::run(args),
            Self::Hostile(args) => hostile::run(args),
            Self::Interop(args) => interop::run(args),
            Self::Mutate(args) => mutate::run(args),
            Self::Pyverbs(args) => pyverbs::run(args),
            Self::Release(args) => release::run(args),
            Self::Seeded(args) => seeded::run(args),
            Self::Soak(args) => soak::run(args),
            Self::Synth(args) => synth::run(args),
            Self::Test(args) => test::run(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use ferroce::cli::one_line;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Task::command().debug_assert();
    }

    /// What checks or measures reports in one form; a word means the same in every task.
    #[test]
    fn options_have_one_vocabulary() {
        const UNREPORTED: [&str; 7] = ["card", "docs", "emit", "lib", "regs", "release", "stats"];
        let command = Task::command();
        for task in command.get_subcommands() {
            let name = task.get_name();
            let long = |option: &str| {
                let mut options = task.get_arguments().filter_map(|arg| arg.get_long());
                options.any(|long| long == option)
            };
            assert_eq!(long("report"), !UNREPORTED.contains(&name), "{name}");
            // The width of `emit` is a size of what is written.
            assert!(!long("width") || name == "emit", "{name}: --dut");
            for (old, new) in [
                ("model", "--dut"),
                ("update", "--write"),
                ("filter", "NAME"),
                ("only", "NAME"),
                ("module", "NAME"),
                ("block", "NAME"),
                ("keep", "--out"),
                ("export", "--out"),
            ] {
                assert!(!long(old), "{name} --{old}: {new}");
            }
            for arg in task.get_arguments() {
                let values = arg.get_value_names().unwrap_or_default();
                let kind = match arg.get_long() {
                    Some("report") => "FILE.json",
                    Some("html") => "FILE.html",
                    Some("out") => "DIR",
                    _ => continue,
                };
                assert!(values == [kind], "{name}: {arg}");
            }
        }
    }

    #[test]
    fn mistakes_are_one_line() {
        for (words, part) in [
            (&["demo", "--mtu", "300"][..], "256, 512"),
            (&["demo", "--dut", "asic"], "model, rtl512"),
            (&["demo", "--loss", "150%"], "0% to 100%"),
            (&["demo", "--qps", "0"], "--qps"),
            (&["demo", "--speed"], "--speed"),
            (&["dem"], "demo"),
            (&["demo", "--pcap"], "--pcap"),
            (&["conformance", "--dut", "asic"], "model, rtl512"),
            (&["hostile", "--frames", "many"], "--frames"),
            (&["hostile", "--owner", "--acts", "0"], "--acts"),
            (&["hostile", "--acts", "9"], "--owner"),
            (&["hostile", "--owner", "--bus"], "--bus"),
            (&["release"], "--out"),
            (&["seeded", "no_such"], "second_reading"),
            (&["soak"], "--hours"),
            (&["soak", "--hours", "0"], "more than 0 hours"),
            (&["soak", "--hours", "-1"], "unexpected argument '-1'"),
            (&["soak", "--hours", "day"], "a number of hours"),
            (&["fabric", "outcast"], "incast, victim"),
            (&["fabric", "incast", "--ecmp", "--spray"], "--spray"),
            (&["fabric", "incast", "--cc", "timely"], "dcqcn"),
            (&["fabric", "incast", "--loss", "2"], "0% to 100%"),
            (&["conformance", "rnr", "--write"], "--write"),
            (&["replay"], "CAPTURE"),
            (&["synth", "--dut", "model"], "rtl512, rtl64"),
            (&["synth", "--quick", "csr"], "--quick"),
            (&["bench", "--dut", "model"], "rtl512, rtl64"),
            (&["coverage", "rnr"], "--data"),
            (&["mutate", "csr", "--write"], "--write"),
            (&["synth", "--board", "u50"], "versa_ecp5"),
            (&["emit"], "--out"),
            (&["libibverbs"], "--out"),
            (&["pyverbs", "test_qp", "--write"], "--write"),
            (&["interop", "--peer", "mlx5"], "rxe, model"),
            (&["interop", "--list", "--write"], "--write"),
            (&["pyverbs", "--dut", "asic"], "model, rtl512"),
            (&["formal", "fifo", "--write"], "--write"),
            (&["replay", "a", "--dut", "asic"], "model, rtl512"),
        ] {
            let words = ["xtask"].iter().chain(words);
            let line = one_line(&Task::try_parse_from(words).err().unwrap());
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}

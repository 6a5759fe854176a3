//! The command line.

use anyhow::Result;
use clap::Parser;
use clap::error::ErrorKind;

use crate::{
    Usage, bench, conformance, coverage, demo, docs, emit, formal, hostile, interop, libibverbs,
    mutate, pyverbs, regs, replay, simnic, synth, test,
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
    /// Measure the engine in cycles and bytes a cycle, and compare with the baseline.
    Bench(bench::Args),
    /// Run the conformance suite: the rules of the transport, a case each, on the golden model and on the engine.
    Conformance(conformance::Args),
    /// Count what of the emitted Verilog the conformance suite and the differential test reach.
    Coverage(coverage::Args),
    /// Send a file from host to host, through two engines and a wire between them.
    Demo(demo::Args),
    /// Write every page and file that is made from the sources: registers, host contract, tasks, boards, constraints.
    Docs(docs::Args),
    /// Write the engine as Verilog, with what a tool chain needs beside it.
    Emit(emit::Args),
    /// Prove properties of blocks on their emitted Verilog.
    Formal(formal::Args),
    /// Attack a card with frames, beside a connection that must not notice.
    Hostile(hostile::Args),
    /// Run unmodified verbs programs on a card against the same programs on Linux soft-RoCE in a guest.
    Interop(interop::Args),
    /// Build the verbs library for unmodified programs, libibverbs.so.1.
    Libibverbs(libibverbs::Args),
    /// Break the emitted Verilog of the transport in many ways and show what the tests do not notice.
    Mutate(mutate::Args),
    /// Run rdma-core's own tests of verbs on a served card.
    Pyverbs(pyverbs::Args),
    /// Write the register map and the host contract: pages, SystemRDL and the header for C.
    Regs(regs::Args),
    /// Play one side of a capture of real traffic against the engine and compare what it sends.
    Replay(replay::Args),
    /// Serve the engine as a PCIe card over vfio-user, to QEMU or to a driver.
    Simnic(simnic::Args),
    /// Map the blocks of the engine by Yosys and show what they take and how deep their logic is.
    Synth(synth::Args),
    /// Run all tests.
    Test(test::Args),
}

/// The task that the command line names. What asks for help is answered and does not return.
///
/// # Errors
/// [`Usage`]: a mistake, in one line.
pub(crate) fn parse() -> Result<Task> {
    Task::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => Usage(one_line(&error)).into(),
    })
}

/// What clap says in several lines, without how to call the task at large.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim);
    let text: Vec<_> = lines
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    format!("{}; --help tells more", text.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Task::command().debug_assert();
    }

    #[test]
    fn mistakes_are_one_line() {
        for (words, part) in [
            (&["demo", "--mtu", "300"][..], "256, 512"),
            (&["demo", "--width", "128"], "512 or 64"),
            (&["demo", "--loss", "150%"], "0% to 100%"),
            (&["demo", "--qps", "0"], "--qps"),
            (&["demo", "--speed"], "--speed"),
            (&["dem"], "demo"),
            (&["demo", "--pcap"], "--pcap"),
            (&["conformance", "--dut", "asic"], "model, rtl512"),
            (&["hostile", "--frames", "many"], "--frames"),
            (&["conformance", "rnr", "--write"], "--write"),
            (&["replay"], "CAPTURE"),
            (&["synth", "--width", "128"], "512 or 64"),
            (&["synth", "--quick", "--block", "csr"], "--block"),
            (&["synth", "--board", "u50"], "versa_ecp5"),
            (&["emit"], "--out"),
            (&["libibverbs"], "--out"),
            (&["pyverbs", "test_qp", "--write"], "--write"),
            (&["interop", "--peer", "mlx5"], "rxe, model"),
            (&["interop", "--list", "--write"], "--write"),
            (&["pyverbs", "--dut", "asic"], "model, rtl512"),
            (&["formal", "fifo", "--write"], "--write"),
            (&["emit", "--board", "u1", "--out", "x"], "generic"),
            (&["replay", "a", "--dut", "asic"], "rtl, model"),
        ] {
            let words = ["xtask"].iter().chain(words);
            let line = one_line(&Task::try_parse_from(words).err().unwrap());
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}

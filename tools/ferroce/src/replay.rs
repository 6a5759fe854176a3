//! `cargo xtask replay`: one side of a captured connection, played by the device under test.
//!
//! What is compared and how: [`ferroce_sim::replay`].

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use ferroce_sim::pcap;
use ferroce_sim::pcapng::Writer;
use ferroce_sim::replay::{
    self, Counts, Error, Options, Outcome, PERMITTED_BEHAVIOUR, PERMITTED_FIELDS, Permitted, Role,
};

use crate::Usage;
use crate::demo::dut;
use crate::dut::Dut;
use crate::output::Output;
use crate::report::{self, Figure, Report};

/// Differences that are printed.
const LISTED: usize = 20;

/// Options of the task.
#[derive(clap::Args)]
#[command(after_long_help = after_help())]
pub struct Args {
    /// Capture of RoCEv2 traffic: pcap or pcapng, Ethernet, not cut by a snapshot length.
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Side that the device under test plays: it is fed what the other side sent.
    #[arg(long, value_enum, default_value_t)]
    role: RoleArg,
    /// Device under test: the engine as Verilog, or the golden model.
    #[arg(long, value_enum, default_value_t)]
    dut: Dut,
    /// Queue pair of the recorded responder, if the capture has several connections.
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    qp: Option<u32>,
    /// Feed a malformed packet before each recorded one; all must be counted and dropped.
    #[arg(long)]
    malformed: bool,
    /// Seed of malformed packets and of the timing of host memory.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A line for each packet compared, with the fields that differ: recorded / sent.
    #[arg(short, long)]
    verbose: bool,
    /// Capture what the device received and sent, with simulated time, for Wireshark.
    #[arg(long, value_name = "FILE.pcapng")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// The side to play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RoleArg {
    /// Executes the requests; its answers are compared.
    #[default]
    Responder,
    /// Posts the same messages; its requests are compared.
    Requester,
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let in_range = parsed.ok().filter(|qpn| *qpn < 1 << 24);
    in_range.ok_or_else(|| "a number of 24 bits is expected, such as 17 or 0x11".into())
}

/// What the task does beyond its options, and what may differ.
fn after_help() -> String {
    let mut text = String::from(
        "The device is set up as the recorded side was. From the capture come MAC and IP addresses, queue \
         pair numbers, first PSNs, path MTU, rkeys and memory addresses, VLAN tag, P_Key, hop limit, \
         traffic class, flow label, UDP source port and RNR timer. Packets are fed as they are, but for a \
         queue pair number that the build does not have: the destination is then rewritten to one that it \
         has, and the ICRC with it. The ICRC of every packet is checked by a second implementation.\n\n\
         Permitted differences in fields:\n",
    );
    let list = |permitted: &[Permitted]| -> String {
        let line = |Permitted { what, why }: &Permitted| format!("  {what}: {why}\n");
        permitted.iter().map(line).collect()
    };
    text += &list(PERMITTED_FIELDS);
    text += "\nPermitted differences in behaviour:\n";
    text += &list(PERMITTED_BEHAVIOUR);
    text.push_str("\nExit codes: 0 the same, 1 different, 2 the capture cannot be replayed.");
    text
}

/// Runs the task.
///
/// # Errors
/// [`Usage`]: the capture cannot be replayed; else what differs.
pub fn run(args: &Args) -> Result<()> {
    let path = &args.capture;
    let refuse = |why: &dyn std::fmt::Display| Usage(format!("{}: {why}", path.display()));
    let capture = pcap::read(path).map_err(|error| match error {
        pcap::Error::Io { source, .. } => Usage(format!(
            "cannot read {}: {source}; name a capture in pcap or pcapng",
            path.display()
        )),
        other => refuse(&other),
    })?;
    let report = args.report.open()?;
    let output = args.pcap.as_deref().map(Output::create).transpose()?;
    args.dut.ensure_buildable()?;
    let options = Options {
        role: match args.role {
            RoleArg::Responder => Role::Responder,
            RoleArg::Requester => Role::Requester,
        },
        qpn: args.qp,
        malformed: args.malformed.then_some(args.seed),
    };
    let build = |memory| {
        dut::nic(
            args.dut,
            dut::Setup {
                memory,
                seed: args.seed,
                wave: None,
            },
        )
    };
    let outcome = replay::run(&capture, &options, build).map_err(|error| match error {
        Error::Refused(refusal) => refuse(&refusal).into(),
        Error::Device(error) => error,
        other => anyhow!(other),
    })?;
    if let Some(mut output) = output {
        let file = output
            .file()
            .try_clone()
            .context("cannot write the capture")?;
        write(&outcome, file).context("cannot write the capture")?;
        output.finish()?;
    }
    let result = Report::new(outcome.is_same(), args.seed, figures(&outcome.counts));
    report.write(&result)?;
    say(args, &outcome, &result.figures)
}

/// Prints what came of it.
fn say(args: &Args, outcome: &Outcome, figures: &[Figure]) -> Result<()> {
    let side = |end: &replay::End| format!("{} QP {:#x}", end.gid.ip(), end.qpn);
    println!(
        "{}: {} -> {}, path MTU {}, {} by the {}",
        args.capture.display(),
        side(&outcome.requester),
        side(&outcome.responder),
        outcome.mtu,
        match args.role {
            RoleArg::Responder => "answered",
            RoleArg::Requester => "requested",
        },
        match args.dut {
            Dut::Model => "golden model".to_owned(),
            Dut::Rtl512 | Dut::Rtl64 => format!("RTL engine of {} bits", args.dut.width()),
        },
    );
    if let Some(recorded) = outcome.mapped_from {
        let own = outcome.local_qpn;
        println!("queue pair {recorded:#x} is {own:#x} here: the build has no more");
    }
    if args.verbose {
        for comparison in &outcome.comparisons {
            println!("{comparison}");
        }
    }
    for figure in figures {
        println!("{figure}");
    }
    if outcome.is_same() {
        println!("same: every packet is as recorded but for permitted differences");
        return Ok(());
    }
    let count = outcome.differences.len();
    println!("different: {count} differences");
    let listed = outcome.differences.iter().take(LISTED);
    let mut text = listed
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\nerror: ");
    if count > LISTED {
        text += &format!("\nerror: and {} more", count - LISTED);
    }
    Err(anyhow!(text))
}

fn figures(counts: &Counts) -> Vec<Figure> {
    let Counts {
        fed,
        malformed,
        recorded,
        sent,
        same,
        coalesced,
        added,
        repeated,
        completions,
        bytes,
        cycles,
    } = *counts;
    let packets = [
        ("fed", fed),
        ("fed_malformed", malformed),
        ("recorded", recorded),
        ("sent", sent),
        ("same", same),
        ("coalesced_by_device", coalesced),
        ("coalesced_by_recorded", added),
        ("repeated", repeated),
    ];
    let packets = packets.map(|(name, count)| Figure::new(name, count, "packets"));
    let others = [
        Figure::new("completions", completions, "entries"),
        Figure::new("payload_compared", bytes, "bytes"),
        Figure::new("simulated", cycles, "cycles"),
    ];
    packets.into_iter().chain(others).collect()
}

/// Writes what passed the device's port.
fn write(outcome: &Outcome, file: File) -> std::io::Result<()> {
    let mut writer = Writer::new(std::io::BufWriter::new(file))?;
    let interface = writer.interface("device under test")?;
    for passed in &outcome.passed {
        let comment = passed.direction.to_string();
        writer.packet(
            interface,
            passed.ns,
            passed.direction,
            &passed.bytes,
            &comment,
        )?;
    }
    writer.into_inner().map(drop)
}

/// The captures that come with the project.
#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn args(capture: &Path) -> Args {
        Args {
            capture: capture.to_owned(),
            role: RoleArg::Responder,
            dut: Dut::Model,
            qp: None,
            malformed: false,
            seed: 1,
            verbose: true,
            pcap: None,
            report: report::Args::default(),
        }
    }

    fn capture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/captures")
            .join(name)
    }

    #[test]
    fn a_capture_is_replayed_and_what_passed_is_captured() {
        let dir = tempfile::tempdir().unwrap();
        let pcap = dir.path().join("out.pcapng");
        let args = Args {
            pcap: Some(pcap.clone()),
            ..args(&capture("rc_send_64.pcap"))
        };
        run(&args).unwrap();
        assert_eq!(pcap::read(&pcap).unwrap().packets.len(), 6);
    }

    #[test]
    fn a_capture_that_cannot_be_replayed_is_a_mistake() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.pcap");
        let cut = dir.path().join("cut.pcap");
        let whole = std::fs::read(capture("rc_write_64.pcap")).unwrap();
        std::fs::write(&cut, &whole[..whole.len() - 9]).unwrap();
        let text = dir.path().join("text.pcap");
        std::fs::write(&text, "no capture").unwrap();
        for (path, part) in [
            (&missing, "name a capture"),
            (&cut, "ends within packet"),
            (&text, "not a capture"),
        ] {
            let out = dir.path().join("out.pcapng");
            let args = Args {
                pcap: Some(out.clone()),
                ..args(path)
            };
            let error = run(&args).unwrap_err();
            let line = error.downcast::<Usage>().unwrap().to_string();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
            assert!(!out.exists());
        }
    }

    #[test]
    fn queue_pairs_are_numbers_of_24_bits() {
        assert_eq!(number("17"), Ok(17));
        assert_eq!(number("0x11"), Ok(17));
        assert!(number("0x1000000").is_err() && number("x").is_err());
    }

    #[test]
    fn the_help_lists_what_may_differ() {
        let text = after_help();
        for word in [
            "IPv4 identification",
            "UDP source port",
            "MigReq",
            "ACK coalescing",
            "credits",
        ] {
            assert!(text.contains(word), "{word}");
        }
    }
}

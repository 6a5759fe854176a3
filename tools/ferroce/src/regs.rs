//! `cargo xtask regs`: the register map as a page and as SystemRDL, and the host contract as a page and a header for C,
//! from the declarations in `proto`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce_proto::abi::Field;
use ferroce_proto::abi::classes::Trust;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::rates::{RpConfig, SWIFT_FIELDS};
use ferroce_proto::abi::regs::{
    self, Access, CnpConfig, Params, Params2, Params3, REGISTERS, Register,
};
use ferroce_proto::abi::regs::{STAT_DOCS, STATS, STATS_BASE, control, feature, status};

use crate::abi::{self, prose};
use crate::output::put;
use crate::tools;

/// The page, below the root of the repository.
pub const PAGE: &str = "docs/registers.md";
/// The SystemRDL, below the root of the repository.
pub const RDL: &str = "docs/registers.rdl";

/// PeakRDL and what it writes with.
const PEAKRDL: [&str; 3] = [
    "peakrdl==1.5.0",
    "peakrdl-html==2.12.2",
    "peakrdl-ipxact==3.5.0",
];

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// Write the map as HTML pages and as IP-XACT to DIR instead, by PeakRDL.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes the files, or what PeakRDL makes of them.
///
/// # Errors
/// Those of the file system; what PeakRDL says.
pub fn run(args: &Args) -> Result<()> {
    if let Some(out) = &args.out {
        export(&tools::wheels("peakrdl", &PEAKRDL)?, out)?;
        println!(
            "wrote html/index.html and ferroce.xml (IP-XACT) to {}",
            out.display()
        );
        return Ok(());
    }
    for (path, text) in files() {
        put(path, &text)?;
        println!("wrote {path}");
    }
    Ok(())
}

/// The files: path below the root of the repository, and text.
#[must_use]
pub fn files() -> [(&'static str, String); 5] {
    [
        (PAGE, page()),
        (RDL, rdl()),
        (abi::PAGE, abi::page()),
        (abi::HEADER, abi::header()),
        (abi::absent::PAGE, abi::absent::page()),
    ]
}

/// Has PeakRDL, in the folder `programs`, write the map to `out`: `html/index.html` and `ferroce.xml`.
fn export(programs: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let source = out.join("registers.rdl");
    fs::write(&source, rdl()).with_context(|| format!("cannot write {}", source.display()))?;
    for (form, name) in [("html", "html"), ("ip-xact", "ferroce.xml")] {
        let output = Command::new(programs.join("peakrdl"))
            .arg(form)
            .arg(&source)
            .arg("-o")
            .arg(out.join(name))
            .output()
            .context("peakrdl cannot be started")?;
        let log = [output.stdout, output.stderr].concat();
        let log = String::from_utf8_lossy(&log);
        ensure!(output.status.success(), "peakrdl {form} failed: {log}");
    }
    Ok(())
}

/// Name, lowest bit and width of the parts of a register; empty if it is one number.
fn fields(register: &Register) -> Vec<(&'static str, usize, usize)> {
    let laid_out = |fields: &[Field]| {
        let named = fields.iter().filter(|f| !f.name.starts_with("rsv"));
        named.map(|f| (f.name, f.lsb, f.width)).collect()
    };
    let bits = |bits: &[(&'static str, u32)]| {
        let one = |&(name, mask): &(&'static str, u32)| (name, mask.trailing_zeros() as usize, 1);
        bits.iter().map(one).collect()
    };
    match register.offset {
        regs::PARAMS => laid_out(Params::FIELDS),
        regs::PARAMS2 => laid_out(Params2::FIELDS),
        regs::PARAMS3 => laid_out(Params3::FIELDS),
        regs::CNP_CONFIG => laid_out(CnpConfig::FIELDS),
        regs::RP_CONFIG => laid_out(RpConfig::FIELDS),
        regs::SWIFT_TARGET..=regs::SWIFT_STEP => {
            let own = SWIFT_FIELDS
                .iter()
                .filter(|f| f.register == register.offset);
            own.map(|f| (f.name, f.at as usize, f.mask().count_ones() as usize))
                .collect()
        }
        regs::TRUST => laid_out(Trust::FIELDS),
        regs::CONTROL => bits(&[
            ("enable", control::ENABLE),
            ("engine_reset", control::ENGINE_RESET),
        ]),
        regs::STATUS => bits(&[
            ("link_up", status::LINK_UP),
            ("ready", status::READY),
            ("dma_error", status::DMA_ERROR),
            ("ring_error", status::RING_ERROR),
        ]),
        regs::FEATURES => bits(&[
            ("rc", feature::RC),
            ("rc_read", feature::READ),
            ("atomic", feature::ATOMIC),
            ("uc", feature::UC),
            ("ud", feature::UD),
            ("srq", feature::SRQ),
            ("ipv6", feature::IPV6),
            ("vlan", feature::VLAN),
            ("events", feature::EVENTS),
            ("long_wqe", feature::LONG_WQE),
            ("invalidate", feature::INVALIDATE),
            ("exception", feature::EXCEPTION),
            ("resize_cq", feature::RESIZE_CQ),
            ("mem_window", feature::MEM_WINDOW),
            ("cnp", feature::CNP),
            ("rates", feature::RATES),
            ("classes", feature::CLASSES),
            ("send_window", feature::SEND_WINDOW),
            ("swift", feature::SWIFT),
        ]),
        _ => vec![],
    }
}

/// Arrays of doorbells: name, first byte, how many fit, what they are.
fn doorbells() -> [(&'static str, u64, u64, &'static str); 4] {
    let room = |from: u64, to: u64| (to - from) / doorbell::STRIDE;
    let qps = room(doorbell::QP_BASE, doorbell::CQ_BASE);
    let cqs = room(doorbell::CQ_BASE, doorbell::SRQ_BASE);
    let srqs = room(doorbell::SRQ_BASE, regs::BAR0_BYTES);
    [
        (
            "SQ_DOORBELL",
            doorbell::sq(0),
            qps,
            "Send queue of queue pair N: producer index in slots.",
        ),
        (
            "RQ_DOORBELL",
            doorbell::rq(0),
            qps,
            "Receive queue of queue pair N: producer index in WQEs.",
        ),
        (
            "CQ_DOORBELL",
            doorbell::cq(0),
            cqs,
            "Arms completion queue N: bit 30 = the next completion, bit 31 = the next solicited or failed one, [23:0] consumer index.",
        ),
        (
            "SRQ_DOORBELL",
            doorbell::srq(0),
            srqs,
            "Shared receive queue N: producer index in WQEs.",
        ),
    ]
}

/// The page.
#[must_use]
pub fn page() -> String {
    let mut text = format!(
        "# Registers\n\n\
         Generated by `cargo xtask regs` from `proto/src/abi/regs.rs`; do not edit. `docs/registers.rdl` is the same as SystemRDL.\n\n\
         BAR0 has {} KiB. Registers are 32 bits, little-endian, and are read and written whole. Bits that are not named are 0.\n\n\
         | offset | name | access | reset | what |\n|---|---|---|---|---|\n",
        regs::BAR0_BYTES / 1024
    );
    for register in REGISTERS {
        let access = match register.access {
            Access::ReadOnly => "RO",
            Access::ReadWrite => "RW",
        };
        let doc = prose(register.doc).replace('|', "\\|");
        let _ = writeln!(
            text,
            "| 0x{:03x} | {} | {access} | 0x{:x} | {doc} |",
            register.offset, register.name, register.reset
        );
    }
    text += "\nThe reset value of a parameter of the build is that parameter; 0 stands for it here.\n\n## Fields\n\n| register | bits | field |\n|---|---|---|\n";
    for register in REGISTERS {
        for (name, low, width) in fields(register) {
            let bits = if width == 1 {
                format!("{low}")
            } else {
                format!("{}:{low}", low + width - 1)
            };
            let _ = writeln!(text, "| {} | {bits} | {name} |", register.name);
        }
    }
    text += "\n## Doorbells\n\nWrite only, 32 bits, 8 bytes from one to the next; those of queues that the build does not have do nothing. Producer indices are the host's: neither RESET of a queue pair nor any command clears them.\n\n| first | name | at most | what |\n|---|---|---|---|\n";
    for (name, at, count, what) in doorbells() {
        let _ = writeln!(text, "| 0x{at:06x} | {name} | {count} | {what} |");
    }
    text += "\n## Statistics\n\n64 bits each, read only; the low half is read first and latches the high half.\n\n| offset | counter | counts |\n|---|---|---|\n";
    for (i, (name, doc)) in STATS.iter().zip(STAT_DOCS).enumerate() {
        let at = STATS_BASE as usize + 8 * i;
        let _ = writeln!(text, "| 0x{at:04x} | `{name}` | {} |", prose(doc));
    }
    text
}

/// The SystemRDL 2.0.
#[must_use]
pub fn rdl() -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::from(
        "// Generated by `cargo xtask regs` from proto/src/abi/regs.rs; do not edit.\n\
         addrmap ferroce {\n    name = \"Ferroce\";\n    desc = \"BAR0 of the RoCEv2 NIC.\";\n    \
         littleendian;\n    lsb0;\n    addressing = compact;\n    default regwidth = 32;\n    default accesswidth = 32;\n\n",
    );
    for register in REGISTERS {
        let access = match register.access {
            Access::ReadOnly => "sw = r; hw = w;",
            Access::ReadWrite => "sw = rw; hw = r;",
        };
        let desc = quoted(&prose(register.doc));
        let _ = writeln!(text, "    reg {{\n        desc = \"{desc}\";");
        let fields = match fields(register) {
            parts if parts.is_empty() => vec![("value", 0, 32)],
            parts => parts,
        };
        for (name, low, width) in fields {
            let high = low + width - 1;
            let mask = (1u64 << width) - 1;
            let reset = (u64::from(register.reset) >> low) & mask;
            let _ = writeln!(
                text,
                "        field {{ {access} }} {name}[{high}:{low}] = {width}'h{reset:x};"
            );
        }
        let _ = writeln!(
            text,
            "    }} {} @ 0x{:x};\n",
            register.name, register.offset
        );
    }
    for (i, name) in STATS.iter().enumerate() {
        let _ = writeln!(
            text,
            "    reg {{ regwidth = 64; field {{ sw = r; hw = w; }} count[63:0] = 64'h0; }} {name} @ 0x{:x};",
            STATS_BASE as usize + 8 * i
        );
    }
    text.push('\n');
    let [sq, rq, cq, srq] = doorbells();
    // Both of a queue pair stand in one element: arrays may not interleave. The others have elements too: in IP-XACT the
    // registers of an array follow each other without a gap.
    for (name, bells) in [
        ("QP", &[sq, rq][..]),
        ("CQ", &[cq][..]),
        ("SRQ", &[srq][..]),
    ] {
        let (_, first, count, _) = bells[0];
        text += "    regfile {\n";
        for (name, at, _, what) in bells {
            let _ = writeln!(
                text,
                "        reg {{ desc = \"{what}\"; field {{ sw = w; hw = r; }} index[31:0] = 32'h0; }} {name} @ 0x{:x};",
                at - first
            );
        }
        let stride = doorbell::STRIDE;
        let _ = writeln!(text, "    }} {name}[{count}] @ 0x{first:x} += {stride};\n");
    }
    text.pop();
    text += "};\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_those_of_the_declarations() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for (path, text) in files() {
            let stands = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            assert!(stands == text, "{path} is stale: run cargo xtask regs");
        }
    }

    #[test]
    fn every_register_counter_and_field_is_in_both() {
        let (page, rdl) = (page(), rdl());
        for register in REGISTERS {
            assert!(page.contains(&format!(
                "| 0x{:03x} | {} |",
                register.offset, register.name
            )));
            assert!(rdl.contains(&format!("}} {} @ 0x{:x};", register.name, register.offset)));
        }
        for (i, name) in STATS.iter().enumerate() {
            let at = STATS_BASE as usize + 8 * i;
            assert!(page.contains(&format!("| 0x{at:04x} | `{name}` | ")));
            assert!(rdl.contains(&format!("}} {name} @ 0x{at:x};")));
        }
        assert!(page.contains("| PARAMS | 28:25 | log_eq |"));
        assert!(rdl.contains("engine_reset[1:1] = 1'h0;"));
        assert!(rdl.contains("value[31:0] = 32'h45435246;"), "MAGIC");
    }

    #[test]
    fn peakrdl_reads_the_map_and_writes_html_and_ip_xact() {
        // Out of CI nothing is installed for a test: `cargo xtask regs --out` brings it.
        let there = ferroce_system::cache::target_dir("tools").join("peakrdl");
        if !ferroce_system::in_ci() && !there.is_dir() {
            println!("skipped: run cargo xtask regs --out DIR once");
            return;
        }
        let out = tempfile::tempdir().unwrap();
        export(&tools::wheels("peakrdl", &PEAKRDL).unwrap(), out.path()).unwrap();
        assert!(out.path().join("html/index.html").is_file());
        let xml = fs::read_to_string(out.path().join("ferroce.xml")).unwrap();
        let registers = REGISTERS
            .iter()
            .map(|r| r.name)
            .chain(STATS.iter().copied());
        for name in registers.chain(doorbells().map(|(name, ..)| name)) {
            let tag = format!("<ipxact:name>{name}</ipxact:name>");
            assert!(xml.contains(&tag), "{name}");
        }
    }

    #[test]
    fn fields_do_not_overlap_and_fit() {
        for register in REGISTERS {
            let mut used = 0u64;
            for (name, low, width) in fields(register) {
                let mask = ((1u64 << width) - 1) << low;
                assert_eq!(used & mask, 0, "{}.{name}", register.name);
                used |= mask;
            }
            assert!(used <= u64::from(u32::MAX), "{}", register.name);
        }
    }
}

//! The README of a board.
use std::fmt::Write;

use super::{Build, Card};
use crate::emit::text::sizes;

/// What to do with the files.
pub(crate) fn readme(card: &Card, build: &Build) -> String {
    let top = format!("ferroce_{}", card.name);
    let mut text = format!(
        "# Ferroce on the {}\n\n\
         A 100G RoCEv2 NIC: engine, PCIe Gen3 x16, one QSFP28 ({}). Written by `cargo xtask emit --board {}`; do not edit.\n\n\
         **Nothing of this was run in Vivado or on a board.** The Verilog was read by Verilator and Yosys with stand-ins for\n\
         the vendor's blocks; the crossings were simulated; that each port has constraints and each constraint a port is tested.\n\n",
        card.title, card.port, card.name
    );
    text += &sizes(build);
    let _ = write!(
        text,
        "## Next\n\n\
         Run these here:\n\n\
         ```sh\n\
         verilator --lint-only -Wall -Wno-UNUSEDSIGNAL -Wno-SYNCASYNCNET --top-module {top} -f ferroce.f stub/vendor.v\n\
         vivado -mode batch -source build.tcl -tclargs until=synth\n\
         vivado -mode batch -source build.tcl\n\
         ```\n\n\
         The second shows whether Vivado takes the sources and the settings of its blocks; the third makes `vivado/` with the\n\
         bitstream and `vivado/reports`, and fails if timing is not met. Look at `cdc.rpt` and `bus_skew.rpt` too. With FuseSoC:\n\
         `fusesoc --cores-root . run ferroce:nic:{top}`.\n\n\
         ## Files\n\n\
         | file | what |\n|---|---|\n\
         | `rtl/` | the engine, a module a file |\n\
         | `shell/` | crossings, PCIe, MAC, lamps; `{top}.v` is the top |\n\
         | `constraints/` | clocks, pins, configuration, timing exceptions; `scoped/` those of each crossing cell |\n\
         | `settings.tcl` | part, versions, sites: what may have to be changed |\n\
         | `ip.tcl`, `scope.tcl`, `build.tcl` | vendor's blocks; scoped constraints; the project |\n\
         | `stub/vendor.v` | stand-ins for the vendor's blocks, for other tools; not part of the build |\n\
         | `registers.md`, `registers.rdl` | registers of the engine; those of the shell: `shell/shell_page.v` |\n\n\
         ## Board\n\n",
        top = top,
    );
    for note in card.notes {
        let _ = writeln!(text, "* {note}");
    }
    text
}

//! What stands beside the Verilog: file list, FuseSoC core, README.

use std::fmt::Write;

use ferroce_hdl::emit::{Module, parametric};
use ferroce_hdl::engine::LOG_SRQ;

use super::{Build, Bundle, Memories, bundle};

/// The engine alone, with AXI ports.
pub(crate) fn generic(build: &Build, modules: &[Module]) -> Bundle {
    let mut bundle = Bundle::default();
    let engine = parametric(modules);
    let paths: Vec<_> = engine.iter().map(|m| format!("rtl/{}.v", m.name)).collect();
    for (path, module) in paths.iter().zip(&engine) {
        bundle.add(path, interfaces(module));
    }
    let list = paths.iter().fold(String::new(), |text, p| text + p + "\n");
    bundle.add(bundle::MARK, list);
    bundle.add("ferroce.core", core(&paths));
    bundle.add("registers.md", crate::regs::page());
    bundle.add("registers.rdl", crate::regs::rdl());
    bundle.add("host-contract.md", crate::abi::page());
    bundle.add("ferroce_abi.h", crate::abi::header());
    bundle.add("ferroce_abi.vh", crate::abi::verilog_header());
    bundle.add("examples/write.c", crate::abi::EXAMPLE);
    bundle.add("examples/bench.v", bench(build.width));
    bundle.add("integration.md", INTEGRATION);
    bundle.add("README.md", readme(build, modules, &engine));
    bundle
}

/// The guide to integration between a MAC and a host.
const INTEGRATION: &str = include_str!("../../../../docs/integration.md");

/// A bench of the engine that any simulator runs.
fn bench(width: usize) -> String {
    let text = include_str!("bench.v");
    text.replace("localparam W = 64; ", &format!("localparam W = {width};"))
}

/// The top with what Vivado cannot see by the names of ports: which clock and reset its interfaces have.
fn interfaces(module: &Module) -> String {
    if module.name != "ferroce" {
        return module.text.clone();
    }
    let clock = "    (* X_INTERFACE_INFO = \"xilinx.com:signal:clock:1.0 clk CLK\" *)\n    \
                 (* X_INTERFACE_PARAMETER = \"ASSOCIATED_BUSIF s_axis_rx:m_axis_tx:s_axil:m_axi, ASSOCIATED_RESET rst\" *)\n";
    let reset = "    (* X_INTERFACE_INFO = \"xilinx.com:signal:reset:1.0 rst RST\" *)\n    \
                 (* X_INTERFACE_PARAMETER = \"POLARITY ACTIVE_HIGH\" *)\n";
    let ports = [
        ("    input  wire clk,\n", clock),
        ("    input  wire rst,\n", reset),
    ];
    ports
        .iter()
        .fold(module.text.clone(), |text, (port, mark)| {
            text.replacen(port, &format!("{mark}{port}"), 1)
        })
}

/// The description that FuseSoC reads.
fn core(paths: &[String]) -> String {
    let files: String = paths.iter().map(|p| format!("      - {p}\n")).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "CAPI=2:\n\
         name: ferroce:nic:ferroce:{version}\n\
         description: RoCEv2 NIC engine with AXI ports\n\
         \n\
         filesets:\n  \
           rtl:\n    \
             file_type: verilogSource-2005\n    \
             files:\n{files}\
         \n\
         targets:\n  \
           default: &default\n    \
             filesets: [rtl]\n    \
             toplevel: ferroce\n  \
           lint:\n    \
             <<: *default\n    \
             default_tool: verilator\n    \
             tools:\n      \
               verilator:\n        \
                 mode: lint-only\n        \
                 verilator_options: [-Wall]\n"
    )
}

/// `engine` is what is written of `modules`.
fn readme(build: &Build, modules: &[Module], engine: &[Module]) -> String {
    let mut text = String::from(
        "# Ferroce engine\n\n\
         A RoCEv2 NIC between a MAC and host memory, as Verilog-2005. Written by `cargo xtask emit`; do not edit.\n\n",
    );
    text += &sizes(build, modules);
    text += "## Next\n\n\
        Run these here:\n\n\
        ```sh\n\
        verilator --lint-only -Wall --top-module ferroce -f ferroce.f\n\
        yosys -p 'read_verilog rtl/*.v; synth_xilinx -family xcup -flatten -top ferroce -noiopad -noclkbuf; stat'\n\
        fusesoc --cores-root . run --target lint ferroce:nic:ferroce\n\
        ```\n\n\
        A first packet, in simulation: `examples/bench.v`; its head has the commands for Icarus and Verilator.\n\n\
        In Vivado: `read_verilog [glob rtl/*.v]`, then `synth_design -top ferroce -mode out_of_context -part PART`.\n\n";
    text += "## Ports\n\n\
        Timers and figures assume 250 MHz; `integration.md` has each port in detail.\n\n\
        | ports | what | side |\n|---|---|---|\n\
        | `clk`, `rst` | one clock; reset, synchronous to it, high for at least 16 cycles | |\n\
        | `s_axis_rx_*` | AXI4-Stream: frames from the MAC, without preamble and FCS; `tuser` with `tlast` = bad frame | MAC |\n\
        | `m_axis_tx_*` | AXI4-Stream: frames to the MAC, without FCS, not padded | MAC |\n\
        | `pause_req`, `pause_ack` | priorities that the peer pauses; those of which nothing is sent any more. Without PFC: 0, open | MAC |\n\
        | `rx_backlog` | much waits in front of `s_axis_rx`: lossless classes ask for a pause. 0 without a queue there | MAC |\n\
        | `pause_send` | priorities that the peer is to pause; open without PFC | MAC |\n\
        | `s_axil_*` | AXI4-Lite, 4 MiB: registers and doorbells (BAR0) | PCIe |\n\
        | `m_axi_*` | AXI4: host memory | PCIe |\n\
        | `irq_*` | valid/ready: MSI-X vector to send | PCIe |\n\n\
        ## Driver\n\n\
        `host-contract.md` is the programmer's guide, `ferroce_abi.h` the same for C, `examples/write.c` a first program.\n\
        `integration.md`: AXI properties, ordering, clocks, resets. Registers: `registers.md`, and `registers.rdl` for PeakRDL and the like.\n\n\
        ## Modules\n\n\
        Below first, the top is the last; one file each.\n\n\
        | module | what it is |\n|---|---|\n";
    for module in engine {
        let doc = module.text.lines().next().unwrap_or_default();
        let doc = doc.trim_start_matches("// ").replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {doc} |", module.name);
    }
    text
}

/// Table of the sizes of a build; `modules` is one for each size.
pub(super) fn sizes(build: &Build, modules: &[Module]) -> String {
    let (tables, memories) = (&build.tables, Memories::of(modules));
    format!(
        "| size | value |\n|---|---|\n\
         | data path | {} bits |\n\
         | queue pairs | {} |\n\
         | memory regions | {} |\n\
         | completion queues | {} |\n\
         | outstanding messages | {} |\n\
         | GID entries, event queues | {}, {} |\n\
         | address handles, shared receive queues | {}, {} |\n\
         | memories in UltraScale+, by the Verilog | {} block RAMs (RAMB36), {} UltraRAMs |\n\n",
        build.width,
        1u32 << tables.log_qp,
        1u32 << tables.log_mr,
        1u32 << tables.log_cq,
        1u32 << tables.log_outstanding,
        1u32 << tables.log_gid,
        1u32 << tables.log_eq,
        1u32 << tables.log_qp,
        1u32 << LOG_SRQ,
        memories.ramb36(),
        memories.uram,
    )
}

//! Verilog of the shells: crossing cells and what stands between engine and vendor's blocks, from `hdl/shell`, and the top.
//! Names here and in comments are without the `ferroce_` that all modules have.
use std::fmt::Write;

use super::card::{Card, LAMPS, Role};

macro_rules! verilog {
    ($folder:literal: $($name:literal),*) => {
        &[$((
            concat!("ferroce_", $name),
            include_str!(concat!("../../../../../hdl/shell/", $folder, "ferroce_", $name, ".v")),
        )),*]
    };
}
macro_rules! scoped {
    ($($name:literal),*) => {
        &[$((
            concat!("ferroce_", $name),
            include_str!(concat!("../../../../../hdl/shell/cdc/ferroce_", $name, ".xdc")),
        )),*]
    };
}

/// Cells between two clocks.
pub(crate) const CELLS: &[(&str, &str)] =
    verilog!("cdc/": "cdc_level", "cdc_reset", "cdc_count", "cdc_fifo");

/// Their constraints: scoped to the cell, wherever it stands.
pub(crate) const SCOPED: &[(&str, &str)] =
    scoped!("cdc_level", "cdc_reset", "cdc_count", "cdc_fifo");

/// The NIC of the 100G boards, children before parents.
pub(crate) const NIC_100G: &[(&str, &str)] = verilog!("": "leds", "shell_page", "msix_qdma", "host_qdma", "frame_hold",
    "rx_drop", "tx_gate", "mac_skid", "mac_cmac", "nic_100g");

/// The engine on an ECP5-5G Versa, children before parents.
pub(crate) const VERSA: &[(&str, &str)] = verilog!("": "leds", "frame_hold", "rx_drop", "mac_1g", "rgmii_ecp5", "uart_bus",
    "phy_reset", "axi_ram", "versa_ecp5");

/// Stand-ins for cells of the ECP5.
pub(crate) const VENDOR_ECP5: &str = include_str!("../../../../../hdl/shell/stub/vendor_ecp5.v");

/// Stand-ins for the vendor's blocks, for tools that do not have them.
pub(crate) const VENDOR: &str = include_str!("../../../../../hdl/shell/stub/vendor.v");

/// The top: `nic_100g` and the pins of this board.
pub(crate) fn top(card: &Card) -> String {
    let mut ports = vec![];
    let mut connections = vec![];
    let mut assigns = String::new();
    for pin in &card.pins {
        let direction = match pin.role {
            Role::Clock | Role::Reset => "input  wire",
            Role::Lamp | Role::Low | Role::High => "output wire",
        };
        ports.push(format!("{direction}        {}", pin.port));
        match pin.role {
            Role::Low | Role::High => {
                let level = u8::from(pin.role == Role::High);
                let _ = writeln!(assigns, "    assign {} = 1'b{level};", pin.port);
            }
            _ => connections.push(format!(".{0}({0})", pin.port)),
        }
    }
    for (name, top) in [("pcie", 15), ("qsfp", 3)] {
        for (side, direction) in [("rx", "input  wire"), ("tx", "output wire")] {
            for half in ["p", "n"] {
                let range = format!("[{top}:0]");
                ports.push(format!("{direction} {range:6} {name}_{side}_{half}"));
                connections.push(format!(".{name}_{side}_{half}({name}_{side}_{half})"));
            }
        }
    }
    let has = |port: &str| card.pins.iter().any(|p| p.port == port);
    let missing: Vec<_> = LAMPS.iter().filter(|port| !has(port)).collect();
    let mut unused = String::new();
    for port in &missing {
        let _ = writeln!(unused, "    wire {port};");
        connections.push(format!(".{port}({port})"));
    }
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|p| **p).collect();
        let _ = writeln!(
            unused,
            "    wire unused = &{{1'b0, {}}};\n",
            names.join(", ")
        );
    }
    if !assigns.is_empty() {
        assigns.push('\n');
    }
    format!(
        "// Ferroce on the {}: pins.\n\
         module ferroce_{} (\n    {}\n);\n{assigns}{unused}    ferroce_nic_100g nic (\n        {}\n    );\nendmodule\n",
        card.title,
        card.name,
        ports.join(",\n    "),
        connections.join(",\n        "),
    )
}

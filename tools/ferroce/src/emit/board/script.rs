//! Scripts of the tools.
use ferroce_proto::abi::pci;

use super::card::Card;
use super::shell;

/// Makes the vendor's blocks.
pub(crate) const IP: &str = include_str!("../../../../../hdl/shell/vivado/ip.tcl");
/// Adds the constraints of the crossing cells.
pub(crate) const SCOPE: &str = include_str!("../../../../../hdl/shell/vivado/scope.tcl");
/// Makes and builds the project.
pub(crate) const BUILD: &str = include_str!("../../../../../hdl/shell/vivado/build.tcl");

/// What a user may want to change.
pub(crate) fn settings(card: &Card) -> String {
    format!(
        "# Settings of this board; `-tclargs name=value` of build.tcl changes one.\n\
         set board {}\n\
         set part {}\n\
         # Versions of the vendor's blocks; empty: the newest that this Vivado has.\n\
         set qdma_version {{}}\n\
         set cmac_version {{}}\n\
         # The port: reference clock in MHz, site of the CMAC, sites of its transceivers.\n\
         set refclk_mhz {}\n\
         set cmac_site {}\n\
         set gt_group {{{}}}\n\
         # PCIe: site of the block (empty: the default of the vendor's block for this part), quad of lane 0.\n\
         set pcie_location {{{}}}\n\
         set pcie_quad {}\n\
         # PCI identity; a product needs one of its own.\n\
         set pci_vendor {:04x}\n\
         set pci_device {:04x}\n\
         set pci_subsystem {:04x}\n\
         set pci_revision {:02x}\n\
         set pci_class {:06x}\n",
        card.name,
        card.part,
        card.refclk_mhz,
        card.cmac,
        card.gt_group.as_deref().unwrap_or_default(),
        card.pcie_location.as_deref().unwrap_or_default(),
        card.pcie_quad,
        pci::VENDOR,
        pci::DEVICE,
        pci::SUBSYSTEM_HARDWARE,
        pci::REVISION,
        pci::CLASS,
    )
}

/// The description that FuseSoC reads.
pub(crate) fn core(card: &Card, sources: &[String]) -> String {
    let sources: String = sources.iter().map(|p| format!("      - {p}\n")).collect();
    let name = &card.name;
    let scoped = shell::SCOPED.iter().map(|(cell, _)| cell);
    let scoped: String = scoped
        .map(|cell| format!("      - constraints/scoped/{cell}.xdc: {{file_type: user}}\n"))
        .collect();
    format!(
        "CAPI=2:\n\
         name: ferroce:nic:ferroce_{name}:{version}\n\
         description: {description}\n\
         \n\
         filesets:\n  \
           rtl:\n    \
             file_type: verilogSource-2005\n    \
             files:\n{sources}  \
           stub:\n    \
             file_type: verilogSource-2005\n    \
             files:\n      \
               - stub/vendor.v\n  \
           vivado:\n    \
             files:\n      \
               - settings.tcl: {{file_type: user, copyto: settings.tcl}}\n      \
               - ip.tcl: {{file_type: tclSource}}\n      \
               - constraints/clocks.xdc: {{file_type: xdc}}\n      \
               - constraints/pins.xdc: {{file_type: xdc}}\n      \
               - constraints/config.xdc: {{file_type: xdc}}\n      \
               - constraints/timing.xdc: {{file_type: xdc}}\n      \
               - scope.tcl: {{file_type: tclSource}}\n\
         {scoped}\n\
         targets:\n  \
           default: &default\n    \
             filesets: [rtl, vivado]\n    \
             toplevel: ferroce_{name}\n    \
             default_tool: vivado\n    \
             tools:\n      \
               vivado:\n        \
                 part: {part}\n  \
           lint:\n    \
             filesets: [rtl, stub]\n    \
             toplevel: ferroce_{name}\n    \
             default_tool: verilator\n    \
             tools:\n      \
               verilator:\n        \
                 mode: lint-only\n        \
                 verilator_options: [-Wall, -Wno-SYNCASYNCNET]\n",
        version = env!("CARGO_PKG_VERSION"),
        description = quoted(&format!("RoCEv2 NIC on the {}", card.title)),
        part = card.part,
    )
}

/// A string of YAML.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_title_may_have_colons_and_quotes() {
        assert_eq!(super::quoted("Lab's: one"), "'Lab''s: one'");
    }
}

//! The engine on a board: shell, constraints, scripts of the tools.

pub(super) mod cards;
pub(super) mod ecp5;
mod script;
mod shell;
pub(super) mod text;
mod xdc;

use ferroce_hdl::emit::{Module, parametric};

use super::{Build, Bundle, bundle};

/// A lane of a transceiver: rx_p, rx_n, tx_p, tx_n.
pub(crate) type Lane = [&'static str; 4];

/// What a port of the top does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// One side of a transceiver's reference clock.
    Clock,
    /// A reset from outside, active low, asynchronous.
    Reset,
    /// A lamp.
    Lamp,
    /// Driven with this level.
    Level(bool),
}

/// A pin beside those of the lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    /// Port of the top.
    pub(crate) port: &'static str,
    /// Pin of the package.
    pub(crate) site: &'static str,
    /// I/O standard; none for those of transceivers.
    pub(crate) standard: Option<&'static str>,
    /// What it does.
    pub(crate) role: Role,
}

impl Pin {
    const fn new(
        port: &'static str,
        site: &'static str,
        standard: &'static str,
        role: Role,
    ) -> Self {
        let standard = Some(standard);
        Self {
            port,
            site,
            standard,
            role,
        }
    }

    const fn clock(port: &'static str, site: &'static str) -> Self {
        Self {
            port,
            site,
            standard: None,
            role: Role::Clock,
        }
    }

    const fn reset(port: &'static str, site: &'static str, standard: &'static str) -> Self {
        Self::new(port, site, standard, Role::Reset)
    }

    const fn lamp(port: &'static str, site: &'static str, standard: &'static str) -> Self {
        Self::new(port, site, standard, Role::Lamp)
    }

    const fn low(port: &'static str, site: &'static str, standard: &'static str) -> Self {
        Self::new(port, site, standard, Role::Level(false))
    }

    const fn high(port: &'static str, site: &'static str, standard: &'static str) -> Self {
        Self::new(port, site, standard, Role::Level(true))
    }
}

/// A PCIe card with an UltraScale+ FPGA and a 100G port.
#[derive(Debug)]
pub(crate) struct Card {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Name in texts.
    pub(crate) title: &'static str,
    /// Part, as Vivado spells it.
    pub(crate) part: &'static str,
    /// Block RAMs (RAMB36) and UltraRAMs of the part, of the vendor's product tables.
    pub(crate) memories: (u64, u64),
    /// Reference clock of the port in MHz.
    pub(crate) refclk_mhz: &'static str,
    /// Its period in ns.
    pub(crate) refclk_ns: &'static str,
    /// Site of the CMAC.
    pub(crate) cmac: &'static str,
    /// Sites of its transceivers.
    pub(crate) gt_group: Option<&'static str>,
    /// Power that the board gives the FPGA.
    pub(crate) power_w: Option<u32>,
    /// Data lines of the configuration flash.
    pub(crate) spi_width: u32,
    /// Cage that is used.
    pub(crate) port: &'static str,
    /// Site of the PCIe block as published designs have it, none if none is known; each has lane 0 in quad 227.
    pub(crate) pcie_location: Option<&'static str>,
    /// Lanes of PCIe, 0 first.
    pub(crate) pcie: &'static [Lane; 16],
    /// Lanes of the cage.
    pub(crate) qsfp: [Lane; 4],
    /// The other pins.
    pub(crate) pins: &'static [Pin],
    /// What one has to know of the board.
    pub(crate) notes: &'static [&'static str],
}

/// Verilog of the engine and, behind it, of a shell: path and text.
fn sources<'a>(
    modules: &'a [Module],
    shell: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> Vec<(String, &'a str)> {
    let engine = modules
        .iter()
        .map(|m| (format!("rtl/{}.v", m.name), m.text.as_str()));
    let shell = shell
        .into_iter()
        .map(|(name, text)| (format!("shell/{name}.v"), *text));
    engine.chain(shell).collect()
}

/// Starts a bundle with these sources; also their paths.
fn begin(sources: &[(String, &str)]) -> (Bundle, Vec<String>) {
    let mut bundle = Bundle::default();
    let paths: Vec<_> = sources.iter().map(|(path, _)| path.clone()).collect();
    for (path, text) in sources {
        bundle.add(path, *text);
    }
    let list: String = paths.iter().map(|path| format!("{path}\n")).collect();
    bundle.add(bundle::MARK, list);
    bundle.add("registers.md", crate::regs::page());
    bundle.add("registers.rdl", crate::regs::rdl());
    (bundle, paths)
}

/// Everything for `card`, around an engine of these modules.
pub(crate) fn card(card: &Card, build: &Build, modules: &[Module]) -> Bundle {
    let top = shell::top(card);
    let engine = parametric(modules);
    let mut sources = sources(&engine, shell::CELLS.iter().chain(shell::NIC_100G));
    sources.push((format!("shell/ferroce_{}.v", card.name), &top));
    let (mut bundle, paths) = begin(&sources);
    bundle.add("stub/vendor.v", shell::VENDOR);
    for (cell, text) in shell::SCOPED {
        bundle.add(format!("constraints/scoped/{cell}.xdc"), *text);
    }
    for (name, text) in xdc::files(card) {
        bundle.add(format!("constraints/{name}.xdc"), text);
    }
    bundle.add("settings.tcl", script::settings(card));
    bundle.add("ip.tcl", script::IP);
    bundle.add("scope.tcl", script::SCOPE);
    bundle.add("build.tcl", script::BUILD);
    bundle.add("ferroce.core", script::core(card, &paths));
    bundle.add("README.md", text::readme(card, build, modules));
    bundle
}

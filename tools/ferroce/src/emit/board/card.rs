//! PCIe cards with an UltraScale+ FPGA: what `board.toml` of each says of them.
//!
//! Those of the project stand in `constraints/`; `emit --board FOLDER` reads one from anywhere.
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::Usage;
use crate::emit::Board;

/// The file that describes a board.
pub(crate) const FILE: &str = "board.toml";

/// Sites of a lane of a transceiver: rx_p, rx_n, tx_p, tx_n.
pub(crate) type Lane = [String; 4];

/// What a port of the top does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// One side of a transceiver's reference clock.
    Clock,
    /// The reset of PCIe, active low, asynchronous.
    Reset,
    /// A lamp.
    Lamp,
    /// Driven low.
    Low,
    /// Driven high.
    High,
}

/// A pin beside those of the lanes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    /// Port of the top.
    pub(crate) port: String,
    /// Pin of the package.
    pub(crate) site: String,
    /// I/O standard; none for those of transceivers.
    pub(crate) standard: Option<String>,
    /// What it does.
    pub(crate) role: Role,
}

/// A PCIe card with an UltraScale+ FPGA and a 100G port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name on the command line.
    pub(crate) name: String,
    /// Name in texts.
    pub(crate) title: String,
    /// Part, as Vivado spells it.
    pub(crate) part: String,
    /// Block RAMs (RAMB36) of the part, of the vendor's product tables.
    pub(crate) ramb36: u64,
    /// UltraRAMs of the part.
    pub(crate) uram: u64,
    /// Reference clock of the port in MHz, as the CMAC's settings spell it.
    pub(crate) refclk_mhz: String,
    /// Site of the CMAC.
    pub(crate) cmac: String,
    /// Sites of its transceivers; none if they are not known.
    pub(crate) gt_group: Option<String>,
    /// Power in watts that the board gives the FPGA.
    pub(crate) power_w: Option<u32>,
    /// Quad of PCIe lane 0.
    pub(crate) pcie_quad: String,
    /// Site of the PCIe block as published designs have it; none: the default of the vendor's block.
    pub(crate) pcie_location: Option<String>,
    /// Data lines of the configuration flash.
    pub(crate) spi_width: u32,
    /// Cage that is used.
    pub(crate) cage: String,
    /// What one has to know of the board.
    pub(crate) notes: Vec<String>,
    /// The pins beside those of the lanes.
    pub(crate) pins: Vec<Pin>,
    /// Lanes of PCIe, 0 first.
    pub(crate) pcie: Vec<Lane>,
    /// Lanes of the cage.
    pub(crate) qsfp: Vec<Lane>,
}

/// Ports that the shell has to get, and their roles.
const NEEDED: [(&str, Role); 5] = [
    ("pcie_refclk_p", Role::Clock),
    ("pcie_refclk_n", Role::Clock),
    ("qsfp_refclk_p", Role::Clock),
    ("qsfp_refclk_n", Role::Clock),
    ("pcie_reset_n", Role::Reset),
];

/// Lamps that the shell drives.
pub(crate) const LAMPS: [&str; 3] = ["led_link", "led_activity", "led_fault"];

/// Whether `text` is a name in Verilog and Tcl.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether `text` is a word that a constraint can hold: nothing in it ends or substitutes anything in Tcl.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.~".contains(c))
}

impl Card {
    /// A board by the text of its `board.toml`.
    ///
    /// # Errors
    /// What is wrong with it, in a line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let card: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| {
                text[..span.start].bytes().filter(|&b| b == b'\n').count() + 1
            });
            format!("line {line}: {}", error.message())
        })?;
        card.check()?;
        Ok(card)
    }

    /// Whether a shell can be made from it.
    fn check(&self) -> Result<(), String> {
        if !is_name(&self.name) || Board::OTHERS.contains(&self.name.as_str()) {
            return Err(format!(
                "name {:?}: small letters, digits and _, and not that of another build",
                self.name
            ));
        }
        self.refclk_ns()?;
        let words = [
            ("part", Some(&self.part)),
            ("cmac", Some(&self.cmac)),
            ("gt_group", self.gt_group.as_ref()),
            ("pcie_quad", Some(&self.pcie_quad)),
            ("pcie_location", self.pcie_location.as_ref()),
        ];
        for (field, word) in words {
            if let Some(word) = word.filter(|word| !is_word(word)) {
                return Err(format!("{field} {word:?}: letters, digits and _-.~ only"));
            }
        }
        if self.title.contains('\n') || ![1, 2, 4, 8].contains(&self.spi_width) {
            return Err("title: a line; spi_width: 1, 2, 4 or 8".into());
        }
        for (name, lanes, want) in [("pcie", &self.pcie, 16), ("qsfp", &self.qsfp, 4)] {
            if lanes.len() != want {
                return Err(format!("{name}: {} lanes, not {want}", lanes.len()));
            }
        }
        self.check_pins()
    }

    fn check_pins(&self) -> Result<(), String> {
        for (port, role) in NEEDED {
            if !self.pins.iter().any(|p| p.port == port && p.role == role) {
                let role = format!("{role:?}").to_lowercase();
                return Err(format!("pins: {port} with role {role} is missing"));
            }
        }
        let mut ports = BTreeSet::new();
        for pin in &self.pins {
            let (port, standard) = (&pin.port, pin.standard.as_deref());
            let of_shell = match pin.role {
                Role::Clock | Role::Reset => NEEDED.contains(&(port.as_str(), pin.role)),
                Role::Lamp => LAMPS.contains(&port.as_str()),
                Role::Low | Role::High => true,
            };
            if !is_name(port) || !of_shell || !ports.insert(port) {
                let lamps = LAMPS.join(", ");
                return Err(format!(
                    "pin {port:?}: each port once; a lamp is one of {lamps}, clocks and reset are those of PCIe and cage"
                ));
            }
            if standard.is_some() == (pin.role == Role::Clock) || !standard.is_none_or(is_word) {
                return Err(format!(
                    "pin {port}: a clock has no I/O standard, others have one"
                ));
            }
        }
        let lanes = self.pcie.iter().chain(&self.qsfp).flatten();
        let mut sites = BTreeSet::new();
        for site in lanes.chain(self.pins.iter().map(|pin| &pin.site)) {
            if !is_word(site) || !sites.insert(site) {
                return Err(format!(
                    "site {site:?}: letters and digits, each for one pin"
                ));
            }
        }
        Ok(())
    }

    /// Period of the reference clock of the port in ns.
    ///
    /// # Errors
    /// The frequency is none.
    pub(crate) fn refclk_ns(&self) -> Result<String, String> {
        let mhz: Option<f64> = self.refclk_mhz.parse().ok();
        let mhz = mhz.filter(|mhz| (50.0..1000.0).contains(mhz));
        let mhz = mhz.ok_or_else(|| format!("refclk_mhz {:?}: 50 to 1000", self.refclk_mhz))?;
        Ok(format!("{:.3}", 1000.0 / mhz))
    }

    /// The board that a folder describes.
    ///
    /// # Errors
    /// [`Usage`] with what is wrong.
    pub(crate) fn read(folder: &Path) -> Result<&'static Self, Usage> {
        let path = folder.join(FILE);
        let refuse = |why: String| Usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| refuse(error.to_string()))?;
        let card = Self::parse(&text).map_err(refuse)?;
        // one a run
        Ok(Box::leak(Box::new(card)))
    }
}

macro_rules! cards {
    ($($name:literal),*) => {
        [$(include_str!(concat!("../../../../../constraints/", $name, "/board.toml"))),*]
    };
}

/// The boards of the project.
pub(crate) static CARDS: LazyLock<Vec<Card>> = LazyLock::new(|| {
    let texts = cards!("u50", "u55c", "u200", "u250", "u280", "vcu118");
    let card = |text| Card::parse(text).unwrap_or_else(|why| panic!("constraints: {why}"));
    texts.map(card).into()
});

#[cfg(test)]
mod tests {
    use super::*;

    const U50: &str = include_str!("../../../../../constraints/u50/board.toml");

    #[test]
    fn what_a_board_cannot_be_is_refused_in_a_line_that_names_it() {
        assert_eq!(Card::parse(U50).unwrap().refclk_ns().unwrap(), "6.206");
        let led = r#"{ port = "led_link", site = "E16", standard = "LVCMOS18", role = "lamp" }"#;
        for (from, to, part) in [
            ("\"u50\"", "\"U 50\"", "name \"U 50\""),
            ("\"u50\"", "\"generic\"", "not that of another build"),
            ("\"xcu50-fsvh2104-2-e\"", "\"x; exit\"", "part \"x; exit\""),
            ("\"161.1328125\"", "\"fast\"", "refclk_mhz \"fast\""),
            ("spi_width = 4", "spi_width = 3", "spi_width: 1, 2, 4 or 8"),
            (
                r#"    ["AL2", "AL1", "Y5", "Y4"],"#,
                "",
                "pcie: 15 lanes, not 16",
            ),
            (
                "\"pcie_reset_n\"",
                "\"reset_n\"",
                "pcie_reset_n with role reset is missing",
            ),
            ("\"led_link\"", "\"led_power\"", "pin \"led_power\""),
            (
                ", standard = \"LVCMOS18\", role = \"low\"",
                ", role = \"low\"",
                "pin hbm_cattrip",
            ),
            ("site = \"E18\"", "site = \"E16\"", "site \"E16\""),
            (led, r#"{ port = "led_link" }"#, "missing field `site`"),
            ("uram = 640", "urams = 640", "unknown field `urams`"),
        ] {
            let spoilt = U50.replacen(from, to, 1);
            assert_ne!(spoilt, U50, "{from} is not there");
            let why = Card::parse(&spoilt).unwrap_err();
            assert!(why.contains(part), "{from}: {why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }
}

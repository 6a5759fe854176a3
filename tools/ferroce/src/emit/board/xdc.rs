//! Constraints of a card, by what they are for.
use std::fmt::Write;

use super::card::{Card, Role};

/// Name and text of each file.
pub(crate) fn files(card: &Card) -> [(&'static str, String); 4] {
    [
        ("clocks", clocks(card)),
        ("pins", pins(card)),
        ("config", config(card)),
        ("timing", timing(card)),
    ]
}

fn clocks(card: &Card) -> String {
    format!(
        "# {}: clocks that come in by pins. The others are made by the vendor's blocks, which constrain them: 250 MHz of\n\
         # PCIe, the core's clock; 322.265625 MHz of the MAC; 125 MHz, from 250 MHz by an MMCM.\n\
         create_clock -name pcie_refclk -period 10.000 [get_ports pcie_refclk_p]\n\
         create_clock -name qsfp_refclk -period {} [get_ports qsfp_refclk_p]\n",
        card.title,
        card.refclk_ns().expect("checked")
    )
}

fn pins(card: &Card) -> String {
    let mut text = format!("# {}: pins. Cage {}.\n", card.title, card.cage);
    for pin in &card.pins {
        let site = &pin.site;
        let _ = match &pin.standard {
            None => writeln!(
                text,
                "set_property PACKAGE_PIN {site} [get_ports {}]",
                pin.port
            ),
            Some(standard) => {
                let more = match pin.role {
                    Role::Lamp => " SLEW SLOW DRIVE 8",
                    Role::Reset => " PULLUP true",
                    // A line that has to be low must not float up while the FPGA is configured.
                    Role::Low => " PULLDOWN true",
                    Role::High | Role::Clock => "",
                };
                writeln!(
                    text,
                    "set_property -dict {{PACKAGE_PIN {site} IOSTANDARD {standard}{more}}} [get_ports {}]",
                    pin.port
                )
            }
        };
    }
    for (name, lanes) in [("pcie", &card.pcie[..]), ("qsfp", &card.qsfp[..])] {
        let _ = writeln!(text, "\n# Lanes of {name}.");
        for (lane, sites) in lanes.iter().enumerate() {
            for (half, site) in ["rx_p", "rx_n", "tx_p", "tx_n"].iter().zip(sites) {
                let _ = writeln!(
                    text,
                    "set_property PACKAGE_PIN {site} [get_ports {{{name}_{half}[{lane}]}}]"
                );
            }
        }
    }
    text
}

fn config(card: &Card) -> String {
    let mut text = format!(
        "# {}: configuration and power. The rate of the configuration clock is left at its default.\n\
         set_property CONFIG_VOLTAGE 1.8 [current_design]\n\
         set_property BITSTREAM.CONFIG.SPI_BUSWIDTH {} [current_design]\n\
         # The flash has more than 2^24 bytes: addresses of four bytes, sent at the falling edge.\n\
         set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR Yes [current_design]\n\
         set_property BITSTREAM.CONFIG.SPI_FALL_EDGE Yes [current_design]\n\
         set_property BITSTREAM.GENERAL.COMPRESS true [current_design]\n",
        card.title, card.spi_width
    );
    if let Some(power) = card.power_w {
        let _ = writeln!(
            text,
            "set_operating_conditions -design_power_budget {power}"
        );
    }
    text
}

fn timing(card: &Card) -> String {
    let mut text = format!(
        "# {}: timing exceptions of the pins: lines that are slow or asynchronous.\n\
         # Crossings between clocks have their constraints with their cells (constraints/scoped), and there are no clock groups:\n\
         # a path between two clocks that no cell covers is timed, and fails.\n",
        card.title
    );
    for pin in &card.pins {
        let port = &pin.port;
        let _ = match pin.role {
            Role::Clock => Ok(()),
            Role::Reset => writeln!(
                text,
                "set_false_path -from [get_ports {port}]\nset_input_delay 0 [get_ports {port}]"
            ),
            Role::Lamp | Role::Low | Role::High => writeln!(
                text,
                "set_false_path -to [get_ports {port}]\nset_output_delay 0 [get_ports {port}]"
            ),
        };
    }
    text
}

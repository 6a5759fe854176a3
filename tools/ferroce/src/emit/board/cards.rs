//! What is known of each board: parts, pins, clocks. Taken from published board files that agree with each other; nothing
//! here was tried on a board.
use super::{Card, Lane, Pin};

/// Lanes 0 to 15 of PCIe on the U50.
const PCIE_U50: [Lane; 16] = [
    ["AL2", "AL1", "Y5", "Y4"],
    ["AM4", "AM3", "AA7", "AA6"],
    ["AK4", "AK3", "AB5", "AB4"],
    ["AN2", "AN1", "AC7", "AC6"],
    ["AP4", "AP3", "AD5", "AD4"],
    ["AR2", "AR1", "AF5", "AF4"],
    ["AT4", "AT3", "AE7", "AE6"],
    ["AU2", "AU1", "AH5", "AH4"],
    ["AV4", "AV3", "AG7", "AG6"],
    ["AW2", "AW1", "AJ7", "AJ6"],
    ["BA2", "BA1", "AL7", "AL6"],
    ["BC2", "BC1", "AM9", "AM8"],
    ["AY4", "AY3", "AN7", "AN6"],
    ["BB4", "BB3", "AP9", "AP8"],
    ["BD4", "BD3", "AR7", "AR6"],
    ["BE6", "BE5", "AT9", "AT8"],
];

/// Lanes 0 to 15 of PCIe on the U55C and the U280, which share a package.
const PCIE_H2892: [Lane; 16] = [
    ["AL2", "AL1", "AL11", "AL10"],
    ["AM4", "AM3", "AM9", "AM8"],
    ["AN6", "AN5", "AN11", "AN10"],
    ["AN2", "AN1", "AP9", "AP8"],
    ["AP4", "AP3", "AR11", "AR10"],
    ["AR2", "AR1", "AR7", "AR6"],
    ["AT4", "AT3", "AT9", "AT8"],
    ["AU2", "AU1", "AU11", "AU10"],
    ["AV4", "AV3", "AU7", "AU6"],
    ["AW6", "AW5", "AV9", "AV8"],
    ["AW2", "AW1", "AW11", "AW10"],
    ["AY4", "AY3", "AY9", "AY8"],
    ["BA6", "BA5", "BA11", "BA10"],
    ["BA2", "BA1", "BB9", "BB8"],
    ["BB4", "BB3", "BC11", "BC10"],
    ["BC2", "BC1", "BC7", "BC6"],
];

/// Lanes 0 to 15 of PCIe on the U200 and the U250.
const PCIE_U200: [Lane; 16] = [
    ["AF2", "AF1", "AF7", "AF6"],
    ["AG4", "AG3", "AG9", "AG8"],
    ["AH2", "AH1", "AH7", "AH6"],
    ["AJ4", "AJ3", "AJ9", "AJ8"],
    ["AK2", "AK1", "AK7", "AK6"],
    ["AL4", "AL3", "AL9", "AL8"],
    ["AM2", "AM1", "AM7", "AM6"],
    ["AN4", "AN3", "AN9", "AN8"],
    ["AP2", "AP1", "AP7", "AP6"],
    ["AR4", "AR3", "AR9", "AR8"],
    ["AT2", "AT1", "AT7", "AT6"],
    ["AU4", "AU3", "AU9", "AU8"],
    ["AV2", "AV1", "AV7", "AV6"],
    ["AW4", "AW3", "BB5", "BB4"],
    ["BA2", "BA1", "BD5", "BD4"],
    ["BC2", "BC1", "BF5", "BF4"],
];

/// Lanes 0 to 15 of PCIe on the VCU118.
const PCIE_VCU118: [Lane; 16] = [
    ["AA4", "AA3", "Y7", "Y6"],
    ["AB2", "AB1", "AB7", "AB6"],
    ["AC4", "AC3", "AD7", "AD6"],
    ["AD2", "AD1", "AF7", "AF6"],
    ["AE4", "AE3", "AH7", "AH6"],
    ["AF2", "AF1", "AK7", "AK6"],
    ["AG4", "AG3", "AM7", "AM6"],
    ["AH2", "AH1", "AN5", "AN4"],
    ["AJ4", "AJ3", "AP7", "AP6"],
    ["AK2", "AK1", "AR5", "AR4"],
    ["AM2", "AM1", "AT7", "AT6"],
    ["AP2", "AP1", "AU5", "AU4"],
    ["AT2", "AT1", "AW5", "AW4"],
    ["AV2", "AV1", "BA5", "BA4"],
    ["AY2", "AY1", "BC5", "BC4"],
    ["BB2", "BB1", "BE5", "BE4"],
];

/// Lanes of QSFP0 on the U200 and the U250.
const QSFP_U200: [Lane; 4] = [
    ["N4", "N3", "N9", "N8"],
    ["M2", "M1", "M7", "M6"],
    ["L4", "L3", "L9", "L8"],
    ["K2", "K1", "K7", "K6"],
];

/// Pins of the U200 and the U250.
const PINS_U200: &[Pin] = &[
    Pin::clock("pcie_refclk_p", "AM11"),
    Pin::clock("pcie_refclk_n", "AM10"),
    Pin::clock("qsfp_refclk_p", "M11"),
    Pin::clock("qsfp_refclk_n", "M10"),
    Pin::reset("pcie_reset_n", "BD21", "LVCMOS12"),
    Pin::lamp("led_link", "BC21", "LVCMOS12"),
    Pin::lamp("led_activity", "BB21", "LVCMOS12"),
    Pin::lamp("led_fault", "BA20", "LVCMOS12"),
    Pin::low("qsfp_modsell", "BE16", "LVCMOS12"),
    Pin::high("qsfp_resetl", "BE17", "LVCMOS12"),
    Pin::low("qsfp_lpmode", "BD18", "LVCMOS12"),
];

/// Alveo U50.
pub(crate) const U50: Card = Card {
    name: "u50",
    title: "Alveo U50",
    part: "xcu50-fsvh2104-2-e",
    memories: (1344, 640),
    refclk_mhz: "161.1328125",
    refclk_ns: "6.206",
    cmac: "CMACE4_X0Y4",
    gt_group: Some("X0Y28~X0Y31"),
    power_w: Some(63),
    spi_width: 4,
    port: "QSFP",
    pcie_location: Some("PCIE4C_X1Y0"),
    pcie: &PCIE_U50,
    qsfp: [
        ["J45", "J46", "D42", "D43"],
        ["G45", "G46", "C40", "C41"],
        ["F43", "F44", "B42", "B43"],
        ["E45", "E46", "A40", "A41"],
    ],
    pins: &[
        Pin::clock("pcie_refclk_p", "AF9"),
        Pin::clock("pcie_refclk_n", "AF8"),
        Pin::clock("qsfp_refclk_p", "N36"),
        Pin::clock("qsfp_refclk_n", "N37"),
        Pin::reset("pcie_reset_n", "AW27", "LVCMOS18"),
        Pin::lamp("led_link", "E16", "LVCMOS18"),
        Pin::lamp("led_activity", "E18", "LVCMOS18"),
        Pin::lamp("led_fault", "F17", "LVCMOS18"),
        Pin::low("hbm_cattrip", "J18", "LVCMOS18"),
    ],
    notes: &[
        "HBM is not used; HBM_CATTRIP is driven low, as a floating one may shut the card down.",
        "The lamps are those of the QSFP cage: green is the link, the other two are traffic and faults.",
        "QSFP sidebands are not on pins of the FPGA.",
        "With a 100G CMAC the rail MGTYAVtt has little margin: about 3.97 A of 4 A, as published for another shell.",
        "The PCIe reference clock is the one of bank 225; the other, AB9, is known to fail placement.",
    ],
};

/// Alveo U55C.
pub(crate) const U55C: Card = Card {
    name: "u55c",
    title: "Alveo U55C",
    part: "xcu55c-fsvh2892-2L-e",
    memories: (2016, 960),
    refclk_mhz: "161.1328125",
    refclk_ns: "6.206",
    cmac: "CMACE4_X0Y3",
    gt_group: Some("X0Y24~X0Y27"),
    power_w: Some(100),
    spi_width: 4,
    port: "QSFP0",
    pcie_location: Some("PCIE4C_X1Y0"),
    pcie: &PCIE_H2892,
    qsfp: [
        ["AD51", "AD52", "AD46", "AD47"],
        ["AC53", "AC54", "AC44", "AC45"],
        ["AC49", "AC50", "AB46", "AB47"],
        ["AB51", "AB52", "AA48", "AA49"],
    ],
    pins: &[
        Pin::clock("pcie_refclk_p", "AR15"),
        Pin::clock("pcie_refclk_n", "AR14"),
        Pin::clock("qsfp_refclk_p", "AD42"),
        Pin::clock("qsfp_refclk_n", "AD43"),
        Pin::reset("pcie_reset_n", "BF41", "LVCMOS18"),
        Pin::lamp("led_link", "BK11", "LVCMOS18"),
        Pin::lamp("led_activity", "BL13", "LVCMOS18"),
        Pin::lamp("led_fault", "BJ11", "LVCMOS18"),
        Pin::low("hbm_cattrip", "BE45", "LVCMOS18"),
    ],
    notes: &[
        "HBM is not used; HBM_CATTRIP is driven low, as a floating one may shut the card down.",
        "The lamps are those of the QSFP cage: green is the link, the other two are traffic and faults.",
        "QSFP1 is not used.",
    ],
};

/// Alveo U200.
pub(crate) const U200: Card = Card {
    name: "u200",
    title: "Alveo U200",
    part: "xcu200-fsgd2104-2-e",
    memories: (2160, 960),
    refclk_mhz: "156.25",
    refclk_ns: "6.400",
    cmac: "CMACE4_X0Y6",
    gt_group: Some("X1Y48~X1Y51"),
    power_w: Some(160),
    spi_width: 4,
    port: "QSFP0",
    pcie_location: Some("X1Y2"),
    pcie: &PCIE_U200,
    qsfp: QSFP_U200,
    pins: PINS_U200,
    notes: &[
        "QSFP1, DDR4 and the second reference clocks of the cages are not used.",
        "The site of the CMAC is a choice: published shells use X0Y6, X0Y7 and X0Y8 for this cage.",
    ],
};

/// Alveo U250.
pub(crate) const U250: Card = Card {
    name: "u250",
    title: "Alveo U250",
    part: "xcu250-figd2104-2-e",
    memories: (2688, 1280),
    refclk_mhz: "156.25",
    refclk_ns: "6.400",
    cmac: "CMACE4_X0Y8",
    gt_group: Some("X1Y44~X1Y47"),
    power_w: Some(160),
    spi_width: 4,
    port: "QSFP0",
    pcie_location: None,
    pcie: &PCIE_U200,
    qsfp: QSFP_U200,
    pins: PINS_U200,
    notes: &[
        "QSFP1, DDR4 and the second reference clocks of the cages are not used.",
        "The pins are those of the U200, the sites of the transceivers are not.",
        "No published design names the site of the PCIe block: it is the default of the vendor's block. If placement fails, name it, `-tclargs pcie_location=...`.",
        "Some projects spell the part xcu250-figd2104-2L-e.",
    ],
};

/// Alveo U280.
pub(crate) const U280: Card = Card {
    name: "u280",
    title: "Alveo U280",
    part: "xcu280-fsvh2892-2L-e",
    memories: (2016, 960),
    refclk_mhz: "156.25",
    refclk_ns: "6.400",
    cmac: "CMACE4_X0Y6",
    gt_group: Some("X0Y40~X0Y43"),
    power_w: Some(160),
    spi_width: 4,
    port: "QSFP0",
    pcie_location: Some("PCIE4C_X1Y0"),
    pcie: &PCIE_H2892,
    qsfp: [
        ["L53", "L54", "L48", "L49"],
        ["K51", "K52", "L44", "L45"],
        ["J53", "J54", "K46", "K47"],
        ["H51", "H52", "J48", "J49"],
    ],
    pins: &[
        Pin::clock("pcie_refclk_p", "AR15"),
        Pin::clock("pcie_refclk_n", "AR14"),
        Pin::clock("qsfp_refclk_p", "T42"),
        Pin::clock("qsfp_refclk_n", "T43"),
        Pin::reset("pcie_reset_n", "BH26", "LVCMOS18"),
        Pin::low("hbm_cattrip", "D32", "LVCMOS18"),
    ],
    notes: &[
        "HBM is not used; HBM_CATTRIP is driven low, as a floating one may shut the card down. One published file calls that pin, D32, an LED: it is not.",
        "No lamps are known on pins of the FPGA.",
        "QSFP1, DDR4 and the second reference clocks of the cages (SI546, with their enables) are not used.",
    ],
};

/// VCU118.
pub(crate) const VCU118: Card = Card {
    name: "vcu118",
    title: "VCU118",
    part: "xcvu9p-flga2104-2L-e",
    memories: (2160, 960),
    refclk_mhz: "156.25",
    refclk_ns: "6.400",
    cmac: "CMACE4_X0Y7",
    gt_group: None,
    power_w: None,
    spi_width: 8,
    port: "QSFP1",
    pcie_location: Some("X1Y2"),
    pcie: &PCIE_VCU118,
    qsfp: [
        ["Y2", "Y1", "V7", "V6"],
        ["W4", "W3", "T7", "T6"],
        ["V2", "V1", "P7", "P6"],
        ["U4", "U3", "M7", "M6"],
    ],
    pins: &[
        Pin::clock("pcie_refclk_p", "AL9"),
        Pin::clock("pcie_refclk_n", "AL8"),
        Pin::clock("qsfp_refclk_p", "W9"),
        Pin::clock("qsfp_refclk_n", "W8"),
        Pin::reset("pcie_reset_n", "AM17", "LVCMOS18"),
        Pin::lamp("led_link", "AT32", "LVCMOS12"),
        Pin::lamp("led_activity", "AV34", "LVCMOS12"),
        Pin::lamp("led_fault", "AY30", "LVCMOS12"),
        Pin::low("qsfp_modsell", "AM21", "LVCMOS18"),
        Pin::high("qsfp_resetl", "BA22", "LVCMOS18"),
        Pin::low("qsfp_lpmode", "AN21", "LVCMOS18"),
    ],
    notes: &[
        "The sites of the transceivers of QSFP1 (bank 231) are not known here: name them, `-tclargs gt_group=...`; build.tcl stops without.",
        "Some projects spell the part xcvu9p-flga2104-2-e.",
        "QSFP2, SGMII, DDR4 are not used.",
    ],
};

//! Tables of traffic classes at the input `classes` of a block.

use ferroce_proto::abi::regs;

use super::Bench;
use crate::model::classes::Tables;

/// Class of each priority.
const PRIO_CLASS: u32 = 0x0213_3120;
const DEFAULT_PRIO: u32 = 5;

/// Writes tables in which neighbours of a DSCP and of a PCP have other priorities; which of the two counts is drawn.
///
/// # Panics
/// If the block has no such input.
pub fn write_classes(bench: &mut Bench) -> Tables {
    let by_pcp = bench.rng().bool();
    let mut tables = Tables::default();
    let trust = if by_pcp { 1 } else { 2 };
    tables.write(regs::TRUST, trust | DEFAULT_PRIO << 8);
    tables.write(regs::PRIO_CLASS, PRIO_CLASS);
    let mut table = [0; 8];
    for (i, word) in (0..).zip(&mut table) {
        *word = 0x7654_3210_u32.rotate_left(4 * i);
        tables.write(regs::DSCP_PRIO_0 + 4 * i, *word);
    }
    let input = |name: &str| {
        let port = bench.dut().input(&format!("classes.{name}"));
        port.expect("a block that looks classes up")
    };
    let fields = [
        (input("by_pcp"), by_pcp.into()),
        (input("default_prio"), DEFAULT_PRIO.into()),
        (input("prio_class"), PRIO_CLASS.into()),
    ];
    let places = input("dscp_prio");
    for (field, value) in fields {
        bench.dut_mut().set(field, value);
    }
    bench.dut_mut().write(places, &table);
    tables
}

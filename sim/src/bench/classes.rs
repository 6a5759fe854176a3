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

/// Class of a frame of the host: by its PCP or its DSCP; what is not IP counts as of DSCP 0.
#[must_use]
pub fn class_of(tables: &Tables, frame: &[u8]) -> u64 {
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let tagged = [byte(12), byte(13)] == [0x81, 0];
    let ip = if tagged { 18 } else { 14 };
    let tclass = match [byte(ip - 2), byte(ip - 1)] {
        [8, 0] => byte(ip + 1),
        [0x86, 0xdd] => byte(ip) << 4 | byte(ip + 1) >> 4,
        _ => 0,
    };
    let pcp = tagged.then(|| byte(14) >> 5);
    tables.class(tables.priority(tclass, pcp)).into()
}

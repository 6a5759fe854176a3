//! Which tools of the system the tests of a binary need.

use std::path::Path;

use ferroce_guest::TOOLS as GUEST;

use super::binaries::Binary;
use crate::tools::{self, ENGINE, Tool};

/// What programs written for rdma-core are and need.
const VERBS: &[Tool] = &[
    tools::IBVERBS_UTILS,
    tools::IBVERBS_PROVIDERS,
    tools::IBVERBS_DEV,
    tools::PERFTEST,
    tools::RDMACM_UTILS,
    tools::RDMACM_DEV,
];
/// What else some test of the workspace needs.
const OTHERS: &[Tool] = &[
    tools::YOSYS,
    tools::IVERILOG,
    tools::MAKE,
    tools::Z3,
    tools::TSHARK,
    tools::STRACE,
    tools::IPROUTE,
    tools::PYVERBS,
];

/// Everything.
pub(super) fn all() -> Vec<Tool> {
    [ENGINE, VERBS, OTHERS, GUEST].concat()
}

/// What these need, each once.
pub(super) fn of(binaries: &[Binary]) -> Vec<Tool> {
    let mut needed: Vec<Tool> = Vec::new();
    for binary in binaries {
        let (name, package) = binary.place();
        for tool in needs(name, package) {
            if needed.iter().all(|known| known.package() != tool.package()) {
                needed.push(tool);
            }
        }
    }
    needed
}

/// What the binary `name` of a package needs; everything if it is not known here.
fn needs(name: &str, package: &Path) -> Vec<Tool> {
    let package = package.to_string_lossy();
    let list: &[&[Tool]] = match (&*package, name) {
        ("proto" | "vfio-user" | "hdl/emit" | "hdl/kernel" | "cabi" | "tools/system", _) => &[],
        ("driver", "it") => &[&[tools::STRACE]],
        ("driver", _) => &[],
        ("hdl", _) => &[ENGINE, &[tools::YOSYS]],
        ("sim", "pcap" | "tshark") => &[ENGINE, &[tools::TSHARK]],
        ("sim", "icarus") => &[ENGINE, &[tools::IVERILOG]],
        ("sim", "neighbours") => &[ENGINE, &[tools::IPROUTE]],
        ("sim", "served") => &[ENGINE, GUEST],
        ("sim", _) => &[ENGINE],
        ("tests", "conformance" | "differential" | "replay") => &[ENGINE],
        ("ibverbs" | "rdmacm" | "simverbs", _) => &[ENGINE, VERBS],
        ("tests/vfio" | "tools/guest", _) => &[ENGINE, GUEST],
        ("tools/ferroce", "demo") | ("tools/xtask", "bench") => &[ENGINE],
        ("tools/ferroce", "card") => &[ENGINE, GUEST, VERBS],
        ("tools/xtask", "synth") => &[ENGINE, &[tools::YOSYS]],
        ("tools/xtask", "docs") => &[],
        _ => return all(),
    };
    list.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(name: &str, package: &str) -> Vec<&'static str> {
        let tools = needs(name, Path::new(package));
        tools.iter().map(Tool::package).collect()
    }

    #[test]
    fn a_test_of_the_wire_needs_nothing_and_one_of_the_engine_no_guest() {
        assert!(packages("ferroce_proto", "proto").is_empty());
        let engine = packages("conformance", "tests");
        assert_eq!(engine, ["verilator", "g++", "zlib1g-dev"]);
    }

    #[test]
    fn what_is_not_known_needs_everything() {
        assert_eq!(needs("new", Path::new("somewhere")).len(), all().len());
    }
}

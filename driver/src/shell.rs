//! What the shell of a board tells, in a page of BAR0 that the engine does not use: `hdl/shell/ferroce_shell_page.v`.

use crate::Backend;

/// Register that tells that there is a shell, and what it reads: "SHLL".
const MAGIC: u64 = 0x8000;
const MAGIC_VALUE: u32 = 0x4c4c_4853;
/// Version of the page, the major one in the high half, and the major one that is known here.
const VERSION: u64 = 0x8004;
const MAJOR: u32 = 1;
/// State of the link: bit 0, it is up.
const LINK: u64 = 0x8008;

/// Whether the port has a link; `None` of a card without a shell that tells.
pub(crate) fn link_up(backend: &impl Backend) -> Option<bool> {
    let is_known = backend.read32(MAGIC) == MAGIC_VALUE && backend.read32(VERSION) >> 16 == MAJOR;
    is_known.then(|| backend.read32(LINK) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_those_of_the_shell() {
        let source = include_str!("../../hdl/shell/ferroce_shell_page.v");
        for row in [
            format!("| {MAGIC:#x} | {MAGIC_VALUE:#x}, \"SHLL\""),
            format!("| {VERSION:#x} | version of this page: major in the high half"),
            format!("| {LINK:#x} | [0] link up"),
            format!("VERSION = 32'h{MAJOR:04x}_"),
        ] {
            assert!(source.contains(&row), "{row}");
        }
    }
}

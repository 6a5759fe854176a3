//! Why the tests that are skipped cannot run: what the suite says, and what is behind it.

/// A part of what the suite says, and why.
const REASONS: [(&str, &str); 15] = [
    ("XRCD", NO_XRC),
    ("Device memory", "the card has no memory for programs"),
    ("ODP", "the card reaches pinned memory only"),
    ("dmabuf", NO_GPU),
    ("renderD", NO_GPU),
    ("RAW", NO_RAW),
    ("Raw Packet", NO_RAW),
    ("QP type 8 ", NO_RAW),
    ("Extended QP", "the engine has no atomic writes"),
    ("Extended CQ", "the engine has no tag matching"),
    ("Tag matching", "the engine has no tag matching"),
    (
        "Parent Domain",
        "the memory of queues is the library's own: a program cannot give it",
    ),
    (
        "net interface",
        "librdmacm asks the kernel for the device, and the kernel knows nothing of it",
    ),
    (
        "Importing a device",
        "objects of another process cannot be had: a card belongs to one",
    ),
    ("huge page", "the machine has no huge pages set aside"),
];
const NO_XRC: &str = "the engine has no XRC";
const NO_RAW: &str = "the engine has no queue pairs for raw packets";
const NO_GPU: &str = "the machine has no graphics processor whose memory could be registered";

/// What is behind a reason of the suite; `None` for one without an explanation yet.
pub(super) fn explain(reason: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(part, _)| reason.contains(part));
    found.map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_differ() {
        assert_eq!(explain("Create XRCD is not supported"), Some(NO_XRC));
        assert_eq!(explain("Create QP type 8 is not supported"), Some(NO_RAW));
        assert_eq!(
            explain("There are no huge pages of size 2M allocated"),
            explain("huge page")
        );
        assert_eq!(explain("something else"), None);
    }
}

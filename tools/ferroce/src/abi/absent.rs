//! The page of what is absent: the lists of the specification and of libibverbs, each entry with the word of the contract it
//! has here, or the reason why there is none.

use std::fmt::Write as _;

/// The page, below the root of the repository.
pub const PAGE: &str = "docs/absent.md";

/// Whether something is here.
#[derive(Clone, Copy)]
enum Here {
    /// By this name of the host contract, or as this text says.
    Yes(&'static str),
    /// It is not, for this reason.
    No(&'static str),
}
use Here::{No, Yes};

/// An entry of a list.
type Row = (&'static str, Here);

/// Opcodes of the BTH from the first to the last, what they are, and whether the card sends and takes them.
type Opcodes = (u8, u8, &'static str, Here);

const LINK: &str = "the code is reserved, no card sends it: the driver reads the state of the link";

const RESERVED: Here = No("reserved");

/// IB1 table 38; A17 (CNP), A14 (XRC), A19 (FLUSH, ATOMIC WRITE).
const OPCODES: &[Opcodes] = &[
    (
        0x00,
        0x14,
        "RC: SEND, WRITE, READ, ACK, atomics",
        Yes("all of them"),
    ),
    (0x15, 0x15, "RC", RESERVED),
    (0x16, 0x17, "RC: SEND with invalidate", Yes("both")),
    (0x18, 0x1b, "RC", RESERVED),
    (
        0x1c,
        0x1d,
        "RC: FLUSH, ATOMIC WRITE",
        No("no memory of the host is known to be persistent"),
    ),
    (0x1e, 0x1f, "RC", RESERVED),
    (0x20, 0x2b, "UC: SEND, WRITE", Yes("all of them")),
    (0x2c, 0x3f, "UC", RESERVED),
    (
        0x40,
        0x5f,
        "RD: reliable datagrams",
        No("no RoCE card and no verbs library has them"),
    ),
    (0x60, 0x63, "UD", RESERVED),
    (0x64, 0x65, "UD: SEND, with immediate", Yes("both")),
    (0x66, 0x80, "UD, CNP", RESERVED),
    (0x81, 0x81, "CNP", Yes("sent and obeyed")),
    (0x82, 0x9f, "CNP", RESERVED),
    (
        0xa0,
        0xb7,
        "XRC: extended RC",
        No("receive queues are shared by SRQs; a connection a process"),
    ),
    (0xb8, 0xbf, "XRC", RESERVED),
    (0xc0, 0xff, "of the manufacturer", No("none are defined")),
];

/// `enum ibv_event_type` (IB1 11.6.3).
const EVENTS: &[Row] = &[
    ("IBV_EVENT_CQ_ERR", Yes("CQ_ERROR")),
    ("IBV_EVENT_QP_FATAL", Yes("QP_FATAL")),
    ("IBV_EVENT_QP_REQ_ERR", Yes("QP_REQ_ERR")),
    ("IBV_EVENT_QP_ACCESS_ERR", Yes("QP_ACCESS_ERR")),
    ("IBV_EVENT_COMM_EST", Yes("COMM_EST")),
    ("IBV_EVENT_SQ_DRAINED", Yes("SQ_DRAINED")),
    (
        "IBV_EVENT_PATH_MIG",
        No("a connection has one path: no automatic path migration"),
    ),
    (
        "IBV_EVENT_PATH_MIG_ERR",
        No("no automatic path migration; MigReq is sent and ignored"),
    ),
    (
        "IBV_EVENT_DEVICE_FATAL",
        Yes("raised by the driver: the card is gone, or STATUS shows a fault"),
    ),
    ("IBV_EVENT_PORT_ACTIVE", No(LINK)),
    ("IBV_EVENT_PORT_ERR", No(LINK)),
    (
        "IBV_EVENT_LID_CHANGE",
        No("RoCE has no LIDs and no subnet manager"),
    ),
    (
        "IBV_EVENT_PKEY_CHANGE",
        No("the one P_Key is 0xffff, as RoCE cards have it"),
    ),
    ("IBV_EVENT_SM_CHANGE", No("no subnet manager")),
    (
        "IBV_EVENT_SRQ_ERR",
        No("a WQE of an SRQ that cannot be read ends the queue pair that took it"),
    ),
    ("IBV_EVENT_SRQ_LIMIT_REACHED", Yes("SRQ_LIMIT")),
    ("IBV_EVENT_QP_LAST_WQE_REACHED", Yes("LAST_WQE_REACHED")),
    ("IBV_EVENT_CLIENT_REREGISTER", No("no subnet manager")),
    (
        "IBV_EVENT_GID_CHANGE",
        No("addresses are given when the card is opened, and stay"),
    ),
    (
        "IBV_EVENT_WQ_FATAL",
        No("no work queues outside queue pairs"),
    ),
];

/// `enum ibv_wc_status` (IB1 11.6.2).
const STATUSES: &[Row] = &[
    ("IBV_WC_SUCCESS", Yes("SUCCESS")),
    ("IBV_WC_LOC_LEN_ERR", Yes("LOC_LEN_ERR")),
    ("IBV_WC_LOC_QP_OP_ERR", Yes("LOC_QP_OP_ERR")),
    ("IBV_WC_LOC_EEC_OP_ERR", No("of reliable datagrams")),
    ("IBV_WC_LOC_PROT_ERR", Yes("LOC_PROT_ERR")),
    ("IBV_WC_WR_FLUSH_ERR", Yes("WR_FLUSH_ERR")),
    ("IBV_WC_MW_BIND_ERR", Yes("MW_BIND_ERR")),
    ("IBV_WC_BAD_RESP_ERR", Yes("BAD_RESP_ERR")),
    ("IBV_WC_LOC_ACCESS_ERR", Yes("LOC_ACCESS_ERR")),
    ("IBV_WC_REM_INV_REQ_ERR", Yes("REM_INV_REQ_ERR")),
    ("IBV_WC_REM_ACCESS_ERR", Yes("REM_ACCESS_ERR")),
    ("IBV_WC_REM_OP_ERR", Yes("REM_OP_ERR")),
    ("IBV_WC_RETRY_EXC_ERR", Yes("RETRY_EXC_ERR")),
    ("IBV_WC_RNR_RETRY_EXC_ERR", Yes("RNR_RETRY_EXC_ERR")),
    ("IBV_WC_LOC_RDD_VIOL_ERR", No("of reliable datagrams")),
    ("IBV_WC_REM_INV_RD_REQ_ERR", No("of reliable datagrams")),
    ("IBV_WC_REM_ABORT_ERR", Yes("REM_ABORT_ERR")),
    ("IBV_WC_INV_EECN_ERR", No("of reliable datagrams")),
    ("IBV_WC_INV_EEC_STATE_ERR", No("of reliable datagrams")),
    (
        "IBV_WC_FATAL_ERR",
        No("a fault of the card is the event DEVICE_FATAL"),
    ),
    (
        "IBV_WC_RESP_TIMEOUT_ERR",
        No("a message of a user's MAD service; no such service is here"),
    ),
    ("IBV_WC_GENERAL_ERR", Yes("GENERAL_ERR")),
    (
        "IBV_WC_TM_ERR, IBV_WC_TM_RNDV_INCOMPLETE",
        No("no tag matching"),
    ),
];

/// `enum ibv_wr_opcode`.
const REQUESTS: &[Row] = &[
    ("IBV_WR_RDMA_WRITE", Yes("WRITE")),
    ("IBV_WR_RDMA_WRITE_WITH_IMM", Yes("WRITE_IMM")),
    ("IBV_WR_SEND", Yes("SEND")),
    ("IBV_WR_SEND_WITH_IMM", Yes("SEND_IMM")),
    ("IBV_WR_RDMA_READ", Yes("READ")),
    ("IBV_WR_ATOMIC_CMP_AND_SWP", Yes("CMP_SWAP")),
    ("IBV_WR_ATOMIC_FETCH_AND_ADD", Yes("FETCH_ADD")),
    ("IBV_WR_LOCAL_INV", Yes("LOCAL_INV")),
    ("IBV_WR_BIND_MW", Yes("BIND_MW")),
    ("IBV_WR_SEND_WITH_INV", Yes("SEND_INV")),
    ("IBV_WR_TSO", No("RDMA only")),
    ("IBV_WR_DRIVER1", No("an operation of another vendor")),
    (
        "IBV_WR_FLUSH, IBV_WR_ATOMIC_WRITE",
        No("see their opcodes above"),
    ),
];

/// States of a queue pair (IB1 10.3.1).
const STATES: &[Row] = &[
    ("Reset", Yes("RESET")),
    ("Initialized", Yes("INIT")),
    ("Ready to receive", Yes("RTR")),
    ("Ready to send", Yes("RTS")),
    ("Send queue drain", Yes("SQD")),
    ("Send queue error", Yes("SQE")),
    ("Error", Yes("ERR")),
];

/// Types of queue pairs.
const TYPES: &[Row] = &[
    ("Reliable connection", Yes("RC")),
    ("Unreliable connection", Yes("UC")),
    ("Unreliable datagram", Yes("UD")),
    ("Reliable datagram", No("see its opcodes above")),
    (
        "Extended reliable connection (XRC)",
        No("see its opcodes above"),
    ),
    (
        "Raw packet, raw IPv6, raw Ethertype",
        No("other frames go through the exception queue"),
    ),
];

/// Facilities that no list above names, with their clause.
const FACILITIES: &[Row] = &[
    (
        "End-to-end flow control (IB1 9.7.7.2)",
        No("each ACK announces credit code 31, and credits of a peer are not obeyed"),
    ),
    (
        "Automatic path migration (IB1 17.2.8)",
        No("a connection has one path"),
    ),
    ("Multicast (IB1 10.5)", No("not built")),
    (
        "P_Key table of more than one entry (IB1 10.9)",
        No("RoCE cards have the one that is 0xffff"),
    ),
    (
        "Queue pair 0, subnet management (IB1 14)",
        No("RoCE has none (A17)"),
    ),
    (
        "Zero based regions, regions of another address (IB1 10.6)",
        No("the address of a region is that of its memory"),
    ),
    (
        "Fast registration by a work request (IB1 10.6)",
        No("of kernels, not of user programs"),
    ),
    (
        "Resizing of shared receive queues (`IBV_SRQ_MAX_WR`)",
        No("refused with EOPNOTSUPP, as some cards do"),
    ),
    (
        "On-demand paging, device memory, DMA-BUF (of libibverbs)",
        No("memory is pinned memory of the host"),
    ),
    (
        "Time stamps of completions, counters of flows (of libibverbs)",
        No("refused with EOPNOTSUPP"),
    ),
    ("RoCE v1 (A16)", No("GIDs are of RoCE v2: UDP port 4791")),
];

/// A list with its heading and what it is made from.
const LISTS: &[(&str, &str, &[Row])] = &[
    (
        "Types of queue pairs",
        "IB1 3.2.2, A14; `TYPE` of the host contract",
        TYPES,
    ),
    (
        "States of a queue pair",
        "IB1 10.3.1; `STATE` of the host contract",
        STATES,
    ),
    (
        "Work requests",
        "`enum ibv_wr_opcode`; `WQE` of the host contract",
        REQUESTS,
    ),
    (
        "Statuses of completions",
        "`enum ibv_wc_status`; `WC` of the host contract",
        STATUSES,
    ),
    (
        "Events",
        "`enum ibv_event_type`, IB1 11.6.3; `EVENT` of the host contract",
        EVENTS,
    ),
    ("Facilities", "clauses as named", FACILITIES),
];

/// The text before the lists.
const HEAD: &str = "# What is absent

Generated by `cargo xtask regs` from `tools/ferroce/src/abi/absent.rs`; do not edit. A test compares the lists with the host contract and with the table of opcodes.

The lists of the InfiniBand specification (IB1, its annexes A14 to A19) and of libibverbs, entry by entry: what it is here, or why it is not. What is here and not as it should be: [known gaps](architecture.md#7-known-gaps). What libibverbs refuses: [libibverbs](ibverbs.md#what-is-refused).

Changes of state: the driver and libibverbs permit those of IB1 10.3.1, and refuse others with `EINVAL`. The card itself permits more: [host contract](host-contract.md).

";

/// How an entry stands in its table.
fn cell(here: Here) -> String {
    match here {
        Yes(text) if text.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
            format!("`{text}`")
        }
        Yes(text) => text.to_owned(),
        No(reason) => format!("**absent**: {reason}"),
    }
}

/// The page.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(HEAD);
    text += "## Opcodes\n\nBTH opcodes (IB1 9.2; A14, A17, A19). A packet of an absent one is counted as `rx_malformed` and dropped.\n\n| codes | what | here |\n|---|---|---|\n";
    for &(first, last, what, here) in OPCODES {
        let codes = match first == last {
            true => format!("{first:#04x}"),
            false => format!("{first:#04x} to {last:#04x}"),
        };
        let _ = writeln!(text, "| {codes} | {what} | {} |", cell(here));
    }
    for (title, source, rows) in LISTS {
        let _ = write!(
            text,
            "\n## {title}\n\n{source}.\n\n| entry | here |\n|---|---|\n"
        );
        for &(what, here) in *rows {
            let _ = writeln!(text, "| {what} | {} |", cell(here));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ferroce_proto::wire::Opcode;

    use super::super::catalog;
    use super::*;

    /// Events of the contract that verbs have no name for, and those that no card sends ([`LINK`]).
    const OTHER_EVENTS: [&str; 4] = ["COMPLETION", "EXCEPTION", "PORT_UP", "PORT_DOWN"];

    #[test]
    fn every_opcode_is_in_the_list_and_is_here_if_it_says_so() {
        let mut next = 0u16;
        for &(first, last, what, here) in OPCODES {
            assert_eq!(u16::from(first), next, "{what}");
            next = u16::from(last) + 1;
            for code in first..=last {
                let there = Opcode::from_code(code).is_some();
                assert_eq!(there, matches!(here, Yes(_)), "{code:#x}: {what}");
            }
        }
        assert_eq!(next, 256);
    }

    #[test]
    fn every_code_of_the_contract_stands_in_its_list_once() {
        for (list, rows, other) in [
            ("TYPE", TYPES, &[][..]),
            ("STATE", STATES, &[]),
            ("WQE", REQUESTS, &[]),
            ("WC", STATUSES, &[]),
            ("EVENT", EVENTS, &OTHER_EVENTS),
        ] {
            let codes = catalog::codes(list).unwrap().codes;
            let names: BTreeSet<_> = codes.iter().map(|code| code.name).collect();
            let mut here: Vec<_> = other.to_vec();
            here.extend(rows.iter().filter_map(|(_, here)| match here {
                Yes(name) if !name.contains(' ') => Some(*name),
                _ => None,
            }));
            assert_eq!(here.len(), names.len(), "{list}: {here:?}");
            assert_eq!(here.into_iter().collect::<BTreeSet<_>>(), names, "{list}");
        }
    }
}

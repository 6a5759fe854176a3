//! Where the cycles of a message go, block by block: read from traces of both engines, by names of the emitted Verilog.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ferroce_sim::verilator::CLOCK_PERIOD_PS;
use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalHandle, FstSignalValue};

use super::flood;
use super::rig::Setup;

/// When a stage ends.
#[derive(Clone, Copy)]
enum End {
    /// In the first cycle in which all of these are high; `name[3]` is a bit.
    First(&'static [&'static str]),
    /// In the last cycle of the first time for which this is high: a frame has beats.
    Last(&'static str),
}

/// A stage and its end. It begins with the end of the one before it; the first of a list only says where that begins.
type Stage = (&'static str, End);

/// The requester, from the doorbell to the first beat on the wire.
const REQUEST: [Stage; 16] = [
    ("doorbell", End::First(&["s_axil_wvalid", "s_axil_wready"])),
    (
        "doorbell_register",
        End::First(&["u_core.sq_doorbell_valid"]),
    ),
    (
        "send_queue",
        End::First(&["u_core.transmit_wqe_read_valid"]),
    ),
    (
        "wqe_reader",
        End::First(&["m_axi_arvalid", "m_axi_arready"]),
    ),
    (
        "wqe_memory",
        End::First(&["m_axi_rvalid", "m_axi_rready", "m_axi_rlast"]),
    ),
    (
        "wqe_fetch",
        End::First(&["u_core.u_transmit.u_requester.queues_slots_valid"]),
    ),
    (
        "wqe_region_check",
        End::First(&["u_core.u_transmit.u_requester.u_send.check_m_valid"]),
    ),
    (
        "grant",
        End::First(&["u_core.u_transmit.u_requester.queues_grant_valid"]),
    ),
    (
        "packet_cut",
        End::First(&["u_core.u_transmit.requester_gather_valid"]),
    ),
    (
        "payload_request",
        End::First(&["u_core.transmit_payload_read_valid"]),
    ),
    (
        "payload_reader",
        End::First(&["m_axi_arvalid", "m_axi_arready"]),
    ),
    (
        "payload_memory",
        End::First(&["m_axi_rvalid", "m_axi_rready", "m_axi_rlast"]),
    ),
    (
        "payload_align",
        End::First(&["u_core.u_transmit.gather_payload_0_valid"]),
    ),
    (
        "header_merge",
        End::First(&["u_core.u_transmit.u_back.mux_m_valid"]),
    ),
    ("tx_icrc", End::First(&["u_core.transmit_m_axis_tx_tvalid"])),
    ("tx_steering", End::First(&["m_axis_tx_tvalid"])),
];

/// The responder, from the last beat of the request to the first W beat.
const RECEIVE: [Stage; 8] = [
    (
        "last_beat",
        End::First(&["s_axis_rx_tvalid", "s_axis_rx_tready", "s_axis_rx_tlast"]),
    ),
    (
        "rx_parse",
        End::Last("u_core.u_receive.u_front.u_parse.class_q[0]"),
    ),
    (
        "rx_icrc",
        End::First(&["u_core.u_receive.front_meta_valid"]),
    ),
    ("rx_check", End::First(&["u_core.u_receive.check_m_valid"])),
    (
        "rx_psn_and_rkey",
        End::First(&["u_core.u_receive.responder_m_valid"]),
    ),
    ("rx_walk", End::First(&["u_core.receive_mr_valid"])),
    (
        "rx_region_check",
        End::First(&["u_core.u_receive.u_scatter.verdicts_m_valid"]),
    ),
    ("rx_axi", End::First(&["m_axi_wvalid"])),
];

/// The responder, from the first burst of payload to the first beat of the ACK.
const ACK: [Stage; 7] = [
    ("burst", End::First(&["u_core.receive_write_valid"])),
    (
        "ack_token",
        End::First(&["u_core.u_receive.scatter_ack_valid"]),
    ),
    ("ack_hold", End::First(&["u_core.u_receive.hold_m_valid"])),
    (
        "ack_reply",
        End::First(&["u_core.u_transmit.response_descs_m_valid"]),
    ),
    (
        "ack_header",
        End::First(&["u_core.u_transmit.u_back.mux_m_valid"]),
    ),
    (
        "ack_icrc",
        End::First(&["u_core.transmit_m_axis_tx_tvalid"]),
    ),
    ("ack_steering", End::First(&["m_axis_tx_tvalid"])),
];

/// The requester, from the last beat of the ACK to the CQE's W beat.
const COMPLETE: [Stage; 9] = [
    (
        "last_beat",
        End::First(&["s_axis_rx_tvalid", "s_axis_rx_tready", "s_axis_rx_tlast"]),
    ),
    (
        "answer_parse",
        End::Last("u_core.u_receive.u_front.u_parse.class_q[0]"),
    ),
    (
        "answer_icrc",
        End::First(&["u_core.u_receive.front_meta_valid"]),
    ),
    (
        "answer_check",
        End::First(&["u_core.u_receive.check_responses_valid"]),
    ),
    ("answer_track", End::First(&["u_core.receive_answer_valid"])),
    (
        "answer_send_queue",
        End::First(&["u_core.u_transmit.u_requester.u_queues.state_retire_valid"]),
    ),
    ("answer_retire", End::First(&["u_core.transmit_cq_valid"])),
    ("cqe", End::First(&["u_core.control_cqe_write_valid"])),
    ("cqe_axi", End::First(&["m_axi_wvalid"])),
];

/// Cycles of each stage of a WRITE of 64 bytes through idle engines that are [traced](Setup::traced).
pub(super) fn of_a_write(setup: &Setup) -> Result<Vec<(&'static str, u64)>> {
    let folder = tempfile::tempdir().context("no folder for the traces")?;
    let single = flood::single(setup, false, Some(folder.path()))?;
    let trace = |index: usize| Trace::read(&folder.path().join(format!("{index}.fst")));
    let (a, b) = (trace(0)?, trace(1)?);
    let [request, receive] = [a.walk(&REQUEST)?, b.walk(&RECEIVE)?];
    // What the pins say is another measurement.
    let sum = |stages: &[(&str, u64)]| stages.iter().map(|(_, cycles)| cycles).sum::<u64>();
    let (found, pins) = (
        [sum(&request), sum(&receive)],
        [single.doorbell_to_wire, single.stages[5]],
    );
    ensure!(
        found == pins,
        "blocks take {found:?} cycles, and pins tell of {pins:?}"
    );
    Ok([request, receive, b.walk(&ACK)?, a.walk(&COMPLETE)?].concat())
}

/// Cycles from which a bit was high and from which it was low again, the largest number if it stayed high.
type Highs = Vec<(u64, u64)>;

/// What was high when.
struct Trace(HashMap<&'static str, Highs>);

impl Trace {
    fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).context("a trace is missing")?;
        let mut reader = FstReader::open(BufReader::new(file)).context("a trace is damaged")?;
        let (mut scope, mut handles) = (Vec::new(), HashMap::<String, FstSignalHandle>::new());
        reader.read_hierarchy(|entry| match entry {
            FstHierarchyEntry::Scope { name, .. } => scope.push(name),
            FstHierarchyEntry::UpScope => drop(scope.pop()),
            FstHierarchyEntry::Var { name, handle, .. } => {
                // Behind the names of the program and of the engine; a vector has its range behind its name.
                let name = name.split(' ').next().unwrap_or_default();
                let inner = scope.iter().skip(2).map(String::as_str);
                let path = inner.chain([name]).collect::<Vec<_>>().join(".");
                handles.insert(path, handle);
            }
            _ => {}
        })?;
        let mut trace = HashMap::new();
        // Signals that are the same wire have one handle.
        let mut wanted = HashMap::<usize, Vec<(&str, usize)>>::new();
        let mut filter = Vec::new();
        for name in [&REQUEST[..], &RECEIVE, &ACK, &COMPLETE]
            .concat()
            .iter()
            .flat_map(|(_, end)| end.signals())
        {
            if trace.insert(*name, Highs::new()).is_some() {
                continue;
            }
            let (path, bit) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
                Some((path, bit)) => (path, bit.parse()?),
                None => (*name, 0),
            };
            let handle = handles.remove(path).with_context(|| {
                format!("the engine has no signal `{path}`; name it anew in the bench's stages")
            })?;
            let same = wanted.entry(handle.get_index()).or_default();
            same.push((*name, bit));
            filter.push(handle);
        }
        let read = reader.read_signals::<Infallible>(
            &FstFilter::filter_signals(filter),
            |time, handle, value| {
                // What the rising edge of a cycle changes is seen in the next one.
                let cycle = (time + CLOCK_PERIOD_PS / 2) / CLOCK_PERIOD_PS;
                let FstSignalValue::String(bits) = value else {
                    return Ok(());
                };
                for &(name, bit) in &wanted[&handle.get_index()] {
                    let highs = trace.get_mut(name).expect("put there above");
                    let is_high = bits[bits.len() - 1 - bit] == b'1';
                    // A second change in a cycle, when the inputs of the cycle are there, takes the first one back.
                    match highs.last().copied() {
                        Some((begin, u64::MAX)) if !is_high => {
                            highs.pop();
                            highs.extend((begin < cycle).then_some((begin, cycle)));
                        }
                        Some((begin, end)) if is_high && end == cycle => {
                            highs.pop();
                            highs.push((begin, u64::MAX));
                        }
                        Some((_, u64::MAX)) => {}
                        _ => highs.extend(is_high.then_some((cycle, u64::MAX))),
                    }
                }
                Ok(())
            },
        );
        read.ok().context("a trace is damaged")?;
        Ok(Self(trace))
    }

    /// The cycles that each stage takes.
    fn walk(&self, stages: &[Stage]) -> Result<Vec<(&'static str, u64)>> {
        let mut at = 0;
        let mut spans = Vec::new();
        for (name, end) in stages {
            let next = self.find(end, at);
            let next = next.with_context(|| format!("stage `{name}` does not end in the trace"))?;
            spans.push((*name, next - at));
            at = next;
        }
        // That is where the first one begins.
        Ok(spans.split_off(1))
    }

    /// The cycle of `end`, not before `from`.
    fn find(&self, end: &End, from: u64) -> Option<u64> {
        match end {
            End::Last(name) => {
                let mut ends = self.0[name].iter().map(|(_, end)| end - 1);
                ends.find(|&last| last >= from)
            }
            End::First(names) => {
                let covers = |cycle: u64, name: &str| {
                    let mut highs = self.0[name].iter();
                    highs.any(|&(begin, end)| begin <= cycle && cycle < end)
                };
                let begins = names.iter().flat_map(|name| &self.0[name]);
                let begins = begins.map(|&(begin, _)| begin.max(from)).chain([from]);
                let mut all = begins.filter(|&cycle| names.iter().all(|name| covers(cycle, name)));
                let first = all.next()?;
                Some(all.fold(first, u64::min))
            }
        }
    }
}

impl End {
    fn signals(&self) -> &[&'static str] {
        match self {
            Self::First(names) => names,
            Self::Last(name) => std::slice::from_ref(name),
        }
    }
}

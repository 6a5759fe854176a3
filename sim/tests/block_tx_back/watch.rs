//! What the block reports, cycle by cycle.

use std::collections::BTreeMap;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Output};

/// Counts what the card reports, and idle cycles on the wire.
pub(crate) struct Watch {
    lost: [Output; 2],
    lost_qpn: [Output; 2],
    /// Requests of which the frame is begun: valid, queue pair, the PSN behind, `notify`.
    started: [Output; 4],
    frames: Output,
    bytes: Output,
    roce: Output,
    acks: Output,
    enters: Output,
    valid: Output,
    last: Output,
    mark: Output,
    /// The mark of the frame of the last beat that was offered in each cycle.
    pub(crate) marks: BTreeMap<u64, u64>,
    lost_psn: [Output; 2],
    lost_msn: [Output; 2],
    /// Queue pair, PSN and MSN.
    pub(crate) lost_of: [Vec<[u64; 3]>; 2],
    /// Requests reported: queue pair and PSN.
    pub(crate) departed: Vec<(u16, u32)>,
    /// Frames, bytes, RoCEv2 packets, acknowledgements.
    pub(crate) counts: [u64; 4],
    /// Frames that passed the merge of the lanes.
    pub(crate) entered: u64,
    /// Between the first beat of a frame and its last.
    inside: bool,
    /// Cycles inside frames in which no beat was offered.
    pub(crate) gaps: u64,
    /// Cycles of the first and the latest beat, and beats.
    pub(crate) first: Option<u64>,
    pub(crate) latest: u64,
    pub(crate) beats: u64,
}

impl Watch {
    pub(crate) fn new(dut: &Dut) -> Self {
        let output = |name: &str| dut.output(name).expect("a port of the block");
        Self {
            lost: [output("lost_0"), output("lost_1")],
            lost_qpn: [output("lost_qpn_0"), output("lost_qpn_1")],
            lost_psn: [output("lost_psn_0"), output("lost_psn_1")],
            lost_msn: [output("lost_msn_0"), output("lost_msn_1")],
            started: [
                "started_valid",
                "started.qpn",
                "started.next_psn",
                "started.notify",
            ]
            .map(output),
            frames: output("tx_frames"),
            bytes: output("tx_bytes"),
            roce: output("tx_roce_packets"),
            acks: output("tx_acks"),
            enters: output("enters"),
            valid: output("m_axis_tx_tvalid"),
            last: output("m_axis_tx_tlast"),
            mark: output("mark"),
            marks: BTreeMap::new(),
            lost_of: Default::default(),
            departed: vec![],
            counts: [0; 4],
            entered: 0,
            inside: false,
            gaps: 0,
            first: None,
            latest: 0,
            beats: 0,
        }
    }
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        for lane in 0..2 {
            if dut.is_set(self.lost[lane]) {
                let ports = [self.lost_qpn, self.lost_psn, self.lost_msn];
                self.lost_of[lane].push(ports.map(|port| dut.get(port[lane])));
            }
        }
        let [valid, qpn, next_psn, notify] = self.started.map(|port| dut.get(port));
        if valid & notify == 1 {
            let psn = (next_psn as u32).wrapping_sub(1) & 0xff_ffff;
            self.departed.push((qpn as u16, psn));
        }
        if dut.is_set(self.frames) {
            self.counts[1] += dut.get(self.bytes);
        }
        self.counts[0] += dut.get(self.frames);
        self.counts[2] += dut.get(self.roce);
        self.counts[3] += dut.get(self.acks);
        self.entered += dut.get(self.enters);
        if self.entered < self.counts[0] {
            return Err("a frame was sent that has not passed the merge".into());
        }
        if dut.is_set(self.valid) {
            self.inside = !dut.is_set(self.last);
            if dut.is_set(self.last) {
                self.marks.insert(cycle, dut.get(self.mark));
            }
            self.first.get_or_insert(cycle);
            self.latest = cycle;
            self.beats += 1;
        } else {
            self.gaps += u64::from(self.inside);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {
        self.inside = false;
    }
}

//! What the send queues show beside their streams.

use super::{COUNTERS, Failure, Rig};

impl Rig {
    /// The responder of `qpn` hears of a failure behind the completion of the message that failed.
    pub(super) fn went_down(&mut self, qpn: u64) {
        let code = self
            .failures
            .iter()
            .find(|f| f.qpn == qpn)
            .map(|f| f.status);
        let done = &self.qps[qpn as usize].done;
        assert!(
            code.is_none_or(|code| code == 0 || done.iter().any(|d| d.status == code)),
            "queue pair {qpn}: down before its message completed with {code:?}"
        );
        self.down.push(qpn);
    }

    /// The outputs that are no streams.
    pub(super) fn look(&mut self) {
        if self.output("failed_valid") == 1 {
            self.failures.push(Failure {
                qpn: self.output("failed_qpn"),
                status: self.output("failed_status") as u8,
            });
        }
        self.walks += self.output("retired.moved");
        if self.output("close_valid") == 1 {
            let qpn = self.output("close_qpn");
            self.held.push(qpn);
            let qp = &mut self.qps[qpn as usize];
            qp.closed = true;
            qp.reads.clear();
        }
        for name in COUNTERS {
            *self.counts.entry(name).or_default() += self.output(&format!("counts.{name}"));
        }
        // two acknowledgements taken as one
        for name in ["rx_acks", "rx_ghost_acks"] {
            let earlier = self.output(&format!("counts.{name}_earlier"));
            *self.counts.entry(name).or_default() += earlier;
            self.pairs += earlier;
        }
        if self.output("feedback.valid") == 1 {
            let fields = ["kind", "qpn", "bytes", "rtt"];
            let event = fields.map(|field| self.output(&format!("feedback.payload.{field}")));
            self.feedback.push(event);
        }
        if self.output("grant_valid") == 1 {
            self.granted();
        }
    }
}

//! The receives of a [`Line`], and when they are posted.

use ferroce_sim::testhost::Host;

use super::line::{GRH, Line};

/// Steps from one receive to the next of a side that is late, about.
const LATE: u16 = 256;

impl Line {
    /// Posts what a side owes; one at most, now and then, if it is late.
    pub(super) fn receive(&mut self, side: usize, host: &mut Host) {
        let is_late = self.shape.late;
        while let Some(&slot) = self.ends[side].owed.front()
            && (!is_late || self.rng.u16(..LATE) == 0)
        {
            let at = self.at(1, slot) as u64;
            let end = &mut self.ends[side];
            end.owed.pop_front();
            let mr = end.memory.expect("it is open");
            let len = self.shape.longest + GRH;
            let index = host.post_recv(end.qpn, &[mr.sge(at, len as u32)]);
            end.receives.insert(index, slot);
        }
    }
}

//! Ports of the queues.

use ferroce_hdl::egress::QUEUES;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Those that both ends drive and see.
pub(crate) struct Ports {
    pub(crate) data: Input,
    pub(crate) keep: Input,
    pub(crate) last: Input,
    pub(crate) valid: Input,
    pub(crate) user: Input,
    pub(crate) queue: Input,
    pub(crate) request: Input,
    pub(crate) departure: Input,
    pub(crate) note: Input,
    pub(crate) stands: Output,
    pub(crate) departed: Output,
    pub(crate) departed_psn: Output,
    /// Beats of room of each queue.
    pub(crate) room: Vec<Output>,
    pub(crate) reserve: Input,
    pub(crate) give_back: Input,
    pub(crate) weights: Vec<Input>,
    /// Of the queues by themselves.
    pub(crate) pause: Option<Input>,
    pub(crate) ready: Input,
    pub(crate) open: Output,
    pub(crate) waiting: Output,
    pub(crate) m_data: Output,
    pub(crate) m_keep: Output,
    pub(crate) m_last: Output,
    pub(crate) m_valid: Output,
}

impl Ports {
    pub(crate) fn of(dut: &Dut) -> Self {
        let input = |name: &str| dut.input(name).unwrap();
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            data: input("s_axis_tdata"),
            keep: input("s_axis_tkeep"),
            last: input("s_axis_tlast"),
            valid: input("s_axis_tvalid"),
            user: input("s_axis_tuser"),
            queue: input("queue"),
            request: input("request"),
            departure: input("departure.next_psn"),
            note: input("note"),
            stands: output("stands"),
            departed: output("departed.valid"),
            departed_psn: output("departed.payload.next_psn"),
            room: (0..QUEUES).map(|i| output(&format!("room_{i}"))).collect(),
            reserve: input("reserve"),
            give_back: input("give_back"),
            weights: (0..QUEUES)
                .filter_map(|i| dut.input(&format!("weight_{i}")).ok())
                .collect(),
            pause: dut.input("pause").ok(),
            ready: input("m_axis_tready"),
            open: output("open"),
            waiting: output("waiting"),
            m_data: output("m_axis_tdata"),
            m_keep: output("m_axis_tkeep"),
            m_last: output("m_axis_tlast"),
            m_valid: output("m_axis_tvalid"),
        }
    }
}

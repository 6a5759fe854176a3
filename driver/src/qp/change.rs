//! Changes of a queue pair that stays in its state.

use ferroce_proto::abi::cmd::CmdHead;
use ferroce_proto::abi::rates::RATE_MAX;

use super::{ModifyError, Qp};
use crate::congestion_control::CongestionControl;
use crate::mr::Access;
use crate::state::QpState;
use crate::{Backend, Features};

/// What [`Qp::change`] changes; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeAttr {
    /// What the peer may do.
    pub access: Option<Access>,
    /// Code of the wait asked of a peer for which no receive is posted, 0 to 31.
    pub min_rnr_timer: Option<u8>,
    /// Q_Key that datagrams must bring (UD).
    pub qkey: Option<u32>,
    /// The rate of its requests at most, and of its responses to READs and atomics, Mb/s, up to 1048575; 0: that of the line. From RTR on,
    /// until RESET.
    pub rate_limit: Option<u32>,
    /// RC: packets that it may have outstanding at most; 0: any number. A READ counts those of its responses, and goes if it is longer.
    /// From RTR on, until RESET.
    pub window: Option<u16>,
    /// What slows it down (RC). In RTR alone, as it counts from RTS on; it stays behind RESET.
    pub congestion: Option<CongestionControl>,
}

impl<B: Backend> Qp<B> {
    /// Changes what the responder does, or the rate and the window of the requester, in RTR, RTS, SQD or SQE. Packets that arrive meanwhile find the
    /// old or the new.
    ///
    /// # Errors
    /// [`ModifyError`], with nothing changed: another state, an attribute out of range, or refused.
    pub fn change(&mut self, attr: &ChangeAttr) -> Result<(), ModifyError> {
        let (qpn, state) = (self.number, self.state);
        let runs = [QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe];
        let late = attr.congestion.is_some() && state != QpState::Rtr;
        if !runs.contains(&state) || late {
            return Err(ModifyError::Change { qpn, state });
        }
        let mut image = self.image;
        if let Some(access) = attr.access {
            image.remote_write = access.contains(Access::REMOTE_WRITE);
            image.remote_read = access.contains(Access::REMOTE_READ);
            image.remote_atomic = access.contains(Access::REMOTE_ATOMIC);
        }
        if let Some(timer) = attr.min_rnr_timer {
            self.check_range("min_rnr_timer", timer.into(), 31)?;
            image.min_rnr_timer = timer;
        }
        if let Some(qkey) = attr.qkey {
            image.qkey = qkey;
        }
        let mut sq = self.sq_image;
        if let Some(rate) = attr.rate_limit {
            let has = self.features.contains(Features::RATES);
            self.check_range("rate_limit", rate, if has { RATE_MAX } else { 0 })?;
            sq.rate_limit = rate;
        }
        if let Some(window) = attr.window {
            let has = self.features.contains(Features::SEND_WINDOW);
            self.check_range("window", window.into(), if has { 0xffff } else { 0 })?;
            sq.window = window;
        }
        let mut swift = self.swift;
        if let Some(control) = attr.congestion {
            let has = self.features.contains(Features::SWIFT);
            self.check_range("congestion", control as u32, has.into())?;
            swift = control == CongestionControl::Swift;
        }
        let head = CmdHead {
            qp_rq: true,
            qp_sq: sq != self.sq_image,
            ..CmdHead::default()
        };
        let sq_bytes = head.qp_sq.then(|| sq.emit());
        self.command("change QP", head, [sq_bytes, None, Some(image.emit())])?;
        self.image = image;
        self.sq_image = sq;
        self.swift = swift;
        Ok(())
    }
}

//! Transitions.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use ferroce_driver::{ChangeAttr, InitAttr, Mtu, QpAttr, QpState, RtrAttr, RtsAttr};

use super::QpHandle;
use crate::abi::*;
use crate::context::ContextHandle;
use crate::errno::{Errno, ToErrno, explain, status};
use crate::handle::{get, lock};
use crate::limits::KBPS;
use crate::{ah, mr};

/// Code of the shortest ACK timeout of a simulated card, 4.3 s: its peer may be slower than its time.
const SIMULATED_TIMEOUT: u8 = 20;

/// Code of the RNR timer of a simulated card for code 0, 655 ms of its time, with which a program would wait for hours: 0.64 ms.
const SIMULATED_RNR_TIMER: u8 = 12;

/// Names the code of the ACK timeout of a simulated card, where another than [`SIMULATED_TIMEOUT`] fits its time better.
const TIMEOUT_VARIABLE: &str = "FERROCE_TIMEOUT";

/// The code that the environment names; what is none is as if it were not there.
fn simulated_timeout() -> Option<u8> {
    let text = std::env::var(TIMEOUT_VARIABLE).ok()?;
    text.parse().ok().filter(|code| (1..=31).contains(code))
}

/// Attributes that a transition needs, and those that it may have (ibv_modify_qp(3)).
fn attributes(qp_type: c_int, from: QpState, to: c_int) -> Result<(c_int, c_int), Errno> {
    let of = |rc, uc, ud| match qp_type {
        IBV_QPT_RC => rc,
        IBV_QPT_UC => uc,
        _ => ud,
    };
    let address = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    let rights = of(IBV_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY);
    let init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | rights;
    let changes = of(
        IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
        IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
        IBV_QP_QKEY,
    );
    let sets = match (from, to) {
        (_, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (QpState::Reset, IBV_QPS_INIT) => (init, 0),
        (QpState::Init, IBV_QPS_INIT) => (0, init),
        (QpState::Init, IBV_QPS_RTR) => (
            of(
                address | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                address,
                0,
            ),
            IBV_QP_PKEY_INDEX | rights,
        ),
        (QpState::Rtr, IBV_QPS_RTS) => (
            IBV_QP_SQ_PSN
                | of(
                    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                    0,
                    0,
                ),
            changes,
        ),
        (QpState::Sqd | QpState::Sqe, IBV_QPS_RTS) => (0, changes),
        (QpState::Rts, IBV_QPS_SQD) => (0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
        (QpState::Rts, IBV_QPS_RTS) => (0, changes),
        _ => return Err(Errno::INVAL),
    };
    Ok((sets.0, sets.1 | IBV_QP_CUR_STATE))
}

/// Takes over the attributes that a mask names.
fn merge(known: &mut ibv_qp_attr, new: &ibv_qp_attr, mask: c_int) {
    macro_rules! take {
        ($($bit:ident: $($field:ident),+;)*) => {$(
            if mask & $bit != 0 {
                $(known.$field = new.$field;)+
            }
        )*};
    }
    take! {
        IBV_QP_ACCESS_FLAGS: qp_access_flags;
        IBV_QP_PKEY_INDEX: pkey_index;
        IBV_QP_PORT: port_num;
        IBV_QP_QKEY: qkey;
        IBV_QP_AV: ah_attr;
        IBV_QP_PATH_MTU: path_mtu;
        IBV_QP_TIMEOUT: timeout;
        IBV_QP_RETRY_CNT: retry_cnt;
        IBV_QP_RNR_RETRY: rnr_retry;
        IBV_QP_RQ_PSN: rq_psn;
        IBV_QP_MAX_QP_RD_ATOMIC: max_rd_atomic;
        IBV_QP_MIN_RNR_TIMER: min_rnr_timer;
        IBV_QP_SQ_PSN: sq_psn;
        IBV_QP_MAX_DEST_RD_ATOMIC: max_dest_rd_atomic;
        IBV_QP_DEST_QPN: dest_qp_num;
    }
}

impl QpHandle {
    fn init_attr(attr: &ibv_qp_attr) -> Result<InitAttr, Errno> {
        ContextHandle::check_port(attr.port_num)?;
        if attr.pkey_index != 0 {
            return Err(Errno::INVAL);
        }
        Ok(InitAttr {
            access: mr::access(attr.qp_access_flags)?,
            qkey: attr.qkey,
            ..InitAttr::default()
        })
    }

    fn rtr_attr(&self, attr: &ibv_qp_attr) -> Result<RtrAttr, Errno> {
        let path = ah::path(&self.context().card, &attr.ah_attr)?;
        let codes = IBV_MTU_256..=IBV_MTU_4096;
        let bytes = codes.contains(&attr.path_mtu).then(|| 128 << attr.path_mtu);
        let is_rc = self.init.qp_type == IBV_QPT_RC;
        Ok(RtrAttr {
            path_mtu: bytes.and_then(Mtu::from_bytes).ok_or(Errno::INVAL)?,
            max_dest_rd_atomic: is_rc.then_some(attr.max_dest_rd_atomic),
            min_rnr_timer: self.rnr_timer(attr),
            ..RtrAttr::new(path, attr.dest_qp_num, attr.rq_psn)
        })
    }

    fn rnr_timer(&self, attr: &ibv_qp_attr) -> u8 {
        match attr.min_rnr_timer {
            0 if self.context().card.is_simulated() => SIMULATED_RNR_TIMER,
            code => code,
        }
    }

    fn rts_attr(&self, attr: &ibv_qp_attr) -> RtsAttr {
        let is_slow = self.context().card.is_simulated() && attr.timeout > 0;
        let timeout = match is_slow {
            true => simulated_timeout().unwrap_or(attr.timeout.max(SIMULATED_TIMEOUT)),
            false => attr.timeout,
        };
        let is_rc = self.init.qp_type == IBV_QPT_RC;
        RtsAttr {
            timeout,
            retry_cnt: attr.retry_cnt,
            rnr_retry: attr.rnr_retry,
            max_rd_atomic: is_rc.then_some(attr.max_rd_atomic),
            ..RtsAttr::new(attr.sq_psn)
        }
    }

    /// What changes while the queue pair runs.
    fn changes(&self, attr: &ibv_qp_attr, given: c_int) -> Result<ChangeAttr, Errno> {
        let has = |flag| given & flag != 0;
        Ok(ChangeAttr {
            access: match has(IBV_QP_ACCESS_FLAGS) {
                true => Some(mr::access(attr.qp_access_flags)?),
                false => None,
            },
            min_rnr_timer: has(IBV_QP_MIN_RNR_TIMER).then(|| self.rnr_timer(attr)),
            qkey: has(IBV_QP_QKEY).then_some(attr.qkey),
            ..ChangeAttr::default()
        })
    }

    fn modify(&self, new: &ibv_qp_attr, mask: c_int) -> Result<(), Errno> {
        let from = self.qp.with(|qp| {
            // The card itself enters ERR and SQE. A change to ERR or RESET need not ask it, unless the state must be right.
            let asks = mask & IBV_QP_STATE == 0
                || mask & IBV_QP_CUR_STATE != 0
                || !matches!(new.qp_state, IBV_QPS_RESET | IBV_QPS_ERR);
            if asks && !matches!(qp.state(), QpState::Reset | QpState::Init) {
                qp.refresh().map_err(|e| {
                    explain(&e);
                    Errno::IO
                })?;
            }
            Ok(qp.state())
        })?;
        if mask & IBV_QP_CUR_STATE != 0 && new.cur_qp_state != super::code(from) {
            return Err(Errno::INVAL);
        }
        let to = match mask & IBV_QP_STATE {
            0 => super::code(from),
            _ => new.qp_state,
        };
        let (needed, possible) = attributes(self.init.qp_type, from, to)?;
        let given = mask & !IBV_QP_STATE;
        // The one path is in use.
        if given & IBV_QP_PATH_MIG_STATE != 0 && new.path_mig_state != IBV_MIG_MIGRATED {
            return Err(Errno::INVAL);
        }
        if given & needed != needed || given & !(needed | possible) != 0 {
            return Err(Errno::INVAL);
        }
        if to == IBV_QPS_SQD {
            let asked = given & IBV_QP_EN_SQD_ASYNC_NOTIFY != 0 && new.en_sqd_async_notify != 0;
            self.reports_drained.store(asked, Ordering::Relaxed);
        }
        // Other threads that modify the queue pair wait: finding the peer may take a while.
        let mut known = lock(&self.attr);
        let mut attr = *known;
        merge(&mut attr, new, mask);
        let is_ud = self.init.qp_type == IBV_QPT_UD;
        let transition = match to {
            IBV_QPS_RESET => Some(QpAttr::Reset),
            IBV_QPS_INIT => Some(QpAttr::Init(Self::init_attr(&attr)?)),
            IBV_QPS_RTR if is_ud => Some(QpAttr::RtrUd(Mtu::Mtu4096)),
            IBV_QPS_RTR => Some(QpAttr::Rtr(self.rtr_attr(&attr)?)),
            IBV_QPS_RTS if from == QpState::Rts => None,
            IBV_QPS_RTS if from != QpState::Rtr => Some(QpAttr::Resume),
            IBV_QPS_RTS => Some(QpAttr::Rts(self.rts_attr(&attr))),
            IBV_QPS_SQD => Some(QpAttr::Sqd),
            _ => Some(QpAttr::Err),
        };
        let changes = self.changes(&attr, given)?;
        let changes = (to == IBV_QPS_RTS).then_some(changes);
        // Rights and Q_Key are part of INIT, which the queue pair has before RTR.
        let renew = to == IBV_QPS_RTR && given & (IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY) != 0;
        let init = match renew {
            true => Some(QpAttr::Init(Self::init_attr(&attr)?)),
            false => None,
        };
        let state = self.qp.with(|qp| {
            // A call that is refused changes nothing, rights least of all.
            for transition in init.iter().chain(&transition) {
                qp.check_attr(transition).map_err(ToErrno::errno)?;
            }
            // What may fail without a change of state comes first.
            if let Some(changes) = changes.filter(|changes| *changes != ChangeAttr::default()) {
                qp.change(&changes).map_err(ToErrno::errno)?;
            }
            for transition in init.iter().chain(&transition) {
                qp.modify(transition).map_err(ToErrno::errno)?;
            }
            Ok(qp.state())
        })?;
        if to == IBV_QPS_RESET {
            attr = ibv_qp_attr::zero();
            attr.cap = self.init.cap;
        }
        *known = attr;
        self.show(state);
        Ok(())
    }
}

/// Sets the rate limit: kb/s, rounded down to whole Mb/s; 0 ends it. Bursts are not to be chosen.
pub(crate) unsafe extern "C" fn modify_qp_rate_limit(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_rate_limit_attr,
) -> c_int {
    // SAFETY: the caller gives the attributes.
    let attr = unsafe { &*attr };
    status(get::<QpHandle>(qp).and_then(|qp| {
        let mbps = attr.rate_limit / KBPS;
        let is_less = attr.rate_limit > 0 && mbps == 0;
        if is_less || attr.comp_mask != 0 || attr.max_burst_sz != 0 || attr.typical_pkt_sz != 0 {
            return Err(Errno::INVAL);
        }
        let change = ChangeAttr {
            rate_limit: Some(mbps),
            ..ChangeAttr::default()
        };
        qp.qp.with(|qp| qp.change(&change).map_err(ToErrno::errno))
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: the caller gives the attributes.
    status(get::<QpHandle>(qp).and_then(|qp| qp.modify(unsafe { &*attr }, mask)))
}

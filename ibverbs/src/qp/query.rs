//! Attributes of a queue pair as they are.

use std::ffi::c_int;

use ferroce_driver::QpState;

use super::{QpHandle, code};
use crate::abi::*;
use crate::errno::{Errno, explain, status};
use crate::handle::{get, lock};

impl QpHandle {
    fn query(&self) -> Result<ibv_qp_attr, Errno> {
        let mut attr = *lock(&self.attr);
        let (state, found) = self.qp.with(|qp| {
            let found = qp.refresh().map_err(|e| {
                explain(&e);
                Errno::IO
            })?;
            Ok((qp.state(), found))
        })?;
        self.show(state);
        attr.qp_state = code(state);
        attr.cur_qp_state = attr.qp_state;
        // What is sent is not acknowledged yet.
        let is_draining = state == QpState::Sqd && found.sq_psn != found.una_psn;
        attr.sq_draining = is_draining.into();
        let runs = matches!(state, QpState::Rts | QpState::Sqd | QpState::Sqe);
        if runs || state == QpState::Rtr {
            attr.rq_psn = found.rq_psn;
        }
        if runs {
            attr.sq_psn = found.sq_psn;
        }
        Ok(attr)
    }
}

/// Returns all attributes, whatever the mask names.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let found = get::<QpHandle>(qp).and_then(|qp| Ok((qp.query()?, qp.init)));
    // SAFETY: the caller gives places for both.
    status(found.map(|(found, made)| unsafe {
        *attr = found;
        *init = made;
    }))
}

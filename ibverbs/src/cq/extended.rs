//! Completion queues that are read completion by completion.

use std::ffi::{c_int, c_uint};

use ferroce_driver::Wc;

use super::convert::convert;
use super::{CqHandle, Make, create};
use crate::abi::*;
use crate::errno::{Errno, or_null, status};
use crate::handle::{Held, get};
use crate::pd::PdHandle;

impl CqHandle {
    /// Takes the next completion, and shows it; `ENOENT` if there is none.
    fn next(&self, at_hand: &mut Option<ibv_wc>) -> Result<(), Errno> {
        let mut found = [Wc::default()];
        let taken = self.cq.with(|cq| Ok(cq.poll(&mut found)))?;
        *at_hand = (taken > 0).then(|| convert(&found[0]));
        let wc = at_hand.as_ref().ok_or(Errno::NOENT)?;
        // SAFETY: the structure is valid as long as the object; the thread that polls reads the fields.
        unsafe {
            (*self.shown.get()).status = wc.status;
            (*self.shown.get()).wr_id = wc.wr_id;
        }
        Ok(())
    }

    fn start(&self) -> Result<(), Errno> {
        if !self.at_hand.start() {
            // The poll before was not ended.
            return Err(Errno::INVAL);
        }
        let started = self.at_hand.with(|at_hand| self.next(at_hand)).flatten();
        if started.is_err() {
            self.at_hand.end();
            self.context.card.idle();
        }
        started
    }
}

/// Other threads wait until `end_poll`, unless this fails.
unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: the caller gives attributes.
    if unsafe { (*attr).comp_mask } != 0 {
        return status(Err(Errno::INVAL));
    }
    status(get::<CqHandle>(cq.cast()).and_then(|cq| cq.start()))
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    let next = get::<CqHandle>(cq.cast())
        .and_then(|cq| cq.at_hand.with(|at_hand| cq.next(at_hand)).flatten());
    status(next)
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    if let Ok(cq) = get::<CqHandle>(cq.cast()) {
        cq.at_hand.end();
    }
}

/// The completion at hand; all zero if there is none.
fn at_hand(cq: *mut ibv_cq_ex) -> ibv_wc {
    let found = get::<CqHandle>(cq.cast()).and_then(|cq| cq.at_hand.with(|at_hand| *at_hand));
    found.ok().flatten().unwrap_or_else(ibv_wc::zero)
}

/// Functions that read a field of the completion at hand.
macro_rules! readers {
    ($($name:ident: $field:ident as $type:ty;)*) => {$(
        unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            at_hand(cq).$field.into()
        }
    )*};
}

readers! {
    read_opcode: opcode as c_int;
    read_vendor_err: vendor_err as u32;
    read_byte_len: byte_len as u32;
    read_imm_data: imm_data as u32;
    read_qp_num: qp_num as u32;
    read_src_qp: src_qp as u32;
    read_wc_flags: wc_flags as c_uint;
    read_slid: slid as u32;
    read_sl: sl as u8;
    read_dlid_path_bits: dlid_path_bits as u8;
}

/// Creates a completion queue that has the functions above.
pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: the caller gives the attributes. What came to the structure later is there if the mask says so: only that
    // is read.
    let create = || unsafe {
        let comp_mask = (*attr).comp_mask;
        let has = |flag: c_int| comp_mask & flag as u32 != 0;
        let known = (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) as u32;
        let flags = match has(IBV_CQ_INIT_ATTR_MASK_FLAGS) {
            true => (*attr).flags & !(IBV_CREATE_CQ_ATTR_SINGLE_THREADED as u32),
            false => 0,
        };
        let unknown = (*attr).wc_flags & !(IBV_WC_STANDARD_FLAGS as u64);
        if comp_mask & !known != 0 || flags != 0 || unknown != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        if has(IBV_CQ_INIT_ATTR_MASK_PD) {
            Held::<PdHandle>::get((*attr).parent_domain)?;
        }
        let make = Make {
            context,
            entries: (*attr).cqe,
            cq_context: (*attr).cq_context,
            channel: (*attr).channel,
            vector: (*attr).comp_vector,
        };
        create(&make, functions()).map(|cq| cq.cast())
    };
    or_null(create())
}

fn functions() -> ibv_cq_ex {
    ibv_cq_ex {
        start_poll: Some(start_poll),
        next_poll: Some(next_poll),
        end_poll: Some(end_poll),
        read_opcode: Some(read_opcode),
        read_vendor_err: Some(read_vendor_err),
        read_byte_len: Some(read_byte_len),
        read_imm_data: Some(read_imm_data),
        read_qp_num: Some(read_qp_num),
        read_src_qp: Some(read_src_qp),
        read_wc_flags: Some(read_wc_flags),
        read_slid: Some(read_slid),
        read_sl: Some(read_sl),
        read_dlid_path_bits: Some(read_dlid_path_bits),
        ..ibv_cq_ex::zero()
    }
}

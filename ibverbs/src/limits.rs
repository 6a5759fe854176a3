//! Limits of a device, and the state of its port.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use ferroce_driver::{Backend, Features};
use ferroce_proto::abi::pci;
use ferroce_proto::abi::rates::RATE_MAX;

use crate::abi::*;
use crate::context::{ContextHandle, write_as_known};
use crate::device::guid;
use crate::errno::{Errno, status};
use crate::handle::get;

/// Bytes of the attributes of a port as `ibv_query_port` knows them; the rest came later.
const OLD_PORT_ATTR: usize = offset_of!(ibv_port_attr, port_cap_flags2);
/// Codes of widths, and of speeds of a lane: 2.5, 10 and 25 Gbit/s.
const WIDTH_1X: u8 = 1;
const WIDTH_4X: u8 = 2;
const SPEED_SDR: u8 = 1;
const SPEED_QDR: u8 = 4;
const SPEED_EDR: u8 = 32;
/// Physical states of a port.
const PHYS_POLLING: u8 = 2;
const PHYS_LINK_UP: u8 = 5;
/// `IBV_QPF_GRH_REQUIRED`: paths need a GID.
const GRH_REQUIRED: u8 = 1;

/// Verbs count rates in kb/s, the card in Mb/s.
pub(crate) const KBPS: u32 = 1000;

/// Width and speed of the fastest port that a data path of so many Gbit/s fills; a slower one counts as the slowest.
fn rate(gbit: u32) -> (u8, u8) {
    match gbit {
        100.. => (WIDTH_4X, SPEED_EDR),
        40.. => (WIDTH_4X, SPEED_QDR),
        25.. => (WIDTH_1X, SPEED_EDR),
        10.. => (WIDTH_1X, SPEED_QDR),
        _ => (WIDTH_1X, SPEED_SDR),
    }
}

impl ContextHandle {
    fn device_attr(&self) -> ibv_device_attr {
        let info = self.card.context.query_device();
        let guid = guid(self.card.context.mac());
        let int = |value: u32| c_int::try_from(value).unwrap_or(c_int::MAX);
        let max_qp = info.max_qp - 2;
        // What a queue pair may have whatever else is asked for it.
        let max_qp_wr = info.max_send_wr(info.max_send_sge, info.max_inline_data);
        // A window of type 2 is its queue pair's, in its protection domain.
        let windows = match info.features.contains(Features::MEM_WINDOW) {
            true => IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
            false => 0,
        };
        // Both have their places in one table.
        let max_mw = if windows == 0 { 0 } else { info.max_mr / 2 };
        let rd_atomic = u32::from(info.max_rd_atomic);
        let mut attr = ibv_device_attr {
            node_guid: guid,
            sys_image_guid: guid,
            max_mr_size: u64::MAX,
            page_size_cap: self.card.context.backend().page_size() as u64,
            vendor_id: pci::VENDOR.into(),
            vendor_part_id: pci::DEVICE.into(),
            hw_ver: pci::REVISION.into(),
            max_qp: int(max_qp),
            max_qp_wr: int(max_qp_wr),
            device_cap_flags: (IBV_DEVICE_RC_RNR_NAK_GEN | windows) as u32,
            max_mw: int(max_mw),
            max_sge: int(info.max_send_sge.min(info.max_recv_sge)),
            max_sge_rd: int(info.max_send_sge),
            max_cq: int(info.max_cq),
            max_cqe: int(info.max_cqe),
            max_mr: int(info.max_mr - max_mw),
            max_pd: (1 << 24) - 1,
            max_qp_rd_atom: int(rd_atomic),
            max_res_rd_atom: int(rd_atomic * max_qp),
            max_qp_init_rd_atom: int(rd_atomic),
            atomic_cap: if info.features.contains(Features::ATOMIC) {
                IBV_ATOMIC_HCA
            } else {
                IBV_ATOMIC_NONE
            },
            max_ah: int(info.max_ah),
            max_srq: int(info.max_srq),
            max_srq_wr: int(info.max_qp_wr),
            max_srq_sge: int(info.max_recv_sge),
            max_pkeys: 1,
            phys_port_cnt: 1,
            ..ibv_device_attr::zero()
        };
        let version = format!("{} (build {:08x})", info.abi_version, info.build);
        let last = attr.fw_ver.len() - 1;
        for (to, byte) in attr.fw_ver[..last].iter_mut().zip(version.bytes()) {
            *to = byte as c_char;
        }
        attr
    }

    fn packet_pacing(&self) -> ibv_packet_pacing_caps {
        let info = self.card.context.query_device();
        if !info.features.contains(Features::RATES) {
            return ibv_device_attr_ex::zero().packet_pacing_caps;
        }
        let types = [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD];
        ibv_packet_pacing_caps {
            qp_rate_limit_min: KBPS,
            qp_rate_limit_max: RATE_MAX * KBPS,
            supported_qpts: types.iter().map(|qp_type| 1 << qp_type).sum(),
        }
    }

    fn port_attr(&self) -> ibv_port_attr {
        let info = self.card.context.query_device();
        let is_up = self.card.context.status().link_up;
        let (active_width, active_speed) = rate(info.data_width * info.core_clock_mhz / 1000);
        let either = |up, down| if is_up { up } else { down };
        ibv_port_attr {
            state: either(IBV_PORT_ACTIVE, IBV_PORT_DOWN),
            max_mtu: IBV_MTU_4096,
            active_mtu: self.card.mtu.code().into(),
            gid_tbl_len: info.max_gid as c_int,
            port_cap_flags: (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS) as u32,
            max_msg_sz: info.max_msg_size,
            pkey_tbl_len: 1,
            active_width,
            active_speed,
            phys_state: either(u32::from(PHYS_LINK_UP) as c_int, PHYS_POLLING.into()) as u8,
            link_layer: IBV_LINK_LAYER_ETHERNET as u8,
            flags: GRH_REQUIRED,
            ..ibv_port_attr::zero()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    status(get::<ContextHandle>(context).map(|context| {
        // SAFETY: the caller gives a place for the attributes.
        unsafe { *attr = context.device_attr() }
    }))
}

/// What came later is zero: the card has none of it.
pub(crate) unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const c_void,
    attr: *mut ibv_device_attr_ex,
    len: usize,
) -> c_int {
    // SAFETY: the caller gives a structure of one number, or null.
    if !input.is_null() && unsafe { *input.cast::<u32>() } != 0 {
        return status(Err(Errno::INVAL));
    }
    status(get::<ContextHandle>(context).map(|context| {
        let orig_attr = context.device_attr();
        let found = ibv_device_attr_ex {
            device_cap_flags_ex: orig_attr.device_cap_flags.into(),
            phys_port_cnt_ex: orig_attr.phys_port_cnt.into(),
            orig_attr,
            packet_pacing_caps: context.packet_pacing(),
            ..ibv_device_attr_ex::zero()
        };
        // SAFETY: the caller gives a place of `len` bytes.
        unsafe { write_as_known(attr, &found, len) }
    }))
}

/// Writes the first `len` bytes of the attributes of a port.
pub(crate) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    len: usize,
) -> c_int {
    let context = ContextHandle::check_port(port).and_then(|()| get::<ContextHandle>(context));
    status(context.map(|context| {
        // SAFETY: the caller gives a place of `len` bytes.
        unsafe { write_as_known(attr, &context.port_attr(), len) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the caller gives a place for the attributes as they were when this function was made.
    unsafe { query_port(context, port, attr, OLD_PORT_ATTR) }
}

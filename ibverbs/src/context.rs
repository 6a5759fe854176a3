//! Contexts: a device opened, its limits, its port, its address tables.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use ferroce_driver::{Backend, Features};
use ferroce_proto::abi::pci;

use crate::abi::*;
use crate::card::Card;
use crate::device::{Device, guid};
use crate::errno::{Errno, or_minus_one, or_null, status};
use crate::events::AsyncBox;
use crate::handle::{Held, Object, Registry, Shown, Used, Users, get};
use crate::{cq, qp, srq};

/// The one port.
pub(crate) const PORT: u8 = 1;
/// Bytes of the attributes of a port as `ibv_query_port` knows them; the rest came later.
const OLD_PORT_ATTR: usize = offset_of!(ibv_port_attr, port_cap_flags2);
/// Width and speed codes: four lanes of 25 Gbit/s.
const WIDTH_4X: u8 = 2;
const SPEED_EDR: u8 = 32;
/// Physical states of a port.
const PHYS_POLLING: u8 = 2;
const PHYS_LINK_UP: u8 = 5;
/// `IBV_QPF_GRH_REQUIRED`: paths need a GID.
const GRH_REQUIRED: u8 = 1;

/// An opened device.
pub(crate) struct ContextHandle {
    shown: Shown<verbs_context>,
    pub(crate) card: Arc<Card>,
    pub(crate) events: AsyncBox,
    users: Users,
}

impl Object for ContextHandle {
    type Abi = ibv_context;

    fn registry() -> &'static Registry<Self> {
        static CONTEXTS: Registry<ContextHandle> = Registry::new();
        &CONTEXTS
    }

    fn shown(&self) -> *mut ibv_context {
        // SAFETY: the context is a field of the structure.
        unsafe { &raw mut (*self.shown.get()).context }
    }
}

impl Used for ContextHandle {
    fn users(&self) -> &Users {
        &self.users
    }
}

/// Opens a device.
pub(crate) fn open(device: &'static Device) -> Result<*mut ibv_context, Errno> {
    let card = device.open()?;
    let events = AsyncBox::new()?;
    let mut shown = verbs_context::zero();
    shown.sz = size_of::<verbs_context>();
    shown.query_port = Some(query_port);
    let context = &mut shown.context;
    context.device = device.shown();
    context.cmd_fd = -1;
    context.async_fd = events.fd();
    context.num_comp_vectors = 1;
    context.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    // All ones: the functions that came later are there.
    context.abi_compat = ptr::without_provenance_mut(usize::MAX);
    context.ops.poll_cq = Some(cq::poll_cq);
    context.ops.req_notify_cq = Some(cq::req_notify_cq);
    context.ops.post_send = Some(qp::post_send);
    context.ops.post_recv = Some(qp::post_recv);
    context.ops.post_srq_recv = Some(srq::post_srq_recv);
    let handle = ContextHandle {
        shown: Shown::new(shown),
        card,
        events,
        users: Users::default(),
    };
    Ok(ContextHandle::registry().add(Arc::new(handle)))
}

/// The card stays open while the program has objects on it.
#[unsafe(no_mangle)]
extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    let closed = get::<ContextHandle>(context);
    status(closed.map(|context| ContextHandle::registry().remove(&context)))
}

impl ContextHandle {
    /// `EINVAL` for a port that is not there.
    pub(crate) fn check_port(port: impl Into<u32>) -> Result<(), Errno> {
        if port.into() == u32::from(PORT) {
            Ok(())
        } else {
            Err(Errno::INVAL)
        }
    }

    fn device_attr(&self) -> ibv_device_attr {
        let info = self.card.context.query_device();
        let guid = guid(self.card.context.mac());
        let int = |value: u32| c_int::try_from(value).unwrap_or(c_int::MAX);
        let max_qp = info.max_qp - 2;
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
            max_qp_wr: int(info.max_qp_wr),
            device_cap_flags: IBV_DEVICE_RC_RNR_NAK_GEN as u32,
            max_sge: int(info.max_send_sge.min(info.max_recv_sge)),
            max_sge_rd: int(info.max_send_sge),
            max_cq: int(info.max_cq),
            max_cqe: int(info.max_cqe),
            max_mr: int(info.max_mr),
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

    fn port_attr(&self) -> ibv_port_attr {
        let info = self.card.context.query_device();
        let is_up = self.card.context.status().link_up;
        let either = |up, down| if is_up { up } else { down };
        ibv_port_attr {
            state: either(IBV_PORT_ACTIVE, IBV_PORT_DOWN),
            max_mtu: IBV_MTU_4096,
            active_mtu: IBV_MTU_4096,
            gid_tbl_len: info.max_gid as c_int,
            port_cap_flags: (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS) as u32,
            max_msg_sz: info.max_msg_size,
            pkey_tbl_len: 1,
            active_width: WIDTH_4X,
            active_speed: SPEED_EDR,
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

/// Writes the first `len` bytes of the attributes of a port.
unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    len: usize,
) -> c_int {
    let context = ContextHandle::check_port(port).and_then(|()| get::<ContextHandle>(context));
    status(context.map(|context| {
        let found = context.port_attr();
        let len = len.min(size_of::<ibv_port_attr>());
        // SAFETY: the caller gives a place of `len` bytes.
        unsafe { ptr::copy_nonoverlapping((&raw const found).cast::<u8>(), attr.cast(), len) }
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

/// Entry of the GID table; an empty one is all zero.
fn gid(context: *mut ibv_context, port: u32, index: i64) -> Result<ibv_gid, Errno> {
    let context = get::<ContextHandle>(context)?;
    ContextHandle::check_port(port)?;
    let limit = context.card.context.query_device().max_gid;
    let index = u8::try_from(index).map_err(|_| Errno::INVAL)?;
    if u32::from(index) >= limit {
        return Err(Errno::INVAL);
    }
    let raw = context.card.context.gid(index).unwrap_or_default().0;
    Ok(ibv_gid { raw })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    found: *mut ibv_gid,
) -> c_int {
    or_minus_one(gid(context, port.into(), index.into()).map(|gid| {
        // SAFETY: the caller gives a place for the GID.
        unsafe { *found = gid };
        0
    }))
}

/// Type of a GID, for `ibv_devinfo`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    found: *mut c_int,
) -> c_int {
    /// As this function counts: RoCE v2.
    const ROCE_V2: c_int = 1;
    or_minus_one(gid(context, port.into(), index.into()).map(|_| {
        // SAFETY: the caller gives a place for the type.
        unsafe { *found = ROCE_V2 };
        0
    }))
}

fn gid_entry(context: *mut ibv_context, port: u32, index: u32) -> Result<ibv_gid_entry, Errno> {
    let gid = gid(context, port, index.into())?;
    if gid.raw == [0; 16] {
        return Err(Errno::NODATA);
    }
    Ok(ibv_gid_entry {
        gid,
        gid_index: index,
        port_num: port,
        gid_type: IBV_GID_TYPE_ROCE_V2 as u32,
        ndev_ifindex: 0,
    })
}

/// Writes an entry into a place of `size` bytes.
///
/// # Safety
/// `to` has `size` bytes.
unsafe fn write_entry(to: *mut u8, entry: &ibv_gid_entry, size: usize) {
    let known = size.min(size_of::<ibv_gid_entry>());
    // SAFETY: the place has the bytes, and the entry has those that are known.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(entry).cast::<u8>(), to, known);
        ptr::write_bytes(to.add(known), 0, size - known);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    if flags != 0 {
        return status(Err(Errno::INVAL));
    }
    status(gid_entry(context, port, index).map(|found| {
        // SAFETY: the caller gives a place of `size` bytes.
        unsafe { write_entry(entry.cast(), &found, size) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max: usize,
    flags: u32,
    size: usize,
) -> isize {
    let limit = match get::<ContextHandle>(context) {
        Ok(context) if flags == 0 => context.card.context.query_device().max_gid,
        _ => return -(Errno::INVAL.raw_os_error() as isize),
    };
    let found = (0..limit).filter_map(|index| gid_entry(context, PORT.into(), index).ok());
    let mut count = 0;
    for entry in found {
        if count == max {
            return -(Errno::INVAL.raw_os_error() as isize);
        }
        // SAFETY: the caller gives a place for `max` entries of `size` bytes.
        unsafe { write_entry(entries.cast::<u8>().add(count * size), &entry, size) };
        count += 1;
    }
    count as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    let checked = get::<ContextHandle>(context).and_then(|_| ContextHandle::check_port(port));
    let checked = checked.and_then(|()| if index == 0 { Ok(0) } else { Err(Errno::INVAL) });
    or_minus_one(checked.inspect(|_| {
        // SAFETY: the caller gives a place for the P_Key.
        unsafe { *pkey = ferroce_driver::DEFAULT_PKEY.to_be() };
    }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    let checked = get::<ContextHandle>(context).and_then(|_| ContextHandle::check_port(port));
    let is_there = pkey == ferroce_driver::DEFAULT_PKEY.to_be();
    or_minus_one(checked.and_then(|()| if is_there { Ok(0) } else { Err(Errno::INVAL) }))
}

/// A context that objects of it keep.
pub(crate) type Opened = Held<ContextHandle>;

/// Where a peer is, for programs that ask by themselves.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_resolve_eth_l2_from_gid(
    context: *mut ibv_context,
    attr: *mut ibv_ah_attr,
    mac: *mut [u8; 6],
    vlan: *mut u16,
) -> c_int {
    let found = get::<ContextHandle>(context).and_then(|context| {
        // SAFETY: the caller gives the attributes.
        let path = crate::ah::path(&context.card, unsafe { &*attr })?;
        Ok(path.dmac)
    });
    or_minus_one(found.map(|found| {
        // SAFETY: the caller gives places for both.
        unsafe {
            *mac = found.0;
            // None.
            *vlan = 0xffff;
        }
        0
    }))
}

/// Cards whose memory a child of `fork` shares: the kernel copies pinned pages for the child.
#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_is_fork_initialized() -> c_int {
    IBV_FORK_UNNEEDED
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_device(_: c_int) -> *mut ibv_context {
    or_null(Err(Errno::OPNOTSUPP))
}

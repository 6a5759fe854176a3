//! Paths and address handles.

use std::ffi::c_int;
use std::sync::Arc;

use ferroce_driver::{Ah, Destination, Gid, Path};

use crate::abi::*;
use crate::card::Card;
use crate::context::ContextHandle;
use crate::errno::{Errno, ToErrno, or_minus_one, or_null, status};
use crate::handle::{Core, Held, Object, Shown, get, object};
use crate::pd::PdHandle;
use crate::using::Using;

/// The path that attributes name; its MAC address is found out.
pub(crate) fn path(card: &Card, attr: &ibv_ah_attr) -> Result<Path, Errno> {
    ContextHandle::check_port(attr.port_num)?;
    // A RoCE path is its GID.
    if attr.is_global == 0 {
        return Err(Errno::INVAL);
    }
    let grh = &attr.grh;
    let peer = Gid(grh.dgid.raw);
    let dmac = card.resolve(grh.sgid_index, peer).map_err(ToErrno::errno)?;
    let mut path = Path::new(peer, dmac);
    path.sgid_index = grh.sgid_index;
    path.traffic_class = grh.traffic_class;
    path.flow_label = grh.flow_label;
    // 0 reaches no peer, and 1, for which the ping-pong programs ask, none behind a router; Linux takes its own.
    if grh.hop_limit > 1 {
        path.hop_limit = grh.hop_limit;
    }
    Ok(path)
}

/// An address handle.
pub(crate) struct AhHandle {
    shown: Shown<ibv_ah>,
    ah: Core<Using<Ah, Held<PdHandle>>>,
}

object!(AhHandle, ibv_ah);

impl AhHandle {
    /// Queue pair `qpn` at its end, for one of protection domain `pd`.
    pub(crate) fn to(&self, pd: &PdHandle, qpn: u32, qkey: u32) -> Result<Destination, Errno> {
        self.ah.with(|ah| match ah.used.pd == pd.pd {
            true => Ok(ah.to(qpn, qkey)),
            false => Err(Errno::INVAL),
        })
    }
}

fn create(pd: *mut ibv_pd, attr: &ibv_ah_attr) -> Result<*mut ibv_ah, Errno> {
    let held = Held::<PdHandle>::get(pd)?;
    let path = path(&held.context.card, attr)?;
    let ah = held.pd.create_ah(&path).map_err(ToErrno::errno)?;
    let mut shown = ibv_ah::zero();
    shown.context = held.context.shown();
    shown.pd = pd;
    let handle = AhHandle {
        shown: Shown::new(shown),
        ah: Core::new(Using::new(ah, held)),
    };
    Ok(AhHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: the caller gives the attributes.
    or_null(create(pd, unsafe { &*attr }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int {
    let destroy = || {
        let ah = get::<AhHandle>(ah)?;
        AhHandle::registry().remove(&ah);
        ah.ah.destroy()
    };
    status(destroy())
}

/// Where the IPv4 header of a datagram stands in the room of a GRH (A17.4.5.1).
const IPV4_AT: usize = 20;

/// The sender of a received datagram and its recipient, by the head in front of the bytes.
fn ends(grh: &[u8; 40]) -> Result<(Gid, Gid, u8, u32), Errno> {
    let gid = |at: usize| {
        let mut raw = [0; 16];
        raw.copy_from_slice(&grh[at..at + 16]);
        Gid(raw)
    };
    let ipv4 = |at: usize| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| grh[at + i]);
        Gid::from(std::net::Ipv4Addr::new(a, b, c, d))
    };
    if grh[0] >> 4 == 6 {
        let word = u32::from_be_bytes([grh[0], grh[1], grh[2], grh[3]]);
        return Ok((gid(8), gid(24), (word >> 20) as u8, word & 0xf_ffff));
    }
    if grh[IPV4_AT] >> 4 == 4 {
        return Ok((ipv4(IPV4_AT + 12), ipv4(IPV4_AT + 16), grh[IPV4_AT + 1], 0));
    }
    Err(Errno::INVAL)
}

/// Where the peer of a path is, for a caller that cannot wait: `EAGAIN` while its address is being resolved. `mac` may be
/// null.
#[unsafe(no_mangle)]
unsafe extern "C" fn ferroce_try_resolve(
    context: *mut ibv_context,
    attr: *const ibv_ah_attr,
    mac: *mut [u8; 6],
) -> c_int {
    let find = || {
        let context = get::<ContextHandle>(context)?;
        // SAFETY: the caller gives the attributes.
        let grh = unsafe { (*attr).grh };
        let found = context.card.try_resolve(grh.sgid_index, Gid(grh.dgid.raw));
        found.map_err(ToErrno::errno)?.ok_or(Errno::AGAIN)
    };
    status(find().map(|found| {
        if !mac.is_null() {
            // SAFETY: the caller gives a place for the address, or null.
            unsafe { *mac = found.0 };
        }
    }))
}

fn reply(
    context: &ContextHandle,
    port: u8,
    wc: &ibv_wc,
    grh: *const ibv_grh,
) -> Result<ibv_ah_attr, Errno> {
    ContextHandle::check_port(port)?;
    if wc.wc_flags & IBV_WC_GRH as u32 == 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller gives the head, as the completion says that there is one.
    let grh = unsafe { *grh.cast::<[u8; 40]>() };
    let (from, to, traffic_class, flow_label) = ends(&grh)?;
    let card = &context.card.context;
    let own = (0..=u8::MAX).find(|&index| card.gid(index) == Some(to));
    let mut attr = ibv_ah_attr::zero();
    attr.is_global = 1;
    attr.port_num = port;
    attr.grh = ibv_global_route {
        dgid: ibv_gid { raw: from.0 },
        flow_label,
        sgid_index: own.ok_or(Errno::INVAL)?,
        hop_limit: 0xff,
        traffic_class,
    };
    Ok(attr)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_init_ah_from_wc(
    context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    attr: *mut ibv_ah_attr,
) -> c_int {
    // SAFETY: the caller gives the completion, and a place for the attributes.
    let found = get::<ContextHandle>(context).and_then(|c| reply(&c, port, unsafe { &*wc }, grh));
    // SAFETY: as above.
    or_minus_one(found.map(|found| unsafe {
        *attr = found;
        0
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    port: u8,
) -> *mut ibv_ah {
    let attr = get::<PdHandle>(pd).and_then(|pd| {
        // SAFETY: the caller gives the completion.
        reply(&pd.context, port, unsafe { &*wc }, grh)
    });
    or_null(attr.and_then(|attr| create(pd, &attr)))
}

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
        let path = path(&context.card, unsafe { &*attr })?;
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

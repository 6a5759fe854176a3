//! Addresses: those of the card, ports of the process, and the way to a peer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ferroce_cabi::handle::{Object, lock};
use ferroce_cabi::signals;
use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use super::event::{Details, Event};
use super::{CmId, Inner, Phase};
use crate::abi::*;
use crate::errno::Errno;
use crate::port::{Port, gid, ip};
use ferroce_cm::{Address, PortSpace};

/// Ports for programs that ask for none in particular.
const EPHEMERAL: std::ops::Range<u16> = 32768..60999;

/// Ports in use, and how often.
static PORTS: Mutex<BTreeMap<(PortSpace, u16), (u32, bool)>> = Mutex::new(BTreeMap::new());

/// Takes a port, or one that is free for 0. With `is_reusable` others that are so may have it too.
fn take(space: PortSpace, wanted: u16, is_reusable: bool) -> Result<u16, Errno> {
    let mut ports = lock(&PORTS);
    let port = match wanted {
        0 => {
            let mut seed = [0; 2];
            getrandom::fill(&mut seed).map_err(|_| Errno::IO)?;
            let len = EPHEMERAL.len();
            let first = usize::from(u16::from_ne_bytes(seed)) % len;
            let mut all = EPHEMERAL.cycle_from(first);
            let free = all.find(|port| !ports.contains_key(&(space, *port)));
            free.ok_or(Errno::ADDRNOTAVAIL)?
        }
        wanted => wanted,
    };
    let (users, others) = ports.entry((space, port)).or_insert((0, true));
    if *users > 0 && !(is_reusable && *others) {
        return Err(Errno::ADDRINUSE);
    }
    *users += 1;
    *others = is_reusable;
    Ok(port)
}

/// All of a range once, from a place on.
trait CycleFrom {
    fn cycle_from(self, first: usize) -> impl Iterator<Item = u16>;
}

impl CycleFrom for std::ops::Range<u16> {
    fn cycle_from(self, first: usize) -> impl Iterator<Item = u16> {
        let len = self.len();
        self.cycle().skip(first).take(len)
    }
}

/// Gives back the port of an identifier.
pub(super) fn release(inner: &mut Inner, space: PortSpace) {
    let Some(port) = inner.held_port.take() else {
        return;
    };
    let mut ports = lock(&PORTS);
    if let Some((users, _)) = ports.get_mut(&(space, port)) {
        *users -= 1;
        if *users == 0 {
            ports.remove(&(space, port));
        }
    }
}

/// An address that a C program gives; `EAFNOSUPPORT` if it is of another family.
///
/// # Safety
/// `address` is null or has the bytes of its family.
pub(crate) unsafe fn socket_address(address: *const sockaddr) -> Result<SocketAddr, Errno> {
    if address.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: every address has a family.
    match i32::from(unsafe { (*address).sa_family }) {
        AF_INET => {
            // SAFETY: the promise of the caller.
            let found = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
            Ok((ip, u16::from_be(found.sin_port)).into())
        }
        AF_INET6 => {
            // SAFETY: the promise of the caller.
            let found = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(found.sin6_addr.s6_addr);
            Ok((ip, u16::from_be(found.sin6_port)).into())
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// The same for a C program.
pub(super) fn storage(address: SocketAddr) -> sockaddr_storage {
    // SAFETY: all zero is an address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    match address {
        SocketAddr::V4(v4) => {
            let place = place.cast::<sockaddr_in>();
            // SAFETY: there is room for an address of any family.
            unsafe {
                (*place).sin_family = AF_INET as sa_family_t;
                (*place).sin_port = v4.port().to_be();
                (*place).sin_addr.s_addr = v4.ip().to_bits().to_be();
            }
        }
        SocketAddr::V6(v6) => {
            let place = place.cast::<sockaddr_in6>();
            // SAFETY: as above.
            unsafe {
                (*place).sin6_family = AF_INET6 as sa_family_t;
                (*place).sin6_port = v6.port().to_be();
                (*place).sin6_addr.s6_addr = v6.ip().octets();
            }
        }
    }
    storage
}

/// The entry of the GID table that has an address; `EADDRNOTAVAIL` if none has.
pub(crate) fn local(port: &Port, wanted: IpAddr) -> Result<u8, Errno> {
    let wanted = gid(wanted);
    let gids = port.gids();
    let found = gids.iter().find(|(_, gid)| *gid == wanted);
    found.map(|(index, _)| *index).ok_or(Errno::ADDRNOTAVAIL)
}

/// The entry of the GID table to reach `peer` from: of its family, and the most like it.
fn towards(port: &Port, peer: IpAddr) -> Result<(u8, IpAddr), Errno> {
    let is_link_local = |ip: IpAddr| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let to = u128::from_be_bytes(gid(peer));
    let gids = port.gids().into_iter().map(|(index, gid)| (index, ip(gid)));
    let fits =
        |own: IpAddr| own.is_ipv4() == peer.is_ipv4() && is_link_local(own) == is_link_local(peer);
    let fitting = gids.filter(|(_, own)| fits(*own));
    let likeness = |own: IpAddr| (u128::from_be_bytes(gid(own)) ^ to).leading_zeros();
    let best = fitting.max_by_key(|(index, own)| (likeness(*own), u8::MAX - index));
    best.ok_or(Errno::NETUNREACH)
}

impl CmId {
    /// Binds it to an address, or to none in particular, and to a port.
    pub(crate) fn bind(&self, address: SocketAddr) -> Result<(), Errno> {
        let device = super::port()?;
        let mut inner = self.lock();
        if inner.phase != Phase::Idle {
            return Err(Errno::INVAL);
        }
        if !address.ip().is_unspecified() {
            local(device, address.ip())?;
            self.show_device(device);
        }
        self.hold(&mut inner, address)?;
        inner.phase = Phase::Bound;
        Ok(())
    }

    /// Takes the port of an address, and shows both.
    fn hold(&self, inner: &mut Inner, mut address: SocketAddr) -> Result<(), Errno> {
        let port = take(self.space, address.port(), inner.is_reusable)?;
        inner.held_port = Some(port);
        address.set_port(port);
        self.show_local(inner, address);
        Ok(())
    }

    pub(super) fn show_local(&self, inner: &mut Inner, address: SocketAddr) {
        inner.local = Some(address);
        // SAFETY: a structure of this.
        unsafe { (*self.shown()).route.addr.src_storage = storage(address) };
    }

    pub(super) fn show_peer(&self, address: SocketAddr) {
        // SAFETY: a structure of this.
        unsafe { (*self.shown()).route.addr.dst_storage = storage(address) };
    }

    /// The GIDs of both ends.
    pub(super) fn show_gids(&self, from: [u8; 16], to: [u8; 16]) {
        use ferroce_cabi::abi::ibv_gid;
        // SAFETY: a structure of this.
        unsafe {
            (*self.shown()).route.addr.addr = rdma_ib_addr {
                sgid: ibv_gid { raw: from },
                dgid: ibv_gid { raw: to },
                pkey: u16::MAX,
            };
        }
    }

    /// Finds the way to a peer, and tells it.
    pub(crate) fn resolve(
        self: &Arc<Self>,
        from: Option<SocketAddr>,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<(), Errno> {
        let device = super::port()?;
        let mut inner = self.lock();
        if !matches!(inner.phase, Phase::Idle | Phase::Bound) {
            return Err(Errno::INVAL);
        }
        if to.ip().is_unspecified() || to.ip().is_multicast() {
            return Err(Errno::INVAL);
        }
        let from = from.or(inner.local);
        let named = from.filter(|from| !from.ip().is_unspecified());
        let (index, own) = match named {
            Some(from) => (local(device, from.ip())?, from.ip()),
            None => towards(device, to.ip())?,
        };
        if own.is_ipv4() != to.is_ipv4() {
            return Err(Errno::INVAL);
        }
        match inner.local {
            Some(known) => self.show_local(&mut inner, (own, known.port()).into()),
            None => self.hold(&mut inner, (own, from.map_or(0, |from| from.port())).into())?,
        }
        let peer = Address {
            sgid_index: index,
            gid: gid(to.ip()),
        };
        inner.peer = Some(peer);
        inner.phase = Phase::Resolving;
        self.show_peer(to);
        drop(inner);
        let id = self.clone();
        let asking = signals::spawn("ferroce-resolve", move || {
            let start = Instant::now();
            let mut is_found = device.is_reachable(peer);
            while !is_found && start.elapsed() < limit {
                is_found = device.is_reachable(peer);
            }
            id.resolved(device, gid(own), peer, is_found);
        });
        asking.map(drop).map_err(|_| Errno::AGAIN)
    }

    fn resolved(self: &Arc<Self>, device: &Port, own: [u8; 16], peer: Address, is_found: bool) {
        let mut inner = self.lock();
        // Destroyed meanwhile.
        if inner.phase != Phase::Resolving {
            return;
        }
        let (kind, status) = match is_found {
            true => {
                inner.phase = Phase::Resolved;
                self.show_device(device);
                self.show_gids(own, peer.gid);
                (RDMA_CM_EVENT_ADDR_RESOLVED, 0)
            }
            false => {
                inner.phase = Phase::Bound;
                (RDMA_CM_EVENT_ADDR_ERROR, -libc::ETIMEDOUT)
            }
        };
        let details = Details {
            status,
            ..Details::default()
        };
        inner.report(Event::new(self, None, kind, details));
    }

    /// A route of RoCE is known with the address.
    pub(crate) fn route(self: &Arc<Self>) -> Result<(), Errno> {
        let mut inner = self.lock();
        let (Phase::Resolved, Some(peer), Some(local)) = (inner.phase, inner.peer, inner.local)
        else {
            return Err(Errno::INVAL);
        };
        self.show_path(super::port()?, &mut inner, gid(local.ip()), peer);
        inner.phase = Phase::Routed;
        let (kind, details) = (RDMA_CM_EVENT_ROUTE_RESOLVED, Details::default());
        inner.report(Event::new(self, None, kind, details));
        Ok(())
    }
}

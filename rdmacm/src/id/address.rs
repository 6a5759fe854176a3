//! Addresses: those of the card, ports of the process, and the way to a peer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferroce_cabi::handle::{Object, lock};
use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use super::event::{Details, Event};
use super::{CmId, Inner, Phase};
use crate::abi::*;
use crate::errno::Errno;
use crate::port::{Port, gid, ip};
use ferroce_cm::{Address, PortSpace};

/// Ports for programs that ask for none in particular.
const EPHEMERAL: std::ops::Range<u16> = 32768..60999;

/// The holder of a port: an address, or none in particular.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    ip: IpAddr,
    /// No address of the other family is meant.
    is_one_family: bool,
    is_reusable: bool,
}

impl Holder {
    /// As Linux has it (`cma_check_port`).
    fn check(&self, other: &Self) -> Result<(), Errno> {
        let differ = self.ip.is_ipv4() != other.ip.is_ipv4();
        if self.is_reusable && other.is_reusable
            || differ && self.is_one_family && other.is_one_family
        {
            return Ok(());
        }
        if self.ip.is_unspecified() || other.ip.is_unspecified() {
            return Err(Errno::ADDRNOTAVAIL);
        }
        match self.ip == other.ip {
            true => Err(Errno::ADDRINUSE),
            false => Ok(()),
        }
    }
}

/// Ports in use, with their holders.
static PORTS: Mutex<BTreeMap<(PortSpace, u16), Vec<Holder>>> = Mutex::new(BTreeMap::new());

/// Takes a port, or one that is free for 0.
fn take(space: PortSpace, wanted: u16, holder: Holder) -> Result<u16, Errno> {
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
    let others = ports.get(&(space, port));
    let mut others = others.into_iter().flatten();
    others.try_for_each(|other| holder.check(other))?;
    ports.entry((space, port)).or_default().push(holder);
    Ok(port)
}

/// Makes a port no longer reusable, which it must be for no other holder: as Linux has it for listeners (`rdma_listen`).
fn claim(space: PortSpace, port: u16, holder: Holder) -> Result<Holder, Errno> {
    let alone = Holder {
        is_reusable: false,
        ..holder
    };
    let mut ports = lock(&PORTS);
    let holders = ports.get_mut(&(space, port)).ok_or(Errno::INVAL)?;
    let own = holders.iter().position(|held| *held == holder);
    let own = own.ok_or(Errno::INVAL)?;
    let mut others = holders.iter().enumerate().filter(|(at, _)| *at != own);
    others.try_for_each(|(_, other)| alone.check(other))?;
    holders[own] = alone;
    Ok(alone)
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
    let Some((port, holder)) = inner.held_port.take() else {
        return;
    };
    let mut ports = lock(&PORTS);
    if let Some(holders) = ports.get_mut(&(space, port)) {
        if let Some(at) = holders.iter().position(|held| *held == holder) {
            holders.swap_remove(at);
        }
        if holders.is_empty() {
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
        let holder = Holder {
            ip: address.ip(),
            is_one_family: address.is_ipv4() || inner.is_v6_only == Some(true),
            is_reusable: inner.is_reusable,
        };
        let port = take(self.space, address.port(), holder)?;
        inner.held_port = Some((port, holder));
        address.set_port(port);
        self.show_local(inner, address);
        Ok(())
    }

    /// Has the port alone from now on.
    pub(super) fn hold_alone(&self, inner: &mut Inner) -> Result<(), Errno> {
        let (port, holder) = inner.held_port.ok_or(Errno::INVAL)?;
        inner.held_port = Some((port, claim(self.space, port, holder)?));
        inner.is_reusable = false;
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
        let answer = move |device: &Port, is_found| id.resolved(device, gid(own), peer, is_found);
        device.find(peer, limit, Box::new(answer))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_of_an_address() {
        let holder = |ip: &str, is_one_family, is_reusable| Holder {
            ip: ip.parse().unwrap(),
            is_one_family,
            is_reusable,
        };
        let (in_use, none) = (Err(Errno::ADDRINUSE), Err(Errno::ADDRNOTAVAIL));
        for (ip, other, result) in [
            ("10.0.0.1", "10.0.0.2", Ok(())),
            ("10.0.0.1", "10.0.0.1", in_use),
            ("0.0.0.0", "10.0.0.1", none),
            ("10.0.0.1", "0.0.0.0", none),
            ("0.0.0.0", "::", Ok(())),
            ("fe80::1", "10.0.0.1", Ok(())),
        ] {
            let (one, two) = (holder(ip, true, false), holder(other, true, false));
            assert_eq!(one.check(&two), result, "{ip} {other}");
            assert_eq!(
                holder(ip, true, true).check(&holder(other, true, true)),
                Ok(())
            );
        }
        let both = holder("::", false, false);
        assert_eq!(both.check(&holder("0.0.0.0", true, false)), none);
    }

    #[test]
    fn a_port_has_one_listener() {
        const PORT: u16 = 7;
        let space = PortSpace::Tcp;
        let reused = |last| Holder {
            ip: Ipv4Addr::new(10, 0, 0, last).into(),
            is_one_family: true,
            is_reusable: true,
        };
        for last in [1, 1, 2] {
            assert_eq!(take(space, PORT, reused(last)), Ok(PORT));
        }
        // Two have the one address, one has another.
        assert_eq!(claim(space, PORT, reused(1)).err(), Some(Errno::ADDRINUSE));
        assert!(claim(space, PORT, reused(2)).is_ok_and(|alone| !alone.is_reusable));
        assert_eq!(take(space, PORT, reused(2)), Err(Errno::ADDRINUSE));
        assert_eq!(take(space, PORT, reused(1)), Ok(PORT));
    }
}

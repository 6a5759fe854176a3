//! Identifiers: what a program has of a connection or of a listener.

mod address;
mod connect;
mod deliver;
mod event;
mod qp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use ferroce_cabi::abi::*;
use ferroce_cabi::handle::{Acks, Object, Shown, lock, object};

use crate::abi::*;
use crate::errno::Errno;
use crate::port::{self, PORT, Port, Receivers};
pub(crate) use address::{local, socket_address};
pub(crate) use connect::Asked;
use event::Details;
pub(crate) use event::{Channel, Event};
use ferroce_cm::{self as cm, Address, PortSpace, Rep, Req};
pub(crate) use qp::create as create_qp;

/// The port, which the first call opens. `ENODEV` if there is no device.
pub(crate) fn port() -> Result<&'static Port, Errno> {
    port::open(Receivers {
        deliver: deliver::deliver,
        device_is_gone: deliver::device_is_gone,
    })
}

/// It, for what waits for its thread: `ENODEV` too if the device is gone.
fn live_port() -> Result<&'static Port, Errno> {
    let port = port()?;
    match port.has_ended() {
        true => Err(Errno::NODEV),
        false => Ok(port),
    }
}

/// How far an identifier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Bound,
    Resolving,
    Resolved,
    Routed,
    Listening,
    /// Somebody asked for it, and waits.
    Asked,
    Connecting,
    Connected,
    Disconnected,
    /// One of both sides said no to what was asked before the program accepted it.
    Refused,
    /// It cannot be used any more.
    Failed,
    /// The program is done with it.
    Destroyed,
}

/// What is known of an identifier.
pub(crate) struct Inner {
    pub(crate) phase: Phase,
    pub(crate) channel: Arc<Channel>,
    /// Its channel is its own, and functions wait for their events.
    pub(crate) is_sync: bool,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer: Option<Address>,
    /// The port that it holds.
    held_port: Option<(u16, address::Holder)>,
    comm: Option<cm::Id>,
    /// What was asked for, at the side that was asked.
    req: Option<Box<Req>>,
    /// What was answered, at the side that asked.
    rep: Option<Box<Rep>>,
    /// Of a question for datagrams.
    service: u64,
    /// PSN that it expects first.
    psn: u32,
    responder_resources: u8,
    initiator_depth: u8,
    retry: u8,
    rnr_retry: u8,
    pub(crate) traffic_class: u8,
    pub(crate) ack_timeout: Option<u8>,
    pub(crate) is_reusable: bool,
    pub(crate) is_v6_only: Option<bool>,
    /// Of a listener: requests whose events the program may leave.
    backlog: usize,
    /// What its queue pair was made with by this library.
    own: qp::Own,
    /// Of a listener that was made in one call: how queue pairs of requests are made.
    pub(crate) endpoint: Option<(*mut ibv_pd, ibv_qp_init_attr)>,
    path: Option<Box<ibv_sa_path_rec>>,
}

/// An identifier.
pub(crate) struct CmId {
    shown: Shown<rdma_cm_id>,
    /// By what a listener is known to the connection manager, which may name it when it is gone.
    key: u64,
    pub(crate) space: PortSpace,
    inner: Mutex<Inner>,
    /// Events of it that the program has.
    pub(crate) acks: Acks,
    /// Of a listener: events of requests that it has not taken.
    unread: AtomicUsize,
}

object!(CmId, rdma_cm_id);

// SAFETY: pointers of the inner part are handles, and what it owns is reached under the lock.
unsafe impl Send for CmId {}
// SAFETY: as above.
unsafe impl Sync for CmId {}

/// Identifiers by their communication IDs.
static CONNECTED: Mutex<BTreeMap<cm::Id, Weak<CmId>>> = Mutex::new(BTreeMap::new());

/// Identifiers that listen, by their keys.
static LISTENERS: Mutex<BTreeMap<u64, Weak<CmId>>> = Mutex::new(BTreeMap::new());

/// Keys that were given.
static KEYS: AtomicU64 = AtomicU64::new(0);

impl CmId {
    /// A new identifier. Without a channel it gets one of its own, and its functions wait.
    pub(crate) fn create(
        channel: Option<Arc<Channel>>,
        context: Opaque,
        space: PortSpace,
        qp_type: i32,
    ) -> Result<Arc<Self>, Errno> {
        let is_sync = channel.is_none();
        let channel = match channel {
            Some(channel) => channel,
            None => Channel::create()?,
        };
        let mut psn = [0; 4];
        getrandom::fill(&mut psn).map_err(|_| Errno::IO)?;
        let mut shown = rdma_cm_id::zero();
        shown.channel = channel.shown();
        shown.context = context;
        shown.qp_type = qp_type;
        shown.ps = match space {
            PortSpace::Tcp => RDMA_PS_TCP,
            PortSpace::Udp => RDMA_PS_UDP,
        } as u32;
        let inner = Inner {
            phase: Phase::Idle,
            channel,
            is_sync,
            local: None,
            peer: None,
            held_port: None,
            comm: None,
            req: None,
            rep: None,
            service: 0,
            psn: u32::from_ne_bytes(psn) & 0xff_ffff,
            responder_resources: 0,
            initiator_depth: 0,
            retry: 7,
            rnr_retry: 7,
            traffic_class: 0,
            ack_timeout: None,
            is_reusable: false,
            is_v6_only: None,
            backlog: 0,
            own: qp::Own::default(),
            endpoint: None,
            path: None,
        };
        let id = Arc::new(Self {
            shown: Shown::new(shown),
            key: KEYS.fetch_add(1, Ordering::Relaxed),
            space,
            inner: Mutex::new(inner),
            acks: Acks::default(),
            unread: AtomicUsize::new(0),
        });
        Self::registry().add(id.clone());
        Ok(id)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    pub(crate) fn channel(&self) -> Arc<Channel> {
        self.lock().channel.clone()
    }

    /// The device is known from here on.
    fn show_device(&self, port: &Port) {
        // SAFETY: a structure of this.
        unsafe {
            (*self.shown()).verbs = port.context;
            (*self.shown()).port_num = PORT;
            if (*self.shown()).pd.is_null() {
                (*self.shown()).pd = port.pd;
            }
        }
    }

    /// The path record that the program sees.
    fn show_path(&self, port: &Port, inner: &mut Inner, local: [u8; 16], peer: Address) {
        /// Code of the rate: 25 Gbit/s; exactly.
        const RATE: u8 = 15;
        const EXACTLY: u8 = 2;
        let mut path = ibv_sa_path_rec::zero();
        path.dgid = ibv_gid { raw: peer.gid };
        path.sgid = ibv_gid { raw: local };
        path.hop_limit = 64;
        path.traffic_class = inner.traffic_class;
        path.reversible = 1;
        path.numb_path = 1;
        path.pkey = u16::MAX;
        path.mtu_selector = EXACTLY;
        let asked = inner.req.as_ref().map(|req| req.mtu);
        path.mtu = asked.unwrap_or(port.path_mtu);
        path.rate_selector = EXACTLY;
        path.rate = RATE;
        path.packet_life_time_selector = EXACTLY;
        path.packet_life_time = qp::ACK_TIMEOUT - 1;
        let path = inner.path.insert(Box::new(path));
        // SAFETY: a structure of this; the path is valid as long as that.
        unsafe {
            (*self.shown()).route.path_rec = &raw mut **path;
            (*self.shown()).route.num_paths = 1;
        }
    }

    /// Starts something with the connection manager, whose answers are for this identifier.
    fn start(
        self: &Arc<Self>,
        port: &Port,
        begin: impl FnOnce(&mut cm::Manager, Duration) -> cm::Id,
    ) -> cm::Id {
        // The thread that reports answers finds it here.
        let mut connected = lock(&CONNECTED);
        let comm = port.with(begin);
        connected.insert(comm, Arc::downgrade(self));
        comm
    }

    /// The program is done with it.
    pub(crate) fn destroy(self: &Arc<Self>, port: Option<&Port>) {
        Self::registry().remove(self);
        let mut inner = self.lock();
        let comm = inner.comm.take();
        inner.phase = Phase::Destroyed;
        let channel = inner.channel.clone();
        let is_sync = inner.is_sync;
        address::release(&mut inner, self.space);
        drop(inner);
        if let Some(port) = port {
            port.with(|manager, now| {
                manager.unlisten(self.key);
                if let Some(comm) = comm {
                    manager.abandon(now, comm);
                }
            });
        }
        lock(&LISTENERS).remove(&self.key);
        if let Some(comm) = comm {
            lock(&CONNECTED).remove(&comm);
        }
        // Requests whose events the program did not take are refused with it.
        let is_own = |event: &Arc<Event>| Arc::ptr_eq(&event.owner, self);
        for event in channel.events.take_out(is_own) {
            if !Arc::ptr_eq(&event.id, self) {
                event.id.destroy(port);
            }
        }
        self.acks.wait();
        if is_sync {
            Channel::registry().remove(&channel);
        }
    }

    /// Reports its events on another channel from now on; without one it gets its own, and its functions wait. Waits for the
    /// acknowledgement of events of the channel before.
    pub(crate) fn migrate(self: &Arc<Self>, channel: Option<Arc<Channel>>) -> Result<(), Errno> {
        let is_sync = channel.is_none();
        let channel = match channel {
            Some(channel) => channel,
            None => Channel::create()?,
        };
        let mut inner = self.lock();
        let before = inner.report_on(self, &channel);
        let was_sync = std::mem::replace(&mut inner.is_sync, is_sync);
        // Later events go to the new channel; these are moved.
        let is_own = |event: &Arc<Event>| Arc::ptr_eq(&event.owner, self);
        for event in before.events.take_out(is_own) {
            if !Arc::ptr_eq(&event.id, self) {
                // a request that the program has not taken: its identifier reports where the listener does
                event.id.lock().report_on(&event.id, &channel);
            }
            channel.events.put(event);
        }
        drop(inner);
        self.acks.wait();
        if was_sync {
            Channel::registry().remove(&before);
        }
        Ok(())
    }
}

//! The port of the card: its addresses, its connection manager, and the thread that drives it.

mod gsi;
mod resolve;
pub(crate) mod verbs;

use std::ffi::c_int;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ferroce_cabi::abi::*;
use ferroce_cabi::handle::lock;
use ferroce_cabi::signals;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{read, write};

use crate::errno::{Errno, log};
pub(crate) use ferroce_cm::gid;
use ferroce_cm::{Address, CmEvent, Id, Manager, Output, WrongState};
use gsi::Gsi;
use resolve::{Answer, Resolver};
use verbs::*;

/// The one port.
pub(crate) const PORT: u8 = 1;
/// Entries of the GID table that are looked at.
const GIDS: usize = 256;
/// Longest sleep of the thread, if the card tells of messages; else from one look to the next.
const SLEEP: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
/// How long a process that ends waits for answers that are due.
const LINGER: Duration = Duration::from_secs(10);

/// The device, opened.
pub(crate) struct Port {
    pub(crate) context: *mut ibv_context,
    /// The domain of identifiers that name none.
    pub(crate) pd: *mut ibv_pd,
    /// Code of the path MTU that connections ask for.
    pub(crate) path_mtu: u8,
    /// READs and atomics that a queue pair may have under way.
    pub(crate) max_rd_atomic: u8,
    start: Instant,
    /// The process that opened it: a child of `fork` has its memory, and not its thread.
    process: u32,
    manager: Mutex<Manager>,
    resolver: Mutex<Resolver>,
    receivers: Receivers,
    /// Wakes the thread: there is something to send or to ask, or it ends.
    wake: OwnedFd,
    /// Whether every peer got the end of its connection.
    drained: Mutex<Drain>,
}

/// What the end of the process is to wait for.
#[derive(Default)]
struct Drain {
    is_asked: bool,
    is_done: bool,
}

// SAFETY: handles of verbs may be used from any thread.
unsafe impl Sync for Port {}
// SAFETY: as above.
unsafe impl Send for Port {}

/// What a function of verbs that answers a pointer found.
pub(crate) fn pointer<T>(found: *mut T) -> Result<*mut T, Errno> {
    match found.is_null() {
        true => Err(last()),
        false => Ok(found),
    }
}

/// What a function of verbs that answers an error number says.
pub(crate) fn success(status: c_int) -> Result<(), Errno> {
    match status {
        0 => Ok(()),
        -1 => Err(last()),
        number => Err(Errno::from_raw_os_error(number)),
    }
}

fn last() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// The path to a peer.
pub(crate) fn path(to: Address) -> ibv_ah_attr {
    /// As Linux has it.
    const HOP_LIMIT: u8 = 64;
    let mut attr = ibv_ah_attr::zero();
    attr.is_global = 1;
    attr.port_num = PORT;
    attr.grh.dgid = ibv_gid { raw: to.gid };
    attr.grh.sgid_index = to.sgid_index;
    attr.grh.hop_limit = HOP_LIMIT;
    attr
}

/// The address that a GID stands for.
pub(crate) fn ip(gid: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(gid).to_canonical()
}

/// The port that was opened.
static OPENED: OnceLock<Arc<Port>> = OnceLock::new();

/// Where the thread of the port hands on what happens.
#[derive(Clone, Copy)]
pub(crate) struct Receivers {
    /// Takes an event of a connection.
    pub(crate) deliver: fn(&Port, Id, CmEvent),
    /// The device is gone.
    pub(crate) device_is_gone: fn(),
}

/// The port, which the first call opens; if that fails, the next one tries again. `ENODEV` if there is no device, `EBUSY`
/// in a child of `fork` if it is the parent's.
pub(crate) fn open(receivers: Receivers) -> Result<&'static Port, Errno> {
    let port = match OPENED.get() {
        Some(port) => port,
        None => open_first(receivers)?,
    };
    match port.is_own() {
        true => Ok(port),
        false => Err(Errno::BUSY),
    }
}

fn open_first(receivers: Receivers) -> Result<&'static Arc<Port>, Errno> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _one = lock(&OPENING);
    // Another thread may have opened it meanwhile.
    if let Some(port) = OPENED.get() {
        return Ok(port);
    }
    let port = Arc::new(Port::open(receivers)?);
    port.run()?;
    Ok(OPENED.get_or_init(|| port))
}

impl Port {
    fn open(receivers: Receivers) -> Result<Self, Errno> {
        // SAFETY: handles that this function got of the library; the list is given back once.
        unsafe {
            let list = pointer(ibv_get_device_list(ptr::null_mut()))?;
            let device = *list;
            let context = match device.is_null() {
                true => Err(Errno::NODEV),
                false => pointer(ibv_open_device(device)),
            };
            let guid = ibv_get_device_guid(device);
            ibv_free_device_list(list);
            let context = context?;
            Self::of(context, guid, receivers).inspect_err(|_| {
                ibv_close_device(context);
            })
        }
    }

    /// That of an opened device.
    fn of(context: *mut ibv_context, guid: u64, receivers: Receivers) -> Result<Self, Errno> {
        // SAFETY: the device, which has the one port.
        unsafe {
            let mut attr = ibv_device_attr::zero();
            success(ibv_query_device(context, &raw mut attr))?;
            let mut port = ibv_port_attr::zero();
            success(ibv_query_port(context, PORT, &raw mut port))?;
            let mut seed = [0; 4];
            getrandom::fill(&mut seed).map_err(|_| Errno::IO)?;
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Self {
                context,
                pd: pointer(ibv_alloc_pd(context))?,
                path_mtu: port.active_mtu as u8,
                max_rd_atomic: attr.max_qp_rd_atom.clamp(0, 255) as u8,
                start: Instant::now(),
                process: std::process::id(),
                receivers,
                manager: Mutex::new(Manager::new(u64::from_be(guid), u32::from_ne_bytes(seed))),
                resolver: Mutex::default(),
                wake,
                drained: Mutex::default(),
            })
        }
    }

    /// This process opened it.
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Its thread has ended: the device is gone, or the program ends.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.drained).is_done
    }

    /// Starts the thread.
    fn run(self: &Arc<Self>) -> Result<(), Errno> {
        let mut gsi = Gsi::open(self.context, self.pd)?;
        let port = self.clone();
        let started = signals::spawn("ferroce-cm", move || {
            if let Err(errno) = port.serve(&mut gsi) {
                log(&format!("the connection manager ends: {errno}"));
                lock(&port.drained).is_done = true;
                let waiting = lock(&port.resolver).end();
                waiting.into_iter().for_each(|(tell, _)| tell(&port, false));
                (port.receivers.device_is_gone)();
            }
        });
        started.map_err(|_| Errno::AGAIN)?;
        // SAFETY: a function without arguments. If it cannot be registered the peers get no message.
        unsafe { libc::atexit(linger) };
        Ok(())
    }

    /// Calls `then` with the connection manager and the time; what it has to send goes.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&mut Manager, Duration) -> R) -> R {
        let done = then(&mut lock(&self.manager), self.start.elapsed());
        self.wake();
        done
    }

    /// The same with what a state may refuse.
    pub(crate) fn change(
        &self,
        then: impl FnOnce(&mut Manager, Duration) -> Result<(), WrongState>,
    ) -> Result<(), Errno> {
        self.with(then).map_err(|WrongState| Errno::INVAL)
    }

    fn wake(&self) {
        // It is readable if it is at its end.
        let _ = write(&self.wake, &1u64.to_ne_bytes());
    }

    /// The GIDs of the port, with their indices.
    pub(crate) fn gids(&self) -> Vec<(u8, [u8; 16])> {
        let entry = ibv_gid_entry {
            gid: ibv_gid { raw: [0; 16] },
            gid_index: 0,
            port_num: 0,
            gid_type: 0,
            ndev_ifindex: 0,
        };
        let mut entries = [entry; GIDS];
        let size = size_of::<ibv_gid_entry>();
        let place = entries.as_mut_ptr();
        // SAFETY: a place for so many entries of that size.
        let found = unsafe { _ibv_query_gid_table(self.context, place, GIDS, 0, size) };
        let found = usize::try_from(found).unwrap_or(0);
        let all = entries.iter().take(found);
        all.map(|e| (e.gid_index as u8, e.gid.raw)).collect()
    }

    /// Has the thread look for a peer, by its MAC address, for at least `limit`.
    pub(crate) fn find(&self, peer: Address, limit: Duration, answer: Answer) -> Result<(), Errno> {
        let until = self.start.elapsed().saturating_add(limit);
        lock(&self.resolver).add(peer, until, answer)?;
        self.wake();
        Ok(())
    }

    /// Whether it is known where a peer is; if not it is asked.
    fn ask(&self, peer: Address) -> Result<(), Errno> {
        let attr = path(peer);
        // SAFETY: the device, and a path.
        success(unsafe { ferroce_try_resolve(self.context, &raw const attr, ptr::null_mut()) })
    }

    fn serve(&self, gsi: &mut Gsi) -> Result<(), Errno> {
        loop {
            // Cleared first: a later wake-up ends the sleep below.
            let _ = read(&self.wake, &mut [0; 8]);
            let now = || self.start.elapsed();
            let is_more = gsi.collect(|from, mad| lock(&self.manager).receive(now(), from, mad))?;
            gsi.send_again();
            let done = lock(&self.resolver).turn(now(), |peer| self.ask(peer));
            for (tell, is_found) in done {
                tell(self, is_found);
            }
            let is_asked = lock(&self.drained).is_asked;
            let (deadline, is_due) = {
                let mut manager = lock(&self.manager);
                manager.tick(now());
                let is_due = is_asked && manager.abandon_all(now());
                (manager.deadline(), is_due)
            };
            // The lock is not held: programs call the manager meanwhile.
            loop {
                let Some(output) = lock(&self.manager).output() else {
                    break;
                };
                match output {
                    Output::Send(to, mad) => gsi.send(to, &mad),
                    Output::Event(comm, event) => (self.receivers.deliver)(self, comm, event),
                }
            }
            if is_asked && !is_due && gsi.is_idle() {
                lock(&self.drained).is_done = true;
            }
            let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
            if let Some(fd) = gsi.fd() {
                // SAFETY: open as long as the queue pair is.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
            let asks = gsi.has_unsent() || !lock(&self.resolver).is_idle();
            let has_doorbell = fds.len() > 1 && !asks;
            let longest = match (is_more, has_doorbell) {
                (true, _) => Duration::ZERO,
                (false, true) => SLEEP,
                (false, false) => LOOK,
            };
            let sleep = deadline.map_or(longest, |at| at.saturating_sub(now()).min(longest));
            let sleep = Timespec::try_from(sleep).ok();
            // An interrupted sleep is a short one.
            let _ = poll(&mut fds, sleep.as_ref());
        }
    }
}

impl Drop for Port {
    /// It did not start; one that did stays as long as the process.
    fn drop(&mut self) {
        // SAFETY: handles that this made, and that libibverbs looks up.
        unsafe {
            ibv_dealloc_pd(self.pd);
            ibv_close_device(self.context);
        }
    }
}

/// The process ends: its peers get a message and have some time to answer. A child of `fork` has no connections.
extern "C" fn linger() {
    let Some(port) = OPENED.get() else { return };
    if !port.is_own() {
        return;
    }
    lock(&port.drained).is_asked = true;
    port.wake();
    let start = Instant::now();
    while !lock(&port.drained).is_done && start.elapsed() < LINGER {
        thread::sleep(Duration::from_millis(2));
        port.wake();
    }
}

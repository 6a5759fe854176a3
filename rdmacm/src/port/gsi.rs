//! Queue pair 1: messages to and from other ports.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;

use ferroce_cabi::abi::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::verbs::*;
use super::{PORT, pointer, success};
use crate::errno::{Errno, log};
use ferroce_cm::{Address, MAD_BYTES};

/// Q_Key of queue pairs of management (IB1 10.2.5), and their number.
const QKEY: u32 = 0x8001_0000;
const QPN: u32 = 1;
/// The head of a datagram stands in front of it.
const GRH_BYTES: usize = 40;
/// What stands in front of a message and of others that come here.
const HEAD_BYTES: usize = GRH_BYTES + MAD_BYTES;
/// Room for the longest datagram: one that finds too little may end the queue pair, and anybody may send one.
const SLOT_BYTES: usize = GRH_BYTES + 4096;
/// Messages received at a time, and sent.
const RECEIVES: usize = 128;
const SENDS: u32 = 64;
/// Completions taken in a turn: whoever sends without end does not keep the others from theirs.
const TURN: usize = 32;
/// Messages that wait until their peer's address is resolved: any host may send one from an address that no host has.
const UNSENT: usize = 256;
/// Peers with an address handle.
const PEERS: usize = 32;

/// A peer with an address handle.
struct Peer {
    address: Address,
    /// The MAC address that the handle has.
    mac: [u8; 6],
    ah: *mut ibv_ah,
}

/// Memory into which the card writes.
type Slots = Box<[UnsafeCell<[u8; SLOT_BYTES]>]>;

/// Queue pair 1 with all it needs. One thread uses it.
pub(super) struct Gsi {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
    /// Null if the card tells nothing by itself.
    channel: *mut ibv_comp_channel,
    cq: *mut ibv_cq,
    qp: *mut ibv_qp,
    mr: *mut ibv_mr,
    slots: Slots,
    lkey: u32,
    /// The one used last is the last.
    peers: Vec<Peer>,
    /// Messages whose sends did not complete.
    sending: u32,
    /// Messages to peers of which it is not known yet where they are.
    unsent: Vec<(Address, [u8; MAD_BYTES])>,
}

// SAFETY: handles of verbs may be used from any thread, and only the owner of this reads the slots.
unsafe impl Send for Gsi {}

impl Gsi {
    /// Makes queue pair 1, ready to receive.
    pub(super) fn open(context: *mut ibv_context, pd: *mut ibv_pd) -> Result<Self, Errno> {
        let mut gsi = Self {
            context,
            pd,
            channel: ptr::null_mut(),
            cq: ptr::null_mut(),
            qp: ptr::null_mut(),
            mr: ptr::null_mut(),
            slots: (0..RECEIVES)
                .map(|_| UnsafeCell::new([0; SLOT_BYTES]))
                .collect(),
            lkey: 0,
            peers: Vec::new(),
            sending: 0,
            unsent: Vec::new(),
        };
        // If not all of it can be made its end gives back what was.
        gsi.make()?;
        gsi.start()?;
        Ok(gsi)
    }

    fn make(&mut self) -> Result<(), Errno> {
        // SAFETY: handles that this function got of the library.
        unsafe {
            self.channel = ibv_create_comp_channel(self.context);
            if !self.channel.is_null() {
                let fd = BorrowedFd::borrow_raw((*self.channel).fd);
                fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
            }
            let entries = RECEIVES as i32 + SENDS as i32;
            let cq = ibv_create_cq(self.context, entries, ptr::null_mut(), self.channel, 0);
            self.cq = pointer(cq)?;
            let mut init = ibv_qp_init_attr::zero();
            init.send_cq = cq;
            init.recv_cq = cq;
            init.cap.max_send_wr = SENDS;
            init.cap.max_recv_wr = RECEIVES as u32;
            init.cap.max_send_sge = 1;
            init.cap.max_recv_sge = 1;
            init.cap.max_inline_data = MAD_BYTES as u32;
            init.qp_type = IBV_QPT_UD;
            self.qp = pointer(ferroce_create_gsi_qp(self.pd, &raw mut init))?;
            let start = self.slots.as_ptr().cast_mut().cast::<c_void>();
            let len = RECEIVES * SLOT_BYTES;
            self.mr = pointer(ibv_reg_mr(self.pd, start, len, IBV_ACCESS_LOCAL_WRITE))?;
            self.lkey = (*self.mr).lkey;
        }
        Ok(())
    }

    /// Brings the queue pair to RTS from any state: what it was to send or receive is forgotten.
    fn start(&mut self) -> Result<(), Errno> {
        self.sending = 0;
        let mut attr = ibv_qp_attr::zero();
        attr.port_num = PORT;
        attr.qkey = QKEY;
        let steps = [
            (IBV_QPS_RESET, 0),
            (IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            (IBV_QPS_RTR, 0),
            (IBV_QPS_RTS, IBV_QP_SQ_PSN),
        ];
        for (state, mask) in steps {
            attr.qp_state = state;
            // SAFETY: a queue pair of this port, and its attributes.
            success(unsafe { ibv_modify_qp(self.qp, &raw mut attr, mask | IBV_QP_STATE) })?;
            if state == IBV_QPS_INIT {
                (0..RECEIVES).try_for_each(|slot| self.receive(slot))?;
            }
        }
        self.arm()
    }

    /// Has the card write the next message into a slot.
    fn receive(&self, slot: usize) -> Result<(), Errno> {
        let mut sge = ibv_sge {
            addr: self.slots[slot].get().addr() as u64,
            length: SLOT_BYTES as u32,
            lkey: self.lkey,
        };
        let mut wr = ibv_recv_wr {
            wr_id: slot as u64,
            next: ptr::null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: a context has this function; the slot stays where it is.
        unsafe {
            let post = (*self.context).ops.post_recv.ok_or(Errno::OPNOTSUPP)?;
            success(post(self.qp, &raw mut wr, &raw mut bad))
        }
    }

    /// Asks for an event at the next completion.
    fn arm(&self) -> Result<(), Errno> {
        if self.channel.is_null() {
            return Ok(());
        }
        // SAFETY: a context has this function.
        unsafe {
            let arm = (*self.context).ops.req_notify_cq.ok_or(Errno::OPNOTSUPP)?;
            success(arm(self.cq, 0))
        }
    }

    /// Readable when there is something to collect, if the card tells that.
    pub(super) fn fd(&self) -> Option<RawFd> {
        // SAFETY: a channel of this, valid as long as this.
        (!self.channel.is_null()).then(|| unsafe { (*self.channel).fd })
    }

    /// Takes what came, as much as is a turn, and gives it to `each` with the address it came from; whether there may be
    /// more. A queue pair that failed starts again; an error says that the card is gone.
    pub(super) fn collect(&mut self, mut each: impl FnMut(Address, &[u8])) -> Result<bool, Errno> {
        if !self.channel.is_null() {
            let (mut cq, mut cq_context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel does not block; it has the one queue.
            unsafe {
                while ibv_get_cq_event(self.channel, &raw mut cq, &raw mut cq_context) == 0 {
                    ibv_ack_cq_events(cq, 1);
                }
            }
            // A later message raises an event; an earlier one is found below.
            self.arm()?;
        }
        // SAFETY: a context has this function.
        let poll = unsafe { (*self.context).ops.poll_cq }.ok_or(Errno::OPNOTSUPP)?;
        let mut wc = ibv_wc::zero();
        for _ in 0..TURN {
            // SAFETY: a place for one completion.
            if unsafe { poll(self.cq, 1, &raw mut wc) } != 1 {
                return Ok(false);
            }
            if wc.status != IBV_WC_SUCCESS {
                log(&format!(
                    "queue pair 1 failed (completion status {}) and starts again: messages may be lost",
                    wc.status
                ));
                // All others that wait are forgotten with it.
                self.start()?;
                continue;
            }
            let Some(slot) = usize::try_from(wc.wr_id).ok().filter(|&s| s < RECEIVES) else {
                self.sending = self.sending.saturating_sub(1);
                continue;
            };
            // SAFETY: the card is done with the slot, and no other code has it.
            let bytes = unsafe { *self.slots[slot].get().cast::<[u8; HEAD_BYTES]>() };
            self.receive(slot)?;
            let (grh, message) = bytes.split_at(GRH_BYTES);
            let len = (wc.byte_len as usize).saturating_sub(GRH_BYTES);
            let is_mad = wc.src_qp == QPN && len == MAD_BYTES;
            if let Some(from) = self.sender(&mut wc, grh).filter(|_| is_mad) {
                each(from, message);
            }
        }
        Ok(true)
    }

    /// The sender of a message, and the address of ours that it went to.
    fn sender(&self, wc: &mut ibv_wc, grh: &[u8]) -> Option<Address> {
        let mut attr = ibv_ah_attr::zero();
        let grh = grh.as_ptr().cast_mut().cast();
        // SAFETY: the completion, the head of its datagram, and a place for the attributes.
        let status = unsafe { ibv_init_ah_from_wc(self.context, PORT, wc, grh, &raw mut attr) };
        (status == 0).then_some(Address {
            sgid_index: attr.grh.sgid_index,
            gid: attr.grh.dgid.raw,
        })
    }

    /// Sends a message, now or when the peer's address is resolved. A message that cannot be sent counts as lost: the
    /// connection manager repeats a request without an answer.
    pub(super) fn send(&mut self, to: Address, mad: &[u8; MAD_BYTES]) {
        let _ = self.try_send(to, mad);
    }

    /// As [`send`](Self::send); an error says that the message is lost, and why.
    fn try_send(&mut self, to: Address, mad: &[u8; MAD_BYTES]) -> Result<(), Errno> {
        let is_full = self.unsent.len() >= UNSENT;
        let is_known = || self.peers.iter().any(|peer| peer.address == to);
        // Each new peer is asked for by broadcasts, and takes a place among the neighbours.
        let sent = match is_full && !is_known() {
            true => Err(Errno::NOBUFS),
            false => self.post(to, mad),
        };
        match sent {
            Err(Errno::AGAIN) if !is_full => {
                self.unsent.push((to, *mad));
                Ok(())
            }
            sent => sent.inspect_err(|errno| {
                // All that wait for a peer are given up together: each would have it asked for anew.
                if *errno == Errno::HOSTUNREACH {
                    self.unsent.retain(|(other, _)| *other != to);
                }
                let to = super::ip(to.gid);
                log(&format!("a message to {to} is not sent: {errno}"));
            }),
        }
    }

    /// Sends what waited, as far as it is known by now where the peers are.
    pub(super) fn send_again(&mut self) {
        let mut gone = Vec::new();
        for (to, mad) in std::mem::take(&mut self.unsent) {
            if !gone.contains(&to) && self.try_send(to, &mad) == Err(Errno::HOSTUNREACH) {
                gone.push(to);
            }
        }
    }

    /// Messages wait: [`send_again`](Self::send_again) is to be called soon.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn post(&mut self, to: Address, mad: &[u8; MAD_BYTES]) -> Result<(), Errno> {
        let ah = self.peer(to)?;
        let mut sge = ibv_sge {
            addr: mad.as_ptr().addr() as u64,
            length: MAD_BYTES as u32,
            lkey: 0,
        };
        let ud = Ud {
            ah,
            remote_qpn: QPN,
            remote_qkey: QKEY,
        };
        let mut wr = ibv_send_wr {
            wr_id: u64::MAX,
            next: ptr::null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode: IBV_WR_SEND,
            send_flags: (IBV_SEND_SIGNALED | IBV_SEND_INLINE) as u32,
            wr: OfTransport { ud },
            ..ibv_send_wr::zero()
        };
        let mut bad = ptr::null_mut();
        // SAFETY: a context has this function, which copies the message.
        unsafe {
            let post = (*self.context).ops.post_send.ok_or(Errno::OPNOTSUPP)?;
            success(post(self.qp, &raw mut wr, &raw mut bad))?;
        }
        self.sending += 1;
        Ok(())
    }

    /// All that was to be sent is.
    pub(super) fn is_idle(&self) -> bool {
        self.sending == 0 && self.unsent.is_empty()
    }

    /// The address handle of a peer, which may have moved since; `EAGAIN` if there cannot be one yet.
    fn peer(&mut self, to: Address) -> Result<*mut ibv_ah, Errno> {
        let mut attr = super::path(to);
        let mut mac = [0; 6];
        // SAFETY: the device, a path, and a place for the MAC address.
        success(unsafe { ferroce_try_resolve(self.context, &raw const attr, &raw mut mac) })?;
        let known = self.peers.iter().position(|peer| peer.address == to);
        if let Some(at) = known.filter(|at| self.peers[*at].mac == mac) {
            let peer = self.peers.remove(at);
            let ah = peer.ah;
            self.peers.push(peer);
            return Ok(ah);
        }
        // A handle to where the peer was, or the one used longest ago, makes room.
        let is_full = self.peers.len() == PEERS;
        if let Some(at) = known.or(is_full.then_some(0)) {
            self.destroy_peer(at)?;
        }
        // SAFETY: the domain of this, and a path.
        let ah = pointer(unsafe { ibv_create_ah(self.pd, &raw mut attr) })?;
        let address = to;
        self.peers.push(Peer { address, mac, ah });
        Ok(ah)
    }

    /// Destroys the address handle of a peer; `EAGAIN` while messages are on their way, which still need theirs.
    fn destroy_peer(&mut self, at: usize) -> Result<(), Errno> {
        if self.sending > 0 {
            return Err(Errno::AGAIN);
        }
        let Peer { ah, .. } = self.peers.remove(at);
        // SAFETY: nothing uses it.
        success(unsafe { ibv_destroy_ah(ah) })
    }
}

impl Drop for Gsi {
    fn drop(&mut self) {
        // SAFETY: handles that this made, or null, which libibverbs looks up; the users of each go before it.
        unsafe {
            ibv_destroy_qp(self.qp);
            for peer in &self.peers {
                ibv_destroy_ah(peer.ah);
            }
            ibv_dereg_mr(self.mr);
            ibv_destroy_cq(self.cq);
            ibv_destroy_comp_channel(self.channel);
        }
    }
}

#[cfg(test)]
mod tests;

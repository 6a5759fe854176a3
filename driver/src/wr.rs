//! Work requests.

use bitflags::bitflags;
use ferroce_proto::abi::wqe::{WindowBind, opcode};

use crate::{Destination, Features, Sge};

bitflags! {
    /// How a send request runs (`enum ibv_send_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u8 {
        /// Report success too; failures are always reported.
        const SIGNALED = 1 << 0;
        /// Raise the solicited event of the peer.
        const SOLICITED = 1 << 1;
        /// Start only after all earlier READs and atomics of the queue pair completed.
        const FENCE = 1 << 2;
    }
}

/// Where data of the peer stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Remote {
    /// Virtual address at the peer.
    pub addr: u64,
    /// Key of the region there.
    pub rkey: u32,
}

/// What a send request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOp {
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendImm(u32),
    /// SEND of a datagram.
    Datagram(Destination),
    /// SEND of a datagram with immediate data.
    DatagramImm(Destination, u32),
    /// SEND that invalidates a key of the peer.
    SendInv(u32),
    /// RDMA WRITE.
    Write(Remote),
    /// RDMA WRITE with immediate data.
    WriteImm(Remote, u32),
    /// RDMA READ into the list of the request.
    Read(Remote),
    /// Swaps 8 bytes if they compare equal; the old value is put into the list, of 8 bytes.
    CmpSwap {
        /// 8 bytes, aligned to 8.
        remote: Remote,
        /// Value to compare with.
        compare: u64,
        /// Value to put there.
        swap: u64,
    },
    /// Adds to 8 bytes; the old value is put into the list, of 8 bytes.
    FetchAdd {
        /// 8 bytes, aligned to 8.
        remote: Remote,
        /// Value to add.
        add: u64,
    },
    /// Binds a memory window ([`Qp::post_bind`](crate::Qp::post_bind)).
    BindMw(Binding),
    /// Invalidates a key ([`Qp::post_invalidate`](crate::Qp::post_invalidate)).
    LocalInv(u32),
}

/// What a memory window is bound to, and its key from then on. [`Qp::post_bind`](crate::Qp::post_bind) makes it, as it notes
/// what the window may be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(pub(crate) WindowBind, pub(crate) u32);

impl Binding {
    /// One that every card refuses: no key is 0.
    pub(crate) fn of_nothing() -> Self {
        let length = 1;
        let none = WindowBind::default();
        Self(WindowBind { length, ..none }, 0)
    }
}

impl SendOp {
    /// What the WQE says of it: its code, where it works at the peer, and immediate data or the key to invalidate.
    #[inline]
    pub(crate) fn fields(&self) -> (u8, Remote, u32) {
        let nowhere = Remote::default();
        // `UdAddress` of the WQE stands in place of the remote address
        let of = |to: Destination| Remote {
            addr: u64::from(to.qpn) << 32 | u64::from(to.ah),
            rkey: to.qkey,
        };
        match *self {
            Self::Send => (opcode::SEND, nowhere, 0),
            Self::SendImm(imm) => (opcode::SEND_IMM, nowhere, imm),
            Self::Datagram(to) => (opcode::SEND, of(to), 0),
            Self::DatagramImm(to, imm) => (opcode::SEND_IMM, of(to), imm),
            Self::SendInv(key) => (opcode::SEND_INV, nowhere, key),
            Self::Write(remote) => (opcode::WRITE, remote, 0),
            Self::WriteImm(remote, imm) => (opcode::WRITE_IMM, remote, imm),
            Self::Read(remote) => (opcode::READ, remote, 0),
            Self::CmpSwap { remote, .. } => (opcode::CMP_SWAP, remote, 0),
            Self::FetchAdd { remote, .. } => (opcode::FETCH_ADD, remote, 0),
            Self::BindMw(Binding(_, key)) => (opcode::BIND_MW, nowhere, key),
            Self::LocalInv(key) => (opcode::LOCAL_INV, nowhere, key),
        }
    }

    /// Any connection has it.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(
            self,
            Self::Send | Self::SendImm(_) | Self::Write(_) | Self::WriteImm(..)
        )
    }

    pub(crate) fn is_datagram(&self) -> bool {
        matches!(self, Self::Datagram(_) | Self::DatagramImm(..))
    }

    /// Sends nothing.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::BindMw(_) | Self::LocalInv(_))
    }

    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self, Self::CmpSwap { .. } | Self::FetchAdd { .. })
    }

    /// Brings data from the peer.
    pub(crate) fn fetches(&self) -> bool {
        matches!(self, Self::Read(_)) || self.is_atomic()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::SendImm(_) => "SEND with immediate",
            Self::SendInv(_) => "SEND with invalidate",
            Self::Datagram(_) => "datagram",
            Self::DatagramImm(..) => "datagram with immediate",
            Self::Write(_) => "RDMA WRITE",
            Self::WriteImm(..) => "RDMA WRITE with immediate",
            Self::Read(_) => "RDMA READ",
            Self::CmpSwap { .. } => "compare and swap",
            Self::FetchAdd { .. } => "fetch and add",
            Self::BindMw(_) => "bind of a memory window",
            Self::LocalInv(_) => "local invalidate",
        }
    }

    /// What the card must be able to do for it.
    pub(crate) fn feature(&self) -> Features {
        match self {
            Self::SendInv(_) => Features::INVALIDATE,
            Self::Read(_) => Features::READ,
            Self::BindMw(_) | Self::LocalInv(_) => Features::MEM_WINDOW,
            op if op.is_atomic() => Features::ATOMIC,
            _ => Features::empty(),
        }
    }
}

/// Bytes of a send request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// Pieces of registered memory, to be left alone until the request completes. Entries of 0 bytes are left out.
    Sges(&'a [Sge]),
    /// Copied when posted; needs no registration.
    Inline(&'a [u8]),
}

/// A send request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWr<'a> {
    /// Returned in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// What with.
    pub data: Data<'a>,
    /// How.
    pub flags: SendFlags,
}

impl<'a> SendWr<'a> {
    /// Operation `op` on the pieces `sges`, unsignaled, `wr_id` 0.
    #[must_use]
    pub const fn new(op: SendOp, sges: &'a [Sge]) -> Self {
        Self {
            wr_id: 0,
            op,
            data: Data::Sges(sges),
            flags: SendFlags::empty(),
        }
    }

    /// Operation `op` on a copy of `bytes`, unsignaled, `wr_id` 0.
    #[must_use]
    pub const fn inline(op: SendOp, bytes: &'a [u8]) -> Self {
        Self {
            wr_id: 0,
            op,
            data: Data::Inline(bytes),
            flags: SendFlags::empty(),
        }
    }

    /// With a `wr_id`.
    #[must_use]
    pub const fn wr_id(mut self, wr_id: u64) -> Self {
        self.wr_id = wr_id;
        self
    }

    /// Reports success.
    #[must_use]
    pub const fn signaled(self) -> Self {
        self.with(SendFlags::SIGNALED)
    }

    /// Raises the solicited event of the peer.
    #[must_use]
    pub const fn solicited(self) -> Self {
        self.with(SendFlags::SOLICITED)
    }

    /// Waits for earlier READs and atomics.
    #[must_use]
    pub const fn fence(self) -> Self {
        self.with(SendFlags::FENCE)
    }

    const fn with(mut self, flags: SendFlags) -> Self {
        self.flags = self.flags.union(flags);
        self
    }
}

/// A receive request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvWr<'a> {
    /// Returned in the completion.
    pub wr_id: u64,
    /// Pieces of registered memory, to be left alone until the request completes. Entries of 0 bytes are left out.
    pub sges: &'a [Sge],
}

impl<'a> RecvWr<'a> {
    /// Receives into `sges`.
    #[must_use]
    pub const fn new(wr_id: u64, sges: &'a [Sge]) -> Self {
        Self { wr_id, sges }
    }
}

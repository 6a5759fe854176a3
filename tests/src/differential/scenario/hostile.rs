//! What goes wrong, and what attackers do.

use ferroce_proto::wire::Opcode;

/// What is wrong with a message. In the comments: the completion status of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation does not exist (LOC_QP_OP_ERR).
    Opcode(u8),
    /// The WQE says this many slots (LOC_QP_OP_ERR).
    Slots(u8),
    /// The WQE says this many gather entries (LOC_QP_OP_ERR).
    Entries(u8),
    /// The WQE's length is off by this (LOC_QP_OP_ERR).
    Length(i8),
    /// More inline data than the slot holds (LOC_QP_OP_ERR).
    Inline(u8),
    /// A message beyond 2^31 bytes (LOC_LEN_ERR).
    TooLong,
    /// The last gather entry is not permitted (LOC_PROT_ERR).
    Gather(Denial),
    /// The remote buffer is not permitted (REM_ACCESS_ERR).
    Remote(Denial),
    /// The receive buffer is a byte too short (REM_INV_REQ_ERR).
    ShortBuffer,
    /// The last scatter entry is not permitted (REM_OP_ERR).
    Scatter(Denial),
    /// It invalidates a key of a peer that no peer may invalidate (REM_ACCESS_ERR).
    Invalidate(usize),
    /// The receive WQE says this many entries (REM_OP_ERR).
    RecvEntries(u8),
    /// There is no receive buffer (RNR_RETRY_EXC_ERR).
    NoReceive,
}

/// Why memory is not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The key's variant is another.
    Key,
    /// The region is of another protection domain.
    Domain,
    /// A byte before the region.
    Before,
    /// A byte behind the region.
    Behind,
    /// The addresses wrap round 2^64.
    Wraps,
    /// The region is read-only.
    Rights,
}

/// A frame to be dropped silently.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Anything.
    Bytes(Vec<u8>),
    /// A good packet for the connection, spoilt.
    Spoilt {
        /// Connection.
        connection: usize,
        /// Of this opcode.
        opcode: Opcode,
        /// Bytes of payload.
        len: u16,
        /// How.
        spoil: Spoil,
    },
}

/// How a packet is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoil {
    /// A bit of the ICRC is flipped.
    Icrc(u8),
    /// Only this share, in 1/256, is left.
    Truncated(u8),
    /// A queue pair that is not there.
    UnknownQp(u32),
    /// Another partition.
    Pkey,
    /// Another sender.
    Source,
    /// Another receiver.
    Destination,
    /// Another station.
    Mac,
    /// Another transport.
    Transport(Opcode),
    /// A congestion notification.
    Cnp,
    /// Another UDP port.
    Port,
}

/// A packet with the addresses of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A request this far beyond the one expected: answered with a NAK.
    Ahead(u16),
    /// A request this far before the one expected: acknowledged again.
    Behind(u16),
    /// An acknowledgement of what was not sent, with this syndrome.
    GhostAck(u8),
    /// An acknowledgement this far before the oldest that is due, with this syndrome.
    OldAck(u16, u8),
    /// The next request, of an opcode that does not begin a message. Ends the connection.
    OutOfOrder(Opcode),
    /// The next request, longer than the path MTU. Ends the connection.
    Oversized,
    /// The next request, a FIRST shorter than the path MTU. Ends the connection.
    Undersized,
    /// The next request, a WRITE whose RETH says this many bytes more than there are. Ends the connection.
    WrongLength(u8),
    /// The next request, a WRITE without permission. Ends the connection.
    BadKey,
    /// The next request, of an opcode beyond the engine's features. Ends the connection.
    Unsupported(Opcode),
}

impl Forgery {
    /// The receiver's queue pair goes into error.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        !matches!(
            self,
            Self::Ahead(_) | Self::Behind(_) | Self::GhostAck(_) | Self::OldAck(..)
        )
    }
}

/// A command to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No such operation.
    Opcode(u8),
    /// No such queue pair, to be modified.
    ModifyIndex,
    /// No such queue pair, to be asked.
    QueryIndex,
    /// No such completion queue.
    CqIndex,
    /// No such memory region.
    MrIndex,
    /// No such GID.
    GidIndex,
    /// Completion queue of this log2 size.
    CqSize(u8),
    /// Completion queue at this byte of a line.
    CqAlignment(u8),
    /// Consumer record at this byte of a word.
    CqRecord(u8),
    /// A key of another place of the table.
    MrKey,
    /// A region that ends before it starts.
    MrBounds,
    /// A state that does not exist.
    State(u8),
    /// A queue pair without context, to be opened.
    NoContext,
    /// A path MTU that does not exist.
    Mtu(u8),
    /// A send queue at this byte of a line.
    SqAlignment(u8),
    /// An outstanding ring that does not fit into the pool.
    Pool,
}

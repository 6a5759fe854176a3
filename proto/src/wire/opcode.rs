//! Opcodes of the BTH: IB1 9.2, table "OpCode field"; CNP from A17, figure 6.
//!
//! Every property is a `const fn` of one table, so that hardware elaboration and software share it.
//! The length of each extension header is that of its own file.

mod table;

pub use table::Opcode;

use super::{aeth, atomic, bth, cnp, deth, imm, reth};

/// Transport of an opcode: its top three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Reliable connection.
    Rc = 0,
    /// Unreliable connection.
    Uc = 1,
    /// Unreliable datagram.
    Ud = 3,
    /// Congestion notification.
    Cnp = 4,
}

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// Acknowledge: ACK, NAK or RNR NAK.
    Ack,
    /// Response to an atomic.
    AtomicAck,
    /// Compare and swap.
    CmpSwap,
    /// Fetch and add.
    FetchAdd,
    /// Congestion notification.
    Cnp,
}

/// Place of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Position {
    /// First of several.
    First,
    /// Between first and last.
    Middle,
    /// Last of several.
    Last,
    /// The whole message.
    Only,
}

/// What the last packet of a message adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Suffix {
    /// Nothing.
    None,
    /// Immediate data.
    Imm,
    /// An rkey to invalidate.
    Inv,
}

/// Extension headers, in the order in which they follow the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ext {
    /// Datagram extended transport header.
    Deth,
    /// RDMA extended transport header.
    Reth,
    /// Atomic extended transport header.
    AtomicEth,
    /// ACK extended transport header.
    Aeth,
    /// Atomic ACK extended transport header.
    AtomicAckEth,
    /// Immediate data.
    ImmDt,
    /// Invalidate extended transport header.
    Ieth,
    /// The reserved bytes of a CNP.
    CnpReserved,
}

impl Ext {
    /// All of them, in wire order.
    pub const ALL: [Self; 8] = [
        Self::Deth,
        Self::Reth,
        Self::AtomicEth,
        Self::Aeth,
        Self::AtomicAckEth,
        Self::ImmDt,
        Self::Ieth,
        Self::CnpReserved,
    ];

    /// Length in bytes.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Self::Deth => deth::LEN,
            Self::Reth => reth::LEN,
            Self::AtomicEth => atomic::LEN,
            Self::Aeth => aeth::LEN,
            Self::AtomicAckEth => atomic::ack::LEN,
            Self::ImmDt => imm::LEN,
            Self::Ieth => imm::ieth::LEN,
            Self::CnpReserved => cnp::RESERVED_LEN,
        }
    }
}

impl Opcode {
    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The opcode of a packet; `None` when the transport has no such packet.
    ///
    /// `suffix` is that of the packet, not of its message: a First or Middle has none.
    #[must_use]
    pub const fn compose(
        class: Class,
        operation: Operation,
        position: Position,
        suffix: Suffix,
    ) -> Option<Self> {
        let mut i = 0;
        while i < Self::ALL.len() {
            let o = Self::ALL[i];
            if o.class() as u8 == class as u8
                && o.operation() as u8 == operation as u8
                && o.position() as u8 == position as u8
                && o.suffix() as u8 == suffix as u8
            {
                return Some(o);
            }
            i += 1;
        }
        None
    }

    /// What the packet adds to its message: immediate data or an rkey to invalidate.
    #[must_use]
    pub const fn suffix(self) -> Suffix {
        if self.has_imm() {
            Suffix::Imm
        } else if self.has_ieth() {
            Suffix::Inv
        } else {
            Suffix::None
        }
    }

    /// Travels from requester to responder.
    #[must_use]
    pub const fn is_request(self) -> bool {
        !self.is_response() && !matches!(self.operation(), Operation::Cnp)
    }

    /// Travels from responder to requester.
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(
            self.operation(),
            Operation::ReadResponse | Operation::Ack | Operation::AtomicAck
        )
    }

    /// Starts a message: First or Only.
    #[must_use]
    pub const fn is_start(self) -> bool {
        matches!(self.position(), Position::First | Position::Only)
    }

    /// Ends a message: Last or Only.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self.position(), Position::Last | Position::Only)
    }

    /// May carry payload.
    #[must_use]
    pub const fn has_payload(self) -> bool {
        matches!(
            self.operation(),
            Operation::Send | Operation::Write | Operation::ReadResponse
        )
    }

    /// Has a RETH.
    #[must_use]
    pub const fn has_reth(self) -> bool {
        self.has(Ext::Reth)
    }

    /// Has an AETH.
    #[must_use]
    pub const fn has_aeth(self) -> bool {
        self.has(Ext::Aeth)
    }

    /// Has immediate data.
    #[must_use]
    pub const fn has_imm(self) -> bool {
        self.has(Ext::ImmDt)
    }

    /// Has an IETH.
    #[must_use]
    pub const fn has_ieth(self) -> bool {
        self.has(Ext::Ieth)
    }

    /// Has a DETH.
    #[must_use]
    pub const fn has_deth(self) -> bool {
        self.has(Ext::Deth)
    }

    /// Has an AtomicETH.
    #[must_use]
    pub const fn has_atomic_eth(self) -> bool {
        self.has(Ext::AtomicEth)
    }

    /// Has an AtomicAckETH.
    #[must_use]
    pub const fn has_atomic_ack(self) -> bool {
        self.has(Ext::AtomicAckEth)
    }

    /// Offset in bytes of an extension header from the start of the BTH; `None` when absent.
    #[must_use]
    pub const fn ext_offset(self, ext: Ext) -> Option<usize> {
        if self.has(ext) {
            Some(self.offset_before(ext as usize))
        } else {
            None
        }
    }

    /// Length of the extension headers in bytes.
    #[must_use]
    pub const fn ext_len(self) -> usize {
        self.header_len() - bth::LEN
    }

    /// Length of BTH and extension headers in bytes: the payload starts here.
    #[must_use]
    pub const fn header_len(self) -> usize {
        self.offset_before(Ext::ALL.len())
    }

    const fn offset_before(self, index: usize) -> usize {
        let mut offset = bth::LEN;
        let mut i = 0;
        while i < index {
            if self.has(Ext::ALL[i]) {
                offset += Ext::ALL[i].header_len();
            }
            i += 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_classes() {
        assert_eq!(Opcode::ALL.len(), 38);
        let mut known = 0;
        for code in 0..=255 {
            let Some(opcode) = Opcode::from_code(code) else {
                continue;
            };
            known += 1;
            assert_eq!(opcode.code(), code);
            assert_eq!(opcode.class() as u8, code >> 5);
        }
        assert_eq!(known, 38);
        for reserved in [
            0x15, 0x18, 0x2c, 0x30, 0x40, 0x60, 0x63, 0x66, 0x80, 0x82, 0xa0,
        ] {
            assert_eq!(Opcode::from_code(reserved), None, "{reserved:#x}");
        }
    }

    #[test]
    fn header_lengths_of_the_specification() {
        for (opcode, len) in [
            (Opcode::RcSendMiddle, 12),
            (Opcode::RcSendOnlyImm, 16),
            (Opcode::RcSendOnlyInv, 16),
            (Opcode::RcWriteOnlyImm, 32),
            (Opcode::RcReadRequest, 28),
            (Opcode::RcReadResponseFirst, 16),
            (Opcode::RcReadResponseMiddle, 12),
            (Opcode::RcAck, 16),
            (Opcode::RcAtomicAck, 24),
            (Opcode::RcCmpSwap, 40),
            (Opcode::UdSendOnlyImm, 24),
            (Opcode::Cnp, 28),
        ] {
            assert_eq!(opcode.header_len(), len, "{opcode:?}");
        }
    }

    #[test]
    fn extension_offsets() {
        assert_eq!(Opcode::RcWriteOnlyImm.ext_offset(Ext::Reth), Some(12));
        assert_eq!(Opcode::RcWriteOnlyImm.ext_offset(Ext::ImmDt), Some(28));
        assert_eq!(Opcode::UdSendOnlyImm.ext_offset(Ext::ImmDt), Some(20));
        assert_eq!(Opcode::RcAtomicAck.ext_offset(Ext::AtomicAckEth), Some(16));
        assert_eq!(Opcode::RcWriteLast.ext_offset(Ext::Reth), None);
    }

    #[test]
    fn compose_finds_every_opcode() {
        for &o in Opcode::ALL {
            assert_eq!(
                Opcode::compose(o.class(), o.operation(), o.position(), o.suffix()),
                Some(o)
            );
        }
        assert_eq!(
            Opcode::compose(Class::Uc, Operation::Send, Position::Only, Suffix::Inv),
            None
        );
    }

    #[test]
    fn direction() {
        let responses = [0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12];
        for &o in Opcode::ALL {
            assert_eq!(o.is_response(), responses.contains(&o.code()), "{o:?}");
            assert_eq!(
                o.is_request(),
                !o.is_response() && o != Opcode::Cnp,
                "{o:?}"
            );
        }
    }
}

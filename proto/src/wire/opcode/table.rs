//! The table of all opcodes: code, transport, operation, position and extension headers.

use super::{Class, Ext, Operation, Position};

macro_rules! opcodes {
    ($( $(#[$meta:meta])* $name:ident = $code:literal: $class:ident $operation:ident $position:ident [$($ext:ident)*], )*) => {
        /// Opcode of a packet (BTH bits 0 to 7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode {
            $( $(#[$meta])* $name = $code, )*
        }

        impl Opcode {
            /// All opcodes, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Opcode of a code; `None` when it is reserved or of another transport (RD, XRC).
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// What a packet of this opcode does.
            #[must_use]
            pub const fn operation(self) -> Operation {
                match self {
                    $( Self::$name => Operation::$operation, )*
                }
            }

            /// Place of a packet of this opcode in its message.
            #[must_use]
            pub const fn position(self) -> Position {
                match self {
                    $( Self::$name => Position::$position, )*
                }
            }

            /// Transport of this opcode.
            #[must_use]
            pub const fn class(self) -> Class {
                match self {
                    $( Self::$name => Class::$class, )*
                }
            }

            /// The extension header follows the BTH.
            #[must_use]
            pub const fn has(self, ext: Ext) -> bool {
                let set: u8 = match self {
                    $( Self::$name => 0 $(| 1 << Ext::$ext as u8)*, )*
                };
                set >> ext as u8 & 1 == 1
            }
        }
    };
}

opcodes! {
    /// RC SEND First.
    RcSendFirst = 0x00: Rc Send First [],
    /// RC SEND Middle.
    RcSendMiddle = 0x01: Rc Send Middle [],
    /// RC SEND Last.
    RcSendLast = 0x02: Rc Send Last [],
    /// RC SEND Last with Immediate.
    RcSendLastImm = 0x03: Rc Send Last [ImmDt],
    /// RC SEND Only.
    RcSendOnly = 0x04: Rc Send Only [],
    /// RC SEND Only with Immediate.
    RcSendOnlyImm = 0x05: Rc Send Only [ImmDt],
    /// RC RDMA WRITE First.
    RcWriteFirst = 0x06: Rc Write First [Reth],
    /// RC RDMA WRITE Middle.
    RcWriteMiddle = 0x07: Rc Write Middle [],
    /// RC RDMA WRITE Last.
    RcWriteLast = 0x08: Rc Write Last [],
    /// RC RDMA WRITE Last with Immediate.
    RcWriteLastImm = 0x09: Rc Write Last [ImmDt],
    /// RC RDMA WRITE Only.
    RcWriteOnly = 0x0a: Rc Write Only [Reth],
    /// RC RDMA WRITE Only with Immediate.
    RcWriteOnlyImm = 0x0b: Rc Write Only [Reth ImmDt],
    /// RC RDMA READ Request.
    RcReadRequest = 0x0c: Rc ReadRequest Only [Reth],
    /// RC RDMA READ Response First.
    RcReadResponseFirst = 0x0d: Rc ReadResponse First [Aeth],
    /// RC RDMA READ Response Middle.
    RcReadResponseMiddle = 0x0e: Rc ReadResponse Middle [],
    /// RC RDMA READ Response Last.
    RcReadResponseLast = 0x0f: Rc ReadResponse Last [Aeth],
    /// RC RDMA READ Response Only.
    RcReadResponseOnly = 0x10: Rc ReadResponse Only [Aeth],
    /// RC Acknowledge.
    RcAck = 0x11: Rc Ack Only [Aeth],
    /// RC ATOMIC Acknowledge.
    RcAtomicAck = 0x12: Rc AtomicAck Only [Aeth AtomicAckEth],
    /// RC CmpSwap.
    RcCmpSwap = 0x13: Rc CmpSwap Only [AtomicEth],
    /// RC FetchAdd.
    RcFetchAdd = 0x14: Rc FetchAdd Only [AtomicEth],
    /// RC SEND Last with Invalidate.
    RcSendLastInv = 0x16: Rc Send Last [Ieth],
    /// RC SEND Only with Invalidate.
    RcSendOnlyInv = 0x17: Rc Send Only [Ieth],
    /// UC SEND First.
    UcSendFirst = 0x20: Uc Send First [],
    /// UC SEND Middle.
    UcSendMiddle = 0x21: Uc Send Middle [],
    /// UC SEND Last.
    UcSendLast = 0x22: Uc Send Last [],
    /// UC SEND Last with Immediate.
    UcSendLastImm = 0x23: Uc Send Last [ImmDt],
    /// UC SEND Only.
    UcSendOnly = 0x24: Uc Send Only [],
    /// UC SEND Only with Immediate.
    UcSendOnlyImm = 0x25: Uc Send Only [ImmDt],
    /// UC RDMA WRITE First.
    UcWriteFirst = 0x26: Uc Write First [Reth],
    /// UC RDMA WRITE Middle.
    UcWriteMiddle = 0x27: Uc Write Middle [],
    /// UC RDMA WRITE Last.
    UcWriteLast = 0x28: Uc Write Last [],
    /// UC RDMA WRITE Last with Immediate.
    UcWriteLastImm = 0x29: Uc Write Last [ImmDt],
    /// UC RDMA WRITE Only.
    UcWriteOnly = 0x2a: Uc Write Only [Reth],
    /// UC RDMA WRITE Only with Immediate.
    UcWriteOnlyImm = 0x2b: Uc Write Only [Reth ImmDt],
    /// UD SEND Only.
    UdSendOnly = 0x64: Ud Send Only [Deth],
    /// UD SEND Only with Immediate.
    UdSendOnlyImm = 0x65: Ud Send Only [Deth ImmDt],
    /// Congestion notification packet of RoCEv2 (InfiniBand's own is 0x80).
    Cnp = 0x81: Cnp Cnp Only [CnpReserved],
}

//! The header of every message.

use crate::{MAX_MESSAGE, MIN_MESSAGE, ProtocolError};

macro_rules! commands {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal;)*) => {
        /// Commands known here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Command {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Command {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The command of a number.
            ///
            /// # Errors
            /// [`ProtocolError::Command`] if it is not known here.
            pub fn parse(number: u16) -> Result<Self, ProtocolError> {
                match number {
                    $($number => Ok(Self::$name),)*
                    _ => Err(ProtocolError::Command(number)),
                }
            }
        }
    };
}

commands! {
    /// Client: proposes a version and capabilities; the first message.
    Version = 1;
    /// Client: memory that the device may reach.
    DmaMap = 2;
    /// Client: memory that it no longer may.
    DmaUnmap = 3;
    /// Client: what the device is.
    DeviceInfo = 4;
    /// Client: size and rights of a region.
    RegionInfo = 5;
    /// Client: number and abilities of an interrupt type.
    IrqInfo = 7;
    /// Client: attaches eventfds to interrupts, and more.
    SetIrqs = 8;
    /// Client: reads a region.
    RegionRead = 9;
    /// Client: writes a region.
    RegionWrite = 10;
    /// Server: reads memory of the client.
    DmaRead = 11;
    /// Server: writes memory of the client.
    DmaWrite = 12;
    /// Client: resets the device.
    DeviceReset = 13;
}

/// Type bits of the flags: a reply.
const REPLY: u32 = 1;
/// Type bits of the flags.
const TYPE: u32 = 0xf;
/// No reply is wanted.
const NO_REPLY: u32 = 1 << 4;
/// The command failed.
const ERROR: u32 = 1 << 5;

/// Whether a message asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A command.
    Command {
        /// The other side shall not answer.
        no_reply: bool,
    },
    /// The reply to the command of the same message ID.
    Reply {
        /// errno if the command failed, 0 if the other side did not say which.
        error: Option<u32>,
    },
}

/// The first 16 bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message ID, the sender's own; a reply has that of its command.
    pub id: u16,
    /// Number of the command; see [`Command::parse`].
    pub command: u16,
    /// Bytes of the whole message.
    pub size: u32,
    /// Command or reply.
    pub kind: Kind,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = MIN_MESSAGE;

    /// The header as it is sent.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let (flags, error) = match self.kind {
            Kind::Command { no_reply: false } => (0, 0),
            Kind::Command { no_reply: true } => (NO_REPLY, 0),
            Kind::Reply { error: None } => (REPLY, 0),
            Kind::Reply { error: Some(error) } => (REPLY | ERROR, error),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..2].copy_from_slice(&self.id.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.command.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_ne_bytes());
        bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
        bytes[12..].copy_from_slice(&error.to_ne_bytes());
        bytes
    }

    /// Reads a header. The command may be unknown: it has an answer nevertheless.
    ///
    /// # Errors
    /// [`ProtocolError`]: a size that cannot be, or neither command nor reply. Nothing behind it can be read then.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Result<Self, ProtocolError> {
        let u16_at = |at| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let u32_at =
            |at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (size, flags) = (u32_at(4), u32_at(8));
        if !(Self::BYTES..=MAX_MESSAGE).contains(&(size as usize)) {
            return Err(ProtocolError::Size { size });
        }
        let kind = match flags & TYPE {
            0 => Kind::Command {
                no_reply: flags & NO_REPLY != 0,
            },
            REPLY => Kind::Reply {
                error: (flags & ERROR != 0).then(|| u32_at(12)),
            },
            _ => return Err(ProtocolError::Type { flags }),
        };
        Ok(Self {
            id: u16_at(0),
            command: u16_at(2),
            size,
            kind,
        })
    }
}

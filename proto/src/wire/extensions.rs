//! The extension headers of a packet, by opcode.

use super::{BuildError, Error, Ext, Opcode, aeth, atomic, bth, deth, imm, reth};

/// Extension headers of a packet: those of its opcode, no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// DETH.
    pub deth: Option<deth::Repr>,
    /// RETH.
    pub reth: Option<reth::Repr>,
    /// AtomicETH.
    pub atomic: Option<atomic::Repr>,
    /// AETH.
    pub aeth: Option<aeth::Repr>,
    /// AtomicAckETH.
    pub atomic_ack: Option<atomic::ack::Repr>,
    /// Immediate data.
    pub imm: Option<u32>,
    /// The rkey of an IETH.
    pub ieth: Option<u32>,
}

impl Extensions {
    /// Reads the extension headers of an opcode; `transport` starts with the BTH.
    ///
    /// Fails with [`Error::Truncated`].
    pub fn parse(opcode: Opcode, transport: &[u8]) -> Result<Self, Error> {
        let at = |ext| {
            opcode
                .ext_offset(ext)
                .map(|offset| transport.get(offset..).unwrap_or_default())
        };
        let mut ext = Self::default();
        if let Some(bytes) = at(Ext::Deth) {
            ext.deth = Some(deth::Repr::parse(&deth::Header::new_checked(bytes)?));
        }
        if let Some(bytes) = at(Ext::Reth) {
            ext.reth = Some(reth::Repr::parse(&reth::Header::new_checked(bytes)?));
        }
        if let Some(bytes) = at(Ext::AtomicEth) {
            ext.atomic = Some(atomic::Repr::parse(&atomic::Header::new_checked(bytes)?));
        }
        if let Some(bytes) = at(Ext::Aeth) {
            ext.aeth = Some(aeth::Repr::parse(&aeth::Header::new_checked(bytes)?));
        }
        if let Some(bytes) = at(Ext::AtomicAckEth) {
            let header = atomic::ack::Header::new_checked(bytes)?;
            ext.atomic_ack = Some(atomic::ack::Repr::parse(&header));
        }
        if let Some(bytes) = at(Ext::ImmDt) {
            ext.imm = Some(imm::Header::new_checked(bytes)?.imm());
        }
        if let Some(bytes) = at(Ext::Ieth) {
            ext.ieth = Some(imm::ieth::Header::new_checked(bytes)?.rkey());
        }
        Ok(ext)
    }

    /// Writes the extension headers of an opcode behind the BTH; `transport` starts with the BTH and
    /// holds them.
    ///
    /// Fails with [`BuildError::MissingExtension`] or [`BuildError::UnexpectedExtension`].
    pub(super) fn emit(&self, opcode: Opcode, transport: &mut [u8]) -> Result<(), BuildError> {
        let mut offset = bth::LEN;
        for ext in Ext::ALL {
            let bytes = match (opcode.has(ext), self.bytes(ext)) {
                (false, None) => continue,
                (true, Some(bytes)) => bytes,
                (true, None) if ext == Ext::CnpReserved => [0; MAX_LEN],
                (true, None) => return Err(BuildError::MissingExtension { opcode, ext }),
                (false, Some(_)) => return Err(BuildError::UnexpectedExtension { opcode, ext }),
            };
            transport[offset..offset + ext.header_len()]
                .copy_from_slice(&bytes[..ext.header_len()]);
            offset += ext.header_len();
        }
        Ok(())
    }

    /// The bytes of an extension header, at the start of an array that holds the longest.
    fn bytes(&self, ext: Ext) -> Option<[u8; MAX_LEN]> {
        match ext {
            Ext::Deth => self.deth.map(|h| widen(h.emit())),
            Ext::Reth => self.reth.map(|h| widen(h.emit())),
            Ext::AtomicEth => self.atomic.map(|h| widen(h.emit())),
            Ext::Aeth => self.aeth.map(|h| widen(h.emit())),
            Ext::AtomicAckEth => self.atomic_ack.map(|h| widen(h.emit())),
            Ext::ImmDt => self.imm.map(|imm| widen(imm.to_be_bytes())),
            Ext::Ieth => self.ieth.map(|rkey| widen(rkey.to_be_bytes())),
            Ext::CnpReserved => None,
        }
    }
}

/// The longest extension header in bytes.
const MAX_LEN: usize = atomic::LEN;

fn widen<const N: usize>(bytes: [u8; N]) -> [u8; MAX_LEN] {
    let mut wide = [0; MAX_LEN];
    wide[..N].copy_from_slice(&bytes);
    wide
}

//! What the two sides say of themselves over the socket, all of it little-endian.

use std::path::Path;

use ferroce_proto::abi::{pci, regs};

use super::slots::{Queue, SLOT, SLOTS};
use super::{SimbricksError, Sync};

/// Version of the protocol.
pub const VERSION: u64 = 1;

/// Flag: the side can synchronise.
const CAN_SYNC: u64 = 1 << 0;
/// Flag: the side has to.
const MUST_SYNC: u64 = 1 << 1;

/// Bytes of a connecter's introduction, without that of its upper protocol, which says nothing.
pub(super) const CONNECTER: usize = 32;
/// Bytes of the listener's, without that of its upper protocol.
const LISTENER: u64 = 80;

/// BAR flag: 64 bits.
const BAR_64: u64 = 1 << 1;
/// BAR flag: the host serves it, as it does the MSI-X table.
const BAR_OF_HOST: u64 = 1 << 3;
/// BARs of a device.
const BARS: usize = 6;

/// What is spoken over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Ethernet,
    Pcie,
}

impl Protocol {
    fn id(self) -> u64 {
        match self {
            Self::Ethernet => 1,
            Self::Pcie => 2,
        }
    }

    /// Its name, or that of another one.
    fn name(id: u64) -> String {
        match id {
            0 => "no upper protocol".to_owned(),
            1 => "Ethernet".to_owned(),
            2 => "PCIe".to_owned(),
            3 => "memory".to_owned(),
            _ => format!("protocol {id}"),
        }
    }
}

/// The card's introduction.
pub(super) fn ours(protocol: Protocol, sync: Sync) -> Vec<u8> {
    let flags = match sync {
        Sync::Off => 0,
        Sync::Offered => CAN_SYNC,
        Sync::Required => CAN_SYNC | MUST_SYNC,
    };
    let queue = |queue: Queue| [queue.offset() as u64, SLOT as u64, SLOTS as u64];
    let [out, into] = [queue(Queue::Out), queue(Queue::In)];
    let fields = [VERSION, flags].into_iter().chain(out).chain(into);
    let mut bytes: Vec<u8> = fields
        .chain([protocol.id(), LISTENER])
        .flat_map(u64::to_le_bytes)
        .collect();
    match protocol {
        // Nothing is to be said, in four bytes.
        Protocol::Ethernet => bytes.extend([0; 4]),
        Protocol::Pcie => device(&mut bytes),
    }
    bytes
}

/// The card as a PCIe device.
fn device(to: &mut Vec<u8>) {
    for bar in 0..BARS {
        let (len, flags) = match bar as u8 {
            pci::REGISTER_BAR => (regs::BAR0_BYTES, BAR_64),
            pci::MSIX_BAR => (pci::MSIX_BAR_BYTES, BAR_64 | BAR_OF_HOST),
            _ => (0, 0),
        };
        to.extend(len.to_le_bytes());
        to.extend(flags.to_le_bytes());
    }
    to.extend(pci::VENDOR.to_le_bytes());
    to.extend(pci::DEVICE.to_le_bytes());
    let [_, class, subclass, interface] = pci::CLASS.to_be_bytes();
    to.extend([class, subclass, pci::REVISION, interface]);
    // No vectors of MSI.
    to.push(0);
    to.extend(pci::MSIX_VECTORS.to_le_bytes());
    to.extend([pci::MSIX_BAR; 2]);
    to.extend(pci::MSIX_TABLE.to_le_bytes());
    to.extend(pci::MSIX_PBA.to_le_bytes());
    // The host chooses where the capability is.
    to.extend([0; 2]);
}

/// Whether time is synchronised with a peer that says `bytes`.
pub(super) fn agree(
    bytes: &[u8; CONNECTER],
    protocol: Protocol,
    sync: Sync,
    path: &Path,
) -> Result<bool, SimbricksError> {
    let path = || path.to_owned();
    let mut fields = bytes.chunks_exact(8).map(|field| {
        let field = field.first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(field)
    });
    let mut field = || fields.next().unwrap_or_default();
    let (version, flags, id) = (field(), field(), field());
    if version != VERSION {
        let path = path();
        return Err(SimbricksError::Version { path, version });
    }
    if id != protocol.id() {
        return Err(SimbricksError::Protocol {
            path: path(),
            theirs: Protocol::name(id),
            ours: Protocol::name(protocol.id()),
        });
    }
    let (can, must) = (flags & (CAN_SYNC | MUST_SYNC) != 0, flags & MUST_SYNC != 0);
    let required = sync == Sync::Required;
    if required && !can || sync == Sync::Off && must {
        let path = path();
        return Err(SimbricksError::Sync { path, required });
    }
    Ok(sync != Sync::Off && can)
}

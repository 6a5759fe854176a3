//! Fixed parts of the payloads, in the order of their bytes.
//!
//! `argsz` is the size that the sender has room for; see "Message sizes" of the protocol.

use crate::ProtocolError;

macro_rules! payloads {
    ($($(#[doc = $doc:literal])* pub struct $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Bytes of it.
            pub const BYTES: usize = 0 $(+ size_of::<$type>())*;

            /// Appends it to a message.
            pub fn emit(&self, to: &mut Vec<u8>) {
                $(to.extend_from_slice(&self.$field.to_ne_bytes());)*
            }

            /// Reads it, and gives what is behind it.
            ///
            /// # Errors
            /// [`ProtocolError::Short`].
            pub fn parse(from: &[u8]) -> Result<(Self, &[u8]), ProtocolError> {
                let short = ProtocolError::Short {
                    what: stringify!($name),
                    found: from.len(),
                    expected: Self::BYTES,
                };
                let mut rest = from;
                $(
                    let (bytes, tail) = rest.split_first_chunk().ok_or_else(|| short.clone())?;
                    let $field = <$type>::from_ne_bytes(*bytes);
                    rest = tail;
                )*
                Ok((Self { $($field,)* }, rest))
            }
        }
    )*};
}

payloads! {
    /// DMA_MAP.
    pub struct DmaMap {
        /// Bytes of this.
        argsz: u32,
        /// See [`dma`].
        flags: u32,
        /// Offset in the file that comes with the message, if one does.
        offset: u64,
        /// First IOVA.
        address: u64,
        /// Bytes.
        size: u64,
    }
    /// DMA_UNMAP, and its reply.
    pub struct DmaUnmap {
        /// Bytes of this.
        argsz: u32,
        /// See [`dma`].
        flags: u32,
        /// First IOVA.
        address: u64,
        /// Bytes.
        size: u64,
    }
    /// DEVICE_GET_INFO, and its reply.
    pub struct DeviceInfo {
        /// Bytes of this.
        argsz: u32,
        /// See [`device`].
        flags: u32,
        /// Regions.
        num_regions: u32,
        /// Interrupt types.
        num_irqs: u32,
    }
    /// DEVICE_GET_REGION_INFO, and its reply.
    pub struct RegionInfo {
        /// Bytes of this.
        argsz: u32,
        /// See [`region`].
        flags: u32,
        /// Region.
        index: u32,
        /// Offset of the first capability behind this; 0: none.
        cap_offset: u32,
        /// Bytes of the region; 0: there is none.
        size: u64,
        /// Offset in the file that comes with the reply, if one does.
        offset: u64,
    }
    /// DEVICE_GET_IRQ_INFO, and its reply.
    pub struct IrqInfo {
        /// Bytes of this.
        argsz: u32,
        /// See [`irq`].
        flags: u32,
        /// Interrupt type.
        index: u32,
        /// Interrupts of the type.
        count: u32,
    }
    /// DEVICE_SET_IRQS; data, if any, behind it.
    pub struct SetIrqs {
        /// Bytes of this and the data.
        argsz: u32,
        /// See [`irq`].
        flags: u32,
        /// Interrupt type.
        index: u32,
        /// First interrupt.
        start: u32,
        /// Interrupts.
        count: u32,
    }
    /// REGION_READ and REGION_WRITE, and their replies; data behind it where there is some.
    pub struct Region {
        /// First byte of the region.
        offset: u64,
        /// Region.
        region: u32,
        /// Bytes.
        count: u32,
    }
    /// DMA_READ and DMA_WRITE, and their replies; data behind it where there is some.
    pub struct Dma {
        /// First IOVA.
        address: u64,
        /// Bytes.
        count: u64,
    }
}

/// Flags of [`DmaMap`] and [`DmaUnmap`].
pub mod dma {
    /// The device may read.
    pub const READ: u32 = 1 << 0;
    /// The device may write.
    pub const WRITE: u32 = 1 << 1;
    /// Unmap everything; address and size are 0.
    pub const UNMAP_ALL: u32 = 1 << 1;
}

/// Flags of [`DeviceInfo`].
pub mod device {
    /// DEVICE_RESET works.
    pub const RESET: u32 = 1 << 0;
    /// A PCI device.
    pub const PCI: u32 = 1 << 1;
}

/// Flags of [`RegionInfo`], and the regions of a PCI device.
pub mod region {
    /// It may be read.
    pub const READ: u32 = 1 << 0;
    /// It may be written.
    pub const WRITE: u32 = 1 << 1;
    /// Regions 0 to 5 are the BARs.
    pub const BARS: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// Regions that the protocol knows: BARs, expansion ROM, configuration space, VGA.
    pub const COUNT: u32 = 9;
}

/// Flags of [`IrqInfo`] and [`SetIrqs`], and the interrupt types of a PCI device.
pub mod irq {
    /// IrqInfo: eventfds can be attached.
    pub const EVENTFD: u32 = 1 << 0;
    /// IrqInfo: the set of attached vectors is not extended while some are attached.
    pub const NORESIZE: u32 = 1 << 3;
    /// SetIrqs: no data.
    pub const DATA_NONE: u32 = 1 << 0;
    /// SetIrqs: a byte an interrupt, 0 or not.
    pub const DATA_BOOL: u32 = 1 << 1;
    /// SetIrqs: file descriptors come with the message.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// SetIrqs: mask.
    pub const ACTION_MASK: u32 = 1 << 3;
    /// SetIrqs: unmask.
    pub const ACTION_UNMASK: u32 = 1 << 4;
    /// SetIrqs: attach an eventfd, or raise the interrupt.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
    /// Type of MSI-X.
    pub const MSIX: u32 = 2;
    /// Types that the protocol knows: INTx, MSI, MSI-X, error, request.
    pub const COUNT: u32 = 5;
}

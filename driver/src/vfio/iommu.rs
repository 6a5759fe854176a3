//! What the IOMMU translates: ranges of addresses, pages, how many mappings (`VFIO_IOMMU_GET_INFO`).

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;

use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_IOMMU_INFO_CAPS,
    VFIO_IOMMU_INFO_PGSIZES, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL,
    VFIO_TYPE, vfio_iommu_type1_dma_map, vfio_iommu_type1_info,
};
use vmm_sys_util::ioctl::{ioctl_with_mut_ptr, ioctl_with_ref};
use vmm_sys_util::ioctl_io_nr;

use crate::DmaAccess;

ioctl_io_nr!(VFIO_IOMMU_GET_INFO, VFIO_TYPE.into(), VFIO_BASE + 12);
ioctl_io_nr!(VFIO_IOMMU_MAP_DMA, VFIO_TYPE.into(), VFIO_BASE + 13);

/// Bytes of the answer without capabilities.
const HEADER: usize = size_of::<vfio_iommu_type1_info>();

/// Maps `len` bytes at `addr` at the same IOVA.
///
/// # Safety
/// Until they are unmapped the bytes stay allocated and the card accesses them at any time.
pub(super) unsafe fn map(
    container: &impl AsRawFd,
    addr: *mut u8,
    len: usize,
    access: DmaAccess,
) -> io::Result<()> {
    let map = vfio_iommu_type1_dma_map {
        argsz: size_of::<vfio_iommu_type1_dma_map>() as u32,
        flags: match access {
            DmaAccess::Read => VFIO_DMA_MAP_FLAG_READ,
            DmaAccess::ReadWrite => VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
        },
        vaddr: addr.expose_provenance() as u64,
        iova: addr.addr() as u64,
        size: len as u64,
    };
    // SAFETY: the kernel reads as many bytes as `argsz` says; what becomes of the memory is the caller's word.
    match unsafe { ioctl_with_ref(container, VFIO_IOMMU_MAP_DMA(), &map) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// IOVA that an IOMMU translates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<RangeInclusive<u64>>);

impl Ranges {
    /// Whether one range holds all of `[start, start + len)`, `len` not 0.
    pub(super) fn contain(&self, start: u64, len: u64) -> bool {
        let last = start.checked_add(len - 1);
        last.is_some_and(|last| {
            self.0
                .iter()
                .any(|r| r.contains(&start) && r.contains(&last))
        })
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{:#x}-{:#x}", range.start(), range.end())?;
        }
        Ok(())
    }
}

/// Capabilities of an IOMMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IommuInfo {
    /// IOVA that it translates.
    pub(super) ranges: Ranges,
    /// Bytes of its smallest page.
    pub(super) page: usize,
    /// Mappings that a process may have, if the kernel says so.
    pub(super) mappings: Option<u32>,
}

impl IommuInfo {
    /// Asks the kernel.
    pub(super) fn read(container: &impl AsRawFd) -> io::Result<Self> {
        // The kernel writes the size it needs into the first word.
        let size = |words: &[u64]| words[0] as u32 as usize;
        let mut words = vec![0u64; HEADER.div_ceil(8)];
        loop {
            let bytes = words.len() * 8;
            words.fill(0);
            words[0] = bytes as u64;
            // SAFETY: the pointer is to as many bytes as the first word says; the kernel writes no more.
            let answer =
                unsafe { ioctl_with_mut_ptr(container, VFIO_IOMMU_GET_INFO(), words.as_mut_ptr()) };
            if answer != 0 {
                return Err(io::Error::last_os_error());
            }
            if size(&words) <= bytes {
                break;
            }
            words = vec![0; size(&words).div_ceil(8)];
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        Self::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses `struct vfio_iommu_type1_info` with its chain of capabilities.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let flags = u32_at(4)?;
        let sizes = if flags & VFIO_IOMMU_INFO_PGSIZES != 0 {
            u64_at(8)?
        } else {
            0
        };
        let mut info = Self {
            ranges: Ranges::default(),
            // Without a word about it a page of the system serves: the kernel maps nothing smaller.
            page: if sizes == 0 {
                rustix::param::page_size()
            } else {
                1 << sizes.trailing_zeros()
            },
            mappings: None,
        };
        let mut at = if flags & VFIO_IOMMU_INFO_CAPS != 0 {
            u32_at(16)? as usize
        } else {
            0
        };
        while at != 0 {
            let (id, next) = (u32_at(at)? & 0xffff, u32_at(at + 4)? as usize);
            match id {
                VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE => {
                    for i in 0..u32_at(at + 8)? as usize {
                        let range = at + 16 + 16 * i;
                        info.ranges.0.push(u64_at(range)?..=u64_at(range + 8)?);
                    }
                }
                VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL => info.mappings = Some(u32_at(at + 8)?),
                _ => {}
            }
            // A chain goes forward.
            if next != 0 && next <= at {
                return None;
            }
            at = next;
        }
        if info.ranges.0.is_empty() {
            info.ranges.0.push(0..=u64::MAX);
        }
        Some(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// Header, range capability at 24 with two ranges, number of mappings at 72.
    const CHAIN: &[u32] = &[
        84,
        3,
        0x4020_1000,
        0,
        24,
        0, // argsz, flags, page sizes, first capability
        1 | 1 << 16,
        72,
        2,
        0, // header, two ranges
        0,
        0,
        0xfedf_ffff,
        0, // first
        0xfef0_0000,
        0,
        0xffff_ffff,
        0x7fff, // second
        3 | 1 << 16,
        0,
        65535, // header, mappings
    ];

    #[test]
    fn chain_of_capabilities() {
        let info = IommuInfo::parse(&bytes(CHAIN)).unwrap();
        assert_eq!(
            info,
            IommuInfo {
                ranges: Ranges(vec![0..=0xfedf_ffff, 0xfef0_0000..=0x7fff_ffff_ffff]),
                page: 4096,
                mappings: Some(65535),
            }
        );
        assert!(info.ranges.contain(0x1000, 0x1000));
        assert!(!info.ranges.contain(0xfedf_f000, 0x2000));
        assert!(!info.ranges.contain(0x7fff_ffff_f000, 0x2000));
        assert!(!info.ranges.contain(u64::MAX - 0xfff, 0x2000));
    }

    #[test]
    fn kernel_without_capabilities() {
        let info = IommuInfo::parse(&bytes(&[24, 1, 0x20_0000, 0, 0, 0])).unwrap();
        assert_eq!(info.page, 1 << 21);
        assert_eq!(info.mappings, None);
        assert!(info.ranges.contain(0, u64::MAX));
    }

    #[test]
    fn cut_and_circular_answers_are_refused() {
        let whole = bytes(CHAIN);
        for end in 0..whole.len() {
            let cut = IommuInfo::parse(&whole[..end]);
            assert_eq!(cut, None, "{end} of {} bytes", whole.len());
        }
        let mut circle = CHAIN.to_vec();
        circle[7] = 24;
        assert_eq!(IommuInfo::parse(&bytes(&circle)), None);
    }
}

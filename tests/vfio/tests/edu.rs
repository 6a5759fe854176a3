//! The VFIO backend in a Debian 12 guest under Debian 12's QEMU: `edu` behind an IOMMU, and whatever keeps a
//! card from being opened, all in one boot.

use std::time::Duration;

use ferroce_guest::{Image, Machine, Qemu};
use ferroce_system::or_skip;

/// Bounds the test against hanging only: it takes half a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// Devices of the guest by their place. `04` is an `edu` alone in its group; `06` is a device whose
/// driver the kernel has; `07` has memory; bus `08` is one group of an `edu` and a device with a driver; bus `81`
/// is not behind the IOMMU.
const DEVICES: &[&str] = &[
    "edu,addr=04,dma_mask=0xffffffff",
    "virtio-rng-pci,addr=06",
    "ivshmem-plain,addr=07,memdev=shared",
    "pcie-pci-bridge,id=shared-group,addr=08",
    "edu,bus=shared-group,addr=01",
    "virtio-rng-pci,bus=shared-group,addr=02",
    "pxb-pcie,id=bypass,bus_nr=0x80,bypass_iommu=on",
    "pcie-root-port,id=no-iommu,bus=bypass,chassis=1",
    "virtio-rng-pci,bus=no-iommu",
];

#[test]
fn edu_in_a_guest() {
    let Some(qemu) = or_skip(Qemu::debian12()) else {
        return;
    };
    let Some(mut image) = or_skip(Image::new()) else {
        return;
    };
    image
        .modules(&["vfio-pci", "vfio_iommu_type1", "virtio_pci"])
        .unwrap()
        .program(env!("CARGO_BIN_EXE_vfio-checks"))
        .unwrap()
        .program("setpriv")
        .unwrap()
        .script(include_str!("edu.sh"));
    let mut machine = Machine::new(&qemu, &image)
        .iommu()
        .args(["-object", "memory-backend-ram,id=shared,size=1M"]);
    for device in DEVICES {
        machine = machine.args(["-device", device]);
    }
    let end = machine.start().unwrap().finish(LIMIT).unwrap();
    assert_eq!(end.status, 0, "{end}");
    // Each part of the script says that it was reached.
    for part in [
        "ok registers",
        "ok DMA both ways",
        "ok interrupt",
        "ok blocked 0x9000000",
        "ok read only",
        "ok refused",
        "ok huge page",
        "ok reset",
        "ok device memory",
        "ok bad input",
        "ok killed",
        "ok gone",
    ] {
        assert!(end.console.lines().any(|l| l == part), "{part}: {end}");
    }
    // The IOMMU reports what it blocked.
    let is_reported = |line: &str| line.contains("DMAR") && line.contains("fault addr 0x9000000");
    assert!(end.kernel.lines().any(is_reported), "{end}");
}

//! Clients that are not as they should be, and one that QEMU may be.

use std::io::Write;
use std::os::unix::net::UnixStream;

use fastrand::Rng;
use ferroce_driver::Context;
use ferroce_driver::vfio_user::VfioUser;
use ferroce_proto::abi::{pci, regs};
use ferroce_sim::bench;
use ferroce_vfio_user::header::{Header, Kind};
use ferroce_vfio_user::message::{self, Message, Request};
use ferroce_vfio_user::payload::{Dma, DmaMap, DmaUnmap, Region, RegionInfo, dma, region};
use ferroce_vfio_user::stream::{Receiver, Wait, send};
use ferroce_vfio_user::version::{Capabilities, Version};

use crate::{Dut, Served};

/// A client that does everything by hand.
struct Raw {
    socket: UnixStream,
    receiver: Receiver,
    /// Requests of the card that were not answered.
    asked: Vec<Message>,
}

impl Raw {
    fn connect(served: &Served) -> Self {
        let mut raw = Self {
            socket: UnixStream::connect(&served.socket).unwrap(),
            receiver: Receiver::new(),
            asked: Vec::new(),
        };
        let version = Version {
            major: 0,
            minor: 1,
            capabilities: Capabilities::default(),
        };
        raw.call(&Request::Version(version)).unwrap();
        raw
    }

    fn next(&mut self) -> Message {
        let message = self.receiver.receive(&self.socket, Wait::Forever);
        message.unwrap().expect("waits for one")
    }

    /// The reply, or errno. What the card asks meanwhile is kept, and not answered.
    fn call(&mut self, request: &Request) -> Result<Vec<u8>, u32> {
        send(&self.socket, &message::request(1, request, false), &[]).unwrap();
        loop {
            let message = self.next();
            match message.header.kind {
                Kind::Command { .. } => self.asked.push(message),
                Kind::Reply { error: Some(error) } => return Err(error),
                Kind::Reply { error: None } => return Ok(message.body),
            }
        }
    }

    fn read(&mut self, region: u32, offset: u64, count: u32) -> Result<Vec<u8>, u32> {
        let at = Region {
            offset,
            region,
            count,
        };
        let body = self.call(&Request::RegionRead(at))?;
        Ok(body[Region::BYTES..].to_vec())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<Vec<u8>, u32> {
        let at = Region {
            offset,
            region,
            count: data.len() as u32,
        };
        self.call(&Request::RegionWrite(at, data.to_vec()))
    }

    fn register(&mut self, offset: u32) -> u32 {
        let data = self.read(0, offset.into(), 4).unwrap();
        u32::from_le_bytes(data.try_into().unwrap())
    }

    fn set_register(&mut self, offset: u32, value: u32) {
        self.write(0, offset.into(), &value.to_le_bytes()).unwrap();
    }

    /// Memory space and bus mastering on.
    fn enable(&mut self) {
        self.write(region::CONFIG, 4, &[6, 0]).unwrap();
    }
}

/// Errno of a request that cannot be.
const EINVAL: u32 = 22;

#[test]
fn registers_answer_while_the_client_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for dut in [Dut::Model, Dut::Rtl(64)] {
        let served = Served::start(folder.path(), dut, "a", "b");
        let mut client = Raw::connect(&served);
        client.enable();
        client.set_register(regs::CMD_BASE_LO, 0x10_0000);
        client.set_register(regs::CPL_BASE_LO, 0x20_0000);
        client.set_register(regs::CONTROL, regs::control::ENABLE);
        client.set_register(regs::CMD_PI, 1);
        // QEMU answers no access before it has its register.
        while client.asked.is_empty() {
            assert_eq!(client.register(regs::MAGIC), regs::MAGIC_VALUE);
        }
        client.set_register(regs::SCRATCH, 77);
        assert_eq!(client.register(regs::SCRATCH), 77);
        assert_eq!(client.register(regs::CMD_CI), 0);
        let asked = client.asked.remove(0);
        let Ok(Request::DmaRead(Dma { address, .. })) = Request::parse(&asked) else {
            panic!("{asked:?}");
        };
        assert_eq!(address, 0x10_0000, "the command");
        // It is refused; the card says so, and goes on.
        let refusal = message::failure(&asked.header, ferroce_vfio_user::Errno::FAULT);
        send(&client.socket, &refusal, &[]).unwrap();
        while client.register(regs::STATUS) & regs::status::DMA_ERROR == 0 {
            for asked in std::mem::take(&mut client.asked) {
                let refusal = message::failure(&asked.header, ferroce_vfio_user::Errno::FAULT);
                send(&client.socket, &refusal, &[]).unwrap();
            }
        }
        assert_eq!(client.register(regs::MAGIC), regs::MAGIC_VALUE);
    }
}

#[test]
fn the_device_is_as_the_bus_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), Dut::Model, "a", "b");
    let mut client = Raw::connect(&served);
    let size = |client: &mut Raw, index| {
        let ask = RegionInfo {
            index,
            ..RegionInfo::default()
        };
        let body = client.call(&Request::RegionInfo(ask))?;
        Ok::<_, u32>(RegionInfo::parse(&body).unwrap().0.size)
    };
    let sizes: Vec<_> = (0..10).map(|index| size(&mut client, index)).collect();
    let none = Ok(0);
    let bars = [Ok(4 << 20), none, Ok(64 << 10), none, none, none, none];
    assert_eq!(sizes[..7], bars);
    assert_eq!(sizes[7..], [Ok(4096), none, Err(EINVAL)]);

    assert_eq!(
        client.register(regs::MAGIC),
        u32::MAX,
        "memory space is off"
    );
    client.enable();
    let magic = regs::MAGIC_VALUE.to_le_bytes();
    assert_eq!(client.register(regs::MAGIC), regs::MAGIC_VALUE);
    assert_eq!(client.read(0, 1, 2), Ok(magic[1..3].to_vec()));
    assert_eq!(client.read(0, 0, 8).map(|data| data[4..].to_vec()), {
        Ok(regs::ABI_VERSION.to_le_bytes().to_vec())
    });
    let bar = u32::from(pci::MSIX_BAR);
    assert_eq!(client.read(bar, 12, 4), Ok(vec![1, 0, 0, 0]), "masked");
    client.write(bar, 0, &[7; 8]).unwrap();
    assert_eq!(client.read(bar, 0, 8), Ok(vec![7; 8]));
    assert_eq!(client.read(bar, pci::MSIX_PBA.into(), 8), Ok(vec![0; 8]));

    // A function-level reset by its register.
    client.set_register(regs::SCRATCH, 5);
    client.write(region::CONFIG, 0x58, &[0, 0x80]).unwrap();
    assert_eq!(client.register(regs::SCRATCH), u32::MAX);
    client.enable();
    assert_eq!(client.register(regs::SCRATCH), 0);

    for (region, offset, count) in [
        (0, 4 << 20, 4),
        (0, u64::MAX, 4),
        (0, 0, 0),
        (0, 0, 16),
        (1, 0, 4),
        (7, 4096, 1),
        (9, 0, 4),
        (u32::MAX, 0, 4),
    ] {
        let refused = client.read(region, offset, count);
        assert_eq!(refused, Err(EINVAL), "{region} {offset:#x} {count}");
    }
    assert_eq!(client.write(0, 2, &[0; 4]).map(drop), Err(EINVAL));
    let map = DmaMap {
        address: 0x1000,
        size: 0x1000,
        ..DmaMap::default()
    };
    client.call(&Request::DmaMap(map)).unwrap();
    assert_eq!(client.call(&Request::DmaMap(map)), Err(17), "EEXIST");
    let unmap = DmaUnmap {
        address: 0x1800,
        size: 0x100,
        ..DmaUnmap::default()
    };
    assert_eq!(client.call(&Request::DmaUnmap(unmap)), Err(EINVAL));
}

#[test]
fn what_a_client_mapped_is_gone_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), Dut::Model, "a", "b");
    let map = DmaMap {
        address: 0x1000,
        size: 0x1000,
        ..DmaMap::default()
    };
    let all = DmaUnmap {
        flags: dma::UNMAP_ALL,
        ..DmaUnmap::default()
    };
    let unmapped = |client: &mut Raw| {
        let body = client.call(&Request::DmaUnmap(all)).unwrap();
        DmaUnmap::parse(&body).unwrap().0.size
    };
    for _ in 0..2 {
        let mut client = Raw::connect(&served);
        assert_eq!(unmapped(&mut client), 0, "a new client has nothing mapped");
        client.call(&Request::DmaMap(map)).unwrap();
    }
    let mut client = Raw::connect(&served);
    client.call(&Request::DmaMap(map)).unwrap();
    assert_eq!(unmapped(&mut client), 0x1000);
}

/// Noise, and messages with noise in them; behind each a client that is as it should be.
#[test]
fn no_client_harms_the_card() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), Dut::Model, "a", "b");
    let seed = bench::seed();
    println!("FERROCE_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    for _ in 0..100 {
        let mut client = Raw::connect(&served);
        for _ in 0..rng.usize(1..20) {
            let mut body = vec![0; rng.usize(0..60)];
            rng.fill(&mut body);
            // Small numbers reach further than large ones.
            body.iter_mut().for_each(|byte| {
                if rng.u8(..4) > 0 {
                    *byte %= 4;
                }
            });
            let header = Header {
                id: rng.u16(..),
                command: rng.u16(1..20),
                size: (Header::BYTES + body.len()) as u32,
                kind: if rng.u8(..5) == 0 {
                    Kind::Reply { error: None }
                } else {
                    Kind::Command {
                        no_reply: rng.bool(),
                    }
                },
            };
            let mut bytes = header.emit().to_vec();
            bytes.extend(body);
            if rng.u8(..10) == 0 {
                let at = rng.usize(..bytes.len());
                bytes[at] ^= 1 << rng.u8(..8);
            }
            // The server may have given up on it.
            if client.socket.write_all(&bytes).is_err() {
                break;
            }
        }
        drop(client);
        let card = VfioUser::connect(&served.socket).unwrap();
        Context::open(card).unwrap();
    }
}

//! The codec: what is encoded is read back, and no bytes whatever make it panic.

use ferroce_vfio_user::header::{Command, Header, Kind};
use ferroce_vfio_user::message::{self, Message, Request};
use ferroce_vfio_user::payload::{
    DeviceInfo, Dma, DmaMap, DmaUnmap, IrqInfo, Region, RegionInfo, SetIrqs,
};
use ferroce_vfio_user::version::{Capabilities, Version};
use ferroce_vfio_user::{Errno, MAX_MESSAGE, MAX_TRANSFER, ProtocolError};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A message of the bytes that would be sent.
fn message(bytes: &[u8]) -> Result<Message, ProtocolError> {
    let (header, body) = bytes.split_first_chunk().expect("a header");
    Ok(Message {
        header: Header::parse(header)?,
        body: body.to_vec(),
        fds: Vec::new(),
    })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

prop_compose! {
    fn version()(
        major: u16,
        minor: u16,
        max_msg_fds in option::of(any::<u64>()),
        max_data_xfer_size in option::of(any::<u64>()),
        max_dma_maps in option::of(any::<u64>()),
        pgsizes in option::of(any::<u64>()),
    ) -> Version {
        let capabilities = Capabilities { max_msg_fds, max_data_xfer_size, max_dma_maps, pgsizes };
        Version { major, minor, capabilities }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let map =
        any::<(u32, u32, u64, u64, u64)>().prop_map(|(argsz, flags, offset, address, size)| {
            Request::DmaMap(DmaMap {
                argsz,
                flags,
                offset,
                address,
                size,
            })
        });
    let unmap = any::<(u32, u32, u64, u64)>().prop_map(|(argsz, flags, address, size)| {
        Request::DmaUnmap(DmaUnmap {
            argsz,
            flags,
            address,
            size,
        })
    });
    let info = any::<[u32; 4]>().prop_map(|[argsz, flags, a, b]| {
        Request::DeviceInfo(DeviceInfo {
            argsz,
            flags,
            num_regions: a,
            num_irqs: b,
        })
    });
    let irq = any::<[u32; 4]>().prop_map(|[argsz, flags, index, count]| {
        Request::IrqInfo(IrqInfo {
            argsz,
            flags,
            index,
            count,
        })
    });
    let region =
        any::<([u32; 4], [u64; 2])>().prop_map(|([argsz, flags, index, cap_offset], s)| {
            Request::RegionInfo(RegionInfo {
                argsz,
                flags,
                index,
                cap_offset,
                size: s[0],
                offset: s[1],
            })
        });
    let irqs =
        (any::<[u32; 5]>(), data()).prop_map(|([argsz, flags, index, start, count], data)| {
            let fixed = SetIrqs {
                argsz,
                flags,
                index,
                start,
                count,
            };
            Request::SetIrqs(fixed, data)
        });
    let read = (any::<u64>(), any::<u32>(), 0..=MAX_TRANSFER as u32).prop_map(
        |(offset, region, count)| {
            Request::RegionRead(Region {
                offset,
                region,
                count,
            })
        },
    );
    let write = (any::<u64>(), any::<u32>(), data()).prop_map(|(offset, region, data)| {
        let count = data.len() as u32;
        let fixed = Region {
            offset,
            region,
            count,
        };
        Request::RegionWrite(fixed, data)
    });
    let dma_read = (any::<u64>(), 0..=MAX_TRANSFER as u64)
        .prop_map(|(address, count)| Request::DmaRead(Dma { address, count }));
    let dma_write = (any::<u64>(), data()).prop_map(|(address, data)| {
        let count = data.len() as u64;
        Request::DmaWrite(Dma { address, count }, data)
    });
    prop_oneof![
        version().prop_map(Request::Version),
        map,
        unmap,
        info,
        irq,
        region,
        irqs,
        read,
        write,
        dma_read,
        dma_write,
        Just(Request::DeviceReset),
    ]
}

proptest! {
    #[test]
    fn a_request_is_read_back(id: u16, request in request(), no_reply: bool) {
        let bytes = message::request(id, &request, no_reply);
        let message = message(&bytes).unwrap();
        prop_assert_eq!(message.header.id, id);
        prop_assert_eq!(message.header.size as usize, bytes.len());
        prop_assert_eq!(message.header.kind, Kind::Command { no_reply });
        prop_assert_eq!(Request::parse(&message), Ok(request));
    }

    #[test]
    fn a_reply_names_its_command(id: u16, request in request(), data in data(), failed: bool) {
        let command = message(&message::request(id, &request, false)).unwrap().header;
        let bytes = if failed {
            message::failure(&command, Errno::PERM)
        } else {
            message::reply(&command, |to| to.extend(&data))
        };
        let reply = message(&bytes).unwrap();
        prop_assert_eq!((reply.header.id, reply.header.command), (id, request.command() as u16));
        if failed {
            prop_assert_eq!(reply.header.kind, Kind::Reply { error: Some(1) });
            prop_assert!(reply.body.is_empty());
        } else {
            prop_assert_eq!(reply.header.kind, Kind::Reply { error: None });
            prop_assert_eq!(reply.body, data);
        }
    }

    #[test]
    fn a_header_that_is_read_is_written_the_same(bytes: [u8; 16]) {
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
    }

    /// Any body behind any command: a request, or an error.
    #[test]
    fn no_body_panics(command in 0u16..20, body in vec(any::<u8>(), 0..80)) {
        let kind = Kind::Command { no_reply: false };
        let header = Header { id: 1, command, size: (16 + body.len()) as u32, kind };
        let known = Command::parse(command).is_ok();
        let parsed = Request::parse(&Message { header, body, fds: Vec::new() });
        if !known {
            prop_assert_eq!(parsed, Err(ProtocolError::Command(command)));
        }
    }

    /// A request that lost its end, or got more of it.
    #[test]
    fn a_request_of_the_wrong_length_is_refused_or_harmless(request in request(), cut in 1usize..40) {
        let bytes = message::request(1, &request, false);
        let mut short = message(&bytes).unwrap();
        let kept = short.body.len().saturating_sub(cut);
        short.body.truncate(kept);
        let result = Request::parse(&short);
        // What has a fixed part only, or a length of its own, cannot lose a byte unnoticed.
        if !matches!(request, Request::SetIrqs(..) | Request::Version(_) | Request::DeviceReset) {
            prop_assert!(result.is_err(), "{:?}", result);
        }
    }

    #[test]
    fn no_json_panics(text in "\\PC{0,60}", nul: bool) {
        let mut body = vec![0, 0, 1, 0];
        body.extend(text.bytes());
        body.extend(nul.then_some(0));
        // Whatever it is: text is JSON of the known form, or an error.
        if !nul && !text.is_empty() {
            prop_assert_eq!(Version::parse(&body), Err(ProtocolError::Unterminated));
        } else if let Err(error) = Version::parse(&body) {
            prop_assert!(matches!(error, ProtocolError::Json(_)), "{}", error);
        }
    }
}

#[test]
fn sizes_and_types_that_cannot_be_are_refused() {
    let mut bytes = message::request(1, &Request::DeviceReset, false);
    let header = |bytes: &[u8]| Header::parse(bytes.first_chunk().unwrap());
    for size in [0, 15, MAX_MESSAGE as u32 + 1, u32::MAX] {
        bytes[4..8].copy_from_slice(&size.to_ne_bytes());
        assert_eq!(header(&bytes), Err(ProtocolError::Size { size }));
    }
    bytes[4..8].copy_from_slice(&16u32.to_ne_bytes());
    bytes[8..12].copy_from_slice(&2u32.to_ne_bytes());
    assert_eq!(header(&bytes), Err(ProtocolError::Type { flags: 2 }));
}

#[test]
fn transfers_that_are_too_long_are_refused() {
    let count = MAX_TRANSFER as u64 + 1;
    let dma = Dma { address: 0, count };
    let bytes = message::request(1, &Request::DmaRead(dma), false);
    let parsed = Request::parse(&message(&bytes).unwrap());
    assert_eq!(parsed, Err(ProtocolError::Transfer { count }));

    let region = Region {
        offset: 0,
        region: 0,
        count: u32::MAX,
    };
    let bytes = message::request(1, &Request::RegionRead(region), false);
    let parsed = Request::parse(&message(&bytes).unwrap());
    let count = u32::MAX.into();
    assert_eq!(parsed, Err(ProtocolError::Transfer { count }));
}

/// The proposal of QEMU 10.1, with capabilities that are not known here.
#[test]
fn capabilities_may_be_more_than_are_known() {
    let mut body = vec![0, 0, 0, 0];
    body.extend(br#"{"capabilities": {"max_msg_fds": 8, "max_data_xfer_size": 1048576, "migration": {"pgsize": 4096, "max_bitmap_size": 268435456}, "pgsizes": 4096, "max_dma_maps": 65535, "write_multiple": true}}"#);
    body.push(0);
    let version = Version::parse(&body).unwrap();
    assert_eq!(version.capabilities.max_msg_fds, Some(8));
    assert_eq!(version.capabilities.pgsizes, Some(4096));
    assert_eq!(
        Version::parse(&[0, 0, 1, 0]).unwrap().capabilities,
        Capabilities::default()
    );
}

//! Round trips, literal bytes, and garbage.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn private<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    prop::collection::vec(any::<u8>(), N).prop_map(|v| v.try_into().unwrap())
}

fn u24() -> impl Strategy<Value = u32> {
    0..1u32 << 24
}

prop_compose! {
    fn req()(
        (local, service, guid, qpn, psn) in (any::<u32>(), any::<u64>(), any::<u64>(), u24(), u24()),
        sizes in any::<[u8; 4]>(),
        (remote_timeout, local_timeout, ack_timeout) in (0u8..32, 0u8..32, 0u8..32),
        (transport, retry, rnr_retry, mtu, cm_retries) in (0u8..4, 0u8..8, 0u8..8, 0u8..16, 0u8..16),
        (flow_control, srq, flow_label) in (any::<bool>(), any::<bool>(), 0..1u32 << 20),
        (local_gid, remote_gid, private) in (any::<[u8; 16]>(), any::<[u8; 16]>(), private()),
    ) -> Req {
        let [responder_resources, initiator_depth, traffic_class, hop_limit] = sizes;
        Req {
            local, service, guid, qpn, responder_resources, initiator_depth, remote_timeout, transport,
            flow_control, psn, local_timeout, retry, mtu, rnr_retry, cm_retries, srq, local_gid, remote_gid,
            flow_label, traffic_class, hop_limit, ack_timeout, private,
        }
    }
}

prop_compose! {
    fn rep()(
        (local, remote, qkey, qpn, psn) in (any::<u32>(), any::<u32>(), any::<u32>(), u24(), u24()),
        (responder_resources, initiator_depth) in any::<(u8, u8)>(),
        (ack_delay, rnr_retry) in (0u8..32, 0u8..8),
        (flow_control, srq, guid, private) in (any::<bool>(), any::<bool>(), any::<u64>(), private()),
    ) -> Rep {
        Rep {
            local, remote, qkey, qpn, psn, responder_resources, initiator_depth, ack_delay, flow_control,
            rnr_retry, srq, guid, private,
        }
    }
}

fn message() -> impl Strategy<Value = Message> {
    let ends = || any::<(u32, u32)>().prop_map(|(local, remote)| Ends { local, remote });
    prop_oneof![
        req().prop_map(Message::Req),
        rep().prop_map(Message::Rep),
        (ends(), 0u8..4, 0u8..32).prop_map(|(Ends { local, remote }, about, service_timeout)| {
            Message::Mra(Mra {
                local,
                remote,
                about,
                service_timeout,
            })
        }),
        (ends(), 0u8..4, any::<u16>(), private()).prop_map(
            |(Ends { local, remote }, about, reason, private)| {
                Message::Rej(Rej {
                    local,
                    remote,
                    about,
                    reason,
                    guid: 0,
                    private,
                })
            }
        ),
        (ends(), any::<u64>(), private()).prop_map(|(Ends { local, remote }, guid, private)| {
            Message::Rej(Rej {
                local,
                remote,
                about: about::OTHER,
                reason: reason::TIMEOUT,
                guid,
                private,
            })
        }),
        ends().prop_map(Message::Rtu),
        (ends(), u24()).prop_map(|(ends, qpn)| Message::Dreq(ends, qpn)),
        ends().prop_map(Message::Drep),
        (any::<u32>(), any::<u64>(), private()).prop_map(|(request, service, private)| {
            Message::SidrReq(SidrReq {
                request,
                service,
                private,
            })
        }),
        (
            any::<u32>(),
            any::<u8>(),
            u24(),
            any::<(u64, u32)>(),
            private()
        )
            .prop_map(|(request, status, qpn, (service, qkey), private)| {
                Message::SidrRep(SidrRep {
                    request,
                    status,
                    qpn,
                    service,
                    qkey,
                    private,
                })
            }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(tid in any::<u64>(), message in message()) {
        let mad = Mad { tid, message };
        prop_assert_eq!(Mad::parse(&mad.emit()), Some(mad));
    }

    #[test]
    fn garbage_is_read_or_left(bytes in prop::collection::vec(any::<u8>(), 0..300), good in any::<bool>()) {
        let mut bytes = bytes;
        if good && bytes.len() >= HEAD {
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
            let attribute = 0x10 + bytes[17] % 12;
            bytes[16..18].copy_from_slice(&[0, attribute]);
        }
        if let Some(mad) = Mad::parse(&bytes) {
            prop_assert_eq!(bytes.len(), MAD_BYTES);
            // What is not kept is reserved or not used; all else comes again.
            prop_assert_eq!(Mad::parse(&mad.emit()), Some(mad));
        }
    }

    #[test]
    fn ends_are_read(port in any::<u16>(), a in any::<u128>(), b in any::<u128>(), v4 in any::<bool>()) {
        let ip = |n: u128| match v4 {
            true => IpAddr::from(Ipv4Addr::from_bits(n as u32)),
            false => Ipv6Addr::from_bits(n).into(),
        };
        let header = IpHeader { port, from: ip(a), to: ip(b) };
        let mut private = [0; 92];
        header.emit(&mut private);
        prop_assert_eq!(IpHeader::parse(&private), Some(header));
    }
}

#[test]
fn ends_of_other_versions_are_refused() {
    let mut private = [0; 92];
    assert_eq!(IpHeader::parse(&private), None);
    private[1] = 0x40;
    assert!(IpHeader::parse(&private).is_some());
    assert_eq!(IpHeader::parse(&private[..35]), None);
    private[0] = 1;
    assert_eq!(IpHeader::parse(&private), None);
}

#[test]
fn services_are_ports() {
    assert_eq!(PortSpace::Tcp.service(7174), 0x0106_1c06);
    assert_eq!(PortSpace::Udp.port(0x0111_0001), Some(1));
    assert_eq!(PortSpace::Tcp.port(0x0111_0001), None);
    assert_eq!(PortSpace::Tcp.port(1 << 40 | 0x0106_0001), None);
}

/// A REQ of Linux 6.1 over soft-RoCE, as rping had it sent over IPv6; what is behind is zero.
const LINUX_REQ: &str = "010702030000000000000030463d0437001000000000000037043d46000000000000000001061c06000000fffe0000020000\
     0000000000000000110100000001000000a02be9a3a7ffff57f0fffffffffd000000000000000000000000000002fd000000\
     0000000000000000000000015252f00000400098000000000000000000000000000000000000000000000000000000000000\
     00000000000000000000000000000060adb7fd000000000000000000000000000002fd000000000000000000000000000001";
/// A REP of the same over IPv4.
const LINUX_REP: &str = "01070203000000007c01f7530000000100130000000000000d043d467c01f7540000000000001100000000008e8fbb000101\
     78e0000000fffe000002";

/// The bytes of a capture, with zeros up to the end of a MAD.
fn captured(text: &str) -> [u8; MAD_BYTES] {
    let mut bytes = [0; MAD_BYTES];
    for (to, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
        *to = u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    }
    bytes
}

#[test]
fn messages_of_linux_are_read_and_written() {
    let bytes = captured(LINUX_REQ);
    let mad = Mad::parse(&bytes).unwrap();
    let Message::Req(req) = &mad.message else {
        panic!("{mad:?}");
    };
    assert_eq!(
        (req.local, req.qpn, req.guid),
        (0x3704_3d46, 0x11, 0xff_fe00_0002)
    );
    assert_eq!(PortSpace::Tcp.port(req.service), Some(7174));
    assert_eq!((req.responder_resources, req.initiator_depth), (1, 1));
    assert_eq!(
        (req.remote_timeout, req.local_timeout, req.cm_retries),
        (20, 20, 15)
    );
    assert_eq!(
        (req.retry, req.rnr_retry, req.mtu, req.transport),
        (7, 7, 5, 0)
    );
    assert_eq!(
        (req.ack_timeout, req.hop_limit, req.flow_label),
        (19, 64, 0x5_252f)
    );
    let ends = IpHeader::parse(&req.private).unwrap();
    let [from, to] = ["fd00::2", "fd00::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    assert_eq!((ends.from, ends.to, ends.port), (from, to, 0xadb7));
    assert_eq!((req.local_gid, req.remote_gid), (gid(from), gid(to)));
    let mut again = mad.emit();
    // It names no rate.
    again[HEAD + 91] = 0;
    assert_eq!(again, bytes);

    let bytes = captured(LINUX_REP);
    let mad = Mad::parse(&bytes).unwrap();
    let Message::Rep(rep) = &mad.message else {
        panic!("{mad:?}");
    };
    assert_eq!(
        (rep.local, rep.remote, rep.qpn, rep.psn),
        (0x0d04_3d46, 0x7c01_f754, 0x11, 0x8e_8fbb)
    );
    assert_eq!(mad.emit(), bytes);
}

/// Linux finds the request that a timeout is about by this GUID alone, and drops a REJ without it.
#[test]
fn a_timeout_names_its_sender() {
    let guid = 0x0102_0304_0506_0708;
    let bytes = |reason| {
        let message = Message::Rej(Rej {
            local: 1,
            remote: 0,
            about: about::OTHER,
            reason,
            guid,
            private: [0; 148],
        });
        Mad { tid: 1, message }.emit()
    };
    let timeout = bytes(reason::TIMEOUT);
    // bytes of the additional information in the upper seven bits, and it
    assert_eq!(timeout[HEAD + 9], 8 << 1);
    assert_eq!(timeout[HEAD + 12..HEAD + 20], u64::to_be_bytes(guid));
    let other = bytes(reason::CONSUMER);
    assert_eq!(other[HEAD + 9], 0);
    assert_eq!(other[HEAD + 12..HEAD + 20], [0; 8]);
}

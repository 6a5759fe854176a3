//! A second voice for the wire: tshark reads every opcode in every layout, and each field it names is what was meant.

mod headers;

use std::process::Command;

use fastrand::Rng;
use ferroce_proto::wire::{Headers, Ip, Ipv4Repr, Ipv6Repr, Mac as Address, Opcode};
use ferroce_sim::ethernet::Line;
use ferroce_sim::ethernet::mac::Mac;
use ferroce_sim::pcapng::Writer;
use ferroce_sim::world::Direction;
use ferroce_system::or_skip;
use ferroce_system::packages::{TSHARK, check_present};
use headers::headers;

/// Fields that tshark is asked for, and what it must say of a frame; empty for what the frame does not have.
type Field = (&'static str, fn(&Headers, &[u8], &[u8]) -> String);

fn some<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map(text).unwrap_or_default()
}

fn flag(set: bool) -> String {
    u8::from(set).to_string()
}

fn mac(mac: Address) -> String {
    mac.0.map(|byte| format!("{byte:02x}")).join(":")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn v4(headers: &Headers) -> Option<Ipv4Repr> {
    match headers.ip {
        Ip::V4(ip) => Some(ip),
        Ip::V6(_) => None,
    }
}

fn v6(headers: &Headers) -> Option<Ipv6Repr> {
    match headers.ip {
        Ip::V4(_) => None,
        Ip::V6(ip) => Some(ip),
    }
}

/// Bytes from the IP header to the ICRC, and from the UDP header.
fn lengths(headers: &Headers, frame: &[u8]) -> (usize, usize) {
    let ip = frame.len() - if headers.eth.vlan.is_some() { 18 } else { 14 };
    (ip, ip - if v4(headers).is_some() { 20 } else { 40 })
}

fn pad(payload: &[u8]) -> usize {
    payload.len().wrapping_neg() & 3
}

const FIELDS: &[Field] = &[
    ("_ws.malformed", |_, _, _| String::new()),
    ("eth.dst", |h, _, _| mac(h.eth.dst)),
    ("eth.src", |h, _, _| mac(h.eth.src)),
    ("vlan.priority", |h, _, _| {
        some(h.eth.vlan, |tag| (tag >> 13).to_string())
    }),
    ("vlan.dei", |h, _, _| {
        some(h.eth.vlan, |tag| (tag >> 12 & 1).to_string())
    }),
    ("vlan.id", |h, _, _| {
        some(h.eth.vlan, |tag| (tag & 0xfff).to_string())
    }),
    ("ip.src", |h, _, _| some(v4(h), |ip| ip.src.to_string())),
    ("ip.dst", |h, _, _| some(v4(h), |ip| ip.dst.to_string())),
    ("ip.dsfield", |h, _, _| {
        some(v4(h), |ip| format!("{:#04x}", ip.tos))
    }),
    ("ip.id", |h, _, _| {
        some(v4(h), |ip| format!("{:#06x}", ip.ident))
    }),
    ("ip.flags.df", |h, _, _| some(v4(h), |_| "1".into())),
    ("ip.ttl", |h, _, _| some(v4(h), |ip| ip.ttl.to_string())),
    ("ip.len", |h, _, f| {
        some(v4(h), |_| lengths(h, f).0.to_string())
    }),
    ("ip.checksum.status", |h, _, _| some(v4(h), |_| "1".into())),
    ("ipv6.src", |h, _, _| some(v6(h), |ip| ip.src.to_string())),
    ("ipv6.dst", |h, _, _| some(v6(h), |ip| ip.dst.to_string())),
    ("ipv6.tclass", |h, _, _| {
        some(v6(h), |ip| format!("{:#010x}", ip.traffic_class))
    }),
    ("ipv6.flow", |h, _, _| {
        some(v6(h), |ip| format!("{:#08x}", ip.flow_label))
    }),
    ("ipv6.hlim", |h, _, _| {
        some(v6(h), |ip| ip.hop_limit.to_string())
    }),
    ("ipv6.plen", |h, _, f| {
        some(v6(h), |_| lengths(h, f).1.to_string())
    }),
    ("udp.srcport", |h, _, _| h.udp.src_port.to_string()),
    ("udp.dstport", |_, _, _| "4791".into()),
    ("udp.length", |h, _, f| lengths(h, f).1.to_string()),
    ("udp.checksum", |_, _, _| "0x0000".into()),
    ("infiniband.bth.opcode", |h, _, _| {
        h.bth.opcode.code().to_string()
    }),
    ("infiniband.bth.se", |h, _, _| flag(h.bth.solicited)),
    ("infiniband.bth.m", |h, _, _| flag(h.bth.mig_req)),
    ("infiniband.bth.padcnt", |_, p, _| pad(p).to_string()),
    ("infiniband.bth.tver", |_, _, _| "0".into()),
    ("infiniband.bth.p_key", |h, _, _| h.bth.pkey.to_string()),
    ("infiniband.bth.destqp", |h, _, _| {
        format!("{:#08x}", h.bth.dest_qp)
    }),
    ("infiniband.bth.a", |h, _, _| flag(h.bth.ack_req)),
    ("infiniband.bth.reserved7", |_, _, _| "0".into()),
    ("infiniband.bth.psn", |h, _, _| {
        h.bth.psn.value().to_string()
    }),
    ("infiniband.deth.q_key", |h, _, _| {
        some(h.ext.deth, |x| format!("{:#018x}", x.qkey))
    }),
    ("infiniband.deth.srcqp", |h, _, _| {
        some(h.ext.deth, |x| format!("{:#010x}", x.src_qp))
    }),
    ("infiniband.reth.va", |h, _, _| {
        let va = h.ext.reth.map(|x| x.va).or(h.ext.atomic.map(|x| x.va));
        some(va, |va| format!("{va:#018x}"))
    }),
    ("infiniband.reth.r_key", |h, _, _| {
        let key = h.ext.reth.map(|x| x.rkey).or(h.ext.atomic.map(|x| x.rkey));
        some(key, |key| format!("{key:#010x}"))
    }),
    ("infiniband.reth.dmalen", |h, _, _| {
        some(h.ext.reth, |x| x.dma_len.to_string())
    }),
    ("infiniband.atomiceth.swapdt", |h, _, _| {
        some(h.ext.atomic, |x| x.swap_add.to_string())
    }),
    ("infiniband.atomiceth.cmpdt", |h, _, _| {
        some(h.ext.atomic, |x| x.compare.to_string())
    }),
    ("infiniband.aeth.syndrome", |h, _, _| {
        some(h.ext.aeth, |x| x.syndrome.bits().to_string())
    }),
    ("infiniband.aeth.msn", |h, _, _| {
        some(h.ext.aeth, |x| x.msn.to_string())
    }),
    ("infiniband.atomicacketh.origremdt", |h, _, _| {
        some(h.ext.atomic_ack, |x| x.original.to_string())
    }),
    ("infiniband.immdt", |h, _, _| {
        some(h.ext.imm, |x| hex(&x.to_be_bytes()))
    }),
    ("infiniband.ieth", |h, _, _| {
        some(h.ext.ieth, |x| hex(&x.to_be_bytes()))
    }),
    ("infiniband.invariant.crc", |h, _, f| {
        // It does not know a CNP, and shows nothing of what stands behind its BTH.
        let known = h.bth.opcode != Opcode::Cnp;
        some(known.then_some(f), |f| {
            format!("0x{}", hex(&f[f.len() - 4..]))
        })
    }),
    ("data.data", |_, payload, _| {
        hex(payload) + &"00".repeat(pad(payload))
    }),
];

/// What tshark sees in the payload of some packets.
const GUESSES: [&str; 10] = [
    "eth_over_ib",
    "mellanox_eoib",
    "fc_infiniband",
    "sdp_infiniband",
    "iser_infiniband",
    "lnet_ib",
    "rpcrdma_infiniband",
    "smb_direct_infiniband",
    "smcr_infiniband",
    "nvme_rdma",
];

/// What tshark calls an opcode.
fn name(opcode: Opcode) -> String {
    if opcode == Opcode::Cnp {
        return "Unknown OpCode".into();
    }
    let words = format!("{opcode:?}");
    let words = words.chars().fold(String::new(), |text, letter| {
        let gap = letter.is_ascii_uppercase() && !text.is_empty();
        text + if gap { " " } else { "" } + &letter.to_string()
    });
    let class = &words[..2].to_uppercase();
    let rest = words[2..]
        .replace("Imm", "Immediate")
        .replace("Inv", "Invalidate");
    let rest = rest
        .replace("Write", "RDMA Write")
        .replace("Read", "RDMA Read");
    let rest = rest
        .replace("Cmp", "Compare")
        .replace("Atomic Ack", "Atomic Acknowledge");
    let ack = if opcode == Opcode::RcAck {
        " Acknowledge".into()
    } else {
        rest
    };
    format!("{class}{ack}")
}

/// What tshark says of the fields of frames, a line each; `None` if it is not there.
fn fields(frames: &[Vec<u8>], names: &[&str]) -> Option<Vec<String>> {
    or_skip(check_present(&[TSHARK]))?;
    let mut file = Writer::new(Vec::new()).unwrap();
    let port = file.interface("port").unwrap();
    for frame in frames {
        file.packet(port, 0, Direction::Transmit, frame, "")
            .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("frames.pcapng");
    std::fs::write(&path, file.into_inner().unwrap()).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path);
    tshark.args(["-T", "fields", "-E", "separator=;"]);
    for name in names {
        tshark.args(["-e", name]);
    }
    let output = tshark.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_string).collect())
}

/// The frames that the MAC in front of a card makes of its level, as IEEE 802.1Qbb has them.
#[test]
fn tshark_reads_a_pause_by_priority() {
    let mut mac = Mac::new(Line::ethernet(100, 1));
    let mut frames = vec![];
    for level in [0x48, 0x40, 0] {
        for _ in 0..16 {
            frames.extend(mac.send(level, 4000).expect("it stays"));
        }
    }
    let names = [
        "_ws.malformed",
        "eth.dst",
        "eth.type",
        "macc.opcode",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "macc.cbfc.pause_time.c6",
        "frame.len",
    ];
    let Some(found) = fields(&frames, &names) else {
        return;
    };
    let expected = [
        ["0x0048", "65535", "65535"],
        ["0x0008", "0", "0"],
        ["0x0040", "0", "0"],
    ];
    let expected =
        expected.map(|rest| format!(";01:80:c2:00:00:01;0x8808;0x0101;{};60", rest.join(";")));
    assert_eq!(found, expected);
}

#[test]
fn tshark_reads_every_opcode_in_every_layout() {
    if or_skip(check_present(&[TSHARK])).is_none() {
        return;
    }
    let mut rng = Rng::with_seed(1);
    let mut frames = Vec::new();
    for &opcode in Opcode::ALL {
        for (vlan, ipv6) in [(false, false), (true, false), (false, true), (true, true)] {
            for _ in 0..4 {
                let headers = headers(&mut rng, opcode, vlan, ipv6);
                let len = if opcode.has_payload() {
                    rng.usize(1..70)
                } else {
                    0
                };
                let payload: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                let mut frame = vec![0; headers.frame_len(len)];
                headers
                    .build(&payload, &mut frame)
                    .expect("extension headers follow the opcode");
                frames.push((headers, payload, frame));
            }
        }
    }
    let mut file = Writer::new(Vec::new()).unwrap();
    let port = file.interface("port").unwrap();
    for (_, _, frame) in &frames {
        file.packet(port, 0, Direction::Transmit, frame, "")
            .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("opcodes.pcapng");
    std::fs::write(&path, file.into_inner().unwrap()).unwrap();
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&path)
        .args(["-o", "ip.check_checksum:TRUE"]);
    // Else it takes random payload for what it may look like.
    for guess in GUESSES {
        tshark.args(["--disable-heuristic", guess]);
    }
    tshark.args([
        "-T",
        "fields",
        "-E",
        "separator=;",
        "-E",
        "occurrence=f",
        "-e",
        "_ws.col.Info",
    ]);
    for (field, _) in FIELDS {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), frames.len(), "{errors}");
    let mut wrong = Vec::new();
    for (line, (headers, payload, frame)) in text.lines().zip(&frames) {
        let (info, found) = line.split_once(';').expect("many fields");
        let opcode = headers.bth.opcode;
        if !info.starts_with(&name(opcode)) {
            wrong.push(format!("{opcode:?} is called {info}"));
        }
        for ((field, expected), found) in FIELDS.iter().zip(found.split(';')) {
            let expected = expected(headers, payload, frame);
            if found != expected {
                wrong.push(format!(
                    "{opcode:?}: {field} is {expected}; tshark says {found}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

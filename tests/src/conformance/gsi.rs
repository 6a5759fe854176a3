//! Queue pair 1, that of the general services: what a card makes of what anyone may send to it.

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{DethRepr, Opcode};
use ferroce_sim::testhost::{QpOptions, pattern};

use super::bench::{Bench, MTU};
use super::script::Script;
use super::{UD, cases, check, check_bytes};

cases! {
    gsi_partition, UD, "IB1 10.9", "Queue pair 1 hears full and limited members of its partition, and none of another.";
    gsi_lengths, UD, "IB1 13.5.3.1", "What is no MAD of 256 bytes does no harm: the card brings what fits for the host to discard, completes a buffer that is too short in error, and the next MAD arrives.";
}

/// Bytes of a MAD.
const MAD: usize = 256;
/// The Q_Key of queue pair 1, known to everyone.
const QKEY: u32 = 0x8001_0000;

/// A script whose card has queue pair 1.
fn script(bench: &mut Bench) -> Script {
    let mut s = bench.script(QpOptions::default());
    s.qpn = s.host.create_qp_as(
        1,
        QpOptions {
            qp_type: qp_type::UD,
            qkey: QKEY,
            ..QpOptions::default()
        },
    );
    s.reopen(|_| {});
    s
}

/// Hands queue pair 1 a datagram of `data` from another one, of a partition; what completes.
fn give(s: &mut Script, pkey: u16, data: &[u8]) -> Vec<Cqe> {
    let mut request = s.request(Opcode::UdSendOnly);
    request.bth.pkey = pkey;
    request.ext.deth = Some(DethRepr {
        qkey: QKEY,
        src_qp: 1,
    });
    check("answers", s.send(&request, data).len(), 0);
    s.cqes()
}

fn results(cqes: &[Cqe]) -> Vec<(u16, u8)> {
    cqes.iter().map(|cqe| (cqe.wqe_index, cqe.status)).collect()
}

fn gsi_partition(bench: &mut Bench) {
    let mut s = script(bench);
    s.recv();
    s.recv();
    let mad = pattern(MAD, 1);
    for pkey in [0x8000, 0x7ffe, 0] {
        let found = s.counts("rx_pkey_violations", 1, |s| give(s, pkey, &mad));
        check("completions", results(&found), vec![]);
    }
    for (index, pkey) in [(0, 0x7fff), (1, 0xffff)] {
        let found = give(&mut s, pkey, &mad);
        check(
            "completions",
            results(&found),
            vec![(index, status::SUCCESS)],
        );
    }
}

/// qib drops such a datagram in its transport, which is software; here `rdmacm` does.
fn gsi_lengths(bench: &mut Bench) {
    let mut s = script(bench);
    let mut index = 0;
    for len in [0, 4, 255, 257, MTU] {
        for len in [len, MAD] {
            let sge = s.target.sge(0, (GRH_LEN + MAD) as u32);
            s.host.post_recv(s.qpn, &[sge]);
            s.host.write(s.target.addr, &[0; GRH_LEN + MTU]);
            let found = give(&mut s, 0xffff, &pattern(len, 2));
            let (what, fits) = (format!("{len} bytes"), len <= MAD);
            let status = if fits {
                status::SUCCESS
            } else {
                status::LOC_LEN_ERR
            };
            check(&what, results(&found), vec![(index, status)]);
            if fits {
                check(&what, found[0].byte_len as usize, GRH_LEN + len);
                let data = s.host.read(s.target.addr + GRH_LEN as u64, len);
                check_bytes("data", &data, &pattern(len, 2));
            }
            index += 1;
        }
    }
}

//! Random packets.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{AethRepr, AtomicAckEthRepr, DethRepr, Opcode, Operation, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Side, Work, pattern};

use crate::forger::{Forger, build};

/// Any headers with a right ICRC and any bytes behind them: no access outside of a region, no panic, and a
/// connection beside it still works.
#[test]
fn random_packets_do_no_harm() {
    let only = std::env::var("SEED")
        .ok()
        .map(|seed| seed.parse().expect("SEED is a number"));
    for seed in only.map_or(1..=300u64, |seed| seed..=seed) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut forger = Forger::new();
        let (qa, qb) = forger
            .pair
            .connect(QpOptions::default(), QpOptions::default());
        for _ in 0..4 {
            forger
                .pair
                .b
                .post_recv(forger.qb, &[forger.target.sge(0, 1500)]);
        }
        for _ in 0..60 {
            let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
            let mut headers = forger.of(opcode);
            if opcode.has_aeth() {
                let syndrome = Syndrome::from_bits(rng.u8(..));
                headers.ext.aeth = Some(AethRepr {
                    syndrome,
                    msn: rng.u32(..1 << 24),
                });
            }
            if opcode.has_atomic_ack() {
                headers.ext.atomic_ack = Some(AtomicAckEthRepr { original: 1 });
            }
            if opcode.has_deth() {
                headers.ext.deth = Some(DethRepr { qkey: 1, src_qp: 2 });
            }
            headers.bth.psn = Psn::new(headers.bth.psn.value() + rng.u32(..6)).sub(2);
            headers.bth.ack_req = rng.bool();
            if rng.u8(..4) == 0 {
                headers.bth.dest_qp = [0, 1, forger.qb, 4, 300][rng.usize(..5)];
            }
            if let Some(reth) = &mut headers.ext.reth {
                reth.va = reth.va.wrapping_add(rng.u64(..5000)).wrapping_sub(400);
                reth.dma_len = rng.u32(..6000);
                reth.rkey ^= u32::from(rng.u8(..8) == 0);
            }
            let len = match (opcode.has_payload(), rng.u8(..4)) {
                (false, _) => 0,
                (true, 0) => rng.usize(..=4096),
                (true, _) if opcode.is_end() => rng.usize(..=1024),
                (true, _) => 1024,
            };
            forger.receive(&build(&headers, &pattern(len, 3)));
            let operation = opcode.operation();
            assert!(!matches!(operation, Operation::Cnp) || forger.pair.sent.is_empty());
        }
        forger.pair.assert_no_faults();
        forger.pair.b.post_recv(qb, &[]);
        while forger.pair.b.poll(0).is_some() {}
        forger.pair.a.post_send(qa, &Work::send(&[]));
        let cqe = forger.pair.wait(Side::B, 0);
        assert_eq!(
            (cqe.qpn, cqe.status),
            (qb, status::SUCCESS),
            "run again with SEED={seed}"
        );
    }
}

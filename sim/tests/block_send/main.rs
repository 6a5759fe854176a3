//! From fetched WQE slots to packets, as Verilog: statuses, packets, pieces, order and rates.
mod agents;
mod executes;
mod expect;
mod key_work;
mod recall;
mod refused;
mod setup;
mod work;

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::random::Pauses;

use setup::{Plan, Setup};
use work::{Work, ctx, sge};

/// Everything of a message.
fn whole(work: &Work) -> Plan {
    Plan::Send {
        from: 0,
        to: work.packets(),
        again: 0,
    }
}

fn steady() -> Setup {
    Setup::new(Pauses::NONE)
}

/// A random WQE that is right.
fn random_work(rng: &mut fastrand::Rng, longest: u32) -> Work {
    let qpn = rng.u16(..15);
    let ctx = ctx(qpn);
    let op = match ctx.qp_type {
        qp_type::RC => rng.u8(..8),
        qp_type::UC => [0, 1, 3, 4][rng.usize(..4)],
        _ => rng.u8(..2),
    };
    let mtu = 128 << ctx.mtu;
    let most = match (ctx.qp_type, op) {
        (_, opcode::CMP_SWAP | opcode::FETCH_ADD) => 8,
        (qp_type::UD, _) => mtu,
        _ => longest.min(200 * mtu),
    };
    let length = match rng.u8(..4) {
        _ if most == 8 => 8,
        0 => rng.u32(..=most),
        1 => most.min(mtu * rng.u32(..4)),
        _ => rng.u32(..=most.min(500)),
    };
    if op < opcode::READ && length <= 288 && rng.bool() {
        return Work::inline(qpn, op, length);
    }
    let count = match rng.u8(..4) {
        _ if most == 8 => 1,
        0 => rng.usize(0..=16),
        1 => 2,
        _ => 1,
    };
    let mut cuts: Vec<u32> = (1..count).map(|_| rng.u32(..=length)).collect();
    cuts.sort_unstable();
    cuts.push(length);
    let mut at = 0;
    let mut list = vec![];
    for cut in cuts {
        list.push(sge(rng.u64(..1 << 48), cut - at));
        at = cut;
    }
    if count == 0 && length == 0 {
        list.clear();
    }
    Work::new(qpn, op, &list)
}

fn random_plan(rng: &mut fastrand::Rng, work: &Work) -> Plan {
    let packets = work.packets();
    match rng.u8(..12) {
        0 => Plan::Drop,
        1 => Plan::Flush,
        2..6 => {
            let from = rng.u32(..packets);
            let most = if work.is_answered() {
                1
            } else {
                (packets - from).min(200)
            };
            let count = rng.u32(1..=most);
            Plan::Send {
                from,
                to: from + count,
                again: rng.u32(..=count),
            }
        }
        _ => Plan::Send {
            from: 0,
            to: packets.min(200),
            again: 0,
        },
    }
}

fn random(pauses: Pauses, count: usize, longest: u32) {
    let mut setup = Setup::new(pauses);
    for _ in 0..count {
        let rng = setup.rng();
        let works: Vec<_> = (0..rng.usize(1..=3))
            .map(|_| random_work(rng, longest))
            .collect();
        let qpn = works[0].qpn;
        // a grant is of one queue pair
        let works: Vec<_> = works
            .into_iter()
            .filter(|work| work.qpn == qpn)
            .map(|work| {
                let plan = random_plan(rng, &work);
                (work, Some(plan))
            })
            .collect();
        setup.present(&works, usize::MAX);
        setup.delay = setup.rng().u64(4..12);
        setup.run_until_few_wait(30);
    }
    setup.finish();
}

#[test]
fn all_kinds_of_messages() {
    random(Pauses::NONE, 3000, 20_000);
}

#[test]
fn whatever_waits() {
    random(Pauses::new(0.3, 12), 1500, 20_000);
}

#[test]
fn every_operation_of_every_transport() {
    let mut setup = steady();
    for qpn in 0..15 {
        for op in 0..8 {
            for length in [0, 1, 8, 255, 256, 257, 700] {
                let work = Work::new(qpn, op, &[sge(0x5003, length)]);
                let plan = whole(&work);
                setup.post(work, plan);
            }
        }
    }
    setup.finish();
}

/// A part waits with entries in the table while more WQEs than that holds pass it, which send nothing.
#[test]
fn what_sends_nothing_leaves_the_entries_of_a_part_that_waits() {
    for plan in [Plan::Drop, Plan::Flush] {
        let mut setup = steady();
        for _ in 0..4 {
            // 185 packets of the first entry
            let list: Vec<_> = (0..16u64)
                .map(|n| sge(0x10_0000 * n, if n == 0 { 185 * 256 } else { 256 }))
                .collect();
            let long = Work::new(0, opcode::WRITE, &list);
            let all = whole(&long);
            setup.post(long, all);
            for n in 0..40u64 {
                let list: Vec<_> = (0..4u64)
                    .map(|k| sge(0x7000_0000_0000 + 0x1000 * (4 * n + k), 64))
                    .collect();
                setup.post(Work::new(3, opcode::WRITE, &list), plan);
            }
        }
        setup.finish();
    }
}

#[test]
fn inline_data_wraps_with_the_ring() {
    let mut setup = steady();
    for first in 59..64 {
        for length in (0..=288).step_by(3).chain([31, 32, 33, 95, 96, 97, 287]) {
            setup.set_index(0, 0x7fc0 + first);
            let work = Work::inline(0, opcode::SEND, length);
            let plan = whole(&work);
            setup.post(work, plan);
        }
    }
    setup.finish();
}

#[test]
fn long_lists_go_on_wherever_they_stopped() {
    let mut setup = steady();
    // 256 bytes a packet; empty entries at the start, the end, in pairs, and entries of many packets
    let lengths = [0, 1, 255, 0, 0, 256, 3, 700, 0, 41, 1, 1, 1, 2000, 300, 0];
    let list: Vec<_> = (0..)
        .zip(lengths)
        .map(|(n, len)| sge(0x10_0000 * n + 7, len))
        .collect();
    for qpn in [0, 5, 10] {
        for op in [opcode::SEND_IMM, opcode::WRITE_IMM] {
            if ctx(qpn).qp_type == qp_type::UD {
                continue;
            }
            let work = Work::new(qpn, op, &list);
            for from in 0..work.packets() {
                for to in from + 1..=work.packets() {
                    let plan = Plan::Send {
                        from,
                        to,
                        again: to - from,
                    };
                    setup.post(work.clone(), plan);
                }
            }
        }
    }
    setup.finish();
}

#[test]
fn a_read_goes_on_with_what_is_missing() {
    let mut setup = steady();
    let work = Work::new(0, opcode::READ, &[sge(0x1000, 5000), sge(0x9000, 3)]);
    for from in 0..work.packets() {
        let plan = Plan::Send {
            from,
            to: from + 1,
            again: u32::from(from > 0),
        };
        setup.post(work.clone(), plan);
    }
    setup.finish();
    assert_eq!((setup.sent, setup.issued), (work.packets() as usize, 1));
}

#[test]
fn no_read_leaves_before_it_is_known() {
    let mut setup = steady();
    setup.hold_issues(true);
    for op in [opcode::READ, opcode::FETCH_ADD] {
        let work = Work::new(0, op, &[sge(0x1000, 8)]);
        let plan = whole(&work);
        setup.post(work, plan);
    }
    setup.run(200);
    assert_eq!((setup.sent, setup.issued), (0, 0));
    setup.hold_issues(false);
    setup.finish();
    assert_eq!((setup.sent, setup.issued), (2, 2));
}

/// Cycles a WQE, of `count` of them.
fn rate(work: &Work, count: usize) -> f64 {
    let mut setup = steady();
    setup.delay = 2;
    for _ in 0..count {
        setup.post(work.clone(), whole(work));
    }
    let start = setup.cycle();
    setup.finish();
    (setup.latest - start) as f64 / count as f64
}

#[test]
fn rates() {
    for (entries, most) in [(0, 1.1), (1, 1.1), (2, 2.1), (3, 3.2), (6, 6.2), (16, 18.5)] {
        let list: Vec<_> = (0..entries).map(|n| sge(0x1000 * n, 8)).collect();
        let rate = rate(&Work::new(12, opcode::WRITE, &list), 300);
        println!("{entries} entries: {rate:.2} cycles a WQE");
        assert!(rate <= most, "{entries} entries: {rate} cycles a WQE");
    }
    for (length, most) in [(8, 1.1), (288, 5.2)] {
        let rate = rate(&Work::inline(12, opcode::WRITE, length), 300);
        println!("{length} bytes inline: {rate:.2} cycles a WQE");
        assert!(rate <= most, "{length} bytes inline: {rate} cycles a WQE");
    }
    let rate = rate(&Work::new(12, opcode::READ, &[sge(0, 64)]), 300);
    println!("READ: {rate:.2} cycles a WQE");
    assert!(rate <= 2.1, "{rate}");
}

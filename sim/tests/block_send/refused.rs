//! WQEs that cannot run, and those that end outside of their grant.

use ferroce_proto::abi::cq::status::{LOC_LEN_ERR, LOC_PROT_ERR, LOC_QP_OP_ERR};
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_proto::abi::wqe::{MAX_MSG, Sge, opcode};

use super::setup::Setup;
use super::work::{NO_REGION, READABLE, Work, ctx, sge};
use super::{steady, whole};

/// Queue pairs of the three transports; 0 and 12 have READs, 15 has none.
const RC: u16 = 0;
const UC: u16 = 1;
const UD: u16 = 2;
const NO_READS: u16 = 15;

/// Posts a WQE that is to be refused, or to run if `status` is 0, and a good one behind it.
fn refused(setup: &mut Setup, status: u8, work: Work) {
    assert_eq!(work.status(5), status, "{work:?}");
    let good = Work::new(work.qpn, opcode::SEND, &[sge(0x40, 5)]);
    for work in [work, good] {
        let plan = whole(&work);
        setup.post(work, plan);
    }
}

fn with_key(length: u32, lkey: u32) -> Sge {
    Sge {
        lkey,
        ..sge(0x3000, length)
    }
}

#[test]
fn what_a_transport_does_not_have() {
    let mut setup = steady();
    for op in 0..=255 {
        for (qpn, most) in [(RC, 7), (UC, 4), (UD, 1)] {
            let work = Work::new(qpn, op, &[sge(0x3000, 8)]);
            let has = op <= most && !(qpn == UC && op == opcode::SEND_INV);
            refused(&mut setup, if has { 0 } else { LOC_QP_OP_ERR }, work);
        }
    }
    for op in 5..8 {
        let none = Work::new(NO_READS, op, &[sge(0x3000, 8)]);
        refused(&mut setup, LOC_QP_OP_ERR, none);
        let inline = Work::inline(RC, op, 8);
        refused(&mut setup, LOC_QP_OP_ERR, inline);
    }
    for ah in (0..=16).chain([1 << 31, u32::MAX]) {
        let work = Work::new(UD, opcode::SEND, &[sge(0x3000, 8)]);
        let work = work.with(|work| work.address.as_mut().unwrap().ah = ah);
        refused(&mut setup, if ah == 14 { 0 } else { LOC_QP_OP_ERR }, work);
    }
    setup.finish();
}

/// Code 2 is of no transport, and so has no operation.
#[test]
fn what_no_transport_has() {
    let mut setup = steady();
    let image = SqCtx {
        qp_type: 2,
        ..ctx(UD)
    };
    setup.rewrite(UD, image);
    for op in 0..=255 {
        // nor has a datagram queue pair one without an address handle
        let work = Work::new(UD, op, &[sge(0x3000, 8)]).with(|work| work.address = None);
        assert_eq!(work.status(1), LOC_QP_OP_ERR);
        let plan = whole(&work);
        setup.post(work, plan);
    }
    setup.finish();
}

#[test]
fn shapes_that_cannot_be() {
    let mut setup = steady();
    for slots in [0, 6, 7, 8, 200, 255] {
        let work = Work::new(RC, opcode::SEND, &[sge(0x3000, 8)]);
        refused(
            &mut setup,
            LOC_QP_OP_ERR,
            work.with(|work| work.head.slots = slots),
        );
    }
    for slots in 1..=5 {
        // 2, 6, 10, 14, 16 entries; 32 bytes and 64 for each further slot
        let room = (4 * slots - 2).min(16);
        for count in [room, room + 1, 17, 18, 128, 255] {
            let fits = count == room;
            let list = vec![sge(0x3000, 3); room];
            let work = Work::new(RC, opcode::WRITE, &list).with(|work| {
                work.head.slots = slots as u8;
                work.head.num_sge = count as u8;
            });
            refused(&mut setup, if fits { 0 } else { LOC_QP_OP_ERR }, work);
        }
        let bytes = 64 * slots as u32 - 32;
        for (length, status) in [
            (bytes, 0),
            (bytes + 1, LOC_QP_OP_ERR),
            (MAX_MSG, LOC_QP_OP_ERR),
        ] {
            let work = Work::inline(RC, opcode::WRITE, length);
            refused(
                &mut setup,
                status,
                work.with(|work| work.head.slots = slots as u8),
            );
        }
    }
    for (length, count) in [(7, 1), (9, 1), (8, 0), (8, 2)] {
        let work = Work::new(RC, opcode::SEND, &[sge(0x3000, 8), sge(0x4000, 1)]);
        let work = work.with(|work| {
            work.head.length = length;
            work.head.num_sge = count;
        });
        refused(&mut setup, LOC_QP_OP_ERR, work);
    }
    // 16 entries of 2^32 - 1 bytes, whose sum is 2^36 - 16
    let list = vec![sge(0, u32::MAX); 16];
    let work = Work::new(RC, opcode::SEND, &[]).with(|work| {
        work.list = list;
        work.head.num_sge = 16;
        work.head.slots = 5;
        work.head.length = 0xffff_fff0;
    });
    refused(&mut setup, LOC_LEN_ERR, work.clone());
    let wrapped = work.with(|work| work.head.length = 0x7fff_fff0);
    refused(&mut setup, LOC_QP_OP_ERR, wrapped);
    for op in [opcode::CMP_SWAP, opcode::FETCH_ADD] {
        for (length, status) in [
            (8, 0),
            (0, LOC_LEN_ERR),
            (7, LOC_LEN_ERR),
            (16, LOC_LEN_ERR),
        ] {
            let work = Work::new(RC, op, &[sge(0x3000, length)]);
            refused(&mut setup, status, work);
        }
        let two = Work::new(RC, op, &[sge(0x3000, 8)]).with(|work| work.head.num_sge = 2);
        refused(&mut setup, LOC_QP_OP_ERR, two);
    }
    setup.finish();
}

#[test]
fn lengths() {
    let mut setup = steady();
    let long = |qpn, op, length| {
        // two entries, so that the sum may pass 2^31
        let work = Work::new(
            qpn,
            op,
            &[sge(0, MAX_MSG / 2), sge(0, length - MAX_MSG / 2)],
        );
        work.with(|work| work.head.length = length)
    };
    // queue pair 0 has an MTU of 256 bytes, 3 of 2048
    for (qpn, op, length, status) in [
        (RC, opcode::READ, MAX_MSG - 256, 0),
        (RC, opcode::READ, MAX_MSG - 255, LOC_LEN_ERR),
        (3, opcode::READ, MAX_MSG, 0),
        (RC, opcode::SEND, MAX_MSG + 1, LOC_LEN_ERR),
        (UC, opcode::SEND, MAX_MSG + 1, LOC_LEN_ERR),
        (RC, opcode::READ, MAX_MSG + 1, LOC_LEN_ERR),
    ] {
        refused(&mut setup, status, long(qpn, op, length));
    }
    // 1024 bytes
    for (length, status) in [(1024, 0), (1025, LOC_LEN_ERR), (5000, LOC_LEN_ERR)] {
        refused(
            &mut setup,
            status,
            Work::new(UD, opcode::SEND, &[sge(0x3000, length)]),
        );
    }
    setup.finish();
}

#[test]
fn memory_regions() {
    let mut setup = steady();
    for bad in 0..16 {
        for (op, key, status) in [
            (opcode::SEND, NO_REGION, LOC_PROT_ERR),
            (opcode::WRITE, READABLE, 0),
            (opcode::READ, NO_REGION, LOC_PROT_ERR),
            (opcode::READ, READABLE, LOC_PROT_ERR),
        ] {
            let mut list = vec![sge(0x3000, 3); 16];
            list[bad] = with_key(3, key);
            refused(&mut setup, status, Work::new(RC, op, &list));
            // without bytes it is not looked at
            list[bad] = with_key(0, key);
            refused(&mut setup, 0, Work::new(RC, op, &list));
        }
    }
    for op in [opcode::CMP_SWAP, opcode::FETCH_ADD] {
        for (key, status) in [(NO_REGION, LOC_PROT_ERR), (READABLE, LOC_PROT_ERR)] {
            refused(&mut setup, status, Work::new(RC, op, &[with_key(8, key)]));
        }
    }
    setup.finish();
}

#[test]
fn slots_that_cannot_be_read() {
    let mut setup = steady();
    let list = vec![sge(0x3000, 3); 16];
    for slot in 1..5 {
        let work = Work::new(RC, opcode::SEND, &list);
        refused(
            &mut setup,
            LOC_QP_OP_ERR,
            work.with(|work| work.unreadable = Some(slot)),
        );
    }
    for op in [opcode::SEND, opcode::WRITE, opcode::READ] {
        let work = Work::new(RC, op, &list[..1]);
        refused(
            &mut setup,
            LOC_QP_OP_ERR,
            work.with(|work| work.unreadable = Some(0)),
        );
    }
    setup.finish();
}

#[test]
fn a_wqe_after_its_grant_is_fetched_again() {
    let mut setup = steady();
    let short = Work::new(RC, opcode::SEND, &[sge(0x3000, 3)]);
    let long = Work::new(RC, opcode::WRITE, &vec![sge(0x5000, 30); 16]);
    for cut in 1..5 {
        setup.present(
            &[(short.clone(), Some(whole(&short))), (long.clone(), None)],
            1 + cut,
        );
        let other = Work::new(UC, opcode::SEND, &[sge(0x40, 5)]);
        let plan = whole(&other);
        setup.post(other, plan);
        setup.post(long.clone(), whole(&long));
    }
    setup.finish();
}

#[test]
fn a_wqe_of_which_not_all_is_posted_is_refused() {
    let mut setup = steady();
    let long = Work::new(RC, opcode::WRITE, &vec![sge(0x5000, 30); 16]);
    for posted in 1..5 {
        assert_eq!(long.status(posted), LOC_QP_OP_ERR);
        setup.present(&[(long.clone(), Some(whole(&long)))], posted);
        setup.post(long.clone(), whole(&long));
    }
    setup.finish();
}

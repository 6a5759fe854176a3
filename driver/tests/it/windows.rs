//! Memory windows: what the driver notes of their binds.

use ferroce_driver::{
    Access, MrBuf, Mw, MwBind, MwType, Qp, QpAttr, SendFlags, SendOp, SendWr, Wc,
};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{self, Cqe, status};

use crate::fake::{ALL, Answer, Fake};
use crate::setup::{Connected, peer};

const TYPES: [MwType; 2] = [MwType::Type1, MwType::Type2];

/// Requests of a queue pair at a time.
const REQUESTS: u32 = 255;

/// A card with queue pairs on one completion queue.
struct Card {
    all: Connected,
    other: Qp<Fake>,
}

impl Card {
    fn new() -> Self {
        let all = Connected::new(ALL, 16, |b| b.max_send_wr(REQUESTS));
        let mut other = Qp::builder(&all.pd).cq(&all.cq).build().unwrap();
        other.connect(&peer()).unwrap();
        Self { all, other }
    }

    fn region(&self) -> MrBuf<Fake> {
        let access = Access::LOCAL_WRITE | Access::MW_BIND;
        self.all.pd.alloc_mr(64, access).unwrap()
    }

    fn window(&self, mw_type: MwType) -> Mw<Fake> {
        self.all.pd.alloc_mw(mw_type).unwrap()
    }

    /// A bind by the queue pair of this number completes so.
    fn completes(&mut self, qpn: u32, index: u32, status: u8, opcode: u8) {
        let cqe = Cqe {
            qpn,
            wqe_index: index as u16,
            status,
            opcode,
            ..Cqe::default()
        };
        assert!(self.all.fake.put_cqe(self.all.cq.cqn(), cqe));
        assert_eq!(self.all.cq.poll(&mut [Wc::default(); 2]), 1);
    }

    fn is_bound(&mut self, qpn: u32, index: u32) {
        self.completes(qpn, index, status::SUCCESS, cq::opcode::BIND_MW);
    }

    /// How often the entry at the place of a key is written by that.
    fn writes(&self, key: u32, by: impl FnOnce()) -> usize {
        let fake = &self.all.fake;
        fake.state().commands.clear();
        by();
        let state = fake.state();
        let heads = state.commands.iter();
        let at = (opcode::WRITE_MR, key >> 8);
        heads.filter(|head| (head.opcode, head.index) == at).count()
    }
}

fn bind(qp: &mut Qp<Fake>, mw: &mut Mw<Fake>, region: &MrBuf<Fake>) {
    let bind = MwBind {
        mr: Some(&**region),
        addr: region.addr(),
        len: 8,
        access: Access::REMOTE_READ,
    };
    let key = Some(mw.rkey());
    qp.post_bind(mw, &bind, key, (0, SendFlags::SIGNALED))
        .unwrap();
}

/// A completion has 16 bits of the slot.
#[test]
fn a_failed_bind_forgets_no_other() {
    let mut card = Card::new();
    let qpn = card.all.qp.qpn();
    let (first, second) = (card.region(), card.region());
    let [mut a, mut b] = [(); 2].map(|()| card.window(MwType::Type1));
    bind(&mut card.all.qp, &mut a, &first);
    card.is_bound(qpn, 0);
    let send = SendWr::new(SendOp::Send, &[]);
    for batch in 1..=0xffff / REQUESTS {
        let wrs = [send; REQUESTS as usize];
        card.all.qp.post_send(&wrs).unwrap();
        card.completes(qpn, batch * REQUESTS, status::SUCCESS, cq::opcode::SEND);
    }
    bind(&mut card.all.qp, &mut b, &second);
    card.completes(qpn, 0x1_0000, status::MW_BIND_ERR, cq::opcode::BIND_MW);
    assert_eq!(card.writes(b.rkey(), || drop(second)), 0);
    assert_eq!(card.writes(a.rkey(), || drop(first)), 1);
}

/// The opcode of a WQE that could not be read is none.
#[test]
fn a_bind_that_was_not_read_is_none() {
    let mut card = Card::new();
    let qpn = card.all.qp.qpn();
    let (first, second) = (card.region(), card.region());
    let mut mw = card.window(MwType::Type1);
    bind(&mut card.all.qp, &mut mw, &first);
    card.is_bound(qpn, 0);
    bind(&mut card.all.qp, &mut mw, &second);
    card.completes(qpn, 1, status::LOC_QP_OP_ERR, cq::opcode::SEND);
    assert_eq!(card.writes(mw.rkey(), || drop(second)), 0);
    assert_eq!(card.writes(mw.rkey(), || drop(first)), 1);
}

/// Queue pairs do not wait for each other: what was posted first may be bound last.
#[test]
fn binds_of_two_queue_pairs_have_no_order() {
    for mw_type in TYPES {
        for resets in [false, true] {
            let mut card = Card::new();
            let (qpn, other) = (card.all.qp.qpn(), card.other.qpn());
            let (first, second) = (card.region(), card.region());
            let mut mw = card.window(mw_type);
            bind(&mut card.all.qp, &mut mw, &first);
            bind(&mut card.other, &mut mw, &second);
            card.is_bound(other, 0);
            card.is_bound(qpn, 0);
            if resets {
                let mut qp = card.all.qp;
                let fake = &card.all.fake;
                fake.state().commands.clear();
                qp.modify(&QpAttr::Reset).unwrap();
                let state = fake.state();
                let mut heads = state.commands.iter();
                let place = mw.rkey() >> 8;
                let ended = heads.any(|h| (h.opcode, h.index) == (opcode::WRITE_MR, place));
                drop(state);
                assert_eq!(ended, mw_type == MwType::Type2);
                continue;
            }
            // What is posted when both are polled comes after both.
            let third = card.region();
            bind(&mut card.other, &mut mw, &third);
            assert_eq!(card.writes(mw.rkey(), || drop(second)), 1);
            bind(&mut card.other, &mut mw, &third);
            card.is_bound(other, 2);
            assert_eq!(card.writes(mw.rkey(), || drop(first)), 0);
            assert_eq!(card.writes(mw.rkey(), || drop(third)), 1);
        }
    }
}

/// A bind that the card did not reach yet outlives its window.
#[test]
fn a_bind_of_a_window_that_is_gone_writes_nothing_of_others() {
    for mw_type in TYPES {
        let mut card = Card::new();
        let (first, second) = (card.region(), card.region());
        let mut mw = card.window(mw_type);
        let place = mw.rkey() >> 8;
        bind(&mut card.all.qp, &mut mw, &first);
        bind(&mut card.all.qp, &mut mw, &second);
        drop(mw);
        let mut others = vec![card.region()];
        while others[others.len() - 1].rkey() >> 8 != place {
            others.push(card.region());
        }
        drop(first);
        assert!(card.all.fake.state().mrs[&place].valid);
        // It may bind the next window there.
        drop(others);
        let mut windows = vec![card.window(mw_type)];
        while windows[windows.len() - 1].rkey() >> 8 != place {
            windows.push(card.window(mw_type));
        }
        assert_eq!(card.writes(place << 8, || drop(second)), 1);
        drop(windows);
        card.all.qp.modify(&QpAttr::Reset).unwrap();
        let mut others = vec![card.region()];
        while others[others.len() - 1].rkey() >> 8 != place {
            others.push(card.region());
        }
        card.all.qp.connect(&peer()).unwrap();
        card.all.qp.modify(&QpAttr::Reset).unwrap();
        assert!(card.all.fake.state().mrs[&place].valid);
    }
}

/// One that cannot be ended keeps no other.
#[test]
fn all_windows_of_a_region_end() {
    for answer in [Answer::Status(3), Answer::Never] {
        let mut card = Card::new();
        let region = card.region();
        let mut windows = [(); 2].map(|()| card.window(MwType::Type1));
        for mw in &mut windows {
            bind(&mut card.all.qp, mw, &region);
        }
        let fake = card.all.fake.clone();
        fake.state().commands.clear();
        fake.state().answers.insert(opcode::WRITE_MR, answer);
        fake.state().good = 1;
        drop(region);
        if answer == Answer::Never {
            assert!(fake.state().mapped.is_empty() && card.all.context.is_lost());
            continue;
        }
        let heads = std::mem::take(&mut fake.state().commands);
        fake.state().answers.clear();
        for mw in &windows {
            assert!(heads.iter().any(|head| head.index == mw.rkey() >> 8));
        }
    }
}

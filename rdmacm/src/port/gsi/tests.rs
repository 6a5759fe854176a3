//! Queue pair 1 on a golden model that hears itself.

use std::time::{Duration, Instant};

use ferroce_ibverbs as _;
use ferroce_sim::vfio_user::pair::ServedPair;
use tempfile::TempDir;

use super::*;
use crate::port;

/// Only against hanging.
const LIMIT: Duration = Duration::from_secs(120);

struct Bench {
    gsi: Gsi,
    // Goes before the sockets in the folder.
    _cards: ServedPair,
    _folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cards = ServedPair::new(folder.path());
        for (name, value) in [
            ("FERROCE_DEVICE", &*cards.device("a")),
            ("FERROCE_MAC", "02:00:00:00:00:01"),
            ("FERROCE_IP", "10.0.0.1"),
        ] {
            // SAFETY: nothing here reads the environment but by the standard library, which locks it.
            unsafe { std::env::set_var(name, value) };
        }
        // SAFETY: handles that this function got of the library.
        let gsi = unsafe {
            let list = ibv_get_device_list(ptr::null_mut());
            let context = pointer(ibv_open_device(*list)).unwrap();
            Gsi::open(context, ibv_alloc_pd(context)).unwrap()
        };
        Self {
            gsi,
            _cards: cards,
            _folder: folder,
        }
    }

    /// The card itself.
    fn own() -> Address {
        Address {
            sgid_index: 1,
            gid: port::gid([10, 0, 0, 1].into()),
        }
    }

    /// A message that it sends to itself arrives, and nothing is left over.
    fn assert_works(&mut self) {
        self.assert_served();
        while !self.gsi.is_idle() {
            self.gsi.collect(|_, _| ()).unwrap();
        }
        // All that was received with is posted again.
        assert_eq!(self.gsi.receive(0), Err(Errno::NOMEM));
    }

    /// No host has this address; that shows only after a while.
    fn absent() -> Address {
        Address {
            sgid_index: 1,
            gid: port::gid([10, 0, 0, 99].into()),
        }
    }

    /// More messages than a turn takes are there, and wait for the next ones.
    fn assert_bounded(&mut self) {
        const MARK: u8 = 0xf1;
        for _ in 0..SENDS {
            self.gsi.send(Self::own(), &[MARK; MAD_BYTES]);
        }
        // SAFETY: the card writes there, whole bytes.
        let came = |slot: &&UnsafeCell<[u8; SLOT_BYTES]>| unsafe {
            slot.get().cast::<u8>().add(GRH_BYTES).read_volatile() == MARK
        };
        let (start, mut left) = (Instant::now(), SENDS as usize);
        while self.gsi.slots.iter().filter(came).count() < left {
            assert!(start.elapsed() < LIMIT, "the messages do not arrive");
        }
        let mut is_full = None;
        while left > 0 {
            assert!(start.elapsed() < LIMIT, "the messages are not taken");
            let mut taken = 0;
            let is_more = self.gsi.collect(|_, _| taken += 1).unwrap();
            assert!(taken <= TURN);
            is_full.get_or_insert(is_more);
            left -= taken;
        }
        assert_eq!(is_full, Some(true), "more is there after the first turn");
    }

    /// Messages wait for as many peers as may: no other is asked for.
    fn assert_asks_no_more(&mut self) {
        self.gsi
            .unsent
            .resize(UNSENT, (Self::absent(), [0; MAD_BYTES]));
        let before = self.gsi.sending;
        // The card itself would be found at once.
        let known = std::mem::take(&mut self.gsi.peers);
        self.gsi.send(Self::own(), &[0; MAD_BYTES]);
        assert_eq!(self.gsi.sending, before);
        self.gsi.peers = known;
        self.gsi.send(Self::own(), &[0; MAD_BYTES]);
        assert_eq!(self.gsi.sending, before + 1);
        self.gsi.unsent.clear();
    }

    /// All messages to a peer that does not answer are given up with the first.
    fn assert_gives_up_together(&mut self) {
        const MANY: usize = 20;
        let start = Instant::now();
        self.gsi
            .unsent
            .resize(MANY, (Self::absent(), [0; MAD_BYTES]));
        while self.gsi.has_unsent() {
            assert!(start.elapsed() < LIMIT, "they wait without end");
            assert_eq!(self.gsi.unsent.len(), MANY);
            self.gsi.send_again();
            // The time of the card runs meanwhile.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A peer that moved gets a handle of its own address, once no message needs the one before.
    fn assert_follows(&mut self) {
        let [peer] = &mut self.gsi.peers[..] else {
            panic!("the card itself is the one peer");
        };
        let mac = std::mem::take(&mut peer.mac);
        self.gsi.sending += 1;
        assert_eq!(self.gsi.peer(Self::own()), Err(Errno::AGAIN));
        self.gsi.sending -= 1;
        let ah = self.gsi.peer(Self::own()).unwrap();
        let [peer] = &self.gsi.peers[..] else {
            panic!("the handle before is left");
        };
        assert_eq!((peer.mac, peer.ah), (mac, ah));
    }

    /// A message that it sends to itself arrives.
    fn assert_served(&mut self) {
        self.gsi.send(Self::own(), &[0x5a; MAD_BYTES]);
        let (start, mut came) = (Instant::now(), false);
        while !came {
            assert!(start.elapsed() < LIMIT, "the message does not arrive");
            self.gsi
                .collect(|from, mad| came |= from == Self::own() && mad == [0x5a; MAD_BYTES])
                .unwrap();
        }
    }
}

#[test]
fn what_anybody_sends_or_breaks_does_not_end_it() {
    let mut bench = Bench::new();
    bench.assert_works();

    let gsi = &mut bench.gsi;
    let mut sge = ibv_sge {
        addr: gsi.slots[RECEIVES - 1].get().addr() as u64,
        length: 4096,
        lkey: gsi.lkey,
    };
    let ud = Ud {
        ah: gsi.peer(Bench::own()).unwrap(),
        remote_qpn: QPN,
        remote_qkey: QKEY,
    };
    let mut wr = ibv_send_wr {
        wr_id: u64::MAX,
        sg_list: &raw mut sge,
        num_sge: 1,
        opcode: IBV_WR_SEND,
        send_flags: IBV_SEND_SIGNALED as u32,
        wr: OfTransport { ud },
        ..ibv_send_wr::zero()
    };
    let mut bad = ptr::null_mut();
    // SAFETY: a context has this function, and the memory stays.
    unsafe {
        let post = (*gsi.context).ops.post_send.unwrap();
        success(post(gsi.qp, &raw mut wr, &raw mut bad)).unwrap();
    }
    gsi.sending += 1;
    bench.assert_works();

    let mut attr = ibv_qp_attr::zero();
    attr.qp_state = IBV_QPS_ERR;
    // SAFETY: a queue pair, and its attributes.
    success(unsafe { ibv_modify_qp(bench.gsi.qp, &raw mut attr, IBV_QP_STATE) }).unwrap();
    let start = Instant::now();
    // SAFETY: what the library shows of the queue pair.
    while unsafe { (*bench.gsi.qp).state } != IBV_QPS_RTS {
        assert!(start.elapsed() < LIMIT, "it does not start again");
        bench.gsi.collect(|_, _| ()).unwrap();
    }
    bench.assert_works();

    bench.assert_bounded();
    bench.assert_works();

    bench.gsi.send(Bench::absent(), &[0; MAD_BYTES]);
    assert!(bench.gsi.has_unsent());
    // Others are served meanwhile.
    bench.assert_served();
    bench.assert_asks_no_more();
    bench.assert_gives_up_together();
    bench.assert_works();
    bench.assert_follows();
    bench.assert_works();
}

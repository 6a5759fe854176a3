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

    // No host has this address; that shows only after a while.
    let absent = Address {
        sgid_index: 1,
        gid: port::gid([10, 0, 0, 99].into()),
    };
    bench.gsi.send(absent, &[0; MAD_BYTES]);
    assert!(bench.gsi.has_unsent());
    // Others are served meanwhile.
    bench.assert_served();
}

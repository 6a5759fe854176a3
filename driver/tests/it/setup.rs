//! An opened card with a connected queue pair.

use ferroce_driver::{
    Context, Cq, Features, Gid, Mac, Path, Pd, Qp, QpBuilder, QpEndpoint, Remote, Sge,
};

use crate::fake::Fake;

pub(crate) const LOCAL_MAC: Mac = Mac([2, 0x11, 0x22, 0x33, 0x44, 0x55]);
pub(crate) const REMOTE_MAC: Mac = Mac([2, 0x66, 0x77, 0x88, 0x99, 0xaa]);

pub(crate) fn ipv4(last: u8) -> Gid {
    Gid::from(std::net::Ipv4Addr::new(10, 0, 0, last))
}

pub(crate) fn peer() -> QpEndpoint {
    QpEndpoint {
        qpn: 0x23,
        psn: 0x12_3456,
        gid: ipv4(2),
        mac: REMOTE_MAC,
    }
}

/// Memory of the peer.
pub(crate) const REMOTE: Remote = Remote {
    addr: 0x1122_3344_5566_7788,
    rkey: 0x99aa_bbcc,
};

/// A list of `n` different entries.
pub(crate) fn sges(n: usize) -> Vec<Sge> {
    (0..n as u64)
        .map(|i| Sge {
            addr: 0x1000 * (i + 1),
            length: i as u32 + 1,
            lkey: 7 * i as u32,
        })
        .collect()
}

/// The way to the peer.
pub(crate) fn path() -> Path {
    Path::new(ipv4(2), REMOTE_MAC)
}

pub(crate) fn open(features: Features) -> (Fake, Context<Fake>) {
    let fake = Fake::new(features);
    let context = Context::open(fake.clone()).unwrap();
    context.set_mac(LOCAL_MAC).unwrap();
    context.set_gid(0, ipv4(1)).unwrap();
    (fake, context)
}

/// A card, a completion queue of `entries`, and a connected queue pair on it.
pub(crate) struct Connected {
    pub(crate) fake: Fake,
    pub(crate) context: Context<Fake>,
    pub(crate) pd: Pd<Fake>,
    pub(crate) cq: Cq<Fake>,
    pub(crate) qp: Qp<Fake>,
}

impl Connected {
    pub(crate) fn new(
        features: Features,
        entries: u32,
        describe: impl for<'a> FnOnce(QpBuilder<'a, Fake>) -> QpBuilder<'a, Fake>,
    ) -> Self {
        let (fake, context) = open(features);
        let pd = context.alloc_pd();
        let cq = context.create_cq(entries).unwrap();
        let mut qp = describe(Qp::builder(&pd).rc().cq(&cq)).build().unwrap();
        qp.connect(&peer()).unwrap();
        fake.take_doorbells();
        Self {
            fake,
            context,
            pd,
            cq,
            qp,
        }
    }
}

//! An opened card with a connected queue pair.

use ferroce_driver::{
    Backend, Context, Cq, Features, Gid, Mac, Path, Pd, Qp, QpBuilder, QpEndpoint, Remote, Sge,
};

use crate::fake::{ALL, Fake, Paged};

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

/// An entry that only the fake card sees.
pub(crate) fn sge(addr: u64, length: u32, lkey: u32) -> Sge {
    // SAFETY: no card touches the memory: the fake one does what a test tells it to.
    unsafe { Sge::from_raw_parts(addr, length, lkey) }
}

/// A list of `n` different entries.
pub(crate) fn sges(n: usize) -> Vec<Sge> {
    (0..n as u64)
        .map(|i| sge(0x1000 * (i + 1), i as u32 + 1, 7 * i as u32))
        .collect()
}

/// The way to the peer.
pub(crate) fn path() -> Path {
    Path::new(ipv4(2), REMOTE_MAC)
}

pub(crate) fn open(features: Features) -> (Fake, Context<Fake>) {
    let fake = Fake::new(features);
    (fake.clone(), addressed(fake))
}

/// An opened card with the local addresses.
fn addressed<B: Backend>(card: B) -> Context<B> {
    let context = Context::open(card).unwrap();
    context.set_mac(LOCAL_MAC).unwrap();
    context.set_gid(0, ipv4(1)).unwrap();
    context
}

/// A card, a completion queue of `entries`, and a connected queue pair on it.
pub(crate) struct Connected<B: Backend = Fake> {
    pub(crate) fake: Fake,
    pub(crate) context: Context<B>,
    pub(crate) pd: Pd<B>,
    pub(crate) cq: Cq<B>,
    pub(crate) qp: Qp<B>,
}

impl Connected {
    pub(crate) fn new(
        features: Features,
        entries: u32,
        describe: impl for<'a> FnOnce(QpBuilder<'a, Fake>) -> QpBuilder<'a, Fake>,
    ) -> Self {
        let (fake, context) = open(features);
        Self::on(fake, context, entries, describe)
    }
}

impl Connected<Paged> {
    /// With doorbells that are memory, room for `entries` requests each way, and lists of one entry.
    pub(crate) fn paged(entries: u32) -> Self {
        let fake = Fake::new(ALL);
        let context = addressed(Paged::new(fake.clone()));
        Self::on(fake, context, 2 * entries, |b| {
            b.max_send_wr(entries).max_recv_wr(entries)
        })
    }
}

impl<B: Backend> Connected<B> {
    fn on(
        fake: Fake,
        context: Context<B>,
        entries: u32,
        describe: impl for<'a> FnOnce(QpBuilder<'a, B>) -> QpBuilder<'a, B>,
    ) -> Self {
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

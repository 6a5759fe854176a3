//! An RDMA WRITE from one card to another, with the golden model as the card.
//!
//! `cargo run -p ferroce-sim --example write`

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use ferroce_driver::{Access, Context, Gid, Mac, Qp, Remote, SendOp, SendWr, Wc};
use ferroce_sim::card::SimCard;

/// Opens a card and gives it addresses that end in `last`.
fn open(card: SimCard, last: u8) -> Result<Context<SimCard>, Box<dyn Error>> {
    let context = Context::open(card)?;
    context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
    context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, last)))?;
    Ok(context)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let [a, b] = SimCard::models();
    let (a, b) = (open(a, 1)?, open(b, 2)?);

    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let mut source = pd_a.alloc_mr(4096, Access::empty())?;
    let target = pd_b.alloc_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    source.write(0, b"hello, peer");

    let (mut cq_a, cq_b) = (a.create_cq(16)?, b.create_cq(16)?);
    let mut qp_a = Qp::builder(&pd_a).rc().cq(&cq_a).build()?;
    let mut qp_b = Qp::builder(&pd_b).rc().cq(&cq_b).build()?;
    let (end_a, end_b) = (qp_a.endpoint()?, qp_b.endpoint()?);
    qp_a.connect(&end_b)?;
    qp_b.connect(&end_a)?;

    let remote = Remote {
        addr: target.addr(),
        rkey: target.rkey(),
    };
    let list = [source.sge(..11)];
    qp_a.post_send(&[SendWr::new(SendOp::Write(remote), &list)
        .wr_id(1)
        .signaled()])?;
    let mut wcs = [Wc::default(); 4];
    let taken = cq_a.wait(&mut wcs, Duration::from_millis(1));
    let [wc] = wcs[..taken] else {
        return Err("the WRITE did not complete within 1 ms".into());
    };
    wc.ok()?;
    let written = target.to_vec(0, 11);
    assert_eq!(written, b"hello, peer");
    println!(
        "wrote {:?} in {} ns of the card's time",
        String::from_utf8_lossy(&written),
        ferroce_driver::Backend::now_ns(a.backend())
    );
    Ok(())
}

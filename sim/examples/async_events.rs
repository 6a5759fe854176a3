//! Completions and asynchronous events as streams, in tokio.
//!
//! `cargo run -p ferroce-sim --example async_events`

use std::error::Error;
use std::net::Ipv4Addr;
use std::rc::Rc;

use ferroce_driver::{
    Access, AsyncEvent, Backend, Context, Gid, Mac, Qp, RecvWr, Remote, SendOp, SendWr,
};
use ferroce_sim::card::SimCard;
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio_stream::StreamExt;

/// Messages to receive.
const MESSAGES: u64 = 20;
/// A bound in case that something hangs, in ns of the cards' time.
const LIMIT_NS: u64 = 100_000_000;

fn open(card: SimCard, last: u8) -> Result<Context<Rc<SimCard>>, Box<dyn Error>> {
    let context = Context::open(Rc::new(card))?;
    context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
    context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, last)))?;
    Ok(context)
}

/// What the program does.
async fn work(a: Context<Rc<SimCard>>, b: Context<Rc<SimCard>>) -> Result<(), Box<dyn Error>> {
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let mut completions = b.completions(32)?;
    let mut events = a.event_stream()?;
    let cq_a = a.create_cq(32)?;
    let mut qp_a = Qp::builder(&pd_a).rc().cq(&cq_a).build()?;
    let mut qp_b = Qp::builder(&pd_b).rc().cq(completions.cq()).build()?;
    let (end_a, end_b) = (qp_a.endpoint()?, qp_b.endpoint()?);
    qp_a.connect(&end_b)?;
    qp_b.connect(&end_a)?;

    let buffers = pd_b.alloc_mr(64, Access::LOCAL_WRITE)?;
    for wr_id in 0..MESSAGES {
        qp_b.post_recv(&[RecvWr::new(wr_id, &[buffers.sge(..)])])?;
    }
    let sender = spawn_local(async move {
        for i in 0..MESSAGES {
            let message = i.to_le_bytes();
            qp_a.post_send(&[SendWr::inline(SendOp::Send, &message).signaled()])?;
            // Some come together, some alone.
            for _ in 0..20 * (i % 3) {
                yield_now().await;
            }
        }
        Ok::<_, ferroce_driver::PostError>(qp_a)
    });
    for i in 0..MESSAGES {
        let wc = completions.next().await.ok_or("the card is lost")?;
        assert_eq!(wc.ok()?.wr_id, i);
    }
    println!("{MESSAGES} messages came, each in order");

    // A peer that refuses access ends the queue pair, and an event says so.
    let mut qp_a = sender.await??;
    let remote = Remote::default();
    let region = pd_a.alloc_mr(8, Access::empty())?;
    let list = [region.sge(..)];
    qp_a.post_send(&[SendWr::new(SendOp::Write(remote), &list)])?;
    let event = events.next().await.ok_or("no event")?;
    assert!(matches!(event, AsyncEvent::QpFatal { qpn, .. } if qpn == qp_a.qpn()));
    println!("and then {event:?}");
    Ok(())
}

/// Lets time pass until the work is done; on hardware it passes by itself.
async fn run() -> Result<(), Box<dyn Error>> {
    let [a, b] = SimCard::models();
    let (a, b) = (open(a, 1)?, open(b, 2)?);
    let cards = [a.backend().clone(), b.backend().clone()];
    let work = spawn_local(work(a, b));
    while !work.is_finished() {
        if cards[0].now_ns() > LIMIT_NS {
            return Err(format!("not done within {LIMIT_NS} ns").into());
        }
        cards.iter().for_each(|card| card.relax());
        yield_now().await;
    }
    work.await?
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    LocalSet::new().block_on(&runtime, run())
}

//! Completion and asynchronous events in tokio: the file descriptor of each is an `AsyncFd`.
//!
//! `cargo run -p ferroce-sim --example async_events`

use std::error::Error;
use std::net::Ipv4Addr;
use std::rc::Rc;

use ferroce_driver::{
    Access, AsyncEvent, AsyncEvents, Backend, CompChannel, Context, Cq, EventAttr, Gid, Mac,
    Notify, Qp, RecvWr, Remote, SendOp, SendWr, Wc,
};
use ferroce_sim::card::SimCard;
use tokio::io::unix::AsyncFd;
use tokio::task::{LocalSet, spawn_local, yield_now};

/// Messages to receive.
const MESSAGES: u64 = 20;
/// A bound in case that something hangs, in ns of the cards' time.
const LIMIT_NS: u64 = 100_000_000;

/// The next completion queue with completions.
async fn next_event<B: Backend>(channel: &mut AsyncFd<CompChannel<B>>) -> std::io::Result<u32> {
    loop {
        let mut guard = channel.readable_mut().await?;
        match guard.get_inner_mut().try_event() {
            Some(cqn) => return Ok(cqn),
            // The file descriptor was cleared with the last event.
            None => guard.clear_ready(),
        }
    }
}

/// The next asynchronous event.
async fn next_async<B: Backend>(
    events: &mut AsyncFd<AsyncEvents<B>>,
) -> std::io::Result<AsyncEvent> {
    loop {
        let mut guard = events.readable_mut().await?;
        match guard.get_inner_mut().try_event() {
            Some(event) => return Ok(event),
            None => guard.clear_ready(),
        }
    }
}

/// Completions as they come: armed first, so that none is missed.
async fn receive<B: Backend>(
    channel: &mut AsyncFd<CompChannel<B>>,
    cq: &mut Cq<B>,
) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut received = Vec::new();
    let mut wcs = [Wc::default(); 4];
    while received.len() < MESSAGES as usize {
        cq.req_notify(Notify::Any)?;
        assert_eq!(next_event(channel).await?, cq.cqn());
        loop {
            let taken = cq.poll(&mut wcs);
            for wc in &wcs[..taken] {
                received.push(wc.ok()?.wr_id);
            }
            if taken == 0 {
                break;
            }
        }
    }
    Ok(received)
}

fn open(card: SimCard, last: u8) -> Result<Context<Rc<SimCard>>, Box<dyn Error>> {
    let context = Context::open(Rc::new(card))?;
    context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
    context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, last)))?;
    Ok(context)
}

/// What the program does.
async fn work(a: Context<Rc<SimCard>>, b: Context<Rc<SimCard>>) -> Result<(), Box<dyn Error>> {
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let channel = b.create_comp_channel(&EventAttr::default())?;
    let mut cq_b = b.create_cq_on(32, &channel)?;
    let events = a.async_events(&EventAttr::default())?;
    // SAFETY: a channel owns its file descriptor and keeps it until it is dropped.
    let mut channel = unsafe { AsyncFd::register(channel) }?;
    // SAFETY: as the channel.
    let mut events = unsafe { AsyncFd::register(events) }?;
    let cq_a = a.create_cq(32)?;
    let mut qp_a = Qp::builder(&pd_a).rc().cq(&cq_a).build()?;
    let mut qp_b = Qp::builder(&pd_b).rc().cq(&cq_b).build()?;
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
    let received = receive(&mut channel, &mut cq_b).await?;
    assert_eq!(received, Vec::from_iter(0..MESSAGES));
    println!("{} messages came, each in order", received.len());

    // A peer that refuses access ends the queue pair, and an event says so.
    let mut qp_a = sender.await??;
    let remote = Remote::default();
    let region = pd_a.alloc_mr(8, Access::empty())?;
    let list = [region.sge(..)];
    qp_a.post_send(&[SendWr::new(SendOp::Write(remote), &list)])?;
    let event = next_async(&mut events).await?;
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

//! Ping-pong with requests that own their buffers: no unsafe code, and no buffer is touched while a card uses it.
//!
//! `cargo run -p ferroce-sim --example owned`

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use ferroce_driver::{Context, Done, Gid, Mac, OwnedQueues, Pd, Qp, QpEndpoint, SendOp};
use ferroce_sim::card::SimCard;

const ROUNDS: u8 = 5;
const LIMIT: Duration = Duration::from_millis(1);

/// One side.
struct Side {
    pd: Pd<SimCard>,
    queues: OwnedQueues<SimCard>,
    qp: Option<Qp<SimCard>>,
    qpn: u32,
}

impl Side {
    fn new(card: SimCard, last: u8) -> Result<Self, Box<dyn Error>> {
        let context = Context::open(card)?;
        context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
        context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, last)))?;
        let pd = context.alloc_pd();
        let queues = OwnedQueues::new(context.create_cq(16)?);
        let qp = Qp::builder(&pd).rc().cq(queues.cq()).build()?;
        Ok(Self {
            pd,
            queues,
            qpn: qp.qpn(),
            qp: Some(qp),
        })
    }

    fn endpoint(&self) -> Result<QpEndpoint, Box<dyn Error>> {
        let qp = self.qp.as_ref().ok_or("connected already")?;
        Ok(qp.endpoint()?)
    }

    /// Connects, and posts a first receive.
    fn connect(&mut self, peer: &QpEndpoint) -> Result<(), Box<dyn Error>> {
        let mut qp = self.qp.take().ok_or("connected already")?;
        qp.connect(peer)?;
        self.queues.add(qp).map_err(|e| e.to_string())?;
        let buf = self.pd.alloc_buf(64)?;
        Ok(self.queues.recv(self.qpn, buf, 0).map_err(|e| e.cause)?)
    }

    /// Waits for a message and answers it: its buffer goes out again, and comes back for the next receive.
    fn answer(&mut self) -> Result<u8, Box<dyn Error>> {
        let Done { wc, mut buf } = self.queues.wait(LIMIT).ok_or("no message in time")?;
        let len = wc.ok()?.byte_len as usize;
        buf[..len].iter_mut().for_each(|byte| *byte += 1);
        let count = buf[0];
        self.send(buf, len)?;
        Ok(count)
    }

    fn send(
        &mut self,
        buf: ferroce_driver::Buf<SimCard>,
        len: usize,
    ) -> Result<(), Box<dyn Error>> {
        let sent = self.queues.send(self.qpn, SendOp::Send, buf, ..len, 1);
        sent.map_err(|e| e.cause)?;
        let Done { wc, buf } = self.queues.wait(LIMIT).ok_or("not sent in time")?;
        wc.ok()?;
        Ok(self.queues.recv(self.qpn, buf, 0).map_err(|e| e.cause)?)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let [a, b] = SimCard::models();
    let (mut a, mut b) = (Side::new(a, 1)?, Side::new(b, 2)?);
    let (end_a, end_b) = (a.endpoint()?, b.endpoint()?);
    a.connect(&end_b)?;
    b.connect(&end_a)?;
    let mut first = a.pd.alloc_buf(64)?;
    first[..8].copy_from_slice(&[0; 8]);
    let sent = a.queues.send(a.qpn, SendOp::Send, first, ..8, 1);
    sent.map_err(|e| e.cause)?;
    a.queues.wait(LIMIT).ok_or("not sent in time")?.wc.ok()?;
    let mut last = 0;
    for _ in 0..ROUNDS {
        b.answer()?;
        last = a.answer()?;
    }
    assert_eq!(last, 2 * ROUNDS);
    println!("{ROUNDS} rounds: the count came to {last}");
    Ok(())
}

//! Every kind of RC operation between two cards, with the data checked. Every completion is awaited by interrupt.

use std::error::Error;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use ferroce_driver::{
    Access, Backend, CompChannel, ConnectAttr, Context, Cq, EventAttr, Gid, Mac, MrBuf, Mtu,
    Notify, Pd, Qp, QpEndpoint, RecvWr, Remote, SendOp, SendWr, Wc, WcStatus,
};

/// Bytes of the memory that the peer may reach.
const SHARED: usize = 64 << 10;
/// Bytes of a message: several packets, the last one odd.
const MESSAGE: usize = 10_001;
/// Code of the ACK timeout, 4.3 s: a simulated peer is slow, and nothing is lost here.
const PATIENT: u8 = 20;
/// Longest wait for a completion in ns of the card's time.
const LIMIT: Duration = Duration::from_secs(2);

/// What goes wrong.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What an end has to know of the other; a line of text, if that is another process.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    number: u8,
    qpn: u32,
    psn: u32,
    shared: Remote,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            qpn,
            psn,
            shared,
        } = self;
        write!(
            f,
            "end {number} {qpn} {psn} {} {}",
            shared.addr, shared.rkey
        )
    }
}

impl FromStr for Peer {
    type Err = Box<dyn Error>;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let ["end", number, qpn, psn, addr, rkey] = words[..] else {
            return Err(format!("`{line}` does not tell of an end").into());
        };
        Ok(Self {
            number: number.parse()?,
            qpn: qpn.parse()?,
            psn: psn.parse()?,
            shared: Remote {
                addr: addr.parse()?,
                rkey: rkey.parse()?,
            },
        })
    }
}

/// MAC address and GID of card `number`: 10.0.0.`number`.
fn address(number: u8) -> (Mac, Gid) {
    let gid = Gid::from(Ipv4Addr::new(10, 0, 0, number));
    (Mac([2, 0, 0, 0, 0, number]), gid)
}

/// One end.
pub(crate) struct End<B: Backend> {
    /// The card.
    pub(crate) context: Context<B>,
    /// Memory that the peer may write, read and change.
    pub(crate) shared: MrBuf<B>,
    /// Memory for what is sent and read.
    pub(crate) own: MrBuf<B>,
    pd: Pd<B>,
    qp: Qp<B>,
    cq: Cq<B>,
    channel: CompChannel<B>,
    number: u8,
}

impl<B: Backend> End<B> {
    /// Opens a card and gives it address 10.0.0.`number`.
    pub(crate) fn open(card: B, number: u8) -> Result<Self> {
        let context = Context::open(card)?;
        let (mac, gid) = address(number);
        context.set_mac(mac)?;
        context.set_gid(0, gid)?;
        let pd = context.alloc_pd();
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let shared = pd.alloc_mr(SHARED, Access::LOCAL_WRITE | remote)?;
        let own = pd.alloc_mr(SHARED, Access::LOCAL_WRITE)?;
        let channel = context.create_comp_channel(&EventAttr::default())?;
        let cq = context.create_cq_on(64, &channel)?;
        let qp = Qp::builder(&pd).rc().cq(&cq).build()?;
        Ok(Self {
            context,
            shared,
            own,
            pd,
            qp,
            cq,
            channel,
            number,
        })
    }

    /// What the other end has to know of this one.
    pub(crate) fn describe(&self) -> Result<Peer> {
        let QpEndpoint { qpn, psn, .. } = self.qp.endpoint()?;
        Ok(Peer {
            number: self.number,
            qpn,
            psn,
            shared: self.remote(0),
        })
    }

    /// Connects to the other end, which has to do the same; `timeout`: code of the ACK timeout.
    pub(crate) fn connect(&mut self, peer: &Peer, timeout: u8) -> Result<()> {
        let (mac, gid) = address(peer.number);
        let endpoint = QpEndpoint {
            qpn: peer.qpn,
            psn: peer.psn,
            gid,
            mac,
        };
        let attr = ConnectAttr {
            access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            path_mtu: Mtu::Mtu1024,
            timeout,
            ..ConnectAttr::default()
        };
        Ok(self.qp.connect_with(&endpoint, &attr)?)
    }

    fn remote(&self, offset: usize) -> Remote {
        Remote {
            addr: self.shared.addr() + offset as u64,
            rkey: self.shared.rkey(),
        }
    }

    /// Sleeps until an interrupt reports the next completion, good or not, also one that is there already.
    pub(crate) fn completion(&mut self) -> Result<Wc> {
        self.cq.req_notify(Notify::Any)?;
        // A lost card is reported in the same way, by a completion in error.
        let event = self.channel.get_event(LIMIT);
        event.ok_or("no interrupt reported a completion in time")?;
        let mut wcs = [Wc::default()];
        if self.cq.poll(&mut wcs) == 0 {
            return Err("an interrupt told of a completion that is not there".into());
        }
        Ok(wcs[0])
    }

    /// Posts a WRITE of a message to the other end.
    #[allow(dead_code, reason = "not every user has a use for it")]
    pub(crate) fn post_write(&mut self, peer: &Peer) -> Result<()> {
        let list = [self.own.sge(..MESSAGE)];
        let op = SendOp::Write(peer.shared);
        self.qp.post_send(&[SendWr::new(op, &list).signaled()])?;
        Ok(())
    }

    /// Writes a message to the other end: how that went.
    #[allow(dead_code, reason = "not every user has a use for it")]
    pub(crate) fn write(&mut self, peer: &Peer) -> Result<Wc> {
        self.post_write(peer)?;
        self.completion()
    }

    /// Does an operation on `len` bytes at `offset` of its own memory.
    fn perform(&mut self, op: SendOp, offset: usize, len: usize) -> Result<()> {
        let list = [self.own.sge(offset..offset + len)];
        self.qp.post_send(&[SendWr::new(op, &list).signaled()])?;
        self.completion()?.ok()?;
        Ok(())
    }
}

/// Two connected ends.
pub(crate) fn pair<A: Backend, B: Backend>(a: A, b: B) -> Result<(End<A>, End<B>)> {
    let mut a = End::open(a, 1)?;
    let mut b = End::open(b, 2)?;
    a.connect(&b.describe()?, PATIENT)?;
    b.connect(&a.describe()?, PATIENT)?;
    Ok((a, b))
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let byte = |i: usize| (i.wrapping_mul(31) ^ (i >> 8).wrapping_mul(7) ^ seed) as u8;
    (0..len).map(byte).collect()
}

fn expect(what: &str, found: &[u8], expected: &[u8]) -> Result<()> {
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None if found.len() == expected.len() => Ok(()),
        at => Err(format!("{what}: the data differs at byte {at:?}").into()),
    }
}

/// WRITE, READ, SEND and atomics from `a` to `b`.
pub(crate) fn operations<A: Backend, B: Backend>(a: &mut End<A>, b: &mut End<B>) -> Result<()> {
    let written = pattern(1, MESSAGE);
    a.own.write(3, &written);
    a.perform(SendOp::Write(b.remote(5)), 3, MESSAGE)?;
    // An ACK may overtake what it acknowledges on the way to memory; the answer of a READ does not.
    a.perform(SendOp::Read(b.remote(5)), 30_000, MESSAGE)?;
    expect("READ", &a.own.to_vec(30_000, MESSAGE), &written)?;
    expect("WRITE", &b.shared.to_vec(5, MESSAGE), &written)?;

    let sent = pattern(2, MESSAGE);
    let list = [b.own.sge(0..MESSAGE)];
    b.qp.post_recv(&[RecvWr::new(7, &list)])?;
    a.own.write(0, &sent);
    a.perform(SendOp::SendImm(0xfeed), 0, MESSAGE)?;
    let wc = b.completion()?.ok()?;
    let got = (wc.wr_id, wc.byte_len as usize, wc.imm_data());
    if got != (7, MESSAGE, Some(0xfeed)) {
        return Err(format!("SEND: {wc:?}").into());
    }
    expect("SEND", &b.own.to_vec(0, MESSAGE), &sent)?;

    let at = 32_768;
    b.shared.write(at, &40u64.to_le_bytes());
    let remote = b.remote(at);
    a.perform(SendOp::FetchAdd { remote, add: 2 }, 0, 8)?;
    expect("fetch and add", &a.own.to_vec(0, 8), &40u64.to_le_bytes())?;
    let (compare, swap) = (42, 4711);
    let op = SendOp::CmpSwap {
        remote,
        compare,
        swap,
    };
    a.perform(op, 8, 8)?;
    expect(
        "compare and swap",
        &a.own.to_vec(8, 8),
        &42u64.to_le_bytes(),
    )?;
    a.perform(SendOp::Read(remote), 16, 8)?;
    expect("atomics", &b.shared.to_vec(at, 8), &4711u64.to_le_bytes())
}

/// Unmaps memory that a region still names, and lets the card access it. The card must report it, in a completion and
/// in STATUS, and the memory of the host must be as it was.
pub(crate) fn outside<A: Backend, B: Backend>(a: &mut End<A>, b: &End<B>) -> Result<()> {
    // A page multiple, so that it is mapped by itself.
    let page = a.context.backend().page_size();
    let gone = a.pd.alloc_mr(4 * page, Access::LOCAL_WRITE)?;
    // SAFETY: the accesses of the card there are meant to fail.
    unsafe { a.context.backend().unmap(gone.as_mut_ptr(), 4 * page) }?;
    let list = [gone.sge(0..2 * page)];
    let write = SendOp::Write(b.remote(0));
    a.qp.post_send(&[SendWr::new(write, &list).signaled()])?;
    let wc = a.completion()?;
    if wc.status == WcStatus::Success {
        return Err("an access outside of what is mapped succeeded".into());
    }
    if !a.context.status().dma_error {
        return Err("STATUS does not tell of the failed access".into());
    }
    println!("outside of what is mapped: {:?}", wc.status);
    Ok(())
}

//! One side of a test: its queue pairs, its memory, and what it knows of the other.

use anyhow::{Context as _, Result, bail, ensure};
use ferroce_driver::{
    Access, Backend, ConnectAttr, Data, Gid, MrBuf, Qp, QpEndpoint, RecvWr, Remote, SendFlags,
    SendOp, SendWr,
};

use super::LARGEST;
use super::exchange::{Hello, Outcome};
use super::options::{Args, Atomic, Connection, Measure, Operation, Test};
use crate::device::{Device, priority_tag};
use crate::oob::Oob;
use crate::pattern;
use crate::program::BadInput;
use crate::wait::Completions;

/// Immediate data of the last SEND of a queue pair.
const END: u32 = 0xffff_ffff;
/// Host time for a second of a simulated card's, at worst.
const SLOWDOWN: f64 = 1000.0;

/// A queue pair and that of the peer.
pub(super) struct End<B: Backend> {
    qp: Qp<B>,
    pub(super) local: QpEndpoint,
    pub(super) remote: QpEndpoint,
}

/// One side.
pub(super) struct Side<B: Backend> {
    pub(super) is_server: bool,
    pub(super) ends: Vec<End<B>>,
    /// Where the peer's memory starts.
    memory: Remote,
    /// Bytes of the memory of one queue pair.
    stride: usize,
    pub(super) completions: Completions<B>,
    /// What is sent; its pattern tells sides and queue pairs apart. A part for each queue pair, as of `to`.
    pub(super) from: MrBuf<B>,
    /// Where the peer's bytes go: of a WRITE or SEND at the peer's order, of a READ or atomic at ours; what the peer
    /// reads is in `from`.
    pub(super) to: MrBuf<B>,
    oob: Oob,
}

impl<B: Backend> Side<B> {
    /// Makes the side and connects it to the other.
    pub(super) fn open(device: &mut Device<B>, args: &Args) -> Result<Self> {
        let is_server = args.server.is_none();
        let operation = args.test.operation();
        let size = if args.all { LARGEST } else { args.bytes() } as usize;
        // Whole counters, and cache lines.
        let stride = size.next_multiple_of(64);
        let count = args.qp as usize;
        let receives = if operation == Operation::Send {
            args.rx_depth
        } else {
            1
        };
        let entries = args
            .tx_depth
            .saturating_add(receives)
            .saturating_mul(args.qp);
        let completions = Completions::new(device, entries, args.events)?;
        let pd = device.context.alloc_pd();
        let mut qps = Vec::with_capacity(count);
        for _ in 0..count {
            let builder = Qp::builder(&pd)
                .cq(&completions.cq)
                .max_send_wr(args.tx_depth)
                .max_recv_wr(receives)
                .max_inline_data(args.inline_size.max(32))
                .sgid_index(args.gid_index);
            let builder = match args.connection {
                Connection::Rc => builder.rc(),
                Connection::Uc => builder.uc(),
            };
            qps.push(builder.build().map_err(BadInput::of)?);
        }
        let all = Access::LOCAL_WRITE
            | Access::REMOTE_WRITE
            | Access::REMOTE_READ
            | Access::REMOTE_ATOMIC;
        let bytes = stride.saturating_mul(count);
        let mut from = pd.alloc_mr(bytes, all).map_err(BadInput::of)?;
        let to = pd.alloc_mr(bytes, all).map_err(BadInput::of)?;
        if operation != Operation::Atomic {
            for number in 0..count {
                from.write(number * stride, &pattern::message(is_server, number, size));
            }
        }
        // A peer writes to `to`, and reads or changes `from`.
        let target = match operation {
            Operation::Write | Operation::Send => &to,
            Operation::Read | Operation::Atomic => &from,
        };
        let locals: Vec<_> = qps.iter().map(Qp::endpoint).collect::<Result<_, _>>()?;
        let hello = Hello::new(
            args,
            locals.iter().map(|local| (local.qpn, local.psn)).collect(),
            device.gid(args.gid_index)?.0,
            (target.addr(), target.rkey()),
        );
        let mut oob = Oob::open(device, args.server.as_deref(), args.port)?;
        let slowdown = if device.simulated { SLOWDOWN } else { 1.0 };
        oob.allow(args.duration.unwrap_or(0.0) * slowdown);
        let there = hello.exchange(device, &mut oob)?;
        let gid = Gid(there.gid);
        let mac = device.resolve(args.gid_index, gid)?;
        let remotes = there
            .ends
            .iter()
            .map(|&(qpn, psn)| QpEndpoint { qpn, psn, gid, mac });
        let outs = (args.connection == Connection::Rc).then_some(args.outs);
        let attr = ConnectAttr {
            path_mtu: args.mtu,
            vlan: priority_tag(args.sl),
            timeout: args.qp_timeout.unwrap_or_else(|| device.ack_timeout()),
            min_rnr_timer: 1,
            max_rd_atomic: outs,
            max_dest_rd_atomic: outs,
            ..ConnectAttr::default()
        };
        let mut ends = Vec::with_capacity(count);
        for ((mut qp, local), remote) in qps.into_iter().zip(locals).zip(remotes) {
            qp.connect_with(&remote, &attr)?;
            ends.push(End { qp, local, remote });
        }
        let mut side = Self {
            is_server,
            ends,
            memory: Remote {
                addr: there.addr,
                rkey: there.rkey,
            },
            stride,
            completions,
            from,
            to,
            oob,
        };
        side.meet(device, "connected")?;
        Ok(side)
    }

    /// Returns when the peer got here too.
    pub(super) fn meet(&mut self, device: &mut Device<B>, place: &str) -> Result<()> {
        self.oob.meet(device, place)
    }

    /// Posts a message on queue pair `number`; a SEND that is the `last` says so.
    pub(super) fn post(
        &mut self,
        args: &Args,
        number: usize,
        size: u32,
        signaled: bool,
        last: bool,
    ) -> Result<()> {
        let (start, length) = (number * self.stride, size as usize);
        let remote = Remote {
            addr: self.memory.addr.wrapping_add(start as u64),
            ..self.memory
        };
        let (op, mr) = match (args.test.operation(), args.atomic_type) {
            (Operation::Write, _) => (SendOp::Write(remote), &self.from),
            (Operation::Send, _) if last => (SendOp::SendImm(END), &self.from),
            (Operation::Send, _) => (SendOp::Send, &self.from),
            (Operation::Read, _) => (SendOp::Read(remote), &self.to),
            (Operation::Atomic, Atomic::FetchAndAdd) => {
                (SendOp::FetchAdd { remote, add: 1 }, &self.to)
            }
            (Operation::Atomic, Atomic::CmpAndSwap) => {
                let (compare, swap) = (0, 1);
                (
                    SendOp::CmpSwap {
                        remote,
                        compare,
                        swap,
                    },
                    &self.to,
                )
            }
        };
        let inline = (size <= args.inline_size).then(|| mr.to_vec(start, length));
        let list = [mr.sge(start..start + length)];
        let wr = SendWr {
            wr_id: number as u64,
            op,
            data: match &inline {
                Some(bytes) => Data::Inline(bytes),
                None => Data::Sges(&list),
            },
            flags: if signaled {
                SendFlags::SIGNALED
            } else {
                SendFlags::empty()
            },
        };
        self.ends[number].qp.post_send(&[wr])?;
        Ok(())
    }

    /// Posts receives on queue pair `number`.
    pub(super) fn post_recvs(&mut self, number: usize, size: u32, count: u32) -> Result<()> {
        let start = number * self.stride;
        let list = [self.to.sge(start..start + size as usize)];
        let qp = &mut self.ends[number].qp;
        for _ in 0..count {
            qp.post_recv(&[RecvWr::new(number as u64, &list)])?;
        }
        Ok(())
    }

    /// Tells the peer what came out, and hears what came out there.
    pub(super) fn exchange(
        &mut self,
        device: &mut Device<B>,
        outcome: &Outcome,
    ) -> Result<Outcome> {
        outcome.exchange(device, &mut self.oob)
    }

    /// Checks the bytes that a test of messages of `size` bytes leaves, of which the peer says what it did.
    pub(super) fn validate(&self, args: &Args, size: u32, there: &Outcome) -> Result<()> {
        let (operation, both) = (args.test.operation(), args.bidirectional);
        let from_peer = match operation {
            Operation::Write | Operation::Send => {
                self.is_server || both || args.test.measure() == Measure::Latency
            }
            Operation::Read => !self.is_server || both,
            Operation::Atomic => self.is_server || both,
        };
        if !args.validate || !from_peer {
            return Ok(());
        }
        for number in 0..self.ends.len() {
            let checked = match operation {
                Operation::Atomic => self.check_counter(args, number, there),
                _ => {
                    // A latency test of WRITE marks the last byte.
                    let marked = usize::from(args.test == Test::WriteLat);
                    let bytes = self.to.to_vec(number * self.stride, size as usize - marked);
                    pattern::check(&bytes, !self.is_server, number)
                }
            };
            checked.with_context(|| format!("queue pair {number} of the test"))?;
        }
        Ok(())
    }

    fn check_counter(&self, args: &Args, number: usize, there: &Outcome) -> Result<()> {
        let mut counter = [0; 8];
        self.from.read(number * self.stride, &mut counter);
        let counter = u64::from_le_bytes(counter);
        let sent = there.sent.get(number).copied().unwrap_or_default();
        ensure!(sent > 0, "the peer says that it sent nothing");
        let expected = match args.atomic_type {
            Atomic::FetchAndAdd => sent,
            Atomic::CmpAndSwap => 1,
        };
        if counter != expected {
            bail!("wrong data: the counter is {counter}, expected {expected}");
        }
        Ok(())
    }

    /// Leaves together with the peer.
    pub(super) fn finish(self, device: &mut Device<B>) -> Result<()> {
        self.oob.finish(device)
    }
}

//! One side of a test: its queue pair, its memory, and what it knows of the other.

use anyhow::{Context as _, Result, bail, ensure};
use ferroce_driver::{
    Access, Backend, ConnectAttr, Cq, Data, Gid, MrBuf, Qp, QpEndpoint, RecvWr, Remote, SendFlags,
    SendOp, SendWr,
};
use serde::{Deserialize, Serialize};

use super::LARGEST;
use super::options::{Args, Atomic, Connection, Operation};
use crate::device::Device;
use crate::oob::Oob;
use crate::program::BadInput;

/// What one side tells the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hello {
    program: String,
    /// What must be equal.
    test: String,
    size: u32,
    all: bool,
    iters: u32,
    mtu: usize,
    connection: Connection,
    validate: bool,
    /// Where the side is.
    qpn: u32,
    psn: u32,
    gid: [u8; 16],
    addr: u64,
    rkey: u32,
}

impl Hello {
    fn agreement(&self) -> String {
        let Self {
            program,
            test,
            size,
            all,
            iters,
            mtu,
            connection,
            validate,
            ..
        } = self;
        let sizes = if *all {
            "-a".into()
        } else {
            format!("-s {size}")
        };
        let validate = if *validate { " --validate" } else { "" };
        format!("{program} {test} {sizes} -n {iters} -m {mtu} -c {connection:?}{validate}")
    }
}

/// One side.
pub(super) struct Side<B: Backend> {
    pub(super) is_server: bool,
    pub(super) local: QpEndpoint,
    pub(super) remote: QpEndpoint,
    pub(super) memory: Remote,
    pub(super) qp: Qp<B>,
    pub(super) cq: Cq<B>,
    /// What is sent; its pattern tells sides apart.
    pub(super) from: MrBuf<B>,
    /// Where the peer's bytes go: of a WRITE or SEND at the peer's order, of a READ or atomic at ours; what the peer
    /// reads is in the other half.
    pub(super) to: MrBuf<B>,
    pub(super) oob: Oob,
}

/// Byte `i` of what a side sends.
pub(super) fn pattern(is_server: bool, i: usize) -> u8 {
    (i.wrapping_mul(31) >> 3) as u8 ^ if is_server { 0xa5 } else { 0 }
}

impl<B: Backend> Side<B> {
    /// Makes the side and connects it to the other.
    pub(super) fn open(device: &mut Device<B>, args: &Args) -> Result<Self> {
        let is_server = args.server.is_none();
        let size = if args.all { LARGEST } else { args.bytes() } as usize;
        let pd = device.context.alloc_pd();
        let entries = args.tx_depth.saturating_add(args.rx_depth);
        let bad = |e: &dyn std::fmt::Display| BadInput(e.to_string());
        let cq = device.context.create_cq(entries).map_err(|e| bad(&e))?;
        let builder = Qp::builder(&pd)
            .cq(&cq)
            .max_send_wr(args.tx_depth)
            .max_recv_wr(args.rx_depth);
        let builder = builder
            .max_inline_data(args.inline_size.max(32))
            .sgid_index(args.gid_index);
        let built = match args.connection {
            Connection::Rc => builder.rc(),
            Connection::Uc => builder.uc(),
        };
        let qp = built.build().map_err(|e| bad(&e))?;
        let all = Access::LOCAL_WRITE
            | Access::REMOTE_WRITE
            | Access::REMOTE_READ
            | Access::REMOTE_ATOMIC;
        let mut from = pd.alloc_mr(size, all).map_err(|e| bad(&e))?;
        let to = pd.alloc_mr(size, all).map_err(|e| bad(&e))?;
        if args.test.operation() != Operation::Atomic {
            let bytes: Vec<_> = (0..size).map(|i| pattern(is_server, i)).collect();
            from.write(0, &bytes);
        }
        let local = qp.endpoint()?;
        // A peer writes to `to`, and reads or changes `from`.
        let target = match args.test.operation() {
            Operation::Write | Operation::Send => &to,
            Operation::Read | Operation::Atomic => &from,
        };
        let hello = Hello {
            program: format!("ferroce-perf {}", env!("CARGO_PKG_VERSION")),
            test: args.test.name(),
            size: args.bytes(),
            all: args.all,
            iters: args.iters,
            mtu: args.mtu.bytes(),
            connection: args.connection,
            validate: args.validate,
            qpn: local.qpn,
            psn: local.psn,
            gid: local.gid.0,
            addr: target.addr(),
            rkey: target.rkey(),
        };
        let mut oob = Oob::open(device, args.server.as_deref(), args.port)?;
        oob.send_line(device, &serde_json::to_string(&hello)?)?;
        let line = oob.receive_line(device)?;
        let there: Hello = serde_json::from_str(&line).with_context(|| {
            format!("the peer says `{line}`, which is no ferroce-perf: run the same program on both sides")
        })?;
        let (ours, theirs) = (hello.agreement(), there.agreement());
        if ours != theirs {
            let text =
                format!("the peer runs `{theirs}`, this side `{ours}`: give both the same options");
            return Err(BadInput(text).into());
        }
        ensure!(
            there.qpn < 1 << 24 && there.psn < 1 << 24,
            "the peer sent a number of more than 24 bits"
        );
        let gid = Gid(there.gid);
        let mac = device.resolve(args.gid_index, gid)?;
        let mut side = Self {
            is_server,
            local,
            remote: QpEndpoint {
                qpn: there.qpn,
                psn: there.psn,
                gid,
                mac,
            },
            memory: Remote {
                addr: there.addr,
                rkey: there.rkey,
            },
            qp,
            cq,
            from,
            to,
            oob,
        };
        let outs = (args.connection == Connection::Rc).then_some(args.outs);
        let attr = ConnectAttr {
            path_mtu: args.mtu,
            timeout: args.qp_timeout.unwrap_or_else(|| device.ack_timeout()),
            min_rnr_timer: 1,
            max_rd_atomic: outs,
            max_dest_rd_atomic: outs,
            ..ConnectAttr::default()
        };
        side.qp.connect_with(&side.remote, &attr)?;
        side.meet(device, "connected")?;
        Ok(side)
    }

    /// Returns when the peer got here too.
    pub(super) fn meet(&mut self, device: &mut Device<B>, place: &str) -> Result<()> {
        self.oob.meet(device, place)
    }

    /// Posts a message.
    pub(super) fn post(&mut self, args: &Args, size: u32, signaled: bool) -> Result<()> {
        let remote = self.memory;
        let (op, mr) = match (args.test.operation(), args.atomic_type) {
            (Operation::Write, _) => (SendOp::Write(remote), &self.from),
            (Operation::Send, _) => (SendOp::Send, &self.from),
            (Operation::Read, _) => (SendOp::Read(remote), &self.to),
            (Operation::Atomic, Atomic::FetchAndAdd) => {
                (SendOp::FetchAdd { remote, add: 1 }, &self.to)
            }
            (Operation::Atomic, Atomic::CmpAndSwap) => (
                SendOp::CmpSwap {
                    remote,
                    compare: 0,
                    swap: 1,
                },
                &self.to,
            ),
        };
        let fits = size <= args.inline_size
            && matches!(args.test.operation(), Operation::Write | Operation::Send);
        let inline = if fits {
            mr.to_vec(0, size as usize)
        } else {
            Vec::new()
        };
        let list = [mr.sge(..size as usize)];
        let wr = SendWr {
            wr_id: 0,
            op,
            data: if fits {
                Data::Inline(&inline)
            } else {
                Data::Sges(&list)
            },
            flags: if signaled {
                SendFlags::SIGNALED
            } else {
                SendFlags::empty()
            },
        };
        self.qp.post_send(&[wr])?;
        Ok(())
    }

    /// Posts receives.
    pub(super) fn post_recvs(&mut self, size: u32, count: u32) -> Result<()> {
        let list = [self.to.sge(..size as usize)];
        for _ in 0..count {
            self.qp.post_recv(&[RecvWr::new(1, &list)])?;
        }
        Ok(())
    }

    /// Checks the bytes that a test of messages of `size` bytes leaves.
    pub(super) fn validate(
        &mut self,
        device: &mut Device<B>,
        args: &Args,
        size: u32,
    ) -> Result<()> {
        self.meet(device, "measured")?;
        if !args.validate {
            return Ok(());
        }
        let from_peer = match args.test.operation() {
            Operation::Write | Operation::Send => {
                self.is_server || args.test.measure() == super::Measure::Latency
            }
            Operation::Read => !self.is_server,
            Operation::Atomic => {
                let mut counter = [0; 8];
                self.from.read(0, &mut counter);
                let counter = u64::from_le_bytes(counter);
                let expected = match args.atomic_type {
                    Atomic::FetchAndAdd => u64::from(args.iters),
                    Atomic::CmpAndSwap => 1,
                };
                if self.is_server && counter != expected {
                    bail!("wrong data: the counter is {counter}, expected {expected}");
                }
                false
            }
        };
        let bytes = self.to.to_vec(0, size as usize);
        let sent = |i| pattern(!self.is_server, i);
        // A latency test of WRITE marks the last byte.
        let marked = args.test == super::Test::WriteLat;
        let checked = bytes.len() - usize::from(marked);
        match (0..checked).find(|&i| from_peer && bytes[i] != sent(i)) {
            Some(i) => bail!(
                "wrong data: byte {i} is {:#04x}, expected {:#04x}",
                bytes[i],
                sent(i)
            ),
            None => Ok(()),
        }
    }

    /// Leaves together with the peer.
    pub(super) fn finish(self, device: &mut Device<B>) -> Result<()> {
        self.oob.finish(device)
    }
}

//! The queue pair of a side with its memory: connected, or with the way of its datagrams.

use anyhow::{Result, bail};
use ferroce_driver::{
    Access, Ah, Backend, ConnectAttr, Cq, Destination, MrBuf, Path, Pd, Qp, QpEndpoint, QpType,
    RecvWr, SendOp, SendWr, Wc,
};

use super::address::Address;
use super::options::Args;
use crate::device::{Device, priority_tag};
use crate::pattern;
use crate::program::BadInput;

/// Q_Key of the original.
const QKEY: u32 = 0x1111_1111;
/// Bytes of the GRH before a datagram.
const GRH_BYTES: usize = 40;
/// `wr_id` of receives and sends.
pub(super) const RECV: u64 = 1;
pub(super) const SEND: u64 = 2;

pub(super) struct Link<B: Backend> {
    is_server: bool,
    chk: bool,
    pd: Pd<B>,
    qp: Qp<B>,
    /// Of datagrams.
    to: Option<(Ah<B>, Destination)>,
    message: MrBuf<B>,
    received: MrBuf<B>,
    /// Bytes before the message.
    head: usize,
}

impl<B: Backend> Link<B> {
    pub(super) fn new(device: &Device<B>, cq: &Cq<B>, args: &Args) -> Result<Self> {
        let (size, is_server) = (args.size as usize, args.common.server.is_none());
        let pd = device.context.alloc_pd();
        let builder = Qp::builder(&pd)
            .cq(cq)
            .max_send_wr(1)
            .max_recv_wr(args.common.rx_depth)
            .sgid_index(args.common.gid_idx);
        let (builder, head) = match args.qp_type {
            QpType::Uc => (builder.uc(), 0),
            QpType::Ud => (builder.ud(), GRH_BYTES),
            _ => (builder.rc(), 0),
        };
        let qp = builder.build().map_err(BadInput::of)?;
        let message = pd.alloc_mr(size, Access::empty());
        let mut message = message.map_err(BadInput::of)?;
        message.write(0, &pattern::message(is_server, 0, size));
        let received = pd.alloc_mr(head + size, Access::LOCAL_WRITE);
        Ok(Self {
            is_server,
            chk: args.common.chk,
            pd,
            qp,
            to: None,
            message,
            received: received.map_err(BadInput::of)?,
            head,
        })
    }

    pub(super) fn address(&self) -> Result<Address> {
        let QpEndpoint { qpn, psn, gid, .. } = self.qp.endpoint()?;
        Ok(Address { qpn, psn, gid })
    }

    pub(super) fn connect(
        &mut self,
        device: &mut Device<B>,
        args: &Args,
        peer: &Address,
    ) -> Result<()> {
        let &Address { qpn, psn, gid } = peer;
        let mac = device.resolve(args.common.gid_idx, gid)?;
        let vlan = priority_tag(args.common.sl);
        if args.qp_type == QpType::Ud {
            let path = Path {
                sgid_index: args.common.gid_idx,
                vlan,
                ..Path::new(gid, mac)
            };
            self.qp.open_datagram(QKEY, args.mtu)?;
            let ah = self.pd.create_ah(&path)?;
            let to = ah.to(qpn, QKEY);
            self.to = Some((ah, to));
            return Ok(());
        }
        let attr = ConnectAttr {
            path_mtu: args.mtu,
            vlan,
            timeout: device.ack_timeout(),
            ..ConnectAttr::default()
        };
        self.qp
            .connect_with(&QpEndpoint { qpn, psn, gid, mac }, &attr)?;
        Ok(())
    }

    pub(super) fn post_recvs(&mut self, count: u32) -> Result<u32> {
        let list = [self.received.sge(..)];
        for _ in 0..count {
            self.qp.post_recv(&[RecvWr::new(RECV, &list)])?;
        }
        Ok(count)
    }

    pub(super) fn post_send(&mut self) -> Result<()> {
        let list = [self.message.sge(..)];
        let op = match &self.to {
            Some((_, to)) => SendOp::Datagram(*to),
            None => SendOp::Send,
        };
        self.qp
            .post_send(&[SendWr::new(op, &list).wr_id(SEND).signaled()])?;
        Ok(())
    }

    /// Checks a message of the peer: its length, and if asked for its bytes.
    pub(super) fn check(&self, wc: &Wc) -> Result<()> {
        let (found, expected) = (wc.byte_len as usize, self.received.len());
        if found != expected {
            bail!(
                "a message of {} bytes came, expected {}: give both sides the same -s",
                found.saturating_sub(self.head),
                expected - self.head
            );
        }
        if self.chk {
            let bytes = self.received.to_vec(self.head, expected - self.head);
            pattern::check(&bytes, !self.is_server, 0)?;
        }
        Ok(())
    }
}

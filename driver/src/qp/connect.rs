//! Connecting queue pairs: all transitions up to RTS in one call.

use ferroce_proto::wire::Mtu;

use super::{InitAttr, ModifyError, Qp, QpAttr, QpEndpoint, RtrAttr, RtsAttr};
use crate::Backend;
use crate::mr::Access;
use crate::path::{Path, PathError};

/// How [`Qp::connect_with`] connects; the fields are those of [`InitAttr`], [`Path`], [`RtrAttr`] and [`RtsAttr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttr {
    /// What the peer may do; a region must permit it too.
    pub access: Access,
    /// Path MTU; equal at both ends.
    pub path_mtu: Mtu,
    /// 802.1Q tag control information to send.
    pub vlan: Option<u16>,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label.
    pub flow_label: u32,
    /// Code of the wait asked of a peer for which no receive is posted.
    pub min_rnr_timer: u8,
    /// Code of the ACK timeout.
    pub timeout: u8,
    /// Retries after a timeout or a lost packet.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK; 7 = for ever.
    pub rnr_retry: u8,
    /// READs and atomics outstanding; `None`: as many as the card can.
    pub max_rd_atomic: Option<u8>,
    /// READs and atomics the peer may have outstanding; `None`: as many as the card takes.
    pub max_dest_rd_atomic: Option<u8>,
}

impl Default for ConnectAttr {
    fn default() -> Self {
        let init = InitAttr::default();
        let rtr = RtrAttr::new(Path::new(Default::default(), Default::default()), 0, 0);
        let rts = RtsAttr::new(0);
        Self {
            access: init.access,
            path_mtu: rtr.path_mtu,
            vlan: rtr.path.vlan,
            traffic_class: rtr.path.traffic_class,
            hop_limit: rtr.path.hop_limit,
            flow_label: rtr.path.flow_label,
            min_rnr_timer: rtr.min_rnr_timer,
            timeout: rts.timeout,
            retry_cnt: rts.retry_cnt,
            rnr_retry: rts.rnr_retry,
            max_rd_atomic: rts.max_rd_atomic,
            max_dest_rd_atomic: rtr.max_dest_rd_atomic,
        }
    }
}

impl<B: Backend> Qp<B> {
    /// What the peer needs to connect to this queue pair.
    ///
    /// # Errors
    /// [`PathError::NoGid`]: the GID table entry that the queue pair was built with is empty.
    pub fn endpoint(&self) -> Result<QpEndpoint, ModifyError> {
        let (qpn, sgid_index) = (self.number, self.sgid_index);
        let gid = self.pd.card.gid(sgid_index);
        Ok(QpEndpoint {
            qpn,
            psn: self.psn,
            gid: gid.ok_or(ModifyError::Path {
                qpn,
                cause: PathError::NoGid { sgid_index },
            })?,
            mac: self.pd.card.mac(),
        })
    }

    /// Connects to a peer on the same link, with the values of [`ConnectAttr::default`]: from RESET or INIT to RTS.
    ///
    /// # Errors
    /// [`ModifyError`]; the queue pair stays in the last state it reached.
    pub fn connect(&mut self, remote: &QpEndpoint) -> Result<(), ModifyError> {
        self.connect_with(remote, &ConnectAttr::default())
    }

    /// Connects to a peer on the same link: from RESET or INIT to RTS.
    ///
    /// # Errors
    /// [`ModifyError`]; the queue pair stays in the last state it reached.
    pub fn connect_with(
        &mut self,
        remote: &QpEndpoint,
        attr: &ConnectAttr,
    ) -> Result<(), ModifyError> {
        self.modify(&QpAttr::Init(InitAttr {
            access: attr.access,
            ..InitAttr::default()
        }))?;
        let path = Path {
            sgid_index: self.sgid_index,
            vlan: attr.vlan,
            traffic_class: attr.traffic_class,
            hop_limit: attr.hop_limit,
            flow_label: attr.flow_label,
            ..Path::new(remote.gid, remote.mac)
        };
        self.modify(&QpAttr::Rtr(RtrAttr {
            path_mtu: attr.path_mtu,
            min_rnr_timer: attr.min_rnr_timer,
            max_dest_rd_atomic: attr.max_dest_rd_atomic,
            ..RtrAttr::new(path, remote.qpn, remote.psn)
        }))?;
        self.modify(&QpAttr::Rts(RtsAttr {
            timeout: attr.timeout,
            retry_cnt: attr.retry_cnt,
            rnr_retry: attr.rnr_retry,
            max_rd_atomic: attr.max_rd_atomic,
            ..RtsAttr::new(self.psn)
        }))
    }

    /// Makes a queue pair for datagrams ready: from RESET or INIT to RTS. Datagrams must bring `qkey`, and have at most
    /// `mtu` bytes.
    ///
    /// # Errors
    /// [`ModifyError`]; the queue pair stays in the last state it reached.
    pub fn open_datagram(&mut self, qkey: u32, mtu: Mtu) -> Result<(), ModifyError> {
        self.modify(&QpAttr::Init(InitAttr {
            qkey,
            ..InitAttr::default()
        }))?;
        self.modify(&QpAttr::RtrUd(mtu))?;
        self.modify(&QpAttr::Rts(RtsAttr::new(self.psn)))
    }
}

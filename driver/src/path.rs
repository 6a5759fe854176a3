//! The way to a peer, and address handles: ways that datagrams take.

use std::sync::Arc;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::wire::{Gid, Mac, udp};
use thiserror::Error;

use crate::card::Card;
use crate::command::{Command, CommandError};
use crate::host::lock;
use crate::pd::PdNumber;
use crate::{AnyBackend, Backend, Features, Pd};

/// P_Key of every RoCEv2 port (A17.7.1).
pub const DEFAULT_PKEY: u16 = 0xffff;

/// The way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// GID of the peer: its IP address.
    pub dgid: Gid,
    /// MAC address of the peer, or of the router to it.
    pub dmac: Mac,
    /// Entry of the local GID table to send from; of the same address family as `dgid`.
    pub sgid_index: u8,
    /// 802.1Q tag control information to send: PCP, DEI, VLAN id. A connection takes frames of that VLAN alone; with `None`, as
    /// with VLAN 0, those without a tag or of VLAN 0.
    pub vlan: Option<u16>,
    /// Type of service or traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label, 20 bits; also spreads connections over paths.
    pub flow_label: u32,
    /// UDP source port; `None`: from the flow label, or if that is 0 from both queue pair numbers, of an address handle from
    /// its number.
    pub udp_sport: Option<u16>,
}

impl Path {
    /// To `dgid` by way of `dmac`, from GID 0, hop limit 64, everything else 0.
    #[must_use]
    pub fn new(dgid: Gid, dmac: Mac) -> Self {
        Self {
            dgid,
            dmac,
            sgid_index: 0,
            vlan: None,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
            udp_sport: None,
        }
    }
}

/// A path that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// It needs something that the card was not built for.
    #[error("the path needs {0}, which this build of the card does not have")]
    Unsupported(&'static str),
    /// No local address to send from.
    #[error("GID {sgid_index} to send from is empty: set it with Context::set_gid")]
    NoGid {
        /// Entry of the GID table.
        sgid_index: u8,
    },
    /// Local and remote address do not fit.
    #[error(
        "the path leads from {local} to {remote}, which are not both IPv4 or both IPv6: choose another sgid_index"
    )]
    Family {
        /// Local GID.
        local: Gid,
        /// Remote GID.
        remote: Gid,
    },
    /// Not the address of one station.
    #[error(
        "the path leads to {0}: give the unicast MAC address of the peer or of the router to it"
    )]
    Mac(Mac),
    /// Flow labels have 20 bits.
    #[error("flow_label is {0}, possible is 0 to 1048575")]
    FlowLabel(u32),
}

impl Path {
    /// Its address vector, of queue pair `qpn` to `dest_qpn`.
    pub(crate) fn vector(&self, qpn: u32, dest_qpn: u32, pkey: u16) -> AvCtx {
        let udp_sport = udp::source_port(self.flow_label, qpn, dest_qpn);
        self.image(udp_sport, dest_qpn, pkey)
    }

    /// The same, from `udp_sport` unless it names a port itself.
    fn image(&self, udp_sport: u16, dest_qpn: u32, pkey: u16) -> AvCtx {
        AvCtx {
            dgid: self.dgid.to_le_bits(),
            dmac: self.dmac.to_le_bits(),
            sgid_index: self.sgid_index,
            ipv6: !self.dgid.is_ipv4(),
            vlan_valid: self.vlan.is_some(),
            vlan: self.vlan.unwrap_or(0),
            tclass: self.traffic_class,
            hop_limit: self.hop_limit,
            udp_sport: self.udp_sport.unwrap_or(udp_sport),
            flow_label: self.flow_label,
            remote_qpn: dest_qpn,
            pkey,
            ..AvCtx::default()
        }
    }

    /// What keeps `card` from sending on it.
    pub(crate) fn check<B: Backend>(&self, card: &Card<B>) -> Result<(), PathError> {
        let needs = [
            (!self.dgid.is_ipv4(), Features::IPV6, "IPv6"),
            (self.vlan.is_some(), Features::VLAN, "VLAN tags"),
        ];
        let lacking = |(needed, feature, _): &&(bool, Features, &str)| {
            *needed && !card.info.features.contains(*feature)
        };
        if let Some((_, _, what)) = needs.iter().find(lacking) {
            return Err(PathError::Unsupported(what));
        }
        if self.flow_label >= 1 << 20 {
            return Err(PathError::FlowLabel(self.flow_label));
        }
        let sgid_index = self.sgid_index;
        let local = card.gid(sgid_index);
        let local = local.ok_or(PathError::NoGid { sgid_index })?;
        if local.is_ipv4() != self.dgid.is_ipv4() {
            let remote = self.dgid;
            return Err(PathError::Family { local, remote });
        }
        let Mac(octets) = self.dmac;
        if octets == [0; 6] || octets[0] & 1 == 1 {
            return Err(PathError::Mac(self.dmac));
        }
        Ok(())
    }
}

/// An address handle could not be created.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AhError {
    /// The path cannot be.
    #[error("no address handle: {0}")]
    Path(#[from] PathError),
    /// All are taken, or the card has none.
    #[error("all {limit} address handles of the card are in use: drop some")]
    Full {
        /// Address handles of the card; 0: it was built without UD.
        limit: u32,
    },
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// An address handle: a way that datagrams of its protection domain take; the card refuses those of others with a local operation
/// error. Requests that name it are to be completed before it is dropped; its number may then lead elsewhere.
pub struct Ah<B: Backend = AnyBackend> {
    number: u32,
    pd: Arc<PdNumber<B>>,
}

impl<B: Backend> Pd<B> {
    /// An address handle: a way that datagrams take.
    ///
    /// # Errors
    /// [`AhError`]: a path that cannot be, no handle left, or refused.
    pub fn create_ah(&self, path: &Path) -> Result<Ah<B>, AhError> {
        Ah::new(self, path)
    }
}

impl<B: Backend> Ah<B> {
    pub(crate) fn new(pd: &Pd<B>, path: &Path) -> Result<Self, AhError> {
        let card = &pd.inner().card;
        path.check(card)?;
        let limit = card.info.max_ah;
        let number = lock(&card.ahs).take().ok_or(AhError::Full { limit })?;
        let ah = Self {
            number,
            pd: pd.inner().clone(),
        };
        let udp_sport = udp::datagram_source_port(path.flow_label, number);
        let image = AvCtx {
            pd: pd.number(),
            ..path.image(udp_sport, 0, DEFAULT_PKEY)
        };
        let command = Command::new(opcode::WRITE_AH, number).with(image.emit());
        card.execute("write address handle", &command)?;
        Ok(ah)
    }

    /// Queue pair `qpn` with Q_Key `qkey` at the end of this way.
    #[must_use]
    pub fn to(&self, qpn: u32, qkey: u32) -> Destination {
        Destination {
            ah: self.number,
            qpn,
            qkey,
        }
    }
}

impl<B: Backend> Drop for Ah<B> {
    fn drop(&mut self) {
        lock(&self.pd.card.ahs).put(self.number);
    }
}

/// Where a datagram goes, see [`Ah::to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    pub(crate) ah: u32,
    pub(crate) qpn: u32,
    pub(crate) qkey: u32,
}

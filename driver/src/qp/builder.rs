//! Building of queue pairs.

use std::sync::Arc;

use ferroce_proto::abi::qpc::{RqCtx, SqCtx};
use ferroce_proto::abi::wqe::{INLINE_FIRST, RECV_SGES_FIRST, SEND_SGES_FIRST, SLOT_BYTES};
use thiserror::Error;

use super::{InitAttr, Outstanding, Qp};
use crate::congestion_control::CongestionControl;
use crate::cq::CqCore;
use crate::dma::DmaBuf;
use crate::encode;
use crate::host::lock;
use crate::queue::{Queues, WorkQueue};
use crate::srq::{Srq, SrqCore};
use crate::state::{QpState, QpType};
use crate::{AnyBackend, Backend, BackendError, Cq, DeviceInfo, Features, Pd};

/// Entries of the outstanding ring that a queue pair gets unasked, if it posts that many.
const OUTSTANDING: u32 = 64;
/// Entries of the longest outstanding ring.
const MAX_OUTSTANDING: u32 = 1 << 15;

/// A queue pair could not be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A completion queue is missing.
    #[error(
        "the queue pair has no {0} completion queue: name one with `{0}_cq`, or one for both with `cq`"
    )]
    NoCq(&'static str),
    /// Protection domain and a completion queue or shared receive queue are of different cards.
    #[error(
        "the {0} queue and the protection domain were opened on different contexts: create both on the same"
    )]
    OtherContext(&'static str),
    /// A size beyond the card's limits, or a queue of 0.
    #[error(
        "{attribute} of {value} was asked for, this build of the card takes {minimum} to {limit}"
    )]
    Limit {
        /// Name of the attribute.
        attribute: &'static str,
        /// How much.
        value: u32,
        /// At least.
        minimum: u32,
        /// At most.
        limit: u32,
    },
    /// The card does not have the transport.
    #[error("this build of the card has no {qp_type}, only {features}")]
    Transport {
        /// Transport asked for.
        qp_type: QpType,
        /// What the card has.
        features: Features,
    },
    /// All are taken.
    #[error(
        "all {limit} queue pairs of the card are in use (numbers 0 and 1 are reserved): drop some"
    )]
    Full {
        /// Queue pairs of the card.
        limit: u32,
    },
    /// There is one already.
    #[error("the queue pair of management, number 1, is in use: the port has one")]
    GsiInUse,
    /// The outstanding pool is short.
    #[error(
        "no {entries} entries in a row are left of the {limit} for unacknowledged messages: \
         ask for fewer with `outstanding`, or drop queue pairs"
    )]
    Outstanding {
        /// Entries asked for.
        entries: u32,
        /// Entries of the pool.
        limit: u32,
    },
    /// No memory, or it could not be made reachable.
    #[error("no memory for the queues")]
    Memory(#[from] BackendError),
}

/// Describes a queue pair before it is built.
#[must_use = "nothing is built before `build`"]
pub struct QpBuilder<'a, B: Backend = AnyBackend> {
    pd: &'a Pd<B>,
    qp_type: QpType,
    is_gsi: bool,
    send_cq: Option<Arc<CqCore<B>>>,
    recv_cq: Option<Arc<CqCore<B>>>,
    max_send_wr: u32,
    max_recv_wr: u32,
    max_send_sge: u32,
    max_recv_sge: u32,
    max_inline_data: u32,
    outstanding: Option<u32>,
    signal_all: bool,
    sgid_index: u8,
    psn: Option<u32>,
    srq: Option<Arc<SrqCore<B>>>,
    congestion: CongestionControl,
}

impl<'a, B: Backend> QpBuilder<'a, B> {
    pub(super) fn new(pd: &'a Pd<B>) -> Self {
        Self {
            pd,
            qp_type: QpType::Rc,
            is_gsi: false,
            send_cq: None,
            recv_cq: None,
            max_send_wr: 64,
            max_recv_wr: 64,
            max_send_sge: SEND_SGES_FIRST as u32,
            max_recv_sge: RECV_SGES_FIRST as u32,
            max_inline_data: INLINE_FIRST as u32,
            outstanding: None,
            signal_all: false,
            sgid_index: 0,
            psn: None,
            srq: None,
            congestion: *lock(&pd.inner().card.congestion),
        }
    }

    /// A reliable connection, the default.
    pub fn rc(mut self) -> Self {
        self.qp_type = QpType::Rc;
        self
    }

    /// An unreliable connection.
    pub fn uc(mut self) -> Self {
        self.qp_type = QpType::Uc;
        self
    }

    /// A queue pair for datagrams.
    pub fn ud(mut self) -> Self {
        self.qp_type = QpType::Ud;
        self
    }

    /// The one queue pair for datagrams of management, number 1 (IB1 3.9.2): connection managers talk to each other by it.
    /// Its Q_Key is [`GSI_QKEY`](crate::GSI_QKEY).
    pub fn gsi(mut self) -> Self {
        self.qp_type = QpType::Ud;
        self.is_gsi = true;
        self
    }

    /// Where send requests complete.
    pub fn send_cq(mut self, cq: &Cq<B>) -> Self {
        self.send_cq = Some(cq.core().clone());
        self
    }

    /// Where receive requests complete.
    pub fn recv_cq(mut self, cq: &Cq<B>) -> Self {
        self.recv_cq = Some(cq.core().clone());
        self
    }

    /// Where all requests complete.
    pub fn cq(self, cq: &Cq<B>) -> Self {
        self.send_cq(cq).recv_cq(cq)
    }

    /// Receives from a shared receive queue; it has no receive queue of its own.
    pub fn srq(mut self, srq: &Srq<B>) -> Self {
        self.srq = Some(srq.core().clone());
        self
    }

    /// Send requests posted at a time, with the longest list or inline data. 64 unasked.
    pub fn max_send_wr(mut self, requests: u32) -> Self {
        self.max_send_wr = requests;
        self
    }

    /// Receive requests posted at a time. 64 unasked.
    pub fn max_recv_wr(mut self, requests: u32) -> Self {
        self.max_recv_wr = requests;
        self
    }

    /// Entries of the list of a send request. 2 unasked: a WQE of one slot.
    pub fn max_send_sge(mut self, entries: u32) -> Self {
        self.max_send_sge = entries;
        self
    }

    /// Entries of the list of a receive request. 3 unasked: a WQE of one slot.
    pub fn max_recv_sge(mut self, entries: u32) -> Self {
        self.max_recv_sge = entries;
        self
    }

    /// Bytes of inline data of a send request. 32 unasked: a WQE of one slot.
    pub fn max_inline_data(mut self, bytes: u32) -> Self {
        self.max_inline_data = bytes;
        self
    }

    /// Messages unacknowledged at a time, rounded up to a power of two. Unasked 64 or the queue pair's
    /// share of the pool if that is larger, no more than it may post, and less if the pool is short.
    pub fn outstanding(mut self, messages: u32) -> Self {
        self.outstanding = Some(messages);
        self
    }

    /// Reports success of every send request, signaled or not.
    pub fn signal_all(mut self) -> Self {
        self.signal_all = true;
        self
    }

    /// Entry of the GID table that [`Qp::endpoint`] and [`Qp::connect`] use. 0 unasked.
    pub fn sgid_index(mut self, index: u8) -> Self {
        self.sgid_index = index;
        self
    }

    /// What slows it down (RC). That of [`Context::set_congestion`](crate::Context::set_congestion) unasked, which is DCQCN at first.
    pub fn congestion(mut self, control: CongestionControl) -> Self {
        self.congestion = control;
        self
    }

    /// First PSN to send, of which the low 24 bits count. The default differs between queue pairs
    /// and between incarnations of a number.
    pub fn psn(mut self, psn: u32) -> Self {
        self.psn = Some(psn);
        self
    }

    /// Builds the queue pair, in state RESET.
    ///
    /// # Errors
    /// [`BuildError`]: no completion queue, beyond a limit of the card, or nothing left of something.
    pub fn build(self) -> Result<Qp<B>, BuildError> {
        let pd = self.pd.inner();
        let info = pd.card.info;
        let send_cq = self.core(self.send_cq.as_ref(), "send")?;
        let recv_cq = self.core(self.recv_cq.as_ref(), "recv")?;
        let srq = self.srq.clone();
        if srq
            .as_ref()
            .is_some_and(|core| !Arc::ptr_eq(&core.pd.card, &pd.card))
        {
            return Err(BuildError::OtherContext("shared receive"));
        }
        let (sq_slots, rq_entries, rq_stride) = self.sizes(&info)?;
        let swift = self.congestion == CongestionControl::Swift;
        let rq_offset = sq_slots as usize * SLOT_BYTES;
        let rings = DmaBuf::new(
            &pd.card.host,
            rq_offset + ((rq_entries as usize) << rq_stride) * SLOT_BYTES,
        )?;
        let outstanding = self.take_outstanding(sq_slots)?;
        let Some(number) = lock(pd.card.qp_numbers(self.is_gsi)).take() else {
            lock(&pd.card.outstanding).put(outstanding.base, outstanding.log);
            return Err(match self.is_gsi {
                true => BuildError::GsiInUse,
                false => BuildError::Full { limit: info.max_qp },
            });
        };
        let queues = Arc::new(Queues::new(
            WorkQueue::new(sq_slots, sq_slots / self.send_slots()),
            WorkQueue::new(rq_entries, rq_entries),
            srq.as_ref().map(|core| core.queue.clone()),
        ));
        let qp = Qp {
            number,
            qp_type: self.qp_type,
            state: QpState::Reset,
            features: info.features,
            signal_all: self.signal_all,
            max_send_sge: self.max_send_sge as usize,
            max_recv_sge: self.max_recv_sge as usize,
            max_inline_data: self.max_inline_data as usize,
            max_rd_atomic: 0,
            rq_offset,
            rq_stride,
            queues,
            rings,
            outstanding,
            psn: self.psn.unwrap_or_else(|| pd.card.start_psn()) & 0xff_ffff,
            sgid_index: self.sgid_index,
            init: InitAttr::default(),
            path_mtu: None,
            image: RqCtx::default(),
            sq_image: SqCtx::default(),
            swift,
            pd: pd.clone(),
            send_cq,
            recv_cq,
            srq,
        };
        qp.attach();
        Ok(qp)
    }

    fn core(
        &self,
        cq: Option<&Arc<CqCore<B>>>,
        which: &'static str,
    ) -> Result<Arc<CqCore<B>>, BuildError> {
        let core = cq.ok_or(BuildError::NoCq(which))?;
        if !Arc::ptr_eq(&core.card, &self.pd.inner().card) {
            return Err(BuildError::OtherContext(which));
        }
        Ok(core.clone())
    }

    /// Slots of the longest send request.
    fn send_slots(&self) -> u32 {
        encode::send_slots(self.max_send_sge, self.max_inline_data)
    }

    /// Slots of the send queue, entries of the receive queue, and log2 of the slots of each of these.
    fn sizes(&self, info: &DeviceInfo) -> Result<(u32, u32, u8), BuildError> {
        let feature = match self.qp_type {
            QpType::Rc => Features::RC,
            QpType::Uc => Features::UC,
            QpType::Ud => Features::UD,
        };
        if !info.features.contains(feature) {
            let (qp_type, features) = (self.qp_type, info.features);
            return Err(BuildError::Transport { qp_type, features });
        }
        let slots = self.send_slots();
        let outstanding = info.max_outstanding.min(MAX_OUTSTANDING);
        let last_gid = info.max_gid - 1;
        let has_swift = info.features.contains(Features::SWIFT).into();
        let most = info.max_send_wr(self.max_send_sge, self.max_inline_data);
        for (attribute, value, minimum, limit) in [
            ("max_send_sge", self.max_send_sge, 0, info.max_send_sge),
            ("max_recv_sge", self.max_recv_sge, 0, info.max_recv_sge),
            (
                "max_inline_data",
                self.max_inline_data,
                0,
                info.max_inline_data,
            ),
            ("max_send_wr", self.max_send_wr, 1, most),
            ("max_recv_wr", self.max_recv_wr, 1, info.max_qp_wr),
            ("outstanding", self.outstanding.unwrap_or(1), 1, outstanding),
            ("sgid_index", self.sgid_index.into(), 0, last_gid),
            ("congestion", self.congestion as u32, 0, has_swift),
        ] {
            if !(minimum..=limit).contains(&value) {
                return Err(BuildError::Limit {
                    attribute,
                    value,
                    minimum,
                    limit,
                });
            }
        }
        let sq_slots = (self.max_send_wr * slots).next_power_of_two();
        // a shared receive queue takes the place of the own, of which an entry is left
        let max_recv_wr = if self.srq.is_some() {
            1
        } else {
            self.max_recv_wr
        };
        let rq_entries = max_recv_wr.next_power_of_two();
        Ok((
            sq_slots,
            rq_entries,
            encode::recv_stride(self.max_recv_sge as usize),
        ))
    }

    fn take_outstanding(&self, sq_slots: u32) -> Result<Outstanding, BuildError> {
        let card = &self.pd.inner().card;
        let limit = card.info.max_outstanding;
        let share = limit / card.info.max_qp;
        let entries = self
            .outstanding
            .unwrap_or(sq_slots.min(share.max(OUTSTANDING)));
        let full = BuildError::Outstanding { entries, limit };
        let most = entries.min(MAX_OUTSTANDING).next_power_of_two().ilog2();
        let least = if self.outstanding.is_some() { most } else { 0 };
        let mut pool = lock(&card.outstanding);
        let taken = (least..=most)
            .rev()
            .find_map(|log| Some((pool.take(log)?, log)));
        let (base, log) = taken.ok_or(full)?;
        Ok(Outstanding { base, log })
    }
}

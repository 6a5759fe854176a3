//! Queue pairs.

mod attr;
mod builder;
mod change;
mod connect;
mod endpoint;
mod modify;
mod post;
mod window;

use std::fmt;
use std::sync::Arc;

use ferroce_proto::abi::cmd::{self, opcode};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{RqCtx, SqCtx};
use ferroce_proto::wire::Mtu;

pub use attr::{DEFAULT_MTU, InitAttr, ModifyError, QpAttr, RtrAttr, RtsAttr};
pub use builder::{BuildError, QpBuilder};
pub use change::ChangeAttr;
pub use connect::ConnectAttr;
pub use endpoint::{EndpointError, QpEndpoint};
pub use post::{Receives, RecvHalf, SendHalf, Sends};

use crate::card::{GSI_QPN, Object, end_of_queue_pair};
use crate::command::{Command, CommandError};
use crate::cq::{Completes, CqCore};
use crate::dma::DmaBuf;
use crate::host::lock;
use crate::pd::PdNumber;
use crate::queue::Queues;
use crate::srq::SrqCore;
use crate::state::{QpState, QpType};
use crate::{AnyBackend, Backend, Features, Pd};

/// Q_Key of queue pairs of management (IB1 10.2.5).
pub const GSI_QKEY: u32 = 0x8001_0000;

/// Wait in ns of the card for the flush of a queue pair with a shared receive queue: the card does not tell that there is
/// nothing to flush.
const FLUSH_WAIT_NS: u64 = 20_000;

/// A ring of 2^`log` entries of the outstanding pool.
struct Outstanding {
    base: u32,
    log: u32,
}

/// A queue pair.
///
/// It keeps alive what it uses. When it is dropped, the card is done with it before the drop returns;
/// requests still posted are forgotten without completions.
pub struct Qp<B: Backend = AnyBackend> {
    number: u32,
    qp_type: QpType,
    state: QpState,
    features: Features,
    signal_all: bool,
    max_send_sge: usize,
    max_recv_sge: usize,
    max_inline_data: usize,
    /// READs and atomics that may be outstanding, from RTS on.
    max_rd_atomic: u8,
    /// Byte of the receive queue in `rings`, behind the send queue.
    rq_offset: usize,
    /// Log2 of the slots of a receive WQE.
    rq_stride: u8,
    queues: Arc<Queues>,
    rings: DmaBuf<B>,
    outstanding: Outstanding,
    psn: u32,
    sgid_index: u8,
    init: InitAttr,
    /// Known from RTR on.
    path_mtu: Option<Mtu>,
    /// What the card knows of the responder, from RTR on.
    image: RqCtx,
    /// And of the requester, from RTS on; before that its rate.
    sq_image: SqCtx,
    /// Its congestion control is Swift.
    swift: bool,
    pd: Arc<PdNumber<B>>,
    send_cq: Arc<CqCore<B>>,
    recv_cq: Arc<CqCore<B>>,
    srq: Option<Arc<SrqCore<B>>>,
}

/// State of a queue pair in the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QpInfo {
    /// State of the requester.
    pub sq_state: QpState,
    /// State of the responder.
    pub rq_state: QpState,
    /// Next PSN to send.
    pub sq_psn: u32,
    /// Oldest PSN not acknowledged.
    pub una_psn: u32,
    /// PSN expected.
    pub rq_psn: u32,
    /// Messages completed as responder, modulo 2^24.
    pub msn: u32,
    /// Receive requests consumed, modulo 2^16.
    pub rq_index: u16,
}

impl<B: Backend> Qp<B> {
    /// Starts to build a queue pair in a protection domain.
    pub fn builder(pd: &Pd<B>) -> QpBuilder<'_, B> {
        QpBuilder::new(pd)
    }

    /// Number of the queue pair.
    #[must_use]
    pub fn qpn(&self) -> u32 {
        self.number
    }

    /// Transport.
    #[must_use]
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// State it was brought to last, or that [`refresh`](Self::refresh) found. A failed request brings it to ERR or SQE
    /// unasked, as its completion says.
    #[must_use]
    pub fn state(&self) -> QpState {
        self.state
    }

    /// Q_Key that datagrams to it must bring (UD), from RTR on.
    #[must_use]
    pub fn qkey(&self) -> u32 {
        self.image.qkey
    }

    /// Send requests that may be posted at a time, each with the longest list or inline data: no fewer than asked for.
    #[must_use]
    pub fn max_send_wr(&self) -> u32 {
        self.queues.sq.limit()
    }

    /// Receive requests that may be posted at a time: no fewer than asked for. With a shared receive queue 1, which
    /// stays unused.
    #[must_use]
    pub fn max_recv_wr(&self) -> u32 {
        self.queues.rq.size()
    }

    /// Slots of the send queue that are free. A request takes one, or more with a long list or much inline data.
    #[must_use]
    pub fn send_slots_free(&self) -> u32 {
        self.queues.sq.free()
    }

    /// Receive requests that may be posted.
    #[must_use]
    pub fn recv_free(&self) -> u32 {
        self.queues.rq.free()
    }

    /// Messages that may be unacknowledged at a time.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        1 << self.outstanding.log
    }

    /// Asks the card for the state of the queue pair.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn query(&self) -> Result<QpInfo, CommandError> {
        let command = Command::new(opcode::QUERY_QP, self.number);
        let value = self.pd.card.execute("query QP", &command)?;
        let state = cmd::QpState::parse(&value.to_le_bytes());
        Ok(QpInfo {
            sq_state: QpState::from_code(state.sq_state),
            rq_state: QpState::from_code(state.rq_state),
            sq_psn: state.sq_psn,
            una_psn: state.una_psn,
            rq_psn: state.rq_psn,
            msn: state.msn,
            rq_index: state.rq_index,
        })
    }

    /// Asks the card for the state of the queue pair, which is that of [`state`](Self::state) from then on.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn refresh(&mut self) -> Result<QpInfo, CommandError> {
        let info = self.query()?;
        // Other states than these the two sides reach together, and by command only.
        if [info.sq_state, info.rq_state].contains(&QpState::Err) {
            self.state = QpState::Err;
        } else if info.sq_state == QpState::Sqe {
            self.state = QpState::Sqe;
        }
        Ok(info)
    }

    /// All its requests complete on `cq`.
    pub(crate) fn completes_on(&self, cq: &crate::Cq<B>) -> bool {
        [&self.send_cq, &self.recv_cq].map(|own| Arc::ptr_eq(own, cq.core())) == [true; 2]
    }

    pub(crate) fn has_srq(&self) -> bool {
        self.srq.is_some()
    }

    /// Nothing is posted whose completion was not polled.
    pub(crate) fn is_idle(&self) -> bool {
        let Queues { sq, rq, .. } = &*self.queues;
        sq.free() == sq.size() && rq.free() == rq.size()
    }

    /// Completions that name this queue pair from now on mean its present life.
    fn attach(&self) {
        let (sends, receives) = (true, Arc::ptr_eq(&self.send_cq, &self.recv_cq));
        let completes = Completes { sends, receives };
        self.send_cq.attach(self.number, &self.queues, completes);
        if !receives {
            let (sends, receives) = (false, true);
            let completes = Completes { sends, receives };
            self.recv_cq.attach(self.number, &self.queues, completes);
        }
    }

    /// Brings the card's side to RESET, with empty queues.
    fn reset(&self) -> Result<(), CommandError> {
        if self.srq.is_some() && !matches!(self.state, QpState::Reset | QpState::Init) {
            self.flush_shared();
        }
        let mut command = Command::new(opcode::MODIFY_QP, self.number);
        command.head.qp_sq_state = true;
        command.head.sq_reset = true;
        command.head.qp_rq_state = true;
        command.head.rq_reset = true;
        let reset = self.pd.card.execute_for_sure("reset QP", &command);
        lock(&self.pd.card.event_rings).flush_ends(self.number);
        reset?;
        end_of_queue_pair(&self.pd.card, self.number)?;
        // The producer indices are the host's; the card hears them in every state.
        self.ring(doorbell::sq(self.number), 0);
        self.ring(doorbell::rq(self.number), 0);
        Ok(())
    }

    /// What the responder has of a shared receive queue, that of a message under way, completes before RESET forgets it.
    fn flush_shared(&self) {
        let mut command = Command::new(opcode::MODIFY_QP, self.number);
        command.head.qp_rq_state = true;
        command.head.rq_state = QpState::Err.code();
        let card = &self.pd.card;
        // The program gets the event of an error that it knows of, and not that of this one.
        if self.state != QpState::Err {
            lock(&card.event_rings).flush_begins(self.send_cq.eqn(), self.number);
        }
        if card.execute("flush QP", &command).is_ok() {
            let flushed = || self.recv_cq.has_flushed(self.number).then_some(());
            card.host.wait(FLUSH_WAIT_NS, flushed);
        }
    }

    /// Its life is over: the completion queues forget it.
    fn detach(&self) {
        self.send_cq.detach(self.number);
        if !Arc::ptr_eq(&self.send_cq, &self.recv_cq) {
            self.recv_cq.detach(self.number);
        }
    }
}

impl<B: Backend> fmt::Debug for Qp<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qp({} {} in {})", self.qp_type, self.number, self.state)
    }
}

impl<B: Backend> Drop for Qp<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        let reset = match self.state {
            QpState::Reset => Ok(()),
            _ => self.reset(),
        };
        self.detach();
        match reset {
            Ok(()) => {
                card.end_events(Object::Qp(self.number));
                lock(card.qp_numbers(self.number == GSI_QPN)).put(self.number);
                lock(&card.outstanding).put(self.outstanding.base, self.outstanding.log);
            }
            Err(e) => tracing::error!("the number and the outstanding ring stay taken: {e}"),
        }
    }
}

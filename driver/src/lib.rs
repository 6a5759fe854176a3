//! Verbs over the card: the objects of libibverbs with Rust's ownership, over a [`Backend`]: a card
//! behind VFIO or a simulated one ([`Context::open_device`]), or one that a program brings itself ([`Context::open`]). Types
//! without a parameter are on [`AnyBackend`], a card of the first two kinds.
//!
//! | verbs | here |
//! |---|---|
//! | `ibv_get_device_list` | [`devices`] |
//! | `ibv_open_device`, `ibv_query_device` | [`Context::open_device`], [`Context::query_device`] |
//! | `ibv_alloc_pd` | [`Context::alloc_pd`] |
//! | `ibv_reg_mr`, `ibv_rereg_mr` | [`Pd::reg_mr`], or with a buffer of its own [`Pd::alloc_mr`]; [`Mr::rereg`] |
//! | `ibv_create_cq`, `ibv_poll_cq` | [`Context::create_cq`], [`Cq::poll`] |
//! | `ibv_create_comp_channel`, `ibv_req_notify_cq`, `ibv_get_cq_event` | [`Context::create_comp_channel`], [`Cq::req_notify`], [`CompChannel::get_event`]; as a stream `Context::completions` (feature `tokio`) |
//! | `ibv_ack_cq_events` | not needed: events of destroyed queues are skipped |
//! | `ibv_get_async_event` | [`Context::async_events`], [`AsyncEvents::get_event`] |
//! | `ibv_create_ah` | [`Pd::create_ah`] |
//! | `ibv_create_srq`, `ibv_post_srq_recv`, `ibv_modify_srq` | [`Pd::create_srq`], [`Srq::post_recv`], [`Srq::arm`] |
//! | `ibv_create_qp`, `ibv_modify_qp` | [`Qp::builder`], [`Qp::modify`] or in one call [`Qp::connect`]; [`Qp::change`] |
//! | `ibv_post_send`, `ibv_post_recv` | [`Qp::post_send`], [`Qp::post_recv`] |
//! | the neighbour table of the kernel | [`Neighbours`] |
//! | `mlnx_qos`: trust, classes, pauses by priority | [`Context::set_classes`] |
//! | `/sys/class/net/*/ecn` of mlx5: parameters of DCQCN, and of Swift | [`Context::set_congestion`] |
//! | a raw packet socket | [`Context::create_exception_queue`] |
//!
//! Objects hold what they need, so any order of drops is right; a drop returns when the card is done
//! with the object. Posting and polling make no system call and do not allocate; posting takes no lock.
//! Queue pairs and completion queues are used from different threads at the same time if the backend
//! is `Sync`; one of them is used by one thread at a time, as `&mut` says, or by one for each side ([`Qp::split`]).
//!
//! ```
//! use std::time::Duration;
//!
//! use ferroce_driver::{
//!     Access, Context, Gid, Mac, Qp, QpEndpoint, Remote, SendOp, SendWr, Wc,
//! };
//!
//! /// Writes `message` to the memory of a peer; `exchange` tells each side the other's endpoint.
//! fn write(
//!     message: &[u8],
//!     remote: Remote,
//!     exchange: impl FnOnce(QpEndpoint) -> QpEndpoint,
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let context = Context::open_device("0000:01:00.0")?;
//!     context.set_mac(Mac([2, 0, 0, 0, 0, 1]))?;
//!     context.set_gid(0, Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 1)))?;
//!
//!     let pd = context.alloc_pd();
//!     let mut buffer = pd.alloc_mr(message.len(), Access::empty())?;
//!     buffer.write(0, message);
//!
//!     let mut cq = context.create_cq(16)?;
//!     let mut qp = Qp::builder(&pd).rc().send_cq(&cq).recv_cq(&cq).build()?;
//!     let peer = exchange(qp.endpoint()?);
//!     qp.connect(&peer)?;
//!
//!     let list = [buffer.sge(..)];
//!     qp.post_send(&[SendWr::new(SendOp::Write(remote), &list).wr_id(1).signaled()])?;
//!     let mut wcs = [Wc::default(); 4];
//!     let n = cq.wait(&mut wcs, Duration::from_secs(1));
//!     for wc in &wcs[..n] {
//!         wc.ok()?;
//!     }
//!     Ok(())
//! }
//! ```

#![warn(missing_debug_implementations)]

mod alloc;
mod any;
mod backend;
mod barrier;
mod card;
mod classes;
mod command;
mod congestion;
mod congestion_control;
mod context;
mod cq;
mod debug;
mod device;
mod dma;
mod dma_access;
mod encode;
mod event;
pub mod eventfd;
mod exception;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod host;
#[cfg(feature = "log")]
pub mod log;
#[cfg(doctest)]
mod misuse;
mod mr;
mod names;
mod neighbour;
pub mod open;
mod owned;
mod path;
mod pd;
mod peek;
mod post_error;
mod qp;
mod queue;
mod ring;
mod sge;
mod shell;
mod srq;
mod state;
#[cfg(feature = "tokio")]
mod stream;
mod sysfs;
#[cfg(feature = "vfio")]
pub mod vfio;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;
mod wc;
mod words;
mod wr;

pub use any::AnyBackend;
pub use backend::{Backend, BackendError, Opened};
pub use card::{GidError, OpenError, READY_LIMIT_NS};
pub use classes::{ClassError, Classes, Share, Trust, Turn};
pub use command::{COMMAND_LIMIT_NS, CommandError};
pub use congestion::{Congestion, CongestionError};
pub use congestion_control::CongestionControl;
pub use context::Context;
pub use cq::{Cq, CqError, Notify};
pub use device::{AbiVersion, DeviceInfo, Features, Status};
pub use dma_access::DmaAccess;
pub use event::{AsyncEvent, AsyncEvents, CompChannel, EventAttr, EventError};
pub use exception::{EXCEPTION_LIMIT_NS, ExceptionError, ExceptionQueue, SendError};
pub use ferroce_proto::wire::{Gid, Mac, Mtu};
pub use mr::{Access, Mr, MrBuf, MrChange, MrError, Mw, MwBind, MwError, MwType};
pub use neighbour::{
    NeighbourConfig, NeighbourCounters, NeighbourState, Neighbours, Pong, ResolveError, Tap,
    TapError,
};
pub use open::{Device, OpenDeviceError, devices};
pub use owned::{Buf, Done, NotAdded, OwnedQueues, Refused, RefusedCause};
pub use path::{Ah, AhError, DEFAULT_PKEY, Destination, Path, PathError};
pub use pd::Pd;
pub use peek::{Peek, PeekError};
pub use post_error::{PostCause, PostError};
pub use qp::{
    BuildError, ChangeAttr, ConnectAttr, DEFAULT_MTU, EndpointError, GSI_QKEY, InitAttr,
    ModifyError, Qp, QpAttr, QpBuilder, QpEndpoint, QpInfo, Receives, RecvHalf, RtrAttr, RtsAttr,
    SendHalf, Sends,
};
pub use sge::Sge;
pub use srq::{SharedReceives, Srq, SrqError};
pub use state::{QpState, QpType};
#[cfg(feature = "tokio")]
pub use stream::{Completions, EventStream, StreamError};
pub use wc::{Wc, WcError, WcFlags, WcOpcode, WcStatus};
pub use wr::{Binding, Data, RecvWr, Remote, SendFlags, SendOp, SendWr};

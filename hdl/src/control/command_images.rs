//! The entry of a command as the structures that it may hold. No logic.
use crate::bus::types::image::{
    AvCtx, CmdHead, CqCtx, EqCtx, GidEntry, MrCtx, PortConfig, RqCtx, SqCtx, SrqCtx,
};
use crate::bus::unpack::Unpack;
use crate::prelude::*;

/// Head and images of an entry.
#[derive(Block)]
pub struct CommandImages {
    /// The entry.
    pub entry: Signal<In, Bits<2048>>,
    /// Head.
    pub head: Signal<Out, CmdHead>,
    /// Image 1 as requester image.
    pub sq: Signal<Out, SqCtx>,
    /// Image 1 as memory region.
    pub mr: Signal<Out, MrCtx>,
    /// Image 1 as completion queue.
    pub cq: Signal<Out, CqCtx>,
    /// Image 1 as event queue.
    pub eq: Signal<Out, EqCtx>,
    /// Image 1 as address handle.
    pub ah: Signal<Out, AvCtx>,
    /// Image 1 as shared receive queue.
    pub srq: Signal<Out, SrqCtx>,
    /// Image 1 as GID table entry.
    pub gid: Signal<Out, GidEntry>,
    /// Image 1 as port configuration.
    pub port: Signal<Out, PortConfig>,
    /// Image 2 as address vector.
    pub av: Signal<Out, AvCtx>,
    /// Image 3 as responder image.
    pub rq: Signal<Out, RqCtx>,

    as_head: Unpack<CmdHead>,
    as_sq: Unpack<SqCtx>,
    as_mr: Unpack<MrCtx>,
    as_cq: Unpack<CqCtx>,
    as_eq: Unpack<EqCtx>,
    as_ah: Unpack<AvCtx>,
    as_srq: Unpack<SrqCtx>,
    as_gid: Unpack<GidEntry>,
    as_port: Unpack<PortConfig>,
    as_av: Unpack<AvCtx>,
    as_rq: Unpack<RqCtx>,
}

impl Logic for CommandImages {
    describe!("command_images", "The entry of a command as structures.");

    #[kernel]
    fn update(&mut self) {
        as_head.word = entry.low::<512>();
        head = as_head.image;
        as_sq.word = entry.slice::<512>(512);
        sq = as_sq.image;
        as_mr.word = entry.slice::<512>(512);
        mr = as_mr.image;
        as_cq.word = entry.slice::<512>(512);
        cq = as_cq.image;
        as_eq.word = entry.slice::<512>(512);
        eq = as_eq.image;
        as_ah.word = entry.slice::<512>(512);
        ah = as_ah.image;
        as_srq.word = entry.slice::<512>(512);
        srq = as_srq.image;
        as_gid.word = entry.slice::<512>(512);
        gid = as_gid.image;
        as_port.word = entry.slice::<512>(512);
        port = as_port.image;
        as_av.word = entry.slice::<512>(1024);
        av = as_av.image;
        as_rq.word = entry.slice::<512>(1536);
        rq = as_rq.image;
    }
}

//! From fetched WQE slots to packets: wires [`wqe_check`](super::wqe_check) and [`segmenter`](super::segmenter).
use super::event::{CheckedWqe, SendCompletion, SqEvent, StartGrant};
use super::segmenter::Segmenter;
use super::wqe_check::WqeCheck;
use crate::bus::dma::MrCheckOut;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::bus::types::{Activity, FetchedWqe, GatherCmd, ReadIssue, Recall, TxDesc};
use crate::prelude::*;

/// Send WQEs of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct SendPath<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// A command writes the address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle of the images.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// Slots in.
    pub s: StreamIn<FetchedWqe>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// Start and Refetch events.
    pub start: StreamOut<SqEvent>,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, StartGrant>,
    /// A send queue goes back: packets of another round are not to be sent any more.
    pub recall_valid: Signal<In, Bit>,
    /// Which, and its round.
    pub recall: Signal<In, Recall>,
    /// READs and atomics, before their first packet.
    pub issue: StreamOut<ReadIssue>,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Pieces of payload.
    pub gather: StreamOut<GatherCmd>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// See [`Segmenter::piece_cut`].
    pub piece_cut: Signal<Out, Bit>,
    /// See [`Segmenter::part_cut`].
    pub part_cut: Signal<Out, Bit>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// WQEs on their way to packets.
    pub activity: Signal<Out, Activity>,
    check: WqeCheck<Q>,
    segmenter: Segmenter<Q>,
}

impl<const Q: usize> Logic for SendPath<Q> {
    describe!(
        "send",
        format!("q{Q}"),
        "From fetched send WQE slots to packets."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, check, segmenter);
        self.check.sq_we.next = self.sq_we.val();
        self.check.av_we.next = self.av_we.val();
        self.check.ah_we.next = self.ah_we.val();
        self.check.image_qpn.next = self.image_qpn.val();
        self.check.sq_image.next = self.sq_image.val();
        self.check.av_image.next = self.av_image.val();
        StreamIn::<FetchedWqe>::link(&mut self.s, &mut self.check.s);
        MrCheckOut::link(&mut self.mr, &mut self.check.mr);
        StreamOut::<CheckedWqe>::join(&mut self.check.m, &mut self.segmenter.s);
        self.segmenter.entry_we.next = self.check.entry_we.val();
        self.segmenter.entry_at.next = self.check.entry_at.val();
        self.segmenter.entry.next = self.check.entry.val();
        StreamOut::<SqEvent>::link(&mut self.start, &mut self.segmenter.start);
        self.segmenter.grant_valid.next = self.grant_valid.val();
        self.segmenter.grant.next = self.grant.val();
        self.segmenter.recall_valid.next = self.recall_valid.val();
        self.segmenter.recall.next = self.recall.val();
        StreamOut::<ReadIssue>::link(&mut self.issue, &mut self.segmenter.issue);
        StreamOut::<TxDesc>::link(&mut self.desc, &mut self.segmenter.desc);
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.segmenter.gather);
        StreamOut::<SendCompletion>::link(&mut self.flushed, &mut self.segmenter.flushed);
        self.piece_cut.next = self.segmenter.piece_cut.val();
        self.part_cut.next = self.segmenter.part_cut.val();
        self.retransmission.next = self.segmenter.retransmission.val();
        self.activity.next = self.segmenter.activity.val();
    }
}

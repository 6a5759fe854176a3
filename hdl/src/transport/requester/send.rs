//! From fetched WQE slots to packets: wires [`wqe_check`](super::wqe_check) and [`segmenter`](super::segmenter).
use super::event::SqEvent;
use super::grant::{SendCompletion, StartGrant};
use super::segmenter::Segmenter;
use super::send_types::{KeyDone, KeyRequest};
use super::wqe_check::WqeCheck;
use crate::bus::dma::MrCheckOut;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::bus::types::{Activity, FetchedWqe, GatherCmd, ReadIssue, Recall, TxDesc};
use crate::egress::types::{ClassSetup, ClosedClasses, RequestsAhead};
use crate::prelude::*;

/// Send WQEs of 2^Q queue pairs.
#[derive(Block)]
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
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which nothing is to start.
    pub closed: Signal<In, ClosedClasses>,
    /// No more payload is to be added to what is under way.
    pub crowded: Signal<In, Bit>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<Out, RequestsAhead>,
    /// Slots in.
    pub s: StreamIn<FetchedWqe>,
    /// Slots are on their way.
    pub more: Signal<In, Bit>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// Start, Refetch and Executed events.
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
    /// WQEs that send nothing.
    pub key: StreamOut<KeyRequest>,
    /// Those that are executed.
    pub key_done: StreamIn<KeyDone>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// See [`Segmenter::piece_cut`].
    pub piece_cut: Signal<Out, Bit>,
    /// See [`Segmenter::part_cut`].
    pub part_cut: Signal<Out, Bit>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// WQEs that wait for their checks or their grant.
    pub activity: Signal<Out, Activity>,
    /// See [`Segmenter::parts`].
    pub parts: Signal<Out, Activity>,
    check: WqeCheck<Q>,
    segmenter: Segmenter<Q>,
}

impl<const Q: usize> Logic for SendPath<Q> {
    describe!(
        "send",
        format!("q{Q}"),
        "From fetched send WQE slots to packets."
    );

    #[kernel]
    fn update(&mut self) {
        check.sq_we = sq_we;
        check.av_we = av_we;
        check.ah_we = ah_we;
        check.image_qpn = image_qpn;
        check.sq_image = sq_image;
        check.av_image = av_image;
        copy!(check <= self; mac, classes);
        copy!(segmenter <= self; closed, crowded);
        ahead = segmenter.ahead;
        forward!(s <= check.s);
        check.more = more;
        forward!(mr <= check.mr);
        forward!(segmenter.s <= check.m);
        copy!(segmenter <= check; entry_we, entry_at, entry);
        copy!(check <= segmenter; unread_valid, unread);
        forward!(start <= segmenter.start);
        segmenter.grant_valid = grant_valid;
        segmenter.grant = grant;
        segmenter.recall_valid = recall_valid;
        segmenter.recall = recall;
        forward!(issue <= segmenter.issue);
        forward!(desc <= segmenter.desc);
        forward!(gather <= segmenter.gather);
        forward!(key <= segmenter.key);
        forward!(key_done <= segmenter.key_done);
        forward!(flushed <= segmenter.flushed);
        piece_cut = segmenter.piece_cut;
        part_cut = segmenter.part_cut;
        retransmission = segmenter.retransmission;
        activity.busy = segmenter.activity.busy | check.level.any();
        activity.moved = segmenter.activity.moved;
        activity.level = segmenter.activity.level + check.level;
        parts = segmenter.parts;
    }
}

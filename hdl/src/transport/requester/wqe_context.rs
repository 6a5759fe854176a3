//! Slots of send WQEs with what the card knows of their queue pair: the first two stages of
//! [`wqe_check`](super::wqe_check).
//!
//! Latency: 2 cycles. Throughput: a slot a cycle.
use super::send_types::{Handle, SlotContext};
use crate::bus::path::kind_of;
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::egress::path_marks::PathMarks;
use crate::prelude::*;

/// Tables of 2^Q queue pairs and as many address handles, in front of the checks.
#[derive(Block)]
pub struct WqeContext<const Q: usize> {
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
    /// Slots in.
    pub s: StreamIn<FetchedWqe>,
    /// A slot is there.
    pub valid: Signal<Out, Bit>,
    /// The slot.
    pub slot: Signal<Out, SlotContext>,
    /// It is taken.
    pub load: Signal<In, Bit>,
    /// The next slot follows it at once.
    pub next_valid: Signal<Out, Bit>,
    /// The next slot stands behind it in the ring, and is of the same queue pair and epoch.
    pub joins: Signal<Out, Bit>,
    /// The next slot comes to `slot` in the next cycle.
    pub advance: Signal<Out, Bit>,
    /// The next slot.
    pub next_fetched: Signal<Out, FetchedWqe>,

    images: Ram<SqCtx, Q>,
    paths: Ram<Bits<2>, Q>,
    /// Of a former owner none is left.
    handles: SweptRam<Handle, Q>,
    path_marks: PathMarks<Q>,
    handle_marks: PathMarks<Q>,
    valid_1: Reg<Bit>,
    fetched_1: Dff<FetchedWqe>,
    valid_2: Reg<Bit>,
    slot_2: Dff<SlotContext>,
    next_index_2: Dff<Bits<16>>,
}

impl<const Q: usize> Logic for WqeContext<Q> {
    describe!(
        "wqe_context",
        format!("q{Q}"),
        "Slots of send WQEs with the images of their queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let kind = kind_of(av_image.ipv6, av_image.vlan_valid);
        images.we = sq_we;
        images.waddr = image_qpn;
        images.wdata = sq_image;
        paths.we = av_we;
        paths.waddr = image_qpn;
        paths.wdata = kind;
        handles.we = ah_we;
        handles.waddr = image_qpn;
        handles.wdata = Handle {
            there: true,
            path: kind,
            pd: av_image.pd,
        };
        // the sweep of `command` is as long, and no command comes before
        assert!(
            !ah_we | handles.ready,
            "an address handle is written in the sweep"
        );
        path_marks.we = av_we;
        path_marks.number = image_qpn;
        path_marks.av = av_image;
        path_marks.mac = mac;
        handle_marks.we = ah_we;
        handle_marks.number = image_qpn;
        handle_marks.av = av_image;
        handle_marks.mac = mac;

        // stage 1: tables are read
        let go_1 = valid_1 & (!valid_2 | load);
        let has_room = !valid_1 | go_1;
        let take = s.valid & has_room;
        s.ready = has_room;
        images.re = take;
        images.raddr = s.payload.qpn.low::<Q>();
        paths.re = take;
        paths.raddr = s.payload.qpn.low::<Q>();
        handles.re = take;
        handles.raddr = s.payload.slot.slice::<Q>(64);
        path_marks.re = take;
        path_marks.raddr = s.payload.qpn.low::<Q>();
        handle_marks.re = take;
        handle_marks.raddr = s.payload.slot.slice::<Q>(64);
        if go_1 {
            valid_1 = false;
        }
        if take {
            valid_1 = true;
            fetched_1 = s.payload;
        }

        // stage 2: a slot and what belongs to it
        if load {
            valid_2 = false;
        }
        if go_1 {
            valid_2 = true;
            next_index_2 = fetched_1.index + 1;
            slot_2 = SlotContext {
                fetched: fetched_1,
                image: images.rdata,
                path: paths.rdata,
                handle: handles.rdata.path,
                handle_is_own: handles.rdata.there & (handles.rdata.pd == images.rdata.pd),
                path_mark: path_marks.mark,
                handle_mark: handle_marks.mark,
            };
        }
        valid = valid_2;
        slot = slot_2;
        next_valid = valid_1;
        // what comes from the fetch is too late to be compared there
        joins = (fetched_1.qpn == slot_2.fetched.qpn)
            & (fetched_1.epoch == slot_2.fetched.epoch)
            & (fetched_1.index == next_index_2);
        advance = go_1;
        next_fetched = fetched_1;
    }
}

//! Exception queue (docs/exceptions.md): frames that are not RoCEv2 to the host, frames of the host to the wire. Wiring
//! only.
use super::axis_mux::AxisMux;
use super::exception_rx::ExceptionRx;
use super::exception_tx::ExceptionTx;
use super::exception_types::{ExceptionSetup, RawBeat};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::egress::types::{ClassSetup, FrameMark};
use crate::prelude::*;

/// The queue, with buffers of 2^A beats each way, and the merge of its frames with those of the transport.
#[derive(Clone, Debug, Block)]
pub struct Exceptions<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ExceptionSetup>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Frames may leave.
    pub enable: Signal<In, Bit>,
    /// A received beat.
    pub raw: Signal<In, RawBeat>,
    /// Its bytes.
    pub raw_data: Signal<In, Bits<W>>,
    /// Frames of the transport.
    pub s_axis: AxisIn<W, K>,
    /// With each beat: what its frame is.
    pub s_mark: Signal<In, FrameMark>,
    /// A frame of the host waits for room, or takes it.
    pub host_waits: Signal<Out, Bit>,
    /// Its class.
    pub host_class: Signal<Out, Bits<2>>,
    /// Its beats that have not left.
    pub host_beats: Signal<Out, Bits<13>>,
    /// It may leave.
    pub host_may_leave: Signal<In, Bit>,
    /// All frames.
    pub m_axis: AxisOut<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<Out, FrameMark>,
    /// A frame of the transport is counted in this cycle.
    pub other: Signal<In, Bit>,
    /// Writes of received frames.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Writes that have their response, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// The last one was refused by host memory.
    pub write_refused: Signal<In, Bit>,
    /// Reads of frames to send.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Frames to send that are read or passed over, modulo 2^16.
    pub consumer: Signal<Out, Bits<16>>,
    /// Memory of the host is in use.
    pub busy: Signal<Out, Bit>,
    /// A frame stands behind the consumer index, as was asked; one cycle.
    pub notify: Signal<Out, Bit>,
    /// A received frame was handed to the host; one cycle.
    pub stored: Signal<Out, Bit>,
    /// One was dropped for lack of room, or host memory refused it; one cycle.
    pub dropped: Signal<Out, Bit>,
    /// One was dropped because the queue is off; one cycle.
    pub refused: Signal<Out, Bit>,
    /// A frame of the host has left; one cycle, never together with `other`.
    pub sent: Signal<Out, Bit>,
    /// With `sent`: its bytes.
    pub sent_bytes: Signal<Out, Bits<14>>,
    rx: ExceptionRx<W, K, A>,
    tx: ExceptionTx<W, K, A>,
    mux: AxisMux<W, K>,
    no_mark: Zero<FrameMark>,
}

impl<const W: usize, const K: usize, const A: usize> Logic for Exceptions<W, K, A> {
    describe!(
        "exceptions",
        format!("w{W}_{}", 1usize << A),
        "Exception queue: frames that are not RoCEv2, to and from the host."
    );

    #[kernel]
    fn update(&mut self) {
        rx.setup = setup;
        rx.beat = raw;
        rx.data = raw_data;
        forward!(write <= rx.write);
        forward!(beats <= rx.beats);
        copy!(rx <= self; written, write_refused);
        notify = rx.notify;
        stored = rx.stored;
        dropped = rx.dropped;
        refused = rx.refused;

        tx.setup = setup;
        tx.classes = classes;
        tx.enable = enable;
        tx.other = other;
        host_waits = tx.waits;
        host_class = tx.packet_class;
        host_beats = tx.beats;
        tx.may_leave = host_may_leave;
        forward!(read <= tx.read);
        forward!(beat <= tx.beat);
        sent = tx.sent;
        sent_bytes = tx.sent_bytes;
        consumer = tx.consumer;
        busy = rx.busy | tx.busy;

        forward!(s_axis <= mux.s_axis[0]);
        forward!(mux.s_axis[1] <= tx.m_axis);
        forward!(m_axis <= mux.m_axis);
        mark = s_mark;
        if mux.second {
            mark = no_mark;
            mark.packet_class = tx.packet_class;
        }
    }
}

//! CQ write: completions into the rings of the host.
//!
//! One token at a time: read the ring's state, decide, send the CQE as one burst to `dma_write`. Three cycles a CQE at
//! W = 512, six at W = 64. Receive tokens wait until the payload writes before their fence have their response; send
//! tokens have nothing to wait for.
//!
//! The consumer index is a record in host memory. It is read again when a ring is half full or more, one read at a
//! time; a token that meets a full ring waits for a read begun after it, and only if the ring is full then is it an
//! overflow: the queue is dead from there on, its tokens are dropped and reported.
//!
//! ```text
//!  recv ─► fence ─┐
//!  send ──────────┴► Idle ─► Decide ─► Send ─► command, beats
//!  consumer record ──►┘        └► read of the record
//! ```
use crate::bus::dma::{ReadBeatIn, WriteBeatOut};
use crate::bus::payload::payload;
use crate::bus::types::image::{CqCtx, Cqe};
use crate::bus::types::{CqToken, ReadReq, WriteCmd};
use crate::prelude::*;

pub use types::*;

#[allow(missing_docs)] // the accessors that the derive generates have no documentation
mod types {
    use super::*;

    payload! {
        /// A command opens or closes a completion queue.
        CqCommand {
            /// Completion queue.
            cqn: Bits<16>,
            /// Open it afresh with `image`; else close it.
            open: Bit,
            /// The image.
            image: CqCtx,
        }

        /// Dynamic state of a completion queue.
        CqState {
            /// Exists.
            open: Bit,
            /// Has overflowed.
            dead: Bit,
            /// Entries written, modulo 2^24.
            written: Bits<24>,
            /// Entries taken by the host when last looked, modulo 2^24.
            taken: Bits<24>,
        }
    }
}

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum CqWriteState {
    /// The states of all queues are cleared after reset.
    Sweep,
    /// Chooses what is next and reads its queue's state.
    Idle,
    /// A command sets the state.
    Command,
    /// The consumer record arrived.
    Update,
    /// A token and its queue's state are there.
    Decide,
    /// The CQE leaves.
    Send,
}

/// Writer of 2^C completion queues.
#[derive(LogicBlock)]
pub struct CqWrite<const W: usize, const K: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands.
    pub command: StreamIn<CqCommand>,
    /// Completions of receives, with fence.
    pub recv: StreamIn<CqToken>,
    /// Completions of sends.
    pub send: StreamIn<CqToken>,
    /// Payload bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// CQE bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Reads of consumer records.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// A completion was lost, in this cycle.
    pub overflow: Signal<Out, Bit>,
    /// Queue pair whose completion was lost.
    pub overflow_qpn: Signal<Out, Bits<16>>,
    /// Tables are cleared after reset.
    pub ready: Signal<Out, Bit>,

    images: Ram<CqCtx, C>,
    states: Ram<CqState, C>,
    state: Reg<CqWriteState>,
    sweep: Reg<Bits<C>>,
    turn: Reg<Bit>,
    token: Dff<CqToken>,
    cmd: Dff<CqCommand>,
    waiting: Reg<Bit>,
    // the one read of a consumer record
    reading: Reg<Bit>,
    read_cqn: Dff<Bits<16>>,
    read_lane: Dff<Bits<6>>,
    read_final: Dff<Bit>,
    asked_final: Reg<Bit>,
    answered: Reg<Bit>,
    answer: Dff<Bits<24>>,
    answer_ok: Dff<Bit>,
    answer_word: Signal<Local, Bits<W>>,
    ask: Skid<ReadReq>,
    lost: Reg<Bit>,
    lost_qpn: Dff<Bits<16>>,
    // CQE on its way
    out: Skid<WriteCmd>,
    shift: Dff<Bits<512>>,
    upper: Dff<Bit>,
    left: Dff<Bits<3>>,

    fence: Signal<Local, Bits<16>>,
    recv_due: Signal<Local, Bit>,
    pick_recv: Signal<Local, Bit>,
    pick_send: Signal<Local, Bit>,
    address: Signal<Local, Bits<C>>,
    i: Signal<Local, CqCtx>,
    c: Signal<Local, CqState>,
    n: Signal<Local, CqState>,
    level: Signal<Local, Bits<24>>,
    size: Signal<Local, Bits<24>>,
    full: Signal<Local, Bit>,
    busy_ring: Signal<Local, Bit>,
    place: Signal<Local, Bits<24>>,
    accept: Signal<Local, Bit>,
    cqe: Signal<Local, Cqe>,
    cqe_bits: Signal<Local, Bits<256>>,
    sent: Signal<Local, Bit>,
    look: Signal<Local, Bit>,
    no_cqe: Zero<Cqe>,
    no_state: Zero<CqState>,
    beats_each: Constant<Bits<3>>,
    beat_bits: Constant<Bits<10>>,
    lower_half: Constant<Bits<K>>,
    upper_half: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize, const C: usize> Default for CqWrite<W, K, C> {
    fn default() -> Self {
        assert!(
            W == 8 * K,
            "a data path of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
        assert!(
            W == 512 || (64..=256).contains(&W),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
        let half = |upper: bool| {
            let mut mask: Bits<K> = Bits::default();
            for i in 0..K {
                mask = mask.replace_bit(i, K < 64 || (i >= 32) == upper);
            }
            mask
        };
        Self {
            clock: Default::default(),
            command: Default::default(),
            recv: Default::default(),
            send: Default::default(),
            done: Default::default(),
            write: Default::default(),
            beats: Default::default(),
            read: Default::default(),
            beat: Default::default(),
            overflow: Default::default(),
            overflow_qpn: Default::default(),
            ready: Default::default(),
            images: Default::default(),
            states: Default::default(),
            state: Reg::new(CqWriteState::Sweep),
            sweep: Default::default(),
            turn: Default::default(),
            token: Default::default(),
            cmd: Default::default(),
            waiting: Default::default(),
            reading: Default::default(),
            read_cqn: Default::default(),
            read_lane: Default::default(),
            read_final: Default::default(),
            asked_final: Default::default(),
            answered: Default::default(),
            answer: Default::default(),
            answer_ok: Default::default(),
            answer_word: Default::default(),
            ask: Default::default(),
            lost: Default::default(),
            lost_qpn: Default::default(),
            out: Default::default(),
            shift: Default::default(),
            upper: Default::default(),
            left: Default::default(),
            fence: Default::default(),
            recv_due: Default::default(),
            pick_recv: Default::default(),
            pick_send: Default::default(),
            address: Default::default(),
            i: Default::default(),
            c: Default::default(),
            n: Default::default(),
            level: Default::default(),
            size: Default::default(),
            full: Default::default(),
            busy_ring: Default::default(),
            place: Default::default(),
            accept: Default::default(),
            cqe: Default::default(),
            cqe_bits: Default::default(),
            sent: Default::default(),
            look: Default::default(),
            no_cqe: Default::default(),
            no_state: Default::default(),
            beats_each: Constant::new((256 / W as u64).max(1).to_bits()),
            beat_bits: Constant::new((W as u64).to_bits()),
            lower_half: Constant::new(half(false)),
            upper_half: Constant::new(half(true)),
        }
    }
}

impl<const W: usize, const K: usize, const C: usize> Logic for CqWrite<W, K, C> {
    describe!(
        "cq_write",
        format!("w{W}_c{C}"),
        "Writes completions into the rings of the host."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, states, ask, out);
        dff_setup!(
            self, clock, state, sweep, turn, token, cmd, waiting, reading, read_cqn, read_lane,
            read_final
        );
        dff_setup!(
            self,
            clock,
            asked_final,
            answered,
            answer,
            answer_ok,
            lost,
            lost_qpn,
            shift,
            upper,
            left
        );

        // defaults
        self.command.ready.next = false;
        self.recv.ready.next = false;
        self.send.ready.next = false;
        self.lost.d.next = false;
        self.ask.s.valid.next = false;
        self.out.s.valid.next = false;
        self.n.next = self.states.rdata.val();
        self.states.we.next = false;
        self.images.we.next = false;
        self.address.next = self.token.q.val().cqn.get_bits::<C>(0);

        // the consumer record arrives
        self.answer_word.next =
            self.beat.data.val() >> (bit_cast::<W, 6>(self.read_lane.q.val()) << 3);
        if self.beat.valid.val() {
            self.answered.d.next = true;
            self.answer.d.next = self.answer_word.val().get_bits::<24>(0);
            self.answer_ok.d.next = !self.beat.error.val();
        }

        // what the state of the ring says
        self.i.next = self.images.rdata.val();
        self.c.next = self.states.rdata.val();
        self.level.next = self.c.val().written - self.c.val().taken;
        self.size.next = bits::<24>(1) << self.i.val().log_size;
        self.full.next = self.level.val() >= self.size.val();
        self.busy_ring.next = (self.level.val() << 1) >= self.size.val();
        self.place.next = self.c.val().written & (self.size.val() - 1);
        self.accept.next = self.c.val().open & !self.c.val().dead & !self.full.val();

        // who is next
        self.fence.next = self.done.val() - self.recv.payload.val().fence;
        self.recv_due.next = self.recv.valid.val() & !self.fence.val().get_bit(15);
        self.pick_recv.next = self.recv_due.val() & (self.turn.q.val() | !self.send.valid.val());
        self.pick_send.next = self.send.valid.val() & !self.pick_recv.val();

        // the CQE
        self.cqe.next = self.no_cqe.val();
        self.cqe.next.qpn = bit_cast::<24, 16>(self.token.q.val().qpn);
        self.cqe.next.opcode = self.token.q.val().opcode;
        self.cqe.next.wqe_index = self.token.q.val().wqe_index;
        self.cqe.next.byte_len = self.token.q.val().byte_len;
        self.cqe.next.imm = self.token.q.val().imm;
        self.cqe.next.status = self.token.q.val().status;
        self.cqe.next.vendor_err = self.token.q.val().vendor_err;
        self.cqe.next.with_imm = self.token.q.val().with_imm;
        self.cqe.next.with_inv = self.token.q.val().with_inv;
        self.cqe.next.solicited = self.token.q.val().solicited;
        self.cqe.next.recv = self.token.q.val().recv;
        self.cqe.next.owner = !self.c.val().written.get_bit(self.i.val().log_size.index());
        self.cqe_bits.next = self.cqe.val().into();
        self.out.s.payload.next.addr =
            self.i.val().base + (bit_cast::<64, 24>(self.place.val()) << 5);
        self.out.s.payload.next.beats = bit_cast::<10, 3>(self.beats_each.val());
        self.ask.s.payload.next.addr = self.i.val().consumer;
        self.ask.s.payload.next.len = bits::<13>(4);
        self.beats.valid.next = self.state.q.val() == CqWriteState::Send;
        self.beats.data.next = self.shift.q.val().get_bits::<W>(0);
        self.beats.last.next = self.left.q.val() == 1;
        self.beats.strb.next = self.lower_half.val();
        if self.upper.q.val() {
            self.beats.strb.next = self.upper_half.val();
        }
        self.sent.next = (self.state.q.val() == CqWriteState::Send) & self.beats.ready.val();
        self.look.next = self.state.q.val() == CqWriteState::Idle;

        match self.state.q.val() {
            CqWriteState::Sweep => {
                self.address.next = self.sweep.q.val();
                self.n.next = self.no_state.val();
                self.states.we.next = true;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = CqWriteState::Idle;
                }
            }
            CqWriteState::Idle => {
                if self.answered.q.val() {
                    self.address.next = self.read_cqn.q.val().get_bits::<C>(0);
                    self.state.d.next = CqWriteState::Update;
                } else if self.command.valid.val() {
                    self.command.ready.next = true;
                    self.cmd.d.next = self.command.payload.val();
                    self.state.d.next = CqWriteState::Command;
                } else if self.waiting.q.val() {
                    // a token that met a full ring stands in `token`; it looks again when no read is under way
                    if !self.reading.q.val() {
                        self.state.d.next = CqWriteState::Decide;
                    }
                } else if self.pick_recv.val() {
                    self.address.next = self.recv.payload.val().cqn.get_bits::<C>(0);
                    self.recv.ready.next = true;
                    self.token.d.next = self.recv.payload.val();
                    self.turn.d.next = false;
                    self.state.d.next = CqWriteState::Decide;
                } else if self.pick_send.val() {
                    self.address.next = self.send.payload.val().cqn.get_bits::<C>(0);
                    self.send.ready.next = true;
                    self.token.d.next = self.send.payload.val();
                    self.turn.d.next = true;
                    self.state.d.next = CqWriteState::Decide;
                }
            }
            CqWriteState::Command => {
                self.address.next = self.cmd.q.val().cqn.get_bits::<C>(0);
                self.n.next = self.no_state.val();
                self.n.next.open = self.cmd.q.val().open;
                self.states.we.next = true;
                self.images.we.next = true;
                self.state.d.next = CqWriteState::Idle;
            }
            CqWriteState::Update => {
                self.address.next = self.read_cqn.q.val().get_bits::<C>(0);
                if self.answer_ok.q.val() {
                    self.n.next.taken = self.answer.q.val();
                }
                self.states.we.next = true;
                self.answered.d.next = false;
                self.reading.d.next = false;
                self.asked_final.d.next = self.read_final.q.val() & self.waiting.q.val();
                self.state.d.next = CqWriteState::Idle;
            }
            CqWriteState::Decide => {
                if self.accept.val() {
                    if self.out.s.ready.val() {
                        self.out.s.valid.next = true;
                        self.n.next.written = self.c.val().written + 1;
                        self.states.we.next = true;
                        self.shift.d.next = bit_cast::<512, 256>(self.cqe_bits.val())
                            | (bit_cast::<512, 256>(self.cqe_bits.val()) << 256);
                        self.upper.d.next = self.place.val().get_bit(0);
                        self.left.d.next = self.beats_each.val();
                        self.waiting.d.next = false;
                        self.asked_final.d.next = false;
                        self.state.d.next = CqWriteState::Send;
                    }
                } else if !self.c.val().open | self.c.val().dead | self.asked_final.q.val() {
                    self.n.next.dead = true;
                    self.states.we.next = self.c.val().open;
                    self.lost.d.next = true;
                    self.lost_qpn.d.next = self.token.q.val().qpn;
                    self.waiting.d.next = false;
                    self.asked_final.d.next = false;
                    self.state.d.next = CqWriteState::Idle;
                } else {
                    self.waiting.d.next = true;
                    self.state.d.next = CqWriteState::Idle;
                }
                if self.busy_ring.val()
                    & self.c.val().open
                    & !self.c.val().dead
                    & !self.reading.q.val()
                    & !self.asked_final.q.val()
                {
                    self.ask.s.valid.next = self.ask.s.ready.val();
                    self.reading.d.next = self.ask.s.ready.val();
                    self.read_cqn.d.next = self.token.q.val().cqn;
                    self.read_lane.d.next = self.i.val().consumer.get_bits::<6>(0);
                    self.read_final.d.next = self.full.val();
                }
            }
            CqWriteState::Send => {
                if self.sent.val() {
                    self.shift.d.next = self.shift.q.val() >> self.beat_bits.val();
                    self.left.d.next = self.left.q.val() - 1;
                    if self.left.q.val() == 1 {
                        self.state.d.next = CqWriteState::Idle;
                    }
                }
            }
            _ => {
                self.state.d.next = CqWriteState::Idle;
            }
        }

        self.states.waddr.next = self.address.val();
        self.states.wdata.next = self.n.val();
        self.states.raddr.next = self.address.val();
        self.images.waddr.next = self.address.val();
        self.images.wdata.next = self.cmd.q.val().image;
        self.images.re.next = self.look.val();
        self.states.re.next = self.look.val();
        self.images.raddr.next = self.address.val();
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.out.m);
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.ask.m);
        self.overflow.next = self.lost.q.val();
        self.overflow_qpn.next = self.lost_qpn.q.val();
        self.ready.next = !(self.state.q.val() == CqWriteState::Sweep);
    }
}

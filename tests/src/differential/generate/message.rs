//! Messages, sound and faulty.

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe;
use ferroce_sim::testhost::Side;

use super::{Class, Writer};
use crate::differential::scenario::{Denial, Fault, Message, Operation, Piece, Recv, region};

impl Writer {
    /// A message that nothing is wrong with.
    pub(super) fn healthy(&mut self, connection: usize, from: Side) -> Message {
        let c = &self.scenario.connections[connection];
        let (mtu, region_len, rnr_retry) = (c.mtu.bytes() as u32, c.region_len, c.rnr_retry);
        let is_rc = c.qp_type == qp_type::RC;
        let lens = [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu];
        // A packet less than some turns of a queue pair, to one more.
        let turns = [1, 2, 4, 8, 16, 128][self.rng.usize(..6)] * self.rng.u32(1..=3);
        let around = (turns - 1) * mtu + [0, mtu, mtu + 1, 2 * mtu][self.rng.usize(..4)];
        let len = match self.rng.usize(..2 * lens.len()) {
            choice if choice < lens.len() => lens[choice],
            choice if choice % 2 == 0 && around <= region_len => around,
            _ => self.rng.u32(..region_len),
        };
        let most = self.most_inline(connection, from);
        let inline = (self.rng.u8(..4) == 0).then(|| self.rng.u16(..=most));
        let len = inline.map_or(len, u32::from);
        let operation = self.operation(connection, len, inline.is_none());
        let len = match operation {
            Operation::CmpSwap(..) | Operation::FetchAdd(..) => 8,
            _ => len,
        };
        let regions = if operation.is_answered() {
            &[region::RESULT][..]
        } else {
            &[region::SOURCE, region::OTHER_SOURCE]
        };
        let most = match operation {
            Operation::CmpSwap(..) | Operation::FetchAdd(..) => 1,
            _ => self.most_gather(connection, from),
        };
        let gather = if inline.is_some() {
            Vec::new()
        } else {
            self.pieces(connection, regions, len, most)
        };
        let mut message = Message {
            connection,
            from,
            operation,
            imm: (!operation.is_answered() && self.rng.bool()).then(|| self.rng.u32(..)),
            inline,
            gather,
            signaled: self.rng.u8(..8) >= if self.unsignaled { 7 } else { 2 },
            solicited: self.rng.bool(),
            fence: self.rng.u8(..4) == 0,
            recv: None,
            fault: None,
        };
        if message.consumes() {
            let room = match message.operation {
                Operation::Send => self.rng.u32(len..=region_len),
                _ => 0,
            };
            let late = if rnr_retry == 7 && is_rc && self.rng.u8(..10) == 0 {
                self.rng.u16(1..6000)
            } else {
                0
            };
            let stride = self.scenario.connections[connection].rq_stride;
            let most = (wqe::RECV_SGES_FIRST + 4 * ((1 << stride) - 1)).min(wqe::MAX_SGE);
            message.recv = Some(Recv {
                scatter: self.pieces(connection, &[region::TARGET], room, most),
                late,
            });
        }
        message
    }

    /// What a message of `len` bytes does, as the card and the connection permit.
    fn operation(&mut self, connection: usize, len: u32, may_fetch: bool) -> Operation {
        let c = &self.scenario.connections[connection];
        let (room, is_rc) = (c.region_len, c.qp_type == qp_type::RC);
        let has = |feature| may_fetch && is_rc && self.features & feature != 0;
        let (reads, atomics) = (has(feature::READ), has(feature::ATOMIC));
        match self.rng.u8(..8) {
            0 | 1 if reads => Operation::Read(self.rng.u32(..=room - len)),
            2 if atomics => {
                let word = self.rng.u32(..4);
                let value = |rng: &mut fastrand::Rng| [0, 1, 5, rng.u64(..)][rng.usize(..4)];
                if self.rng.bool() {
                    let (compare, swap) = (value(&mut self.rng), value(&mut self.rng));
                    Operation::CmpSwap(word, compare, swap)
                } else {
                    Operation::FetchAdd(word, value(&mut self.rng))
                }
            }
            3..=5 => Operation::Send,
            _ => Operation::Write(self.rng.u32(..=room - len)),
        }
    }

    /// Slots of the longest send WQE of a queue pair.
    fn most_slots(&self, connection: usize, from: Side) -> usize {
        let ring = 1 << self.scenario.connections[connection].sq_log[from as usize];
        if self.features & feature::LONG_WQE != 0 {
            ring.min(5)
        } else {
            1
        }
    }

    fn most_gather(&self, connection: usize, from: Side) -> usize {
        let more = 4 * (self.most_slots(connection, from) - 1);
        (wqe::SEND_SGES_FIRST + more).min(wqe::MAX_SGE)
    }

    fn most_inline(&self, connection: usize, from: Side) -> u16 {
        let more = wqe::SLOT_BYTES * (self.most_slots(connection, from) - 1);
        (wqe::INLINE_FIRST + more) as u16
    }

    /// Parts of the regions that add up to `len` bytes, 0 to `most` of them.
    pub(super) fn pieces(
        &mut self,
        connection: usize,
        regions: &[usize],
        len: u32,
        most: usize,
    ) -> Vec<Piece> {
        let room = self.scenario.connections[connection].region_len;
        let least = usize::from(len > 0);
        let count = self.rng.usize(least..=most);
        let mut left = len;
        (0..count)
            .map(|i| {
                // The last is not empty, so that a fault in it counts.
                let len = if i + 1 == count {
                    left
                } else {
                    self.rng.u32(..left.max(1))
                };
                left -= len;
                Piece {
                    region: regions[self.rng.usize(..regions.len())],
                    offset: self.rng.u32(..=room - len),
                    len,
                }
            })
            .collect()
    }

    fn denial(&mut self, rights: bool) -> Denial {
        use Denial::{Before, Behind, Domain, Key, Rights, Wraps};
        let denials = [Key, Domain, Before, Behind, Wraps, Rights];
        denials[self.rng.usize(..denials.len() - usize::from(!rights))]
    }

    /// Makes a message fail.
    pub(super) fn spoil(&mut self, message: &mut Message) {
        let c = &self.scenario.connections[message.connection];
        if c.rnr_retry < 7 {
            (message.operation, message.recv, message.fault) =
                (Operation::Send, None, Some(Fault::NoReceive));
            self.shorten(message);
            return;
        }
        if message.is_empty() {
            let piece = Piece {
                region: region::SOURCE,
                offset: self.rng.u32(..c.region_len / 2),
                len: self.rng.u32(1..=c.region_len / 2),
            };
            (message.gather, message.inline) = (vec![piece], None);
            if let Operation::Read(offset) = &mut message.operation {
                *offset = 0;
            }
        }
        let kinds = match self.class {
            Class::Lossless if self.features & feature::INVALIDATE != 0 => 13,
            Class::Lossless => 12,
            Class::Lossy => 8,
        };
        let fault = match self.rng.u8(..kinds) {
            0 => Fault::Opcode(self.bad_opcode()),
            1 => Fault::Slots(self.bad_slots()),
            2 => Fault::Entries([3, 16, 17, 0xff][self.rng.usize(..4)]),
            3 => Fault::Length(if self.rng.bool() { 1 } else { -1 }),
            4 => Fault::Inline(self.rng.u8(wqe::INLINE_FIRST as u8 + 1..=64)),
            5 => Fault::TooLong,
            6 | 7 => Fault::Gather(self.denial(false)),
            8 | 9 => Fault::Remote(self.denial(true)),
            kind => {
                message.operation = Operation::Send;
                if kind == 10 {
                    Fault::ShortBuffer
                } else if kind == 12 {
                    message.imm = None;
                    Fault::Invalidate(self.rng.usize(..region::COUNT))
                } else if self.rng.u8(..4) == 0 {
                    let connection = &self.scenario.connections[message.connection];
                    let slots = 1 << connection.rq_stride;
                    Fault::RecvEntries([4 * slots, 17, 0xff][self.rng.usize(..3)])
                } else {
                    Fault::Scatter(self.denial(true))
                }
            }
        };
        if let Fault::Remote(_) = fault
            && !message.operation.is_answered()
        {
            message.operation = Operation::Write(0);
        }
        self.shorten(message);
        match fault {
            Fault::Length(_) | Fault::Entries(_) | Fault::Gather(_) if message.inline.is_some() => {
                let len = message.len();
                message.inline = None;
                message.gather = self.pieces(
                    message.connection,
                    &[region::SOURCE],
                    len,
                    wqe::SEND_SGES_FIRST,
                );
            }
            Fault::Scatter(_) | Fault::Invalidate(_) => {
                let scatter = self.pieces(message.connection, &[region::TARGET], message.len(), 3);
                message.recv = Some(Recv { scatter, late: 0 });
            }
            Fault::ShortBuffer => {
                let len = message.len() - 1;
                let scatter = self.pieces(message.connection, &[region::TARGET], len, 3);
                message.recv = Some(Recv { scatter, late: 0 });
            }
            Fault::RecvEntries(_) => {
                // Its first entry holds all of the message, or there is none.
                let scatter = match self.rng.bool() {
                    true => self.pieces(message.connection, &[region::TARGET], message.len(), 1),
                    false => Vec::new(),
                };
                message.recv = Some(Recv { scatter, late: 0 });
            }
            _ => {}
        }
        if !message.consumes() {
            message.recv = None;
        }
        message.fault = Some(fault);
    }

    /// A faulty message has one slot, and what it sends nothing else writes.
    fn shorten(&mut self, message: &mut Message) {
        let answered = message.operation.is_answered();
        if let Some(len) = message.inline {
            message.inline = Some(len.min(wqe::INLINE_FIRST as u16));
            return;
        }
        let is_result = |piece: &Piece| piece.region == region::RESULT;
        if message.gather.len() > wqe::SEND_SGES_FIRST
            || message.gather.iter().any(is_result) != answered
        {
            let kind = if answered {
                region::RESULT
            } else {
                region::SOURCE
            };
            let len = message.len();
            let most = wqe::SEND_SGES_FIRST;
            message.gather = self.pieces(message.connection, &[kind], len, most);
        }
    }

    /// A number of slots that no WQE has. Where some have several, 0 alone: how many slots are flushed for it would
    /// depend on how many were posted.
    fn bad_slots(&mut self) -> u8 {
        if self.features & feature::LONG_WQE != 0 {
            return 0;
        }
        [0, 2, 3, 4, 5, 8, 0xff][self.rng.usize(..7)]
    }

    /// An operation that the card does not have.
    fn bad_opcode(&mut self) -> u8 {
        use ferroce_proto::abi::wqe::opcode::{CMP_SWAP, FETCH_ADD, READ};
        let mut bad = vec![8, 9, 11, 12, 0x80, 0xff];
        if self.features & feature::READ == 0 {
            bad.push(READ);
        }
        if self.features & feature::ATOMIC == 0 {
            bad.extend([CMP_SWAP, FETCH_ADD]);
        }
        bad[self.rng.usize(..bad.len())]
    }
}

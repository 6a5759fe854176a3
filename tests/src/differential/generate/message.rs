//! Messages, sound and faulty.

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
        let lens = [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu];
        let len = match self.rng.usize(..2 * lens.len()) {
            choice if choice < lens.len() => lens[choice],
            _ => self.rng.u32(..region_len),
        };
        let inline = (self.rng.u8(..4) == 0).then(|| self.rng.u8(..=wqe::INLINE_FIRST as u8));
        let len = inline.map_or(len, u32::from);
        let gather = if inline.is_some() {
            Vec::new()
        } else {
            self.pieces(
                connection,
                &[region::SOURCE, region::OTHER_SOURCE],
                len,
                wqe::SEND_SGES_FIRST,
            )
        };
        let operation = if self.rng.bool() {
            Operation::Send
        } else {
            Operation::Write(self.rng.u32(..=region_len - len))
        };
        let mut message = Message {
            connection,
            from,
            operation,
            imm: self.rng.bool().then(|| self.rng.u32(..)),
            inline,
            gather,
            signaled: self.rng.u8(..4) > 0,
            solicited: self.rng.bool(),
            recv: None,
            fault: None,
        };
        if message.consumes() {
            let room = match message.operation {
                Operation::Send => self.rng.u32(len..=region_len),
                Operation::Write(_) => 0,
            };
            let late = if rnr_retry == 7 && self.rng.u8(..10) == 0 {
                self.rng.u16(1..6000)
            } else {
                0
            };
            message.recv = Some(Recv {
                scatter: self.pieces(connection, &[region::TARGET], room, wqe::RECV_SGES_FIRST),
                late,
            });
        }
        message
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
            return;
        }
        if message.is_empty() {
            let piece = Piece {
                region: region::SOURCE,
                offset: self.rng.u32(..c.region_len / 2),
                len: self.rng.u32(1..=c.region_len / 2),
            };
            (message.gather, message.inline) = (vec![piece], None);
        }
        let kinds = if self.class == Class::Lossless { 12 } else { 8 };
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
                } else if self.rng.u8(..4) == 0 {
                    Fault::RecvEntries([17, 0xff][self.rng.usize(..2)])
                } else {
                    Fault::Scatter(self.denial(true))
                }
            }
        };
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
            Fault::Remote(_) => {
                message.operation = Operation::Write(0);
            }
            Fault::Scatter(_) => {
                let scatter = self.pieces(message.connection, &[region::TARGET], message.len(), 3);
                message.recv = Some(Recv { scatter, late: 0 });
            }
            Fault::ShortBuffer => {
                let len = message.len() - 1;
                let scatter = self.pieces(message.connection, &[region::TARGET], len, 3);
                message.recv = Some(Recv { scatter, late: 0 });
            }
            Fault::RecvEntries(_) => {
                message.recv = Some(Recv {
                    scatter: Vec::new(),
                    late: 0,
                });
            }
            _ => {}
        }
        if !message.consumes() {
            message.recv = None;
        }
        message.fault = Some(fault);
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

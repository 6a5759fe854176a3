//! Scenarios from seeds.
//!
//! What a run may come to is decided here, so that it does not depend on timing:
//! * A connection on which something fails carries messages in one direction only, and nothing behind the message
//!   that fails has a receive buffer that could be taken in its place.
//! * No message reads what another may write; what is written twice is written by one connection, in its order.
//! * RNR retries are unlimited where a buffer may be late, and run out only where none will come.
//! * On a wire with loss nothing fails at the receiver: whether its NAK or the silence behind it is seen first is chance.
//! * Timers never run out on a wire without loss, but for a peer that is not there.

use fastrand::Rng;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe;
use ferroce_proto::wire::{Mtu, Opcode};
use ferroce_sim::testhost::Side;

use super::scenario::{
    Command, Connection, Denial, Fault, Forgery, Hardship, Message, Noise, Operation, Piece, Recv,
    Scenario, Spoil, Step, region,
};

/// Payload of a scenario in bytes, about.
const BYTES: u32 = 24 * 1024;

/// RNR NAK timer codes: 10 to 30 us.
const RNR_TIMERS: std::ops::RangeInclusive<u8> = 1..=3;

/// What the wire does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It harms nothing.
    Lossless,
    /// It loses, doubles, delays and spoils frames.
    Lossy,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Messages both ways.
    Healthy,
    /// Messages from one side, one of which fails.
    Failing(Side),
    /// Failed; what is posted is flushed.
    Failed(Side),
    /// Nothing more is posted.
    Over,
}

/// The scenario of a seed, for cards with the features (see `abi::regs::feature`) of the mask.
#[must_use]
pub fn scenario(seed: u64, class: Class, features: u32) -> Scenario {
    let mut rng = Rng::with_seed(seed);
    let wire = match class {
        Class::Lossless => Hardship {
            latency: rng.u64(1..60),
            ..Hardship::default()
        },
        Class::Lossy => Hardship {
            latency: rng.u64(1..60),
            loss: rng.u16(0..60),
            duplication: rng.u16(0..60),
            reordering: rng.u16(0..60),
            corruption: rng.u16(1..40),
        },
    };
    let cqs = rng.u8(1..=3);
    let count = [1, 1, 2, 2, 3, 4, 6, 8][rng.usize(..8)];
    let connections = (0..count)
        .map(|_| connection(&mut rng, class, features, cqs))
        .collect();
    let scenario = Scenario {
        seed,
        wire,
        cqs,
        connections,
        steps: Vec::new(),
    };
    let mut writer = Writer {
        courses: vec![Course::Healthy; count],
        rng,
        class,
        features,
        scenario,
        bytes: 0,
    };
    writer.write();
    writer.scenario
}

fn connection(rng: &mut Rng, class: Class, features: u32, cqs: u8) -> Connection {
    let mtu = Mtu::ALL[[0, 0, 0, 1, 1, 2, 3, 4][rng.usize(..8)]];
    let psn = |rng: &mut Rng| match rng.u8(..4) {
        0 => 0x100_0000 - rng.u32(1..8),
        1 => rng.u32(..4),
        _ => rng.u32(..1 << 24),
    };
    let pair = |rng: &mut Rng, max: u8| [rng.u8(..max), rng.u8(..max)];
    Connection {
        mtu,
        psn: [psn(rng), psn(rng)],
        sq_log: pair(rng, 6),
        rq_log: pair(rng, 5),
        rq_stride: if features & feature::LONG_WQE != 0 {
            rng.u8(..3)
        } else {
            0
        },
        ot_log: pair(rng, 5),
        timeout: match class {
            Class::Lossless => [0, 14][rng.usize(..2)],
            Class::Lossy => rng.u8(1..=2),
        },
        retry_cnt: match class {
            Class::Lossless => rng.u8(..=7),
            Class::Lossy => 7,
        },
        rnr_retry: 7,
        rnr_timer: rng.u8(RNR_TIMERS),
        send_cq: pair(rng, cqs),
        recv_cq: pair(rng, cqs),
        region_len: mtu.bytes() as u32 * 3 + rng.u32(1..100),
        misaligned: rng.u16(..128),
        vlan: (features & feature::VLAN != 0 && rng.u8(..4) == 0).then(|| rng.u16(1..4095)),
        reachable: true,
        remote_write: true,
    }
}

/// Writes the steps.
struct Writer {
    rng: Rng,
    class: Class,
    features: u32,
    courses: Vec<Course>,
    scenario: Scenario,
    bytes: u32,
}

impl Writer {
    fn write(&mut self) {
        for connection in 0..self.courses.len() {
            self.set_course(connection);
        }
        let steps = self.rng.usize(1..=24);
        for _ in 0..steps {
            match self.rng.u8(..32) {
                0..=2 => self.scenario.steps.push(Step::Rest),
                3 | 4 => self.noise(),
                5 | 6 => self.forgery(),
                7 => self.command(),
                8 => self.reconnect(),
                _ if self.bytes < BYTES => self.message(),
                _ => {}
            }
        }
        for connection in 0..self.courses.len() {
            if self.rng.u8(..3) == 0 && self.scenario.connections[connection].reachable {
                let side = self.side();
                let scatter = self.pieces(connection, &[region::TARGET], 64, 3);
                self.scenario.steps.push(Step::Spare {
                    connection,
                    side,
                    scatter,
                });
            }
        }
    }

    /// Decides what becomes of a connection.
    fn set_course(&mut self, connection: usize) {
        let side = self.side();
        let c = &mut self.scenario.connections[connection];
        self.courses[connection] = match self.rng.u8(..24) {
            0 if self.class == Class::Lossless => {
                c.reachable = false;
                (c.timeout, c.retry_cnt) = (1, self.rng.u8(..=1));
                Course::Failed(Side::A)
            }
            1 if self.class == Class::Lossless => {
                c.remote_write = false;
                Course::Failing(side)
            }
            2..=9 => Course::Failing(side),
            _ => Course::Healthy,
        };
        if matches!(self.courses[connection], Course::Failing(_)) && self.rng.u8(..4) == 0 {
            // Buffers are neither late nor do they wait for room.
            c.rnr_retry = self.rng.u8(..=2);
            c.rq_log = [5; 2];
        }
    }

    fn side(&mut self) -> Side {
        if self.rng.bool() { Side::A } else { Side::B }
    }

    fn any_connection(&mut self) -> usize {
        self.rng.usize(..self.courses.len())
    }

    fn message(&mut self) {
        let connection = self.any_connection();
        let (from, may_fail, failed) = match self.courses[connection] {
            Course::Healthy => (self.side(), false, false),
            Course::Failing(side) => (side, true, false),
            Course::Failed(side) => (side, false, true),
            Course::Over => return,
        };
        let mut message = self.healthy(connection, from);
        if !self.scenario.connections[connection].remote_write
            && matches!(message.operation, Operation::Write(_))
        {
            self.courses[connection] = Course::Failed(from);
        }
        if failed {
            message.recv = None;
        } else if may_fail && self.rng.u8(..3) == 0 {
            self.courses[connection] = Course::Failed(from);
            self.spoil(&mut message);
        }
        self.bytes += message.len();
        self.scenario.steps.push(Step::Message(message));
    }

    /// A message that nothing is wrong with.
    fn healthy(&mut self, connection: usize, from: Side) -> Message {
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
    fn pieces(
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
    fn spoil(&mut self, message: &mut Message) {
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

    fn noise(&mut self) {
        let noise = if self.rng.u8(..4) == 0 {
            let len = self.rng.usize(14..300);
            Noise::Bytes((0..len).map(|_| self.rng.u8(..)).collect())
        } else {
            use Opcode::{RcAck, RcSendOnly, RcSendOnlyImm, RcWriteFirst, RcWriteOnly};
            let opcodes = [RcAck, RcSendOnly, RcSendOnlyImm, RcWriteFirst, RcWriteOnly];
            let opcode = opcodes[self.rng.usize(..opcodes.len())];
            let spoil = match self.rng.u8(..10) {
                0 => Spoil::Icrc(self.rng.u8(..32)),
                1 => Spoil::Truncated(self.rng.u8(..)),
                2 => Spoil::UnknownQp([0, 14, 15, 0x10_0002, 0xff_ffff][self.rng.usize(..5)]),
                3 => Spoil::Pkey,
                4 => Spoil::Source,
                5 => Spoil::Destination,
                6 => Spoil::Mac,
                7 => {
                    use Opcode::{UcSendOnly, UcWriteOnly, UdSendOnly};
                    Spoil::Transport([UcSendOnly, UcWriteOnly, UdSendOnly][self.rng.usize(..3)])
                }
                8 => Spoil::Cnp,
                _ => Spoil::Port,
            };
            Noise::Spoilt {
                connection: self.any_connection(),
                opcode,
                len: self.rng.u16(..200),
                spoil,
            }
        };
        let step = Step::Noise {
            side: self.side(),
            at: self.rng.u16(..1000),
            noise,
        };
        self.scenario.steps.push(step);
    }

    fn forgery(&mut self) {
        let connection = self.any_connection();
        if self.courses[connection] != Course::Healthy {
            return;
        }
        let forgery = match self.rng.u8(..12) {
            0 | 1 => Forgery::Ahead(self.rng.u16(1..100)),
            2 | 3 => Forgery::Behind(self.rng.u16(1..100)),
            4 | 5 => Forgery::GhostAck([0x1f, 0x21, 0x60, 0x61][self.rng.usize(..4)]),
            6 => Forgery::OldAck(
                self.rng.u16(1..100),
                [0x1f, 0x21, 0x60, 0x61][self.rng.usize(..4)],
            ),
            7 => {
                use Opcode::{RcSendLast, RcSendMiddle, RcWriteLastImm, RcWriteMiddle};
                let opcodes = [RcSendMiddle, RcSendLast, RcWriteMiddle, RcWriteLastImm];
                Forgery::OutOfOrder(opcodes[self.rng.usize(..4)])
            }
            8 => Forgery::Oversized,
            9 => Forgery::Undersized,
            10 => Forgery::WrongLength(self.rng.u8(1..)),
            _ if self.features & feature::READ == 0 && self.rng.bool() => {
                Forgery::Unsupported(Opcode::RcReadRequest)
            }
            _ => Forgery::BadKey,
        };
        // An oversized packet needs a path MTU below the largest, which no frame exceeds.
        if forgery == Forgery::Oversized
            && self.scenario.connections[connection].mtu == Mtu::Mtu4096
        {
            return;
        }
        if forgery.is_fatal() {
            self.courses[connection] = Course::Over;
        }
        let side = self.side();
        self.scenario.steps.push(Step::Forgery {
            connection,
            side,
            forgery,
        });
    }

    fn command(&mut self) {
        let command = match self.rng.u8(..16) {
            0 => Command::Opcode(self.rng.u8(10..)),
            1 => Command::ModifyIndex,
            2 => Command::QueryIndex,
            3 => Command::CqIndex,
            4 => Command::MrIndex,
            5 => Command::GidIndex,
            6 => Command::CqSize([0, 23, 31][self.rng.usize(..3)]),
            7 => Command::CqAlignment(self.rng.u8(1..64)),
            8 => Command::CqRecord(self.rng.u8(1..4)),
            9 => Command::MrKey,
            10 => Command::MrBounds,
            11 => Command::State(self.rng.u8(7..)),
            12 => Command::NoContext,
            13 => Command::Mtu([0, 6, 7][self.rng.usize(..3)]),
            14 => Command::SqAlignment(self.rng.u8(1..64)),
            _ => Command::Pool,
        };
        let side = self.side();
        self.scenario.steps.push(Step::Command { side, command });
    }

    fn reconnect(&mut self) {
        let connection = self.any_connection();
        if !self.scenario.connections[connection].reachable
            || self.scenario.connections[connection].rnr_retry < 7
        {
            return;
        }
        let psn = [self.rng.u32(..1 << 24), self.rng.u32(..1 << 24)];
        self.scenario
            .steps
            .push(Step::Reconnect { connection, psn });
        self.courses[connection] =
            if self.rng.bool() && self.scenario.connections[connection].remote_write {
                Course::Healthy
            } else {
                Course::Failing(self.side())
            };
    }
}

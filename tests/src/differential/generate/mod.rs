//! Scenarios from seeds.
//!
//! What a run may come to is decided here, so that it does not depend on timing:
//! * A connection on which something fails carries messages in one direction only, and nothing behind the message
//!   that fails has a receive buffer that could be taken in its place.
//! * No message reads what another may write; what is written twice is written by one connection, in its order.
//! * No request writes what a READ reads; where its data goes nothing else does, and no request reads it.
//! * Atomics work on words that nothing else touches, of one connection, in its order.
//! * On UC nothing fails, no buffer is late, and the wire harms nothing.
//! * RNR retries are unlimited where a buffer may be late, and run out only where none will come.
//! * On a wire with loss nothing fails at the receiver: whether its NAK or the silence behind it is seen first is chance.
//! * Timers never run out on a wire without loss, but for a peer that is not there. Some are shorter than a wire may stand: what
//!   waits for it has not left.
//!
//! Some scenarios have send windows, Swift or rates: a turn of a queue pair is then a few packets, and the WQE of a message of several
//! turns is read again. Some have a message that fills a turn of a queue pair without either.

mod attack;
mod message;

use fastrand::Rng;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::Side;
use serde::{Deserialize, Serialize};

use crate::world::{Draw, draw};

use super::Pairing;
use super::scenario::{Connection, Hardship, Operation, Scenario, Step, region};

/// Payload of a scenario in bytes, about.
const BYTES: u32 = 24 * 1024;
/// Bytes of a connection's longest message: where it has several turns, and where it is longer than a turn without a rate.
const TURNS: u32 = 12 * 1024;
const LONGEST: [u32; 2] = [1 << 18, 1 << 15];

/// ACK timeout codes where nothing is lost: 67 ms, and 66 us, which is 16,384 cycles.
const LATE: u8 = 14;
const SOON: u8 = 4;
/// RNR NAK timer codes: 10 to 30 us.
const RNR_TIMERS: std::ops::RangeInclusive<u8> = 1..=3;

/// What the wire does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// It harms nothing.
    Lossless,
    /// It loses, doubles, delays and spoils frames.
    Lossy,
}

/// How a connection ends.
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
    let window = match features & feature::SEND_WINDOW {
        0 => 0,
        _ => draw(seed, Draw::Window, [0, 0, 0, 1, 2, 5, 8, 40]),
    };
    let rate = match features & feature::RATES {
        0 => 0,
        _ => draw(seed, Draw::Rate, [0, 0, 0, 0, 0, 0, 10_000, 16_000]),
    };
    // after timeouts in a row it would wait for milliseconds
    let swift = class == Class::Lossless
        && features & feature::SWIFT != 0
        && draw(seed, Draw::Swift, [false, false, false, true]);
    let mut connections: Vec<_> = (0..count)
        .map(|_| Connection {
            window,
            rate,
            swift,
            ..connection(&mut rng, class, features, cqs)
        })
        .collect();
    lengthen(&mut connections, seed, class);
    if class == Class::Lossless {
        hasten(&mut connections, seed);
    }
    let scenario = Scenario {
        seed,
        wire,
        ipv6: features & feature::IPV6 != 0 && draw(seed, Draw::Ipv6, [false, true, false, false]),
        cqs,
        connections,
        steps: Vec::new(),
    };
    let mut writer = Writer {
        courses: vec![Course::Healthy; count],
        rng,
        class,
        features,
        unsignaled: draw(seed, Draw::Signals, [false, false, false, true]),
        scenario,
        bytes: 0,
    };
    writer.write();
    writer.scenario
}

/// Longer messages than of three packets, in some scenarios: of up to 25, or in the first connection of any length.
fn lengthen(connections: &mut [Connection], seed: u64, class: Class) {
    let packets = draw(seed, Draw::Longest, [3, 3, 3, 3, 6, 12, 25, 0]);
    let rare = seed.is_multiple_of(12);
    match (packets, connections.first_mut()) {
        (3, _) => {}
        (0, Some(first)) if rare => {
            let least = first.region_len;
            first.region_len = least.max(LONGEST[class as usize] + least % 100);
        }
        (0, _) => {}
        _ => {
            for c in connections {
                let mtu = c.mtu.bytes() as u32;
                c.region_len = c
                    .region_len
                    .max(TURNS.min(packets * mtu) + c.region_len % 100);
            }
        }
    }
}

/// Timers that a wire that stands outlasts: where the peer is a golden model, which answers at once, and all are answered soon.
fn hasten(connections: &mut [Connection], seed: u64) {
    let side = match Pairing::of(seed) {
        Pairing::SideA => 0,
        Pairing::SideB => 1,
        Pairing::Both => return,
    };
    if connections.iter().all(|c| c.region_len < LONGEST[1]) {
        let all = connections.iter_mut().map(|c| &mut c.timeout[side]);
        all.filter(|code| **code == LATE)
            .for_each(|code| *code = SOON);
    }
}

fn connection(rng: &mut Rng, class: Class, features: u32, cqs: u8) -> Connection {
    let mtu = Mtu::ALL[[0, 0, 0, 1, 1, 2, 3, 4][rng.usize(..8)]];
    let psn = |rng: &mut Rng| match rng.u8(..4) {
        0 => 0x100_0000 - rng.u32(1..8),
        1 => rng.u32(..4),
        _ => rng.u32(..1 << 24),
    };
    let pair = |rng: &mut Rng, max: u8| [rng.u8(..max), rng.u8(..max)];
    let is_uc = class == Class::Lossless && features & feature::UC != 0 && rng.u8(..8) == 0;
    Connection {
        window: 0,
        rate: 0,
        swift: false,
        qp_type: if is_uc { qp_type::UC } else { qp_type::RC },
        rd_atomic: [1, 2, 4, 16][rng.usize(..4)],
        mtu,
        psn: [psn(rng), psn(rng)],
        sq_log: pair(rng, 6),
        // On UC a message that finds no buffer is lost.
        rq_log: if is_uc { [5; 2] } else { pair(rng, 5) },
        rq_stride: if features & feature::LONG_WQE != 0 {
            rng.u8(..3)
        } else {
            0
        },
        ot_log: pair(rng, 5),
        timeout: [match class {
            Class::Lossless => [0, LATE][rng.usize(..2)],
            Class::Lossy => rng.u8(1..=2),
        }; 2],
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
    /// Few messages ask for a completion.
    unsignaled: bool,
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

    /// Decides how a connection ends.
    fn set_course(&mut self, connection: usize) {
        let side = self.side();
        let c = &mut self.scenario.connections[connection];
        if c.qp_type != qp_type::RC {
            self.courses[connection] = Course::Healthy;
            return;
        }
        self.courses[connection] = match self.rng.u8(..24) {
            0 if self.class == Class::Lossless => {
                c.reachable = false;
                (c.timeout, c.retry_cnt) = ([1; 2], self.rng.u8(..=1));
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
        self.courses[connection] = if self.rng.bool()
            && self.scenario.connections[connection].remote_write
            || self.scenario.connections[connection].qp_type != qp_type::RC
        {
            Course::Healthy
        } else {
            Course::Failing(self.side())
        };
    }
}

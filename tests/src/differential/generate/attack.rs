//! Hostile frames and commands.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::{Mtu, Opcode};

use super::{Course, Writer};
use crate::differential::scenario::{Command, Forgery, Noise, Spoil, Step};

impl Writer {
    pub(super) fn noise(&mut self) {
        let connection = self.any_connection();
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
                    let is_rc = self.scenario.connections[connection].qp_type == qp_type::RC;
                    let foreign = [UdSendOnly, UcSendOnly, UcWriteOnly];
                    Spoil::Transport(foreign[self.rng.usize(..if is_rc { 3 } else { 1 })])
                }
                8 => Spoil::Cnp,
                _ => Spoil::Port,
            };
            Noise::Spoilt {
                connection,
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

    pub(super) fn forgery(&mut self) {
        let connection = self.any_connection();
        if self.courses[connection] != Course::Healthy
            || self.scenario.connections[connection].qp_type != qp_type::RC
        {
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

    /// A command that the card does not have.
    fn bad_command(&mut self) -> u8 {
        if self.features & feature::EVENTS == 0 && self.rng.bool() {
            return if self.rng.bool() {
                opcode::CREATE_EQ
            } else {
                opcode::DESTROY_EQ
            };
        }
        self.rng.u8(10..)
    }

    pub(super) fn command(&mut self) {
        let command = match self.rng.u8(..16) {
            0 => Command::Opcode(self.bad_command()),
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
}

//! Exception queue: frames that are not RoCEv2 to the host, frames of the host to the wire (docs/exceptions.md).

use std::collections::VecDeque;

use ferroce_proto::abi::eq::{Eqe, event};
use ferroce_proto::abi::exception::{
    Config, Consumer, HEAD_BYTES, Head, MAX_LOG_SLOTS, MIN_FRAME, Status,
};
use ferroce_proto::abi::regs::{self, feature};

use super::{Env, Model, stats};

/// Event queue of the reports.
const EQN: u8 = 0;
/// Frames that wait in the card for a slot.
const MAX_HELD: usize = 32;
/// The address of the rings has no bits below.
const BASE_MASK: u64 = !0xfff;

/// The queue.
#[derive(Clone, Default)]
pub(super) struct Exceptions {
    base: u64,
    config: Config,
    /// Received frames: handed to the host, given back by it; those without a slot yet.
    rx_producer: u16,
    rx_consumer: u16,
    held: VecDeque<Vec<u8>>,
    /// An event is due when a frame is there.
    armed: bool,
    /// Frames to send: handed over by the host, read by the card.
    tx_producer: u16,
    tx_consumer: u16,
}

impl Exceptions {
    fn slots(&self) -> u16 {
        1 << self.config.log_slots
    }

    /// Address of the slot of an index; those to send stand behind those to receive.
    fn slot(&self, index: u16, send: bool) -> u64 {
        let slots = self.slots();
        let place = (index & (slots - 1)) + if send { slots } else { 0 };
        self.base
            .wrapping_add(u64::from(place) * self.config.slot_bytes() as u64)
    }

    fn has_slot(&self) -> bool {
        self.rx_producer.wrapping_sub(self.rx_consumer) < self.slots()
    }

    fn event_is_due(&self) -> bool {
        self.armed && self.rx_producer != self.rx_consumer
    }

    fn has_to_send(&self) -> bool {
        self.config.on && self.tx_producer != self.tx_consumer
    }

    /// It does something in the next cycle.
    pub(super) fn is_busy(&self, enabled: bool) -> bool {
        (!self.held.is_empty() && self.has_slot())
            || self.event_is_due()
            || (enabled && self.has_to_send())
    }

    /// Writes a register; `false` if it is none of the queue's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        let bytes = value.to_le_bytes();
        match offset {
            regs::EXC_BASE_LO => {
                self.base = (self.base & !0xffff_ffff | u64::from(value)) & BASE_MASK;
            }
            regs::EXC_BASE_HI => self.base = self.base & 0xffff_ffff | u64::from(value) << 32,
            regs::EXC_CONFIG => {
                let config = Config::parse(&bytes);
                if config.on {
                    if !self.config.on {
                        (self.rx_consumer, self.tx_producer) = (0, 0);
                    }
                    self.config = Config {
                        log_slots: config.log_slots.min(MAX_LOG_SLOTS),
                        ..config
                    };
                } else {
                    *self = Self {
                        base: self.base,
                        config: Config {
                            on: false,
                            ..self.config
                        },
                        ..Self::default()
                    };
                }
            }
            regs::EXC_RX_CI => {
                let Consumer { index, arm } = Consumer::parse(&bytes);
                self.rx_consumer = index;
                self.armed |= arm && self.config.on;
            }
            regs::EXC_TX_PI => self.tx_producer = value as u16,
            _ => return false,
        }
        true
    }

    /// Reads a register; `None` if it is none of the queue's.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        Some(match offset {
            regs::EXC_BASE_LO => self.base as u32,
            regs::EXC_BASE_HI => (self.base >> 32) as u32,
            regs::EXC_CONFIG => u32::from_le_bytes(self.config.emit()),
            regs::EXC_RX_CI => self.rx_consumer.into(),
            regs::EXC_TX_PI => self.tx_producer.into(),
            regs::EXC_STATUS => u32::from_le_bytes(
                Status {
                    tx_consumer: self.tx_consumer,
                    busy: self.config.on,
                }
                .emit(),
            ),
            _ => return None,
        })
    }
}

impl Env {
    /// What memory holds at `addr`; `None` if it cannot be read.
    fn try_read(&mut self, addr: u64, data: &mut [u8]) -> Option<()> {
        let before = std::mem::take(&mut self.dma.failed);
        self.dma.read(addr, data);
        let failed = self.dma.failed;
        self.dma.failed |= before;
        (!failed).then_some(())
    }
}

impl Model {
    /// A well addressed frame that is not RoCEv2 has arrived.
    pub(super) fn except(&mut self, frame: &[u8]) {
        let queue = &mut self.exceptions;
        let counter = if !queue.config.on || !self.env.has(feature::EXCEPTION) {
            stats::RX_NOT_ROCE
        } else if frame.len() > queue.config.max_frame() || queue.held.len() >= MAX_HELD {
            stats::RX_EXCEPTION_DROPS
        } else {
            queue.held.push_back(frame.to_vec());
            return;
        };
        self.env.stats.count(counter);
    }

    /// One cycle: frames into the slots that are free, and the event.
    pub(super) fn step_exceptions(&mut self) {
        let queue = &mut self.exceptions;
        while queue.has_slot()
            && let Some(frame) = queue.held.pop_front()
        {
            let slot = queue.slot(queue.rx_producer, false);
            let head = Head {
                length: frame.len() as u16,
                owner: queue.rx_producer >> queue.config.log_slots & 1 == 0,
                ..Head::default()
            };
            self.env.dma.write(slot + HEAD_BYTES as u64, &frame);
            self.env.dma.write(slot, &head.emit());
            queue.rx_producer = queue.rx_producer.wrapping_add(1);
            self.env.stats.count(stats::RX_EXCEPTIONS);
        }
        if queue.event_is_due() {
            queue.armed = false;
            let eqe = Eqe {
                event: event::EXCEPTION,
                ..Eqe::default()
            };
            self.env.event(EQN, eqe);
        }
    }

    /// The next frame of the host.
    pub(super) fn next_exception(&mut self) -> Option<Vec<u8>> {
        let queue = &mut self.exceptions;
        while queue.has_to_send() {
            let slot = queue.slot(queue.tx_consumer, true);
            queue.tx_consumer = queue.tx_consumer.wrapping_add(1);
            let mut head = [0; Head::BYTES];
            if self.env.try_read(slot, &mut head).is_none() {
                continue;
            }
            let length = usize::from(Head::parse(&head).length);
            if !(MIN_FRAME..=queue.config.max_frame()).contains(&length) {
                continue;
            }
            let mut frame = vec![0; length];
            let at = slot + HEAD_BYTES as u64;
            if self.env.try_read(at, &mut frame).is_some() {
                self.env.stats.count(stats::TX_EXCEPTIONS);
                return Some(frame);
            }
        }
        None
    }
}

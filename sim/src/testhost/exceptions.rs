//! The exception queue of a [`Host`].

use ferroce_proto::abi::exception::{Config, HEAD_BYTES, Head};
use ferroce_proto::abi::regs;
use ferroce_proto::wire::Mac;

use super::Host;

/// EtherType of frames that no protocol reads (IEEE 802, local experimental EtherType 1). Their DSCP counts as 0.
pub const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A frame of this type with these bytes behind its header.
#[must_use]
pub fn experimental(from: Mac, to: Mac, payload: &[u8]) -> Vec<u8> {
    [&to.0[..], &from.0, &EXPERIMENTAL, payload].concat()
}

/// The host's ends of the two rings.
#[derive(Clone, Copy, Debug)]
pub struct ExceptionQueue {
    config: Config,
    base: u64,
    /// Frames taken, and frames posted.
    received: u16,
    sent: u16,
}

impl ExceptionQueue {
    /// Turns the queue on, with new rings of 2^`log_slots` slots.
    pub fn open(host: &mut Host, log_slots: u8, large: bool) -> Self {
        let config = Config {
            log_slots,
            large,
            on: true,
        };
        let base = host.alloc((2 * config.slot_bytes()) << log_slots);
        host.write32(regs::EXC_BASE_LO, base as u32);
        host.write32(regs::EXC_BASE_HI, (base >> 32) as u32);
        host.write32(regs::EXC_CONFIG, u32::from_le_bytes(config.emit()));
        Self {
            config,
            base,
            received: 0,
            sent: 0,
        }
    }

    /// Frames posted since it was opened, modulo 2^16.
    #[must_use]
    pub const fn sent(&self) -> u16 {
        self.sent
    }

    fn slot(&self, index: u16, send: bool) -> u64 {
        let slots = 1 << self.config.log_slots;
        let place = index % slots + if send { slots } else { 0 };
        self.base + u64::from(place) * self.config.slot_bytes() as u64
    }

    /// The next frame that the card has put into the ring; its slot is not given back.
    pub fn take(&mut self, host: &Host) -> Option<Vec<u8>> {
        let slot = self.slot(self.received, false);
        let bytes = host.read(slot, Head::BYTES);
        let head = Head::parse(bytes.first_chunk().expect("8 bytes"));
        let phase = self.received >> self.config.log_slots & 1 == 0;
        (head.owner == phase).then(|| {
            self.received = self.received.wrapping_add(1);
            host.read(slot + HEAD_BYTES as u64, head.length.into())
        })
    }

    /// Gives all slots back whose frames were taken; if `arm`, one event is to tell of the next frame.
    pub fn give_back(&self, host: &mut Host, arm: bool) {
        let value = u32::from(arm) << 16 | u32::from(self.received);
        host.write32(regs::EXC_RX_CI, value);
    }

    /// Puts a frame into the next slot to send, which says that it has `length` bytes; it is not handed over.
    pub fn put(&mut self, host: &Host, frame: &[u8], length: u16) {
        let slot = self.slot(self.sent, true);
        let head = Head {
            length,
            ..Head::default()
        };
        host.write(slot + HEAD_BYTES as u64, frame);
        host.write(slot, &head.emit());
        self.sent = self.sent.wrapping_add(1);
    }

    /// Hands all over that was put.
    pub fn ring(&self, host: &mut Host) {
        host.write32(regs::EXC_TX_PI, self.sent.into());
    }

    /// Sends a frame.
    pub fn post(&mut self, host: &mut Host, frame: &[u8]) {
        self.put(host, frame, frame.len() as u16);
        self.ring(host);
    }
}

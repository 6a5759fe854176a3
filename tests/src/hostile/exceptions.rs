//! The receive ring of the exception queue, amid hostile frames.

use std::collections::VecDeque;

use ferroce_proto::abi::exception::{Config, HEAD_BYTES, Head};
use ferroce_proto::abi::regs;
use ferroce_sim::testhost::Host;

/// Log2 of the slots.
const SLOTS: u8 = 4;
/// Frames before the last look that may come behind it.
const RECENT: usize = 128;

/// The receive ring of the exception queue.
pub(super) struct Exceptions {
    base: u64,
    config: Config,
    taken: u16,
    /// Frames since the look before the last one, about.
    sent: VecDeque<Vec<u8>>,
}

impl Exceptions {
    /// Turns the queue on.
    pub(super) fn open(host: &mut Host, large: bool) -> Self {
        let config = Config {
            log_slots: SLOTS,
            large,
            on: true,
        };
        let base = host.alloc((2 * config.slot_bytes()) << SLOTS);
        host.write32(regs::EXC_BASE_LO, base as u32);
        host.write32(regs::EXC_BASE_HI, (base >> 32) as u32);
        host.write32(regs::EXC_CONFIG, u32::from_le_bytes(config.emit()));
        Self {
            base,
            config,
            taken: 0,
            sent: VecDeque::new(),
        }
    }

    /// A frame was sent to the card.
    pub(super) fn sent(&mut self, frame: &[u8]) {
        self.sent.push_back(frame.to_vec());
    }

    /// Takes what came: frames that were sent.
    pub(super) fn look(&mut self, host: &mut Host) {
        loop {
            let place = u64::from(self.taken % (1 << SLOTS)) * self.config.slot_bytes() as u64;
            let slot = host.read(self.base + place, HEAD_BYTES);
            let head = Head::parse(slot.first_chunk().expect("8 bytes"));
            if head.owner != (self.taken >> SLOTS & 1 == 0) {
                break;
            }
            let frame = host.read(self.base + place + HEAD_BYTES as u64, head.length.into());
            let len = frame.len();
            assert!(
                self.sent.contains(&frame),
                "a frame of {len} bytes in the exception queue"
            );
            self.taken = self.taken.wrapping_add(1);
        }
        host.write32(regs::EXC_RX_CI, self.taken.into());
        let old = self.sent.len().saturating_sub(RECENT);
        self.sent.drain(..old);
    }
}

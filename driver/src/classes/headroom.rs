//! What still comes when a class asks for a pause, and whether the receive buffer has room for it (`docs/classes.md`).

use ferroce_proto::abi::classes::{BUFFER_PACKETS, BUFFER_UNITS, CLASSES};

use crate::classes::{ClassError, Classes};

/// Bytes of the largest frame of RoCE.
const LARGEST: usize = 4200;
/// What a peer sends until it stops, 60 quanta, and what the card adds, 200 ns, at 100 Gb/s.
const REACTION: usize = 3840 + 2500;
/// Bytes that a metre of cable holds, there and back.
const METRE: usize = 125;
/// Check sequence, preamble and gap.
const AROUND: usize = 24;
/// A unit takes half of the shortest frame with two beats of payload; a packet is the shortest.
const UNIT: usize = 94 / 2;
const PACKET: usize = 84;
/// What goes over `lossy`.
const OVER: [usize; 2] = [71, 6];

impl Classes {
    /// The buffer has room for what classes that send pauses hold and get behind XOFF, while the host sends frames of `frame` bytes.
    pub(crate) fn check_headroom(&self, frame: usize) -> Result<(), ClassError> {
        let sends = |&class: &u8| {
            let mut priorities = (0..8).zip(&self.class);
            priorities.any(|(at, &of)| of == class && self.pause_sent & 1 << at != 0)
        };
        let classes = (0..CLASSES as u8).filter(sends).count();
        let bytes =
            LARGEST.max(frame + AROUND) + LARGEST + REACTION + METRE * usize::from(self.cable_m);
        let lossy = |share: u16, over| match classes {
            CLASSES => 0,
            _ => usize::from(share) + over,
        };
        let takes =
            |xoff: u16, each, lossy| classes * (usize::from(xoff) + bytes.div_ceil(each)) + lossy;
        let units = takes(self.xoff.units, UNIT, lossy(self.lossy.units, OVER[0]));
        let packets = takes(
            self.xoff.packets,
            PACKET,
            lossy(self.lossy.packets, OVER[1]),
        );
        if classes == 0 || (units <= BUFFER_UNITS && packets <= BUFFER_PACKETS) {
            return Ok(());
        }
        Err(ClassError::Headroom {
            classes,
            cable_m: self.cable_m,
            frame,
            units,
            packets,
        })
    }
}

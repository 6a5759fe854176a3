//! What still comes when a class asks for a pause, and whether the receive buffer has room for it (`docs/classes.md`).

use ferroce_proto::abi::classes::{BUFFER_PACKETS, BUFFER_UNITS, CLASSES, HEADROOM};

use super::{ClassError, Classes};

/// Bytes on the wire of the largest frame of RoCE.
const LARGEST: usize = HEADERS + 4096 + AROUND;
/// Of its headers: Ethernet with a tag, IPv6, UDP, BTH, RETH, immediate data, ICRC.
const HEADERS: usize = 18 + 40 + 8 + 12 + 16 + 4 + 4;
/// Check sequence, preamble and gap.
const AROUND: usize = 24;
/// Units and packets of that frame, which counts when it is whole: all of it may stand above XOFF.
const CROSSING: [usize; 2] = [66, 1];
/// What waits in front of the engine until a backlog is reported, of short frames.
const WAITING: [usize; 2] = [64, 32];
/// A frame of pause.
const PAUSE: usize = 60 + AROUND;
/// A quantum, bytes.
const QUANTUM: usize = 64;
/// MAC, PCS, FEC of the card both ways, at most 122,880 bit times (IEEE 802.3, 100GBASE-R with RS-FEC), and 100 ns of its logic.
const OWN: usize = 122_880 / 8 + 1250;
/// Bytes that a metre of cable holds, there and back.
const METRE: usize = 125;
/// A unit takes half of the shortest frame with two beats of payload; a packet is the shortest.
const UNIT: usize = 94 / 2;
const PACKET: usize = 84;
/// What goes over `lossy`.
const OVER: [usize; 2] = [71, 6];

/// [`Classes::cable_m`] and [`Classes::reaction`] that the thresholds after reset are made for.
pub(super) const CABLE_M: u16 = 100;
pub(super) const REACTION: u16 = 394;

const _: () = assert!(headroom(0, REACTION, CABLE_M) == HEADROOM);

/// Bytes on the wire behind XOFF, while the host sends frames of `frame` bytes.
const fn headroom(frame: usize, reaction: u16, cable_m: u16) -> usize {
    let own = if frame + AROUND > LARGEST {
        frame + AROUND
    } else {
        LARGEST
    };
    own + PAUSE + LARGEST + QUANTUM * reaction as usize + OWN + METRE * cable_m as usize
}

impl Classes {
    /// The buffer has room for what classes that send pauses hold and get behind XOFF, while the host sends frames of `frame` bytes.
    pub(crate) fn check_headroom(&self, frame: usize) -> Result<(), ClassError> {
        let sends = |&class: &u8| {
            let mut priorities = (0..8).zip(&self.class);
            priorities.any(|(at, &of)| of == class && self.pause_sent & 1 << at != 0)
        };
        let classes = (0..CLASSES as u8).filter(sends).count();
        let bytes = headroom(frame, self.reaction, self.cable_m);
        let lossy = |share: u16, over| match classes {
            CLASSES => 0,
            _ => usize::from(share) + over,
        };
        let takes = |xoff: u16, each, lossy, of: usize| {
            let more = CROSSING[of] + WAITING[of] + bytes.div_ceil(each);
            classes * (usize::from(xoff) + more) + lossy
        };
        let units = takes(self.xoff.units, UNIT, lossy(self.lossy.units, OVER[0]), 0);
        let packets = takes(
            self.xoff.packets,
            PACKET,
            lossy(self.lossy.packets, OVER[1]),
            1,
        );
        if classes == 0 || (units <= BUFFER_UNITS && packets <= BUFFER_PACKETS) {
            return Ok(());
        }
        Err(ClassError::Headroom {
            classes,
            cable_m: self.cable_m,
            reaction: self.reaction,
            frame,
            units,
            packets,
        })
    }
}

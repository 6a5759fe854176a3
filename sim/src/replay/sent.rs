//! A packet of the device under test.

use ferroce_proto::wire::{Ext, Packet};

use super::Difference;
use crate::scoreboard::icrc::Roce;

/// A packet of the device under test.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) packet: Packet,
}

impl Sent {
    /// Checks a frame of the device by two implementations of the ICRC.
    pub(super) fn check(bytes: Vec<u8>) -> Result<Self, Difference> {
        let wrong = |what: &str, expected: String, found: String| Difference {
            packet: None,
            what: what.to_owned(),
            expected,
            found,
        };
        if let Some(roce) = Roce::locate(&bytes) {
            let (expected, carried) = (roce.expected(&bytes), roce.carried(&bytes));
            if expected != carried {
                let text = |icrc: u32| format!("{icrc:#010x}");
                return Err(wrong(
                    "ICRC of a packet sent",
                    text(expected),
                    text(carried),
                ));
            }
        }
        match Packet::parse(&bytes) {
            Ok(packet) => Ok(Self { bytes, packet }),
            Err(error) => Err(wrong(
                "packet sent",
                "a RoCEv2 packet".to_owned(),
                format!("{error}: {bytes:02x?}"),
            )),
        }
    }

    /// Makes a datagram one of queue pair `qpn`.
    pub(super) fn come_from(&mut self, qpn: u32) {
        let transport = self.packet.headers.bth.opcode.ext_offset(Ext::Deth);
        if let (Some(roce), Some(deth)) = (Roce::locate(&self.bytes), transport) {
            let at = roce.bth() + deth + 5;
            self.bytes[at..at + 3].copy_from_slice(&qpn.to_be_bytes()[1..]);
            roce.seal(&mut self.bytes);
        }
    }
}

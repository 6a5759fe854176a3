//! The check of a capture: what passed the wire, and whether every ICRC is right, by two implementations.

use std::path::Path;

use anyhow::{Context, Result};
use ferroce_proto::wire::Packet;
use ferroce_sim::pcap;
use ferroce_sim::scoreboard::icrc::Roce;

/// UDP port of RoCEv2.
const PORT: [u8; 2] = 4791u16.to_be_bytes();

/// Frames that passed the port of our card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    /// RoCEv2 packets that it sent.
    pub sent: u64,
    /// RoCEv2 packets that it received.
    pub received: u64,
    /// Frames that are not RoCEv2.
    pub other: u64,
    /// Packets that are not right, each in words.
    pub wrong: Vec<String>,
}

/// Reads a capture of the card with the address `mac`.
pub(super) fn check(path: &Path, mac: [u8; 6]) -> Result<Frames> {
    let capture = pcap::read(path).with_context(|| path.display().to_string())?;
    let mut frames = Frames::default();
    for (number, packet) in (1..).zip(&capture.packets) {
        frames.add(number, &packet.data, mac);
    }
    Ok(frames)
}

impl Frames {
    fn add(&mut self, number: usize, frame: &[u8], mac: [u8; 6]) {
        let Some(roce) = Roce::locate(frame) else {
            // One that is cut short is a packet all the same.
            if is_to_roce(frame) {
                self.wrong.push(format!("packet {number} is cut short"));
            } else {
                self.other += 1;
            }
            return;
        };
        match frame.get(6..12) == Some(&mac[..]) {
            true => self.sent += 1,
            false => self.received += 1,
        }
        let (expected, carried) = (roce.expected(frame), roce.carried(frame));
        if expected != carried {
            let text =
                format!("packet {number} has ICRC {carried:#010x}, {expected:#010x} is right");
            self.wrong.push(text);
        } else if let Err(error) = Packet::parse(frame) {
            self.wrong.push(format!("packet {number}: {error}"));
        }
    }
}

/// UDP to the port of RoCEv2, without options or extensions.
fn is_to_roce(frame: &[u8]) -> bool {
    let (protocol, port) = match frame.get(12..14) {
        Some([0x08, 0x00]) => (23, 36),
        Some([0x86, 0xdd]) => (20, 56),
        _ => return false,
    };
    frame.get(protocol) == Some(&17) && frame.get(port..port + 2) == Some(&PORT[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/captures")
            .join(name)
    }

    /// The first RoCEv2 packet.
    fn packet(all: &[pcap::Packet]) -> Vec<u8> {
        let mut frames = all.iter().map(|packet| packet.data.clone());
        frames.find(|f| Roce::locate(f).is_some()).unwrap()
    }

    #[test]
    fn a_capture_of_real_traffic_is_right() {
        let path = captured("rc_send_64.pcap");
        let all = pcap::read(&path).unwrap().packets;
        let mac: [u8; 6] = packet(&all)[6..12].try_into().unwrap();
        let frames = check(&path, mac).unwrap();
        assert_eq!(frames.wrong, [""; 0]);
        assert!(frames.sent > 0 && frames.received > 0, "{frames:?}");
        let count = frames.sent + frames.received + frames.other;
        assert_eq!(count, all.len() as u64);
    }

    #[test]
    fn what_is_damaged_is_found() {
        let all = pcap::read(captured("rc_send_64.pcap")).unwrap().packets;
        let sound = packet(&all);
        let wrong = |frame: &[u8]| {
            let mut frames = Frames::default();
            frames.add(7, frame, [0; 6]);
            frames.wrong.join("; ")
        };
        assert_eq!(wrong(&sound), "");
        let mut flipped = sound.clone();
        flipped[60] ^= 1;
        assert!(wrong(&flipped).contains("packet 7 has ICRC"));
        assert!(wrong(&sound[..50]).contains("cut short"));
        let mut arp = vec![0; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(wrong(&arp), "");
        let none = check(Path::new("/no/such.pcapng"), [0; 6]);
        assert!(format!("{:#}", none.unwrap_err()).contains("/no/such.pcapng"));
    }
}

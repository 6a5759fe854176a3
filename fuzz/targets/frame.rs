//! The reader of RoCEv2 frames, which the golden model has: what it accepts is, written again, the same packet.
#![no_main]

use ferroce_proto::wire::{Packet, icrc};
use libfuzzer_sys::fuzz_target;

/// The frame with a right IPv4 checksum and ICRC, if it has the places: nothing behind these checks is reached else.
fn sealed(frame: &[u8]) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    let start = if frame.get(12..14)? == [0x81, 0] {
        18
    } else {
        14
    };
    let word =
        |frame: &[u8], at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let length = match frame.get(start)? >> 4 {
        4 => {
            frame.get_mut(start + 10..start + 12)?.fill(0);
            let words = (0..10).map(|i| word(&frame, start + 2 * i).map(u32::from));
            let sum = words.sum::<Option<u32>>()?;
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
            word(&frame, start + 2)?.into()
        }
        _ => 40 + usize::from(word(&frame, start + 4)?),
    };
    icrc::seal(frame.get_mut(start..start + length)?).ok()?;
    Some(frame)
}

fn check(frame: &[u8]) {
    let Ok(packet) = Packet::parse(frame) else {
        return;
    };
    let payload = &frame[packet.payload.clone()];
    let mut again = vec![0; packet.headers.frame_len(payload.len())];
    assert_eq!(packet.headers.build(payload, &mut again), Ok(again.len()));
    let second = Packet::parse(&again).expect("what was built is a packet");
    assert_eq!(second.headers, packet.headers);
    assert_eq!(&again[second.payload], payload);
}

fuzz_target!(|frame: &[u8]| {
    check(frame);
    sealed(frame).iter().for_each(|frame| check(frame));
});

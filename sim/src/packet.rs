//! Frames of packets.

use ferroce_proto::wire::Headers;

/// The frame of a packet, with pad and ICRC.
///
/// # Panics
/// If the headers lack an extension header of their opcode, or the payload does not fit it.
#[must_use]
pub fn frame(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers.frame_len(payload.len())];
    let built = headers.build(payload, &mut frame);
    built.expect("extension headers and payload follow the opcode");
    frame
}

//! A whole RoCEv2 frame: Ethernet, IP, UDP, BTH, extension headers, payload, pad, ICRC.
//!
//! Frames carry no frame check sequence. A frame built here is not padded to the Ethernet minimum of
//! 60 bytes, which is the MAC's business; a frame parsed here may be: all lengths come from IP and
//! UDP, and bytes behind the ICRC are ignored.

use core::ops::Range;

use super::{BuildError, Error, Extensions, Ip, Mtu, Opcode, bth, eth, icrc, ip::GRH_LEN, udp};

/// Headers of a packet. Lengths, PadCnt, checksums and ICRC follow from them and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Ethernet header.
    pub eth: eth::Repr,
    /// IP header.
    pub ip: Ip,
    /// UDP header.
    pub udp: udp::Repr,
    /// Base transport header.
    pub bth: bth::Repr,
    /// Extension headers.
    pub ext: Extensions,
}

/// A frame that a receiver may take: well formed and with a correct ICRC.
///
/// What depends on the queue pair (its number, transport, state, partition key, addresses, PSN, path
/// MTU) remains to be checked, and so does queue pair 0, which no RoCEv2 port has (A17 CA17-33).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Headers.
    pub headers: Headers,
    /// Where the payload stands in the frame, in bytes, without pad; empty when there is none.
    pub payload: Range<usize>,
}

impl Packet {
    /// Reads a frame, from the Ethernet header on and without frame check sequence.
    ///
    /// Fails with the reason to drop it; [`Error`] lists the reasons in the order of the checks.
    pub fn parse(frame: &[u8]) -> Result<Self, Error> {
        let (eth, ethertype) = eth::Repr::parse(frame)?;
        let after_eth = &frame[eth.header_len()..];
        let (ip, ip_payload_len) = Ip::parse(ethertype, after_eth)?;
        let datagram_len = ip.header_len() + ip_payload_len;
        let datagram = after_eth.get(..datagram_len).ok_or(Error::FrameTruncated {
            need: datagram_len,
            have: after_eth.len(),
        })?;
        let udp_header = udp::Header::new_checked(&datagram[ip.header_len()..])?;
        let udp = udp::Repr::parse(&udp_header, ip_payload_len)?;
        let transport = &datagram[ip.header_len() + udp::LEN..];
        let bth_header = bth::Header::new_checked(transport)?;
        let bth = bth::Repr::parse(&bth_header)?;
        let body_len = body_len(bth.opcode, transport.len())?;
        let payload_len = payload_len(bth.opcode, body_len, bth_header.pad_cnt())?;
        let ext = Extensions::parse(bth.opcode, transport)?;
        icrc::check(datagram)?;
        let start = eth.header_len() + ip.header_len() + udp::LEN + bth.opcode.header_len();
        Ok(Self {
            headers: Headers {
                eth,
                ip,
                udp,
                bth,
                ext,
            },
            payload: start..start + payload_len,
        })
    }

    /// What a UD receive buffer starts with: the IP header as received in the last of
    /// [`GRH_LEN`] bytes, 0 before it. `frame` is the one the packet was parsed from.
    #[must_use]
    pub fn grh(&self, frame: &[u8]) -> [u8; GRH_LEN] {
        let Headers { eth, ip, .. } = &self.headers;
        let mut grh = [0; GRH_LEN];
        grh[GRH_LEN - ip.header_len()..]
            .copy_from_slice(&frame[eth.header_len()..][..ip.header_len()]);
        grh
    }
}

/// Bytes of payload and pad in `transport_len` bytes from BTH to ICRC.
fn body_len(opcode: Opcode, transport_len: usize) -> Result<usize, Error> {
    let need = opcode.header_len() + icrc::LEN;
    transport_len
        .checked_sub(need)
        .ok_or(Error::ExtensionTruncated {
            opcode,
            need,
            have: transport_len,
        })
}

/// Bytes of payload in `body_len` bytes of payload and pad.
fn payload_len(opcode: Opcode, body_len: usize, pad_cnt: u8) -> Result<usize, Error> {
    if body_len != 0 && !opcode.has_payload() {
        return Err(Error::UnexpectedPayload {
            opcode,
            have: body_len,
        });
    }
    if !body_len.is_multiple_of(4) {
        return Err(Error::PayloadAlignment(body_len));
    }
    let pad = usize::from(pad_cnt);
    match body_len.checked_sub(pad) {
        None => Err(Error::Pad {
            pad,
            have: body_len,
        }),
        Some(len) if len > Mtu::MAX.bytes() => Err(Error::PayloadTooLong(len)),
        Some(len) => Ok(len),
    }
}

impl Headers {
    /// Length in bytes of the frame with `payload_len` bytes of payload, from the Ethernet header to
    /// the ICRC.
    #[must_use]
    pub const fn frame_len(&self, payload_len: usize) -> usize {
        self.eth.header_len()
            + self.ip.header_len()
            + udp::LEN
            + self.bth.opcode.header_len()
            + payload_len.next_multiple_of(4)
            + icrc::LEN
    }

    /// Writes the whole frame, with pad and ICRC, to the start of `frame` and gives its length.
    ///
    /// Fails with a [`BuildError`]; what `frame` holds is then unspecified.
    pub fn build(&self, payload: &[u8], frame: &mut [u8]) -> Result<usize, BuildError> {
        let opcode = self.bth.opcode;
        if payload.len() > Mtu::MAX.bytes() {
            return Err(BuildError::PayloadTooLong(payload.len()));
        }
        if !payload.is_empty() && !opcode.has_payload() {
            return Err(BuildError::UnexpectedPayload {
                opcode,
                len: payload.len(),
            });
        }
        let (need, have) = (self.frame_len(payload.len()), frame.len());
        let frame = frame
            .get_mut(..need)
            .ok_or(BuildError::Buffer { need, have })?;
        let (eth, datagram) = frame.split_at_mut(self.eth.header_len());
        let (ip, udp_datagram) = datagram.split_at_mut(self.ip.header_len());
        // The longest datagram is that of the largest path MTU, far below 2^16 bytes.
        let udp_len = udp_datagram.len() as u16;
        let (udp, transport) = udp_datagram.split_at_mut(udp::LEN);
        let pad_cnt = (payload.len().next_multiple_of(4) - payload.len()) as u8;

        self.eth.emit(self.ip.ethertype(), eth);
        self.ip.emit(udp_len, ip);
        udp.copy_from_slice(&self.udp.emit(udp_len));
        transport[..bth::LEN].copy_from_slice(&self.bth.emit(pad_cnt));
        self.ext.emit(opcode, transport)?;
        let (body, pad) = transport[opcode.header_len()..].split_at_mut(payload.len());
        body.copy_from_slice(payload);
        pad.fill(0);
        icrc::seal(datagram).expect("the datagram has all its headers");
        Ok(need)
    }
}

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

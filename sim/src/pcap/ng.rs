//! Reading pcapng (draft-ietf-opsawg-pcapng).

use super::{Capture, ETHERNET, Error, Order, Packet, slice};

/// Block type of a section header; reads the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const OPT_IF_NAME: u16 = 2;
const OPT_IF_TSRESOL: u16 = 9;
const OPT_IF_TSOFFSET: u16 = 14;

/// An interface of the present section.
struct Interface {
    /// Its index in the capture.
    index: usize,
    link_type: u16,
    snap_len: usize,
    /// Units of its time stamps in a second.
    units: u128,
    /// Seconds added to them.
    offset: i64,
}

/// A block without its frame of type and lengths.
struct Block<'a> {
    kind: u32,
    /// Where the block starts in the file.
    offset: usize,
    body: &'a [u8],
    order: Order,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Capture, Error> {
    let mut capture = Capture::default();
    let mut interfaces = Vec::new();
    let mut order = Order::Little;
    let mut at = 0;
    while at < bytes.len() {
        let (block, next) = Block::read(bytes, at, order)?;
        match block.kind {
            SECTION => {
                order = block.order;
                interfaces.clear();
            }
            INTERFACE => interfaces.push(block.interface(&mut capture)?),
            ENHANCED_PACKET => capture.packets.push(block.enhanced_packet(&interfaces)?),
            SIMPLE_PACKET => capture.packets.push(block.simple_packet(&interfaces)?),
            _ => {}
        }
        at = next;
    }
    Ok(capture)
}

impl<'a> Block<'a> {
    /// The block at `offset`, and where the next one starts.
    fn read(bytes: &'a [u8], offset: usize, order: Order) -> Result<(Self, usize), Error> {
        let head = slice(bytes, offset, 12, "the header of a block")?;
        let kind = order.u32(head, 0);
        let order = match (kind, &head[8..]) {
            (SECTION, [0x4d, 0x3c, 0x2b, 0x1a]) => Order::Little,
            (SECTION, [0x1a, 0x2b, 0x3c, 0x4d]) => Order::Big,
            (SECTION, _) => {
                return Err(Error::Damaged {
                    offset: offset + 8,
                    what: "the byte-order magic of a section is neither way round".into(),
                });
            }
            _ => order,
        };
        let len = order.u32(head, 4) as usize;
        if len < 12 || !len.is_multiple_of(4) {
            return Err(Error::Damaged {
                offset: offset + 4,
                what: format!(
                    "a block of {len} bytes; at least 12 and a multiple of 4 is expected"
                ),
            });
        }
        let block = slice(bytes, offset, len, format!("a block of type {kind}"))?;
        let trailer = order.u32(block, len - 4) as usize;
        if trailer != len {
            return Err(Error::Damaged {
                offset: offset + len - 4,
                what: format!("a block of {len} bytes says {trailer} at its end"),
            });
        }
        let body = &block[8..len - 4];
        Ok((
            Self {
                kind,
                offset,
                body,
                order,
            },
            offset + len,
        ))
    }

    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged {
            offset: self.offset,
            what: what.into(),
        }
    }

    /// The body, if at least `len` bytes long.
    fn at_least(&self, len: usize) -> Result<&'a [u8], Error> {
        if self.body.len() < len {
            let have = self.body.len();
            return Err(self.damaged(format!("a block body of {have} bytes; {len} are needed")));
        }
        Ok(self.body)
    }

    fn interface(&self, capture: &mut Capture) -> Result<Interface, Error> {
        let body = self.at_least(8)?;
        let mut interface = Interface {
            index: capture.interfaces.len(),
            link_type: self.order.u16(body, 0),
            snap_len: self.order.u32(body, 4) as usize,
            units: 1_000_000,
            offset: 0,
        };
        let mut name = String::new();
        self.options(&body[8..], |code, value| {
            match (code, value) {
                (OPT_IF_NAME, name_bytes) => {
                    name = String::from_utf8_lossy(name_bytes).into_owned()
                }
                (OPT_IF_TSRESOL, &[resolution, ..]) => {
                    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    let power = u32::from(resolution & 0x7f);
                    interface.units = base
                        .checked_pow(power)
                        .filter(|u| *u <= 1 << 64)
                        .ok_or_else(|| {
                            self.damaged(format!("a time stamp resolution of {base}^-{power} s"))
                        })?;
                }
                (OPT_IF_TSOFFSET, seconds) if seconds.len() == 8 => {
                    let [low, high] = match self.order {
                        Order::Little => [0, 4],
                        Order::Big => [4, 0],
                    };
                    let halves = [low, high].map(|at| u64::from(self.order.u32(seconds, at)));
                    interface.offset = (halves[0] | halves[1] << 32) as i64;
                }
                _ => {}
            }
            Ok(())
        })?;
        capture.interfaces.push(name);
        Ok(interface)
    }

    fn enhanced_packet(&self, interfaces: &[Interface]) -> Result<Packet, Error> {
        let body = self.at_least(20)?;
        let [interface, high, low, kept, wire] =
            [0, 4, 8, 12, 16].map(|at| self.order.u32(body, at));
        let interface = self.find(interfaces, interface)?;
        let mut packet = self.packet(interface, &body[20..], kept as usize, wire as usize)?;
        let time = u128::from(high) << 32 | u128::from(low);
        packet.ns = (time * 1_000_000_000 / interface.units) as u64;
        let offset = interface.offset.wrapping_mul(1_000_000_000);
        packet.ns = packet.ns.wrapping_add_signed(offset);
        let options = &body[(20 + packet.data.len()).next_multiple_of(4).min(body.len())..];
        self.options(options, |code, value| {
            if code == OPT_COMMENT {
                packet
                    .comments
                    .push(String::from_utf8_lossy(value).into_owned());
            }
            Ok(())
        })?;
        Ok(packet)
    }

    fn simple_packet(&self, interfaces: &[Interface]) -> Result<Packet, Error> {
        let body = self.at_least(4)?;
        let wire = self.order.u32(body, 0) as usize;
        let interface = self.find(interfaces, 0)?;
        let kept = match interface.snap_len {
            0 => wire,
            most => wire.min(most),
        };
        self.packet(interface, &body[4..], kept, wire)
    }

    fn find<'b>(&self, interfaces: &'b [Interface], number: u32) -> Result<&'b Interface, Error> {
        let interface = interfaces.get(number as usize).ok_or_else(|| {
            let have = interfaces.len();
            self.damaged(format!(
                "a packet of interface {number}; the section has {have}"
            ))
        })?;
        match interface.link_type {
            ETHERNET => Ok(interface),
            other => Err(Error::LinkType(other)),
        }
    }

    fn packet(
        &self,
        interface: &Interface,
        data: &[u8],
        kept: usize,
        wire: usize,
    ) -> Result<Packet, Error> {
        let data = data.get(..kept).filter(|_| kept <= wire).ok_or_else(|| {
            let room = data.len();
            self.damaged(format!(
                "a packet with {kept} bytes of {wire} in a block with room for {room}"
            ))
        })?;
        Ok(Packet {
            ns: 0,
            interface: interface.index,
            data: data.to_vec(),
            wire_len: wire,
            comments: Vec::new(),
        })
    }

    /// Calls `each(code, value)` for the options in `list`.
    fn options(
        &self,
        mut list: &[u8],
        mut each: impl FnMut(u16, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while list.len() >= 4 {
            let (code, len) = (
                self.order.u16(list, 0),
                usize::from(self.order.u16(list, 2)),
            );
            if code == 0 {
                break;
            }
            let value = list[4..].get(..len).ok_or_else(|| {
                self.damaged(format!(
                    "option {code} of {len} bytes runs out of its block"
                ))
            })?;
            each(code, value)?;
            list = &list[(4 + len).next_multiple_of(4).min(list.len())..];
        }
        Ok(())
    }
}

//! The addresses that both sides exchange and print, as the original tools do.

use std::io::Write;

use anyhow::{Context as _, Result};
use ferroce_driver::Gid;

/// Bytes of the message with an address: `lid:qpn:psn:gid` and a zero.
pub(super) const BYTES: usize = "0000:000000:000000:00000000000000000000000000000000".len() + 1;

/// Where a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) qpn: u32,
    pub(super) psn: u32,
    pub(super) gid: Gid,
}

impl Address {
    pub(super) fn print(&self, out: &mut impl Write, side: &str) -> Result<()> {
        let Self { qpn, psn, gid } = self;
        let ip = std::net::Ipv6Addr::from(gid.0);
        writeln!(
            out,
            "  {side} address:  LID 0x0000, QPN 0x{qpn:06x}, PSN 0x{psn:06x}, GID {ip}"
        )?;
        Ok(())
    }

    pub(super) fn emit(&self) -> [u8; BYTES] {
        let Self { qpn, psn, gid } = self;
        let gid: String = gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("0000:{qpn:06x}:{psn:06x}:{gid}\0");
        let bytes = text.as_bytes().try_into();
        bytes.expect("all fields have fixed widths")
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches('\0');
        let parse = || {
            let fields: Vec<_> = text.split(':').collect();
            let [_, qpn, psn, gid] = fields[..] else {
                return None;
            };
            let number = |text| u32::from_str_radix(text, 16).ok().filter(|n| *n < 1 << 24);
            let gid = (gid.len() == 32).then(|| u128::from_str_radix(gid, 16).ok())??;
            Some(Self {
                qpn: number(qpn)?,
                psn: number(psn)?,
                gid: Gid(gid.to_be_bytes()),
            })
        };
        parse().with_context(|| {
            format!("the peer sent `{text}`, expected lid:qpn:psn:gid: run the same program on both sides")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_the_original_writes_them() {
        let address = Address {
            qpn: 0x11,
            psn: 0x2f_3c4d,
            gid: Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 1)),
        };
        let text = b"0000:000011:2f3c4d:00000000000000000000ffff0a000001\0";
        assert_eq!(&address.emit(), text);
        assert_eq!(Address::parse(text).unwrap(), address);
        for wrong in [
            "",
            "a:b",
            "0:1:2:3",
            "0000:1000000:000000:00000000000000000000ffff0a000001",
        ] {
            assert!(Address::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

//! What two programs tell each other to connect their queue pairs.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ferroce_proto::wire::{Gid, Mac};
use thiserror::Error;

use crate::open::parse_mac;

/// What a peer must know of a queue pair to connect to it.
///
/// As text, to be sent as a line or, with feature `serde`, as a string of any format:
///
/// ```
/// use ferroce_driver::QpEndpoint;
///
/// let text = "qpn 0x11 psn 0x7c0f1 ip 10.0.0.2 mac 02:00:00:00:00:02";
/// let endpoint: QpEndpoint = text.parse()?;
/// assert_eq!(endpoint.qpn, 17);
/// assert_eq!(endpoint.to_string(), text);
/// # Ok::<(), ferroce_driver::EndpointError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct QpEndpoint {
    /// Number of the queue pair, 24 bits.
    pub qpn: u32,
    /// First PSN it sends, 24 bits.
    pub psn: u32,
    /// GID it sends from.
    pub gid: Gid,
    /// MAC address it sends from.
    pub mac: Mac,
}

/// A text is no endpoint.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{text}` is no endpoint of a queue pair: expected 24-bit numbers and addresses as in `qpn 0x11 psn 0x7c0f1 ip 10.0.0.2 mac 02:00:00:00:00:02`"
)]
pub struct EndpointError {
    /// The text.
    pub text: String,
}

impl fmt::Display for QpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { qpn, psn, gid, mac } = self;
        let ip = IpAddr::from(gid.0).to_canonical();
        write!(f, "qpn {qpn:#x} psn {psn:#x} ip {ip} mac {mac}")
    }
}

impl FromStr for QpEndpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let number = |word: &str| {
            let value = u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
            (value < 1 << 24).then_some(value)
        };
        let words: Vec<_> = text.split_whitespace().collect();
        let endpoint = match words[..] {
            ["qpn", qpn, "psn", psn, "ip", ip, "mac", mac] => (|| {
                Some(Self {
                    qpn: number(qpn)?,
                    psn: number(psn)?,
                    gid: ip.parse::<IpAddr>().ok()?.into(),
                    mac: parse_mac(mac).ok()?,
                })
            })(),
            _ => None,
        };
        endpoint.ok_or_else(|| EndpointError { text: text.into() })
    }
}

impl From<QpEndpoint> for String {
    fn from(endpoint: QpEndpoint) -> Self {
        endpoint.to_string()
    }
}

impl TryFrom<String> for QpEndpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "qpn 0xffffff psn 0x0 ip fe80::1 mac 02:00:00:00:00:0a";

    #[test]
    fn there_and_back() {
        let endpoint: QpEndpoint = TEXT.parse().unwrap();
        assert_eq!((endpoint.qpn, endpoint.psn), (0xff_ffff, 0));
        assert_eq!(endpoint.to_string(), TEXT);
    }

    #[test]
    fn what_is_none_is_refused() {
        for (good, bad) in [
            ("0xffffff", "0x1000000"),
            ("0xffffff", "17"),
            ("psn", "PSN"),
            ("fe80::1", "fe80::1::"),
            ("02:", "03:"),
            (" mac 02:00:00:00:00:0a", ""),
            ("0a", "0a more"),
        ] {
            let text = TEXT.replace(good, bad);
            let refused = text.parse::<QpEndpoint>().unwrap_err();
            assert!(refused.to_string().contains(&text), "{refused}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn as_json() {
        let endpoint: QpEndpoint = TEXT.parse().unwrap();
        let json = serde_json::to_string(&endpoint).unwrap();
        assert_eq!(json, format!("\"{TEXT}\""));
        assert_eq!(serde_json::from_str::<QpEndpoint>(&json).unwrap(), endpoint);
        assert!(serde_json::from_str::<QpEndpoint>("\"qpn 1\"").is_err());
    }
}

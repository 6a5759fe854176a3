//! The path MTU of connections, which nobody tells: that of the network is the network's.

use std::sync::OnceLock;

use crate::errno::say;

/// Names the path MTU that connections ask for.
const MTU_VARIABLE: &str = "FERROCE_MTU";

/// Code of the path MTU that connections ask for.
pub(super) fn path_mtu() -> u8 {
    /// 1024 bytes.
    const DEFAULT: u8 = 3;
    static MTU: OnceLock<u8> = OnceLock::new();
    *MTU.get_or_init(|| {
        let Ok(text) = std::env::var(MTU_VARIABLE) else {
            return DEFAULT;
        };
        let code = ["256", "512", "1024", "2048", "4096"].iter().zip(1..);
        let mut code = code.filter(|(bytes, _)| **bytes == text);
        code.next().map_or_else(
            || {
                let expected = "expected 256, 512, 1024, 2048 or 4096";
                say(&format!("${MTU_VARIABLE} is `{text}`: {expected}"));
                DEFAULT
            },
            |(_, code)| code,
        )
    })
}

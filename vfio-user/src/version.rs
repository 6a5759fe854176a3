//! The first message of both sides.

use serde::{Deserialize, Serialize};

use crate::ProtocolError;

/// Version and capabilities: proposed by the client, agreed to by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major version; both sides have the same.
    pub major: u16,
    /// Minor version; the server's is not above the client's.
    pub minor: u16,
    /// Capabilities; what is missing has the protocol's default.
    pub capabilities: Capabilities,
}

/// Capabilities known here; others are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// File descriptors that the sender takes with one message; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_msg_fds: Option<u64>,
    /// Longest transfer of one message in bytes; 1048576 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_data_xfer_size: Option<u64>,
    /// Ranges mapped at a time; 65535 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dma_maps: Option<u64>,
    /// Page sizes of DMA_MAP, or'ed; 4096 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgsizes: Option<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Data {
    capabilities: Capabilities,
}

impl Version {
    /// Appends it to a message.
    pub fn emit(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.major.to_ne_bytes());
        to.extend_from_slice(&self.minor.to_ne_bytes());
        let data = Data {
            capabilities: self.capabilities.clone(),
        };
        to.extend(serde_json::to_vec(&data).expect("numbers under names are JSON"));
        to.push(0);
    }

    /// Reads it; data may be missing altogether.
    ///
    /// # Errors
    /// [`ProtocolError`]: too short, not terminated by NUL, or not such JSON.
    pub fn parse(from: &[u8]) -> Result<Self, ProtocolError> {
        let Some((version, data)) = from.split_first_chunk::<4>() else {
            return Err(ProtocolError::Short {
                what: "Version",
                found: from.len(),
                expected: 4,
            });
        };
        let capabilities = match data.split_last() {
            None => Capabilities::default(),
            Some((0, json)) => {
                let data: Data = serde_json::from_slice(json)
                    .map_err(|error| ProtocolError::Json(error.to_string()))?;
                data.capabilities
            }
            Some(_) => return Err(ProtocolError::Unterminated),
        };
        Ok(Self {
            major: u16::from_ne_bytes([version[0], version[1]]),
            minor: u16::from_ne_bytes([version[2], version[3]]),
            capabilities,
        })
    }
}

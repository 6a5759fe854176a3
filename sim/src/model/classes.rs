//! Class of a packet by its DSCP or PCP: priorities of IEEE 802.1Q, DSCP of RFC 2474, the trust of a port as in mlx5's QPTS and
//! QPDPM.

use ferroce_proto::abi::classes::{
    CLASSES, PRIO_CLASS_RESET, PRIORITIES, TRUST_PCP, TRUST_RESET, Trust, dscp_prio_reset,
};
use ferroce_proto::abi::regs::{DSCP_PRIO_0, DSCP_PRIO_7, PRIO_CLASS, TRUST};
use ferroce_proto::wire::eth::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, LEN, TPID_8021Q};

/// Code points of a DSCP.
const DSCPS: usize = 64;

/// The trust tables of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    trust: Trust,
    priority: [u8; DSCPS],
    class: [u8; PRIORITIES],
}

impl Default for Tables {
    fn default() -> Self {
        let mut tables = Self {
            trust: Trust::default(),
            priority: [0; DSCPS],
            class: [0; PRIORITIES],
        };
        tables.write(TRUST, TRUST_RESET);
        tables.write(PRIO_CLASS, PRIO_CLASS_RESET);
        for i in 0..8 {
            tables.write(DSCP_PRIO_0 + 4 * i, dscp_prio_reset(i as usize));
        }
        tables
    }
}

impl Tables {
    /// A register of them is written; others have no effect.
    pub fn write(&mut self, offset: u32, value: u32) {
        let nibble = |i: usize| (value >> (4 * i)) as u8 & 0xf;
        match offset {
            TRUST => {
                self.trust = Trust {
                    rsv0: 0,
                    ..Trust::parse(&value.to_le_bytes())
                };
            }
            PRIO_CLASS => self.class = std::array::from_fn(|i| nibble(i) % CLASSES as u8),
            DSCP_PRIO_0..=DSCP_PRIO_7 => {
                let first = 2 * (offset - DSCP_PRIO_0) as usize;
                for (i, priority) in self.priority[first..first + 8].iter_mut().enumerate() {
                    *priority = nibble(i) % PRIORITIES as u8;
                }
            }
            _ => {}
        }
    }

    /// What a register of them holds; 0 for others.
    #[must_use]
    pub fn read(&self, offset: u32) -> u32 {
        let nibbles = |values: &[u8]| {
            let places = values.iter().enumerate();
            places.map(|(i, &value)| u32::from(value) << (4 * i)).sum()
        };
        match offset {
            TRUST => u32::from_le_bytes(self.trust.emit()),
            PRIO_CLASS => nibbles(&self.class),
            DSCP_PRIO_0..=DSCP_PRIO_7 => {
                let first = 2 * (offset - DSCP_PRIO_0) as usize;
                nibbles(&self.priority[first..first + 8])
            }
            _ => 0,
        }
    }

    /// Class of a frame: by its PCP or DSCP; what is not IP counts as of DSCP 0, as the driver of mlx5 takes it.
    #[must_use]
    pub fn class_of_frame(&self, frame: &[u8]) -> u8 {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let word = |at: usize| u16::from_be_bytes([byte(at), byte(at + 1)]);
        let tagged = word(LEN - 2) == TPID_8021Q;
        let ip = LEN + if tagged { 4 } else { 0 };
        let tclass = match word(ip - 2) {
            ETHERTYPE_IPV4 => byte(ip + 1),
            ETHERTYPE_IPV6 => byte(ip) << 4 | byte(ip + 1) >> 4,
            _ => 0,
        };
        let pcp = tagged.then(|| byte(LEN) >> 5);
        self.class(self.priority(tclass, pcp))
    }

    /// Priority of a packet with traffic class (or type of service) `tclass`, and `pcp` if it has an 802.1Q tag.
    #[must_use]
    pub fn priority(&self, tclass: u8, pcp: Option<u8>) -> u8 {
        if self.trust.trust == TRUST_PCP {
            pcp.unwrap_or(self.trust.default_prio)
        } else {
            self.priority[usize::from(tclass >> 2)]
        }
    }

    /// Class of a packet of this priority.
    #[must_use]
    pub fn class(&self, priority: u8) -> u8 {
        self.class[usize::from(priority)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_reset_the_dscp_says_the_class() {
        let tables = Tables::default();
        for tclass in 0..=255 {
            // eight DSCPs a priority, two priorities a class
            let priority = tables.priority(tclass, Some(7));
            assert_eq!(priority, tclass >> 5);
            assert_eq!(tables.class(priority), tclass >> 6);
        }
    }

    #[test]
    fn the_pcp_where_it_is_trusted() {
        let mut tables = Tables::default();
        tables.write(TRUST, 5 << 8 | u32::from(TRUST_PCP));
        // DSCP 26 of RoCE
        assert_eq!(tables.priority(26 << 2, Some(3)), 3);
        assert_eq!(tables.priority(26 << 2, None), 5);
        tables.write(PRIO_CLASS, 0x0000_3000);
        assert_eq!((tables.class(3), tables.class(4)), (3, 0));
    }
}

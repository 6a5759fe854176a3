//! Congestion notification packet (CNP): A17 figure 6, CA17-44 to CA17-46.
//!
//! A receiver of packets marked congestion experienced sends it to their source; it consists of a
//! BTH, 16 reserved bytes and the ICRC.

use super::{Opcode, Psn, bth};

/// Length in bytes of the reserved part between BTH and ICRC, all 0.
pub const RESERVED_LEN: usize = 16;

/// The BTH of the CNP that answers a marked packet.
///
/// `source_qp` is the queue pair the marked packet came from, `pkey` its partition key. PSN and
/// flags are 0 but BECN, which is set by practice of all makers.
#[must_use]
pub const fn bth(source_qp: u32, pkey: u16) -> bth::Repr {
    let mut bth = bth::Repr::new(Opcode::Cnp, source_qp, Psn::new(0));
    bth.pkey = pkey;
    bth.becn = true;
    bth
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_of_figure_6() {
        let bytes = super::bth(0x12_3456, 0xffff).emit(0);
        assert_eq!(
            bytes,
            [
                0x81, 0x00, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, 0x00, 0x00, 0x00, 0x00
            ]
        );
    }
}

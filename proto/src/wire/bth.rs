//! Base transport header (BTH): in every packet (IB1 9.2).

use super::{Error, Opcode, Psn};

header! {
    /// View of a base transport header.
    "BTH" [12] {
        /// Opcode, see [`Opcode`](crate::wire::Opcode).
        OPCODE [8] => opcode / set_opcode: u8,
        /// Solicited event: the receive completion raises an event.
        SE [1] => solicited / set_solicited: bool,
        /// Migration request.
        MIG_REQ [1] => mig_req / set_mig_req: bool,
        /// PadCnt: bytes, 0 to 3, between payload and ICRC.
        PAD_CNT [2] => pad_cnt / set_pad_cnt: u8,
        /// Transport version, 0.
        TVER [4] => tver / set_tver: u8,
        /// Partition key.
        P_KEY [16] => pkey / set_pkey: u16,
        /// Forward explicit congestion notification.
        FECN [1] => fecn / set_fecn: bool,
        /// Backward explicit congestion notification.
        BECN [1] => becn / set_becn: bool,
        /// Reserved, 0 on transmit; with FECN and BECN it is not covered by the ICRC.
        RESV6 [6],
        /// Destination queue pair number.
        DEST_QP [24] => dest_qp / set_dest_qp: u32,
        /// The responder is asked for an acknowledgement.
        ACK_REQ [1] => ack_req / set_ack_req: bool,
        /// Reserved, 0 on transmit.
        RESV7 [7],
        /// Packet sequence number.
        PSN [24] => psn / set_psn: Psn,
    }
}

/// Partition key of the default partition, full member; the only one RoCEv2 requires (A17.7.1).
pub const DEFAULT_PKEY: u16 = 0xffff;

/// Value of a base transport header.
///
/// PadCnt follows from the payload and is an argument of [`Repr::emit`]; TVer is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Opcode.
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Migration request.
    pub mig_req: bool,
    /// Partition key.
    pub pkey: u16,
    /// Forward explicit congestion notification.
    pub fecn: bool,
    /// Backward explicit congestion notification.
    pub becn: bool,
    /// Destination queue pair number, 24 bits.
    pub dest_qp: u32,
    /// Acknowledgement request.
    pub ack_req: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Repr {
    /// A header with the default partition key and all flags clear but MigReq: a queue pair without an alternate path is
    /// in state MIGRATED and says so in every packet (IB1 17.2.8), a CNP does not (A17.9.3).
    #[must_use]
    pub const fn new(opcode: Opcode, dest_qp: u32, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            mig_req: !matches!(opcode, Opcode::Cnp),
            pkey: DEFAULT_PKEY,
            fecn: false,
            becn: false,
            dest_qp,
            ack_req: false,
            psn,
        }
    }

    /// Reads the value of a header; reserved bits are ignored, as IB1 demands of a receiver.
    ///
    /// Fails with [`Error::TransportVersion`] or [`Error::Opcode`].
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        if header.tver() != 0 {
            return Err(Error::TransportVersion(header.tver()));
        }
        Ok(Self {
            opcode: Opcode::from_code(header.opcode()).ok_or(Error::Opcode(header.opcode()))?,
            solicited: header.solicited(),
            mig_req: header.mig_req(),
            pkey: header.pkey(),
            fecn: header.fecn(),
            becn: header.becn(),
            dest_qp: header.dest_qp(),
            ack_req: header.ack_req(),
            psn: header.psn(),
        })
    }

    /// The bytes of the header; `pad_cnt` is the number of pad bytes, 0 to 3.
    #[must_use]
    pub fn emit(&self, pad_cnt: u8) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_opcode(self.opcode.code());
        header.set_solicited(self.solicited);
        header.set_mig_req(self.mig_req);
        header.set_pad_cnt(pad_cnt);
        header.set_pkey(self.pkey);
        header.set_fecn(self.fecn);
        header.set_becn(self.becn);
        header.set_dest_qp(self.dest_qp);
        header.set_ack_req(self.ack_req);
        header.set_psn(self.psn);
        header.into_inner()
    }
}

/// The partition keys of a packet and of its queue pair agree: same partition, not both limited
/// members (IB1 10.9).
#[must_use]
pub const fn pkey_matches(a: u16, b: u16) -> bool {
    const FULL: u16 = 1 << 15;
    (a ^ b) & !FULL == 0 && (a | b) & FULL != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_header() {
        let header = Header::new_checked(&samples::RC_SEND_ONLY_SE[42..]).unwrap();
        assert_eq!(header.pad_cnt(), 0);
        let repr = Repr::parse(&header).unwrap();
        let expected = Repr {
            solicited: true,
            // soft-RoCE says it is not
            mig_req: false,
            ack_req: true,
            ..Repr::new(Opcode::RcSendOnly, 0x16, Psn::new(0x1000))
        };
        assert_eq!(repr, expected);
        assert_eq!(repr.emit(0), samples::RC_SEND_ONLY_SE[42..54]);
    }

    #[test]
    fn every_field_at_its_place() {
        let repr = Repr {
            solicited: true,
            mig_req: false,
            pkey: 0x8001,
            fecn: true,
            becn: false,
            ack_req: true,
            ..Repr::new(Opcode::UdSendOnly, 0x12_3456, Psn::new(0x78_9abc))
        };
        assert_eq!(
            repr.emit(3),
            [
                0x64, 0xb0, 0x80, 0x01, 0x80, 0x12, 0x34, 0x56, 0x80, 0x78, 0x9a, 0xbc
            ]
        );
    }

    #[test]
    fn refusals() {
        let mut header = Header::new([0; LEN]);
        header.set_tver(1);
        assert_eq!(Repr::parse(&header), Err(Error::TransportVersion(1)));
        header.set_tver(0);
        header.set_opcode(0x15);
        assert_eq!(Repr::parse(&header), Err(Error::Opcode(0x15)));
        assert_eq!(
            Header::new_checked([0; 11]).unwrap_err(),
            Error::Truncated {
                header: "BTH",
                need: 12,
                have: 11
            }
        );
    }

    #[test]
    fn partition_keys() {
        assert!(pkey_matches(0xffff, 0xffff));
        assert!(pkey_matches(0xffff, 0x7fff));
        assert!(!pkey_matches(0x7fff, 0x7fff));
        assert!(!pkey_matches(0xffff, 0xfffe));
    }

    proptest! {
        #[test]
        fn parse_then_emit_keeps_all_but_reserved_bits(mut bytes: [u8; LEN]) {
            field::TVER.set(&mut bytes, 0);
            field::RESV6.set(&mut bytes, 0);
            field::RESV7.set(&mut bytes, 0);
            let header = Header::new(bytes);
            if let Ok(repr) = Repr::parse(&header) {
                prop_assert_eq!(repr.emit(header.pad_cnt()), bytes);
            }
        }
    }
}

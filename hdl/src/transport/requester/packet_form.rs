//! What a request packet is: opcode, flags and fields by operation, transport and place in its message. No register.
use ferroce_proto::wire::Opcode;

use super::event::CheckedWqe;
use crate::bus::types::TxDesc;
use crate::prelude::*;

const RC_READ: u64 = Opcode::RcReadRequest as u64;
const RC_CMP_SWAP: u64 = Opcode::RcCmpSwap as u64;
const RC_FETCH_ADD: u64 = Opcode::RcFetchAdd as u64;
const RC_SEND_LAST_INV: u64 = Opcode::RcSendLastInv as u64;
const RC_SEND_ONLY_INV: u64 = Opcode::RcSendOnlyInv as u64;
// The numbers that the kernel puts together: in a message FIRST, MIDDLE, LAST, LAST with immediate, ONLY, ONLY with
// immediate, of a WRITE 6 more.
const _: () = assert!(
    Opcode::RcSendFirst as u8 == 0
        && Opcode::RcSendMiddle as u8 == 1
        && Opcode::RcSendLast as u8 == 2
        && Opcode::RcSendOnly as u8 == 4
        && Opcode::RcSendOnlyImm as u8 == 5
        && Opcode::RcWriteFirst as u8 == 6
        && Opcode::RcWriteOnlyImm as u8 == 11
);

/// Descriptor of a packet.
#[derive(LogicBlock, Default)]
pub struct PacketForm {
    /// WQE of the message.
    pub wqe: Signal<In, CheckedWqe>,
    /// First packet of the message.
    pub first: Signal<In, Bit>,
    /// Last packet of the message.
    pub last: Signal<In, Bit>,
    /// Last packet of the part that was granted.
    pub part_last: Signal<In, Bit>,
    /// PSN.
    pub psn: Signal<In, Bits<24>>,
    /// Payload bytes.
    pub plen: Signal<In, Bits<13>>,
    /// Bytes of the message from this packet on.
    pub left: Signal<In, Bits<32>>,
    /// The descriptor.
    pub desc: Signal<Out, TxDesc>,
    /// Bytes of the headers, modulo 64.
    pub lane: Signal<Out, Bits<6>>,
    w: Signal<Local, CheckedWqe>,
    is_write: Signal<Local, Bit>,
    has_imm: Signal<Local, Bit>,
    reliable: Signal<Local, Bit>,
    position: Signal<Local, Bits<8>>,
    code: Signal<Local, Bits<8>>,
    ext: Signal<Local, Bits<6>>,
}

impl Logic for PacketForm {
    describe!(
        "packet_form", "Opcode and fields of a request packet.";
        RC_READ, RC_CMP_SWAP, RC_FETCH_ADD, RC_SEND_LAST_INV, RC_SEND_ONLY_INV
    );

    #[hdl_gen]
    fn update(&mut self) {
        self.w.next = self.wqe.val();
        self.is_write.next = (self.w.val().opcode == 3) | (self.w.val().opcode == 4);
        // immediate data, or a key to invalidate, at the end of the message
        self.has_imm.next = self.last.val()
            & ((self.w.val().opcode == 1)
                | (self.w.val().opcode == 2)
                | (self.w.val().opcode == 4));
        self.reliable.next = self.w.val().class == 0;

        self.position.next = bits::<8>(1);
        if self.first.val() & self.last.val() {
            self.position.next = bits::<8>(4);
        } else if self.first.val() {
            self.position.next = bits::<8>(0);
        } else if self.last.val() {
            self.position.next = bits::<8>(2);
        }
        if self.is_write.val() {
            self.position.next = bits::<8>(7);
            if self.first.val() & self.last.val() {
                self.position.next = bits::<8>(10);
            } else if self.first.val() {
                self.position.next = bits::<8>(6);
            } else if self.last.val() {
                self.position.next = bits::<8>(8);
            }
        }
        self.code.next = self.position.val();
        if self.has_imm.val() {
            self.code.next = self.position.val() | 1;
        }
        match self.w.val().opcode.index() {
            2 => {
                if self.last.val() {
                    self.code.next = bits::<8>(RC_SEND_LAST_INV);
                    if self.first.val() {
                        self.code.next = bits::<8>(RC_SEND_ONLY_INV);
                    }
                }
            }
            5 => {
                self.code.next = bits::<8>(RC_READ);
            }
            6 => {
                self.code.next = bits::<8>(RC_CMP_SWAP);
            }
            7 => {
                self.code.next = bits::<8>(RC_FETCH_ADD);
            }
            _ => {}
        }
        self.ext.next = bits::<6>(0);
        if self.first.val() & self.is_write.val() {
            self.ext.next = bits::<6>(16);
            if self.has_imm.val() {
                self.ext.next = bits::<6>(20);
            }
        } else if self.w.val().class == 3 {
            self.ext.next = bits::<6>(8);
            if self.has_imm.val() {
                self.ext.next = bits::<6>(12);
            }
        } else if self.has_imm.val() {
            self.ext.next = bits::<6>(4);
        }
        self.lane.next = self.w.val().lane + self.ext.val();

        self.desc.next.qpn = self.w.val().qpn;
        self.desc.next.opcode = self.code.val() | (bit_cast::<8, 2>(self.w.val().class) << 5);
        self.desc.next.psn = self.psn.val();
        // of a WRITE only with immediate data: nothing else completes at the receiver
        self.desc.next.solicited = self.last.val()
            & self.w.val().solicited
            & !self.w.val().answered
            & (!self.is_write.val() | self.has_imm.val());
        // the last packet of every part asks, so that the window of a long message opens in time
        self.desc.next.ack_req = self.part_last.val() & self.reliable.val();
        self.desc.next.plen = self.plen.val();
        self.desc.next.va = self.w.val().remote_addr;
        self.desc.next.rkey = self.w.val().rkey;
        self.desc.next.dma_len = self.left.val();
        self.desc.next.swap_add = self.w.val().addr_1;
        self.desc.next.compare = self.w.val().word_1;
        self.desc.next.imm = self.w.val().imm;
        self.desc.next.syndrome = bits::<8>(0);
        self.desc.next.msn = bits::<24>(0);
        self.desc.next.round = bits::<2>(0);
        self.desc.next.notify = self.last.val() & !self.reliable.val();
    }
}

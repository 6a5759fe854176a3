//! What a request packet is: opcode, flags and fields by operation, transport and place in its message. No register.
use ferroce_proto::wire::Opcode;

use super::send_types::CheckedWqe;
use crate::bus::path::lane_of;
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
#[derive(Block)]
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
}

impl Logic for PacketForm {
    describe!("packet_form", "Opcode and fields of a request packet.");

    #[kernel]
    fn update(&mut self) {
        let is_write = (wqe.opcode == 3) | (wqe.opcode == 4);
        // immediate data, or a key to invalidate, at the end of the message
        let has_imm = last & ((wqe.opcode == 1) | (wqe.opcode == 2) | (wqe.opcode == 4));
        let reliable = wqe.class == 0;

        let mut position: Bits<8> = bits::<8>(1);
        if first & last {
            position = bits::<8>(4);
        } else if first {
            position = bits::<8>(0);
        } else if last {
            position = bits::<8>(2);
        }
        if is_write {
            position = bits::<8>(7);
            if first & last {
                position = bits::<8>(10);
            } else if first {
                position = bits::<8>(6);
            } else if last {
                position = bits::<8>(8);
            }
        }
        let mut code = position;
        if has_imm {
            code = position | 1;
        }
        match wqe.opcode {
            2 => {
                if last {
                    code = bits::<8>(RC_SEND_LAST_INV);
                    if first {
                        code = bits::<8>(RC_SEND_ONLY_INV);
                    }
                }
            }
            5 => {
                code = bits::<8>(RC_READ);
            }
            6 => {
                code = bits::<8>(RC_CMP_SWAP);
            }
            7 => {
                code = bits::<8>(RC_FETCH_ADD);
            }
            _ => {}
        }
        let mut ext: Bits<6> = bits::<6>(0);
        if first & is_write {
            ext = bits::<6>(16);
            if has_imm {
                ext = bits::<6>(20);
            }
        } else if wqe.class == 3 {
            ext = bits::<6>(8);
            if has_imm {
                ext = bits::<6>(12);
            }
        } else if has_imm {
            ext = bits::<6>(4);
        }
        lane = lane_of(wqe.path) + ext;

        desc.qpn = wqe.qpn;
        desc.path = wqe.path;
        desc.opcode = code | (wqe.class.resize::<8>() << 5);
        desc.psn = psn;
        // of a WRITE only with immediate data: nothing else completes at the receiver
        desc.solicited = last & wqe.solicited & !wqe.answered & (!is_write | has_imm);
        // the last packet of every part asks, so that the window of a long message opens in time
        desc.ack_req = part_last & reliable;
        desc.plen = plen;
        desc.va = wqe.remote_addr;
        desc.rkey = wqe.rkey;
        desc.dma_len = left;
        desc.swap_add = wqe.addr_1;
        desc.compare = wqe.word_1;
        desc.imm = wqe.imm;
        desc.syndrome = bits::<8>(0);
        desc.msn = bits::<24>(0);
        desc.round = bits::<2>(0);
        desc.incarnation = bits::<2>(0);
        desc.next_psn = bits::<24>(0);
        desc.notify = last & !reliable;
    }
}

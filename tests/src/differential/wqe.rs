//! Work queue entries of messages, sound and faulty.

use ferroce_proto::abi::wqe::{MAX_MSG, RecvWqe, SLOT_BYTES, SendWqe, Sge, opcode};
use ferroce_sim::testhost::{Side, Work, pattern};

use super::bench::{Bench, Place, other};
use super::scenario::{Denial, Fault, Message, Operation, Piece, region};

/// The slots of the send WQE of a message.
pub(super) fn send(bench: &Bench, message: &Message) -> Vec<[u8; SLOT_BYTES]> {
    let (c, from) = (message.connection, message.from);
    let mut list = sges(bench, c, from, &message.gather);
    if let (Some(Fault::Gather(denial)), Some(last)) = (message.fault, list.last_mut()) {
        deny(bench, c, from, denial, last);
    }
    let there = |kind: usize| bench.links[c].regions[other(from) as usize][kind];
    let word = |word: u32| {
        let start = there(region::ATOMIC).addr;
        start.next_multiple_of(8) - start + 8 * u64::from(word)
    };
    let (opcode, target) = match message.operation {
        Operation::Send => (opcode::SEND, None),
        Operation::Write(at) => (opcode::WRITE, Some((region::TARGET, at.into()))),
        Operation::Read(at) => (opcode::READ, Some((region::SOURCE, at.into()))),
        Operation::CmpSwap(at, ..) => (opcode::CMP_SWAP, Some((region::ATOMIC, word(at)))),
        Operation::FetchAdd(at, _) => (opcode::FETCH_ADD, Some((region::ATOMIC, word(at)))),
    };
    let mut work = Work::new(opcode, &list);
    if let Some((kind, offset)) = target {
        let mut remote = Sge {
            addr: there(kind).addr + offset,
            length: message.len(),
            lkey: there(kind).key,
        };
        if let Some(Fault::Remote(denial)) = message.fault {
            deny(bench, c, other(from), denial, &mut remote);
        }
        (work.head.remote_addr, work.head.rkey) = (remote.addr, remote.lkey);
    }
    (work.operands.compare, work.operands.swap_add) = match message.operation {
        Operation::CmpSwap(_, compare, swap) => (compare, swap),
        Operation::FetchAdd(_, add) => (0, add),
        _ => (0, 0),
    };
    if let Some(imm) = message.imm {
        work = work.imm(imm);
    }
    if let Some(len) = message.inline {
        work = work.inline(&pattern(len.into(), message.from as u8 ^ len as u8));
    }
    work.head.signaled = message.signaled;
    work.head.solicited = message.solicited;
    work.head.fence = message.fence;
    let mut slots = work.slots();
    let slot = &mut slots[0];
    let mut head = SendWqe::parse(slot.first_chunk().expect("a slot has 64 bytes"));
    match message.fault {
        Some(Fault::Opcode(opcode)) => head.opcode = opcode,
        Some(Fault::Slots(slots)) => head.slots = slots,
        Some(Fault::Entries(entries)) => head.num_sge = entries,
        Some(Fault::Invalidate(kind)) => {
            (head.opcode, head.imm) = (opcode::SEND_INV, there(kind).key)
        }
        Some(Fault::Length(by)) => head.length = head.length.wrapping_add_signed(by.into()),
        Some(Fault::Inline(len)) => {
            (head.inline_data, head.num_sge, head.length) = (true, 0, len.into());
        }
        Some(Fault::TooLong) => {
            let source = bench.links[c].regions[from as usize][region::SOURCE];
            let entry = |length| Sge {
                addr: source.addr,
                length,
                lkey: source.key,
            };
            let list = [entry(MAX_MSG), entry(1)];
            (head.inline_data, head.num_sge, head.length) = (false, 2, MAX_MSG + 1);
            for (place, sge) in slot[SendWqe::BYTES..]
                .chunks_exact_mut(Sge::BYTES)
                .zip(list)
            {
                place.copy_from_slice(&sge.emit());
            }
        }
        _ => {}
    }
    slot[..SendWqe::BYTES].copy_from_slice(&head.emit());
    slots
}

/// The head and scatter list of a receive WQE; `fault` is that of the message that takes it.
pub(super) fn recv(
    bench: &Bench,
    connection: usize,
    side: Side,
    scatter: &[Piece],
    fault: Option<Fault>,
) -> (RecvWqe, Vec<Sge>) {
    let mut list = sges(bench, connection, side, scatter);
    if let (Some(Fault::Scatter(denial)), Some(last)) = (fault, list.last_mut()) {
        deny(bench, connection, side, denial, last);
    }
    let mut head = RecvWqe {
        num_sge: list.len() as u8,
        length: list.iter().map(|sge| sge.length).sum(),
        ..RecvWqe::default()
    };
    if let Some(Fault::RecvEntries(entries)) = fault {
        head.num_sge = entries;
    }
    (head, list)
}

fn sges(bench: &Bench, connection: usize, side: Side, pieces: &[Piece]) -> Vec<Sge> {
    let sge = |piece: &Piece| {
        let place = bench.place(connection, side, piece);
        Sge {
            addr: place.addr + u64::from(piece.offset),
            length: piece.len,
            lkey: place.key,
        }
    };
    pieces.iter().map(sge).collect()
}

/// Makes an entry one that is not permitted, of the same length.
fn deny(bench: &Bench, connection: usize, side: Side, denial: Denial, sge: &mut Sge) {
    let regions: &[Place] = &bench.links[connection].regions[side as usize];
    let of_key = regions.iter().find(|place| place.key == sge.lkey);
    let place = *of_key.expect("entries are of the connection's regions");
    match denial {
        Denial::Key => sge.lkey ^= 1,
        Denial::Domain => {
            let foreign = regions[region::FOREIGN];
            (sge.addr, sge.lkey) = (foreign.addr, foreign.key);
        }
        Denial::Before => sge.addr = place.addr - 1,
        Denial::Behind => sge.addr = place.addr + u64::from(place.len - sge.length) + 1,
        Denial::Wraps => sge.addr = u64::MAX - u64::from(sge.length / 2),
        Denial::Rights => {
            let read_only = regions[region::READ_ONLY];
            (sge.addr, sge.lkey) = (read_only.addr, read_only.key);
        }
    }
}

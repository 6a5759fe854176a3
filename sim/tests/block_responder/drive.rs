//! Between the reference's packets and the ports of the blocks.

use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::{Opcode, Operation};
use ferroce_sim::bench::Item;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input};

use super::reference::{Packet, executed, length_fits, mtu};

/// Log2 of the queue pairs of the blocks under test.
pub(crate) const Q: usize = 4;

/// Random pauses.
pub(crate) fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

fn words(value: u128) -> Vec<u32> {
    (0..4).map(|i| (value >> (32 * i)) as u32).collect()
}

/// A packet as `RxMeta`.
pub(crate) fn meta(item: Item, p: &Packet) -> Item {
    let mut item = item
        .with("opcode", p.opcode.into())
        .with("solicited", p.solicited.into())
        .with("ack_req", p.ack_req.into())
        .with("pkey", p.pkey.into())
        .with("qpn", p.qpn.into())
        .with("psn", p.psn.into())
        .with("gid_index", p.gid_index.into())
        .with("ext", p.ext)
        .with("rkey", p.rkey.into())
        .with("dma_len", p.dma_len.into())
        .with("imm", p.imm.into())
        .with("plen", p.plen.into())
        .with("lane", p.lane.into())
        .with("beats", p.beats.into());
    item.set_words("src_gid", &words(p.src_gid));
    item
}

/// Fields of `RqRequest` that mean something for a packet.
pub(crate) fn request(ctx: &RqCtx, p: &Packet, found: u8) -> Vec<(&'static str, u64)> {
    let mut fields = vec![
        ("qpn", u64::from(p.qpn & 0xffff)),
        ("reason", found.into()),
        ("plen", p.plen.into()),
        ("lane", p.lane.into()),
        ("beats", p.beats.into()),
    ];
    if found != 0 {
        return fields;
    }
    let opcode = Opcode::from_code(p.opcode);
    let is = |operation| opcode.is_some_and(|o| o.operation() == operation);
    let write = is(Operation::Write);
    let first = opcode.is_some_and(Opcode::is_start);
    let last = opcode.is_some_and(Opcode::is_end);
    let sum_fits = match (write && first, last) {
        (false, _) => true,
        (true, true) => p.dma_len == p.plen,
        (true, false) => p.dma_len > p.plen && p.dma_len <= MAX_MSG,
    };
    let valid = executed(p).is_some_and(|o| length_fits(ctx, p, o.position()))
        && (!write || ctx.remote_write)
        && sum_fits;
    fields.extend([
        ("send", is(Operation::Send).into()),
        ("write", write.into()),
        ("invalid", (!valid).into()),
        ("psn", p.psn.into()),
        ("rq_base", ctx.rq_base),
        ("rq_log", ctx.rq_log.into()),
        ("rq_stride", ctx.rq_stride.into()),
        ("min_rnr_timer", ctx.min_rnr_timer.into()),
        ("pd", ctx.pd.into()),
        ("cqn", ctx.cqn.into()),
        ("va", p.ext),
        ("rkey", p.rkey.into()),
        ("length", p.dma_len.into()),
    ]);
    if is(Operation::Send) || write {
        fields.extend([
            ("first", first.into()),
            ("last", last.into()),
            ("with_imm", opcode.is_some_and(Opcode::has_imm).into()),
            ("ack_req", p.ack_req.into()),
            ("solicited", p.solicited.into()),
            ("imm", p.imm.into()),
        ]);
    }
    if write && valid {
        let (more, tail) = if first && !last {
            let left = p.dma_len - 1;
            (left / mtu(ctx), left % mtu(ctx))
        } else {
            (0, p.plen.wrapping_sub(1) & 0xfff)
        };
        if first && !last {
            fields.push(("more", more.into()));
        }
        if !first || !last {
            fields.push(("tail", tail.into()));
        }
    }
    fields
}

/// The item with these fields set.
pub(crate) fn with(item: Item, fields: &[(&'static str, u64)]) -> Item {
    fields
        .iter()
        .fold(item, |item, (field, value)| item.with(field, *value))
}

/// The first of the fields in which the item differs.
pub(crate) fn difference(item: &Item, fields: &[(&'static str, u64)]) -> Option<String> {
    let wrong = fields
        .iter()
        .find(|(field, value)| item.get(field) != *value)?;
    Some(format!(
        "field {} is {:#x}, expected {:#x}\n  in {item:?}\n  expected {fields:x?}",
        wrong.0,
        item.get(wrong.0),
        wrong.1
    ))
}

/// The port through which commands write images.
pub(crate) struct ImagePort {
    we: Input,
    qpn: Input,
    image: Input,
}

impl ImagePort {
    pub(crate) fn new(dut: &Dut) -> Self {
        let input = |name: &str| dut.input(name).expect("an image port");
        Self {
            we: input("image_we"),
            qpn: input("image_qpn"),
            image: input("image"),
        }
    }

    /// Starts to write an image; the write is done after a cycle, see [`end`](Self::end).
    pub(crate) fn start(&self, dut: &mut Dut, qpn: u32, ctx: &RqCtx) {
        let bytes = ctx.emit();
        let words: Vec<u32> = bytes
            .chunks(4)
            .take(self.image.width().div_ceil(32))
            .map(|chunk| u32::from_le_bytes(chunk.try_into().expect("four bytes")))
            .collect();
        dut.set(self.we, 1);
        dut.set(self.qpn, qpn.into());
        dut.write(self.image, &words);
    }

    pub(crate) fn end(&self, dut: &mut Dut) {
        dut.set(self.we, 0);
    }
}

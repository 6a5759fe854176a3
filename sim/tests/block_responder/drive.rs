//! Between the reference's packets and the ports of the blocks.

use ferroce_proto::abi::qpc::{RqCtx, SrqCtx};
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::{Opcode, Operation};
use ferroce_sim::bench::Item;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input};

use super::reference::{Packet, executed, is_atomic, length_fits, mtu, permitted, wants};

/// Log2 of the queue pairs of the blocks under test.
pub(crate) const Q: usize = 4;
/// Log2 of their shared receive queues.
pub(crate) const S: usize = 2;

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
        .with("vid", p.vid.into())
        .with("ext", p.ext)
        .with("rkey", p.rkey.into())
        .with("dma_len", p.dma_len.into())
        .with("imm", p.imm.into())
        .with("plen", p.plen.into())
        .with("lane", p.lane.into())
        .with("beats", p.beats.into());
    item.set_words("src_gid", &words(p.src_gid));
    item.set_words("operands", &words(p.operands)[..3]);
    item.set("grh", p.is_datagram().into());
    item
}

/// The requests of a packet, in beats of `bytes`: one, of a datagram two. Fields of `RqRequest` that mean something.
pub(crate) fn requests(
    ctx: &RqCtx,
    p: &Packet,
    found: u8,
    bytes: u32,
) -> Vec<Vec<(&'static str, u64)>> {
    let whole = request(ctx, p, found);
    if !p.is_datagram() {
        return vec![whole];
    }
    let grh = p.grh(bytes);
    let part = |changes: &[(&'static str, u64)]| {
        let mut fields = whole.clone();
        fields.retain(|field| changes.iter().all(|change| change.0 != field.0));
        fields.extend(changes);
        fields
    };
    let mut first = vec![
        ("grh", 1),
        ("plen", grh.plen.into()),
        ("lane", 0),
        ("beats", grh.beats.into()),
    ];
    let mut second = vec![];
    if whole.iter().any(|field| field.0 == "first") {
        first.extend([("first", 1), ("last", 0), ("with_imm", 0)]);
        second.extend([("first", 0), ("last", 1)]);
    }
    vec![part(&first), part(&second)]
}

fn request(ctx: &RqCtx, p: &Packet, found: u8) -> Vec<(&'static str, u64)> {
    let mut fields = vec![
        ("qpn", u64::from(p.qpn & 0xffff)),
        ("reason", found.into()),
        ("plen", p.plen.into()),
        ("lane", p.lane.into()),
        ("beats", p.beats.into()),
        ("grh", 0),
    ];
    if found != 0 {
        return fields;
    }
    let opcode = executed(p);
    let is = |operation| opcode.is_some_and(|o| o.operation() == operation);
    let (write, read) = (is(Operation::Write), is(Operation::ReadRequest));
    let atomic = opcode.is_some_and(is_atomic);
    let first = opcode.is_some_and(Opcode::is_start);
    let last = opcode.is_some_and(Opcode::is_end);
    let sum_fits = match (write && first, last) {
        (false, _) => true,
        (true, true) => p.dma_len == p.plen,
        (true, false) => p.dma_len > p.plen && p.dma_len <= MAX_MSG,
    };
    let form_fits = match opcode {
        None => false,
        Some(_) if read => p.dma_len <= MAX_MSG,
        Some(_) if atomic => p.ext.is_multiple_of(8),
        Some(o) => length_fits(ctx, p, o.position()) && sum_fits,
    };
    let valid = form_fits && opcode.is_some_and(|o| permitted(ctx, o));
    let datagram = p.is_datagram();
    fields.extend([
        ("send", is(Operation::Send).into()),
        ("write", write.into()),
        ("read", read.into()),
        ("atomic", atomic.into()),
        ("unreliable", (ctx.qp_type != 0).into()),
        ("datagram", datagram.into()),
        ("checked", wants(p).is_some().into()),
        ("invalid", (!valid).into()),
        ("psn", p.psn.into()),
        ("mtu", ctx.mtu.into()),
        ("max_dest_rd_atomic", ctx.max_dest_rd_atomic.into()),
        ("rq_base", ctx.rq_base),
        ("rq_log", ctx.rq_log.into()),
        ("rq_stride", ctx.rq_stride.into()),
        ("min_rnr_timer", ctx.min_rnr_timer.into()),
        ("pd", ctx.pd.into()),
        ("cqn", ctx.cqn.into()),
        ("srq_valid", ctx.srq_valid.into()),
        ("srqn", ctx.srqn.into()),
        ("va", p.ext),
        ("rkey", p.rkey.into()),
        ("src_qpn", if datagram { p.ext & 0xff_ffff } else { 0 }),
        ("pkey", if datagram { p.pkey.into() } else { 0 }),
    ]);
    if let Some((length, right)) = wants(p) {
        fields.extend([("length", length.into()), ("right", right)]);
    }
    if atomic {
        let [swap_add, compare] = p.atomic_operands();
        fields.extend([("swap_add", swap_add), ("compare", compare)]);
        fields.push(("add", is(Operation::FetchAdd).into()));
    }
    if let Some(opcode) = opcode {
        fields.extend([
            ("first", first.into()),
            ("last", last.into()),
            ("with_imm", opcode.has_imm().into()),
            ("with_inv", opcode.has_ieth().into()),
            ("ack_req", p.ack_req.into()),
            ("solicited", p.solicited.into()),
            ("imm", p.imm.into()),
        ]);
    }
    if read && valid {
        let packets = p.dma_len.div_ceil(mtu(ctx)).max(1);
        fields.push(("more", (packets - 1).into()));
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
    number: Input,
    image: Input,
}

impl ImagePort {
    pub(crate) fn new(dut: &Dut) -> Self {
        Self::of(dut, ["image_we", "image_qpn", "image"])
    }

    /// That of shared receive queues.
    pub(crate) fn shared(dut: &Dut) -> Self {
        Self::of(dut, ["srq_we", "srq_srqn", "srq_image"])
    }

    fn of(dut: &Dut, names: [&str; 3]) -> Self {
        let [we, number, image] = names.map(|name| dut.input(name).expect("an image port"));
        Self { we, number, image }
    }

    /// Starts to write an image; the write is done after a cycle, see [`end`](Self::end).
    pub(crate) fn start(&self, dut: &mut Dut, qpn: u32, ctx: &RqCtx) {
        self.write(dut, qpn, &ctx.emit());
    }

    /// The same for a shared receive queue.
    pub(crate) fn start_shared(&self, dut: &mut Dut, srqn: u32, ctx: &SrqCtx) {
        self.write(dut, srqn, &ctx.emit());
    }

    fn write(&self, dut: &mut Dut, number: u32, bytes: &[u8]) {
        let words: Vec<u32> = bytes
            .chunks(4)
            .take(self.image.width().div_ceil(32))
            .map(|chunk| u32::from_le_bytes(chunk.try_into().expect("four bytes")))
            .collect();
        dut.set(self.we, 1);
        dut.set(self.number, number.into());
        dut.write(self.image, &words);
    }

    pub(crate) fn end(&self, dut: &mut Dut) {
        dut.set(self.we, 0);
    }
}

//! The block with everything around it.

use ferroce_hdl::transport::responder::reply::ReplyQueue;
use ferroce_proto::wire::psn::MASK;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::Input;

use super::host::{Memory, Region, Regions};
use super::request::{Kind, Packet, Request};
use super::store::Store;

/// Log2 of the queue pairs.
pub(crate) const Q: usize = 4;

/// A region of 2^40 bytes that a peer may use in any way.
pub(crate) const KEY: u32 = 0x1234;
pub(crate) const PD: u32 = 5;
pub(crate) const BASE: u64 = 1 << 40;
/// Payload writes that have no response yet.
pub(crate) const UNDER_WAY: u16 = 100;

/// Random pauses.
pub(crate) fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

/// A `PaceRate` with its valid bit: the rate of a queue pair in Mb/s, 0 for none.
pub(crate) fn rate_bits(qpn: u32, mbps: u64) -> u64 {
    let gap = (2000_u64 << 20).checked_div(mbps).unwrap_or(0);
    // a byte takes `gap` cycles of 2^-20: 2^30 / gap bytes in 1024 cycles
    let span = (1_u64 << 30).checked_div(gap).and_then(u64::checked_ilog2);
    let span = u64::from(span.unwrap_or(0));
    1 << 52 | span << 47 | gap << 16 | u64::from(qpn)
}

pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) tokens: StreamSource,
    pub(crate) replies: StreamSource,
    pub(crate) desc: StreamSink,
    pub(crate) gather: StreamSink,
    pub(crate) events: StreamSink,
    pub(crate) errors: StreamSink,
    pub(crate) memory: Memory,
    pub(crate) regions: Regions,
    pub(crate) store: Store,
    issued: Input,
    done: Input,
    lost: Input,
    lost_qpn: Input,
    lost_psn: Input,
    lost_msn: Input,
}

impl Rig {
    pub(crate) fn new(idle: Pauses, back: Pauses) -> Self {
        Self::of::<512, 64>(idle, back)
    }

    pub(crate) fn of<const W: usize, const K: usize>(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(ReplyQueue::<W, K, Q>::default).expect("the block builds");
        let dut = bench.dut();
        let mut rig = Self {
            tokens: StreamSource::new(dut, "tokens", idle).expect("a stream in"),
            replies: StreamSource::new(dut, "replies", idle).expect("a stream in"),
            desc: StreamSink::new(dut, "desc", back).expect("a stream out"),
            gather: StreamSink::new(dut, "gather", back).expect("a stream out"),
            events: StreamSink::new(dut, "events", back).expect("a stream out"),
            errors: StreamSink::new(dut, "errors", back).expect("a stream out"),
            memory: Memory::new(dut, K),
            regions: Regions::new(dut),
            store: Store::new(dut),
            issued: dut.input("issued").unwrap(),
            done: dut.input("done").unwrap(),
            lost: dut.input("lost").unwrap(),
            lost_qpn: dut.input("lost_qpn").unwrap(),
            lost_psn: dut.input("lost_psn").unwrap(),
            lost_msn: dut.input("lost_msn").unwrap(),
            bench,
        };
        rig.regions.list.push(Region {
            key: KEY,
            pd: PD,
            base: BASE,
            last: 2 * BASE - 1,
            read: true,
            atomic: true,
        });
        rig.set("av_we", 0);
        rig.set_rate(0);
        rig.set_classes();
        rig.close(0, 0);
        rig.set_done(0);
        rig.await_atomics(0);
        rig.reset();
        for qpn in 0..1 << Q {
            rig.path(qpn, false, false);
        }
        rig
    }

    /// Resets the block and waits for its sweep.
    pub(crate) fn reset(&mut self) {
        let lost = self.lost;
        self.bench.dut_mut().set(lost, 0);
        let mut agents: [&mut dyn Agent; 9] = [
            &mut self.tokens,
            &mut self.replies,
            &mut self.desc,
            &mut self.gather,
            &mut self.events,
            &mut self.errors,
            &mut self.memory,
            &mut self.regions,
            &mut self.store,
        ];
        self.bench.reset(&mut agents);
        self.run((1 << Q) + 2);
    }

    /// Writes the path of a queue pair.
    pub(crate) fn path(&mut self, qpn: u32, ipv6: bool, vlan: bool) {
        self.set("image_qpn", qpn.into());
        let dut = self.bench.dut_mut();
        let mut words = vec![0; dut.model().signal("av_image").unwrap().words()];
        let av = ferroce_proto::abi::qpc::AvCtx {
            ipv6,
            vlan_valid: vlan,
            tclass: ((qpn % 4) << 2) as u8,
            ..Default::default()
        };
        let bytes = av.emit();
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
            *word = u32::from_le_bytes(bytes.try_into().unwrap());
        }
        let image = dut.input("av_image").unwrap();
        dut.write(image, &words);
        self.set("av_we", 1);
        self.step();
        self.set("av_we", 0);
    }

    /// The responses of a queue pair have a rate in Mb/s from now on; 0: none.
    pub(crate) fn rate(&mut self, qpn: u32, mbps: u64) {
        self.set_rate(rate_bits(qpn, mbps));
        self.step();
        self.set_rate(0);
    }

    fn set_rate(&mut self, bits: u64) {
        self.set("rate", bits);
    }

    fn await_atomics(&mut self, qpn: u32) {
        self.set("awaited", qpn.into());
    }

    /// Atomics of a queue pair that are over, modulo 32.
    pub(crate) fn over(&mut self, qpn: u32) -> u64 {
        self.await_atomics(qpn);
        self.run(4);
        let dut = self.bench.dut();
        let over = dut.get(dut.output("over").unwrap());
        assert_eq!(over & 0xffff, u64::from(qpn));
        assert_eq!(over >> 21, 1, "nothing changes meanwhile");
        over >> 16 & 31
    }

    fn set(&mut self, name: &str, value: u64) {
        let dut = self.bench.dut_mut();
        let input = dut.input(name).unwrap();
        dut.set(input, value);
    }

    /// The class of a queue pair is its number modulo 4.
    fn set_classes(&mut self) {
        self.set("classes.by_pcp", 0);
        self.set("classes.prio_class", 0x3210);
        let dut = self.bench.dut_mut();
        let places = dut.input("classes.dscp_prio").unwrap();
        dut.write(places, &[0x3210, 0, 0, 0, 0, 0, 0, 0]);
        self.set_mac(1);
    }

    /// Paths are to 0.
    pub(crate) fn set_mac(&mut self, mac: u64) {
        self.set("mac", mac);
    }

    /// Classes of which no turn is to start, and those whose acknowledgements wait, a bit each.
    pub(crate) fn close(&mut self, closed: u64, acks_wait: u64) {
        self.set("closed", closed);
        self.set("acks_wait", acks_wait);
    }

    /// Payload writes done.
    pub(crate) fn set_done(&mut self, done: u16) {
        let (input, issued) = (self.done, self.issued);
        let dut = self.bench.dut_mut();
        dut.set(input, done.into());
        dut.set(issued, done.wrapping_add(UNDER_WAY).into());
    }

    /// What of it a command waits for: how many things there are at most, and whether one leaves.
    pub(crate) fn activity(&self, name: &str) -> (u64, bool) {
        let dut = self.bench.dut();
        let activity = dut.get(dut.output(name).unwrap());
        assert!(activity & 1 == 1 || activity >> 2 == 0, "idle with things");
        (activity >> 2, activity >> 1 & 1 == 1)
    }

    /// A packet of `qpn` is lost, in the next cycle.
    pub(crate) fn lose(&mut self, qpn: u32, psn: u32, msn: u32) {
        let lost = self.lost;
        let dut = self.bench.dut_mut();
        dut.set(self.lost_qpn, qpn.into());
        dut.set(self.lost_psn, psn.into());
        dut.set(self.lost_msn, msn.into());
        dut.set(lost, 1);
        self.step();
        self.bench.dut_mut().set(lost, 0);
    }

    pub(crate) fn step(&mut self) {
        let mut agents: [&mut dyn Agent; 9] = [
            &mut self.tokens,
            &mut self.replies,
            &mut self.desc,
            &mut self.gather,
            &mut self.events,
            &mut self.errors,
            &mut self.memory,
            &mut self.regions,
            &mut self.store,
        ];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.step());
    }

    fn token(&self, qpn: u32) -> Item {
        self.tokens.item().with("qpn", qpn.into())
    }

    /// An acknowledgement is due.
    pub(crate) fn ack(&mut self, qpn: u32, psn: u32, msn: u32, syndrome: u8) {
        let item = self.token(qpn).with("psn", (psn & MASK).into());
        let item = item.with("msn", msn.into());
        self.tokens.push(item.with("syndrome", syndrome.into()));
    }

    /// A request and its token.
    pub(crate) fn request(&mut self, request: &Request) {
        self.request_after(request, 0, false);
    }

    /// A request, the fence and the voidness of its token.
    pub(crate) fn request_after(&mut self, request: &Request, fence: u16, void: bool) {
        let (len, swap_add, compare) = match request.kind {
            Kind::Read(len) => (len, 0, 0),
            Kind::Add(add) => (8, add, 77),
            Kind::Swap { compare, swap } => (8, swap, compare),
        };
        let item = self.replies.item();
        self.replies.push(
            item.with("qpn", request.qpn.into())
                .with("incarnation", request.incarnation.into())
                .with("atomic", request.is_atomic().into())
                .with("add", matches!(request.kind, Kind::Add(_)).into())
                .with("duplicate", request.duplicate.into())
                .with("psn", request.psn.into())
                .with("msn", request.msn.into())
                .with("mtu", request.mtu.into())
                .with("pd", PD.into())
                .with("va", request.va)
                .with("rkey", request.rkey.into())
                .with("len", len.into())
                .with("swap_add", swap_add)
                .with("compare", compare),
        );
        let item = self.token(request.qpn).with("reply", 1);
        let item = item.with("void", void.into());
        self.tokens.push(item.with("fence", fence.into()));
    }

    /// A queue pair starts afresh.
    pub(crate) fn start_afresh(&mut self, qpn: u32) {
        let item = self.token(qpn).with("reset", 1);
        self.tokens.push(item);
    }

    /// A queue pair is to answer nothing any more.
    pub(crate) fn rsp_flush(&mut self, qpn: u32) {
        let item = self.token(qpn).with("rsp_flush", 1);
        self.tokens.push(item);
    }

    /// The next packet that left, with its cycle.
    pub(crate) fn left(&mut self) -> Option<(u64, Packet)> {
        let (cycle, item) = self.desc.pop()?;
        for field in ["rkey", "dma_len", "imm", "solicited", "ack_req", "notify"] {
            assert_eq!(item.get(field), 0, "{field} of a response");
        }
        let packet = Packet {
            qpn: item.get("qpn") as u32,
            opcode: item.get("opcode") as u8,
            psn: item.get("psn") as u32,
            msn: item.get("msn") as u32,
            syndrome: item.get("syndrome") as u8,
            plen: item.get("plen") as u32,
            value: item.get("va"),
        };
        Some((cycle, packet))
    }

    /// All packets that left.
    pub(crate) fn packets(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.left())
            .map(|left| left.1)
            .collect()
    }

    /// Address, bytes and lane of all pieces to fetch; each is a packet of its own.
    pub(crate) fn pieces(&mut self) -> Vec<(u64, u32, u32)> {
        let pieces = std::iter::from_fn(|| self.gather.pop()).map(|(_, item)| {
            assert_eq!((item.get("first"), item.get("last")), (1, 1));
            let (len, lane) = (item.get("len"), item.get("lane"));
            (item.get("addr"), len as u32, lane as u32)
        });
        pieces.collect()
    }

    /// Queue pair and incarnation of all replies reported as finished.
    pub(crate) fn finished(&mut self) -> Vec<(u32, u8)> {
        let events = std::iter::from_fn(|| self.events.pop());
        let kind = ferroce_hdl::transport::responder::event::RqEventKind::Replied as u64;
        let events = events.map(|(_, item)| {
            assert_eq!(item.get("kind"), kind);
            (item.get("qpn") as u32, item.get("incarnation") as u8)
        });
        events.collect()
    }

    /// Queue pair, incarnation and syndrome of all failures.
    pub(crate) fn failures(&mut self) -> Vec<(u32, u8, u8)> {
        let errors = std::iter::from_fn(|| self.errors.pop()).map(|(_, item)| {
            assert_eq!(
                item.get("status"),
                u64::from(ferroce_proto::abi::cq::status::GENERAL_ERR)
            );
            let syndrome = item.get("syndrome") as u8;
            (
                item.get("qpn") as u32,
                item.get("incarnation") as u8,
                syndrome,
            )
        });
        errors.collect()
    }
}

//! The bench: descriptors, tokens and payload of both lanes, the wire, and the counters.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::eth::tx_back::TxBack;
use ferroce_proto::wire::Opcode;
use ferroce_sim::bench::classes::write_classes;
use ferroce_sim::bench::{Agent, AxisSink, Bench, Frame, StreamSource};
use ferroce_sim::model::classes::Tables;
use ferroce_sim::random::Pauses;

use super::packets::{PORT_MAC, Packet, QUEUE_PAIRS, handle, local_gid, path};
use super::watch::Watch;

/// The bench.
pub(crate) struct Setup<const W: usize, const K: usize> {
    bench: Bench,
    desc: [StreamSource; 2],
    token: [StreamSource; 2],
    payload: [StreamSource; 2],
    sink: AxisSink,
    pub(crate) watch: Watch,
    tables: Tables,
    sent: [VecDeque<Packet>; 2],
    steady: bool,
    /// Tokens wait.
    hold: bool,
    /// Frames compared.
    done: u64,
}

impl<const W: usize, const K: usize> Setup<W, K> {
    /// A reset block whose tables are written. `pauses` are those of descriptors and tokens, `ready` those of the MAC.
    pub(crate) fn new(pauses: Pauses, ready: Pauses) -> Self {
        let bench = Bench::of(TxBack::<W, K, 8>::default).unwrap();
        let dut = bench.dut();
        let stream = |name: &str| {
            [0, 1].map(|lane| StreamSource::new(dut, &format!("{name}_{lane}"), pauses).unwrap())
        };
        let payload = [0, 1].map(|lane| {
            let fields = ["data", "last"];
            let name = format!("payload_{lane}");
            StreamSource::with_ports(dut, &name, &fields, ["valid", "ready"], Pauses::NONE).unwrap()
        });
        let mut setup = Self {
            desc: stream("desc"),
            token: stream("token"),
            payload,
            sink: AxisSink::new(dut, "m_axis_tx", ready).unwrap(),
            watch: Watch::new(dut),
            tables: Tables::default(),
            sent: Default::default(),
            steady: ready == Pauses::NONE,
            hold: false,
            done: 0,
            bench,
        };
        setup.restart();
        setup
    }

    /// Resets the block, forgets what was to be sent, and writes the tables.
    pub(crate) fn restart(&mut self) {
        let pauses = Pauses::NONE;
        self.with(|bench, agents| bench.reset(agents));
        self.tables = write_classes(&mut self.bench);
        let dut = self.bench.dut();
        for lane in 0..2 {
            let stream = |name: &str| StreamSource::new(dut, &format!("{name}_{lane}"), pauses);
            if !self.sent[lane].is_empty() {
                self.desc[lane] = stream("desc").unwrap();
                self.token[lane] = stream("token").unwrap();
                let (name, fields) = (format!("payload_{lane}"), ["data", "last"]);
                self.payload[lane] =
                    StreamSource::with_ports(dut, &name, &fields, ["valid", "ready"], pauses)
                        .unwrap();
                self.sent[lane].clear();
            }
        }
        while self.sink.pop().is_some() {}
        self.done = self.sink.count();
        self.watch = Watch::new(dut);
        let [
            av_we,
            ah_we,
            qpn,
            av,
            gid_we,
            index,
            gid,
            mac,
            cnp,
            hold_0,
            hold_1,
        ] = [
            "av_we",
            "ah_we",
            "image_qpn",
            "av_image",
            "gid_we",
            "gid_index",
            "gid",
            "mac",
            "cnp_valid",
            "hold_0",
            "hold_1",
        ]
        .map(|name| dut.input(name).unwrap());
        let dut = self.bench.dut_mut();
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&PORT_MAC.0);
        dut.set(mac, u64::from_le_bytes(bytes));
        dut.set(ah_we, 0);
        dut.set(hold_0, 0);
        dut.set(hold_1, 0);
        // no CNP is due
        dut.set(cnp, 0);
        for number in 0..16 {
            let dut = self.bench.dut_mut();
            dut.set(gid_we, 1);
            dut.set(index, number.into());
            dut.write(gid, &words(&local_gid(number).0));
            dut.set(av_we, u64::from(u16::from(number) < QUEUE_PAIRS));
            dut.set(qpn, number.into());
            let image = path(number.into()).emit();
            let width = dut.model().signal("av_image").unwrap().words();
            dut.write(av, &words(&image)[..width]);
            self.with(|bench, agents| bench.step(agents)).unwrap();
            let dut = self.bench.dut_mut();
            dut.set(gid_we, 0);
            dut.set(av_we, 0);
            dut.set(ah_we, u64::from(u16::from(number) < QUEUE_PAIRS));
            dut.write(av, &words(&handle(number.into()).emit())[..width]);
            self.with(|bench, agents| bench.step(agents)).unwrap();
            self.bench.dut_mut().set(ah_we, 0);
        }
    }

    /// What the block says of the frame of a packet: class, ACK, CNP, response, request.
    fn mark(&self, packet: &Packet) -> u64 {
        let headers = packet.headers();
        let pcp = headers.eth.vlan.map(|tci| (tci >> 13) as u8);
        let priority = self.tables.priority(headers.ip.traffic_class(), pcp);
        let ack = u64::from(packet.opcode == Opcode::RcAck);
        u64::from(self.tables.class(priority)) | ack << 2 | 0x20 >> packet.lane()
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let Self {
            desc: [d0, d1],
            token: [t0, t1],
            payload: [p0, p1],
            sink,
            watch,
            ..
        } = self;
        if self.hold {
            act(&mut self.bench, &mut [d0, d1, p0, p1, sink, watch])
        } else {
            act(&mut self.bench, &mut [d0, d1, t0, t1, p0, p1, sink, watch])
        }
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        self.bench.rng()
    }

    pub(crate) fn cycle(&self) -> u64 {
        self.bench.cycle()
    }

    pub(crate) fn queue_pairs(&self) -> std::ops::Range<u16> {
        0..QUEUE_PAIRS
    }

    /// From now on no token comes, or they come again.
    pub(crate) fn hold_tokens(&mut self, hold: bool) {
        self.hold = hold;
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        self.with(|bench, agents| bench.run(agents, cycles))
            .unwrap();
    }

    /// Queues a packet with its token and payload.
    pub(crate) fn send(&mut self, packet: Packet) {
        let lane = packet.lane();
        let item = self.desc[lane]
            .item()
            .with("qpn", packet.qpn.into())
            .with("opcode", packet.opcode.code().into())
            .with("psn", packet.psn.into())
            .with("solicited", packet.solicited.into())
            .with("ack_req", packet.ack_req.into())
            .with("plen", packet.plen as u64)
            .with("path", packet.aligned().into())
            .with("va", packet.va())
            .with("swap_add", packet.swap_add)
            .with("compare", packet.compare)
            .with("notify", packet.notify.into())
            .with("next_psn", u64::from(packet.psn + 1) & 0xff_ffff)
            .with("rkey", packet.rkey.into())
            .with("dma_len", packet.dma_len.into())
            .with("imm", packet.imm.into())
            .with("syndrome", packet.syndrome.into())
            .with("msn", packet.msn.into());
        self.desc[lane].push(item);
        if packet.plen > 0 {
            let token = self.token[lane].item();
            self.token[lane].push(token.with("error", packet.unreadable.into()));
            let start = packet.payload_at() % K;
            let beats = (start + packet.plen).div_ceil(K);
            let mut data: Vec<u8> = (0..beats * K).map(|_| self.bench.rng().u8(..)).collect();
            data[start..start + packet.plen].copy_from_slice(&packet.payload());
            for (number, beat) in data.chunks(K).enumerate() {
                let mut item = self.payload[lane].item();
                item.set_words("data", &words(beat));
                item.set("last", u64::from(number + 1 == beats));
                self.payload[lane].push(item);
            }
        }
        self.sent[lane].push_back(packet);
    }

    /// No request with payload starts while this is set.
    pub(crate) fn hold_requests(&mut self, hold: bool) {
        let port = self.bench.dut().input("hold_0").unwrap();
        self.bench.dut_mut().set(port, hold.into());
    }

    /// Runs until all is sent and compares; the cycle of the last beat of each frame, with its lane.
    pub(crate) fn finish(&mut self) -> Vec<(u64, usize)> {
        let mut left: [VecDeque<Packet>; 2] = std::mem::take(&mut self.sent);
        let lost = [0, 1].map(|lane| -> Vec<[u64; 3]> {
            let packets = left[lane].iter().filter(|packet| packet.is_dropped());
            let of = |p: &Packet| [p.qpn.into(), p.psn.into(), p.msn.into()];
            packets.map(of).collect()
        });
        left.iter_mut()
            .for_each(|lane| lane.retain(|packet| !packet.is_dropped()));
        let departed: Vec<_> = left[0]
            .iter()
            .filter(|packet| packet.notify)
            .map(|packet| (packet.qpn, packet.psn))
            .collect();
        let frames = (left[0].len() + left[1].len()) as u64;
        let before = self.done;
        self.done += frames;
        for _ in 0..400_000 {
            if self.sink.count() - before == frames {
                break;
            }
            self.run(1);
        }
        self.run(200);
        assert_eq!(self.sink.count() - before, frames, "frames");
        let mut arrived = vec![];
        let (mut bytes, mut acks) = (0, 0);
        while let Some((cycle, frame)) = self.sink.pop() {
            let wanted = [0, 1].map(|lane| left[lane].front().map(|p| Frame::new(p.frame())));
            let lane = wanted
                .iter()
                .position(|wanted| wanted.as_ref() == Some(&frame));
            let lane = lane.unwrap_or_else(|| {
                panic!(
                    "{frame:x?}\nis none of {wanted:x?}, of {:?}, {:?}",
                    left[0].front(),
                    left[1].front()
                )
            });
            let packet = left[lane].pop_front().expect("it was compared");
            assert_eq!(self.watch.marks.get(&cycle), Some(&self.mark(&packet)));
            bytes += frame.bytes.len() as u64;
            acks += u64::from(packet.opcode == Opcode::RcAck);
            arrived.push((cycle, lane));
        }
        assert_eq!(self.watch.lost_of, lost);
        assert_eq!(self.watch.departed, departed);
        assert_eq!(self.watch.counts, [frames, bytes, frames, acks]);
        assert_eq!(self.watch.entered, frames);
        if self.steady {
            assert_eq!(self.watch.gaps, 0, "cycles without a beat inside of frames");
        }
        arrived
    }
}

/// Bytes as words, least significant first.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| {
        chunk
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    bytes.chunks(4).map(word).collect()
}

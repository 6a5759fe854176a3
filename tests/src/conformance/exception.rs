//! The exception queue: frames of other protocols to the host and from it.

use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::exception::{HEAD_BYTES, LARGE_SLOT_BYTES, MIN_FRAME, SLOT_BYTES};
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::Mac;
use ferroce_sim::testhost::{ExceptionQueue, Host, QpOptions, Rights, Work, experimental, pattern};

use super::bench::{Bench, IP};
use super::event_queue::Eq;
use super::{cases, check, check_bytes};

const EXCEPTION: u32 = feature::EXCEPTION;
const EVENTS: u32 = EXCEPTION | feature::EVENTS;
const RDMA: u32 = EXCEPTION | feature::RC;

cases! {
    exception_queue_off, EXCEPTION, "abi exception", "A frame that is not RoCEv2 is counted and forgotten while the queue is off.";
    exception_receives, EXCEPTION, "abi exception", "Frames of all lengths that a slot takes arrive in order; the phase changes with each round.";
    exception_of_the_station, EXCEPTION, "abi exception", "Frames to the port and to groups are the host's, those to other stations are not.";
    exception_ring_full, EXCEPTION, "abi exception", "Frames that find no slot wait until the host gives one back.";
    exception_too_long, EXCEPTION, "abi exception", "A frame longer than a slot takes is dropped and counted.";
    exception_sends, EXCEPTION, "abi exception", "Frames of the host leave in order, with all lengths from an Ethernet header to a slot.";
    exception_of_a_bad_length, EXCEPTION, "abi exception", "A frame to send that is too short or too long is passed over.";
    exception_large_slots, EXCEPTION, "abi exception", "Large slots take frames of 16320 bytes, both ways.";
    exception_turned_off_and_on, EXCEPTION, "abi exception", "Turned off the queue comes to rest; turned on its indices are 0 and its rings where they are now.";
    exception_rings_anywhere, EXCEPTION, "abi exception", "The rings are wherever the host says, each time it turns the queue on.";
    exception_of_a_card_not_enabled, EXCEPTION, "abi regs", "A card that is not enabled sends nothing of the queue.";
    exception_event, EVENTS, "abi exception", "An armed queue reports one event when there is a frame beyond the index.";
    exception_among_rdma, RDMA, "abi exception", "Frames of the host and RDMA share the port.";
}

/// A station on the wire.
const PEER: Mac = Mac([0x52, 0x54, 0, 0, 0, 1]);

/// Cycles in which the card takes or brings a frame of `len` bytes.
fn cycles(len: usize) -> u64 {
    1200 + len as u64
}

/// A card whose exception queue is on.
struct Queue {
    host: Host,
    queue: ExceptionQueue,
}

impl Queue {
    fn new(bench: &mut Bench, log_slots: u8, large: bool) -> Self {
        let mac = Mac([0x52, 0x54, 0, 0, 0, 2]);
        let mut host = Host::new(|memory| bench.card(memory), mac, IP[1]);
        let queue = ExceptionQueue::open(&mut host, log_slots, large);
        Self { host, queue }
    }

    fn open(&mut self, log_slots: u8, large: bool) {
        self.queue = ExceptionQueue::open(&mut self.host, log_slots, large);
    }

    /// Turns it off, and waits until the card is done with its memory.
    fn close(&mut self) {
        self.host.write32(regs::EXC_CONFIG, 0);
        for _ in 0..1000 {
            if self.host.read32(regs::EXC_STATUS) >> 16 & 1 == 0 {
                return;
            }
        }
        panic!("the exception queue stays busy");
    }

    fn run(&mut self, cycles: u64) {
        let end = self.host.nic.now() + cycles;
        self.host.nic.run_until(end);
    }

    fn receive(&mut self, frame: &[u8]) {
        // Register writes on their way come first.
        self.host.read32(regs::SCRATCH);
        self.host.nic.receive(frame);
        self.run(cycles(frame.len()));
    }

    /// The next frame in the ring; its slot is not given back.
    fn take(&mut self) -> Option<Vec<u8>> {
        self.queue.take(&self.host)
    }

    fn give_back(&mut self, arm: bool) {
        self.queue.give_back(&mut self.host, arm);
    }

    /// Hands the card a frame of these bytes that says it has `length`.
    fn post(&mut self, frame: &[u8], length: u16) {
        self.queue.put(&self.host, frame, length);
        self.queue.ring(&mut self.host);
    }

    #[track_caller]
    fn arrives(&mut self, frame: &[u8]) {
        self.receive(frame);
        let found = self.take().expect("the frame in its slot");
        check_bytes("the frame received", &found, frame);
        self.give_back(false);
    }

    #[track_caller]
    fn leaves(&mut self, frame: &[u8]) {
        self.post(frame, frame.len() as u16);
        self.run(cycles(frame.len()));
        let sent = self.host.nic.transmit().expect("a frame");
        check_bytes("the frame sent", &sent, frame);
    }
}

/// A frame of an unknown protocol.
fn frame(to: Mac, len: usize) -> Vec<u8> {
    experimental(PEER, to, &pattern(len.saturating_sub(MIN_FRAME), len as u8))
}

fn exception_queue_off(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    q.close();
    let frame = frame(q.host.mac, 60);
    q.receive(&frame);
    check("counted", q.host.stat("rx_not_roce"), 1);
    check("received", q.take(), None);
}

fn exception_receives(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    let mac = q.host.mac;
    for len in [60, 61, 62, 63, 64, 65, 127, 129, 1000, 1514] {
        q.arrives(&frame(mac, len));
    }
    q.arrives(&frame(mac, SLOT_BYTES - HEAD_BYTES));
    for len in 60..70 {
        q.host.nic.receive(&frame(mac, len));
        q.host.nic.receive(&frame(mac, 500));
        q.run(2 * cycles(500));
        check("first", q.take(), Some(frame(mac, len)));
        check("second", q.take(), Some(frame(mac, 500)));
        q.give_back(false);
    }
    check("counted", q.host.stat("rx_exceptions"), 31);
}

fn exception_of_the_station(bench: &mut Bench) {
    let mut q = Queue::new(bench, 3, false);
    let mut stranger = q.host.mac;
    stranger.0[5] ^= 4;
    q.receive(&frame(stranger, 80));
    check("of a stranger", q.take(), None);
    for group in [[0xff; 6], [0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1]] {
        q.arrives(&frame(Mac(group), 80));
    }
}

fn exception_ring_full(bench: &mut Bench) {
    let mut q = Queue::new(bench, 1, false);
    let mac = q.host.mac;
    for len in 60..65 {
        q.receive(&frame(mac, len));
    }
    for len in 60..65 {
        check("frame", q.take(), Some(frame(mac, len)));
        if len % 2 == 1 {
            check("a third", q.take(), None);
            q.give_back(false);
            q.run(2 * cycles(60));
        }
    }
    check("more", q.take(), None);
    check("dropped", q.host.stat("rx_exception_drops"), 0);
}

fn exception_too_long(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    let mac = q.host.mac;
    for len in [SLOT_BYTES - HEAD_BYTES + 1, 4000, 9000, 1 << 16] {
        q.receive(&frame(mac, len));
        check("received", q.take(), None);
    }
    check("dropped", q.host.stat("rx_exception_drops"), 4);
    q.arrives(&frame(mac, 100));
}

fn exception_sends(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    for len in [
        14, 15, 16, 42, 60, 63, 64, 65, 127, 128, 129, 192, 193, 1514,
    ] {
        q.leaves(&frame(PEER, len));
    }
    q.leaves(&frame(PEER, SLOT_BYTES - HEAD_BYTES));
    for len in 100..104 {
        q.post(&frame(PEER, len), len as u16);
    }
    q.run(4 * cycles(100));
    for len in 100..104 {
        check("frame", q.host.nic.transmit(), Some(frame(PEER, len)));
    }
    let status = q.host.read32(regs::EXC_STATUS);
    check("consumer index", status & 0xffff, q.queue.sent().into());
    check("counted", q.host.stat("tx_exceptions"), 19);
}

fn exception_of_a_bad_length(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    let longest = (SLOT_BYTES - HEAD_BYTES) as u16;
    for length in [0, 1, 13, longest + 1, 0x8000, 0xffff] {
        q.post(&frame(PEER, 64), length);
        q.run(cycles(64));
        check("frame", q.host.nic.transmit(), None);
        q.leaves(&frame(PEER, 64));
    }
    let status = q.host.read32(regs::EXC_STATUS);
    check("consumer index", status & 0xffff, q.queue.sent().into());
}

fn exception_large_slots(bench: &mut Bench) {
    let mut q = Queue::new(bench, 1, true);
    let mac = q.host.mac;
    for len in [64, 2049, 9018, LARGE_SLOT_BYTES - HEAD_BYTES] {
        q.arrives(&frame(mac, len));
        q.leaves(&frame(PEER, len));
    }
}

fn exception_turned_off_and_on(bench: &mut Bench) {
    let mut q = Queue::new(bench, 1, false);
    let mac = q.host.mac;
    for log_slots in [0, 8, 3] {
        for len in [60, 70, 80] {
            q.arrives(&frame(mac, len));
            q.leaves(&frame(PEER, len));
        }
        q.close();
        check("status", q.host.read32(regs::EXC_STATUS), 0);
        check("consumer", q.host.read32(regs::EXC_RX_CI), 0);
        check("producer", q.host.read32(regs::EXC_TX_PI), 0);
        q.open(log_slots, false);
    }
    q.arrives(&frame(mac, 90));
}

fn exception_rings_anywhere(bench: &mut Bench) {
    let mut q = Queue::new(bench, 1, false);
    let mac = q.host.mac;
    for round in 0..16 {
        q.close();
        q.open(1 + round % 3, round % 4 == 3);
        for len in [60, 61] {
            q.arrives(&frame(mac, len));
            q.leaves(&frame(PEER, len));
        }
    }
}

fn exception_of_a_card_not_enabled(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    let frame = frame(PEER, 200);
    q.host.write32(regs::CONTROL, 0);
    q.post(&frame, 200);
    q.run(cycles(200));
    check("frame", q.host.nic.transmit(), None);
    q.host.write32(regs::CONTROL, regs::control::ENABLE);
    q.run(cycles(200));
    check("frame", q.host.nic.transmit(), Some(frame));
}

fn exception_event(bench: &mut Bench) {
    let mut q = Queue::new(bench, 2, false);
    let mac = q.host.mac;
    let eq = Eq::new(&mut q.host, 0, 4, 0x2aa);
    let events = |q: &Queue| {
        let there = eq.there(&q.host).into_iter();
        there.map(|event| event.0).collect::<Vec<_>>()
    };
    q.arrives(&frame(mac, 60));
    check("not armed", events(&q), vec![]);
    q.give_back(true);
    q.run(cycles(60));
    check("nothing beyond", events(&q), vec![]);
    for count in 1..4 {
        q.receive(&frame(mac, 60));
        check("armed", events(&q), vec![event::EXCEPTION; count]);
        check("interrupt", q.host.nic.interrupt(), Some(0x2aa));
        q.receive(&frame(mac, 60));
        check("once", events(&q), vec![event::EXCEPTION; count]);
        // One of the two stays, the other one is behind it.
        q.take();
        q.take();
        q.give_back(true);
    }
}

fn exception_among_rdma(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let data = pattern(30_000, 3);
    let source = c.a.create_mr(&data, Rights::NONE);
    let target = c.b.create_mr(&[0; 30_000], Rights::ALL);
    let [mut outgoing, mut incoming] =
        [&mut c.pair.a, &mut c.pair.b].map(|host| ExceptionQueue::open(host, 4, false));
    let index = c.post(&Work::write(&[source.all()], &target, 0));
    let sent: Vec<_> = (0..8_u16)
        .map(|i| frame(c.b.mac, 60 + 40 * usize::from(i)))
        .collect();
    for frame in &sent {
        outgoing.post(&mut c.a, frame);
        c.run(200);
    }
    c.succeeds(ferroce_sim::testhost::Side::A, index);
    c.settle();
    check_bytes("the target", &c.b.contents(&target), &data);
    for frame in &sent {
        let found = incoming.take(&c.b).expect("a frame");
        check_bytes("a frame", &found, frame);
    }
}

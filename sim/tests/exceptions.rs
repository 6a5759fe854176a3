//! The exception queue under the driver, on the golden model and on the Verilated engine.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use ferroce_driver::{
    Access, Backend, Context, ExceptionError, ExceptionQueue, Features, Gid, Mac, Qp, Remote,
    SendError, SendOp, SendWr, Wc,
};
use ferroce_proto::abi::exception::{HEAD_BYTES, LARGE_SLOT_BYTES, SLOT_BYTES};
use ferroce_proto::abi::regs::{self, feature};
use ferroce_sim::card::SimCard;
use ferroce_sim::link::Config;
use ferroce_sim::memory::{HostMemory, ProcessMemory};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;
use ferroce_sim::world::{NodeId, World};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Writes a register.
fn write32(card: &impl Backend, offset: u64, value: u32) {
    // SAFETY: the card is given no memory.
    unsafe { card.write32(offset, value) };
}

const MAC: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 0xa]), Mac([2, 0, 0, 0, 0, 0xb])];
const IP: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const LONGEST: usize = SLOT_BYTES - HEAD_BYTES;

/// What a card is made of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Model,
    /// The standard build with a data path of so many bits.
    Rtl(usize),
}

/// Cards with addresses, the first two on a wire.
struct Cards {
    world: Rc<RefCell<World>>,
    nodes: Vec<NodeId>,
    hosts: Vec<Context<SimCard>>,
}

impl Cards {
    fn new(kind: Kind, count: usize) -> Result<Self> {
        let model = match kind {
            Kind::Model => None,
            Kind::Rtl(width) => Some(build::model(width, &verilator::Options::default())?),
        };
        let nic = |memory: Rc<dyn HostMemory>| -> Result<Box<dyn Nic>> {
            Ok(match &model {
                None => Box::new(Model::new(DEFAULT_PARAMS, memory)),
                Some(model) => Box::new(build::engine(model, memory, &Options::host(7))?),
            })
        };
        let mut cards = Self {
            world: Rc::new(RefCell::new(World::new())),
            nodes: Vec::new(),
            hosts: Vec::new(),
        };
        let memories = vec![(); count];
        let memories: Vec<_> = memories
            .iter()
            .map(|()| Rc::new(ProcessMemory::new()))
            .collect();
        for (i, memory) in memories.iter().enumerate() {
            let nic = nic(memory.clone())?;
            let node = cards.world.borrow_mut().add(format!("host{i}"), nic);
            cards.nodes.push(node);
        }
        if let [a, b] = cards.nodes[..] {
            let wire = Config::ethernet_100g();
            cards.world.borrow_mut().connect(a, b, wire.clone(), wire);
        }
        for (i, memory) in memories.iter().enumerate() {
            let card = SimCard::new(cards.world.clone(), cards.nodes[i], memory.clone());
            let host = Context::open(card)?;
            host.set_mac(MAC[i])?;
            host.set_gid(0, Gid::from(std::net::Ipv4Addr::from(IP[i])))?;
            cards.hosts.push(host);
        }
        Ok(cards)
    }

    fn inject(&self, frame: &[u8]) {
        self.world.borrow_mut().inject(self.nodes[0], frame);
    }

    fn take(&self) -> Option<Vec<u8>> {
        self.world.borrow_mut().take(self.nodes[0])
    }

    fn run(&self, cycles: u64) {
        self.world.borrow_mut().run(cycles);
    }

    /// A counter of the first card.
    fn count(&self, name: &str) -> u64 {
        let statistics = self.hosts[0].statistics();
        let found = statistics.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1
    }

    fn assert_healthy(&self) {
        let failures = self.world.borrow().failures();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

/// An ARP packet (RFC 826) in a frame: a request of `from` for the address of `to`, or the reply to one.
fn arp(from: usize, to: usize, reply: bool) -> Vec<u8> {
    let broadcast = Mac([0xff; 6]);
    let mut frame = Vec::new();
    frame.extend(if reply { MAC[to].0 } else { broadcast.0 });
    frame.extend(MAC[from].0);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + u8::from(reply)]);
    frame.extend(MAC[from].0);
    frame.extend(IP[from]);
    frame.extend(if reply { MAC[to].0 } else { [0; 6] });
    frame.extend(IP[to]);
    frame
}

/// Waits for a frame.
fn wait(queue: &mut ExceptionQueue<SimCard>, host: &Context<SimCard>) -> Vec<u8> {
    let mut buffer = vec![0; queue.max_frame()];
    for _ in 0..2000 {
        if let Some(len) = queue.poll(&mut buffer) {
            buffer.truncate(len);
            return buffer;
        }
        host.backend().relax();
    }
    panic!("no frame came");
}

/// ARP in, and answered by the host.
fn the_host_answers_arp(kind: Kind) -> Result<()> {
    let cards = Cards::new(kind, 1)?;
    let host = &cards.hosts[0];
    assert!(host.query_device().features.contains(Features::EXCEPTION));
    // Off: counted and forgotten.
    cards.inject(&arp(1, 0, false));
    cards.run(200);
    assert_eq!(cards.count("rx_not_roce"), 1);

    let mut queue = host.create_exception_queue(4, false)?;
    let again = host.create_exception_queue(4, false);
    assert!(matches!(again, Err(ExceptionError::InUse)));
    let mut padded = arp(1, 0, false);
    padded.resize(60, 0);
    for _ in 0..10 {
        cards.inject(&padded);
        assert_eq!(wait(&mut queue, host), padded);
        queue.send(&arp(0, 1, true))?;
        cards.run(1500);
        assert_eq!(cards.take(), Some(arp(0, 1, true)));
    }
    // To another station: not for the host.
    let mut other = arp(1, 0, true);
    other[5] ^= 4;
    cards.inject(&other);
    // IPv6 neighbour discovery goes to a multicast address.
    let mut multicast = vec![0x33, 0x33, 0xff, 0, 0, 1];
    multicast.extend(MAC[1].0);
    multicast.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]);
    multicast.resize(86, 0x11);
    cards.inject(&multicast);
    assert_eq!(wait(&mut queue, host), multicast);
    // All lengths up to that of a slot, and one more.
    for len in [62, 63, 64, 65, 128, 1514, LONGEST, LONGEST + 1] {
        let mut frame = multicast.clone();
        frame.resize(len, 0x77);
        cards.inject(&frame);
        if len <= LONGEST {
            assert_eq!(wait(&mut queue, host), frame);
            queue.send(&frame)?;
            cards.run(1500);
            assert_eq!(cards.take(), Some(frame));
        }
    }
    cards.run(1000);
    let expected = [
        ("rx_exceptions", 18),
        ("rx_exception_drops", 1),
        ("rx_not_roce", 1),
        ("rx_wrong_address", 1),
        ("tx_exceptions", 17),
        ("tx_frames", 17),
        ("tx_roce_packets", 0),
        ("rx_frames", 21),
    ];
    for (name, value) in expected {
        assert_eq!(cards.count(name), value, "{name}");
    }
    let bytes = 10 * 42 + 62 + 63 + 64 + 65 + 128 + 1514 + LONGEST as u64;
    assert_eq!(cards.count("tx_bytes"), bytes);

    // Full rings.
    for _ in 0..4 {
        cards.inject(&padded);
    }
    cards.run(3000);
    let frame = [0x5a; 60];
    assert_eq!(
        queue.send(&[0; 13]),
        Err(SendError::Length {
            len: 13,
            min: 14,
            max: LONGEST
        })
    );
    // A card that is not enabled sends nothing.
    let control = u64::from(regs::CONTROL);
    write32(host.backend(), control, 0);
    for _ in 0..4 {
        queue.send(&frame)?;
    }
    assert_eq!(queue.send(&frame), Err(SendError::Full { slots: 4 }));
    write32(host.backend(), control, regs::control::ENABLE);
    for _ in 0..4 {
        cards.run(1000);
        assert_eq!(cards.take(), Some(frame.to_vec()));
    }
    queue.send(&frame)?;
    cards.run(1000);
    assert_eq!(cards.take(), Some(frame.to_vec()));
    drop(queue);

    // Once more, with large slots.
    let mut queue = host.create_exception_queue(3, true)?;
    let mut frame = multicast.clone();
    frame.resize(LARGE_SLOT_BYTES - HEAD_BYTES, 0x39);
    cards.inject(&frame);
    assert_eq!(wait(&mut queue, host), frame);
    queue.send(&frame)?;
    cards.run(6000);
    assert_eq!(cards.take(), Some(frame));
    // A frame with the phase of a later round.
    for _ in 0..9 {
        cards.inject(&padded);
        assert_eq!(wait(&mut queue, host), padded);
    }
    drop(queue);
    cards.assert_healthy();
    Ok(())
}

/// Frames of both hosts among RDMA traffic.
fn among_rdma(kind: Kind) -> Result<()> {
    const LEN: usize = 60_000;
    let cards = Cards::new(kind, 2)?;
    let [a, b] = &cards.hosts[..] else {
        unreachable!()
    };
    let mut queues = [
        a.create_exception_queue(8, false)?,
        b.create_exception_queue(8, false)?,
    ];
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let mut from = pd_a.alloc_mr(LEN, Access::empty())?;
    let message: Vec<u8> = (0..LEN).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    from.write(0, &message);
    let to = pd_b.alloc_mr(LEN, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let (mut cq_a, cq_b) = (a.create_cq(16)?, b.create_cq(16)?);
    let mut qp_a = Qp::builder(&pd_a).rc().cq(&cq_a).build()?;
    let mut qp_b = Qp::builder(&pd_b).rc().cq(&cq_b).build()?;
    let (end_a, end_b) = (qp_a.endpoint()?, qp_b.endpoint()?);
    qp_a.connect(&end_b)?;
    qp_b.connect(&end_a)?;
    let remote = Remote {
        addr: to.addr(),
        rkey: to.rkey(),
    };
    let list = [from.sge(..)];
    for id in 0..3 {
        qp_a.post_send(&[SendWr::new(SendOp::Write(remote), &list)
            .wr_id(id)
            .signaled()])?;
    }
    for _ in 0..20 {
        queues[0].send(&arp(0, 1, false))?;
        // The wire pads to the shortest frame of Ethernet.
        let request = wait(&mut queues[1], b);
        assert!(request.len() >= 60 && request.starts_with(&arp(0, 1, false)));
        queues[1].send(&arp(1, 0, true))?;
        assert!(wait(&mut queues[0], a).starts_with(&arp(1, 0, true)));
    }
    let mut wcs = [Wc::default(); 4];
    let mut done = 0;
    while done < 3 {
        let n = cq_a.wait(&mut wcs, Duration::from_millis(10));
        assert!(n > 0, "no completion");
        for wc in &wcs[..n] {
            wc.ok()?;
        }
        done += n;
    }
    let mut found = vec![0; LEN];
    to.read(0, &mut found);
    assert!(found == message, "data");
    assert_eq!(cards.count("tx_exceptions"), 20);
    assert_eq!(cards.count("rx_exceptions"), 20);
    cards.assert_healthy();
    Ok(())
}

#[test]
fn model_answers_arp() -> Result<()> {
    the_host_answers_arp(Kind::Model)
}

#[test]
fn model_among_rdma() -> Result<()> {
    among_rdma(Kind::Model)
}

#[test]
fn engine_512_answers_arp() -> Result<()> {
    the_host_answers_arp(Kind::Rtl(512))
}

#[test]
fn engine_512_among_rdma() -> Result<()> {
    among_rdma(Kind::Rtl(512))
}

#[test]
fn engine_64_answers_arp() -> Result<()> {
    the_host_answers_arp(Kind::Rtl(64))
}

#[test]
fn a_card_without_the_queue_refuses() -> Result<()> {
    let world = Rc::new(RefCell::new(World::new()));
    let memory = Rc::new(ProcessMemory::new());
    let model = Model::with_features(DEFAULT_PARAMS, feature::RC, memory.clone());
    let node = world.borrow_mut().add("old", model);
    let host = Context::open(SimCard::new(world, node, memory))?;
    let refused = host.create_exception_queue(4, false);
    assert!(matches!(refused, Err(ExceptionError::Unsupported)));
    Ok(())
}

#[test]
fn numbers_of_slots() -> Result<()> {
    let cards = Cards::new(Kind::Model, 1)?;
    for slots in [0, 257] {
        let refused = cards.hosts[0].create_exception_queue(slots, false);
        assert!(matches!(
            refused,
            Err(ExceptionError::Slots { limit: 256, .. })
        ));
    }
    for slots in [1, 3, 256] {
        let mut queue = cards.hosts[0].create_exception_queue(slots, false)?;
        for i in 0..600_u32 {
            let mut frame = arp(1, 0, false);
            frame.extend(i.to_le_bytes());
            cards.inject(&frame);
            assert_eq!(wait(&mut queue, &cards.hosts[0]), frame);
        }
    }
    Ok(())
}

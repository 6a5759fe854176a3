//! The driver over simulated cards.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use ferroce_driver::{
    Access, Backend, BackendError, Context, DmaAccess, Gid, Mac, Qp, RecvWr, Remote, SendOp,
    SendWr, Wc,
};
use ferroce_sim::card::{PAGE, READ_TIMEOUT, SimCard};
use ferroce_sim::link::{Config, Impairment};
use ferroce_sim::memory::{HostMemory, ProcessMemory};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::pcap;
use ferroce_sim::pcapng::Recorder;
use ferroce_sim::rtl::{Engine, Options, VerilatedPins, verilated};
use ferroce_sim::scoreboard::Scoreboard;
use ferroce_sim::verilator::{self, Spec};
use ferroce_sim::world::World;

/// Writes a register.
fn write32(card: &SimCard, offset: u64, value: u32) {
    // SAFETY: what the card reaches is the test's, which holds no reference to it.
    unsafe { card.write32(offset, value) };
}

/// Whole pages that are touched through raw pointers only.
struct Pages {
    start: *mut u8,
    len: usize,
}

impl Pages {
    fn new(pages: usize) -> Self {
        let layout = Layout::from_size_align(pages * PAGE, PAGE).unwrap();
        // SAFETY: the layout has a size.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        assert!(!start.is_null());
        Self {
            start,
            len: pages * PAGE,
        }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len);
        self.start.wrapping_add(offset)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.len, PAGE).unwrap();
        // SAFETY: allocated with this layout.
        unsafe { alloc::dealloc(self.start, layout) };
    }
}

/// A Verilated card that copies memory, see its source.
fn copier() -> (SimCard, Rc<ProcessMemory>) {
    let spec = Spec::new("copier", include_str!("rtl/copier.v"))
        .clock("clk")
        .ports(verilated::ports(64));
    let model = verilator::build(&spec, &verilator::Options::default()).unwrap();
    let pins = VerilatedPins::new(model.instance().unwrap()).unwrap();
    let memory = Rc::new(ProcessMemory::new());
    let mut world = World::new();
    let node = world.add(
        "copier",
        Engine::new(pins, memory.clone(), &Options::host(1)),
    );
    let card = SimCard::new(Rc::new(RefCell::new(world)), node, memory.clone());
    (card, memory)
}

#[test]
fn the_card_reaches_what_is_mapped_and_only_that() {
    let pages = Pages::new(2);
    let (card, memory) = copier();
    for at in 0..PAGE {
        // SAFETY: within the pages.
        unsafe { pages.at(at).write_volatile(at as u8 ^ (at >> 8) as u8) };
    }
    // SAFETY: the pages outlive the card and are touched through raw pointers only.
    unsafe { card.map(pages.start, pages.len, DmaAccess::ReadWrite) }.unwrap();
    write32(&card, 0, 0x1234);
    assert_eq!(card.read32(0), 0x1234);
    let before = card.now_ns();
    let (source, target) = (pages.start.addr() as u64, pages.at(PAGE).addr() as u64);
    for (offset, value) in [(8, source), (16, target)] {
        write32(&card, offset, value as u32);
        write32(&card, offset + 4, (value >> 32) as u32);
    }
    write32(&card, 0x18, 63);
    while card.read32(0x1c) == 0 {
        card.relax();
        assert!(card.now_ns() < 1_000_000, "no copy within 1 ms");
    }
    assert!(
        card.now_ns() > before + 1000,
        "the latency of host memory was not spent"
    );
    for at in 0..PAGE {
        // SAFETY: within the pages.
        let copied = unsafe { pages.at(PAGE + at).read_volatile() };
        assert_eq!(copied, at as u8 ^ (at >> 8) as u8);
    }
    assert!(memory.faults().is_empty());

    // SAFETY: the test mapped it.
    unsafe { card.unmap(pages.start, pages.len) }.unwrap();
    write32(&card, 0x18, 0);
    while card.read32(0x1c) & 0xffff == 1 {
        card.relax();
    }
    assert_eq!(
        card.read32(0x1c),
        0x3_0002,
        "a second copy, answered DECERR"
    );
    assert_eq!(memory.faults().len(), 2, "a read and a write");
    assert_eq!(card.world().borrow().failures().len(), 2);
}

/// A card that answers nothing.
struct Mute;

impl Nic for Mute {
    fn write32(&mut self, _: u64, _: u32) {}
    fn start_read32(&mut self, _: u64) {}
    fn take_read32(&mut self) -> Option<u32> {
        None
    }
    fn step(&mut self) {}
    fn now(&self) -> u64 {
        0
    }
    fn receive(&mut self, _: &[u8]) {}
    fn transmit(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn interrupt(&mut self) -> Option<u16> {
        None
    }
    fn reset(&mut self) {}
}

#[test]
fn a_card_that_does_not_answer_reads_as_all_ones() {
    let mut world = World::new();
    let node = world.add("mute", Mute);
    let world = Rc::new(RefCell::new(world));
    let card = SimCard::new(world.clone(), node, Rc::new(ProcessMemory::new()));
    assert_eq!(card.read32(0), u32::MAX);
    assert_eq!(world.borrow().now(), READ_TIMEOUT);
    assert_eq!(card.read32(4), u32::MAX);
    assert_eq!(world.borrow().now(), READ_TIMEOUT, "it is not asked again");
}

#[test]
fn mappings_are_checked() {
    let pages = Pages::new(4);
    let (card, _) = copier();
    let map = |offset, len| {
        // SAFETY: the pages outlive the card and are not touched.
        unsafe { card.map(pages.at(offset), len, DmaAccess::ReadWrite) }
    };
    assert!(matches!(
        map(8, PAGE),
        Err(BackendError::Unaligned { page: PAGE, .. })
    ));
    assert!(matches!(
        map(0, PAGE + 1),
        Err(BackendError::Unaligned { .. })
    ));
    map(PAGE, 2 * PAGE).unwrap();
    assert!(matches!(
        map(2 * PAGE, PAGE),
        Err(BackendError::Overlap { .. })
    ));
    map(0, PAGE).unwrap();
    for (offset, len) in [(PAGE, PAGE), (2 * PAGE, PAGE), (3 * PAGE, PAGE)] {
        // SAFETY: it is refused.
        let refused = unsafe { card.unmap(pages.at(offset), len) };
        assert!(matches!(refused, Err(BackendError::NotMapped { .. })));
    }
    // SAFETY: the test mapped it.
    unsafe { card.unmap(pages.at(PAGE), 2 * PAGE) }.unwrap();
    map(2 * PAGE, PAGE).unwrap();
    let constants = memmap2::MmapMut::map_anon(PAGE).unwrap();
    let constants = constants.make_read_only().unwrap();
    let map = |access| {
        // SAFETY: the page outlives the card.
        unsafe { card.map(constants.as_ptr().cast_mut(), PAGE, access) }
    };
    let refused = map(DmaAccess::ReadWrite);
    assert!(matches!(refused, Err(BackendError::Fault { .. })));
    map(DmaAccess::Read).unwrap();
}

#[test]
fn time_passes_only_in_waits() {
    let (card, _) = copier();
    write32(&card, 0, 1);
    assert_eq!(card.now_ns(), 0);
    card.relax();
    assert_eq!(card.now_ns(), 64);
    card.set_relax_cycles(100);
    card.relax();
    assert_eq!(card.now_ns(), 464);
    assert_eq!(card.read32(0), 1);
    assert!(card.now_ns() > 464);
}

#[test]
fn an_unplugged_card_ends_every_wait_of_the_driver() -> Result<(), Box<dyn Error>> {
    let world = Rc::new(RefCell::new(World::new()));
    let context = host(&world, 1)?;
    let region = context.alloc_pd().alloc_mr(PAGE, Access::LOCAL_WRITE)?;
    let stopped = world.borrow().now();
    context.backend().unplug();
    assert!(context.status().absent);
    assert!(context.set_mac(Mac([2, 0, 0, 0, 0, 9])).is_err());
    drop((region, context));
    assert_eq!(world.borrow().now(), stopped, "the world stands still");
    Ok(())
}

/// The driver on a card that is the golden model.
fn host(world: &Rc<RefCell<World>>, last: u8) -> Result<Context<SimCard>, Box<dyn Error>> {
    let memory = Rc::new(ProcessMemory::new());
    let model = Model::new(DEFAULT_PARAMS, memory.clone());
    let node = world.borrow_mut().add(format!("host{last}"), model);
    if last == 2 {
        let nodes: Vec<_> = world.borrow().nodes().collect();
        let wire = Config::ethernet_100g();
        world
            .borrow_mut()
            .connect(nodes[0], nodes[1], wire.clone(), wire);
        world
            .borrow_mut()
            .wire(nodes[0])
            .script(3, Impairment::Drop);
    }
    let context = Context::open(SimCard::new(world.clone(), node, memory))?;
    context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
    context.set_gid(0, Gid::from(std::net::Ipv4Addr::new(10, 0, 0, last)))?;
    Ok(context)
}

#[test]
fn two_drivers_talk_over_a_link_that_loses_a_frame() -> Result<(), Box<dyn Error>> {
    const LEN: usize = 20_000;
    let world = Rc::new(RefCell::new(World::new()));
    let scoreboard = Rc::new(RefCell::new(Scoreboard::new()));
    let recorder = Rc::new(RefCell::new(Recorder::new(Vec::new())?));
    world.borrow_mut().observe(scoreboard.clone());
    world.borrow_mut().observe(recorder.clone());
    let (a, b) = (host(&world, 1)?, host(&world, 2)?);
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let mut from = pd_a.alloc_mr(LEN, Access::empty())?;
    let message: Vec<u8> = (0..LEN).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    from.write(0, &message);
    let to = pd_b.alloc_mr(LEN, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let (mut cq_a, mut cq_b) = (a.create_cq(16)?, b.create_cq(16)?);
    let mut qp_a = Qp::builder(&pd_a).rc().cq(&cq_a).build()?;
    let mut qp_b = Qp::builder(&pd_b).rc().cq(&cq_b).build()?;
    let (end_a, end_b) = (qp_a.endpoint()?, qp_b.endpoint()?);
    qp_a.connect(&end_b)?;
    qp_b.connect(&end_a)?;

    qp_b.post_recv(&[RecvWr::new(7, &[])])?;
    let remote = Remote {
        addr: to.addr(),
        rkey: to.rkey(),
    };
    let list = [from.sge(..)];
    qp_a.post_send(&[SendWr::new(SendOp::WriteImm(remote, 0xabcd), &list)
        .wr_id(9)
        .signaled()])?;
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq_b.wait(&mut wcs, Duration::from_secs(1)), 1);
    assert_eq!((wcs[0].ok()?.wr_id, wcs[0].imm_data()), (7, Some(0xabcd)));
    assert_eq!(cq_a.wait(&mut wcs, Duration::from_secs(1)), 1);
    assert_eq!(wcs[0].ok()?.wr_id, 9);
    assert!(to.to_vec(0, LEN) == message);
    assert!(
        world.borrow().now() < 20_000,
        "resent after a timeout, not after the NAK"
    );

    assert_eq!(world.borrow().failures(), [""; 0]);
    let scoreboard = scoreboard.borrow();
    assert_eq!(scoreboard.failures(), [""; 0]);
    let sent = &scoreboard.packets()[&("host1".to_owned(), qp_b.qpn())];
    let psns: Vec<u32> = sent
        .iter()
        .map(|p| p.psn.value().wrapping_sub(sent[0].psn.value()))
        .collect();
    assert!(
        psns.starts_with(&[0, 1, 2, 3]) && psns.iter().filter(|psn| **psn == 3).count() > 1,
        "{psns:?}"
    );

    let capture = pcap::parse(&recorder.borrow_mut().finish()?.expect("not ended yet"))?;
    assert_eq!(capture.interfaces, ["host1", "host2"]);
    let lost = |p: &&pcap::Packet| p.interface == 0 && p.comments[0].starts_with("host1 tx");
    let arrived = |p: &&pcap::Packet| p.interface == 1 && p.comments[0].starts_with("host2 rx");
    let count =
        |filter: &dyn Fn(&&pcap::Packet) -> bool| capture.packets.iter().filter(filter).count();
    assert_eq!(count(&lost), count(&arrived) + 1);
    assert!(capture.packets[0].comments[0].contains(&format!("QP {:#x} cycle", qp_b.qpn())));
    Ok(())
}

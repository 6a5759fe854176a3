//! An engine that served another host before, which reset it in the midst of traffic.
//!
//! What the former host had on it (queue pairs that send to each other, and one whose peer never answers) must be nothing to
//! the next: neither a frame nor an access nor a counter.

use std::cell::RefCell;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::wire::{Gid, Mac};
use ferroce_sim::memory::{Fault, FaultKind, HostMemory, Trouble};
use ferroce_sim::nic::Nic;
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights, Work, pattern};

/// Cycles that the former host has its traffic for, at most.
const SERVED: u64 = 2500;
/// Cycles after which an engine that was reset is at rest.
const PATIENCE: u64 = 100_000;
/// Bytes of a region.
const BYTES: usize = 1 << 13;

/// The memory of one host, and then of the next.
struct Inherited(RefCell<Rc<dyn HostMemory>>);

impl Inherited {
    fn current(&self) -> Rc<dyn HostMemory> {
        Rc::clone(&self.0.borrow())
    }
}

impl HostMemory for Inherited {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        self.current().read(addr, data)
    }
    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.current().write(addr, data)
    }
    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.current().mapped(addr, len)
    }
    fn is_gone(&self, addr: u64, len: usize) -> bool {
        self.current().is_gone(addr, len)
    }
    fn trouble(&self, addr: u64, kind: FaultKind) -> Trouble {
        self.current().trouble(addr, kind)
    }
    fn faults(&self) -> Vec<Fault> {
        self.current().faults()
    }
}

/// The engine that `build` makes, on `memory`, after a former host that `seed` has.
///
/// # Panics
/// If the engine breaks a rule of its ports for the former host, or does not come to rest after the reset.
#[must_use]
pub fn inherited(
    build: impl FnOnce(Rc<dyn HostMemory>) -> Box<dyn Nic>,
    memory: Rc<dyn HostMemory>,
    seed: u64,
) -> Box<dyn Nic> {
    let mut rng = Rng::with_seed(seed);
    let mut lent = None;
    let build = |former| {
        let memory = Rc::new(Inherited(RefCell::new(former)));
        lent = Some(Rc::clone(&memory));
        build(memory)
    };
    let mac = Mac([0x52, 0x54, 0, 0, 1, seed as u8]);
    let mut host = Host::new(build, mac, [10, 0, 1, 1].into());
    serve(&mut host, &mut rng);
    if rng.bool() {
        host.stop();
    } else {
        host.nic.reset();
        host.wait_ready();
    }
    rest(&mut *host.nic);
    let failures = host.nic.failures();
    assert!(
        failures.is_empty(),
        "for the former host: {}",
        failures.join("; ")
    );
    lent.expect("an engine was built").0.replace(memory);
    host.nic
}

/// Traffic of the former host until some cycle.
fn serve(host: &mut Host, rng: &mut Rng) {
    host.create_cq(6);
    let options = QpOptions {
        timeout: 1 + rng.u8(..4),
        psn: rng.u32(..1 << 24),
        ..QpOptions::default()
    };
    let [a, b, alone] = [(); 3].map(|()| host.create_qp(options));
    for (own, other) in [(a, b), (b, a)] {
        let peer = host.peer(other);
        host.connect(own, &peer);
    }
    let stranger = Peer {
        mac: Mac([0x52, 0x54, 0, 0, 2, 1]),
        gid: Gid::from(std::net::IpAddr::from([10, 0, 1, 2])),
        ..host.peer(alone)
    };
    host.connect(alone, &stranger);
    let [near, far] = [1, 2].map(|i| host.create_mr(&pattern(BYTES, i), Rights::ALL));
    for qpn in [a, b, alone] {
        for _ in 0..4 {
            host.post_recv(qpn, &[near.all()]);
        }
        for _ in 0..1 + rng.u8(..6) {
            host.post_send(qpn, &work(&near, &far, rng));
        }
    }
    let end = host.nic.now() + rng.u64(..SERVED);
    while host.nic.now() < end {
        host.nic.step();
        while host.nic.transmit().is_some() {}
    }
}

/// A work request of any kind.
fn work(near: &Mr, far: &Mr, rng: &mut Rng) -> Work {
    let len = 1 + rng.u32(..BYTES as u32);
    let list = [near.sge(0, len)];
    match rng.u8(..5) {
        0 => Work::send(&list),
        1 => Work::write(&list, far, 0),
        2 => Work::write(&list, far, 0).imm(7),
        3 => Work::read(&list, far, 0),
        _ => Work::fetch_add(near.sge(0, 8), far, 8, 1),
    }
}

/// Steps until nothing of what the engine began before its reset is under way, and forgets it.
fn rest(nic: &mut dyn Nic) {
    for _ in 0..PATIENCE {
        nic.step();
        while nic.transmit().is_some() {}
        while nic.interrupt().is_some() {}
        if nic.ports_are_idle() {
            return;
        }
    }
    panic!("an access or a frame is under way {PATIENCE} cycles after the reset");
}

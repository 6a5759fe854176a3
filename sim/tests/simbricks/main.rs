//! Cards in a SimBricks simulation, whose hosts and network are ours.

#[path = "../../../driver/examples/two_cards/exercise.rs"]
#[expect(dead_code, reason = "the protocol cannot refuse an access")]
mod exercise;
mod peer;
mod world;

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use ferroce_driver::Backend;
use ferroce_proto::abi::regs;
use ferroce_sim::rtl::build;
use ferroce_sim::simbricks::{Bus, Config, Ended, Report, SimbricksError, Simulated, Sync};
use ferroce_sim::verilator;
use ferroce_sim::vfio_user::{self, Stop};

use exercise::{operations, pair};
use peer::{ETHERNET, PCIE, introduction};
use world::{HostCard, Seen, World};

const LATENCY_PS: u64 = 500_000;

type Card = JoinHandle<Result<Report, SimbricksError>>;

/// A card at `name` in a folder: the model, or an engine of a width.
fn start(folder: &Path, name: &str, width: Option<usize>, sync: Sync) -> (Card, Stop) {
    if let Some(width) = width {
        // Built once, before anything waits for it.
        build::model(width, &verilator::Options::default()).unwrap();
    }
    let config = Config {
        pci: folder.join(format!("{name}.pci")),
        eth: Some(folder.join(format!("{name}.eth"))),
        sync,
        latency_ps: LATENCY_PS,
    };
    let stop = Stop::new().unwrap();
    let (ready, is_ready) = channel();
    let card = thread::spawn({
        let stop = stop.clone();
        move || {
            let bus = Rc::new(Bus::new());
            let card = vfio_user::card(width, bus.clone()).unwrap();
            let card = Simulated::new(config, card, bus)?;
            ready.send(()).unwrap();
            card.run(&stop)
        }
    });
    is_ready.recv().unwrap();
    (card, stop)
}

/// Every RC operation, both ways, with its data checked and each completion awaited by interrupt.
/// `network` is the program that connects the ports, ours unless given.
fn exercised(widths: [Option<usize>; 2], sync: bool, network: Option<&Path>) -> Vec<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let mode = if sync { Sync::Required } else { Sync::Offered };
    let cards = ["a", "b"].map(|name| {
        let width = widths[usize::from(name == "b")];
        start(folder.path(), name, width, mode)
    });
    let mut switch = network.map(|program| {
        let latency = (LATENCY_PS / 1000).to_string();
        let ports = ["a.eth", "b.eth"].map(|name| folder.path().join(name));
        let mut switch = Command::new(program);
        switch.args(["-S", &latency, "-E", &latency]);
        switch.args(if sync { &[][..] } else { &["-u"] });
        switch.arg("-s").arg(&ports[0]).arg("-s").arg(&ports[1]);
        switch.spawn().unwrap()
    });
    let world = World::connect(folder.path(), sync, LATENCY_PS, network.is_none());
    let world = Rc::new(RefCell::new(world));
    let (mut a, mut b) = pair(HostCard::new(&world, 0), HostCard::new(&world, 1)).unwrap();
    operations(&mut a, &mut b).unwrap();
    operations(&mut b, &mut a).unwrap();
    drop((a, b));
    let world = Rc::into_inner(world).unwrap().into_inner();
    // At one time there is no order between places.
    let mut seen = world.seen.clone();
    seen.sort_unstable();
    // The hosts are gone, and their cards end.
    drop(world);
    if let Some(switch) = &mut switch {
        switch.kill().unwrap();
        switch.wait().unwrap();
    }
    for (card, _) in cards {
        let report = card.join().unwrap().unwrap();
        assert_eq!((report.ended, report.bad), (Ended::Host, 0));
        assert!(report.sent > 0 && report.received > 0, "{report:?}");
        assert_eq!(report.failures, [""; 0]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    seen
}

#[test]
fn synchronised_runs_are_the_same_each_time() {
    let [one, two] = [(); 2].map(|()| exercised([None, None], true, None));
    assert!(one.iter().any(|seen| seen.2 == "interrupt"));
    assert_eq!(one, two);
}

#[test]
fn cards_run_at_their_own_pace_among_peers_that_do_not_synchronise() {
    exercised([None, None], false, None);
}

#[test]
fn an_engine_talks_to_a_model() {
    exercised([Some(64), None], true, None);
}

#[test]
#[ignore = "SIMBRICKS_SWITCH is SimBricks' own switch, built from its sources"]
fn the_switch_of_simbricks_is_the_network() {
    let switch = std::env::var_os("SIMBRICKS_SWITCH").expect("the path of the switch");
    let [one, two] = [(); 2].map(|()| exercised([None, None], true, Some(switch.as_ref())));
    assert_eq!(one, two);
    exercised([None, None], false, Some(switch.as_ref()));
}

#[test]
fn the_host_reads_what_the_device_is() {
    let folder = tempfile::tempdir().unwrap();
    let cards = ["a", "b"].map(|name| start(folder.path(), name, None, Sync::Offered));
    let world = World::connect(folder.path(), true, LATENCY_PS, true);
    let device = world.device(0).to_vec();
    assert_eq!(device.len(), 96 + 23);
    let word = |at: usize| u64::from_le_bytes(device[at..at + 8].try_into().unwrap());
    // Registers in 64 bits, and a table that the host serves.
    assert_eq!((word(0), word(8)), (4 << 20, 2));
    assert_eq!((word(32), word(40)), (64 << 10, 0b1010));
    assert_eq!([word(16), word(48), word(64), word(80)], [0; 4]);
    // Vendor, device, class, subclass, revision, interface, MSI, MSI-X, BARs of its table and pending bits.
    let identity = [0xee, 0x10, 0x38, 0x90, 2, 0, 1, 0, 0, 64, 0, 2, 2];
    assert_eq!(device[96..109], identity);
    assert_eq!(device[109..], [0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0]);
    // A card that offers to synchronise does so with these.
    let world = Rc::new(RefCell::new(world));
    let card = HostCard::new(&world, 0);
    let before = card.now_ns();
    assert_eq!(card.read32(regs::MAGIC.into()), regs::MAGIC_VALUE);
    // Half a microsecond each way, some cycles of the card, and a turn of the host.
    assert!((1000..2000).contains(&(card.now_ns() - before)));
    drop((card, world));
    for (card, _) in cards {
        assert_eq!(card.join().unwrap().unwrap().ended, Ended::Host);
    }
}

#[test]
fn peers_that_cannot_be_are_named() {
    for (socket, intro, text) in [
        ("a.pci", introduction(2, 0, PCIE), "speaks version 2"),
        (
            "a.pci",
            introduction(1, 0, ETHERNET),
            "speaks Ethernet, and the card PCIe",
        ),
        (
            "a.eth",
            introduction(1, 0, PCIE),
            "speaks PCIe, and the card Ethernet",
        ),
        ("a.pci", introduction(1, 0, PCIE), "does not synchronise"),
        ("a.pci", introduction(1, 0, PCIE)[..31].to_vec(), "closed"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (card, _) = start(folder.path(), "a", None, Sync::Required);
        let mut peer = UnixStream::connect(folder.path().join(socket)).unwrap();
        peer.write_all(&intro).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let error = card.join().unwrap().unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(text),
            "{error}"
        );
    }
}

#[test]
fn a_card_without_peer_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (card, stop) = start(folder.path(), "a", None, Sync::Offered);
    stop.set();
    let report = card.join().unwrap().unwrap();
    assert_eq!((report.ended, report.cycles), (Ended::Stopped, 0));
}

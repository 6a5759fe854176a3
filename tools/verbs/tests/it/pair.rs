//! Two simulated cards on a wire that live in a thread of their own, so that each side of a test has its thread too.

use std::cell::RefCell;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use clap::Parser;
use ferroce_driver::{Backend, BackendError, Opened};
use ferroce_sim::card::SimCard;
use ferroce_sim::link::Config;
use ferroce_sim::memory::{HostMemory, ProcessMemory};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;
use ferroce_sim::world::World;
use ferroce_system::process::free_port;
use ferroce_verbs_tools::device::{Device, DeviceArgs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Cycles of a turn of a wait: coarse, as a turn is a message to another thread.
const RELAX_CYCLES: u64 = 64;

enum Request {
    Read(u64),
    Write(u64, u32),
    Map(usize, usize),
    Unmap(usize, usize),
    Interrupt(u32),
    Relax,
    Now,
}

enum Answer {
    Value(u64),
    Done(Result<(), BackendError>),
    Event(Result<OwnedFd, BackendError>),
}

/// What the cards are made of.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Model,
    Rtl(usize),
}

/// A card of the other thread.
pub(crate) struct RemoteCard {
    number: usize,
    requests: Sender<(usize, Request)>,
    answers: Mutex<Receiver<Answer>>,
    opened: Opened,
}

impl RemoteCard {
    fn ask(&self, request: Request) -> Answer {
        let answers = self.answers.lock().unwrap();
        self.requests.send((self.number, request)).unwrap();
        answers.recv().unwrap()
    }

    fn value(&self, request: Request) -> u64 {
        match self.ask(request) {
            Answer::Value(value) => value,
            _ => unreachable!("a value was asked for"),
        }
    }

    fn done(&self, request: Request) -> Result<(), BackendError> {
        match self.ask(request) {
            Answer::Done(result) => result,
            _ => unreachable!("no value was asked for"),
        }
    }
}

impl Backend for RemoteCard {
    fn read32(&self, offset: u64) -> u32 {
        self.value(Request::Read(offset)) as u32
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        self.value(Request::Write(offset, value));
    }

    unsafe fn map(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        self.done(Request::Map(addr.expose_provenance(), len))
    }

    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn seed(&self) -> Option<u64> {
        Some(0)
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        self.done(Request::Unmap(addr.addr(), len))
    }

    fn relax(&self) {
        self.value(Request::Relax);
    }

    fn now_ns(&self) -> u64 {
        self.value(Request::Now)
    }

    fn page_size(&self) -> usize {
        ferroce_sim::card::PAGE
    }

    fn bar_len(&self) -> u64 {
        ferroce_proto::abi::regs::BAR0_BYTES
    }

    fn vectors(&self) -> u32 {
        ferroce_proto::abi::pci::MSIX_VECTORS.into()
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        match self.ask(Request::Interrupt(vector)) {
            Answer::Event(result) => result,
            _ => unreachable!("an interrupt was asked for"),
        }
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        let end = self.now_ns().saturating_add(timeout_ns);
        loop {
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            if poll(&mut fds, Some(&Timespec::default())).unwrap() > 0 {
                return true;
            }
            if self.now_ns() >= end {
                return false;
            }
            self.relax();
        }
    }
}

/// The thread of the cards; returns what made the run a failed one.
pub(crate) struct Cards(JoinHandle<Vec<String>>);

impl Cards {
    /// Ends when both cards are dropped.
    pub(crate) fn assert_healthy(self) {
        let failures = self.0.join().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

pub(crate) fn cards(kind: Kind) -> (Cards, [RemoteCard; 2]) {
    let (requests, inbox) = channel();
    let ((a, from_a), (b, from_b)) = (channel(), channel());
    let thread = thread::spawn(move || serve(kind, &inbox, &[a, b]));
    let card = |number, answers| RemoteCard {
        number,
        requests: requests.clone(),
        answers: Mutex::new(answers),
        opened: Opened::default(),
    };
    (Cards(thread), [card(0, from_a), card(1, from_b)])
}

fn serve(
    kind: Kind,
    inbox: &Receiver<(usize, Request)>,
    answers: &[Sender<Answer>; 2],
) -> Vec<String> {
    let world = Rc::new(RefCell::new(World::new()));
    let model = match kind {
        Kind::Model => None,
        Kind::Rtl(width) => Some(build::model(width, &verilator::Options::default()).unwrap()),
    };
    let cards = ["client", "server"].map(|name| {
        let memory = Rc::new(ProcessMemory::new());
        let host: Rc<dyn HostMemory> = memory.clone();
        let nic: Box<dyn Nic> = match &model {
            None => Box::new(Model::new(DEFAULT_PARAMS, host)),
            Some(model) => Box::new(build::engine(model, host, &Options::host(7)).unwrap()),
        };
        let node = world.borrow_mut().add(name, nic);
        let card = SimCard::new(world.clone(), node, memory);
        card.set_relax_cycles(RELAX_CYCLES);
        (node, card)
    });
    let wire = Config::ethernet_100g();
    world
        .borrow_mut()
        .connect(cards[0].0, cards[1].0, wire.clone(), wire);
    while let Ok((number, request)) = inbox.recv() {
        let card = &cards[number].1;
        let answer = match request {
            Request::Read(offset) => Answer::Value(card.read32(offset).into()),
            Request::Write(offset, value) => {
                // SAFETY: the rule of the other thread's call of `write32`.
                unsafe { card.write32(offset, value) };
                Answer::Value(0)
            }
            Request::Map(addr, len) => {
                let addr = std::ptr::with_exposed_provenance_mut(addr);
                // SAFETY: the rule of the other thread's call of `map`, whose memory this is.
                Answer::Done(unsafe { card.map(addr, len) })
            }
            Request::Unmap(addr, len) => {
                let addr = std::ptr::without_provenance_mut(addr);
                // SAFETY: the rule of the other thread's call of `unmap`.
                Answer::Done(unsafe { card.unmap(addr, len) })
            }
            Request::Interrupt(vector) => Answer::Event(card.interrupt(vector)),
            Request::Relax => {
                card.relax();
                Answer::Value(0)
            }
            Request::Now => Answer::Value(card.now_ns()),
        };
        // A side that failed does not wait for its answer.
        let _ = answers[number].send(answer);
    }
    world.borrow().failures()
}

/// What a side printed, and how it ended.
pub(crate) type Ended = (String, anyhow::Result<()>);

/// Runs both sides of a program with the options of each: client, then server.
pub(crate) fn run<A: Parser + Sync>(
    kind: Kind,
    options: [&str; 2],
    device: impl Fn(&A) -> DeviceArgs + Sync,
    side: impl Fn(&mut Device<RemoteCard>, &A, &mut Vec<u8>) -> anyhow::Result<()> + Sync,
) -> [Ended; 2] {
    let (thread, cards) = cards(kind);
    let port = free_port().unwrap();
    let ended = thread::scope(|scope| {
        let sides: Vec<_> = cards
            .into_iter()
            .zip(options)
            .enumerate()
            .map(|(i, (card, options))| {
                let (device, side) = (&device, &side);
                scope.spawn(move || {
                    let server = if i == 0 { " 127.0.0.1" } else { "" };
                    let line = format!("program {options} -p {port}{server}");
                    let args = A::parse_from(line.split_whitespace());
                    let mut out = Vec::new();
                    let addresses = DeviceArgs {
                        ips: vec![IpAddr::from([10, 0, 0, 1 + i as u8])],
                        ..device(&args)
                    };
                    let name = ["unix:/client", "unix:/server"][i];
                    let run = || {
                        side(
                            &mut Device::new(name, true, card, &addresses)?,
                            &args,
                            &mut out,
                        )
                    };
                    let result = run();
                    (String::from_utf8(out).unwrap(), result)
                })
            })
            .collect();
        sides
            .into_iter()
            .map(|side| side.join().unwrap())
            .collect::<Vec<_>>()
    });
    thread.assert_healthy();
    ended.try_into().unwrap()
}

/// The output of both sides, which must have succeeded.
pub(crate) fn outputs(ended: [Ended; 2]) -> [String; 2] {
    let failed = ended.iter().any(|(_, result)| result.is_err());
    assert!(!failed, "{ended:#?}");
    ended.map(|(text, _)| text)
}

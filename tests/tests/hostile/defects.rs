//! The net can fail: a card with a defect is found out, each by what it breaks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ferroce_hdl::engine::builds::STANDARD;
use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::{doorbell, regs};
use ferroce_proto::wire::Packet;
use ferroce_sim::memory::{Fault, FaultKind, HostMemory, Trouble};
use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;
use ferroce_tests::differential::Card;
use ferroce_tests::hostile::misuse_of;

/// Queue pairs of the owner begin here.
const OWNER: u32 = 0x20;
/// Last byte of the address of the owner's peer, and of the bystanders'.
const STRANGER: u8 = 0x66;
const BYSTANDER: u8 = 2;
/// Marks of the bystanders' bytes, and of the first owner's.
const MARKS: [u32; 2] = [0xb57a_1de5, 0x0e0e_0001];

/// What is wrong with a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Bytes of a bystander leave to the peer of the owner.
    Leak,
    /// Bytes of the owner leave to the peer of a bystander.
    Mixed,
    /// A bit of a bystander's payload is flipped.
    Flip,
    /// A payload write spills a byte.
    Spill,
    /// Memory is read again, somewhat later.
    Late,
    /// Frames of long ago leave again.
    Ghost,
    /// A WQE completes twice.
    Twice,
    /// What was not posted completes.
    NotPosted,
    /// A completion is of another's queue pair.
    Foreign,
    /// Send doorbells of the owner are lost.
    Stuck,
    /// A command is forgotten.
    Deaf,
    /// Register reads are not answered any more.
    Mute,
    /// Memory is read for ever.
    Restless,
}

/// Each with what the report says, one of several.
const DEFECTS: [(Defect, &str); 13] = [
    (Defect::Leak, "bytes of a bystander in a frame"),
    (Defect::Mixed, "bytes 0xe0e0001 of another"),
    (Defect::Flip, "of a message is"),
    (Defect::Spill, "between two places|behind a READ"),
    (Defect::Late, "took back"),
    (Defect::Ghost, "tenant"),
    (Defect::Twice, "not posted, or completed before"),
    (Defect::NotPosted, "not posted, or completed before"),
    (Defect::Foreign, "of another"),
    (Defect::Stuck, "do not end in"),
    (Defect::Deaf, "no answer in"),
    (Defect::Mute, "a register read"),
    (Defect::Restless, "something goes on"),
];

struct Memory {
    inner: Rc<dyn HostMemory>,
    defect: Defect,
    cqes: Cell<u32>,
    /// The address that was read first, that of a command.
    first: Cell<u64>,
    /// Addresses that were read last.
    read: RefCell<Vec<u64>>,
}

impl HostMemory for Memory {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        let mut read = self.read.borrow_mut();
        if read.is_empty() {
            self.first.set(addr);
        }
        read.insert(0, addr);
        read.truncate(64);
        self.inner.read(addr, data)
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let mut data = data.to_vec();
        let cqe = data.first_chunk().map(Cqe::parse);
        if let Some(mut cqe) = cqe
            && data.len() == Cqe::BYTES
            && cqe.qpn & !3 == OWNER
        {
            self.cqes.set(self.cqes.get() + 1);
            match self.defect {
                Defect::Twice if self.cqes.get().is_multiple_of(4) => {
                    cqe.wqe_index = cqe.wqe_index.wrapping_sub(1);
                }
                Defect::NotPosted if self.cqes.get().is_multiple_of(4) => {
                    cqe.wqe_index = cqe.wqe_index.wrapping_add(64);
                }
                Defect::Foreign if self.cqes.get() == 4 => cqe.qpn = 2,
                _ => {}
            }
            data = cqe.emit().to_vec();
        }
        let spills = self.defect == Defect::Spill && data.len() > 200;
        if spills && self.inner.mapped(addr, data.len() + 100) > data.len() + 64 {
            data.resize(data.len() + 80, 0xee);
        }
        self.inner.write(addr, &data)
    }

    fn trouble(&self, addr: u64, kind: FaultKind) -> Trouble {
        self.inner.trouble(addr, kind)
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.inner.mapped(addr, len)
    }

    fn faults(&self) -> Vec<Fault> {
        self.inner.faults()
    }
}

struct Defective {
    model: Model,
    memory: Rc<Memory>,
    defect: Defect,
    commands: u32,
    frames: Vec<Vec<u8>>,
    /// A frame of long ago that is to leave.
    ghost: Option<Vec<u8>>,
}

impl Defective {
    /// The frame with another payload.
    fn with(&self, frame: Vec<u8>) -> Vec<u8> {
        let packet = Packet::parse(&frame).expect("the model sends good packets");
        let mut payload = frame[packet.payload].to_vec();
        let to = frame[5];
        match self.defect {
            Defect::Leak if to == STRANGER => mark(&mut payload, MARKS[0]),
            Defect::Mixed if to == BYSTANDER => mark(&mut payload, MARKS[1]),
            Defect::Flip if to == BYSTANDER && payload.len() > 100 => payload[77] ^= 4,
            _ => return frame,
        }
        let mut spoilt = vec![0; packet.headers.frame_len(payload.len())];
        let built = packet.headers.build(&payload, &mut spoilt);
        built.expect("the headers are those of a packet");
        spoilt
    }
}

/// Words of another owner.
fn mark(payload: &mut [u8], mark: u32) {
    for word in payload.chunks_exact_mut(8) {
        word[..4].copy_from_slice(&mark.to_le_bytes());
    }
}

impl Nic for Defective {
    fn write32(&mut self, offset: u64, value: u32) {
        if offset == u64::from(regs::CMD_PI) {
            self.commands += 1;
            if self.defect == Defect::Deaf && self.commands == 60 {
                return;
            }
        }
        let owners = doorbell::sq(OWNER)..doorbell::sq(OWNER + 3);
        if self.defect == Defect::Stuck && value > 0 && owners.contains(&offset) {
            return;
        }
        self.model.write32(offset, value);
    }
    fn start_read32(&mut self, offset: u64) {
        self.model.start_read32(offset);
    }
    fn take_read32(&mut self) -> Option<u32> {
        let late = self.defect == Defect::Mute && self.now() > 10_000;
        self.model.take_read32().filter(|_| !late)
    }
    fn step(&mut self) {
        self.model.step();
        let now = self.model.now();
        let read = self.memory.read.borrow().clone();
        if self.defect == Defect::Restless && now.is_multiple_of(100) {
            let _ = self.memory.inner.read(self.memory.first.get(), &mut [0]);
        }
        if self.defect == Defect::Late && now.is_multiple_of(16) && now < 10_000 {
            for addr in read {
                let _ = self.memory.inner.read(addr, &mut [0]);
            }
        }
        if self.defect == Defect::Ghost && now.is_multiple_of(4096) {
            self.ghost = self.frames.first().cloned();
        }
    }
    fn now(&self) -> u64 {
        self.model.now()
    }
    fn receive(&mut self, frame: &[u8]) {
        self.model.receive(frame);
    }
    fn transmit(&mut self) -> Option<Vec<u8>> {
        if let Some(ghost) = self.ghost.take() {
            return Some(ghost);
        }
        let frame = self.model.transmit()?;
        if frame[5] == STRANGER {
            self.frames.push(frame.clone());
        }
        Some(self.with(frame))
    }
    fn interrupt(&mut self) -> Option<u16> {
        self.model.interrupt()
    }
    fn failures(&self) -> Vec<String> {
        self.model.failures()
    }
    fn reset(&mut self) {
        self.model.reset();
    }
}

fn defective(defect: Defect) -> Card {
    Card::new("defective", move |inner, _| {
        let memory = Rc::new(Memory {
            inner,
            defect,
            cqes: Cell::new(0),
            first: Cell::new(0),
            read: RefCell::default(),
        });
        Box::new(Defective {
            model: Model::new(STANDARD, Rc::<Memory>::clone(&memory)),
            memory,
            defect,
            commands: 0,
            frames: Vec::new(),
            ghost: None,
        })
    })
}

#[test]
fn each_is_found() {
    for (defect, says) in DEFECTS {
        let card = defective(defect);
        let mut found = (1..=8).filter_map(|seed| misuse_of(&card, true, 200, seed, 0).err());
        let what = found
            .next()
            .unwrap_or_else(|| panic!("{defect:?} is not found"));
        assert!(
            says.split('|').any(|says| what.contains(says)),
            "{defect:?}: {}",
            what.lines().nth(1).unwrap_or(&what)
        );
    }
}

/// What is left of the acts fails too, and is less.
#[test]
fn acts_become_fewer() {
    let what = misuse_of(&defective(Defect::NotPosted), true, 100, 2, 60).expect_err("a defect");
    let acts = what.lines().filter(|line| line.starts_with("Act")).count();
    assert!((1..20).contains(&acts), "{what}");
}

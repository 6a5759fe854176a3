//! The test can fail: a card with a defect is found out, each with a report that names it.

use std::cell::Cell;
use std::rc::Rc;

use ferroce_proto::abi::cmd::CmdCpl;
use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::regs;
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::{Headers, Opcode, Packet};
use ferroce_sim::memory::{Fault, FaultKind, HostMemory, Trouble};
use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;
use ferroce_tests::differential::generate::Class;
use ferroce_tests::differential::{Card, Pairing, Setup};

use crate::model::{FEATURES, PARAMS, model};

/// Bytes of the ring for completions of commands that the test host has.
const COMMAND_BYTES: u64 = 16 * CmdCpl::BYTES as u64;

/// What is wrong with a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Every fifth CQE is not written.
    LostCqe,
    /// CQEs say a byte more than was received.
    ByteLen,
    /// Payload written to memory has a bit flipped in its last byte.
    Payload,
    /// Payload writes spill a byte beyond their end.
    Spill,
    /// Requests skip a PSN.
    Psn,
    /// Immediate data is turned round.
    Imm,
    /// Responses say an MSN too much.
    Msn,
    /// Every frame with a payload is sent with the ICRC of another.
    Icrc,
    /// A NAK never leaves.
    Nak,
}

const DEFECTS: [Defect; 9] = [
    Defect::LostCqe,
    Defect::ByteLen,
    Defect::Payload,
    Defect::Spill,
    Defect::Psn,
    Defect::Imm,
    Defect::Msn,
    Defect::Icrc,
    Defect::Nak,
];

/// Host memory through which a defective card writes.
struct Memory {
    inner: Rc<dyn HostMemory>,
    defect: Defect,
    /// Where completions of commands go, which are sound.
    commands: Rc<Cell<u64>>,
    cqes: Cell<u32>,
}

impl Memory {
    /// A write that is a CQE, nearly always: one of its size at a multiple of that.
    fn is_cqe(&self, addr: u64, len: usize) -> bool {
        let size = Cqe::BYTES as u64;
        len == Cqe::BYTES && addr.is_multiple_of(size) && !self.is_command(addr)
    }

    fn is_command(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.commands.get()) < COMMAND_BYTES
    }
}

impl HostMemory for Memory {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        self.inner.read(addr, data)
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if self.is_command(addr) {
            return self.inner.write(addr, data);
        }
        let is_cqe = self.is_cqe(addr, data.len());
        let mut data = data.to_vec();
        match (self.defect, is_cqe) {
            (Defect::LostCqe, true) => {
                self.cqes.set(self.cqes.get() + 1);
                if self.cqes.get().is_multiple_of(5) {
                    return Ok(());
                }
            }
            (Defect::ByteLen, true) => {
                let mut cqe = Cqe::parse(data.first_chunk().expect("32 bytes"));
                if cqe.recv && cqe.status == 0 {
                    cqe.byte_len += 1;
                    data = cqe.emit().to_vec();
                }
            }
            (Defect::Payload, false) if data.len() < SLOT_BYTES => {
                if let Some(last) = data.last_mut() {
                    *last ^= 0x10;
                }
            }
            (Defect::Spill, false) if self.inner.mapped(addr, data.len() + 1) > data.len() => {
                data.push(0xee);
            }
            _ => {}
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

/// A card whose frames are spoilt on their way out.
struct Defective {
    model: Model,
    defect: Defect,
    commands: Rc<Cell<u64>>,
}

impl Defective {
    /// The frame that leaves in place of a good one.
    fn spoil(&self, frame: Vec<u8>) -> Option<Vec<u8>> {
        let packet = Packet::parse(&frame).expect("the model sends good packets");
        let mut headers = packet.headers;
        let payload = &frame[packet.payload];
        let is_request = headers.bth.opcode.is_request();
        match self.defect {
            Defect::Psn if is_request => headers.bth.psn = headers.bth.psn.next(),
            Defect::Imm => headers.ext.imm = headers.ext.imm.map(u32::swap_bytes),
            Defect::Msn => {
                if let Some(aeth) = &mut headers.ext.aeth {
                    aeth.msn += 1;
                }
            }
            Defect::Icrc if !payload.is_empty() => {
                let mut frame = frame;
                let end = frame.len();
                frame[end - 1] ^= 1;
                return Some(frame);
            }
            Defect::Nak if is_nak(&headers) => return None,
            _ => {}
        }
        let mut frame = vec![0; headers.frame_len(payload.len())];
        headers
            .build(payload, &mut frame)
            .expect("the headers were good");
        Some(frame)
    }
}

fn is_nak(headers: &Headers) -> bool {
    let syndrome = headers.ext.aeth.map(|aeth| aeth.syndrome.bits());
    headers.bth.opcode == Opcode::RcAck && syndrome.is_some_and(|bits| bits >> 5 == 3)
}

impl Nic for Defective {
    fn write32(&mut self, offset: u64, value: u32) {
        let (at, low) = (self.commands.get(), u64::from(value));
        match offset as u32 {
            regs::CPL_BASE_LO => self.commands.set(at >> 32 << 32 | low),
            regs::CPL_BASE_HI => self.commands.set(at & 0xffff_ffff | low << 32),
            _ => {}
        }
        self.model.write32(offset, value);
    }
    fn start_read32(&mut self, offset: u64) {
        self.model.start_read32(offset);
    }
    fn take_read32(&mut self) -> Option<u32> {
        self.model.take_read32()
    }
    fn step(&mut self) {
        self.model.step();
    }
    fn now(&self) -> u64 {
        self.model.now()
    }
    fn receive(&mut self, frame: &[u8]) {
        self.model.receive(frame);
    }
    fn transmit(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = self.model.transmit()?;
            if let Some(frame) = self.spoil(frame) {
                return Some(frame);
            }
        }
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
    fn idle_until(&self) -> Option<u64> {
        self.model.idle_until()
    }
    fn run_until(&mut self, cycle: u64) {
        self.model.run_until(cycle);
    }
}

fn setup(defect: Defect) -> Setup {
    Setup {
        params: PARAMS,
        features: FEATURES,
        reference: model(),
        subject: Card::new("defective", move |inner, _| {
            let commands = Rc::new(Cell::new(0));
            let memory = Rc::new(Memory {
                inner,
                defect,
                commands: Rc::clone(&commands),
                cqes: Cell::new(0),
            });
            let model = Model::with_features(PARAMS, FEATURES, memory);
            Box::new(Defective {
                model,
                defect,
                commands,
            })
        }),
    }
}

/// Every defect is found within a few scenarios in every pairing, and shrunk.
#[test]
fn defects_are_found() {
    for (place, defect) in DEFECTS.into_iter().enumerate() {
        let setup = setup(defect);
        for pairing in Pairing::ALL {
            // To shrink it takes long: in one pairing of each.
            let shrinks = pairing == Pairing::ALL[place % Pairing::ALL.len()];
            let most = if shrinks { 60 } else { 0 };
            let found = (1..=60).find_map(|seed| {
                let result = setup.check(seed, Class::Lossless, pairing, most);
                result.err().map(|mismatch| (seed, mismatch))
            });
            let Some((seed, mismatch)) = found else {
                panic!("{defect:?} is not found in {pairing:?}");
            };
            assert!(
                !mismatch.differences.is_empty(),
                "{defect:?}: seed {seed} fails, what is left of it does not"
            );
            let steps = mismatch.scenario.steps.len();
            assert!(
                steps <= 6 || !shrinks,
                "{defect:?}, seed {seed}: {steps} steps left\n{}",
                mismatch.scenario
            );
        }
    }
}

/// A sound card is not suspected, so that the defect is what [`defects_are_found`] finds.
#[test]
fn without_defect_nothing_is_found() {
    let sound = Setup {
        subject: model(),
        ..setup(Defect::Nak)
    };
    for seed in 1..=60 {
        for pairing in Pairing::ALL {
            if let Err(mismatch) = sound.check(seed, Class::Lossless, pairing, 0) {
                panic!("seed {seed}: {:?}", mismatch.differences);
            }
        }
    }
}

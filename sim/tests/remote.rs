//! Cards over memory that answers late: the driver finds them as it finds any.

#[path = "../../driver/examples/two_cards/exercise.rs"]
mod exercise;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use exercise::{operations, outside, pair};
use fastrand::Rng;
use ferroce_proto::abi::regs;
use ferroce_sim::card::SimCard;
use ferroce_sim::link::Config;
use ferroce_sim::memory::{HostMemory, ProcessMemory};
use ferroce_sim::model::DEFAULT_PARAMS;
use ferroce_sim::nic::Nic;
use ferroce_sim::remote::{Answer, Refused, RemoteMemory, RemoteModel, Ticket};
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;
use ferroce_sim::world::World;

/// Memory of this process that answers after a random number of questions, but in order.
struct Late {
    memory: Rc<ProcessMemory>,
    state: RefCell<State>,
}

struct State {
    rng: Rng,
    next: u64,
    /// Questions left until the answer.
    answers: HashMap<Ticket, (u32, Answer)>,
}

impl Late {
    fn new(memory: Rc<ProcessMemory>, seed: u64) -> Self {
        let state = State {
            rng: Rng::with_seed(seed),
            next: 0,
            answers: HashMap::new(),
        };
        Self {
            memory,
            state: RefCell::new(state),
        }
    }

    fn answer(&self, answer: Answer) -> Ticket {
        let state = &mut *self.state.borrow_mut();
        state.next += 1;
        let ticket = Ticket(state.next);
        let questions = state.rng.u32(0..40);
        state.answers.insert(ticket, (questions, answer));
        ticket
    }
}

impl RemoteMemory for Late {
    fn start_read(&self, addr: u64, len: usize) -> Ticket {
        let mut data = vec![0; len];
        let read = self.memory.read(addr, &mut data);
        self.answer(read.map(|()| data).map_err(|_| Refused))
    }

    fn start_write(&self, addr: u64, data: &[u8]) -> Ticket {
        let written = self.memory.write(addr, data);
        self.answer(written.map(|()| Vec::new()).map_err(|_| Refused))
    }

    fn take(&self, ticket: Ticket) -> Option<Answer> {
        let state = &mut *self.state.borrow_mut();
        let (questions, _) = state.answers.get_mut(&ticket).expect("a ticket of ours");
        if *questions > 0 {
            *questions -= 1;
            return None;
        }
        state.answers.remove(&ticket).map(|(_, answer)| answer)
    }

    fn discard(&self, ticket: Ticket) {
        self.state.borrow_mut().answers.remove(&ticket);
    }
}

/// Two cards on a wire.
fn cards(nic: impl Fn(Rc<Late>) -> Box<dyn Nic>) -> [SimCard; 2] {
    let world = Rc::new(RefCell::new(World::new()));
    let ends = ["a", "b"].map(|name| {
        let memory = Rc::new(ProcessMemory::new());
        let late = Rc::new(Late::new(memory.clone(), 5));
        let node = world.borrow_mut().add(name, nic(late));
        (node, memory)
    });
    let [a, b] = [ends[0].0, ends[1].0];
    let (there, back) = (Config::ethernet_100g(), Config::ethernet_100g());
    world.borrow_mut().connect(a, b, there, back);
    ends.map(|(node, memory)| SimCard::new(world.clone(), node, memory))
}

fn exercise(nic: impl Fn(Rc<Late>) -> Box<dyn Nic>) {
    let [a, b] = cards(nic);
    let (mut a, mut b) = pair(a, b).unwrap();
    operations(&mut a, &mut b).unwrap();
    outside(&mut a, &b).unwrap();
}

#[test]
fn the_model_over_late_memory() {
    exercise(|late| Box::new(RemoteModel::new(DEFAULT_PARAMS, late)));
}

#[test]
fn the_engine_over_late_memory() {
    let model = build::model(64, &verilator::Options::default()).unwrap();
    exercise(|late| {
        let engine = build::remote_engine(&model, late, &Options::default()).unwrap();
        Box::new(engine)
    });
}

/// Memory that never answers, as while its owner waits for a register.
struct Never;

impl RemoteMemory for Never {
    fn start_read(&self, _: u64, _: usize) -> Ticket {
        Ticket(1)
    }

    fn start_write(&self, _: u64, _: &[u8]) -> Ticket {
        Ticket(1)
    }

    fn take(&self, _: Ticket) -> Option<Answer> {
        None
    }

    fn discard(&self, _: Ticket) {}
}

/// Reads a register, with as many steps as the card is patient.
fn read32(nic: &mut dyn Nic, offset: u32) -> Option<u32> {
    nic.start_read32(offset.into());
    (0..100).find_map(|_| {
        nic.step();
        nic.take_read32()
    })
}

#[test]
fn registers_answer_while_memory_does_not() {
    let mut model = RemoteModel::new(DEFAULT_PARAMS, Rc::new(Never));
    model.write32(regs::CONTROL.into(), regs::control::ENABLE);
    // A command, whose entry is then never read.
    model.write32(regs::CMD_PI.into(), 1);
    (0..100).for_each(|_| model.step());
    assert!(model.is_waiting());
    let stopped = model.now();
    assert_eq!(read32(&mut model, regs::MAGIC), Some(regs::MAGIC_VALUE));
    model.write32(regs::SCRATCH.into(), 0x1234);
    assert_eq!(read32(&mut model, regs::SCRATCH), Some(0x1234));
    model.write32(regs::SCRATCH.into(), 0x5678);
    assert_eq!(read32(&mut model, regs::SCRATCH), Some(0x5678));
    assert_eq!(read32(&mut model, regs::CMD_CI), Some(0));
    assert!(model.is_waiting());
    assert_eq!(model.now(), stopped, "its time stands still");
    model.reset();
    assert!(!model.is_waiting());
    assert_eq!(read32(&mut model, regs::SCRATCH), Some(0));
}

#[test]
fn an_engine_answers_while_memory_does_not_and_after_a_reset() {
    let model = build::model(64, &verilator::Options::default()).unwrap();
    let mut engine = build::remote_engine(&model, Rc::new(Never), &Options::default()).unwrap();
    for _ in 0..2 {
        (0..2000).for_each(|_| engine.step());
        assert!(engine.ports_are_idle());
        engine.write32(regs::CONTROL.into(), regs::control::ENABLE);
        engine.write32(regs::CMD_PI.into(), 1);
        (0..500).for_each(|_| engine.step());
        assert!(
            !engine.ports_are_idle(),
            "its read of the command is not answered"
        );
        assert_eq!(read32(&mut engine, regs::MAGIC), Some(regs::MAGIC_VALUE));
        assert_eq!(read32(&mut engine, regs::CMD_CI), Some(0));
        engine.reset();
    }
    assert!(engine.violations().is_empty());
}

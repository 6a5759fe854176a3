//! `command`: statuses and completions are those of the golden model; what reaches the tables, and in which order, is
//! written in plain Rust.

mod effects;
mod generate;
mod host;
mod ranges;
mod ring;
mod smaller;

use std::rc::Rc;

use fastrand::Rng;
use ferroce_hdl::control::command::Command as Block;
use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl, PortConfig, opcode, status};
use ferroce_proto::abi::regs::{self, Params, control, feature};
use ferroce_sim::bench::Bench;
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;

use super::{get, set};
use effects::{effects, resize};
use generate::Command;
use host::{Effect, Host, qp_state};

/// Log2 of queue pairs, memory regions, completion queues, outstanding pool.
pub(crate) const Q: usize = 4;
pub(crate) const M: usize = 5;
pub(crate) const C: usize = 3;
pub(crate) const O: usize = 10;
/// Log2 of event queues.
pub(crate) const E: usize = 2;
/// Features that the block knows.
pub(crate) const ALL: usize =
    (feature::RC | feature::UC | feature::UD | feature::EVENTS | feature::SRQ) as usize;
/// Log2 of shared receive queues, as the model has them.
pub(crate) const S: usize = Q - 2;

/// Where the rings are; the card takes the low 6 bits as 0.
const CMD_BASE: u64 = 0x7f00_1234_5fc0;
const CPL_BASE: u64 = 0x7f00_9999_0040;

/// The command block, and the golden model with rings of its own at the same addresses.
struct Rig {
    bench: Bench,
    host: Host,
    memory: Rc<Ranges>,
    model: Model,
    model_memory: Rc<Ranges>,
    log_size: u32,
    features: usize,
    pi: u16,
    /// What was put into the ring and not run.
    waiting: Vec<Command>,
    port: PortConfig,
}

fn rings() -> Rc<Ranges> {
    let memory = Rc::new(Ranges::new());
    memory.map(CMD_BASE, vec![0; 256 * CMD_BYTES]).unwrap();
    memory.map(CPL_BASE, vec![0; 256 * CmdCpl::BYTES]).unwrap();
    memory
}

fn model(memory: &Rc<Ranges>, log_size: u32, features: usize) -> Model {
    let params = Params {
        log_qp: Q as u8,
        log_mr: M as u8,
        log_cq: C as u8,
        log_outstanding: O as u8,
        log_gid: 4,
        log_eq: E as u8,
    };
    let mut model = Model::with_features(params, features as u32, memory.clone());
    for (register, value) in [
        (regs::CMD_BASE_LO, CMD_BASE as u32),
        (regs::CMD_BASE_HI, (CMD_BASE >> 32) as u32),
        (regs::CPL_BASE_LO, CPL_BASE as u32),
        (regs::CPL_BASE_HI, (CPL_BASE >> 32) as u32),
        (regs::CMD_LOG_SIZE, log_size),
        (regs::CONTROL, control::ENABLE),
    ] {
        model.write32(register.into(), value);
    }
    model.step();
    model
}

impl Rig {
    /// A block on a bus of W bits with rings of 2^log_size entries, enabled. `hesitation` is the chance of its
    /// surroundings to wait, in 1/256 a cycle.
    fn new<const W: usize, const K: usize>(log_size: u32, hesitation: u8) -> Self {
        Self::with::<W, K, ALL>(log_size, hesitation)
    }

    /// The same, of a build with the features F.
    fn with<const W: usize, const K: usize, const F: usize>(log_size: u32, hesitation: u8) -> Self {
        let bench =
            Bench::of(Block::<W, K, Q, M, C, O, E, F, S>::default).expect("the block builds");
        let (memory, model_memory) = (rings(), rings());
        let mut rig = Self {
            host: Host::new(bench.dut(), memory.clone(), K, hesitation),
            model: model(&model_memory, log_size, F),
            features: F,
            bench,
            memory,
            model_memory,
            log_size,
            pi: 0,
            waiting: vec![],
            port: PortConfig::default(),
        };
        for (name, value) in [
            ("cmd_base", CMD_BASE | 0x15),
            ("cpl_base", CPL_BASE | 0x2a),
            ("cmd_log_size", log_size.into()),
        ] {
            set(&mut rig.bench, name, value);
        }
        rig.reset();
        rig
    }

    /// Reset, sweep, enable; the model starts afresh too.
    fn reset(&mut self) {
        set(&mut self.bench, "cmd_pi", 0);
        set(&mut self.bench, "enable", 0);
        self.bench.reset(&mut [&mut self.host]);
        self.model = model(&self.model_memory, self.log_size, self.features);
        self.pi = 0;
        self.waiting.clear();
        self.port = PortConfig::default();
        set(&mut self.bench, "enable", 1);
        assert_eq!(get(&mut self.bench, "ready"), 0);
        self.run((1 << Q) + 2);
        assert_eq!(get(&mut self.bench, "ready"), 1);
    }

    fn run(&mut self, cycles: u64) {
        let run = self.bench.run(&mut [&mut self.host], cycles);
        run.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Runs until `commands` commands are answered.
    fn until_done(&mut self, commands: usize) {
        for _ in 0..5_000 {
            if self.host.done() >= commands {
                return;
            }
            self.run(1);
        }
        panic!("not answered; so far {:?}", self.host.effects);
    }

    /// Address of the entry and of the completion with producer index `index`.
    fn places(&self, index: u16) -> (u64, u64) {
        let slot = u64::from(index) % (1 << self.log_size);
        (
            CMD_BASE + slot * CMD_BYTES as u64,
            CPL_BASE + slot * CmdCpl::BYTES as u64,
        )
    }

    /// Puts a command into both rings.
    fn put(&mut self, command: Command) {
        let (entry, _) = self.places(self.pi.wrapping_add(self.waiting.len() as u16));
        for memory in [&self.memory, &self.model_memory] {
            memory.write(entry, &command.head.emit()).unwrap();
            for (at, image) in (entry + 64..).step_by(64).zip(&command.images) {
                memory.write(at, image).unwrap();
            }
        }
        self.waiting.push(command);
    }

    /// Has block and model carry out what waits, and compares all there is to compare. The statuses.
    fn go(&mut self) -> Vec<u8> {
        let commands = std::mem::take(&mut self.waiting);
        self.host.effects.clear();
        let first = self.pi;
        self.pi = first.wrapping_add(commands.len() as u16);
        set(&mut self.bench, "cmd_pi", self.pi.into());
        self.model.write32(regs::CMD_PI.into(), self.pi.into());
        for _ in 0..=commands.len() {
            self.model.step();
        }
        for (i, command) in commands.iter().enumerate() {
            let mut answer = [0; CmdCpl::BYTES];
            let (_, place) = self.places(first.wrapping_add(i as u16));
            self.model_memory.read(place, &mut answer).unwrap();
            let answer = CmdCpl::parse(&answer);
            if command.head.opcode == opcode::RESIZE_CQ {
                match answer.status {
                    status::OK => self.host.resizes.push_back(Some(answer.value as u64)),
                    status::BAD_STATE => self.host.resizes.push_back(None),
                    _ => {}
                }
            }
        }
        self.until_done(commands.len());
        self.run(3);
        let mut expected = vec![];
        let mut statuses = vec![];
        for (i, command) in commands.iter().enumerate() {
            let (_, place) = self.places(first.wrapping_add(i as u16));
            let mut answers = [[0; CmdCpl::BYTES]; 2];
            for (answer, memory) in answers.iter_mut().zip([&self.memory, &self.model_memory]) {
                memory.read(place, answer).unwrap();
            }
            let [found, mut wanted] = answers.map(|bytes| CmdCpl::parse(&bytes));
            let head = &command.head;
            match head.opcode {
                opcode::QUERY_QP if wanted.status == status::OK => {
                    wanted.value = u128::from_le_bytes(qp_state(head.index.into()).emit());
                }
                _ => {}
            }
            assert_eq!(found, wanted, "{command:?}");
            if found.status == status::OK {
                expected.extend(effects(command));
                if head.opcode == opcode::SET_PORT {
                    self.port = PortConfig::parse(&command.images[0]);
                }
            }
            if (head.opcode, found.status) == (opcode::RESIZE_CQ, status::BAD_STATE) {
                expected.push(resize(command));
            }
            expected.push(Effect::Completion(place));
            expected.push(Effect::Done {
                failed: found.status != status::OK,
            });
            statuses.push(found.status);
        }
        assert_eq!(self.host.effects, expected, "{commands:?}");
        assert_eq!(get(&mut self.bench, "port_mac"), self.port.mac);
        let promiscuous = get(&mut self.bench, "promiscuous") == 1;
        assert_eq!(promiscuous, self.port.promiscuous);
        statuses
    }

    /// Carries out one command; its status.
    fn execute(&mut self, command: Command) -> u8 {
        self.put(command);
        self.go()[0]
    }
}

/// Random commands in random batches.
fn random<const W: usize, const K: usize>(log_size: u32, hesitation: u8, batches: usize) {
    let mut rig = Rig::new::<W, K>(log_size, hesitation);
    let mut rng: Rng = rig.bench.rng().fork();
    let mut seen = [0; 5];
    for _ in 0..batches {
        for _ in 0..rng.usize(1..=1 << log_size) {
            rig.put(generate::command(&mut rng));
        }
        for status in rig.go() {
            seen[usize::from(status)] += 1;
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "statuses {seen:?}");
}

#[test]
fn random_commands_at_512_bits() {
    random::<512, 64>(3, 0, 250);
    random::<512, 64>(3, 150, 250);
}

#[test]
fn random_commands_at_64_bits() {
    random::<64, 8>(3, 0, 250);
    random::<64, 8>(3, 150, 250);
}

//! The ring: order, phases, indices, what cannot be read, reset.

use ferroce_proto::abi::cmd::{CmdCpl, CmdHead, opcode, status};
use ferroce_proto::abi::qpc::{AvCtx, state};
use ferroce_sim::memory::HostMemory;

use super::generate::{self, Command};
use super::host::Effect;
use super::ranges::{SQ, modify, rq};
use super::{CMD_BASE, Rig, get, set};

#[test]
fn a_queue_that_ends_has_its_images_written_at_the_end() {
    let mut rig = Rig::new::<512, 64>(2, 100);
    // the other way round for the two halves; `go` checks the order
    for (sq_state, rq_state) in [
        (state::RESET, state::RTR),
        (state::RTS, state::RESET),
        (state::RESET, state::RESET),
        (state::RTS, state::RTS),
    ] {
        let head = CmdHead {
            qp_sq: true,
            qp_av: true,
            qp_rq: true,
            qp_sq_state: true,
            sq_reset: true,
            sq_psn: 0xab_cdef,
            qp_rq_state: true,
            rq_reset: true,
            rq_psn: 0x12_3456,
            sq_state,
            rq_state,
            ..CmdHead::default()
        };
        let command = modify(head, SQ, AvCtx::default(), rq());
        assert_eq!(rig.execute(command), status::OK);
    }
}

#[test]
fn phases_alternate_in_rings_of_every_size() {
    for log_size in 0..=8 {
        let mut rig = Rig::new::<512, 64>(log_size, 0);
        let size = 1usize << log_size;
        // three passes and a bit, in batches of another length
        let mut left = 3 * size + size.div_ceil(2);
        while left > 0 {
            let batch = left.min((2 * size).div_ceil(3));
            for i in 0..batch {
                let mut command = Command::new(opcode::NOP, i as u32);
                command.head.token = left as u16;
                rig.put(command);
            }
            rig.go();
            left -= batch;
        }
    }
}

#[test]
fn indices_wrap_at_16_bits() {
    let mut rig = Rig::new::<512, 64>(8, 0);
    let batch = 250;
    for _ in 0..65_536 / batch + 2 {
        for i in 0..batch {
            rig.put(Command::new(opcode::NOP, i));
        }
        rig.go();
    }
    assert!(rig.pi < 1000);
}

#[test]
fn nothing_begins_while_disabled() {
    let mut rig = Rig::new::<512, 64>(3, 0);
    set(&mut rig.bench, "enable", 0);
    set(&mut rig.bench, "cmd_pi", 2);
    rig.run(200);
    assert!(rig.host.effects.is_empty() && get(&mut rig.bench, "read_valid") == 0);
    // what has begun ends, and no other begins
    rig.host.stalled = true;
    set(&mut rig.bench, "enable", 1);
    rig.run(10);
    assert_eq!(get(&mut rig.bench, "read_valid"), 1);
    set(&mut rig.bench, "enable", 0);
    rig.host.stalled = false;
    rig.run(200);
    let done = |effect: &&Effect| matches!(effect, Effect::Done { .. });
    assert_eq!(rig.host.effects.iter().filter(done).count(), 1);
    set(&mut rig.bench, "enable", 1);
    rig.until_done(2);
}

#[test]
fn an_entry_that_cannot_be_read_is_a_bad_param() {
    for entry_end in [0, 64, 192] {
        let mut rig = Rig::new::<64, 8>(1, 50);
        let contents = rig.memory.unmap(CMD_BASE).expect("the ring");
        if entry_end > 0 {
            let part = contents[..entry_end].to_vec();
            rig.memory.map(CMD_BASE, part).unwrap();
        }
        set(&mut rig.bench, "cmd_pi", 1);
        rig.until_done(1);
        let mut answer = [0xff; CmdCpl::BYTES];
        let (_, place) = rig.places(0);
        rig.memory.read(place, &mut answer).unwrap();
        let expected = CmdCpl {
            status: status::BAD_PARAM,
            owner: true,
            ..CmdCpl::default()
        };
        assert_eq!(CmdCpl::parse(&answer), expected);
        let done = [Effect::Completion(place), Effect::Done { failed: true }];
        assert_eq!(rig.host.effects, done);
        // the next is read again
        rig.memory.unmap(CMD_BASE);
        rig.memory.map(CMD_BASE, contents).unwrap();
        rig.host.effects.clear();
        set(&mut rig.bench, "cmd_pi", 2);
        rig.until_done(1);
        assert!(rig.host.effects.contains(&Effect::Done { failed: false }));
    }
}

#[test]
fn a_nop_is_answered_within_the_promised_cycles() {
    let mut rig = Rig::new::<512, 64>(0, 0);
    rig.put(Command::new(opcode::NOP, 0));
    set(&mut rig.bench, "cmd_pi", 1);
    let start = rig.bench.cycle();
    while get(&mut rig.bench, "beats_valid") == 0 {
        rig.run(1);
        assert!(rig.bench.cycle() - start < 100);
    }
    // the four beats of the entry come behind its request
    let cycles = rig.bench.cycle() - start;
    assert_eq!(cycles, 11 + 4);
}

#[test]
fn reset_at_any_moment_leaves_no_trace() {
    let mut rig = Rig::new::<64, 8>(2, 100);
    let mut rng = rig.bench.rng().fork();
    for _ in 0..60 {
        for _ in 0..3 {
            rig.put(generate::command(&mut rng));
        }
        set(&mut rig.bench, "cmd_pi", 3);
        let cycles = rng.u64(..300);
        rig.run(cycles);
        rig.reset();
        // images from before are forgotten: the model judges
        let open = CmdHead {
            qp_sq_state: true,
            sq_state: state::RTS,
            ..CmdHead::default()
        };
        let command = modify(open, SQ, AvCtx::default(), rq());
        assert_eq!(rig.execute(command), status::BAD_STATE);
        for _ in 0..3 {
            rig.put(generate::command(&mut rng));
            rig.go();
        }
        rig.reset();
    }
}

//! The owner of a send queue as an enemy.
//!
//! A process holds rings, records, doorbells and a region, and does with them what it likes while the card works on them:
//!
//! * it writes WQEs over, also between the card's first and second look at one;
//! * it rings indices that make no sense, and moves its consumer records;
//! * it never empties its event queue;
//! * its peer answers with any PSN;
//! * it ends at any cycle, and its numbers go to another at once.
//!
//! Whatever it does:
//!
//! * connections of others (RC both ways, UD both ways) have exactly the results of the golden model, each in time;
//! * no frame has bytes of another owner, and none of a tenant comes for long when its end was answered;
//! * memory that was taken back, or that no key opens, is not reached;
//! * each WQE that was posted completes at most once, and none that was not;
//! * commands and registers answer in time, and its queue pairs come to an end: success, error or reset;
//! * when all is over the card is quiet.

use fastrand::Rng;
use ferroce_proto::abi::cmd::QpState;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::Packet;
use std::cell::RefCell;
use std::rc::Rc;

use super::acts::{Act, plan, record};
use super::bystanders::{MARK, Patience, scene};
use super::misuse::Misuse;
use super::stranger;
use super::tenant::{QPNS, Tenant, peer_qpn, query};
use crate::conformance::run::Target;
use crate::differential::Card;
use crate::differential::shrink::fewer;
use crate::quiet;
use crate::scene::{STEP, Scene, holds};
use crate::world::pausing;

/// A message of up to 24 parts waits for each behind up to 16 reads of 8 WQEs of the owner, 5,000 cycles in the slowest world, and
/// behind what these WQEs send.
const PATIENCE: Patience = Patience {
    command: 50_000,
    message: 250_000,
};
/// Cycles in which all of an owner comes to an end.
const END: u64 = 1_000_000;
/// Cycles in which frames that had left the tables come out.
const LEAVING: u64 = 2_000;
/// The present owner, and the one before.
pub(super) struct Owner {
    pub(super) tenant: Tenant,
    /// Mark and peer of the one before, and the cycle of its end.
    former: Option<(u32, u32, u64)>,
    marks: Vec<u32>,
    ending: bool,
    /// Its consumer records move until all is taken back: what waits for room in a ring goes on at any moment.
    moves: bool,
    /// Its completions are looked at; a bus that loses writes loses some.
    pub(super) strict: bool,
    /// PSN of the last request of each queue pair.
    pub(super) asked: [u32; 3],
    rng: Rng,
    report: Misuse,
}

/// Lets an owner of queues do `acts` of a seed on a card in the world of that seed.
///
/// # Errors
/// As [`misuse_of`]; the engine cannot be built.
pub fn misuse(target: Target, acts: u64, seed: u64, shrinking: u32) -> Result<Misuse, String> {
    let card = target.card_in(pausing);
    let (card, _) = card.map_err(|e| e.to_string())?;
    misuse_of(&card, target == Target::Model, acts, seed, shrinking)
}

/// Lets an owner of queues of a card do `acts` of a seed. `direct` says that the card is a model, which asks for bytes;
/// as many as `shrinking` runs are spent on fewer acts that fail too.
///
/// # Errors
/// What broke, with the seed and what is left of the acts.
pub fn misuse_of(
    card: &Card,
    direct: bool,
    acts: u64,
    seed: u64,
    shrinking: u32,
) -> Result<Misuse, String> {
    let acts = plan(acts, seed);
    run(card, direct, &acts, seed).map_err(|first| {
        let mut last = first;
        let left = fewer(acts.len(), shrinking, |left| {
            let acts: Vec<Act> = left.iter().map(|&place| acts[place]).collect();
            let result = run(card, direct, &acts, seed);
            result.map_err(|what| last = what).is_err()
        });
        let names: Vec<_> = left
            .iter()
            .map(|&place| format!("{:?}", acts[place]))
            .collect();
        format!(
            "seed {seed}: {last}\n{} of {} acts do it:\n{}",
            left.len(),
            acts.len(),
            names.join("\n")
        )
    })
}

fn run(card: &Card, direct: bool, acts: &[Act], seed: u64) -> Result<Misuse, String> {
    quiet::caught(|| {
        let mut scene = scene(card, direct, seed, PATIENCE);
        let mut owner = Owner::new(&mut scene, seed, 1);
        for act in acts {
            act.apply(&mut owner, &mut scene);
            owner.report.acts += 1;
        }
        owner.end(&mut scene);
        owner.report
    })
}

impl Owner {
    pub(super) fn new(scene: &mut Scene, seed: u64, number: u32) -> Self {
        let mut rng = Rng::with_seed(!seed);
        let tenant = Tenant::open(number, scene, &mut rng);
        let mut owner = Self {
            marks: Vec::new(),
            former: None,
            ending: false,
            moves: false,
            strict: true,
            asked: [0; 3],
            tenant,
            rng,
            report: Misuse::default(),
        };
        owner.opened(scene);
        owner
    }

    fn opened(&mut self, scene: &mut Scene) {
        self.marks.push(self.tenant.mark);
        scene.foreign.push(self.tenant.mark);
        (self.ending, self.moves) = (false, false);
        let bound = scene.kernels[0].bound * 20;
        self.until(scene, bound, "a tenant opens", |scene| {
            scene.kernels[0].idle()
        });
    }

    /// Its queues are there.
    pub(super) fn is_alive(&mut self, scene: &mut Scene) -> bool {
        if self.ending && scene.kernels[0].idle() {
            self.succeed(scene);
        }
        !self.ending
    }

    /// The numbers go to another.
    fn succeed(&mut self, scene: &mut Scene) {
        self.leave(scene);
        scene.check();
        let before = (self.tenant.mark, peer_qpn(self.tenant.number), scene.now);
        self.former = Some(before);
        self.tenant = Tenant::open(self.tenant.number + 1, scene, &mut self.rng);
        self.opened(scene);
    }

    /// The kernel takes all back. Of some owners most queue pairs of RC fail just then, and their events are on the way; of others
    /// the consumer records move.
    pub(super) fn die(&mut self, scene: &mut Scene, rng: &mut Rng) {
        self.report.deaths += 1;
        self.ending = true;
        let [fails, moves] = [[true, false], [false, true], [false, false]][rng.usize(..3)];
        self.moves = moves;
        if fails {
            Tenant::arm(&mut scene.pair.a, rng.u32(..));
            for frame in stranger::ends(&scene.pair.a, &self.tenant) {
                scene.pair.a.nic.receive(&frame);
            }
        }
        let gently = !fails && rng.bool();
        self.tenant.die(scene, gently, rng.u8(..4) == 0);
    }

    pub(super) fn post(&mut self, scene: &mut Scene, place: usize, slots: &[[u8; SLOT_BYTES]]) {
        let open = self.tenant.open_sends()[&QPNS[place]];
        let size = 1 << self.tenant.log;
        if self.tenant.victims[place].sane && usize::from(open) + slots.len() > size {
            return;
        }
        let victim = &mut self.tenant.victims[place];
        victim.holds(slots);
        for slot in slots {
            let at = usize::from(victim.producer) % size * SLOT_BYTES;
            scene.pair.a.write(victim.sq + at as u64, slot);
            victim.producer = victim.producer.wrapping_add(1);
        }
        scene
            .pair
            .a
            .nic
            .write32(doorbell::sq(victim.qpn), victim.producer.into());
    }

    /// All its doorbells, as they are.
    pub(super) fn rings(&self, scene: &mut Scene) {
        for victim in &self.tenant.victims {
            let nic = &mut scene.pair.a.nic;
            nic.write32(doorbell::sq(victim.qpn), victim.producer.into());
            nic.write32(doorbell::rq(victim.qpn), victim.rq_producer.into());
        }
        self.tenant.ring_srq(&mut scene.pair.a);
    }

    /// Time passes.
    pub(super) fn wait(&mut self, scene: &mut Scene, cycles: u64) {
        for _ in 0..cycles.div_ceil(STEP) {
            self.step(scene);
        }
    }

    fn until(&mut self, scene: &mut Scene, cycles: u64, what: &str, done: impl Fn(&Scene) -> bool) {
        let end = scene.now + cycles;
        while !done(scene) {
            assert!(scene.now < end, "{what}: not in {cycles} cycles");
            self.step(scene);
        }
    }

    fn step(&mut self, scene: &mut Scene) {
        scene.step();
        if self.ending && self.moves && self.rng.u8(..16) == 0 {
            record(&mut self.tenant, &scene.pair.a, &mut self.rng);
        }
        if self.strict {
            self.report.completions += self.tenant.completions(&scene.watches[0]);
        }
        for frame in std::mem::take(&mut scene.strays) {
            self.stray(scene, &frame);
        }
    }

    /// A frame to the peer of a tenant.
    fn stray(&mut self, scene: &mut Scene, frame: &[u8]) {
        assert!(
            !holds(frame, MARK),
            "bytes of a bystander in a frame of the owner"
        );
        let late = |cycle: u64| scene.now > cycle + LEAVING;
        let packet = Packet::parse(frame).expect("a card sends good packets");
        let headers = packet.headers;
        for &mark in self.marks.iter().filter(|&&mark| mark != self.tenant.mark) {
            let just = self
                .former
                .is_some_and(|(before, _, end)| before == mark && !late(end));
            assert!(
                just || !holds(frame, mark),
                "bytes of tenant {mark:#x} when it is gone"
            );
        }
        let to = headers.bth.dest_qp;
        if let Some((_, peer, end)) = self.former
            && peer == to
            && late(end)
            && headers.ext.deth.is_none()
        {
            panic!("a frame to the peer of a tenant that is gone: {headers:?}");
        }
        if to != peer_qpn(self.tenant.number) || !headers.bth.opcode.is_request() || self.ending {
            return;
        }
        // A frame does not say which queue pair it is of: the nearest PSN tells.
        let source = headers.udp.src_port;
        let Some(place) = QPNS.iter().position(|qpn| 0xc000 | (*qpn as u16) == source) else {
            return;
        };
        self.asked[place] = headers.bth.psn.value();
        if headers.bth.opcode.class() as u8 == qp_type::RC && self.rng.u8(..8) > 0 {
            for answer in stranger::answers(&scene.pair.a, QPNS[place], &headers) {
                scene.pair.a.nic.receive(&answer);
            }
        }
    }

    /// All comes to an end, and then nothing happens.
    pub(super) fn end(&mut self, scene: &mut Scene) {
        scene.watches[0].disarm();
        self.survive(scene);
        self.finish(scene);
        self.die_now(scene);
        scene.rest(END);
        scene.check();
        self.report.messages = scene.tally().messages;
        self.report.cycles = scene.now;
        self.report.slowest = scene.kernels[0].slowest;
    }

    pub(super) fn die_now(&mut self, scene: &mut Scene) {
        self.ending = true;
        self.tenant.die(scene, false, false);
        let bound = scene.kernels[0].bound * 20;
        self.until(scene, bound, "the last tenant dies", |scene| {
            scene.kernels[0].idle()
        });
        self.wait(scene, LEAVING);
    }

    /// It is not watched any more.
    pub(super) fn leave(&mut self, scene: &Scene) {
        scene.watches[0].leave(self.tenant.cq.base);
        scene.watches[0].leave(self.tenant.eq.base);
        scene.watches[0].disarm();
    }

    /// Where the bus may fail so that only it would notice.
    pub(super) fn places(&self) -> Vec<std::ops::Range<u64>> {
        self.tenant.places()
    }

    /// Waits until there is one whose queues are there.
    pub(super) fn survive(&mut self, scene: &mut Scene) {
        while !self.is_alive(scene) {
            self.step(scene);
        }
    }

    /// Each queue pair whose doorbells made sense has done all, or is in error.
    fn finish(&mut self, scene: &mut Scene) {
        for victim in &self.tenant.victims {
            victim.resume(&mut scene.kernels[0]);
        }
        let end = scene.now + END;
        let mut before = [None; 3];
        loop {
            let mut open = 0;
            for place in 0..3 {
                let found = self.query(scene, QPNS[place]);
                let failed = [state::ERR, state::SQE].contains(&found.sq_state);
                let all = self.tenant.open_sends()[&QPNS[place]] == 0;
                let psns = (found.sq_psn, found.una_psn);
                let victim = &self.tenant.victims[place];
                let may_wait = victim.last[0].is_some() || victim.wants_more;
                let still = may_wait && psns.0 == psns.1 && before[place] == Some(psns);
                before[place] = Some(psns);
                let sane = victim.sane;
                open += u32::from(sane && !failed && !all && !still);
            }
            if open == 0 {
                return;
            }
            assert!(
                scene.now < end,
                "queue pairs of the owner do not end in {END} cycles"
            );
            self.wait(scene, 4000);
        }
    }

    fn query(&mut self, scene: &mut Scene, qpn: u32) -> QpState {
        let found = Rc::new(RefCell::new(None));
        let to = Rc::clone(&found);
        scene.kernels[0].order(query(qpn), &[], move |host, answer| {
            crate::scene::kernel::ok(host, answer);
            *to.borrow_mut() = Some(QpState::parse(&answer.value.to_le_bytes()));
        });
        let bound = scene.kernels[0].bound * 4;
        self.until(scene, bound, "QUERY", |scene| scene.kernels[0].idle());
        found.take().expect("it was answered")
    }
}

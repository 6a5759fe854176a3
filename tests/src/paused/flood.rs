//! What fills a class.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::{ExceptionQueue, Mr, QpOptions, Rights, Work, experimental, pattern};

use super::{Held, SIDES, tclass};
use crate::scene::Scene;

/// Queue pairs of the flood, and messages that one has under way.
pub(super) const FLOODS: u32 = 24;
const DEPTH: u32 = 16;
/// Bytes of its READs.
const LENGTH: usize = 4096;
/// Log2 of the slots of the host's frames.
const SLOTS: u8 = 8;

/// Connections of a class with more to send, to acknowledge and to answer than its queue takes, and frames of the hosts.
pub(super) struct Flood {
    /// Numbers of the queue pairs at each side, and the messages that each has under way.
    under_way: [Vec<u32>; 2],
    /// What each side sends, and where it has what it reads and what the other writes.
    sources: [Mr; 2],
    sinks: [Mr; 2],
    /// Sides that have read.
    has_read: [bool; 2],
    pub(super) class: usize,
    /// Messages that ended.
    pub(super) done: u64,
    queues: [ExceptionQueue; 2],
    /// Frames on their way to each side, and those that it took.
    frames: [VecDeque<Vec<u8>>; 2],
    taken: [u64; 2],
}

impl Flood {
    /// Number of the first queue pair, and of the completion queue.
    const FIRST: u32 = 40;
    const CQN: u16 = 100;

    pub(super) fn new(scene: &mut Scene, rng: &mut Rng) -> Self {
        let pair = &mut scene.pair;
        let hosts = [&mut pair.a, &mut pair.b];
        let [a, b] = hosts.map(|host| {
            host.create_cq_as(Self::CQN, 9);
            let source = host.create_mr(&pattern(LENGTH, 5), Rights::ALL);
            let sink = host.create_mr(&[0; LENGTH], Rights::ALL);
            (source, sink, ExceptionQueue::open(host, SLOTS, false))
        });
        let options = QpOptions {
            send_cq: Self::CQN,
            recv_cq: Self::CQN,
            timeout: 9,
            tclass: tclass(rng),
            mtu: Mtu::Mtu4096,
            max_rd_atomic: 16,
            ..QpOptions::default()
        };
        for number in Self::FIRST..Self::FIRST + FLOODS {
            pair.a.create_qp_as(number, options);
            pair.b.create_qp_as(number, options);
            pair.join(number, number);
        }
        Self {
            under_way: [(); 2].map(|()| vec![0; FLOODS as usize]),
            sources: [a.0, b.0],
            sinks: [a.1, b.1],
            has_read: [false; 2],
            class: usize::from(options.tclass >> 6),
            done: 0,
            queues: [a.2, b.2],
            frames: Default::default(),
            taken: [0; 2],
        }
    }

    /// Takes what ended and came, and posts more for what is held.
    pub(super) fn step(&mut self, scene: &mut Scene, rng: &mut Rng, held: &[Held]) {
        for side in SIDES {
            let (near, far) = (side as usize, 1 - side as usize);
            let has_left = self.has_left(scene, near);
            let to = scene.pair.host(SIDES[far]).mac;
            let host = scene.pair.host(side);
            while let Some(cqe) = host.poll(Self::CQN) {
                assert_eq!(cqe.status, status::SUCCESS, "the flood: {cqe:?}");
                self.under_way[near][(cqe.qpn - Self::FIRST) as usize] -= 1;
                self.done += 1;
            }
            while let Some(frame) = self.queues[near].take(host) {
                // more than a card stores are dropped
                let mut frames = std::iter::from_fn(|| self.frames[near].pop_front());
                let of_other = frames.any(|sent| sent == frame);
                assert!(of_other, "{side:?}: not a frame of the other host");
                self.taken[near] += 1;
                self.queues[near].give_back(host, false);
            }
            let is_held = |class| held.iter().any(|it| it.class() == class);
            if rng.u8(..64) > 0 {
                continue;
            }
            let number = rng.usize(..FLOODS as usize);
            if self.under_way[near][number] == 0 && is_held(self.class) {
                let reads = number.is_multiple_of(4);
                self.has_read[near] |= reads;
                let work = match reads {
                    true => Work::read(&[self.sinks[near].all()], &self.sources[far], 0),
                    false => Work::write(&[self.sources[near].sge(0, 8)], &self.sinks[far], 0),
                };
                for _ in 0..DEPTH {
                    host.post_send(Self::FIRST + number as u32, &work);
                }
                self.under_way[near][number] = DEPTH;
            }
            if has_left && is_held(0) {
                for count in 0..=u8::MAX {
                    let payload = vec![count; rng.usize(986..1486)];
                    let frame = experimental(host.mac, to, &payload);
                    self.queues[near].put(host, &frame, frame.len() as u16);
                    self.frames[far].push_back(frame);
                }
                self.queues[near].ring(host);
            }
        }
    }

    /// All has ended, or left.
    pub(super) fn at_rest(&self, scene: &Scene) -> bool {
        let ended = self.under_way.iter().flatten().all(|count| *count == 0);
        ended && self.has_left(scene, 0) && self.has_left(scene, 1)
    }

    /// All frames of a host have.
    fn has_left(&self, scene: &Scene, side: usize) -> bool {
        scene.host_frames[side] as u16 == self.queues[side].sent()
    }

    /// What was read is there, and each frame came or is counted as dropped.
    pub(super) fn check(&self, scene: &mut Scene) {
        for side in SIDES {
            let (near, far) = (side as usize, 1 - side as usize);
            let host = scene.pair.host(side);
            let sink = host.contents(&self.sinks[near]);
            let as_read = sink == pattern(LENGTH, 5);
            assert!(as_read || !self.has_read[near], "{side:?}: what was read");
            let counts = ["rx_exceptions", "rx_exception_drops"].map(|name| host.stat(name));
            let sent = scene.host_frames[far];
            assert_eq!(
                counts,
                [self.taken[near], sent - self.taken[near]],
                "{side:?}"
            );
        }
    }
}

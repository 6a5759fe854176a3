//! In front of the queues: the queue of each frame, and room for each beat.

use std::collections::VecDeque;

use ferroce_hdl::egress::class_entry::ClassEntry;
use ferroce_hdl::egress::{CLASSES, QUEUES};
use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::{Input, Output};

/// Beats of each queue.
const ROOM: usize = 60;
/// Beats of 128 bytes, more than the longest CNP has, and beats of room in a control queue below which none is begun.
const LONGEST: u64 = 16;
const SCARCE: usize = 28;

/// A frame: class, ACK, CNP, of the lane of responses; and its beats.
#[derive(Clone, Copy)]
struct Frame {
    class: u64,
    ack: bool,
    cnp: bool,
    response: bool,
    request: bool,
    beats: u64,
}

impl Frame {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let kind = rng.u8(..6);
        Self {
            class: rng.u64(..CLASSES as u64),
            ack: kind == 0,
            cnp: kind == 1,
            response: kind == 0 || kind == 2,
            request: kind == 3,
            beats: rng.u64(if kind < 2 { 8..=LONGEST } else { 1..=5 }),
        }
    }

    fn mark(self) -> u64 {
        let bits = [self.ack, self.cnp, self.response, self.request];
        let bits = bits.iter().enumerate().map(|(i, &bit)| u64::from(bit) << i);
        self.class | bits.sum::<u64>() << 2
    }
}

/// No beat without room; a CNP in its control queue, data in its data queue; an ACK beside data, but never before a response. What
/// has no room beside data goes behind it, and what goes beside data waits for no room.
#[test]
fn each_frame_goes_to_its_queue_when_that_has_room() {
    let mut bench = Bench::of(ClassEntry::<64, 8>::default).unwrap();
    let input = |bench: &Bench, name: &str| bench.dut().input(name).unwrap();
    let output = |bench: &Bench, name: &str| bench.dut().output(name).unwrap();
    let [valid, last, mark, pop, data, keep, user]: [Input; 7] = [
        "s_axis_tvalid",
        "s_axis_tlast",
        "mark",
        "pop",
        "s_axis_tdata",
        "s_axis_tkeep",
        "s_axis_tuser",
    ]
    .map(|name| input(&bench, name));
    let rooms: Vec<Input> = (0..QUEUES)
        .map(|i| input(&bench, &format!("room_{i}")))
        .collect();
    let [ready, m_valid, queue, request, reserves, into, beats]: [Output; 7] = [
        "s_axis_tready",
        "m_axis_tvalid",
        "queue",
        "request",
        "reserve.valid",
        "reserve.payload.queue",
        "reserve.payload.beats",
    ]
    .map(|name| output(&bench, name));
    for port in [valid, last, mark, pop, data, keep, user] {
        bench.dut_mut().set(port, 0);
    }
    for &room in &rooms {
        bench.dut_mut().set(room, ROOM as u64);
    }
    bench.reset(&mut []);
    // of each queue its beats: whether they are of a response; and those that left in the latest cycles
    let mut held: [VecDeque<bool>; QUEUES] = Default::default();
    let mut left: [usize; QUEUES] = [0; QUEUES];
    let mut since = [10_u64; CLASSES];
    let mut frame = None;
    let mut counts = [0; 5];
    let mut of_frame = None;
    for _ in 0..300_000 {
        let rng = bench.rng();
        // one queue's beat leaves
        let leaves = rng.usize(..QUEUES + 2);
        let leaves = (leaves < QUEUES && !held[leaves].is_empty()).then_some(leaves);
        let (current, rest) = *frame.get_or_insert_with(|| {
            let frame = Frame::random(rng);
            (frame, frame.beats)
        });
        let offers = rng.u8(..8) != 0;
        let dut = bench.dut_mut();
        dut.set(pop, leaves.map_or(0, |queue| 1 << queue));
        dut.set(valid, offers.into());
        dut.set(mark, current.mark());
        dut.set(last, u64::from(rest == 1));
        for (queue, &room) in rooms.iter().enumerate() {
            dut.set(room, (ROOM - held[queue].len() - left[queue]) as u64);
        }
        dut.settle();
        let takes = offers && dut.is_set(ready);
        assert_eq!(dut.is_set(m_valid), takes);
        assert_eq!(dut.is_set(reserves), takes);
        assert_eq!(dut.is_set(request), takes && current.request && rest == 1);
        if takes {
            let to = dut.get(queue) as usize;
            assert_eq!((dut.get(into), dut.get(beats)), (to as u64, 1));
            assert!(held[to].len() + left[to] < ROOM, "no room");
            let (class, control) = (current.class as usize, to >= CLASSES);
            assert_eq!(to % CLASSES, class);
            let stands = held[class].iter().any(|&response| response);
            // what left in the latest cycles may not be known
            let beside = CLASSES + class;
            let scarce = ROOM - held[beside].len() - left[beside] < SCARCE + 2;
            match *of_frame.get_or_insert(to) {
                first if rest < current.beats => assert_eq!(first, to, "one frame, one queue"),
                _ if current.cnp && control => {}
                _ if (current.cnp || current.ack && !stands) && scarce && !control => {
                    counts[4] += 1;
                }
                _ if current.ack && control => {
                    assert!(!stands, "an ACK passes a response");
                    counts[0] += 1;
                }
                // it is known some cycles later that the last one left
                _ if current.ack => {
                    assert!(stands || since[class] < 3, "an ACK waits behind data");
                    counts[1] += 1;
                }
                _ => assert!(!control && !current.cnp),
            }
            counts[2] += 1;
            held[to].push_back(current.response && !current.ack);
            frame = (rest > 1).then_some((current, rest - 1));
            if rest == 1 {
                of_frame = None;
            }
        } else if offers {
            let waits = of_frame.is_some_and(|to| to >= CLASSES);
            assert!(!waits, "an ACK or a CNP has no room for all of it");
            counts[3] += 1;
        }
        bench.dut_mut().tick();
        left = [0; QUEUES];
        for class in 0..CLASSES {
            let stood = held[class].iter().any(|&response| response);
            since[class] = if stood { 0 } else { since[class] + 1 };
        }
        if let Some(queue) = leaves {
            held[queue].pop_front();
            left[queue] = 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

//! Room for frames of the host: random frames, and room about what they need.

use ferroce_hdl::egress::CLASSES;
use ferroce_hdl::egress::class_gate::UNDER_WAY;
use ferroce_hdl::egress::host_gate::HostGate;
use ferroce_sim::bench::Bench;

use crate::gate::{OF_ACKS, UNIT, get, set};

/// Beats of the data queue of a class: 240 KiB.
const QUEUE: u64 = UNIT * 3840;
/// Cycles until it looks at a frame.
const LATENCY: usize = 3;

#[test]
fn a_frame_leaves_when_all_that_is_under_way_has_room_beside_it() {
    let mut bench = Bench::of(HostGate::<8>::default).unwrap();
    set(&mut bench, "waits", 0);
    bench.reset(&mut []);
    let mut waited = 0;
    for _ in 0..2000 {
        let rng = bench.rng();
        let class = rng.usize(..CLASSES);
        let beats = if rng.bool() {
            rng.u64(2..=190)
        } else {
            rng.u64(1200..=2040)
        };
        let needed = (UNIT * (UNDER_WAY + OF_ACKS) + beats).min(QUEUE);
        let rooms: [u64; CLASSES] = [(); CLASSES].map(|()| needed - rng.u64(..2));
        for (of, room) in rooms.into_iter().enumerate() {
            set(&mut bench, &format!("room_{of}"), room);
        }
        set(&mut bench, "packet_class", class as u64);
        set(&mut bench, "beats", beats);
        set(&mut bench, "waits", 1);
        for _ in 0..LATENCY {
            assert_eq!((get(&bench, "may_leave"), get(&bench, "wanted")), (0, 0));
            bench.step(&mut []).unwrap();
        }
        if rooms[class] < needed {
            waited += 1;
            assert_eq!(get(&bench, "may_leave"), 0);
            assert_eq!(get(&bench, "wanted"), 1 << class);
            set(&mut bench, &format!("room_{class}"), needed);
            for _ in 0..2 {
                bench.step(&mut []).unwrap();
            }
        }
        assert_eq!((get(&bench, "may_leave"), get(&bench, "wanted")), (1, 0));
        set(&mut bench, "waits", 0);
        for _ in 0..2 {
            bench.step(&mut []).unwrap();
        }
    }
    assert!(waited > 500, "{waited} frames waited");
}

//! Acknowledgements that wait and are taken two at a time.

use ferroce_sim::random::Pauses;

use super::rig::{Rig, Wire};
use super::{ctx, send};

/// Acknowledgements of `psns` back to back, of messages with the PSNs 100 to 139; acknowledged and ghosts.
fn acknowledged(psns: &[u64]) -> (u64, u64, Rig) {
    let mut rig = Rig::new(20, Pauses::NONE);
    rig.open(1, ctx(), 100);
    rig.wire = Wire {
        no_answer: true,
        ..Wire::default()
    };
    for _ in 0..40 {
        rig.post(1, send(10));
    }
    rig.ring(1);
    rig.run(600);
    for &psn in psns {
        let item = rig.answer.item().with("qpn", 1).with("psn", psn);
        rig.answer.push(item);
    }
    rig.run(200);
    (rig.counts["rx_acks"], rig.counts["rx_ghost_acks"], rig)
}

fn good(count: u16) -> Vec<(u16, u8)> {
    (0..count).map(|i| (i, 0)).collect()
}

#[test]
fn acknowledgements_that_wait_are_taken_two_at_a_time_and_each_counts() {
    let psns: Vec<_> = (100..140).collect();
    let (acked, ghosts, rig) = acknowledged(&psns);
    assert_eq!((acked, ghosts), (40, 0));
    assert!(rig.pairs >= 15, "{} pairs", rig.pairs);
    assert_eq!(rig.done(1), good(40));
}

/// Whatever stands beside whatever: in the window, behind it, ahead of it, twice the same.
#[test]
fn merged_acknowledgements_do_what_they_do_alone() {
    let rounds: [&[u64]; 7] = [
        &[100, 101, 104, 103, 105, 99, 106, 107, 98, 97, 108],
        &[110, 111, 112, 112, 112, 113, 140, 114, 200, 201, 115],
        &[100, 100, 100, 101, 101, 102, 102, 140, 103, 141, 139],
        &[139, 138, 140, 141, 142, 143, 144, 145],
        &[90, 91, 92, 93, 94, 95, 100, 96, 101],
        &[105, 104, 106, 141, 107, 160, 0xff_ffff, 108],
        &[120, 121, 122, 130, 141, 131, 135, 190],
    ];
    for psns in rounds {
        let (mut una, mut expected) = (100, (0, 0));
        for &psn in psns {
            if (una..140).contains(&psn) {
                una = psn + 1;
                expected.0 += 1;
            } else {
                expected.1 += 1;
            }
        }
        let (acked, ghosts, rig) = acknowledged(psns);
        assert_eq!((acked, ghosts), expected, "{psns:?}");
        assert_eq!(rig.done(1), good(una as u16 - 100), "{psns:?}");
    }
}

//! Numbers of WQEs of shared receive queues.

use ferroce_sim::random::Pauses;

use super::{Q, Run, Shared, uneven};

/// Messages of many queue pairs that take from shared receive queues, between WQEs that do not: of one packet or more, of
/// immediate data alone, flushed.
fn random_shared<const W: usize>(idle: Pauses, back: Pauses, delay: u64, pause: f64) {
    let mut run = Run::new::<W>(idle, back, delay, pause);
    let mut rng = run.bench.rng().clone();
    // one for each size of WQE
    let queues: Vec<_> = (0..4)
        .map(|stride| {
            let (base, numbers) = (rng.u64(..1 << 57) << 6, rng.u64(..1 << 57) << 6);
            (base, numbers, rng.u64(..16), stride)
        })
        .collect();
    let mut taken = [0; 4];
    // the queue of the message that is under way
    let mut open = [None; 1 << Q];
    for _ in 0..1000 {
        let qpn = rng.usize(..1 << Q);
        if rng.u8(..4) == 0 {
            run.push(rng.u64(..1 << 57) << 6, rng.u64(1..=8));
            continue;
        }
        let takes = open[qpn].is_none();
        let queue = open[qpn].unwrap_or_else(|| rng.usize(..4));
        let (base, numbers, log, stride) = queues[queue];
        let mut addr = None;
        if takes {
            let entry = taken[queue] & ((1 << log) - 1);
            addr = Some(numbers + 2 * entry);
            taken[queue] += 1;
        }
        for packet in 0..rng.u64(1..4) {
            let numbered = rng.bool();
            // another image of the queue: the number from the table is too large for it
            let is_changed = addr.is_none() && rng.u8(..8) == 0;
            let log = if is_changed { rng.u64(..=log) } else { log };
            run.push_shared(Shared {
                qpn: qpn as u64,
                takes: addr.take(),
                base,
                log,
                stride,
                list: rng.bool() || !numbered,
                numbered,
            });
            open[qpn] = (!numbered).then_some(queue);
            if numbered || packet == 2 {
                break;
            }
        }
    }
    run.finish();
}

#[test]
fn random_numbers() {
    random_shared::<512>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    random_shared::<512>(uneven(), uneven(), 50, 0.2);
    random_shared::<64>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    random_shared::<64>(uneven(), uneven(), 50, 0.2);
    random_shared::<512>(Pauses::NONE, Pauses::new(0.8, 20), 5, 0.0);
}

const SHARED: Shared = Shared {
    qpn: 3,
    takes: None,
    base: 0x10_0000,
    log: 8,
    stride: 0,
    list: true,
    numbered: false,
};

/// WQEs of each size stand at the places that their numbers say, in queues of each length.
#[test]
fn each_size_of_wqe_stands_at_its_number() {
    let mut run = Run::new::<512>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    let mut taken = 0;
    for stride in 0..4 {
        for log in 0..16 {
            for qpn in 0..8 {
                run.push_shared(Shared {
                    qpn,
                    takes: Some(0x8000 + 2 * taken),
                    log,
                    stride,
                    numbered: true,
                    ..SHARED
                });
                taken += 1;
            }
        }
    }
    run.finish();
}

/// The packets of a message, a slot a cycle; a WQE of its own for each packet, one in two cycles, as each is two reads.
#[test]
fn the_reads_of_numbers_are_hidden() {
    for (messages, packets, most) in [(1, 1000, 1560), (1000, 1, 2560)] {
        let mut run = Run::new::<512>(Pauses::NONE, Pauses::NONE, 240, 0.0);
        for message in 0..messages {
            for packet in 0..packets {
                run.push_shared(Shared {
                    qpn: message % (1 << Q),
                    takes: (packet == 0).then_some(0x8002 + 4 * message),
                    numbered: packet + 1 == packets,
                    ..SHARED
                });
            }
        }
        let start = run.bench.cycle();
        run.finish();
        let cycles = run.bench.cycle() - start;
        assert!(cycles < most, "{messages} messages: {cycles} cycles");
    }
}

/// Other WQEs do not wait a cycle more when no shared one is there, and keep their place when one is.
#[test]
fn others_pass_while_no_number_is_read() {
    let mut run = Run::new::<512>(Pauses::NONE, Pauses::NONE, 240, 0.0);
    for i in 0..8 {
        run.push(i * 64, 1);
    }
    (0..9).for_each(|_| run.step());
    assert_eq!(run.reader.reads.len(), 8);
    run.push_shared(Shared {
        takes: Some(0x8002),
        ..SHARED
    });
    run.push(0x4000, 1);
    (0..200).for_each(|_| run.step());
    assert_eq!(run.reader.reads[8..], [(0x8002, 2)]);
    run.finish();
    assert_eq!(run.reader.reads[10], (0x4000, 64));
}

//! Captures with holes, out of order and damaged: a verdict or a refusal in words.

use ferroce_proto::wire::Packet;
use ferroce_sim::pcap;
use ferroce_sim::replay::{self, Options, Role};

use super::{capture, captures, model, run};

/// Whatever a capture lacks, there is a verdict or a refusal, and no panic.
#[test]
fn captures_with_holes_have_a_result() {
    let seed = std::env::var("FERROCE_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("FERROCE_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for path in captures() {
        let whole = pcap::read(&path).unwrap();
        for round in 0..8 {
            let mut recorded = whole.clone();
            match round {
                // Holes.
                0..4 => recorded.packets.retain(|_| rng.u32(..20) != 0),
                // The beginning or the end is missing.
                4 => drop(recorded.packets.drain(..rng.usize(..whole.packets.len()))),
                5 => recorded.packets.truncate(rng.usize(..whole.packets.len())),
                // Neighbours change places.
                6 => {
                    for at in 1..recorded.packets.len() {
                        if rng.u32(..10) == 0 {
                            recorded.packets.swap(at - 1, at);
                        }
                    }
                }
                // Packets come twice.
                _ => {
                    let twice = |p: pcap::Packet| {
                        let count = 1 + usize::from(rng.u32(..10) == 0);
                        std::iter::repeat_n(p, count)
                    };
                    recorded.packets = recorded.packets.into_iter().flat_map(twice).collect();
                }
            }
            for role in [Role::Responder, Role::Requester] {
                let options = Options {
                    role,
                    ..Options::default()
                };
                let name = path.file_stem().unwrap().to_string_lossy();
                match replay::run(&recorded, &options, model) {
                    Ok(outcome) => println!(
                        "{name} {round} {role:?}: {}",
                        outcome
                            .differences
                            .first()
                            .map_or("same".to_owned(), ToString::to_string)
                    ),
                    Err(refusal) => {
                        let text = refusal.to_string();
                        assert!(!text.contains('\n'), "{text}");
                        println!("{name} {round} {role:?}: refused, {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn damaged_captures_are_refused_in_words() {
    let good = capture("rc_send_multi_3000");
    let is_roce = |p: &pcap::Packet| Packet::parse(&p.data).is_ok();
    let at = good.packets.iter().position(is_roce).unwrap();
    let refuse = |damage: fn(&mut pcap::Packet)| {
        let mut capture = good.clone();
        damage(&mut capture.packets[at]);
        run(&capture).unwrap_err().to_string()
    };
    let refusal = refuse(|p| p.data[100] ^= 1);
    assert!(refusal.contains("is damaged: its ICRC is"), "{refusal}");
    let refusal = refuse(|p| p.data.truncate(96));
    assert!(refusal.contains("96 of its 1082 bytes"), "{refusal}");
    assert!(
        refusal.starts_with(&format!("packet {} ", at + 1)),
        "{refusal}"
    );

    let mut headless = good.clone();
    headless.packets.truncate(at);
    let refusal = run(&headless).unwrap_err().to_string();
    assert!(refusal.contains("no request among"), "{refusal}");

    let mut late = good.clone();
    late.packets.drain(..=at);
    let refusal = run(&late).unwrap_err().to_string();
    assert!(refusal.contains("starts within a message"), "{refusal}");
}

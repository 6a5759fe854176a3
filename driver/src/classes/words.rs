//! Traffic classes as text.

use std::str::FromStr;

use ferroce_proto::abi::classes::PRIORITIES;

use super::{ClassError, Classes, Share, Trust, Turn};

/// What may stand in front of `=`.
const WORDS: &str = "trust, dscp2prio, prio_tc, turn, pfc, xoff, xon, lossy, watchdog, storm, cable, reaction or frame, then = and a value";

/// Values with commas between them, one each.
fn list<const N: usize, T: Copy>(text: &str, value: impl Fn(&str) -> Option<T>) -> Option<[T; N]> {
    let all: Option<Vec<T>> = text.split(',').map(value).collect();
    all?.try_into().ok()
}

fn share(text: &str) -> Option<Share> {
    let (units, packets) = text.split_once('/')?;
    Some(Share {
        units: units.parse().ok()?,
        packets: packets.parse().ok()?,
    })
}

impl FromStr for Classes {
    type Err = ClassError;

    fn from_str(text: &str) -> Result<Self, ClassError> {
        let mut classes = Self::default();
        for word in text.split_whitespace() {
            let wrong = |expected| ClassError::Word {
                word: word.into(),
                expected,
            };
            let (name, value) = word.split_once('=').ok_or_else(|| wrong(WORDS))?;
            match name {
                "trust" => {
                    let expected = "trust=dscp, trust=pcp or trust=pcp:PRIORITY";
                    let (by, untagged) = value.split_once(':').unwrap_or((value, "0"));
                    classes.trust = match (by, untagged.parse()) {
                        ("dscp", _) if by == value => Trust::Dscp,
                        ("pcp", Ok(untagged)) => Trust::Pcp { untagged },
                        _ => return Err(wrong(expected)),
                    };
                }
                "dscp2prio" => {
                    let expected = "dscp2prio=DSCP:PRIORITY,…, DSCPs from 0 to 63";
                    for pair in value.split(',') {
                        let (dscp, of) = pair.split_once(':').ok_or_else(|| wrong(expected))?;
                        let place = dscp.parse().ok();
                        let place =
                            place.and_then(|dscp: usize| classes.dscp_priority.get_mut(dscp));
                        *place.ok_or_else(|| wrong(expected))? =
                            of.parse().map_err(|_| wrong(expected))?;
                    }
                }
                "prio_tc" => {
                    let of = list(value, |class| class.parse().ok());
                    classes.class = of.ok_or_else(|| wrong("a class of each of 8 priorities"))?;
                }
                "turn" => {
                    let turns = list(value, |turn| match turn {
                        "strict" => Some(Turn::Strict),
                        weight => weight.parse().ok().map(Turn::Weight),
                    });
                    let expected = "a weight or `strict` of each of 4 classes";
                    classes.turn = turns.ok_or_else(|| wrong(expected))?;
                }
                "pfc" => {
                    let bits = list::<PRIORITIES, bool>(value, |bit| match bit {
                        "0" => Some(false),
                        "1" => Some(true),
                        _ => None,
                    });
                    let bits = bits.ok_or_else(|| wrong("0 or 1 of each of 8 priorities"))?;
                    let mask = (0..).zip(bits).map(|(at, bit)| u8::from(bit) << at).sum();
                    (classes.pause_obeyed, classes.pause_sent) = (mask, mask);
                }
                "xoff" | "xon" | "lossy" => {
                    let expected = "UNITS/PACKETS, each below 65536";
                    let of = share(value).ok_or_else(|| wrong(expected))?;
                    *match name {
                        "xoff" => &mut classes.xoff,
                        "xon" => &mut classes.xon,
                        _ => &mut classes.lossy,
                    } = of;
                }
                "watchdog" | "storm" => {
                    let ms = value.parse().map_err(|_| wrong("milliseconds"))?;
                    *match name {
                        "watchdog" => &mut classes.watchdog_ms,
                        _ => &mut classes.storm_ms,
                    } = ms;
                }
                "cable" => classes.cable_m = value.parse().map_err(|_| wrong("metres"))?,
                "reaction" => classes.reaction = value.parse().map_err(|_| wrong("quanta"))?,
                "frame" => {
                    let bytes = value.parse().map_err(|_| wrong("bytes of a frame"))?;
                    classes.host_frame = Some(bytes);
                }
                _ => return Err(wrong(WORDS)),
            }
        }
        classes.check(0)?;
        Ok(classes)
    }
}

//! Recorded answers against those of the device under test.

use std::fmt;

use ferroce_proto::wire::{NakCode, Operation, Packet, Psn, Syndrome};

use super::fields::{self, FieldDifference, NAK_CODE};
use super::input::Frame;
use super::{Counts, Difference};
use crate::scoreboard::icrc::Roce;

/// A packet of the device under test.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) packet: Packet,
}

impl Sent {
    /// Checks a frame of the device by two implementations of the ICRC.
    pub(super) fn check(bytes: Vec<u8>) -> Result<Self, Difference> {
        let wrong = |what: &str, expected: String, found: String| Difference {
            packet: None,
            what: what.to_owned(),
            expected,
            found,
        };
        if let Some(roce) = Roce::locate(&bytes) {
            let (expected, carried) = (roce.expected(&bytes), roce.carried(&bytes));
            if expected != carried {
                let text = |icrc: u32| format!("{icrc:#010x}");
                return Err(wrong(
                    "ICRC of a packet sent",
                    text(expected),
                    text(carried),
                ));
            }
        }
        match Packet::parse(&bytes) {
            Ok(packet) => Ok(Self { bytes, packet }),
            Err(error) => Err(wrong(
                "packet sent",
                "a RoCEv2 packet".to_owned(),
                format!("{error}: {bytes:02x?}"),
            )),
        }
    }
}

/// How a recorded packet and what the device under test sent stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The same, but for what may differ.
    Same,
    /// The device acknowledged it with a later packet.
    Coalesced,
    /// The device sent an ACK of its own, which the recorded one coalesced.
    Added,
    /// A recorded packet that the specification does not ask for, and the device did not send.
    Omitted,
    /// Fields differ that must not.
    Different,
    /// The device did not send it.
    Missing,
    /// Only the device sent it.
    Unexpected,
}

/// A packet as compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Its number in the capture, if it was recorded.
    pub number: Option<usize>,
    /// What it is.
    pub text: String,
    /// The verdict.
    pub verdict: Match,
    /// All fields that differ, permitted or not.
    pub differences: Vec<FieldDifference>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "packet {number}: ")?,
            None => f.write_str("not recorded: ")?,
        }
        write!(f, "{}: ", self.text)?;
        f.write_str(match self.verdict {
            Match::Same => "same",
            Match::Coalesced => "acknowledged by a later packet",
            Match::Added => "an ACK more",
            Match::Omitted => "left out",
            Match::Different => "DIFFERENT",
            Match::Missing => "MISSING",
            Match::Unexpected => "UNEXPECTED",
        })?;
        for (index, d) in self.differences.iter().enumerate() {
            let between = if index == 0 { " (" } else { ", " };
            write!(f, "{between}{} {} / {}", d.field, d.expected, d.found)?;
        }
        f.write_str(if self.differences.is_empty() { "" } else { ")" })
    }
}

/// What is needed to judge answers, beside the packets.
pub(super) struct Rules<'a> {
    /// MSN due in an answer up to a PSN; `None` if no executed request has it.
    pub(super) msn: &'a dyn Fn(Psn) -> Option<u32>,
    /// The SEND that did not fit its receive buffer.
    pub(super) too_long: Option<Psn>,
}

/// What an answer is for, apart from details.
fn kind(packet: &Packet) -> (Operation, Option<u8>) {
    let class = packet.headers.ext.aeth.map(|aeth| match aeth.syndrome {
        Syndrome::Ack { .. } => 0,
        Syndrome::RnrNak { .. } => 1,
        Syndrome::Nak(NakCode::PsnSequence) => 2,
        Syndrome::Nak(_) => 3,
        Syndrome::Reserved(_) => 4,
    });
    (packet.headers.bth.opcode.operation(), class)
}

fn is_plain_ack(packet: &Packet) -> bool {
    kind(packet) == (Operation::Ack, Some(0))
}

/// The last PSN that an answer acknowledges.
pub(super) fn acknowledged(packet: &Packet) -> Psn {
    let psn = packet.headers.bth.psn;
    match kind(packet) {
        (Operation::Ack, Some(0)) => psn,
        (Operation::Ack, _) => psn.prev(),
        _ => psn,
    }
}

/// Compares two sequences of answers.
pub(super) fn answers(recorded: &[&Frame], sent: &[Sent], rules: &Rules<'_>) -> Vec<Comparison> {
    let mut found = Vec::new();
    let (mut r, mut s) = (0, 0);
    // What the device has acknowledged so far.
    let mut done: Option<Psn> = None;
    loop {
        let (next_r, next_s) = (recorded.get(r).copied(), sent.get(s));
        let covers = |through: Psn, psn: Psn| through.since(psn) >= 0;
        match (next_r, next_s) {
            (None, None) => return found,
            (Some(frame), Some(own)) if pairs(&frame.packet, &own.packet) => {
                found.push(compare(frame, own, rules));
                done = Some(acknowledged(&own.packet));
                (r, s) = (r + 1, s + 1);
            }
            (Some(frame), own)
                if is_plain_ack(&frame.packet)
                    && done
                        .into_iter()
                        .chain(own.map(|own| acknowledged(&own.packet)))
                        .any(|through| covers(through, frame.psn())) =>
            {
                found.push(lone(Some(frame.number), &frame.packet, Match::Coalesced));
                r += 1;
            }
            (Some(frame), _) if is_behind_rnr(recorded, r) => {
                found.push(lone(Some(frame.number), &frame.packet, Match::Omitted));
                r += 1;
            }
            (Some(frame), Some(own))
                if is_plain_ack(&own.packet)
                    && covers(acknowledged(&frame.packet), own.packet.headers.bth.psn) =>
            {
                found.push(added(own, rules));
                done = Some(acknowledged(&own.packet));
                s += 1;
            }
            (Some(frame), Some(own)) => {
                let mut comparison = compare(frame, own, rules);
                comparison.verdict = Match::Different;
                found.push(comparison);
                (r, s) = (r + 1, s + 1);
            }
            (Some(frame), None) => {
                found.push(lone(Some(frame.number), &frame.packet, Match::Missing));
                r += 1;
            }
            (None, Some(own)) => {
                found.push(lone(None, &own.packet, Match::Unexpected));
                s += 1;
            }
        }
    }
}

/// Compares two sequences of requests, packet by packet.
pub(super) fn requests(recorded: &[&Frame], sent: &[Sent]) -> Vec<Comparison> {
    let rules = Rules {
        msn: &|_| None,
        too_long: None,
    };
    let both = recorded.len().min(sent.len());
    let pairs = recorded.iter().zip(sent);
    let missing = recorded[both..].iter();
    let unexpected = sent[both..].iter();
    pairs
        .map(|(frame, own)| compare(frame, own, &rules))
        .chain(missing.map(|frame| lone(Some(frame.number), &frame.packet, Match::Missing)))
        .chain(unexpected.map(|own| lone(None, &own.packet, Match::Unexpected)))
        .collect()
}

/// What the comparisons say of the device: counts, and differences that count.
pub(super) fn judge(comparisons: &[Comparison], counts: &mut Counts) -> Vec<Difference> {
    let mut found = Vec::new();
    for comparison in comparisons {
        let mut differ = |what: &str, expected: &str, actual: &str| {
            found.push(Difference {
                packet: comparison.number,
                what: what.to_owned(),
                expected: expected.to_owned(),
                found: actual.to_owned(),
            });
        };
        match comparison.verdict {
            Match::Same => counts.same += 1,
            Match::Coalesced => counts.coalesced += 1,
            Match::Added => counts.added += 1,
            Match::Omitted => {}
            Match::Missing => differ(&comparison.text, "sent", "nothing"),
            Match::Unexpected => differ("packet sent", "nothing", &comparison.text),
            Match::Different => {
                for d in comparison.differences.iter().filter(|d| !d.is_permitted()) {
                    differ(d.field, &d.expected, &d.found);
                }
            }
        }
    }
    found
}

fn pairs(a: &Packet, b: &Packet) -> bool {
    kind(a) == kind(b) && a.headers.bth.psn == b.headers.bth.psn
}

/// A NAK sequence error of the PSN that was not ready just before.
fn is_behind_rnr(recorded: &[&Frame], at: usize) -> bool {
    let is = |index: usize, class| kind(&recorded[index].packet) == (Operation::Ack, Some(class));
    at > 0 && is(at, 2) && is(at - 1, 1) && recorded[at].psn() == recorded[at - 1].psn()
}

fn compare(frame: &Frame, own: &Sent, rules: &Rules<'_>) -> Comparison {
    let expected = fields::of(&frame.bytes, &frame.packet);
    let found = fields::of(&own.bytes, &own.packet);
    let differences = fields::differences(&expected, &found);
    let is_too_long = rules.too_long == Some(frame.psn());
    let is_invalid = |packet: &Packet| {
        let syndrome = packet.headers.ext.aeth.map(|aeth| aeth.syndrome);
        syndrome == Some(Syndrome::Nak(NakCode::InvalidRequest))
    };
    let permitted = |d: &FieldDifference| {
        d.is_permitted() || (d.field == NAK_CODE && is_too_long && is_invalid(&own.packet))
    };
    let verdict = if differences.iter().all(permitted) {
        Match::Same
    } else {
        Match::Different
    };
    Comparison {
        number: Some(frame.number),
        text: text(&frame.packet),
        verdict,
        differences,
    }
}

/// An ACK that the recorded responder did not send must at least count right.
fn added(own: &Sent, rules: &Rules<'_>) -> Comparison {
    let mut comparison = lone(None, &own.packet, Match::Added);
    let msn = own.packet.headers.ext.aeth.map(|aeth| aeth.msn);
    let due = (rules.msn)(own.packet.headers.bth.psn);
    if msn != due {
        let text = |msn: Option<u32>| msn.map_or("none".to_owned(), |msn| format!("{msn:#x}"));
        comparison.verdict = Match::Different;
        comparison.differences.push(FieldDifference {
            field: "AETH MSN",
            expected: text(due),
            found: text(msn),
        });
    }
    comparison
}

fn lone(number: Option<usize>, packet: &Packet, verdict: Match) -> Comparison {
    Comparison {
        number,
        text: text(packet),
        verdict,
        differences: Vec::new(),
    }
}

fn text(packet: &Packet) -> String {
    let headers = &packet.headers;
    let aeth = headers.ext.aeth.map(|aeth| {
        let syndrome = match aeth.syndrome {
            Syndrome::Ack { .. } => "ACK".to_owned(),
            Syndrome::RnrNak { timer } => format!("RNR NAK timer {timer}"),
            Syndrome::Nak(code) => format!("NAK {code:?}"),
            Syndrome::Reserved(bits) => format!("syndrome {bits:#04x}"),
        };
        format!(" {syndrome} MSN {}", aeth.msn)
    });
    let aeth = aeth.unwrap_or_default();
    let bth = &headers.bth;
    format!("{:?} PSN {}{aeth}", bth.opcode, bth.psn)
}

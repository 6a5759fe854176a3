//! Recorded answers against those of the device under test.

use std::collections::HashSet;
use std::fmt;

use ferroce_proto::wire::{Class, NakCode, Operation, Packet, Psn, Syndrome};

use super::fields::{self, ACK_REQ, FORM, FieldDifference, MSN, NAK_CODE};
use super::input::Frame;
use super::sent::Sent;
use super::{Counts, Difference};

/// How a recorded packet and what the device under test sent stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The same, but for what may differ.
    Same,
    /// The device acknowledged it with a later packet.
    Coalesced,
    /// The device sent an ACK of its own, which the recorded one coalesced.
    Added,
    /// A packet that the device sent once more, or that the capture lost; it is right.
    Repeated,
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
    pub result: Match,
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
        f.write_str(match self.result {
            Match::Same => "same",
            Match::Coalesced => "acknowledged by a later packet",
            Match::Added => "an ACK more",
            Match::Repeated => "sent once more, or not captured",
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
    /// PSNs that were requested more than once.
    pub(super) repeated: &'a HashSet<Psn>,
    /// PSNs that a READ goes on from which started before them.
    pub(super) resumed: &'a HashSet<Psn>,
    /// Requests are repeated or missing.
    pub(super) lossy: bool,
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
    // The form of a READ response does not count here.
    let operation = packet.headers.bth.opcode.operation();
    let class = class.filter(|_| operation != Operation::ReadResponse);
    (operation, class)
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

/// Packets looked ahead for the like of one that is missing on the other side.
const LOOK_AHEAD: usize = 128;

/// Compares two sequences of answers.
pub(super) fn answers(recorded: &[&Frame], sent: &[Sent], rules: &Rules<'_>) -> Vec<Comparison> {
    let mut found = Vec::new();
    let (mut r, mut s) = (0, 0);
    // What the device has acknowledged so far.
    let mut done: Option<Psn> = None;
    let keys: HashSet<_> = sent.iter().map(|own| key(&own.packet)).collect();
    // Next of either side up to which the other has nothing alike.
    let (mut skip_r, mut skip_s) = (0, 0);
    loop {
        let (next_r, next_s) = (recorded.get(r).copied(), sent.get(s));
        let covers = |through: Psn, psn: Psn| through.since(psn) >= 0;
        let alike = match (next_r, next_s) {
            (None, None) => return found,
            (Some(frame), Some(own)) => key(&frame.packet) == key(&own.packet),
            _ => false,
        };
        if !alike && r >= skip_r && s >= skip_s {
            (skip_r, skip_s) = alignment(recorded, sent, r, s).unwrap_or((r, s));
        }
        match (next_r, next_s) {
            (Some(frame), Some(own)) if alike => {
                found.push(compare(frame, own, rules));
                done = Some(acknowledged(&own.packet));
                (r, s) = (r + 1, s + 1);
            }
            (Some(frame), own)
                if s >= skip_s
                    && is_plain_ack(&frame.packet)
                    && done
                        .into_iter()
                        .chain(own.map(|own| acknowledged(&own.packet)))
                        .any(|through| covers(through, frame.psn())) =>
            {
                found.push(lone(Some(frame.number), &frame.packet, Match::Coalesced));
                r += 1;
            }
            (Some(frame), _)
                if s >= skip_s
                    && (follows_rnr(recorded, r)
                        || (rules.lossy && keys.contains(&key(&frame.packet)))) =>
            {
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
            (_, Some(own)) if rules.lossy && (s < skip_s || r >= skip_r) && is_due(own, rules) => {
                found.push(again(recorded, own, rules));
                done = Some(acknowledged(&own.packet));
                s += 1;
            }
            (Some(frame), Some(own)) if r >= skip_r && s >= skip_s => {
                let mut comparison = compare(frame, own, rules);
                comparison.result = Match::Different;
                found.push(comparison);
                (r, s) = (r + 1, s + 1);
            }
            (Some(frame), own) if own.is_none() || r < skip_r => {
                found.push(lone(Some(frame.number), &frame.packet, Match::Missing));
                r += 1;
            }
            (_, Some(own)) => {
                found.push(lone(None, &own.packet, Match::Unexpected));
                s += 1;
            }
            (_, None) => unreachable!("a recorded packet is left"),
        }
    }
}

/// What tells answers apart, but for details.
fn key(packet: &Packet) -> (Operation, Option<u8>, Psn) {
    let (operation, class) = kind(packet);
    (operation, class, packet.headers.bth.psn)
}

/// The nearest two packets from `recorded[r]` and `sent[s]` on that are alike.
fn alignment(recorded: &[&Frame], sent: &[Sent], r: usize, s: usize) -> Option<(usize, usize)> {
    let distances = (1..=LOOK_AHEAD).flat_map(|d| (0..=d).map(move |i| (r + d - i, s + i)));
    distances
        .filter(|&(r, s)| r < recorded.len() && s < sent.len())
        .find(|&(r, s)| key(&recorded[r].packet) == key(&sent[s].packet))
}

/// Whether an answer that was not recorded is one that the device may give.
fn is_due(own: &Sent, rules: &Rules<'_>) -> bool {
    let psn = own.packet.headers.bth.psn;
    match kind(&own.packet) {
        (Operation::Ack, Some(0)) => (rules.msn)(psn).is_some(),
        // It asks for what is behind the last that was executed.
        (Operation::Ack, Some(2)) => (rules.msn)(psn.prev()).is_some(),
        (Operation::ReadResponse | Operation::AtomicAck, _) => (rules.msn)(psn).is_some(),
        _ => false,
    }
}

/// An answer that was not recorded there; if its like was recorded elsewhere it must be the same.
fn again(recorded: &[&Frame], own: &Sent, rules: &Rules<'_>) -> Comparison {
    let like = recorded
        .iter()
        .find(|frame| key(&frame.packet) == key(&own.packet));
    let mut comparison = match (like, kind(&own.packet)) {
        (Some(frame), (Operation::ReadResponse | Operation::AtomicAck, _)) => {
            compare(frame, own, rules)
        }
        (_, (Operation::Ack, Some(0))) => added(own, rules),
        _ => lone(None, &own.packet, Match::Repeated),
    };
    comparison.number = None;
    if comparison.result != Match::Different {
        comparison.result = Match::Repeated;
    }
    comparison
}

/// Compares two sequences of requests, packet by packet.
pub(super) fn requests(recorded: &[&Frame], sent: &[Sent]) -> Vec<Comparison> {
    let both = recorded.len().min(sent.len());
    let pairs = recorded.iter().zip(sent);
    let missing = recorded[both..].iter();
    let unexpected = sent[both..].iter();
    pairs
        .map(|(frame, own)| request(frame, own))
        .chain(missing.map(|frame| lone(Some(frame.number), &frame.packet, Match::Missing)))
        .chain(unexpected.map(|own| lone(None, &own.packet, Match::Unexpected)))
        .collect()
}

/// Compares two requests.
pub(super) fn request(frame: &Frame, own: &Sent) -> Comparison {
    let bth = &own.packet.headers.bth;
    let must_ask = bth.opcode.is_end() && bth.opcode.class() == Class::Rc;
    compare_but(frame, own, |d| {
        d.field == ACK_REQ && (bth.ack_req || !must_ask)
    })
}

/// What the comparisons say of the device: counts, and differences that count.
pub(super) fn reduce(comparisons: &[Comparison], counts: &mut Counts) -> Vec<Difference> {
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
        match comparison.result {
            Match::Same => counts.same += 1,
            Match::Coalesced => counts.coalesced += 1,
            Match::Added => counts.added += 1,
            Match::Repeated => counts.repeated += 1,
            Match::Omitted => {}
            Match::Missing => differ(&comparison.text, "sent", "nothing"),
            Match::Unexpected => differ("packet sent", "nothing", &comparison.text),
            Match::Different => {
                for d in comparison.differences.iter().filter(|d| !d.permitted) {
                    differ(d.field, &d.expected, &d.found);
                }
            }
        }
    }
    found
}

/// A NAK sequence error of the PSN that was not ready just before.
fn follows_rnr(recorded: &[&Frame], at: usize) -> bool {
    let is = |index: usize, class| kind(&recorded[index].packet) == (Operation::Ack, Some(class));
    at > 0 && is(at, 2) && is(at - 1, 1) && recorded[at].psn() == recorded[at - 1].psn()
}

fn compare(frame: &Frame, own: &Sent, rules: &Rules<'_>) -> Comparison {
    let psn = frame.psn();
    let is_too_long = rules.too_long == Some(psn);
    let invalid = Syndrome::Nak(NakCode::InvalidRequest);
    let aeth = own.packet.headers.ext.aeth;
    let is_invalid = aeth.is_some_and(|aeth| aeth.syndrome == invalid);
    let operation = frame.opcode().operation();
    let is_repeated = rules.repeated.contains(&psn) && operation != Operation::Ack;
    let is_read = operation == Operation::ReadResponse;
    let is_resumed = is_repeated && is_read && rules.resumed.contains(&psn);
    compare_but(frame, own, |d| {
        (d.field == NAK_CODE && is_too_long && is_invalid)
            || (d.field == MSN && is_repeated)
            || (is_resumed && FORM.contains(&d.field))
    })
}

/// Compares two packets; of the fields that differ, `may` says whether they may.
fn compare_but(frame: &Frame, own: &Sent, may: impl Fn(&FieldDifference) -> bool) -> Comparison {
    let expected = fields::of(&frame.bytes, &frame.packet);
    let found = fields::of(&own.bytes, &own.packet);
    let mut differences = fields::differences(&expected, &found);
    for difference in &mut differences {
        difference.permitted |= may(difference);
    }
    let result = if differences.iter().all(|d| d.permitted) {
        Match::Same
    } else {
        Match::Different
    };
    Comparison {
        number: Some(frame.number),
        text: text(&frame.packet),
        result,
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
        comparison.result = Match::Different;
        comparison.differences.push(FieldDifference {
            field: MSN,
            expected: text(due),
            found: text(msn),
            permitted: false,
        });
    }
    comparison
}

/// A packet that has no like.
pub(super) fn lone(number: Option<usize>, packet: &Packet, result: Match) -> Comparison {
    Comparison {
        number,
        text: text(packet),
        result,
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

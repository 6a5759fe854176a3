//! Records of runs, and how they differ.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use super::{Packet, Scoreboard};

/// How packet sequences are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packets {
    /// Packet by packet.
    Exactly,
    /// Packet by packet but for plain ACKs, of which the last one must agree: responders are free in how
    /// many they send.
    #[default]
    WithoutAcks,
    /// Not at all: for runs in which loss falls on different packets.
    Not,
}

/// What a run left behind. `C` is what describes a completion.
#[derive(Clone, Debug)]
pub struct Record<C> {
    memory: BTreeMap<String, Vec<u8>>,
    completions: BTreeMap<String, Vec<C>>,
    packets: BTreeMap<(String, u32), Vec<Packet>>,
}

impl<C> Default for Record<C> {
    fn default() -> Self {
        Self {
            memory: BTreeMap::new(),
            completions: BTreeMap::new(),
            packets: BTreeMap::new(),
        }
    }
}

/// Something that two records do not have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A region of memory.
    Memory {
        /// Its name.
        region: String,
        /// First byte that differs; the shorter length if one is the start of the other.
        offset: usize,
        /// What is expected from there on, 16 bytes at most.
        expected: Vec<u8>,
        /// What there is.
        actual: Vec<u8>,
        /// Bytes that differ, those beyond the shorter one among them.
        count: usize,
    },
    /// An entry of a sequence: completions of a queue, or packets to a queue pair.
    Entry {
        /// Name of the sequence.
        sequence: String,
        /// Its place in it, from 0.
        index: usize,
        /// What is expected; `None` if nothing.
        expected: Option<String>,
        /// What there is; `None` if nothing.
        actual: Option<String>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory {
                region,
                offset,
                expected,
                actual,
                count,
            } => write!(
                f,
                "memory `{region}` differs in {count} bytes, first at {offset:#x}: \
                 expected {expected:02x?}, found {actual:02x?}"
            ),
            Self::Entry {
                sequence,
                index,
                expected,
                actual,
            } => {
                let or_nothing = |entry: &Option<String>| entry.clone().unwrap_or("nothing".into());
                let (expected, actual) = (or_nothing(expected), or_nothing(actual));
                write!(
                    f,
                    "{sequence}, number {index}:\n  expected {expected}\n  found    {actual}"
                )
            }
        }
    }
}

impl<C: Clone + PartialEq + Debug> Record<C> {
    /// An empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what a region of memory holds.
    pub fn memory(&mut self, region: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.memory.insert(region.into(), bytes.into());
    }

    /// Notes the next completion of `queue`. Completions whose order is free belong into queues of their
    /// own: those of different queue pairs, and sends and receives.
    pub fn completion(&mut self, queue: impl Into<String>, completion: C) {
        self.completions
            .entry(queue.into())
            .or_default()
            .push(completion);
    }

    /// Notes the packets of a scoreboard.
    pub fn packets(&mut self, scoreboard: &Scoreboard) {
        for (key, packets) in scoreboard.packets() {
            self.packets.entry(key.clone()).or_default().extend(packets);
        }
    }

    /// In what `actual` differs from this record: at most one difference for each region and sequence.
    #[must_use]
    pub fn differences(&self, actual: &Self, packets: Packets) -> Vec<Difference> {
        let mut found = Vec::new();
        let none = Vec::new();
        for region in keys(&self.memory, &actual.memory) {
            let of = |record: &Self| record.memory.get(region).cloned().unwrap_or_default();
            found.extend(memory(region, &of(self), &of(actual)));
        }
        for queue in keys(&self.completions, &actual.completions) {
            let of = |record| Self::completions_of(record, queue, &none);
            found.extend(entries(
                &format!("completions of `{queue}`"),
                of(self),
                of(actual),
                |c| format!("{c:?}"),
            ));
        }
        if packets != Packets::Not {
            for key in keys(&self.packets, &actual.packets) {
                let of = |record: &Self| record.packets.get(key).cloned().unwrap_or_default();
                found.extend(sequence(key, &of(self), &of(actual), packets));
            }
        }
        found
    }

    fn completions_of<'a>(record: &'a Self, queue: &str, none: &'a Vec<C>) -> &'a [C] {
        record.completions.get(queue).unwrap_or(none)
    }
}

/// Keys of either map.
fn keys<'a, K: Ord, V>(a: &'a BTreeMap<K, V>, b: &'a BTreeMap<K, V>) -> Vec<&'a K> {
    let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn memory(region: &str, expected: &[u8], actual: &[u8]) -> Option<Difference> {
    let differing = expected.iter().zip(actual).filter(|(e, a)| e != a).count();
    let count = differing + expected.len().abs_diff(actual.len());
    let common = expected.len().min(actual.len());
    let offset = expected
        .iter()
        .zip(actual)
        .position(|(e, a)| e != a)
        .unwrap_or(common);
    let from = |bytes: &[u8]| bytes[offset..bytes.len().min(offset + 16)].to_vec();
    (count > 0).then(|| Difference::Memory {
        region: region.to_owned(),
        offset,
        expected: from(expected),
        actual: from(actual),
        count,
    })
}

/// First place at which two sequences differ.
fn entries<T: PartialEq>(
    name: &str,
    expected: &[T],
    actual: &[T],
    text: impl Fn(&T) -> String,
) -> Option<Difference> {
    let longest = expected.len().max(actual.len());
    let index = (0..longest).find(|index| expected.get(*index) != actual.get(*index))?;
    Some(Difference::Entry {
        sequence: name.to_owned(),
        index,
        expected: expected.get(index).map(&text),
        actual: actual.get(index).map(&text),
    })
}

fn sequence(
    (node, qp): &(String, u32),
    expected: &[Packet],
    actual: &[Packet],
    how: Packets,
) -> Option<Difference> {
    let name = format!("packets from `{node}` to QP {qp:#x}");
    if how == Packets::Exactly {
        return entries(&name, expected, actual, Packet::to_string);
    }
    let split = |packets: &[Packet]| -> (Vec<Packet>, Vec<Packet>) {
        packets.iter().partition(|packet| packet.is_plain_ack())
    };
    let ((expected_acks, expected), (actual_acks, actual)) = (split(expected), split(actual));
    let last = |acks: &[Packet]| acks.last().copied().into_iter().collect::<Vec<_>>();
    entries(&name, &expected, &actual, Packet::to_string).or_else(|| {
        let name = format!("last ACK from `{node}` to QP {qp:#x}");
        entries(
            &name,
            &last(&expected_acks),
            &last(&actual_acks),
            Packet::to_string,
        )
    })
}

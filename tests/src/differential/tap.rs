//! The packets of a run, by connection and direction, and the rules that each run keeps by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use ferroce_proto::wire::{
    AtomicEthRepr, Headers, Mtu, NakCode, Opcode, Packet, Psn, RethRepr, Syndrome, psn,
};
use ferroce_sim::testhost::Side;
use ferroce_sim::world::{Direction, Event, Observer};

use super::bench::{Link, SIDES, other};

/// Sees all frames.
#[derive(Default)]
pub(super) struct Tap {
    /// What the cards sent, in order.
    sent: Vec<Sent>,
    /// What passed each card, received and transmitted.
    pub(super) passed: [[Passed; 2]; 2],
}

/// Frames at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

enum Sent {
    Packet(Side, Box<Headers>, Vec<u8>),
    /// A connection begins afresh with these PSNs.
    Cut(usize, [u32; 2], Mtu),
}

impl Tap {
    /// A connection begins afresh.
    pub(super) fn cut(&mut self, connection: usize, psn: [u32; 2], mtu: Mtu) {
        self.sent.push(Sent::Cut(connection, psn, mtu));
    }

    /// Frames that passed in all.
    pub(super) fn frames(&self) -> u64 {
        self.passed.iter().flatten().map(|p| p.frames).sum()
    }

    /// What was sent, and how it breaks the rules.
    pub(super) fn flows(&self, links: &[Link]) -> (Flows, Vec<String>) {
        let mut sorter = Sorter {
            links,
            incarnations: vec![0; links.len()],
            flows: Flows::new(),
            broken: Vec::new(),
        };
        for sent in &self.sent {
            match sent {
                Sent::Cut(connection, psn, mtu) => sorter.cut(*connection, *psn, *mtu),
                Sent::Packet(from, headers, payload) => sorter.packet(*from, headers, payload),
            }
        }
        sorter.check_responses();
        (sorter.flows, sorter.broken)
    }
}

impl Observer for Tap {
    fn frame(&mut self, event: &Event<'_>) {
        let side = if event.name == "A" { Side::A } else { Side::B };
        let transmitted = event.direction == Direction::Transmit;
        let passed = &mut self.passed[side as usize][usize::from(transmitted)];
        passed.frames += 1;
        passed.bytes += event.frame.len() as u64;
        // What is no packet is the scoreboard's to complain about.
        if transmitted && let Ok(Packet { headers, payload }) = Packet::parse(event.frame) {
            let payload = event.frame[payload].to_vec();
            self.sent
                .push(Sent::Packet(side, Box::new(headers), payload));
        }
    }
}

/// A packet at a PSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Headers, without the acknowledgement request: that depends on where transmission resumed.
    pub headers: Headers,
    /// Payload.
    pub payload: Vec<u8>,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Headers { bth, ext, .. } = &self.headers;
        write!(f, "{:?} {:?}", bth.opcode, bth.psn)?;
        if bth.solicited {
            f.write_str(" solicited")?;
        }
        if let Some(RethRepr { va, rkey, dma_len }) = ext.reth {
            write!(f, ", {dma_len} bytes at {va:#x} key {rkey:#x}")?;
        }
        if let Some(AtomicEthRepr { va, rkey, .. }) = ext.atomic {
            write!(f, ", at {va:#x} key {rkey:#x}")?;
        }
        if let Some(imm) = ext.imm {
            write!(f, ", imm {imm:#x}")?;
        }
        write!(f, ", payload {}", self.payload.len())
    }
}

impl Request {
    /// In what two packets at the same PSN differ, in words; `None` stands for one that was not sent.
    pub(super) fn difference(expected: Option<&Self>, actual: Option<&Self>) -> String {
        let text = |request: Option<&Self>| request.map_or("nothing".into(), ToString::to_string);
        let (e_text, a_text) = (text(expected), text(actual));
        let (Some(e), Some(a)) = (expected, actual) else {
            return format!("\n  expected {e_text}\n  found    {a_text}");
        };
        if e_text != a_text {
            return format!("\n  expected {e_text}\n  found    {a_text}");
        }
        if e.headers != a.headers {
            return format!(
                " {e_text}:\n  expected {:?}\n  found    {:?}",
                e.headers, a.headers
            );
        }
        let at = e.payload.iter().zip(&a.payload).position(|(e, a)| e != a);
        let at = at.unwrap_or_default();
        let part = |request: &Self| {
            request.payload[at..]
                .iter()
                .copied()
                .take(16)
                .collect::<Vec<_>>()
        };
        format!(
            " {e_text}, from byte {at}:\n  expected {:02x?}\n  found    {:02x?}",
            part(e),
            part(a)
        )
    }
}

/// What one side of a connection sent between two resets.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// First PSN.
    pub first: u32,
    /// Requests by PSN, counted from the first.
    pub requests: BTreeMap<u32, Request>,
    /// Their order, retransmissions too.
    pub order: Vec<u32>,
    /// ACKs and NAKs to the other side, in order.
    pub responses: Vec<Headers>,
    /// READ and atomic responses to the other side, in order.
    pub data: Vec<Request>,
    /// The PSN, counted from the first, behind the last request.
    next: u32,
    mtu: Option<Mtu>,
}

/// The flows of a run by connection, number of the incarnation, and sender.
pub type Flows = BTreeMap<(usize, u32, usize), Flow>;

fn syndrome(headers: &Headers) -> Option<Syndrome> {
    headers.ext.aeth.map(|aeth| aeth.syndrome)
}

fn is_ack(headers: &Headers) -> bool {
    matches!(syndrome(headers), Some(Syndrome::Ack { .. }))
}

impl Flow {
    /// The highest PSN that was acknowledged, of a peer that began with `first`. How many ACKs there are depends on
    /// timing, and on whether the response to a READ or atomic says the same.
    #[must_use]
    pub fn last_ack(&self, first: u32) -> Option<Psn> {
        let acks = self.responses.iter().filter(|headers| is_ack(headers));
        let data = self.data.iter().map(|data| &data.headers);
        let psns = acks.chain(data).map(|headers| headers.bth.psn);
        psns.max_by_key(|psn| psn.since(Psn::new(first)))
    }

    /// What was answered to READs and atomics: by PSN the payload, or the original value.
    #[must_use]
    pub fn answers(&self) -> BTreeMap<u32, (Vec<u8>, Option<u64>)> {
        let answers = self.data.iter().map(|Request { headers, payload }| {
            let original = headers.ext.atomic_ack.map(|ack| ack.original);
            (headers.bth.psn.value(), (payload.clone(), original))
        });
        answers.collect()
    }

    /// PSNs that a request takes.
    fn span(&self, headers: &Headers) -> u32 {
        match (headers.bth.opcode, headers.ext.reth, self.mtu) {
            (Opcode::RcReadRequest, Some(reth), Some(mtu)) => mtu.packets(reth.dma_len),
            _ => 1,
        }
    }

    /// The READ under way at `psn`, counted from the first, as its first packet asked for it, is the one that goes on
    /// there.
    fn is_rest(&self, psn: u32, headers: &Headers) -> bool {
        let before = self.requests.range(..psn).next_back();
        let Some((start, before)) = before else {
            return false;
        };
        let (Some(whole), Some(rest), Some(mtu)) =
            (before.headers.ext.reth, headers.ext.reth, self.mtu)
        else {
            return false;
        };
        let done = (psn - start) << mtu.log2();
        headers.bth.opcode == Opcode::RcReadRequest
            && psn < start + self.span(&before.headers)
            && rest.rkey == whole.rkey
            && rest.va == whole.va.wrapping_add(done.into())
            && Some(rest.dma_len) == whole.dma_len.checked_sub(done)
    }

    /// The NAKs.
    #[must_use]
    pub fn naks(&self) -> Vec<&Headers> {
        let naks = self.responses.iter().filter(|headers| !is_ack(headers));
        naks.collect()
    }

    /// The NAKs that end a connection.
    #[must_use]
    pub fn fatal_naks(&self) -> Vec<&Headers> {
        let is_fatal = |headers: &&Headers| matches!(syndrome(headers), Some(Syndrome::Nak(code)) if code != NakCode::PsnSequence);
        self.responses.iter().filter(is_fatal).collect()
    }

    /// A READ or atomic takes this PSN: its own response acknowledges it.
    pub(super) fn is_answered(&self, psn: Psn) -> bool {
        let at = psn.value().wrapping_sub(self.first) & psn::MASK;
        let request = self.requests.range(..=at).next_back();
        request.is_some_and(|(start, Request { headers, .. })| {
            let opcode = headers.bth.opcode;
            (opcode == Opcode::RcReadRequest || opcode.has_atomic_eth())
                && at < start + self.span(headers)
        })
    }

    /// Messages that end before the PSN `until`, as MSN counts them.
    fn messages(&self, until: Psn) -> u32 {
        let until = until.since(Psn::new(self.first));
        let ends = self
            .requests
            .iter()
            .filter(|(psn, request)| (**psn as i32) < until && request.headers.bth.opcode.is_end());
        ends.count() as u32 & psn::MASK
    }
}

struct Sorter<'a> {
    links: &'a [Link],
    incarnations: Vec<u32>,
    flows: Flows,
    broken: Vec<String>,
}

impl Sorter<'_> {
    fn cut(&mut self, connection: usize, psn: [u32; 2], mtu: Mtu) {
        self.incarnations[connection] += 1;
        for side in SIDES {
            let flow = Flow {
                first: psn[side as usize],
                mtu: Some(mtu),
                ..Flow::default()
            };
            let key = (connection, self.incarnations[connection], side as usize);
            self.flows.insert(key, flow);
        }
    }

    fn packet(&mut self, from: Side, headers: &Headers, payload: &[u8]) {
        let (to, qpn) = (other(from) as usize, headers.bth.dest_qp);
        let Some(connection) = self.links.iter().position(|link| link.qpn[to] == qpn) else {
            let what = format!("{from:?} sent to queue pair {qpn:#x}, which is of no connection");
            return self.broken.push(what);
        };
        let key = (connection, self.incarnations[connection], from as usize);
        let flow = self.flows.entry(key).or_default();
        if headers.bth.opcode == Opcode::RcAck {
            return flow.responses.push(*headers);
        }
        if headers.bth.opcode.is_response() {
            let (headers, payload) = (*headers, payload.to_vec());
            return flow.data.push(Request { headers, payload });
        }
        let psn = headers.bth.psn.value().wrapping_sub(flow.first) & psn::MASK;
        let mut request = Request {
            headers: *headers,
            payload: payload.to_vec(),
        };
        request.headers.bth.ack_req = false;
        flow.order.push(psn);
        if let Some(before) = flow.requests.get(&psn) {
            if *before != request {
                let what = format!(
                    "#{connection} {from:?} sent another packet the second time:{}",
                    Request::difference(Some(before), Some(&request))
                );
                self.broken.push(what);
            }
        } else if !flow.is_rest(psn, headers) {
            if psn != flow.next {
                let what = format!("#{connection} {from:?} skips to {:?}", headers.bth.psn);
                self.broken.push(what);
            }
            flow.next = psn + flow.span(headers);
            flow.requests.insert(psn, request);
        }
    }

    /// The MSN of every response: messages before its PSN, and with an ACK the one that ends there (IB1 9.7.7.1), or more.
    fn check_responses(&mut self) {
        for ((connection, incarnation, from), flow) in &self.flows {
            let Some(requests) = self.flows.get(&(*connection, *incarnation, 1 - from)) else {
                continue;
            };
            // The answer to a duplicate may say how far the responder has got since.
            let all = requests.requests.values();
            let all = all.filter(|request| request.headers.bth.opcode.is_end());
            let all = all.count() as u32;
            for headers in &flow.responses {
                let psn = headers.bth.psn;
                if is_ack(headers) && requests.is_answered(psn) {
                    let side = SIDES[*from];
                    self.broken.push(format!(
                        "#{connection} {side:?} acknowledges a READ or atomic at {psn:?} by an ACK"
                    ));
                }
                let (until, most) = match is_ack(headers) {
                    true => (psn.next(), all),
                    false => (psn, requests.messages(psn)),
                };
                let expected = requests.messages(until);
                check_msn(
                    &mut self.broken,
                    *connection,
                    *from,
                    headers,
                    expected..=most,
                );
            }
            let mut values = BTreeMap::new();
            for Request { headers, payload } in &flow.data {
                let psn = headers.bth.psn;
                let expected = requests.messages(psn.next());
                check_msn(
                    &mut self.broken,
                    *connection,
                    *from,
                    headers,
                    expected..=all,
                );
                let value = (payload, headers.ext.atomic_ack);
                if *values.entry(psn.value()).or_insert(value) != value {
                    self.broken.push(format!(
                        "#{connection} {:?} answers {psn:?} with other data the second time",
                        SIDES[*from]
                    ));
                }
            }
        }
    }
}

/// The MSN of a response is one of `expected`.
fn check_msn(
    broken: &mut Vec<String>,
    connection: usize,
    from: usize,
    headers: &Headers,
    expected: RangeInclusive<u32>,
) {
    let Some(aeth) = headers.ext.aeth else {
        return;
    };
    if !expected.contains(&aeth.msn) {
        let (psn, side) = (headers.bth.psn, SIDES[from]);
        broken.push(format!(
            "#{connection} {side:?} answers {:?} at {psn:?} with MSN {}; {} is right",
            aeth.syndrome,
            aeth.msn,
            expected.start()
        ));
    }
}

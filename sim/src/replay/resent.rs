//! Requests where packets were lost: each packet of the device against the recorded one of its PSN.

use std::borrow::Cow;

use ferroce_proto::wire::{Operation, Packet, RethRepr};

use super::compare::{self, Comparison, Match};
use super::input::Frame;
use super::messages::{Line, Message, Plan};
use super::sent::Sent;

/// Compares what the device sent with the messages of `plan`, of which `posted` were posted.
pub(super) fn requests(plan: &Plan<'_>, posted: usize, sent: &[Sent]) -> Vec<Comparison> {
    let mut found = Vec::new();
    let mut line = Line::new(plan.origin);
    let first = plan.messages.first().map_or(0, |m| m.first);
    let mut next = first;
    for own in sent {
        let place = line.place(own.packet.headers.bth.psn);
        let Some(message) = plan.messages[..posted]
            .iter()
            .find(|m| (m.first..m.end()).contains(&place))
            .filter(|_| place <= next)
        else {
            found.push(compare::lone(None, &own.packet, Match::Unexpected));
            continue;
        };
        let Some(expected) = expected(plan, message, place) else {
            // It stands in for one that was not captured.
            next = next.max(message.end());
            continue;
        };
        let mut comparison = compare::request(&expected, own);
        if place < next && comparison.result == Match::Same {
            comparison.result = Match::Repeated;
        }
        found.push(comparison);
        let end = if message.is_answered() {
            message.end()
        } else {
            place + 1
        };
        next = next.max(end);
    }
    let end = posted
        .checked_sub(1)
        .map_or(first, |last| plan.messages[last].end());
    for (_, frame) in plan.packets.range(next..end.max(next)) {
        found.push(compare::lone(
            Some(frame.number),
            &frame.packet,
            Match::Missing,
        ));
    }
    found
}

/// The packet that a requester sends at `place`: as captured, or a READ that goes on from there.
fn expected<'a>(plan: &Plan<'a>, message: &Message<'a>, place: i64) -> Option<Cow<'a, Frame>> {
    let first = message.frame?;
    let is_read = first.opcode().operation() == Operation::ReadRequest;
    if place == message.first || !is_read {
        return plan.packets.get(&place).map(|frame| Cow::Borrowed(*frame));
    }
    let mut headers = first.packet.headers;
    headers.bth.psn = plan.psn(place);
    let done = (place - message.first) as u32 * plan.mtu.bytes() as u32;
    headers.ext.reth = headers.ext.reth.map(|reth| RethRepr {
        va: reth.va.wrapping_add(done.into()),
        dma_len: reth.dma_len - done,
        ..reth
    });
    let mut bytes = vec![0; headers.frame_len(0)];
    headers.build(&[], &mut bytes).ok()?;
    let packet = Packet::parse(&bytes).ok()?;
    Some(Cow::Owned(Frame {
        number: first.number,
        interface: first.interface,
        bytes,
        packet,
    }))
}

//! Which messages carry the file.

use std::collections::VecDeque;
use std::ops::Range;

use anyhow::Result;

use crate::Usage;
use crate::demo::Options;
use crate::demo::options::{Op, Transport};

/// Bytes of a message, a multiple of every MTU.
const CHUNK: usize = 64 << 10;
/// Bytes of an atomic.
pub(super) const WORD: usize = 8;
/// Most messages that a queue pair receives: entries of the longest receive queue.
const MAX_RECEIVES: usize = 1 << 15;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::demo) struct Part {
    /// Its number.
    pub(in crate::demo) index: u32,
    /// What of the file it carries; the last atomic carries bytes behind it too.
    pub(in crate::demo) range: Range<usize>,
}

/// The messages of each queue pair.
#[derive(Clone, Debug)]
pub(in crate::demo) struct Plan {
    pub(in crate::demo) queues: Vec<VecDeque<Part>>,
    /// Receives that each queue pair of the receiver needs.
    pub(in crate::demo) receives: u32,
}

impl Plan {
    /// Parts of a file of `len` bytes for each queue pair: whole packets, as evenly as these can be divided, in messages
    /// as long as the operation has them. An empty file is one message of no bytes, or no atomic at all.
    ///
    /// # Errors
    /// [`Usage`]: more messages than a queue pair has receives.
    pub(in crate::demo) fn new(len: usize, options: &Options) -> Result<Self> {
        let (mtu, qps) = (options.mtu.bytes(), options.qps as usize);
        let (unit, step) = match (options.op, options.transport) {
            (Op::Atomic, _) => (WORD, WORD),
            (_, Transport::Ud) => (mtu, mtu),
            _ => (mtu, CHUNK),
        };
        let len = if options.op == Op::Atomic {
            len.next_multiple_of(WORD)
        } else {
            len
        };
        let units = len.div_ceil(unit);
        let edge = |qp: usize| (units * qp / qps * unit).min(len);
        let mut numbers = 0..;
        let mut part = |range| Part {
            index: numbers.next().expect("endless"),
            range,
        };
        let mut queues: Vec<VecDeque<_>> = (0..qps)
            .map(|qp| {
                let (start, end) = (edge(qp), edge(qp + 1));
                let ranges = (start..end).step_by(step);
                ranges.map(|at| part(at..end.min(at + step))).collect()
            })
            .collect();
        if len == 0 && options.op != Op::Atomic {
            queues[0].push_back(part(0..0));
        }
        let most = queues.iter().map(VecDeque::len).max().unwrap_or(0);
        if options.receives() && most > MAX_RECEIVES {
            let text = format!(
                "the file makes {most} messages of {step} bytes a queue pair, which receives {MAX_RECEIVES} at most; \
                 give a smaller file, a larger --mtu or more --qps"
            );
            return Err(Usage(text).into());
        }
        let receives = if options.receives() { most as u32 } else { 0 };
        Ok(Self { queues, receives })
    }
}

#[cfg(test)]
mod tests {
    use ferroce_driver::Mtu;

    use super::*;

    #[test]
    fn parts_cover_the_file_in_order_and_evenly() {
        for (len, qps, mtu, op, transport) in [
            (0, 1, 256, Op::Write, Transport::Rc),
            (1, 4, 256, Op::Read, Transport::Rc),
            (255, 1, 256, Op::Send, Transport::Uc),
            (257, 2, 256, Op::Send, Transport::Ud),
            (4 << 20, 64, 4096, Op::Write, Transport::Rc),
            (1_000_003, 7, 1024, Op::Send, Transport::Ud),
            (CHUNK * 3, 1, 4096, Op::Write, Transport::Uc),
            (8001, 3, 4096, Op::Atomic, Transport::Rc),
        ] {
            let options = Options {
                qps,
                mtu: Mtu::from_bytes(mtu).unwrap(),
                op,
                transport,
                ..Options::default()
            };
            let plan = Plan::new(len, &options).unwrap();
            assert_eq!(plan.queues.len(), qps as usize);
            let unit = if op == Op::Atomic { WORD } else { mtu };
            let mut at = 0;
            for (index, part) in plan.queues.iter().flatten().enumerate() {
                assert_eq!((part.index, part.range.start), (index as u32, at));
                assert!(len == 0 || !part.range.is_empty());
                at = part.range.end;
            }
            assert!(at == len || op == Op::Atomic && at == len.next_multiple_of(WORD));
            let units = |queue: &VecDeque<Part>| {
                let units = queue.iter().map(|part| part.range.len().div_ceil(unit));
                units.sum::<usize>()
            };
            let all = || plan.queues.iter().map(units);
            assert!(
                all().max() <= all().min().map(|least| least + 1),
                "{len} over {qps}"
            );
        }
        let empty = |op| {
            let options = Options {
                qps: 3,
                op,
                ..Options::default()
            };
            let plan = Plan::new(0, &options).unwrap();
            plan.queues.iter().flatten().count()
        };
        assert_eq!((empty(Op::Write), empty(Op::Atomic)), (1, 0));
    }

    #[test]
    fn more_messages_than_receives_are_refused() {
        let options = |qps| Options {
            qps,
            mtu: Mtu::Mtu256,
            op: Op::Send,
            transport: Transport::Ud,
            ..Options::default()
        };
        let len = 256 * (MAX_RECEIVES + 1);
        assert!(Plan::new(len, &options(1)).is_err());
        assert_eq!(Plan::new(len, &options(2)).unwrap().receives, 16385);
    }
}

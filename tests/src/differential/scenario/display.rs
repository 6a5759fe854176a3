//! Scenarios in a form to read.

use std::fmt;

use ferroce_sim::testhost::Side;

use super::{Message, Operation, Piece, Scenario, Step, region};

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; region::COUNT] = [
            "source",
            "other",
            "target",
            "read-only",
            "foreign",
            "result",
            "atomic",
        ];
        write!(f, "{}+{}:{}", NAMES[self.region], self.offset, self.len)
    }
}

struct List<'a>(&'a [Piece]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, piece) in self.0.iter().enumerate() {
            write!(f, "{}{piece}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {:?}: ", self.connection, self.from)?;
        match self.operation {
            Operation::Send => f.write_str("SEND")?,
            Operation::Write(offset) => write!(f, "WRITE to target+{offset}")?,
            Operation::Read(offset) => write!(f, "READ from source+{offset}")?,
            Operation::CmpSwap(word, compare, swap) => {
                write!(f, "CMP_SWAP of word {word}, {compare:#x} by {swap:#x}")?;
            }
            Operation::FetchAdd(word, add) => write!(f, "FETCH_ADD {add:#x} to word {word}")?,
        }
        if let Some(imm) = self.imm {
            write!(f, " imm {imm:#x}")?;
        }
        match self.inline {
            Some(len) => write!(f, ", {len} bytes inline")?,
            None => write!(f, ", {} bytes {}", self.len(), List(&self.gather))?,
        }
        if !self.signaled {
            f.write_str(", unsignaled")?;
        }
        if self.solicited {
            f.write_str(", solicited")?;
        }
        if self.fence {
            f.write_str(", fence")?;
        }
        if let Some(recv) = &self.recv {
            write!(f, "; into {}", List(&recv.scatter))?;
            if recv.late > 0 {
                write!(f, " posted {} cycles late", recv.late)?;
            }
        }
        if let Some(fault) = &self.fault {
            write!(f, "; fault {fault:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => message.fmt(f),
            Self::Spare {
                connection,
                side,
                scatter,
            } => write!(f, "#{connection} {side:?}: spare buffer {}", List(scatter)),
            Self::Noise { side, at, noise } => {
                write!(f, "{side:?} receives after {at} cycles: {noise:02x?}")
            }
            Self::Forgery {
                connection,
                side,
                forgery,
            } => write!(f, "#{connection} {side:?} receives: {forgery:?}"),
            Self::Command { side, command } => write!(f, "{side:?} is told: {command:?}"),
            Self::Reconnect { connection, psn } => {
                write!(f, "#{connection} begins afresh, PSNs {psn:#x?}")
            }
            Self::Rest => f.write_str("rest"),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, {} completion queues", self.wire, self.cqs)?;
        for (i, c) in self.connections.iter().enumerate() {
            let agreement = [Side::A, Side::B].map(|side| self.agreement(i, side));
            writeln!(f, "#{i}: {c:?}; {agreement:?}")?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            writeln!(f, "{i:3}. {step}")?;
        }
        Ok(())
    }
}

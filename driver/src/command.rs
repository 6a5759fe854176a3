//! The command ring: one command at a time, each with a bounded wait for its completion.

use std::sync::Arc;

use ferroce_proto::abi::classes::PFC_WATCHDOG_RESET;
use ferroce_proto::abi::cmd::{self, CmdCpl, CmdHead, status};
use ferroce_proto::abi::regs;
use thiserror::Error;

use crate::barrier;
use crate::device::Status;
use crate::dma::DmaBuf;
use crate::host::Host;
use crate::ring::EntryRing;
use crate::{Backend, BackendError};

/// Longest wait for the completion of a command in ns, beside its wait for a class that the peer pauses.
const BESIDE_NS: u64 = 150_000_000;
/// Longest wait with the watchdog of pauses after reset.
pub const COMMAND_LIMIT_NS: u64 = limit_ns(PFC_WATCHDOG_RESET as u16);

/// Longest wait if a class may be paused for so many ms. Without a watchdog (0) it is as after reset.
pub(crate) const fn limit_ns(watchdog_ms: u16) -> u64 {
    let paused_ms = if watchdog_ms < PFC_WATCHDOG_RESET as u16 {
        PFC_WATCHDOG_RESET as u64
    } else {
        watchdog_ms as u64
    };
    BESIDE_NS + 1_000_000 * paused_ms
}

const LOG_ENTRIES: u8 = 4;
const ENTRIES: u32 = 1 << LOG_ENTRIES;

/// A command was not carried out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The card refused.
    #[error("the card refused to {operation} {index}: {}", refusal(*.status))]
    Refused {
        /// What was asked for.
        operation: &'static str,
        /// Number of the object.
        index: u32,
        /// Answer of the card, see [`status`](ferroce_proto::abi::cmd::status).
        status: u8,
    },
    /// The card did not answer.
    #[error(
        "the card did not answer the command to {operation} {index} within {limit_ns} ns ({card}); \
         it takes no more commands: drop everything opened on it and open it anew, which resets it"
    )]
    Timeout {
        /// What was asked for.
        operation: &'static str,
        /// Number of the object.
        index: u32,
        /// Time waited in ns.
        limit_ns: u64,
        /// State of the card after the wait.
        card: Status,
    },
    /// The card is gone.
    #[error(
        "cannot {operation} {index}: the card is gone: its registers read as all ones; what was posted completes in error: \
         drop everything opened on it, see that it is there (`lspci`) and configured, and open it anew"
    )]
    Lost {
        /// What was asked for.
        operation: &'static str,
        /// Number of the object.
        index: u32,
    },
    /// The card answered something else.
    #[error(
        "the card answered the command to {operation} {index} with token {found:#06x}, expected {expected:#06x}: \
         card and driver disagree about the command ring; drop everything opened on the card and open it anew"
    )]
    Mismatch {
        /// What was asked for.
        operation: &'static str,
        /// Number of the object.
        index: u32,
        /// Token of the command.
        expected: u16,
        /// Token of the completion.
        found: u16,
    },
    /// An earlier command was never answered properly.
    #[error(
        "cannot {operation} {index}: an earlier command failed in a way that leaves the command ring unusable; \
         drop everything opened on the card and open it anew"
    )]
    Dead {
        /// What was asked for.
        operation: &'static str,
        /// Number of the object.
        index: u32,
    },
}

fn refusal(answer: u8) -> String {
    match answer {
        status::BAD_OPCODE => {
            "it does not know this command; see the features in query_device()".into()
        }
        status::BAD_INDEX => {
            "no such number in this build; see the limits in query_device()".into()
        }
        status::BAD_PARAM => {
            "a parameter is out of the range of this build; see the limits in query_device()".into()
        }
        status::BAD_STATE => "the object is not in a state that permits it; query its state".into(),
        other => format!("status {other}, unknown to this driver; update the driver"),
    }
}

/// A command with its images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    pub(crate) head: CmdHead,
    /// Images 1 to 3; those that are not set are sent as zeros.
    pub(crate) images: [Option<[u8; 64]>; 3],
}

impl Command {
    /// Operation `opcode` on object `index`, without images.
    pub(crate) fn new(opcode: u8, index: u32) -> Self {
        Self {
            head: CmdHead {
                opcode,
                index,
                ..CmdHead::default()
            },
            images: [None; 3],
        }
    }

    /// With image 1.
    pub(crate) fn with(mut self, image: [u8; 64]) -> Self {
        self.images[0] = Some(image);
        self
    }
}

/// Both rings and the indices, which are equal as commands go one at a time.
pub(crate) struct CommandRing<B: Backend> {
    commands: DmaBuf<B>,
    answers: EntryRing<B, { CmdCpl::BYTES }>,
    index: u32,
    dead: bool,
    /// See [`limit_ns`].
    pub(crate) limit_ns: u64,
}

impl<B: Backend> CommandRing<B> {
    /// Makes the rings known to a card that is not enabled.
    pub(crate) fn new(host: &Arc<Host<B>>) -> Result<Self, BackendError> {
        let commands = DmaBuf::new(host, ENTRIES as usize * cmd::CMD_BYTES)?;
        let answers = EntryRing::new(host, LOG_ENTRIES)?;
        let write = |register: u32, value: u32| host.write32(register.into(), value);
        for (lo, hi, addr) in [
            (regs::CMD_BASE_LO, regs::CMD_BASE_HI, commands.iova(0)),
            (regs::CPL_BASE_LO, regs::CPL_BASE_HI, answers.base()),
        ] {
            write(lo, addr as u32);
            write(hi, (addr >> 32) as u32);
        }
        write(regs::CMD_LOG_SIZE, LOG_ENTRIES.into());
        Ok(Self {
            commands,
            answers,
            index: 0,
            dead: false,
            limit_ns: COMMAND_LIMIT_NS,
        })
    }

    /// Carries out a command and returns the `value` of its completion. `operation` is a verb with its object: "destroy CQ".
    pub(crate) fn execute(
        &mut self,
        operation: &'static str,
        command: &Command,
    ) -> Result<u128, CommandError> {
        let index = command.head.index;
        let host = self.commands.host();
        if host.lost() {
            return Err(CommandError::Lost { operation, index });
        }
        if self.dead {
            return Err(CommandError::Dead { operation, index });
        }
        let position = self.index;
        let token = position as u16;
        self.put(
            (position % ENTRIES) as usize,
            &CmdHead {
                token,
                ..command.head
            },
            &command.images,
        );
        self.index = self.index.wrapping_add(1);
        barrier::before_register();
        let host = self.commands.host();
        host.write32(regs::CMD_PI.into(), self.index);

        let answer = host.wait(self.limit_ns, || self.answers.read(position.into()));
        let Some(answer) = answer else {
            if host.look() {
                return Err(CommandError::Lost { operation, index });
            }
            let card = Status::read(&host.backend);
            self.dead = true;
            return Err(CommandError::Timeout {
                operation,
                index,
                limit_ns: self.limit_ns,
                card,
            });
        };
        let answer = CmdCpl::parse(&answer);
        if answer.token != token {
            self.dead = true;
            return Err(CommandError::Mismatch {
                operation,
                index,
                expected: token,
                found: answer.token,
            });
        }
        match answer.status {
            status::OK => Ok(answer.value),
            status => Err(CommandError::Refused {
                operation,
                index,
                status,
            }),
        }
    }

    fn put(&self, place: usize, head: &CmdHead, images: &[Option<[u8; 64]>; 3]) {
        let at = place * cmd::CMD_BYTES;
        self.commands.write(at, &head.emit());
        for (i, image) in images.iter().enumerate() {
            self.commands
                .write(at + 64 * (i + 1), image.as_ref().unwrap_or(&[0; 64]));
        }
    }
}

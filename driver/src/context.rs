//! An opened card.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::{GidEntry, PortConfig, opcode};
use ferroce_proto::abi::regs::{self, control};
use ferroce_proto::wire::{Gid, Mac};
use thiserror::Error;

use crate::alloc::{Numbers, Pool};
use crate::command::{Command, CommandError, CommandRing};
use crate::cq::{Cq, CqError};
use crate::device::{AbiVersion, DeviceInfo, Status, check_parameters};
use crate::event::{ASYNC_EQN, AsyncEvents, CompChannel, EventAttr, EventError, Handover};
use crate::exception::{ExceptionError, ExceptionQueue};
use crate::host::{Host, lock};
use crate::mr::Keys;
use crate::pd::Pd;
use crate::{Backend, BackendError};

/// Longest wait for a card to be ready after its reset in ns.
pub const READY_LIMIT_NS: u64 = 100_000_000;

/// A card could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// BAR0 is too small for the registers and doorbells.
    #[error(
        "BAR0 has {found} bytes, this driver needs {expected}: this is not a Ferroce card, or an image with another address map; check which device was opened"
    )]
    Bar {
        /// Bytes of the BAR.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// Nothing answers.
    #[error(
        "register MAGIC reads as all ones: the card does not answer; check that it is plugged in and configured, and that memory access is enabled"
    )]
    Absent,
    /// Another device.
    #[error(
        "register MAGIC reads {found:#010x}, expected {expected:#010x} (\"FRCE\"): this is not a Ferroce card; check which device was opened",
        expected = regs::MAGIC_VALUE
    )]
    Magic {
        /// Value read.
        found: u32,
    },
    /// The card speaks another contract.
    #[error(
        "the card speaks version {card} of the host contract, this driver version {driver}: load a card image and a driver of equal major version"
    )]
    Version {
        /// Version of the card.
        card: AbiVersion,
        /// Version of this driver.
        driver: AbiVersion,
    },
    /// The card was built with tables that this driver cannot address.
    #[error(
        "parameter {parameter} of the card is {value}, this driver takes {minimum} to {maximum}: load another build, or a newer driver"
    )]
    Parameter {
        /// Name of the parameter, as in the registers PARAMS to PARAMS3.
        parameter: &'static str,
        /// Its value.
        value: u32,
        /// Smallest value.
        minimum: u32,
        /// Largest value.
        maximum: u32,
    },
    /// The card did not get ready.
    #[error(
        "the card was not ready {limit_ns} ns after its reset ({status}): check its clocks, or load its image again"
    )]
    NotReady {
        /// Time waited in ns.
        limit_ns: u64,
        /// State of the card.
        status: Status,
    },
    /// No memory for the command rings.
    #[error("no memory for the command rings")]
    Memory(#[from] BackendError),
    /// The first command failed.
    #[error("the card does not carry out commands")]
    Command(#[from] CommandError),
}

/// A GID table entry could not be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GidError {
    /// The table is shorter.
    #[error("GID index {index} is beyond the table of {limit} entries: use 0 to {}", .limit - 1)]
    Index {
        /// Index asked for.
        index: u8,
        /// Entries of the table.
        limit: u32,
    },
    /// The card cannot do IPv6.
    #[error(
        "GID {0} is an IPv6 address and this build of the card does IPv4 only: use an IPv4-mapped GID"
    )]
    Ipv6(Gid),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Addresses of the port, as the card was told.
struct Port {
    mac: Mac,
    gids: Vec<Option<Gid>>,
}

/// What all objects of an opened card share.
pub(crate) struct Card<B: Backend> {
    pub(crate) host: Arc<Host<B>>,
    pub(crate) info: DeviceInfo,
    commands: Mutex<CommandRing<B>>,
    /// The one exception queue is taken.
    pub(crate) has_exception_queue: AtomicBool,
    port: Mutex<Port>,
    pub(crate) pds: Mutex<Numbers>,
    pub(crate) qps: Mutex<Numbers>,
    pub(crate) cqs: Mutex<Numbers>,
    pub(crate) ahs: Mutex<Numbers>,
    pub(crate) srqs: Mutex<Numbers>,
    /// Event queues of completion channels.
    pub(crate) eqs: Mutex<Numbers>,
    pub(crate) handover: Mutex<Handover>,
    pub(crate) keys: Mutex<Keys>,
    pub(crate) outstanding: Mutex<Pool>,
    /// Queue pairs that ever lived: start PSNs differ from life to life.
    pub(crate) lives: Mutex<u32>,
}

impl<B: Backend> Card<B> {
    /// Carries out a command; see [`CommandRing::execute`].
    pub(crate) fn execute(
        &self,
        operation: &'static str,
        command: &Command,
    ) -> Result<u128, CommandError> {
        lock(&self.commands).execute(operation, command)
    }

    /// The GID at `index` of the table, if set.
    pub(crate) fn gid(&self, index: u8) -> Option<Gid> {
        lock(&self.port)
            .gids
            .get(usize::from(index))
            .copied()
            .flatten()
    }

    /// Completion channels there can be: each has an event queue and an interrupt vector, beside those of [`ASYNC_EQN`].
    pub(crate) fn channels(&self) -> u32 {
        let queues = self.info.max_eq.min(self.host.backend.vectors());
        queues.saturating_sub(ASYNC_EQN + 1)
    }

    pub(crate) fn mac(&self) -> Mac {
        lock(&self.port).mac
    }
}

impl<B: Backend> Drop for Card<B> {
    fn drop(&mut self) {
        // The rings are about to go: the card forgets them, and the next driver finds it fresh.
        if let Err(e) = reset(&self.host) {
            tracing::error!("while closing: {e}");
        }
    }
}

/// An opened card. Clones are handles of the same card, which is reset when the last object on it is dropped.
pub struct Context<B: Backend> {
    card: Arc<Card<B>>,
}

impl<B: Backend> Clone for Context<B> {
    fn clone(&self) -> Self {
        Self {
            card: self.card.clone(),
        }
    }
}

impl<B: Backend> Context<B> {
    /// Opens the card behind `backend`: checks what it is, waits until it is ready, hands over the
    /// command rings and enables it. A card that a driver left in use is reset.
    ///
    /// # Errors
    /// [`OpenError`]: no such card, versions or parameters do not fit, not ready within [`READY_LIMIT_NS`], no memory, no answer.
    pub fn open(backend: B) -> Result<Self, OpenError> {
        identify(&backend)?;
        let host = Arc::new(Host::new(backend));
        let read = |register: u32| host.backend.read32(register.into());
        if read(regs::CONTROL) & control::ENABLE != 0 || read(regs::CMD_PI) != 0 {
            reset(&host)?;
        }
        wait_ready(&host)?;
        check_parameters(&host.backend).map_err(|(parameter, value, minimum, maximum)| {
            OpenError::Parameter {
                parameter,
                value,
                minimum,
                maximum,
            }
        })?;
        let info = DeviceInfo::read(&host.backend);
        let commands = CommandRing::new(&host)?;
        host.backend.write32(regs::CONTROL.into(), control::ENABLE);
        let card = Card {
            info,
            commands: Mutex::new(commands),
            has_exception_queue: AtomicBool::new(false),
            port: Mutex::new(Port {
                mac: Mac::default(),
                gids: vec![None; info.max_gid as usize],
            }),
            pds: Mutex::new(Numbers::new(1..1 << 24)),
            qps: Mutex::new(Numbers::new(2..info.max_qp)),
            cqs: Mutex::new(Numbers::new(0..info.max_cq.min(1 << 16))),
            ahs: Mutex::new(Numbers::new(0..info.max_ah)),
            srqs: Mutex::new(Numbers::new(0..info.max_srq)),
            eqs: Mutex::default(),
            handover: Mutex::default(),
            keys: Mutex::new(Keys::new(info.max_mr)),
            outstanding: Mutex::new(Pool::new(info.max_outstanding.ilog2())),
            lives: Mutex::new(0),
            host,
        };
        *lock(&card.eqs) = Numbers::new(ASYNC_EQN + 1..ASYNC_EQN + 1 + card.channels());
        card.execute("try the command ring", &Command::new(opcode::NOP, 0))?;
        Ok(Self {
            card: Arc::new(card),
        })
    }

    /// Identity and limits of the card.
    #[must_use]
    pub fn query_device(&self) -> DeviceInfo {
        self.card.info
    }

    /// State of the card.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::read(&self.card.host.backend)
    }

    /// The statistics counters with their names.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        // Reading a low half latches the high half: one reader at a time.
        let _one = lock(&self.card.commands);
        crate::device::statistics(|offset| self.card.host.backend.read32(offset))
    }

    /// Sets the MAC address of the port. Frames to others are not received.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_mac(&self, mac: Mac) -> Result<(), CommandError> {
        self.set_port(mac, false)
    }

    /// Sets the MAC address of the port, and whether frames to other addresses are received too.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_port(&self, mac: Mac, promiscuous: bool) -> Result<(), CommandError> {
        let config = PortConfig {
            mac: mac.to_le_bits(),
            promiscuous,
        };
        let mut port = lock(&self.card.port);
        let command = Command::new(opcode::SET_PORT, 0).with(config.emit());
        self.card.execute("set port", &command)?;
        port.mac = mac;
        Ok(())
    }

    /// Sets entry `index` of the GID table; an IPv4 address is an IPv4-mapped GID.
    ///
    /// # Errors
    /// [`GidError`]: index or address family beyond what the card has.
    pub fn set_gid(&self, index: u8, gid: Gid) -> Result<(), GidError> {
        if !gid.is_ipv4() && !self.card.info.features.contains(crate::Features::IPV6) {
            return Err(GidError::Ipv6(gid));
        }
        self.write_gid(index, Some(gid))
    }

    /// Empties entry `index` of the GID table.
    ///
    /// # Errors
    /// [`GidError`]: index beyond the table.
    pub fn clear_gid(&self, index: u8) -> Result<(), GidError> {
        self.write_gid(index, None)
    }

    fn write_gid(&self, index: u8, gid: Option<Gid>) -> Result<(), GidError> {
        let mut port = lock(&self.card.port);
        let Some(entry) = port.gids.get_mut(usize::from(index)) else {
            let limit = self.card.info.max_gid;
            return Err(GidError::Index { index, limit });
        };
        let image = gid.map_or_else(GidEntry::default, |gid| GidEntry {
            gid: gid.to_le_bits(),
            valid: true,
            ipv6: !gid.is_ipv4(),
        });
        let command = Command::new(opcode::SET_GID, index.into()).with(image.emit());
        self.card.execute("set GID", &command)?;
        *entry = gid;
        Ok(())
    }

    /// MAC address of the port, as it was set.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.card.mac()
    }

    /// Entry `index` of the GID table, as it was set.
    #[must_use]
    pub fn gid(&self, index: u8) -> Option<Gid> {
        self.card.gid(index)
    }

    /// A new protection domain.
    #[must_use]
    pub fn alloc_pd(&self) -> Pd<B> {
        Pd::new(&self.card)
    }

    /// A new completion queue for at least `entries` completions.
    ///
    /// # Errors
    /// [`CqError`]: beyond a limit of the card, no memory, or refused.
    pub fn create_cq(&self, entries: u32) -> Result<Cq<B>, CqError> {
        Cq::new(&self.card, entries, None)
    }

    /// A new completion queue for at least `entries` completions, of which `channel` tells when asked by
    /// [`Cq::req_notify`].
    ///
    /// # Errors
    /// [`CqError`]: beyond a limit of the card, another card's channel, no memory, or refused.
    pub fn create_cq_on(&self, entries: u32, channel: &CompChannel<B>) -> Result<Cq<B>, CqError> {
        Cq::new(&self.card, entries, Some(channel))
    }

    /// A new completion channel. A card has one less than event queues ([`DeviceInfo::max_eq`]), or fewer if the backend
    /// has fewer interrupt vectors.
    ///
    /// # Errors
    /// [`EventError`]: no events or interrupts, none left, an attribute out of range, no memory, or refused.
    pub fn create_comp_channel(&self, attr: &EventAttr) -> Result<CompChannel<B>, EventError> {
        CompChannel::new(&self.card, attr)
    }

    /// The asynchronous events of the card. There is one handle at a time.
    ///
    /// # Errors
    /// [`EventError`]: no events or interrupts, in use, an attribute out of range, no memory, or refused.
    pub fn async_events(&self, attr: &EventAttr) -> Result<AsyncEvents<B>, EventError> {
        AsyncEvents::new(&self.card, attr)
    }

    /// The queue of frames that are not RoCEv2, with `slots` slots each way (rounded up to a power of two, 1 to 256). A
    /// slot holds a frame of 1984 bytes, or with `jumbo` of 16320. There is one such queue.
    ///
    /// # Errors
    /// [`ExceptionError`]: the card has none, it is in use, too many slots, no memory.
    pub fn create_exception_queue(
        &self,
        slots: u32,
        jumbo: bool,
    ) -> Result<ExceptionQueue<B>, ExceptionError> {
        ExceptionQueue::new(&self.card, slots, jumbo)
    }

    /// The backend: to pass time in a wait loop of one's own, or to reach what the driver has no verb for.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.card.host.backend
    }
}

/// Checks that this is a card this driver understands.
fn identify(backend: &impl Backend) -> Result<(), OpenError> {
    let (found, expected) = (backend.bar_len(), regs::BAR0_BYTES);
    if found < expected {
        return Err(OpenError::Bar { found, expected });
    }
    match backend.read32(regs::MAGIC.into()) {
        regs::MAGIC_VALUE => {}
        u32::MAX => return Err(OpenError::Absent),
        found => return Err(OpenError::Magic { found }),
    }
    let card = AbiVersion::from_register(backend.read32(regs::VERSION.into()));
    let driver = AbiVersion::DRIVER;
    if card.major != driver.major {
        return Err(OpenError::Version { card, driver });
    }
    Ok(())
}

/// Resets the engine: it forgets every address it was told.
fn reset<B: Backend>(host: &Host<B>) -> Result<(), OpenError> {
    host.backend.write32(regs::CONTROL.into(), control::RESET);
    wait_ready(host)
}

fn wait_ready<B: Backend>(host: &Host<B>) -> Result<(), OpenError> {
    let ready = || {
        let resetting = host.backend.read32(regs::CONTROL.into()) & control::RESET != 0;
        (!resetting && Status::read(&host.backend).ready).then_some(())
    };
    host.wait(READY_LIMIT_NS, ready)
        .ok_or_else(|| OpenError::NotReady {
            limit_ns: READY_LIMIT_NS,
            status: Status::read(&host.backend),
        })
}

//! The opened card behind all objects: opening and closing, commands, addresses of its port, what is free.

mod error;
mod event_rings;
mod keys;
mod parked;
mod windows;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::{GidEntry, PortConfig, opcode};
use ferroce_proto::abi::regs::{self, control, status};
use ferroce_proto::wire::{Gid, Mac};

use crate::Backend;
use crate::alloc::{Numbers, Pool};
use crate::command::{Command, CommandError, CommandRing, limit_ns};
use crate::congestion_control::CongestionControl;
use crate::device::{AbiVersion, DeviceInfo, Status, check_parameters};
use crate::host::{Host, lock};
use crate::names::Names;

pub use error::{GidError, OpenError};
pub(crate) use event_rings::{EventRing, EventRings, Object};
pub(crate) use keys::{Keys, Kind};
pub(crate) use parked::Parked;
pub(crate) use windows::{Posted, Windows, end_of_queue_pair, end_of_region};

/// Longest wait for a card to be ready after its reset in ns.
pub const READY_LIMIT_NS: u64 = 100_000_000;

/// Event queue of asynchronous events.
pub(crate) const ASYNC_EQN: u32 = 0;
/// Number of the queue pair of management (IB1 3.9.2).
pub(crate) const GSI_QPN: u32 = 1;

/// Addresses of the port, as written to the card.
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
    /// Of queue pairs whose builder does not choose.
    pub(crate) congestion: Mutex<CongestionControl>,
    port: Mutex<Port>,
    pub(crate) pds: Mutex<Numbers>,
    qps: Mutex<Numbers>,
    gsi: Mutex<Numbers>,
    pub(crate) cqs: Mutex<Numbers>,
    pub(crate) ahs: Mutex<Numbers>,
    pub(crate) srqs: Mutex<Numbers>,
    /// Event queues of completion channels.
    pub(crate) eqs: Mutex<Numbers>,
    pub(crate) event_rings: Mutex<EventRings<B>>,
    pub(crate) parked: Mutex<Parked>,
    pub(crate) keys: Mutex<Keys>,
    pub(crate) windows: Mutex<Windows>,
    pub(crate) outstanding: Mutex<Pool>,
    /// Queue pairs that ever lived: start PSNs differ from life to life.
    incarnations: Mutex<u32>,
    names: Names,
}

impl<B: Backend> Card<B> {
    /// See [`Context::open`](crate::Context::open).
    pub(crate) fn open(backend: B) -> Result<Self, OpenError> {
        identify(&backend)?;
        let host = Arc::new(Host::new(backend).ok_or(OpenError::InUse)?);
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
        let names = Names::new(host.backend.seed());
        let qps = GSI_QPN + 1..info.max_qp;
        let commands = CommandRing::new(&host)?;
        host.write32(regs::CONTROL.into(), control::ENABLE);
        let card = Self {
            info,
            commands: Mutex::new(commands),
            has_exception_queue: AtomicBool::new(false),
            congestion: Mutex::default(),
            port: Mutex::new(Port {
                mac: Mac::default(),
                gids: vec![None; info.max_gid as usize],
            }),
            pds: Mutex::new(Numbers::new(1..1 << 24)),
            qps: Mutex::new(Numbers::starting(names.first("queue pairs", &qps), qps)),
            gsi: Mutex::new(Numbers::new(GSI_QPN..GSI_QPN + 1)),
            cqs: Mutex::new(Numbers::new(0..info.max_cq.min(1 << 16))),
            ahs: Mutex::new(Numbers::new(0..info.max_ah)),
            srqs: Mutex::new(Numbers::new(0..info.max_srq)),
            eqs: Mutex::default(),
            event_rings: Mutex::default(),
            parked: Mutex::default(),
            keys: Mutex::new(Keys::new(info.max_mr, names.clone())),
            windows: Mutex::default(),
            outstanding: Mutex::new(Pool::new(info.max_outstanding.ilog2())),
            incarnations: Mutex::new(0),
            names,
            host,
        };
        *lock(&card.eqs) = Numbers::new(ASYNC_EQN + 1..ASYNC_EQN + 1 + card.channels());
        card.execute("try the command ring", &Command::new(opcode::NOP, 0))?;
        Ok(card)
    }

    /// Carries out a command; see [`CommandRing::execute`].
    pub(crate) fn execute(
        &self,
        operation: &'static str,
        command: &Command,
    ) -> Result<u128, CommandError> {
        lock(&self.commands).execute(operation, command)
    }

    /// Commands wait for classes that may be paused for so many ms.
    pub(crate) fn set_watchdog(&self, watchdog_ms: u16) {
        lock(&self.commands).limit_ns = limit_ns(watchdog_ms);
    }

    /// Carries out a command after which others use memory again. If it is not answered the card may still reach that, so
    /// that it is stopped and given up.
    pub(crate) fn execute_for_sure(
        &self,
        operation: &'static str,
        command: &Command,
    ) -> Result<u128, CommandError> {
        let answer = self.execute(operation, command);
        if answer
            .as_ref()
            .is_err_and(|e| !matches!(e, CommandError::Refused { .. }))
        {
            self.host.stop();
            self.host.give_up();
        }
        answer
    }

    /// The first PSN of a new queue pair.
    pub(crate) fn start_psn(&self) -> u32 {
        let mut incarnations = lock(&self.incarnations);
        *incarnations = incarnations.wrapping_add(1);
        self.names.psn(*incarnations)
    }

    /// Numbers of queue pairs, or that of the one of management.
    pub(crate) fn qp_numbers(&self, is_gsi: bool) -> &Mutex<Numbers> {
        if is_gsi { &self.gsi } else { &self.qps }
    }

    /// See [`Context::set_port`](crate::Context::set_port).
    pub(crate) fn set_port(&self, mac: Mac, promiscuous: bool) -> Result<(), CommandError> {
        let config = PortConfig {
            mac: mac.to_le_bits(),
            promiscuous,
        };
        let mut port = lock(&self.port);
        let command = Command::new(opcode::SET_PORT, 0).with(config.emit());
        self.execute("set port", &command)?;
        port.mac = mac;
        Ok(())
    }

    /// Sets entry `index` of the GID table, or empties it.
    pub(crate) fn write_gid(&self, index: u8, gid: Option<Gid>) -> Result<(), GidError> {
        let mut port = lock(&self.port);
        if usize::from(index) >= port.gids.len() {
            let limit = self.info.max_gid;
            return Err(GidError::Index { index, limit });
        }
        let mut taken = (0..).zip(&port.gids);
        let taken =
            taken.find(|&(other, entry)| other != index && entry.is_some() && *entry == gid);
        if let (Some((index, _)), Some(gid)) = (taken, gid) {
            return Err(GidError::Taken { gid, index });
        }
        let image = gid.map_or_else(GidEntry::default, |gid| GidEntry {
            gid: gid.to_le_bits(),
            valid: true,
            ipv6: !gid.is_ipv4(),
        });
        let command = Command::new(opcode::SET_GID, index.into()).with(image.emit());
        self.execute("set GID", &command)?;
        port.gids[usize::from(index)] = gid;
        Ok(())
    }

    /// See [`Context::statistics`](crate::Context::statistics).
    pub(crate) fn statistics(&self) -> Vec<(&'static str, u64)> {
        // Reading a low half latches the high half: one reader at a time.
        let _one = lock(&self.commands);
        crate::device::statistics(|offset| self.host.backend.read32(offset))
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
        match reset(&self.host) {
            Ok(()) => {}
            Err(OpenError::Absent) => tracing::warn!("a card that is gone is closed"),
            Err(e) => tracing::error!("while closing: {e}"),
        }
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

/// Resets the engine: it loses every address it was given.
fn reset<B: Backend>(host: &Host<B>) -> Result<(), OpenError> {
    host.write32(regs::CONTROL.into(), control::ENGINE_RESET);
    wait_ready(host)
}

fn wait_ready<B: Backend>(host: &Host<B>) -> Result<(), OpenError> {
    let ready = || {
        let resetting = host.backend.read32(regs::CONTROL.into()) & control::ENGINE_RESET != 0;
        let status = host.backend.read32(regs::STATUS.into());
        (!resetting && status & status::READY != 0).then_some(())
    };
    let Some(()) = host.wait(READY_LIMIT_NS, ready) else {
        if host.look() {
            return Err(OpenError::Absent);
        }
        return Err(OpenError::NotReady {
            limit_ns: READY_LIMIT_NS,
            status: Status::read(&host.backend),
        });
    };
    Ok(())
}

//! Traffic classes of the port: which queue a packet waits in, and pauses by priority (`docs/classes.md`).

mod headroom;
mod words;

use ferroce_proto::abi::classes::{
    self, BUFFER_PACKETS, BUFFER_UNITS, CLASSES, PRIO_CLASS_RESET, PRIORITIES, TRUST_DSCP,
    TRUST_PCP, Trust as TrustRegister,
};
use ferroce_proto::abi::{exception, regs};
use thiserror::Error;

use crate::{Backend, Context, Features};

/// DSCPs.
const DSCPS: usize = 64;
/// Most that a class weighs.
const WEIGHTS: u8 = 127;

/// What says the priority of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its DSCP, by [`Classes::dscp_priority`].
    Dscp,
    /// The PCP of its 802.1Q tag.
    Pcp {
        /// Priority of what has no tag.
        untagged: u8,
    },
}

/// How a class gets the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Before all classes below it in number, and before those with a weight.
    Strict,
    /// Its share beside others with a weight, 1 to 127.
    Weight(u8),
}

/// A share of the receive buffer: what comes first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Units of 64 bytes of payload.
    pub units: u16,
    /// Packets.
    pub packets: u16,
}

/// Traffic classes of the port. As text the words below, in any order; what is not named is as after reset.
///
/// | word | is |
/// |---|---|
/// | `trust=dscp`, `trust=pcp`, `trust=pcp:3` | what says the priority, and that of what has no tag |
/// | `dscp2prio=26:3,48:6` | priorities of DSCPs |
/// | `prio_tc=0,0,1,1,2,2,3,3` | class of each priority |
/// | `turn=25,25,strict,25` | weight of each class, or strict |
/// | `pfc=0,0,0,1,0,0,0,0` | priorities whose pauses are obeyed, and of which pauses are sent |
/// | `xoff=352/160`, `xon=220/80`, `lossy=128/64` | shares of the receive buffer, in units of 64 bytes and packets |
/// | `watchdog=100`, `storm=100` | ms |
/// | `cable=100`, `reaction=394`, `frame=9018` | metres to the peer, quanta until it stops, bytes of the largest frame of the host: the headroom behind `xoff` |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// What says the priority of a packet, sent or received.
    pub trust: Trust,
    /// Priority of each DSCP.
    pub dscp_priority: [u8; DSCPS],
    /// Class of each priority, 0 to 3.
    pub class: [u8; PRIORITIES],
    /// How each class gets the wire.
    pub turn: [Turn; CLASSES],
    /// Priorities whose pauses are obeyed, a bit each.
    pub pause_obeyed: u8,
    /// Priorities of which pauses are sent, a bit each.
    pub pause_sent: u8,
    /// What a class holds when it asks for a pause.
    pub xoff: Share,
    /// It asks no more when it holds less.
    pub xon: Share,
    /// What classes without pauses may hold together while others send them.
    pub lossy: Share,
    /// For how long the peer may hold a class, in ms; 0: for ever.
    pub watchdog_ms: u16,
    /// For how long a class asks while nothing of it leaves, in ms; 0: for ever.
    pub storm_ms: u16,
    /// Metres of cable to the peer: what is on it still comes when a class asks for a pause.
    pub cable_m: u16,
    /// Quanta (512 bit times) from a pause on the peer's side of the cable to the end of what it sends, but the frame under way: at most
    /// 394 at 100 Gb/s (IEEE 802.3, 31B.3.7).
    pub reaction: u16,
    /// Bytes of the largest frame that the host sends, behind which a pause waits. Else that of the exception queue there is.
    pub host_frame: Option<u16>,
}

/// Classes that the card does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClassError {
    /// It has none.
    #[error("this card has no traffic classes (FEATURES.CLASSES)")]
    Unsupported,
    /// A value out of range.
    #[error("{name} is {value}, expected at most {limit}")]
    Range {
        /// What.
        name: String,
        /// Its value.
        value: u16,
        /// Most that it may be.
        limit: u16,
    },
    /// A weight of 0.
    #[error("class {class} weighs 0, expected 1 to 127 or strict")]
    Weight {
        /// Which.
        class: usize,
    },
    /// XON is above XOFF: a pause would end as it begins.
    #[error("xon of {} units and {} packets is above xoff of {} and {}", xon.units, xon.packets, xoff.units, xoff.packets)]
    Thresholds {
        /// What ends a pause.
        xon: Share,
        /// What begins one.
        xoff: Share,
    },
    /// XON is 0: no class holds less, and a pause would never end.
    #[error("xon of {} units and {} packets would end no pause, expected 1 of each at least", xon.units, xon.packets)]
    Endless {
        /// What ends a pause.
        xon: Share,
    },
    /// The receive buffer has no room for what comes behind XOFF: frames would be lost.
    #[error(
        "{classes} classes that send pauses take {units} units and {packets} packets of the receive buffer with {cable_m} m of cable, \
         a peer that stops within {reaction} quanta and frames of the host of {frame} bytes, expected at most {BUFFER_UNITS} and \
         {BUFFER_PACKETS}: lower xoff and xon, lossy, cable=, reaction= or frame=, or put the priorities of pfc into fewer classes"
    )]
    Headroom {
        /// Classes that send pauses.
        classes: usize,
        /// [`Classes::cable_m`].
        cable_m: u16,
        /// [`Classes::reaction`].
        reaction: u16,
        /// Bytes of the largest frame of the host.
        frame: usize,
        /// What they take, in units of 64 bytes.
        units: usize,
        /// In packets.
        packets: usize,
    },
    /// A word that says nothing.
    #[error("`{word}` is no setting of traffic classes: expected {expected}")]
    Word {
        /// The word.
        word: String,
        /// What it might be.
        expected: &'static str,
    },
}

impl Default for Classes {
    /// As after reset.
    fn default() -> Self {
        let share = |value: u32| Share {
            units: value as u16,
            packets: (value >> 16) as u16,
        };
        Self {
            trust: Trust::Dscp,
            dscp_priority: std::array::from_fn(|dscp| dscp as u8 >> 3),
            class: std::array::from_fn(|priority| nibble(PRIO_CLASS_RESET, priority)),
            turn: [Turn::Weight(25); CLASSES],
            pause_obeyed: 0,
            pause_sent: 0,
            xoff: share(classes::PFC_XOFF_RESET),
            xon: share(classes::PFC_XON_RESET),
            lossy: share(classes::PFC_LOSSY_RESET),
            watchdog_ms: classes::PFC_WATCHDOG_RESET as u16,
            storm_ms: classes::PFC_STORM_RESET as u16,
            cable_m: headroom::CABLE_M,
            reaction: headroom::REACTION,
            host_frame: None,
        }
    }
}

fn nibble(register: u32, place: usize) -> u8 {
    (register >> (4 * place)) as u8 & 15
}

/// A register of a nibble each.
fn nibbles(values: &[u8]) -> u32 {
    let places = (0..).step_by(4).zip(values);
    places.fold(0, |all, (at, &value)| all | u32::from(value) << at)
}

fn dscp_prio(i: usize) -> u32 {
    regs::DSCP_PRIO_0 + 4 * i as u32
}

impl Classes {
    /// With an exception queue for frames of `frame` bytes.
    fn check(&self, frame: usize) -> Result<(), ClassError> {
        let at_most = |name: String, value: u16, limit: u16| match value <= limit {
            true => Ok(()),
            false => Err(ClassError::Range { name, value, limit }),
        };
        let priority = PRIORITIES as u16 - 1;
        if let Trust::Pcp { untagged } = self.trust {
            at_most("priority without a tag".into(), untagged.into(), priority)?;
        }
        for (dscp, &of) in self.dscp_priority.iter().enumerate() {
            at_most(format!("priority of DSCP {dscp}"), of.into(), priority)?;
        }
        for (priority, &of) in self.class.iter().enumerate() {
            let limit = CLASSES as u16 - 1;
            at_most(format!("class of priority {priority}"), of.into(), limit)?;
        }
        for (class, turn) in self.turn.iter().enumerate() {
            match turn {
                Turn::Weight(0) => return Err(ClassError::Weight { class }),
                Turn::Weight(weight) => {
                    let name = format!("weight of class {class}");
                    at_most(name, (*weight).into(), WEIGHTS.into())?;
                }
                Turn::Strict => {}
            }
        }
        let limit = classes::PFC_WATCHDOG_MASK as u16;
        at_most("watchdog".into(), self.watchdog_ms, limit)?;
        at_most(
            "storm".into(),
            self.storm_ms,
            classes::PFC_STORM_MASK as u16,
        )?;
        let (xon, xoff) = (self.xon, self.xoff);
        if xon.units == 0 || xon.packets == 0 {
            return Err(ClassError::Endless { xon });
        }
        if xon.units > xoff.units || xon.packets > xoff.packets {
            return Err(ClassError::Thresholds { xon, xoff });
        }
        self.check_headroom(self.host_frame.map_or(frame, usize::from))
    }

    /// Registers and their values.
    fn registers(&self) -> impl Iterator<Item = (u32, u32)> {
        let trust = match self.trust {
            Trust::Dscp => TrustRegister {
                trust: TRUST_DSCP,
                ..TrustRegister::default()
            },
            Trust::Pcp { untagged } => TrustRegister {
                trust: TRUST_PCP,
                default_prio: untagged,
                ..TrustRegister::default()
            },
        };
        let weights = self.turn.map(|turn| match turn {
            Turn::Strict => 0,
            Turn::Weight(weight) => weight,
        });
        let share = |share: Share| classes::share(share.units, share.packets);
        let tables = self.dscp_priority.chunks(8).map(nibbles);
        let tables: Vec<_> = (0..).map(dscp_prio).zip(tables).collect();
        tables.into_iter().chain([
            (regs::PRIO_CLASS, nibbles(&self.class)),
            (regs::CLASS_WEIGHT, u32::from_le_bytes(weights)),
            (regs::TRUST, u32::from_le_bytes(trust.emit())),
            (regs::PFC_WATCHDOG, self.watchdog_ms.into()),
            (regs::PFC_STORM, self.storm_ms.into()),
            (regs::PFC_XOFF, share(self.xoff)),
            (regs::PFC_XON, share(self.xon)),
            (regs::PFC_LOSSY, share(self.lossy)),
            (
                regs::PFC_CONFIG,
                u32::from(self.pause_sent) << 8 | u32::from(self.pause_obeyed),
            ),
        ])
    }
}

impl<B: Backend> Context<B> {
    /// Sets the traffic classes of the port. They count for the next packet: set them while nothing is under way, as packets
    /// of a queue pair that change their class may pass each other.
    ///
    /// # Errors
    /// [`ClassError`]: the card has none, a value is out of range, or the receive buffer has no room for what comes behind XOFF;
    /// nothing is changed then.
    pub fn set_classes(&self, classes: &Classes) -> Result<(), ClassError> {
        if !self.card.info.features.contains(Features::CLASSES) {
            return Err(ClassError::Unsupported);
        }
        let queue = self.card.host.backend.read32(regs::EXC_CONFIG.into());
        let queue = exception::Config::parse(&queue.to_le_bytes());
        classes.check(if queue.on { queue.max_frame() } else { 0 })?;
        // before a class may be paused for longer
        self.card.set_watchdog(classes.watchdog_ms);
        // no pause begins by thresholds of which half are new
        self.card.host.write32(regs::PFC_CONFIG.into(), 0);
        for (register, value) in classes.registers() {
            self.card.host.write32(register.into(), value);
        }
        Ok(())
    }
}

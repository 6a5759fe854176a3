//! Congestion control of the card: parameters of the notification point and of the reaction point, DCQCN's by the names of mlx5, Swift's
//! by those of its paper (`docs/congestion.md`).

use std::collections::BTreeMap;
use std::str::FromStr;

use ferroce_proto::abi::rates::{RP_RANGES, SWIFT_FIELDS};
use ferroce_proto::abi::regs::{self, CNP_CONFIG, MIN_TIME_BETWEEN_CNPS, RP_CONFIG};
use thiserror::Error;

use crate::congestion_control::CongestionControl;
use crate::host::lock;
use crate::{Backend, Context, Features};

/// Not of a register: queue pairs that are built from now on choose Swift, unless their builder says otherwise.
const SWIFT: &str = "swift";

/// A parameter: bits of a register.
struct Parameter {
    name: String,
    register: u32,
    /// Its lowest bit.
    at: u32,
    least: u32,
    greatest: u32,
}

/// Those that are a register with others, or of the notification point: name, register, lowest bit, greatest value.
const FIELDS: [(&str, u32, u32, u32); 9] = [
    ("np_enable", CNP_CONFIG, 16, 1),
    ("cnp_dscp", CNP_CONFIG, 0, 63),
    ("cnp_802p_prio", CNP_CONFIG, 8, 7),
    (
        "min_time_between_cnps",
        MIN_TIME_BETWEEN_CNPS,
        0,
        regs::LONGEST_TIME_BETWEEN_CNPS,
    ),
    ("rp_enable", RP_CONFIG, 0, 1),
    ("clamp_tgt_rate", RP_CONFIG, 1, 1),
    ("clamp_tgt_rate_after_time_inc", RP_CONFIG, 2, 1),
    ("alpha_first", RP_CONFIG, 3, 1),
    ("alpha_whole", RP_CONFIG, 4, 1),
];

fn parameters() -> impl Iterator<Item = Parameter> {
    let fields = FIELDS.map(|(name, register, at, greatest)| Parameter {
        name: name.into(),
        register,
        at,
        least: 0,
        greatest,
    });
    let registers = RP_RANGES.iter().map(|&(register, least, greatest)| {
        let known = regs::REGISTERS.iter().find(|r| r.offset == register);
        Parameter {
            name: known.map_or_else(String::new, |r| r.name.to_lowercase()),
            register,
            at: 0,
            least,
            greatest,
        }
    });
    let of_swift = SWIFT_FIELDS.iter().map(|field| Parameter {
        name: field.name.into(),
        register: field.register,
        at: field.at,
        least: field.least,
        greatest: field.greatest,
    });
    fields.into_iter().chain(registers).chain(of_swift)
}

impl Parameter {
    fn is_of(&self, features: Features) -> bool {
        let notifies = [CNP_CONFIG, MIN_TIME_BETWEEN_CNPS].contains(&self.register);
        let swift = (regs::SWIFT_TARGET..=regs::SWIFT_STEP).contains(&self.register);
        features.contains(match (notifies, swift) {
            (true, _) => Features::CNP,
            (_, true) => Features::SWIFT,
            _ => Features::RATES,
        })
    }

    /// Bits that hold any value of it.
    fn mask(&self) -> u32 {
        u32::MAX >> self.greatest.leading_zeros()
    }
}

/// Parameters of congestion control that are to change, by name: as text `rpg_ai_rate=50 rpg_gd=11 np_enable=1`.
/// The names are those of mlx5 and of Swift's paper, units and ranges those of the [registers](ferroce_proto::abi::regs), in lower case;
/// `np_enable` and `rp_enable` switch the notification point and the reaction point. With `swift=1` queue pairs that are built from then on
/// have [Swift](CongestionControl::Swift), unless their builder chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Congestion(BTreeMap<String, u32>);

/// A parameter of congestion control that the card does not take.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CongestionError {
    /// The card has none of its kind.
    #[error("this card does not have `{name}` (FEATURES.CNP, FEATURES.RATES, FEATURES.SWIFT)")]
    Unsupported {
        /// Its name.
        name: String,
    },
    /// No parameter.
    #[error(
        "`{word}` is no parameter of congestion control with its value: expected NAME=VALUE with one of {}",
        names()
    )]
    Word {
        /// What was there.
        word: String,
    },
    /// A value out of range.
    #[error("{name} is {value}, expected {least} to {greatest}")]
    Range {
        /// Its name.
        name: String,
        /// Its value.
        value: u32,
        /// Least that it may be.
        least: u32,
        /// Most that it may be.
        greatest: u32,
    },
}

fn names() -> String {
    let names: Vec<_> = parameters().map(|parameter| parameter.name).collect();
    format!("{}, {SWIFT}", names.join(", "))
}

impl Congestion {
    /// The same with another value of `name`.
    ///
    /// # Errors
    /// [`CongestionError`]: no such name, a value out of range.
    pub fn with(mut self, name: &str, value: u32) -> Result<Self, CongestionError> {
        let mut all = parameters();
        let range = match name {
            SWIFT => Some((0, 1)),
            _ => all.find(|p| p.name == name).map(|p| (p.least, p.greatest)),
        };
        let Some((least, greatest)) = range else {
            return Err(CongestionError::Word { word: name.into() });
        };
        if !(least..=greatest).contains(&value) {
            return Err(CongestionError::Range {
                name: name.into(),
                value,
                least,
                greatest,
            });
        }
        self.0.insert(name.into(), value);
        Ok(self)
    }
}

impl FromStr for Congestion {
    type Err = CongestionError;

    fn from_str(text: &str) -> Result<Self, CongestionError> {
        text.split_whitespace()
            .try_fold(Self::default(), |all, word| {
                let pair = word.split_once('=');
                let pair = pair.and_then(|(name, value)| Some((name, value.parse().ok()?)));
                let Some((name, value)) = pair else {
                    return Err(CongestionError::Word { word: word.into() });
                };
                all.with(name, value)
            })
    }
}

impl<B: Backend> Context<B> {
    /// The parameters of congestion control that the card has, by name.
    #[must_use]
    pub fn congestion(&self) -> Vec<(String, u32)> {
        let features = self.card.info.features;
        let own = parameters().filter(|parameter| parameter.is_of(features));
        own.map(|parameter| {
            let register = self.backend().read32(parameter.register.into());
            let value = register >> parameter.at & parameter.mask();
            (parameter.name, value)
        })
        .collect()
    }

    /// Changes parameters of congestion control; those that are not named stay. They count from the next step on.
    ///
    /// # Errors
    /// [`CongestionError::Unsupported`]: the card has no congestion control of this kind; nothing is changed then.
    pub fn set_congestion(&self, congestion: &Congestion) -> Result<(), CongestionError> {
        let named = || parameters().filter(|parameter| congestion.0.contains_key(&parameter.name));
        let features = self.card.info.features;
        if let Some(Parameter { name, .. }) = named().find(|parameter| !parameter.is_of(features)) {
            return Err(CongestionError::Unsupported { name });
        }
        if let Some(&swift) = congestion.0.get(SWIFT) {
            if swift != 0 && !features.contains(Features::SWIFT) {
                return Err(CongestionError::Unsupported { name: SWIFT.into() });
            }
            *lock(&self.card.congestion) = match swift {
                0 => CongestionControl::Dcqcn,
                _ => CongestionControl::Swift,
            };
        }
        for parameter in named() {
            let (register, mask) = (parameter.register.into(), parameter.mask() << parameter.at);
            let others = self.backend().read32(register) & !mask;
            let value = congestion.0[&parameter.name] << parameter.at;
            self.card.host.write32(register, others | value);
        }
        Ok(())
    }
}

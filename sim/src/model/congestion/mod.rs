//! Congestion control, reaction point: what a sender makes of the congestion it hears of.
//!
//! [`Dcqcn`] is the golden reference of one queue pair: integers, fed with events and with the time; [`Pace`] makes start times of a rate.
//! [`Swift`] is that of the algorithm by round-trip times. What they read and give back, what their rules are and how they differ from
//! other published programs: `docs/congestion.md`.
//!
//! ```
//! use ferroce_sim::model::congestion::{Dcqcn, Params};
//!
//! let mut rp = Dcqcn::new(Params::default(), 100_000);
//! rp.on_cnp(10_000); // the first CNP: alpha is 1023/1024
//! rp.advance(14_000); // the end of the monitor period
//! assert_eq!(rp.rate_mbps(), 50_778);
//! ```

mod dcqcn;
mod pace;
mod params;
mod swift;
mod swift_params;

pub use dcqcn::{Dcqcn, Fired, STAGE_MAX, State};
pub use pace::Pace;
pub(super) use params::range;
pub use params::{BadParam, Params};
pub use swift::{Swift, SwiftState};
pub use swift_params::SwiftParams;

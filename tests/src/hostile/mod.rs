//! Those who would break a card, beside connections that must not notice.

mod acts;
mod bus;
mod frames;
mod owner;
mod stranger;
mod tenant;

pub use bus::{Disturbed, disturb};
pub use frames::{Report, attack};
pub use owner::{Misuse, misuse};

//! Attackers of a card, beside connections that must not notice.

mod acts;
mod bus;
mod bystanders;
mod exceptions;
mod frames;
mod misuse;
mod owner;
mod stranger;
mod tenant;
mod victim;
mod works;

pub use bus::{Disturbed, disturb};
pub use frames::{Report, attack};
pub use misuse::Misuse;
pub use owner::{misuse, misuse_of};

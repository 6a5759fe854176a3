//! Opens a card: by the driver, from its name, or as a simulation that is linked into the library.

use std::any::Any;
use std::error::Error;
use std::sync::OnceLock;

use ferroce_cabi::signals;
use ferroce_driver::{AnyBackend, open};

/// An error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;
/// Kept as long as a card is open.
pub type Keep = Box<dyn Any + Send + Sync>;
/// Opens the simulated card of a name without its `sim:`.
pub type Opener = fn(&str) -> Result<(AnyBackend, Keep), BoxError>;

static SIMULATED: OnceLock<Opener> = OnceLock::new();

/// Registers the opener of cards with names that begin with `sim:`; the first one registered stays.
pub fn set_simulated(opener: Opener) {
    let _ = SIMULATED.set(opener);
}

/// Opens the card `name`.
///
/// # Errors
/// What the driver or the simulation says; there is no simulation.
pub(crate) fn open(name: &str) -> Result<(AnyBackend, Option<Keep>), BoxError> {
    // A socket has a thread that reads it, a simulation those that serve it.
    let Some(what) = name.strip_prefix("sim:") else {
        return Ok((signals::quiet(|| open::open(name))?, None));
    };
    let absent =
        "this library has no simulated card inside; `cargo xtask lib --sim` makes one that has";
    let simulate = SIMULATED.get().ok_or(absent)?;
    let (card, keep) = signals::quiet(|| simulate(what))?;
    Ok((card, Some(keep)))
}

#[cfg(test)]
mod tests {
    use super::open;

    #[test]
    fn a_library_without_a_simulation_says_how_to_get_one() {
        let refused = open("sim:model").err().unwrap().to_string();
        assert!(refused.contains("lib --sim"), "{refused}");
    }
}

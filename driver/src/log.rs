//! Messages on standard error, for programs and libraries that have no `tracing` subscriber of their own.
//!
//! `FERROCE_LOG` names what is written: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or a list such as
//! `warn,ferroce_driver=debug`. Any other value is `warn`.

use std::io::stderr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// What messages are written.
const VARIABLE: &str = "FERROCE_LOG";

/// Writes messages of level `unset` and above, or those that `FERROCE_LOG` names, to standard error from now on. Does
/// nothing if the program has a subscriber already.
pub fn start(unset: LevelFilter) {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) => filter(&text),
        Err(_) => Targets::new().with_default(unset),
    };
    let lines = fmt::layer()
        .with_writer(stderr)
        .without_time()
        // A closed standard error is no reason to end the program.
        .log_internal_errors(false)
        .with_filter(filter);
    // It fails if there is a subscriber already.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// What the value of the variable lets through.
fn filter(text: &str) -> Targets {
    let level = || text.parse::<LevelFilter>().unwrap_or(LevelFilter::WARN);
    match text.contains('=') {
        true => text.parse().unwrap_or_default(),
        false => Targets::new().with_default(level()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn a_level_a_list_or_anything_else() {
        let passes = |text: &str, target: &str, level| filter(text).would_enable(target, &level);
        assert!(passes("debug", "ferroce_driver::host", Level::DEBUG));
        assert!(!passes("off", "ferroce_driver", Level::ERROR));
        assert!(passes("yes", "ferroce_driver", Level::WARN));
        assert!(!passes("yes", "ferroce_driver", Level::INFO));
        let list = "error,ferroce_driver=trace";
        assert!(passes(list, "ferroce_driver::mr", Level::TRACE));
        assert!(!passes(list, "ferroce_sim", Level::WARN));
    }
}

//! What all programs share: reading the command line, one line for a failure, the exit status, Ctrl-C.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tracing::level_filters::LevelFilter;

/// Ctrl-C was pressed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A user's mistake: exit status 2.
#[derive(Debug)]
pub struct BadInput(pub String);

impl BadInput {
    /// For an error that says which limit was passed.
    #[must_use]
    pub fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// The user ended the program: exit status 130.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; the card is reset")
    }
}

impl std::error::Error for Interrupted {}

/// Fails once Ctrl-C was pressed. All waits ask.
///
/// # Errors
/// [`Interrupted`].
pub fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Reads the command line and runs a program: one line on standard error for a failure; exit status 0, 1 for a failed
/// run, 2 for bad input, 130 after Ctrl-C.
pub fn main<A: clap::Parser>(run: impl FnOnce(A) -> Result<()>) -> ExitCode {
    ferroce_driver::log::start(LevelFilter::WARN);
    let name = A::command().get_name().to_owned();
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(e) if !e.use_stderr() => {
            // Help and version; a closed pipe is the reader's choice.
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
        Err(e) => {
            let text = e.to_string();
            // What follows a blank line is advice; names of missing arguments stand on lines of their own.
            let lines = text.lines().take_while(|line| !line.is_empty());
            let line: Vec<_> = lines.map(str::trim).collect();
            let line = line.join(" ");
            let what = line.strip_prefix("error: ").unwrap_or(&line);
            eprintln!("{name}: {what} (see {name} --help)");
            return ExitCode::from(2);
        }
    };
    let hears = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    if let Err(e) = hears {
        eprintln!("{name}: Ctrl-C will not be heard: {e}");
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // The whole chain, as one line.
            eprintln!("{name}: {}", format!("{e:#}").replace('\n', " "));
            ExitCode::from(status(&e))
        }
    }
}

fn status(error: &anyhow::Error) -> u8 {
    match () {
        () if error.is::<Interrupted>() => 130,
        () if error.is::<BadInput>() => 2,
        () => 1,
    }
}

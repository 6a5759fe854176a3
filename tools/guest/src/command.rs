//! Commands of the host.

use std::process::{Command, Output, Stdio};

use crate::GuestError;

/// Runs `command` to its end and answers what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String, GuestError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| not_started(command, &e))?;
    checked(command, output)
}

/// The output of `command`, which must have succeeded.
fn checked(command: &Command, output: Output) -> Result<String, GuestError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(GuestError::Command {
        command: format!("{command:?}"),
        status: output.status.to_string(),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Runs `from` with its output into `into`, as a shell's pipe does.
pub(crate) fn pipe(from: &mut Command, into: &mut Command) -> Result<(), GuestError> {
    let mut source = from
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| not_started(from, &e))?;
    let stdin = source.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let sink = into.stdin(stdin).output();
    // Without a reader the source ends by itself.
    let status = source.wait().map_err(|e| not_started(from, &e))?;
    checked(into, sink.map_err(|e| not_started(into, &e))?)?;
    if status.success() {
        return Ok(());
    }
    Err(GuestError::Command {
        command: format!("{from:?}"),
        status: status.to_string(),
        message: String::new(),
    })
}

pub(crate) fn not_started(command: &Command, error: &std::io::Error) -> GuestError {
    GuestError::Command {
        command: format!("{command:?}"),
        status: "not started".into(),
        message: error.to_string(),
    }
}

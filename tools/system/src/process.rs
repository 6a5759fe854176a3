//! Programs that a test or task starts.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, ExitStatus, Output};
use std::thread;
use std::time::{Duration, Instant};

/// An unused TCP port.
///
/// # Errors
/// Those of the system.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Whether somebody listens at a TCP port; found out without connecting, as a server may take one client.
#[must_use]
pub fn listens(port: u16) -> bool {
    // Local port in hexadecimal and the state of a listener, in the tables of the kernel (proc_pid_net(5)).
    let suffix = format!(":{port:04X}");
    let is_there = |table: &&str| {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&suffix)) && words.nth(1) == Some("0A")
        })
    };
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(is_there)
}

/// Waits until a server listens at a TCP port, or has ended: the caller that waits for its end shows its output.
///
/// # Errors
/// Neither within `limit`; those of the system.
pub fn wait_for_port(server: &mut Child, port: u16, limit: Duration) -> io::Result<()> {
    let start = Instant::now();
    while !listens(port) && server.try_wait()?.is_none() {
        if start.elapsed() >= limit {
            let text = "the server does not listen";
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A command of a program that ends with the thread that starts it, however that ends.
#[must_use]
pub fn bound(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// A program that is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the end of a program, which is killed after `limit`; what it left in its pipes, which must hold it.
///
/// # Errors
/// Those of the system.
pub fn finish(mut program: Child, limit: Duration) -> io::Result<Output> {
    let start = Instant::now();
    while program.try_wait()?.is_none() {
        if start.elapsed() > limit {
            program.kill()?;
        }
        thread::sleep(Duration::from_millis(5));
    }
    program.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(port));
        drop(listener);
        // A child that another test forks holds it until it runs its program.
        let is_gone = |_| {
            thread::sleep(Duration::from_millis(5));
            !listens(port)
        };
        assert!((0..2000).any(is_gone));
    }

    #[test]
    fn a_running_program_goes_with_its_owner() {
        let mut program = Running::start(bound("sleep").arg("1000")).unwrap();
        let entry = format!("/proc/{}", program.0.id());
        assert!(program.ended().unwrap().is_none() && fs::metadata(&entry).is_ok());
        drop(program);
        assert!(fs::metadata(&entry).is_err());
        let mut short = Running::start(bound("sh").args(["-c", "exit 3"])).unwrap();
        let status = loop {
            if let Some(status) = short.ended().unwrap() {
                break status;
            }
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(3));
    }
}

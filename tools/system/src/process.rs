//! Programs that a test starts.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Output};
use std::thread;
use std::time::{Duration, Instant};

/// A TCP port that nobody uses.
///
/// # Errors
/// Those of the system.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
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

//! A guest that runs.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::GuestError;
use crate::console::{Console, Miss};

/// The line with the exit status of the script.
const EXIT: &str = "ferroce-guest: exit ";

/// How long QEMU may take to end when the guest is done.
const POWEROFF: Duration = Duration::from_secs(30);

/// A running guest. Dropped, its QEMU is killed and waited for.
pub struct Vm {
    child: Child,
    console: Console,
    /// What QEMU itself says.
    messages: Console,
    kernel_log: PathBuf,
    /// Where the next wait looks from.
    read: usize,
    _dir: TempDir,
}

/// How a guest ended.
#[derive(Clone, Debug)]
pub struct End {
    /// Exit status of the script.
    pub status: i32,
    /// What the script printed.
    pub console: String,
    /// What the kernel printed.
    pub kernel: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit status {} of the guest", self.status)?;
        f.write_str(&logs(&self.console, &self.kernel, ""))
    }
}

fn logs(console: &str, kernel: &str, qemu: &str) -> String {
    let part = |name: &str, text: &str| format!("--- {name}:\n{}\n", text.trim_end());
    part("console", console) + &part("kernel", kernel) + &part("qemu", qemu)
}

impl Vm {
    pub(crate) fn new(mut child: Child, dir: TempDir, kernel_log: PathBuf) -> Self {
        let console = child.stdout.take().map(Console::collect);
        let messages = child.stderr.take().map(Console::collect);
        Self {
            child,
            console: console.unwrap_or_default(),
            messages: messages.unwrap_or_default(),
            kernel_log,
            read: 0,
            _dir: dir,
        }
    }

    /// Waits until the script prints a line that holds `marker`, behind the line of the last wait, and
    /// answers it.
    ///
    /// # Errors
    /// The limit passes, the script ends; both with all logs.
    pub fn wait_for(&mut self, marker: &str, limit: Duration) -> Result<String, GuestError> {
        let start = Instant::now();
        loop {
            if let Some(line) = self.look(marker, Duration::from_millis(200))? {
                return Ok(line);
            }
            if start.elapsed() > limit {
                return Err(GuestError::Late {
                    marker: marker.into(),
                    limit,
                    logs: self.logs(),
                });
            }
        }
    }

    /// As [`wait_for`](Self::wait_for), but `None` at once if the script has not printed it yet.
    ///
    /// # Errors
    /// The script has ended, with all logs.
    pub fn poll_for(&mut self, marker: &str) -> Result<Option<String>, GuestError> {
        self.look(marker, Duration::ZERO)
    }

    fn look(&mut self, marker: &str, wait: Duration) -> Result<Option<String>, GuestError> {
        match self.console.wait(marker, self.read, wait) {
            Ok((line, end)) => {
                self.read = end;
                Ok(Some(line))
            }
            // A script that ended prints no marker: found out from its exit line, not from a limit.
            Err(Miss::Late) => match self.console.wait(EXIT, self.read, Duration::ZERO) {
                Ok((line, _)) => Err(self.ended(marker, line)),
                Err(_) => Ok(None),
            },
            Err(Miss::Closed) => {
                let status = self.wait_child()?;
                Err(self.ended(marker, status.to_string()))
            }
        }
    }

    /// Gives the script a line to read.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn send(&mut self, line: &str) -> Result<(), GuestError> {
        let text = format!("{line}\n");
        let sent = match &mut self.child.stdin {
            Some(stdin) => stdin.write_all(text.as_bytes()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|e| self.ended(line, e.to_string()))
    }

    /// Waits for the end of the script and of QEMU.
    ///
    /// # Errors
    /// The limit passes, the guest ends without an exit status (a panic of its kernel).
    pub fn finish(mut self, limit: Duration) -> Result<End, GuestError> {
        let line = self.wait_for(EXIT, limit)?;
        let status = line.trim_start_matches(EXIT).parse();
        let status = status.map_err(|_| self.ended(EXIT, line.clone()))?;
        self.wait_child()?;
        Ok(End {
            status,
            console: self.console(),
            kernel: self.kernel_log(),
        })
    }

    /// Process of its QEMU.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the script printed so far.
    #[must_use]
    pub fn console(&self) -> String {
        self.console.text()
    }

    /// What the kernel printed so far.
    #[must_use]
    pub fn kernel_log(&self) -> String {
        let bytes = std::fs::read(&self.kernel_log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn logs(&self) -> String {
        logs(&self.console(), &self.kernel_log(), &self.messages.text())
    }

    fn ended(&self, marker: &str, status: String) -> GuestError {
        GuestError::Ended {
            marker: marker.into(),
            status,
            logs: self.logs(),
        }
    }

    /// Waits for the end of QEMU, which is near: its console is closed or the guest is powering off.
    fn wait_child(&mut self) -> Result<ExitStatus, GuestError> {
        if !self.console.wait_closed(POWEROFF) {
            return Err(GuestError::Late {
                marker: "end of QEMU".into(),
                limit: POWEROFF,
                logs: self.logs(),
            });
        }
        // Its messages are whole before they are shown.
        self.messages.wait_closed(POWEROFF);
        let wait = self.child.wait();
        wait.map_err(|e| self.ended("end of QEMU", e.to_string()))
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

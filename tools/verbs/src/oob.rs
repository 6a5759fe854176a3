//! The connection over TCP by which both sides of a test find each other.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ferroce_driver::Backend;

use crate::device::Device;
use crate::program::BadInput;

/// Longest silence of a peer: a last resort, as a test may take long.
const SILENCE: Duration = Duration::from_secs(1800);
/// Time for a server to start.
const STARTING: Duration = Duration::from_secs(5);
/// Longest line.
const LINE: usize = 1 << 16;

/// A connection to the peer. While it waits, the card's neighbours are answered.
pub struct Oob {
    stream: TcpStream,
    silence: Duration,
}

impl Oob {
    /// Connects to a server, or without one waits for a client; `port` is that of the server.
    ///
    /// # Errors
    /// [`BadInput`] for a name without an address; there is no listener; the port is taken; Ctrl-C.
    pub fn open<B: Backend>(
        device: &mut Device<B>,
        server: Option<&str>,
        port: u16,
    ) -> Result<Self> {
        let stream = match server {
            Some(server) => {
                let known = (server, port).to_socket_addrs();
                let known = known.map_err(|e| BadInput(format!("server `{server}`: {e}")))?;
                let known: Vec<_> = known.collect();
                connect(device, &known).with_context(|| {
                    format!("couldn't connect to {server}:{port}; start the server first, without a host name")
                })?
            }
            None => accept(device, port)?,
        };
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        device.peer = Some(stream.try_clone()?);
        Ok(Self {
            stream,
            silence: SILENCE,
        })
    }

    /// Lets the peer be silent for `seconds` longer.
    pub fn allow(&mut self, seconds: f64) {
        self.silence += Duration::try_from_secs_f64(seconds).unwrap_or_default();
    }

    /// Sends `bytes`.
    ///
    /// # Errors
    /// The peer is gone; Ctrl-C.
    pub fn send<B: Backend>(&mut self, device: &mut Device<B>, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => device.idle()?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e).context("the peer closed the connection"),
            }
        }
        Ok(())
    }

    /// Receives as many bytes as `bytes` has.
    ///
    /// # Errors
    /// The peer is gone or silent; Ctrl-C.
    pub fn receive<B: Backend>(&mut self, device: &mut Device<B>, bytes: &mut [u8]) -> Result<()> {
        let start = Instant::now();
        let mut at = 0;
        while at < bytes.len() {
            match self.stream.read(&mut bytes[at..]) {
                Ok(0) => bail!("the peer closed the connection: see what it says"),
                Ok(n) => at += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => device.idle()?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e).context("the peer closed the connection"),
            }
            if start.elapsed() > self.silence {
                bail!("the peer said nothing for {} s", self.silence.as_secs());
            }
        }
        Ok(())
    }

    /// Says that this side is done, and returns when the peer is: it may need an answer of the card until then.
    ///
    /// # Errors
    /// Ctrl-C.
    pub fn finish<B: Backend>(self, device: &mut Device<B>) -> Result<()> {
        // A peer that is gone already is done.
        let _ = self.stream.shutdown(Shutdown::Write);
        let start = Instant::now();
        let mut stream = self.stream;
        loop {
            match stream.read(&mut [0; 64]) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => device.idle()?,
                Ok(n) if n > 0 => {}
                _ => return Ok(()),
            }
            if start.elapsed() > SILENCE {
                return Ok(());
            }
        }
    }

    /// Sends a line.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    pub fn send_line<B: Backend>(&mut self, device: &mut Device<B>, line: &str) -> Result<()> {
        self.send(device, format!("{line}\n").as_bytes())
    }

    /// Receives a line.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive); no line of text.
    pub fn receive_line<B: Backend>(&mut self, device: &mut Device<B>) -> Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.receive(device, &mut byte)?;
            match byte[0] {
                b'\n' => break,
                byte if line.len() < LINE => line.push(byte),
                _ => bail!(
                    "the peer sent more than {LINE} bytes without a line end: is it the same program?"
                ),
            }
        }
        String::from_utf8(line).context("the peer sent no text: is it the same program?")
    }

    /// Returns when the peer got here too.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive); the peer is elsewhere.
    pub fn meet<B: Backend>(&mut self, device: &mut Device<B>, place: &str) -> Result<()> {
        self.send_line(device, place)?;
        let there = self.receive_line(device)?;
        if there != place {
            bail!(
                "the peer says `{there}`, expected `{place}`: run the same version on both sides"
            );
        }
        Ok(())
    }
}

/// Connects to a server, which may be about to start.
fn connect<B: Backend>(device: &mut Device<B>, known: &[SocketAddr]) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(known) {
            Ok(stream) => return Ok(stream),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused && start.elapsed() < STARTING => {
                device.idle()?
            }
            Err(e) => return Err(e.into()),
        }
    }
}

fn accept<B: Backend>(device: &mut Device<B>, port: u16) -> Result<TcpStream> {
    let listener =
        TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)));
    let listener = listener
        .with_context(|| format!("couldn't listen to port {port}; choose another by -p"))?;
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(e) if e.kind() == ErrorKind::WouldBlock => device.idle()?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
}

//! What passed the ports, for Wireshark: a pcapng with one interface a card and simulated time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::scoreboard::icrc::Roce;
use crate::world::{Direction, Event, NodeId, Observer};

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u32 = crate::pcap::ETHERNET as u32;

const OPT_COMMENT: u16 = 1;
const OPT_SHB_APPLICATION: u16 = 4;
const OPT_IF_NAME: u16 = 2;
const OPT_IF_TSRESOL: u16 = 9;
const OPT_EPB_FLAGS: u16 = 2;

/// Writes a pcapng, little-endian, with time stamps in ns.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The block being made.
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Starts a capture.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self {
            out,
            block: Vec::new(),
            interfaces: 0,
        };
        writer.words(&[BYTE_ORDER, 1]);
        // Length of the section: unknown.
        writer.words(&[u32::MAX, u32::MAX]);
        writer.option(OPT_SHB_APPLICATION, b"Ferroce simulation");
        writer.finish(SECTION)?;
        Ok(writer)
    }

    /// Adds an interface and returns its number.
    ///
    /// # Errors
    /// Those of the file.
    pub fn interface(&mut self, name: &str) -> io::Result<u32> {
        // Snapshot length 0: frames are whole.
        self.words(&[ETHERNET, 0]);
        self.option(OPT_IF_NAME, name.as_bytes());
        self.option(OPT_IF_TSRESOL, &[9]);
        self.finish(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a frame that passed `interface` at `ns`.
    ///
    /// # Errors
    /// Those of the file.
    ///
    /// # Panics
    /// If there is no such interface, or the frame has 2^32 bytes or more.
    pub fn packet(
        &mut self,
        interface: u32,
        ns: u64,
        direction: Direction,
        frame: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        assert!(
            interface < self.interfaces,
            "no interface {interface}; add it first"
        );
        let len = u32::try_from(frame.len()).expect("frames are short");
        self.words(&[interface, (ns >> 32) as u32, ns as u32, len, len]);
        self.padded(frame);
        let flags: u32 = match direction {
            Direction::Receive => 1,
            Direction::Transmit => 2,
        };
        self.option(OPT_EPB_FLAGS, &flags.to_le_bytes());
        self.option(OPT_COMMENT, comment.as_bytes());
        self.finish(ENHANCED_PACKET)
    }

    /// Hands on what is buffered and returns the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn words(&mut self, words: &[u32]) {
        self.block
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Adds an option; a value of more than 65535 bytes is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.words(&[u32::from(code) | u32::from(len) << 16]);
        self.padded(&value[..usize::from(len)]);
    }

    fn finish(&mut self, kind: u32) -> io::Result<()> {
        // End of the options.
        self.words(&[0]);
        let len = (self.block.len() + 12) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&len.to_le_bytes())?;
        self.block.clear();
        Ok(())
    }
}

/// Captures the frames of a [`World`](crate::world::World).
///
/// Every frame has a comment with its card, direction, destination queue pair and cycle.
#[derive(Debug)]
pub struct Recorder<W> {
    writer: Option<Writer<W>>,
    /// Interface of each card seen.
    interfaces: Vec<(NodeId, u32)>,
    error: Option<io::Error>,
}

impl Recorder<BufWriter<File>> {
    /// Captures to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Write> Recorder<W> {
    /// Captures to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self {
            writer: Some(Writer::new(out)?),
            interfaces: Vec::new(),
            error: None,
        })
    }

    /// Ends the capture; frames seen later are ignored.
    ///
    /// # Errors
    /// The first error of the file since the start, once.
    pub fn finish(&mut self) -> io::Result<Option<W>> {
        let writer = self.writer.take();
        match self.error.take() {
            Some(error) => Err(error),
            None => writer.map(Writer::into_inner).transpose(),
        }
    }

    fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let known = self.interfaces.iter().find(|(node, _)| *node == event.node);
        let interface = match known {
            Some((_, interface)) => *interface,
            None => {
                let interface = writer.interface(event.name)?;
                self.interfaces.push((event.node, interface));
                interface
            }
        };
        let (name, direction, cycle) = (event.name, event.direction, event.cycle);
        let comment = match Roce::locate(event.frame) {
            Some(roce) => {
                let qp = roce.dest_qp(event.frame);
                format!("{name} {direction} QP {qp:#x} cycle {cycle}")
            }
            None => format!("{name} {direction} cycle {cycle}"),
        };
        writer.packet(interface, event.ns(), direction, event.frame, &comment)
    }
}

impl<W: Write> Observer for Recorder<W> {
    fn frame(&mut self, event: &Event<'_>) {
        if self.error.is_none() {
            self.error = self.write(event).err();
        }
    }
}

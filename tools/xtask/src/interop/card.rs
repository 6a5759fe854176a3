//! A card that is served by a thread of this process, and programs that run on it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use ferroce_sim::vfio_user::served::Served;
use ferroce_system::process::{Running, bound};

use super::matrix::Cell;
use crate::card;
use crate::demo::Share;
use crate::dut::Dut;

/// Addresses of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub mac: [u8; 6],
    pub ipv4: &'static str,
    pub ipv6: &'static str,
}

/// Those of our card.
pub(super) const OURS: Addresses = Addresses {
    mac: [2, 0, 0, 0, 0, 1],
    ipv4: "10.0.0.1",
    ipv6: "fd00::1",
};

/// Those of the peer.
pub(super) const THEIRS: Addresses = Addresses {
    mac: [2, 0, 0, 0, 0, 2],
    ipv4: "10.0.0.2",
    ipv6: "fd00::2",
};

impl Addresses {
    /// The MAC address with colons.
    pub(super) fn mac_text(&self) -> String {
        self.mac.map(|byte| format!("{byte:02x}")).join(":")
    }
}

/// What a card is plugged into, and where it is captured.
pub(super) struct Port<'a> {
    /// Socket of its wire.
    pub wire: &'a Path,
    /// Socket of the wire at the other end.
    pub peer: &'a Path,
    pub pcap: Option<&'a Path>,
    /// Share of the frames that come in and are lost, and the seed of that.
    pub loss: Share,
    pub seed: u64,
}

/// A card that is served.
pub(super) struct OurCard {
    socket: PathBuf,
    served: Served<anyhow::Error>,
}

impl OurCard {
    /// Serves a card at `socket`; it can be opened when this returns.
    ///
    /// # Errors
    /// The sockets or the capture cannot be had, the card not be built.
    pub(super) fn start(card: Dut, socket: &Path, port: &Port<'_>) -> Result<Self> {
        let args = card::Args {
            wire: Some(port.wire.to_owned()),
            peer: Some(port.peer.to_owned()),
            pcap: port.pcap.map(Path::to_owned),
            loss: port.loss,
            seed: port.seed,
            ..card::Args::new(socket, card)
        };
        let served = Served::start(move || args.server()).context("our card is not served")?;
        Ok(Self {
            socket: socket.to_owned(),
            served,
        })
    }

    /// Ends it; the capture is whole then.
    ///
    /// # Errors
    /// The card did what it may not, or could not be served any longer.
    pub(super) fn end(self) -> Result<()> {
        let failures = self.served.end().context("our card failed")?;
        ensure!(
            failures.is_empty(),
            "our card failed: {}",
            failures.join("; ")
        );
        Ok(())
    }

    /// Starts a program, one beside the socket or one of the system, on the card, with the verbs library in the folder `library`; what it says goes into the file
    /// `log`.
    ///
    /// # Errors
    /// It does not start, or the file cannot be written.
    pub(super) fn program(
        &self,
        cell: &Cell,
        words: &[String],
        at: &Addresses,
        library: &Path,
        log: &Path,
    ) -> Result<Running> {
        let (program, arguments) = words.split_first().context("no program is named")?;
        let cannot = || format!("cannot write {}", log.display());
        let file = File::create(log).with_context(cannot)?;
        let own = self.socket.with_file_name(program);
        let mut command = bound(if own.exists() {
            &own
        } else {
            Path::new(program)
        });
        command
            .args(arguments)
            .env("LD_LIBRARY_PATH", library)
            .env("FERROCE_DEVICE", format!("unix:{}", self.socket.display()))
            .env("FERROCE_MAC", at.mac_text())
            .env("FERROCE_IP", format!("{},{}", at.ipv4, at.ipv6))
            .env("FERROCE_MTU", cell.mtu.to_string())
            .env("FERROCE_LOG", "1")
            .stdin(Stdio::null())
            .stderr(file.try_clone().with_context(cannot)?)
            .stdout(file);
        if cell.loss {
            command.env("FERROCE_TIMEOUT", timeout(cell.card));
        }
        Running::start(&mut command).with_context(|| format!("cannot start {program}"))
    }
}

/// Code of the ACK timeout with loss. An engine's time is slow: 66 us are about a second of ours. The model's is ours, and
/// 0.27 s are long for a peer.
fn timeout(card: Dut) -> &'static str {
    match card {
        Dut::Model => "16",
        Dut::Rtl512 | Dut::Rtl64 => "4",
    }
}

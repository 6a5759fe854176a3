//! The card that a program works on, with its addresses.

use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ferroce_driver::{AnyBackend, open};
use ferroce_driver::{Backend, Context, Gid, Mac, Mtu, NeighbourConfig, Neighbours, ResolveError};

use crate::program::{BadInput, check_interrupt};

/// Card that is used unless `-d` names one.
const DEVICE_VARIABLE: &str = "FERROCE_DEVICE";

/// Which card, and the addresses it gets.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DeviceArgs {
    /// Card: PCI address of one bound to vfio-pci (0000:01:00.0), or unix:PATH of a simulated one [default:
    /// $FERROCE_DEVICE, or the only card bound to vfio-pci]
    #[arg(short = 'd', long = "ib-dev", value_name = "CARD")]
    pub device: Option<String>,
    /// Port of the card, which has one
    #[arg(
        short = 'i',
        long = "ib-port",
        value_name = "PORT",
        default_value = "1"
    )]
    pub ib_port: u8,
    /// MAC address of the card [default: made from the names of host and card]
    #[arg(long, value_name = "MAC", value_parser = open::parse_mac)]
    pub mac: Option<Mac>,
    /// Address of the card, GID 1 and up in the order given; GID 0 is the link-local address of the MAC
    #[arg(long = "ip", value_name = "ADDRESS")]
    pub ips: Vec<IpAddr>,
}

/// Reads an MTU in bytes.
///
/// # Errors
/// Which are possible.
pub fn parse_mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse().ok().and_then(Mtu::from_bytes);
    bytes.ok_or_else(|| "possible are 256, 512, 1024, 2048 and 4096".into())
}

/// The 802.1Q tag by which frames of service level `sl` have that priority: of VLAN 0, which is none; no tag for level 0.
#[must_use]
pub fn priority_tag(sl: u8) -> Option<u16> {
    (sl > 0).then_some(u16::from(sl) << 13)
}

/// An opened card with its addresses; it answers its neighbours while it waits.
pub struct Device<B: Backend> {
    /// Name it was opened by.
    pub name: String,
    /// Its time is not the host's.
    pub simulated: bool,
    /// The card.
    pub context: Context<B>,
    /// ARP, neighbour discovery, ping.
    pub neighbours: Neighbours<B>,
    /// Connection to the peer of a test: when it is closed, nothing more will come.
    pub peer: Option<TcpStream>,
}

impl DeviceArgs {
    /// Name of the card.
    ///
    /// # Errors
    /// [`BadInput`]: none is given, or a port that is not there.
    pub fn name(&self) -> Result<String> {
        if self.ib_port != 1 {
            let text = format!(
                "port {} was asked for, the card has port 1 only",
                self.ib_port
            );
            return Err(BadInput(text).into());
        }
        let given = self
            .device
            .clone()
            .or_else(|| std::env::var(DEVICE_VARIABLE).ok())
            .or_else(open::only_device);
        given.ok_or_else(|| {
            BadInput(format!(
                "no card, or more than one, is bound to vfio-pci here: name one by -d or in ${DEVICE_VARIABLE}, {}",
                open::FORMS
            ))
            .into()
        })
    }

    /// Opens the card and gives it its addresses.
    ///
    /// # Errors
    /// [`BadInput`] for names of no form; else why the card cannot be used.
    pub fn open(&self) -> Result<Device<AnyBackend>> {
        let name = self.name()?;
        let backend = match open::open(&name) {
            Err(e @ open::OpenDeviceError::Form { .. }) => {
                return Err(BadInput::of(e).into());
            }
            other => other?,
        };
        let simulated = backend.is_simulated();
        Device::new(&name, simulated, backend, self)
    }
}

impl<B: Backend> Device<B> {
    /// Opens the card behind `backend`.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn new(name: &str, simulated: bool, backend: B, args: &DeviceArgs) -> Result<Self> {
        let context = Context::open(backend).with_context(|| name.to_owned())?;
        let mac = args.mac.unwrap_or_else(|| open::default_mac(name));
        context.set_mac(mac)?;
        let gids =
            std::iter::once(Gid::link_local(mac)).chain(args.ips.iter().map(|&ip| ip.into()));
        for (index, gid) in gids.enumerate() {
            let index =
                u8::try_from(index).map_err(|_| BadInput("more than 255 addresses".into()))?;
            let set = context.set_gid(index, gid);
            set.map_err(|e| BadInput(format!("address {}: {e}", gid.ip())))?;
        }
        // A peer starts at about the same time: many short tries find it soonest.
        let config = NeighbourConfig {
            tries: 6,
            retry_ns: 50_000_000,
            ..NeighbourConfig::default()
        };
        let mut neighbours = Neighbours::new(&context, config).with_context(|| name.to_owned())?;
        neighbours.announce();
        Ok(Self {
            name: name.to_owned(),
            simulated,
            context,
            neighbours,
            peer: None,
        })
    }

    /// Entry `index` of the GID table.
    ///
    /// # Errors
    /// [`BadInput`]: it is empty.
    pub fn gid(&self, index: u8) -> Result<Gid> {
        let empty = || {
            format!(
                "GID {index} is empty: give the card addresses by --ip, or see ferroce-show-gids"
            )
        };
        Ok(self.context.gid(index).ok_or_else(|| BadInput(empty()))?)
    }

    /// Code of the ACK timeout: 67 ms; 4.3 s of a simulated card, whose peer may be slower than its time.
    #[must_use]
    pub fn ack_timeout(&self) -> u8 {
        if self.simulated { 20 } else { 14 }
    }

    /// Where a peer is.
    ///
    /// # Errors
    /// [`ResolveError`], or Ctrl-C.
    pub fn resolve(&mut self, sgid_index: u8, peer: Gid) -> Result<Mac> {
        loop {
            match self.neighbours.try_resolve(sgid_index, peer) {
                Ok(Some(mac)) => return Ok(mac),
                Ok(None) => self.idle()?,
                Err(e @ ResolveError::Path(_)) => return Err(BadInput::of(e).into()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// A turn of a wait for something other than the card: neighbours get their answers.
    ///
    /// # Errors
    /// Ctrl-C.
    pub fn idle(&mut self) -> Result<()> {
        check_interrupt()?;
        if self.neighbours.poll() == 0 {
            self.context.backend().relax();
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_levels_as_priorities() {
        let tags = [0, 1, 7].map(priority_tag);
        assert_eq!(tags, [None, Some(0x2000), Some(0xe000)]);
    }
}

//! Listeners and their addresses.

use std::net::IpAddr;

use super::Manager;
use crate::mad::{IpHeader, PortSpace};

/// Which addresses a listener without one takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 addresses.
    V4,
    /// IPv6 addresses.
    V6,
    /// Both.
    Both,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Names the listener in the events of its requests.
    pub key: u64,
    /// Its port space.
    pub space: PortSpace,
    /// Its port.
    pub port: u16,
    /// Its address; `None` for all of the family.
    pub address: Option<IpAddr>,
    /// Which addresses it takes when it has none.
    pub family: Family,
}

impl Listener {
    fn takes(&self, service: u64, to: IpAddr) -> bool {
        let is_of = match self.family {
            Family::V4 => to.is_ipv4(),
            Family::V6 => to.is_ipv6(),
            Family::Both => true,
        };
        self.space.port(service) == Some(self.port)
            && self.address.map_or(is_of, |address| address == to)
    }
}

impl Manager {
    /// Reports requests for a service from now on.
    pub fn listen(&mut self, listener: Listener) {
        self.listeners.push(listener);
    }

    /// And not any more.
    pub fn unlisten(&mut self, key: u64) {
        self.listeners.retain(|listener| listener.key != key);
    }

    /// The listener of a service; one bound to the address itself comes first.
    pub(super) fn listener(&self, service: u64, ends: &IpHeader) -> Option<&Listener> {
        let takes = self.listeners.iter().filter(|l| l.takes(service, ends.to));
        takes.max_by_key(|l| l.address.is_some())
    }
}

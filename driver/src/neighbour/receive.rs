//! What the driver does with a frame of the exception queue.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ferroce_proto::wire::eth::tag::vid;
use ferroce_proto::wire::{Gid, Mac, eth};

use super::parse::{self, Echo, Message};
use super::{BATCH, KEPT, Neighbours, Pong, emit, v6};
use crate::Backend;

/// Shortest time between two defences of an address, in ns (RFC 5227, DEFEND_INTERVAL).
const DEFEND_NS: u64 = 10_000_000_000;

impl<B: Backend> Neighbours<B> {
    pub(super) fn receive(&mut self, frame: &[u8]) {
        let (link, message) = match parse::parse(frame) {
            Ok((link, Some(message))) if vid(link.vlan) == vid(self.config.vlan) => (link, message),
            Ok(_) => return self.hand_to_bridge(frame),
            Err(parse::Malformed) => {
                self.counters.malformed += 1;
                return;
            }
        };
        let passes = match message {
            Message::Arp {
                request,
                sender,
                mac,
                target,
            } => self.receive_arp(request, (sender, mac), target),
            Message::Solicit { from, target } => self.receive_solicit(&link, from, target),
            Message::Advertise {
                target,
                mac,
                solicited,
                overrides,
            } => self.receive_advertise(target, mac, solicited, overrides),
            Message::Echo(echo) => self.receive_echo(&link, &echo),
        };
        if passes {
            self.hand_to_bridge(frame);
        }
    }

    /// Whether the frame is of interest to the bridge too; so the others.
    fn receive_arp(
        &mut self,
        request: bool,
        (sender, mac): (Ipv4Addr, Mac),
        target: Ipv4Addr,
    ) -> bool {
        if self.claims(sender.into(), mac) {
            return false;
        }
        let now = self.now();
        let ours = self.is_ours(target.into());
        if request && ours {
            if !sender.is_unspecified() {
                let waiting = self.cache.learn(v6(sender), mac, now);
                self.release(waiting, mac);
            }
            let link = self.link(mac);
            self.counters.answered += 1;
            self.send(emit::arp(&link, false, target, (sender, mac)));
            return false;
        }
        if !request && ours {
            let overrides = self.cache.is_asked(v6(sender));
            let waiting = self.cache.answered(v6(sender), Some(mac), overrides, now);
            self.confirmed(waiting, mac);
        } else if !sender.is_unspecified() {
            let waiting = self.cache.moved(v6(sender), mac, now);
            self.release(waiting, mac);
        }
        true
    }

    fn receive_solicit(
        &mut self,
        link: &eth::Repr,
        from: Option<(Ipv6Addr, Option<Mac>)>,
        target: Ipv6Addr,
    ) -> bool {
        if !self.is_ours(target.into()) {
            return true;
        }
        let to = match from {
            Some((ip, mac)) if self.claims(ip.into(), mac.unwrap_or(link.src)) => return false,
            Some((ip, mac)) => {
                if let Some(mac) = mac {
                    let waiting = self.cache.learn(ip, mac, self.now());
                    self.release(waiting, mac);
                }
                Some((ip, mac.unwrap_or(link.src)))
            }
            None => None,
        };
        let link = self.link(link.src);
        self.counters.answered += 1;
        self.send(emit::advertise(link, target, to));
        false
    }

    fn receive_advertise(
        &mut self,
        target: Ipv6Addr,
        mac: Option<Mac>,
        solicited: bool,
        overrides: bool,
    ) -> bool {
        if self.is_ours(target.into()) {
            if let Some(mac) = mac {
                self.claims(target.into(), mac);
            }
            return false;
        }
        let now = self.now();
        if solicited {
            let waiting = self.cache.answered(target, mac, overrides, now);
            let known = self.cache.get(target).and_then(|(mac, _)| mac);
            self.confirmed(waiting, known.unwrap_or_default());
        } else if let Some(mac) = mac.filter(|_| overrides) {
            let waiting = self.cache.moved(target, mac, now);
            self.release(waiting, mac);
        }
        true
    }

    fn receive_echo(&mut self, link: &eth::Repr, echo: &Echo<'_>) -> bool {
        if !self.is_ours(echo.dst) || link.dst != self.context.mac() {
            return true;
        }
        if !parse::is_host(echo.src) || self.is_ours(echo.src) {
            self.counters.malformed += 1;
            return false;
        }
        if !echo.request {
            if self.pongs.len() < KEPT {
                self.pongs.push_back(Pong {
                    from: Gid::from(echo.src),
                    ident: echo.ident,
                    seq: echo.seq,
                    data: echo.data.to_vec(),
                });
            }
            return true;
        }
        let reply = Echo {
            request: false,
            src: echo.dst,
            dst: echo.src,
            ..*echo
        };
        let link = self.link(link.src);
        self.counters.echoes += 1;
        self.send(emit::echo(&link, &reply));
        false
    }

    /// Whether another station claims an address of the card: the card then announces itself, at a limited rate.
    fn claims(&mut self, ip: IpAddr, mac: Mac) -> bool {
        if mac == self.context.mac() {
            // Our own frame, come back.
            return self.is_ours(ip);
        }
        if !self.is_ours(ip) {
            return false;
        }
        self.counters.conflicts += 1;
        let now = self.now();
        if self.defended.is_none_or(|at| now - at >= DEFEND_NS) {
            tracing::warn!("{mac} claims {ip}, an address of this card");
            self.defended = Some(now);
            self.announce_one(ip);
        }
        true
    }

    fn confirmed(&mut self, waiting: Option<VecDeque<Vec<u8>>>, mac: Mac) {
        match waiting {
            Some(waiting) => {
                self.counters.confirmed += 1;
                self.release(waiting, mac);
            }
            None => self.counters.ignored += 1,
        }
    }

    /// Sends what waited for a neighbour.
    fn release(&mut self, waiting: VecDeque<Vec<u8>>, mac: Mac) {
        for mut frame in waiting {
            frame[..mac.0.len()].copy_from_slice(&mac.0);
            self.send(frame);
        }
    }

    fn hand_to_bridge(&mut self, frame: &[u8]) {
        let counter = match self.bridge.as_mut().map(|bridge| bridge.write(frame)) {
            None => &mut self.counters.unclaimed,
            Some(true) => &mut self.counters.to_bridge,
            Some(false) => &mut self.counters.dropped,
        };
        *counter += 1;
    }

    /// Sends what the bridge has, as far as the card takes it; returns the frames.
    pub(super) fn take_from_bridge(&mut self) -> usize {
        let Some(bridge) = &mut self.bridge else {
            return 0;
        };
        let mut taken = 0;
        while taken < BATCH && self.outbox.is_empty() {
            let Some(len) = bridge.read(&mut self.buffer) else {
                break;
            };
            taken += 1;
            match self.queue.send(&self.buffer[..len]) {
                Ok(()) => self.counters.from_bridge += 1,
                Err(crate::SendError::Full { .. }) => {
                    self.counters.from_bridge += 1;
                    self.outbox.push_back(self.buffer[..len].to_vec());
                }
                Err(_) => self.counters.dropped += 1,
            }
        }
        taken
    }
}

//! A fabric put together, run, and what it shows.

use std::sync::Arc;

use super::buffer::{self, Pfc, Xoff};
use super::flow::card::{CardHost, Make};
use super::flow::paced::{self, Paced};
use super::flow::{Flow, HostReport, Received, Sent};
use super::frame::dscp_classes;
use super::marking::Red;
use super::net::{Build, Outcome, Plan};
use super::routes::{Routes, Spread};
use super::switch::{self, Switch};
use super::topology::Topology;
use super::trace::Window;
use super::{CLASSES, Line, Time, US, host_mac, scenario};
use crate::random::Chance;

/// Class of data.
pub const DATA_CLASS: usize = 3;

/// What a fabric is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The wires between the nodes.
    pub topology: Topology,
    /// All wires.
    pub line: Line,
    /// All switches; each has a seed of its own.
    pub switch: switch::Config,
    /// How frames choose among ways.
    pub spread: Spread,
    /// Every wire loses frames.
    pub loss: Chance,
    /// Seed of all that is random.
    pub seed: u64,
    /// Threads to run on; the result does not depend on it.
    pub threads: usize,
    /// When the run ends at the latest.
    pub until: Time,
}

impl Setup {
    /// Switches as the recorded simulations have them: ECN at 400 to 1600 kB and 20 % at 100 Gb/s, 32 MiB shared; CNPs go first.
    #[must_use]
    pub fn new(topology: Topology, line: Line, until: Time) -> Self {
        let mut red = [None; CLASSES];
        red[DATA_CLASS] = Some(Red::for_rate(line.mbps));
        Self {
            topology,
            line,
            switch: switch::Config {
                classes: dscp_classes(),
                strict: 0b1100_0000,
                red,
                buffer: buffer::Config {
                    shared: 32 << 20,
                    pfc: None,
                    lossy_shift: 0,
                },
                trim: false,
                window: Window::default(),
                seed: 0,
            },
            spread: Spread::Ecmp,
            loss: Chance::NEVER,
            seed: 1,
            threads: 1,
            until,
        }
    }

    /// With PFC for the class of data: XOFF at an eighth of what is free, XON 3 KiB lower, and headroom for the wire.
    #[must_use]
    pub fn with_pfc(mut self) -> Self {
        self.switch.buffer.pfc = Some(Pfc {
            classes: 1 << DATA_CLASS,
            xoff: Xoff::Shift(3),
            xon_gap: 3 << 10,
            headroom: headroom(&self.line),
            quanta: 0xffff,
        });
        self
    }

    /// Scenario `number` of the recorded simulations: their wires (1048 bytes in 83 ns), marks and PFC, a CNP for each mark. Depths
    /// count from `from` on.
    ///
    /// # Panics
    /// If there is no such scenario.
    #[must_use]
    pub fn recorded(
        number: usize,
        control: paced::Control,
        from: Time,
        until: Time,
    ) -> (Self, Vec<Flow>, paced::Config) {
        let (hosts, flows, time) = scenario::recorded(number);
        let line = Line {
            mbps: 101_000,
            delay: US,
            overhead: 2,
        };
        let mut setup = Self::new(Topology::star(hosts), line, until.min(time)).with_pfc();
        setup.switch.red[DATA_CLASS] = Some(Red::for_rate(100_000));
        setup.switch.window.from = from;
        let config = paced::Config {
            payload: 988,
            control,
            cnp_interval: 0,
            ..paced::Config::default()
        };
        (setup, flows, config)
    }

    /// Runs flows between hosts without cards.
    #[must_use]
    pub fn run_paced(&self, flows: &Arc<Vec<Flow>>, config: &paced::Config) -> Results {
        let (config, line) = (*config, self.line);
        self.run(flows, |host| {
            let flows = Arc::clone(flows);
            Box::new(move || Box::new(Paced::new(host, &flows, &config, line)))
        })
    }

    /// Runs flows between hosts with cards, which have the control and the interval of CNPs of `config`.
    ///
    /// # Panics
    /// If the control is none that a card has, or a host does.
    #[must_use]
    pub fn run_cards(
        &self,
        flows: &Arc<Vec<Flow>>,
        make: &Make,
        config: &paced::Config,
    ) -> Results {
        let (config, line, interval) = (*config, self.line, self.switch.window.interval);
        self.run(flows, |host| {
            let (flows, make) = (Arc::clone(flows), Arc::clone(make));
            Box::new(move || Box::new(CardHost::new(host, &flows, &make, &config, line, interval)))
        })
    }

    /// Runs with the hosts that `host` builds.
    ///
    /// # Panics
    /// If a host does.
    #[must_use]
    pub fn run(&self, flows: &Arc<Vec<Flow>>, host: impl Fn(usize) -> Build) -> Results {
        let Topology {
            hosts,
            switches,
            links,
        } = &self.topology;
        let mut nodes: Vec<Build> = (0..*hosts).map(host).collect();
        let routes = self.topology.routes();
        for (index, (&ports, routes)) in switches.iter().zip(routes).enumerate() {
            let seed = self.seed << 16 | index as u64;
            let routes = Routes::new(routes, self.spread, seed);
            let config = switch::Config {
                seed,
                ..self.switch.clone()
            };
            let lines = vec![self.line; ports];
            let mac = host_mac(*hosts + index);
            nodes.push(Box::new(move || {
                Box::new(Switch::new(config, lines, routes, mac))
            }));
        }
        let mut plan = Plan::new(nodes);
        for (index, ends) in links.iter().enumerate() {
            let seed = self.seed << 32 | index as u64;
            plan.link(*ends, &self.line, self.loss, seed);
        }
        let ran = plan.run(self.threads, self.until);
        let mut results = Results {
            now: ran.now,
            lost: ran.lost,
            flying: ran.flying,
            sent: vec![None; flows.len()],
            received: vec![None; flows.len()],
            hosts: Vec::new(),
            switches: Vec::new(),
        };
        for outcome in ran.outcomes {
            match outcome {
                Outcome::Switch(report) => results.switches.push(report),
                Outcome::Host(report) => results.add(report),
            }
        }
        results
    }
}

/// Headroom of a port: what comes after a pause was decided on. The frame that the pause waits for, the pause, both ways of the wire,
/// the frame that its receiver has begun, and as much again for the time to react (docs/fabric.md).
#[must_use]
pub fn headroom(line: &Line) -> u64 {
    const FRAME: u64 = 4200;
    const REACTION: u64 = 3840;
    2 * FRAME + REACTION + line.bytes_in(2 * line.delay)
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// When it ended.
    pub now: Time,
    /// Frames that wires lost.
    pub lost: u64,
    /// Frames on their way at the end.
    pub flying: u64,
    sent: Vec<Option<Sent>>,
    received: Vec<Option<Received>>,
    /// What the hosts did; flows have been taken out.
    pub hosts: Vec<HostReport>,
    /// What the switches did.
    pub switches: Vec<switch::Report>,
}

impl Results {
    fn add(&mut self, mut report: HostReport) {
        for sent in report.sent.drain(..) {
            let id = sent.flow;
            // of a READ one end knows the times, the other the packets
            self.sent[id] = Some(match self.sent[id].take() {
                None => sent,
                Some(other) => other.with(sent),
            });
        }
        for received in report.received.drain(..) {
            let id = received.flow;
            self.received[id] = Some(received);
        }
        self.hosts.push(report);
    }

    /// A flow at its sender.
    ///
    /// # Panics
    /// If there is no such flow.
    #[must_use]
    pub fn sent(&self, id: usize) -> &Sent {
        self.sent[id].as_ref().expect("a host sends it")
    }

    /// A flow at its receiver.
    ///
    /// # Panics
    /// If there is no such flow.
    #[must_use]
    pub fn received(&self, id: usize) -> &Received {
        self.received[id].as_ref().expect("a host receives it")
    }

    /// From the start of a flow until its last acknowledgement.
    #[must_use]
    pub fn completion(&self, id: usize) -> Option<Time> {
        let sent = self.sent(id);
        Some(sent.finished? - sent.started?)
    }

    /// Sum over the switches.
    pub fn switches(&self, what: impl Fn(&switch::Report) -> u64) -> u64 {
        self.switches.iter().map(what).sum()
    }

    /// Every frame is somewhere: what hosts sent is what they received, and what was dropped, lost, or is on its way.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let sent: u64 = self.hosts.iter().map(|host| host.frames_out).sum();
        let came: u64 = self.hosts.iter().map(|host| host.frames_in).sum();
        let gone = self.switches(|switch| switch.dropped + switch.strays + switch.waiting);
        sent == came + gone + self.lost + self.flying
    }
}

/// Jain's index of fairness: 1 if all are equal, 1/n if one has all.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

/// The value that this share of `values` is not above; 0 of none.
#[must_use]
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share).ceil() as usize;
    values.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_and_quantiles() {
        assert!((jain(&[5.0; 7]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        let mut values: Vec<_> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.5), 50.0);
        assert_eq!(quantile(&mut values, 0.99), 99.0);
        assert_eq!(quantile(&mut values, 1.0), 100.0);
    }
}

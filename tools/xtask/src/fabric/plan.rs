//! From the command line to a fabric.

use std::sync::Arc;

use anyhow::{Result, ensure};
use ferroce_sim::fabric::flow::card::FLOWS;
use ferroce_sim::fabric::flow::paced::{self, Control};
use ferroce_sim::fabric::flow::reaction::RecordedParams;
use ferroce_sim::fabric::flow::{ENDLESS, Flow, Start};
use ferroce_sim::fabric::lab::Setup;
use ferroce_sim::fabric::routes::Spread;
use ferroce_sim::fabric::topology::Topology;
use ferroce_sim::fabric::{Line, MS, NS, Time, US, scenario};
use ferroce_sim::model::congestion::{Params, SwiftParams};
use ferroce_system::pool;

use super::{Args, Control as Cc, Dut, Scenario, Shape};
use crate::Usage;

/// Most hosts of a fabric.
const HOSTS: usize = 1024;
/// For how long a storage mix takes new flows if nothing else is asked for.
const MIX: Time = 5 * MS;

/// A run to be.
pub(super) struct Plan {
    pub(super) setup: Setup,
    pub(super) flows: Arc<Vec<Flow>>,
    pub(super) config: paced::Config,
    /// The time that steady figures are of.
    pub(super) window: (Time, Time),
    /// From when on convergence counts.
    pub(super) settles: Time,
    /// The last flow is a victim.
    pub(super) has_victim: bool,
    /// Flows come at random times: goodput is that of the window.
    pub(super) is_mix: bool,
}

impl Plan {
    /// Flows to the host that the first one goes to, which share its port.
    pub(super) fn of_first_port(&self) -> impl Iterator<Item = usize> {
        let flows = self.flows.iter().enumerate();
        let shared = flows.filter(|(_, flow)| flow.dst == self.flows[0].dst);
        shared.map(|(id, _)| id)
    }

    /// Whether flows go on until the end.
    pub(super) fn is_endless(&self) -> bool {
        self.flows.iter().any(|flow| flow.bytes == ENDLESS)
    }
}

fn usage(text: String) -> anyhow::Error {
    Usage(text).into()
}

/// What the command line asks for.
///
/// # Errors
/// [`Usage`].
pub(super) fn plan(args: &Args) -> Result<Plan> {
    let mut plan = match args.scenario.recorded() {
        Some(number) => recorded(args, number)?,
        None => of_hosts(args)?,
    };
    let cards = args.dut != Dut::Paced;
    if cards {
        ensure!(
            !plan.is_endless(),
            usage("s1 to s5 have flows without end; --dut paced has those".into())
        );
        ensure!(
            !matches!(args.cc, Cc::Vendor | Cc::Paper | Cc::Stock),
            usage(
                "--cc of a card is none, dcqcn, dcqcn-vendor or swift: the others are for --dut paced"
                    .into()
            )
        );
        ensure!(
            args.cc != Cc::Swift || !args.read,
            usage("--cc swift bounds what a card writes; leave --read out".into())
        );
        ensure!(
            args.cnp.is_none_or(|us| us <= u64::from(u16::MAX)),
            usage("--cnp of a card is 0 to 65535 us".into())
        );
        let count = plan.flows.len();
        ensure!(
            count <= FLOWS,
            usage(format!(
                "{count} flows are more than the {FLOWS} queue pairs of a card; ask for fewer --hosts or --time"
            ))
        );
    }
    ensure!(
        cards || !args.read,
        usage("--read is of cards: add --dut model, rtl64 or rtl512".into())
    );
    ensure!(
        !args.read
            || plan
                .flows
                .iter()
                .all(|flow| matches!(flow.start, Start::At(_))),
        usage("--read: ring and tree wait for what was sent before; leave it out".into())
    );
    ensure!(
        args.load.is_none() || plan.is_mix,
        usage("--load is of web-search and hadoop; leave it out".into())
    );
    ensure!(
        args.cnp.is_none() || !matches!(args.cc, Cc::None | Cc::Swift),
        usage("--cnp is of flows that obey CNPs: add --cc dcqcn, dcqcn-vendor, vendor, paper or stock".into())
    );
    ensure!(
        !args.spray || args.topology != Shape::Star,
        usage("--spray: a star has one way; add --topology leaf-spine or fat-tree".into())
    );
    ensure!(
        args.beside.is_none() || args.svg.is_some() || args.html.is_some(),
        usage("--beside is drawn: add --svg or --html".into())
    );
    plan.config.reads = args.read;
    let setup = &mut plan.setup;
    setup.seed = args.seed;
    setup.loss = args.loss.chance();
    setup.threads = args
        .threads
        .map_or_else(pool::processors, |threads| threads as usize);
    setup.switch.trim = args.trim;
    setup.switch.buffer.shared = args.buffer << 10;
    if args.trim {
        // What is cut needs room that the others do not take.
        setup.switch.buffer.lossy_shift = 1;
    }
    if args.spray {
        setup.spread = Spread::Spray;
    }
    if args.pfc {
        *setup = setup.clone().with_pfc();
    }
    plan.config.control = control(args.cc, args.rate * 1000);
    if let Some(cnp) = args.cnp {
        plan.config.cnp_interval = cnp * US;
    }
    Ok(plan)
}

fn control(cc: Cc, line: u32) -> Control {
    let recorded = |params: RecordedParams| {
        Control::Recorded(RecordedParams {
            line: u64::from(line) * 1_000_000,
            ..params
        })
    };
    match cc {
        Cc::None => Control::None,
        Cc::Dcqcn => Control::Dcqcn {
            params: Params::default(),
            line,
        },
        Cc::DcqcnVendor => Control::Dcqcn {
            params: Params {
                dce_tcp_g: 1020,
                rpg_byte_reset: 0,
                rpg_ai_rate: 20,
                rpg_hai_rate: 200,
                rpg_min_rate: 1000,
                alpha_first: true,
                ..Params::default()
            },
            line,
        },
        Cc::Vendor => recorded(RecordedParams::VENDOR),
        Cc::Paper => recorded(RecordedParams::PAPER),
        Cc::Stock => recorded(RecordedParams::STOCK),
        Cc::Swift => Control::Swift(SwiftParams {
            log_packet: 10,
            ..SwiftParams::default()
        }),
    }
}

fn recorded(args: &Args, number: usize) -> Result<Plan> {
    ensure!(
        args.hosts.is_none() && args.bytes.is_none() && args.topology == Shape::Star,
        usage("s1 to s5 have hosts, bytes and topology of their own; leave --hosts, --bytes and --topology out".into())
    );
    ensure!(
        args.rate == 100 && args.delay == 1000 && args.stagger == 0,
        usage(
            "s1 to s5 have starts of their own and wires of 100 Gb/s and 1000 ns; leave --stagger, --rate and --delay out"
                .into()
        )
    );
    let (_, _, whole) = scenario::recorded(number);
    let end = args.time.map_or(whole, |us| us * US);
    let (from, to) = match number {
        1 => (0, 10 * MS),
        2 => (20 * MS, 30 * MS),
        3 => (17 * MS, 20 * MS),
        _ => (10 * MS, 20 * MS),
    };
    let (mut setup, flows, config) = Setup::recorded(number, Control::None, from, end);
    let window = if to <= end {
        (from, to)
    } else {
        whole_intervals(&config, "s1 to s5 count", (end / 2, end))?
    };
    setup.switch.window.from = window.0;
    setup.until = end;
    Ok(Plan {
        setup,
        flows: Arc::new(flows),
        config,
        window,
        settles: match number {
            2 => 10 * MS,
            3 => 15 * MS,
            _ => 0,
        },
        has_victim: number == 5,
        is_mix: false,
    })
}

fn of_hosts(args: &Args) -> Result<Plan> {
    let hosts = args.hosts.unwrap_or(16);
    let bytes = args.bytes.unwrap_or(2_000_000);
    let least = match args.scenario {
        Scenario::Incast | Scenario::Victim => 1,
        _ => 2,
    };
    ensure!(
        (least..HOSTS).contains(&hosts),
        usage(format!(
            "--hosts is {hosts}: {least} to {} are possible",
            HOSTS - 1
        ))
    );
    ensure!(
        (1..=1 << 40).contains(&bytes),
        usage(format!("--bytes is {bytes}: 1 to 2^40 are possible"))
    );
    let is_mix = matches!(args.scenario, Scenario::WebSearch | Scenario::Hadoop);
    ensure!(
        !(is_mix && args.bytes.is_some()),
        usage("the sizes of a storage mix are drawn; leave --bytes out".into())
    );
    let line = Line::ethernet(args.rate, args.delay);
    let time = args.time.map(|us| us * US);
    let mix = |sizes| {
        let load = f64::from(args.load.unwrap_or(50)) / 100.0;
        scenario::mix(
            sizes,
            hosts,
            line.mbps,
            load,
            time.unwrap_or(MIX),
            args.seed,
        )
    };
    let mut flows = match args.scenario {
        Scenario::Incast => scenario::incast(hosts, bytes),
        Scenario::Victim => scenario::victim(hosts, bytes),
        Scenario::Permutation => scenario::permutation(hosts, bytes, args.seed),
        Scenario::AllToAll => scenario::all_to_all(hosts, bytes),
        Scenario::Ring => scenario::ring_allreduce(hosts, bytes),
        Scenario::Tree => scenario::tree_allreduce(hosts, bytes),
        Scenario::WebSearch => mix(scenario::WEB_SEARCH),
        _ => mix(scenario::HADOOP),
    };
    scenario::stagger(&mut flows, args.stagger * NS, args.seed);
    ensure!(
        !flows.is_empty(),
        usage("no flow comes in this time; give a longer --time".into())
    );
    let last = flows.iter().map(|flow| flow.src.max(flow.dst)).max();
    let needed = last.unwrap_or(0) + 1;
    let topology = topology(args.topology, needed)?;
    let end = match (is_mix, time) {
        (false, Some(time)) => time,
        _ => 1000 * MS,
    };
    let mut setup = Setup::new(topology, line, end);
    setup.switch.window.interval = 20 * US;
    let config = paced::Config {
        interval: 20 * US,
        ..paced::Config::default()
    };
    let window = if is_mix {
        // flows come, and have come for a while
        let time = time.unwrap_or(MIX);
        whole_intervals(&config, "a storage mix counts", (time / 4, time))?
    } else {
        (if args.cc == Cc::None { 0 } else { 2 * MS }, end)
    };
    setup.switch.window.from = window.0;
    setup.switch.window.until = window.1;
    Ok(Plan {
        setup,
        flows: Arc::new(flows),
        config,
        window,
        settles: 0,
        has_victim: args.scenario == Scenario::Victim,
        is_mix,
    })
}

/// The whole intervals of a time, in which flows are counted.
fn whole_intervals(
    config: &paced::Config,
    scenario: &str,
    (from, to): (Time, Time),
) -> Result<(Time, Time)> {
    let [from, to] = [from, to].map(|time| time / config.interval * config.interval);
    ensure!(
        from < to,
        usage(format!(
            "--time: {scenario} in intervals of {} us; give that at least",
            config.interval / US
        ))
    );
    Ok((from, to))
}

fn topology(shape: Shape, hosts: usize) -> Result<Topology> {
    Ok(match shape {
        Shape::Star => Topology::star(hosts),
        Shape::LeafSpine => Topology::leaf_spine(hosts.div_ceil(8), 8, 4),
        Shape::FatTree => {
            let k = (2..=16).step_by(2).find(|k| k * k * k / 4 >= hosts);
            let k = k.ok_or_else(|| {
                usage(format!(
                    "{hosts} hosts do not fit: a fat-tree of 16 ports has 1024"
                ))
            })?;
            Topology::fat_tree(k)
        }
    })
}

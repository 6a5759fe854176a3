//! What a run came to, in figures.

use ferroce_proto::wire::{bth, eth, icrc, ipv4, udp};
use ferroce_sim::fabric::flow::{ENDLESS, Start};
use ferroce_sim::fabric::lab::{Results, jain, quantile};
use ferroce_sim::fabric::switch;
use ferroce_sim::fabric::trace::Trace;
use ferroce_sim::fabric::{MS, Time, US};

use super::plan::Plan;
use crate::report::Figure;

/// Bytes of a frame beyond the payload of a packet: Ethernet, IPv4, UDP, BTH, ICRC.
const HEADERS: usize = eth::LEN + ipv4::LEN + udp::LEN + bth::LEN + icrc::LEN;

/// The port with the deepest queue, by its mean, without one by its peak: its switch, its number, its record.
pub(super) fn bottleneck(results: &Results) -> Option<(usize, usize, &Trace)> {
    let switches = results.switches.iter().enumerate();
    let ports = switches.flat_map(|(switch, report)| {
        let traces = report.traces.iter().enumerate();
        traces.map(move |(port, trace)| (switch, port, trace))
    });
    ports.max_by(|(_, _, a), (_, _, b)| {
        let means = a.mean().total_cmp(&b.mean());
        means.then(a.peak().cmp(&b.peak()))
    })
}

/// Whether the run reached the time that means of a queue are of.
fn has_means(plan: &Plan, results: &Results) -> bool {
    results.now > plan.setup.switch.window.from
}

/// Why figures are left out, if some are.
pub(super) fn left_out(plan: &Plan, results: &Results) -> Option<String> {
    let (from, end) = (plan.setup.switch.window.from / US, results.now / US);
    (!has_means(plan, results)).then(|| {
        format!(
            "queue mean, p99                        - (of the time from {from} us on; the run ended after {end} us)"
        )
    })
}

/// The figures, and what is wrong with the run.
pub(super) fn figures(plan: &Plan, results: &Results) -> (Vec<Figure>, Vec<String>) {
    let mut wrong = Vec::new();
    if !results.is_conserved() {
        wrong.push("frames have come from nowhere or gone there".to_owned());
    }
    for host in &results.hosts {
        wrong.extend(host.failures.iter().cloned());
    }
    let count = plan.flows.len();
    let late = (0..count)
        .filter(|&id| plan.flows[id].bytes != ENDLESS && results.received(id).finished.is_none());
    let late = late.count();
    if late > 0 {
        // a second is the longest run
        let advice = if plan.setup.until < 1000 * MS {
            "a longer --time"
        } else {
            "fewer bytes, a smaller --load or a higher --rate"
        };
        wrong.push(format!(
            "{late} of {count} flows did not arrive by {} us; give {advice}",
            results.now / US
        ));
    }
    let mut figures = vec![
        Figure::new("hosts", plan.setup.topology.hosts as u64, "hosts"),
        Figure::new("flows", count as u64, "flows"),
        Figure::new("time", results.now as f64 / US as f64, "us"),
    ];
    if plan.is_endless() {
        steady(plan, results, &mut figures);
    } else {
        completions(plan, results, &mut figures);
    }
    queue(plan, results, &mut figures);
    counts(plan, results, &mut figures);
    (figures, wrong)
}

/// Flows that go on: rates of the window.
fn steady(plan: &Plan, results: &Results, figures: &mut Vec<Figure>) {
    let (from, to) = plan.window;
    let seconds = (to - from) as f64 / 1e12;
    let ids = 0..plan.flows.len();
    let sums: Vec<_> = ids
        .map(|id| results.sent(id).series.sum(from, to))
        .collect();
    let gbps = |bytes: u64| bytes as f64 * 8e-9 / seconds;
    for (id, sum) in sums.iter().enumerate() {
        figures.push(Figure::new(
            format!("flow_{id}_rate"),
            gbps(sum.bytes),
            "Gb/s",
        ));
    }
    let goes_on = |id: &usize| {
        let flow = &plan.flows[*id];
        matches!(flow.start, Start::At(start) if start <= from)
            && flow.stop.is_none_or(|stop| stop >= to)
    };
    let sharing = plan.of_first_port().filter(goes_on);
    figures.extend(fairness(sharing.map(|id| gbps(sums[id].bytes))));
    let line = f64::from(plan.setup.line.mbps) / 1000.0;
    // what came over the port, with what the wire spends on a packet
    let wire = plan.setup.line.overhead as usize + plan.config.payload + HEADERS;
    let wire = wire as f64 / plan.config.payload as f64;
    let ids = plan.of_first_port();
    let came = ids.map(|id| results.received(id).series.sum(from, to).bytes);
    let used = gbps(came.sum()) * wire / line * 100.0;
    figures.push(Figure::new("bottleneck_utilisation", used, "percent"));
    for share in [25, 10] {
        if let Some(time) = converged(plan, results, f64::from(share) / 100.0) {
            let name = format!("within_{share}_percent_of_fair_after");
            figures.push(Figure::new(name, time as f64 / MS as f64, "ms"));
        }
    }
    let rate = |what: u32| f64::from(what) / seconds;
    let cnps: u32 = sums.iter().map(|sum| sum.cnps).sum();
    let decreases: u32 = sums.iter().map(|sum| sum.decreases).sum();
    let increases: u32 = sums.iter().map(|sum| sum.increases).sum();
    figures.push(Figure::new("cnp_rate", rate(cnps), "1/s"));
    figures.push(Figure::new("decrease_rate", rate(decreases), "1/s"));
    figures.push(Figure::new("increase_rate", rate(increases), "1/s"));
}

/// Fairness of these rates, if there are any.
fn fairness(rates: impl Iterator<Item = f64>) -> Option<Figure> {
    let rates: Vec<_> = rates.collect();
    (!rates.is_empty()).then(|| Figure::new("fairness_jain", jain(&rates), ""))
}

/// How long until all flows into the first port have a fair share, within `share` of it, in the mean of 1 ms.
fn converged(plan: &Plan, results: &Results, share: f64) -> Option<Time> {
    let ids: Vec<_> = plan.of_first_port().collect();
    let step = plan.config.interval;
    let mut from = plan.settles;
    while ids.len() > 1 && from + MS <= results.now {
        let rates: Vec<_> = ids
            .iter()
            .map(|&id| results.sent(id).series.sum(from, from + MS).bytes as f64)
            .collect();
        let fair = MS as f64 * f64::from(plan.setup.line.mbps) / 8e6 / ids.len() as f64;
        if rates.iter().all(|rate| (rate / fair - 1.0).abs() <= share) {
            return Some(from + MS - plan.settles);
        }
        from += step;
    }
    None
}

/// The least time that a flow can take: its frames, the wires and switches of its way, its acknowledgement.
fn idle(plan: &Plan, id: usize, hops: &[Vec<usize>]) -> Time {
    let flow = &plan.flows[id];
    let (line, payload) = (&plan.setup.line, plan.config.payload as u64);
    let hops = hops[flow.dst][flow.src] as u64;
    let packets = flow.bytes.div_ceil(payload);
    let full = line.frame(payload as usize + HEADERS);
    let last = line.frame(((flow.bytes - 1) % payload) as usize + 1 + HEADERS);
    let frames = (packets - 1) * full + hops * last;
    frames + hops * (2 * line.delay + line.frame(HEADERS + 4))
}

fn completions(plan: &Plan, results: &Results, figures: &mut Vec<Figure>) {
    let count = plan.flows.len();
    let topology = &plan.setup.topology;
    let hops: Vec<_> = (0..topology.hosts)
        .map(|host| topology.hops(host))
        .collect();
    let done = |id: &usize| results.completion(*id).is_some();
    let ids: Vec<_> = (0..count).filter(done).collect();
    let times = ids.iter().map(|&id| results.completion(id).unwrap_or(0));
    let mut times: Vec<_> = times.map(|time| time as f64 / US as f64).collect();
    let slow = ids
        .iter()
        .zip(&times)
        .map(|(&id, time)| time * US as f64 / idle(plan, id, &hops) as f64);
    let mut slow: Vec<_> = slow.collect();
    let mut finished = (0..count).map(|id| results.received(id).finished);
    let last = finished.try_fold(0, |last, time| Some(last.max(time?)));
    // those that are late go on to the end
    let last = last.unwrap_or(results.now).max(1);
    let (from, to) = if plan.is_mix { plan.window } else { (0, last) };
    let received = (0..count).map(|id| results.received(id));
    let bytes: u64 = received
        .map(|received| match plan.is_mix {
            true => received.series.sum(from, to).bytes,
            false => received.bytes,
        })
        .sum();
    let goodput = bytes as f64 * 8000.0 / (to - from) as f64;
    figures.push(Figure::new("goodput", goodput, "Gb/s"));
    figures.push(Figure::new("last_received", last as f64 / US as f64, "us"));
    if plan.has_victim
        && let Some(victim) = results.completion(count - 1)
    {
        // Of its rate in an idle network.
        let share = idle(plan, count - 1, &hops) as f64 / victim as f64 * 100.0;
        figures.push(Figure::new("victim_rate", share, "percent"));
    }
    if ids.is_empty() {
        return;
    }
    // A victim has no part in the port that the others share.
    let sharing = count - usize::from(plan.has_victim);
    let shares = ids.iter().zip(&times).filter(|(id, _)| **id < sharing);
    let rates = shares.map(|(&id, time)| plan.flows[id].bytes as f64 / time);
    figures.extend(fairness(rates));
    if let Some(steady) = steady_fairness(plan, results) {
        figures.push(Figure::new("fairness_jain_steady", steady, ""));
    }
    for (name, values, unit) in [
        ("completion", &mut times, "us"),
        ("slowdown", &mut slow, "x"),
    ] {
        for (at, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            let value = quantile(values, share);
            figures.push(Figure::new(format!("{name}_{at}"), value, unit));
        }
    }
}

/// Fairness from 2 ms on until the first of the flows into one port is done.
fn steady_fairness(plan: &Plan, results: &Results) -> Option<f64> {
    let ids: Vec<_> = plan.of_first_port().collect();
    let until = ids
        .iter()
        .filter_map(|&id| results.received(id).finished)
        .min()?;
    let from = plan.window.0.max(2 * MS);
    if ids.len() < 2 || until < from + MS {
        return None;
    }
    let shares = ids
        .iter()
        .map(|&id| results.received(id).series.sum(from, until).bytes as f64);
    Some(jain(&shares.collect::<Vec<_>>()))
}

fn queue(plan: &Plan, results: &Results, figures: &mut Vec<Figure>) {
    let Some((switch, port, trace)) = bottleneck(results) else {
        return;
    };
    let kmax = plan
        .setup
        .switch
        .red
        .iter()
        .flatten()
        .map(|red| red.kmax)
        .max();
    figures.push(Figure::new("bottleneck_switch", switch as u64, "number"));
    figures.push(Figure::new("bottleneck_port", port as u64, "number"));
    figures.push(Figure::new("queue_peak", trace.peak() as f64 / 1e3, "kB"));
    if has_means(plan, results) {
        let p99 = trace.quantile(0.99) as f64 / 1e3;
        let above = trace.share_above(kmax.unwrap_or(u64::MAX)) * 100.0;
        figures.push(Figure::new("queue_mean", trace.mean() / 1e3, "kB"));
        figures.push(Figure::new("queue_p99", p99, "kB"));
        figures.push(Figure::new("queue_above_kmax", above, "percent"));
    }
}

fn counts(plan: &Plan, results: &Results, figures: &mut Vec<Figure>) {
    type Of = fn(&switch::Report) -> u64;
    let switches: [(&str, Of); 5] = [
        ("marked", |switch| switch.marked),
        ("dropped", |switch| switch.dropped),
        ("trimmed", |switch| switch.trimmed),
        ("pauses", |switch| switch.pauses),
        ("strays", |switch| switch.strays),
    ];
    for (name, of) in switches {
        figures.push(Figure::new(name, results.switches(of), "frames"));
    }
    figures.push(Figure::new("lost", results.lost, "frames"));
    let ids = || 0..plan.flows.len();
    let sent = ids().map(|id| results.sent(id));
    let cnps = sent
        .clone()
        .map(|sent| u64::from(sent.series.sum(0, results.now).cnps));
    figures.push(Figure::new("cnps", cnps.sum::<u64>(), "frames"));
    let packets: u64 = sent.clone().map(|sent| sent.packets).sum();
    let repeated: u64 = sent.clone().map(|sent| sent.repeated).sum();
    let timeouts: u64 = sent.map(|sent| sent.timeouts).sum();
    let of_cards: u64 = results.hosts.iter().map(|host| host.timeouts).sum();
    figures.push(Figure::new("packets", packets, "packets"));
    figures.push(Figure::new("repeated", repeated, "packets"));
    figures.push(Figure::new("timeouts", timeouts + of_cards, "timeouts"));
    let dropped = results.switches(|switch| switch.dropped) + results.lost;
    let frames: u64 = results.hosts.iter().map(|host| host.frames_out).sum();
    let share = dropped as f64 / frames.max(1) as f64 * 100.0;
    figures.push(Figure::new("loss", share, "percent"));
}

//! What is measured, under which names.

use ferroce_hdl::engine::builds::STANDARD;
use ferroce_proto::abi::regs::Params;

use super::load::{Beside, Load, Op, Traffic};
use super::rig::Setup;
use super::scenario::{Scenario, Shown, Tier, What};
use super::storm::{Pace, Storm};
use crate::emit::Build;

/// Latency of host memory in cycles: 1 us.
const LATENCY: u32 = 250;
/// Reads of host memory under way, and writes: more than the engine has use for; and what the QDMA's slave bridge takes
/// (PG302 4.0, "Slave Bridge").
const BURSTS: usize = 256;
const BURSTS_BRIDGE: usize = 32;
/// Cycles of one way over the wire: 100 ns.
const WIRE: u64 = 25;
/// Local ACK timeout code: 262 us, far above a round trip; with losses 33 us, as not even a NAK tells of a
/// packet lost twice.
const TIMEOUT: u8 = 6;
const TIMEOUT_LOSS: u8 = 3;
/// Bytes of the messages of a run: completions come to within about 40 cycles of even, a part in a thousand
/// then.
const MEASURED: u64 = 4 << 20;
/// Bytes of a long message.
pub(super) const LONG: u32 = 64 << 10;
/// Sizes of messages in bytes.
pub(super) const SIZES: [u32; 10] = [
    1,
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    LONG,
    256 << 10,
    1 << 20,
];
/// Operations that move data, by name.
pub(super) const OPS: [(&str, Op); 3] =
    [("write", Op::Write), ("read", Op::Read), ("send", Op::Send)];
/// Queue pairs that send at once.
pub(super) const QPS: [u32; 4] = [1, 16, 64, MOST_QPS];
/// Shares of requests that are lost, by name in percent.
pub(super) const LOSSES: [(&str, f64); 4] =
    [("0_01", 0.0001), ("0_1", 0.001), ("1", 0.01), ("5", 0.05)];
/// Queue pairs of a build but 0 and 1, which are reserved, and one: both directions at once need their own.
pub(super) const MOST_QPS: u32 = 250;

/// The largest build: 16,384 queue pairs, 65,536 memory regions, 65,536 outstanding messages.
pub(super) const LARGEST: Params = Params {
    log_qp: 14,
    log_mr: 16,
    log_outstanding: 16,
    ..STANDARD
};
/// All of its queue pairs but four.
const MOST_QPS_SCALE: u32 = (1 << LARGEST.log_qp) - 4;

/// All scenarios for a data path of `width` bits, in the order of the table.
pub(super) fn all(width: usize, seed: u64) -> Vec<Scenario> {
    let setup = Setup {
        build: standard(width),
        latency: LATENCY,
        bursts: BURSTS,
        tie: false,
        wire: WIRE,
        loss: 0.0,
        seed,
        traced: false,
    };
    let fast = Setup {
        latency: 0,
        ..setup
    };
    // A narrow engine takes as many cycles for a part of the messages.
    let scale = (512 / width) as u64;
    let load = |op, bytes: u32| Load {
        op,
        bytes,
        mtu: 4096,
        qps: 1,
        traffic: Traffic::OneWay,
        beside: None,
        timeout: TIMEOUT,
        messages: (MEASURED / u64::from(bytes.max(1)) / scale).clamp(4, 1024),
        spread: None,
    };
    let mut all = Vec::new();
    let mut add = |tier, name: String, what| all.push(Scenario { name, tier, what });
    let (gate, quick, full) = (Tier::Gate, Tier::Quick, Tier::Full);
    let goodput = |load, setup| What::Load(load, setup, Shown::Goodput);
    let rate = |load, setup| What::Load(load, setup, Shown::CyclesPerMessage);
    for (name, op) in OPS {
        for bytes in SIZES {
            let tier = match bytes {
                LONG => gate,
                8 | 64 | 4096 => quick,
                _ => full,
            };
            add(
                tier,
                format!("{name}_{bytes}"),
                goodput(load(op, bytes), setup),
            );
        }
    }
    for (name, op) in [
        ("fetch_add_8", Op::FetchAdd),
        ("cmp_swap_8_one_address", Op::CmpSwap),
    ] {
        for (qps, tier) in [(1, quick), (64, quick)] {
            let load = Load {
                qps,
                messages: 256,
                ..load(op, 8)
            };
            // 64 wait for longer than the ACK timer runs: repetitions make the figure of one run uneven
            let what = match qps {
                64 => What::Mean(load, setup, Shown::CyclesPerMessage),
                _ => rate(load, setup),
            };
            add(tier, format!("{name}_qps_{qps}"), what);
        }
    }
    for (name, op) in OPS {
        for mtu in [256, 1024] {
            let tier = if op == Op::Write { quick } else { full };
            let load = Load {
                mtu,
                ..load(op, LONG)
            };
            add(
                tier,
                format!("{name}_{LONG}_mtu_{mtu}"),
                goodput(load, setup),
            );
        }
    }
    for qps in QPS {
        let many = |op, bytes| Load {
            qps,
            messages: u64::from(4 * qps).max(256),
            ..load(op, bytes)
        };
        let tier = if qps == 16 { quick } else { full };
        let name = format!("write_4096_qps_{qps}");
        add(tier, name, goodput(many(Op::Write, 4096), setup));
        let name = format!("write_64_qps_{qps}");
        add(full, name, rate(many(Op::Write, 64), setup));
    }
    for (name, op) in OPS {
        for (ns, tier) in [(0, quick), (500, full), (1000, full), (2000, quick)] {
            let tier = if op == Op::Send { full } else { tier };
            let setup = Setup {
                latency: ns / 4,
                ..setup
            };
            let name = format!("{name}_{LONG}_memory_{ns}_ns");
            add(tier, name, goodput(load(op, LONG), setup));
        }
    }
    for (name, op) in OPS {
        for ns in [0, 1000, 5000] {
            let setup = Setup {
                wire: ns / 4,
                ..setup
            };
            let name = format!("{name}_{LONG}_wire_{ns}_ns");
            add(full, name, goodput(load(op, LONG), setup));
        }
    }
    for (percent, loss) in LOSSES {
        let tier = if percent == "1" { quick } else { full };
        let load = Load {
            mtu: 1024,
            timeout: TIMEOUT_LOSS,
            messages: if loss < 0.001 { 256 } else { 64 },
            ..load(Op::Write, LONG)
        };
        let setup = Setup { loss, ..setup };
        let name = format!("write_{LONG}_mtu_1024_loss_{percent}_percent");
        add(tier, name, What::Mean(load, setup, Shown::Loss));
    }
    for (name, op) in OPS {
        let load = Load {
            traffic: Traffic::BothWays,
            ..load(op, LONG)
        };
        let tier = if op == Op::Write { gate } else { full };
        if op != Op::Send {
            add(
                tier,
                format!("{name}_{LONG}_both_ways"),
                goodput(load, setup),
            );
        }
    }
    for senders in [2, 4] {
        let load = Load {
            traffic: Traffic::Incast(senders),
            ..load(Op::Write, LONG)
        };
        let name = format!("write_{LONG}_incast_{senders}");
        add(full, name, What::Load(load, setup, Shown::Shares));
    }
    let mixed = Load {
        traffic: Traffic::Mixed,
        ..load(Op::Write, LONG)
    };
    let name = format!("mixed_{LONG}");
    add(full, name, What::Load(mixed, setup, Shown::Total));
    if width == 512 {
        for (name, op) in OPS {
            let narrow = Setup {
                build: standard(64),
                ..setup
            };
            let load = Load {
                messages: 16,
                ..load(op, LONG)
            };
            add(quick, format!("w64_{name}_{LONG}"), goodput(load, narrow));
        }
    }
    for (name, beside) in [
        ("another", Beside::Same),
        ("lossy", Beside::Lossy(0.01)),
        ("not_ready", Beside::NotReady),
    ] {
        let load = Load {
            beside: Some(beside),
            timeout: TIMEOUT_LOSS,
            ..load(Op::Write, LONG)
        };
        let what = match beside {
            Beside::Lossy(_) => What::Mean(load, setup, Shown::Goodput),
            _ => goodput(load, setup),
        };
        add(quick, format!("write_{LONG}_beside_{name}"), what);
    }
    let many = Load {
        qps: 64,
        messages: 2048,
        ..load(Op::Write, 64)
    };
    add(gate, "write_64".into(), rate(many, setup));
    let one = Load {
        messages: 1024,
        ..load(Op::WriteInline, 8)
    };
    add(gate, "write_8_one_qp".into(), rate(one, setup));
    // What a bridge from AXI to PCIe does to reads, one thing at a time.
    let sends = Load {
        op: Op::Send,
        ..many
    };
    let limited = Setup {
        bursts: BURSTS_BRIDGE,
        ..setup
    };
    let tied = Setup { tie: true, ..setup };
    add(full, "send_64_qps_64".into(), rate(sends, setup));
    for (mode, setup) in [("bursts_32", limited), ("tied", tied)] {
        for (name, op) in OPS {
            let name = format!("{mode}_{name}_{LONG}");
            add(quick, name, goodput(load(op, LONG), setup));
        }
        let both = Load {
            traffic: Traffic::BothWays,
            ..load(Op::Write, LONG)
        };
        let name = format!("{mode}_write_{LONG}_both_ways");
        add(quick, name, goodput(both, setup));
        for (name, load) in [
            ("write_64_qps_64", many),
            ("send_64_qps_64", sends),
            ("write_8_one_qp", one),
        ] {
            add(quick, format!("{mode}_{name}"), rate(load, setup));
        }
    }
    add(gate, "ack_flood".into(), What::Acks(setup, 1));
    add(quick, "ack_flood_qps_64".into(), What::Acks(setup, 64));
    for (name, op) in [("write", Op::Write), ("send", Op::Send)] {
        for qps in [1, 64] {
            let storm = Storm {
                op,
                qps,
                packets: 4096,
                pace: Pace::Window(400),
            };
            let tiny = format!("tiny_{name}_qps_{qps}");
            add(quick, tiny, What::Storm(storm, setup));
            let million = Storm {
                packets: 1_000_000,
                pace: Pace::Ethernet,
                ..storm
            };
            let wire = format!("storm_{name}_qps_{qps}_100_gbps");
            add(Tier::Storm, wire, What::Storm(million, setup));
            let million = Storm {
                pace: Pace::BackToBack,
                ..million
            };
            let name = format!("storm_{name}_qps_{qps}");
            add(Tier::Storm, name, What::Storm(million, setup));
        }
    }
    add(gate, "tiny_flood".into(), What::Tiny(setup));
    add(gate, "single".into(), What::Single(fast, false));
    add(gate, "single_inline".into(), What::Single(fast, true));
    let traced = Setup {
        traced: true,
        ..fast
    };
    add(full, "stages".into(), What::Stages(traced));
    let large = Setup {
        build: Build {
            tables: LARGEST,
            ..setup.build
        },
        ..setup
    };
    let spread = |load| Load {
        spread: Some(LARGEST),
        ..load
    };
    for (name, op) in OPS {
        let name = format!("scale_{name}_{LONG}");
        add(Tier::Scale, name, goodput(spread(load(op, LONG)), large));
    }
    let qps = 1 << setup.build.tables.log_qp;
    add(full, format!("paced_qps_{qps}"), What::Paced(setup));
    let qps = 1 << LARGEST.log_qp;
    add(Tier::Scale, format!("paced_qps_{qps}"), What::Paced(large));
    let wide = Load {
        qps: MOST_QPS_SCALE,
        messages: MOST_QPS_SCALE.into(),
        ..load(Op::Write, 4096)
    };
    let name = format!("scale_write_4096_qps_{}", wide.qps);
    add(Tier::Scale, name, goodput(spread(wide), large));
    let name = "scale_write_64".into();
    add(Tier::Scale, name, rate(spread(many), large));
    let name = "scale_write_8_one_qp".into();
    add(Tier::Scale, name, rate(spread(one), large));
    all
}

/// The standard build with a data path of `width` bits.
pub(super) fn standard(width: usize) -> Build {
    Build {
        width,
        tables: STANDARD,
    }
}

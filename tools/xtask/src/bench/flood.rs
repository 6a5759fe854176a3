//! Short packets as fast as the wire brings them, from a peer that never waits, and single messages through
//! an idle engine.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::aeth::{self, Syndrome};
use ferroce_proto::wire::{Extensions, Headers, Mtu, Opcode, Packet};
use ferroce_sim::testhost::{QpOptions, Rights, Work, pattern};

use super::probe::Marks;
use super::rig::{Rig, Setup};

/// Packets of the shorter and of the longer flood; the slope between them is the figure.
const FLOODS: [u64; 2] = [64, 512];
/// Likewise of ACKs over many queue pairs.
const WIDE_FLOODS: [u64; 2] = [256, 1024];
/// Bytes of an inline message.
const SHORT: usize = 8;
/// Bytes of a SEND that makes a frame of 64 bytes with its FCS, less than the shortest is padded.
const TINY: usize = 2;
/// Credit code "no credits are given".
const NO_CREDITS: u8 = 31;
/// Cycles after which a flood is over.
const PATIENCE: u64 = 200_000;
/// Local ACK timeout code that no flood reaches: 4 s.
const NEVER: u8 = 20;

/// What a flood showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flood {
    /// Cycles of one packet more, from the wire to the completion.
    pub(super) cycles: f64,
    /// Packets dropped because the packet buffer was full.
    pub(super) dropped: u64,
}

/// How a queue pair is set up that is one of so many; all together have the outstanding messages of the pool.
fn options(qps: u64) -> QpOptions {
    QpOptions {
        mtu: Mtu::Mtu4096,
        sq_log: 11,
        rq_log: 10,
        ot_log: if qps == 1 { 10 } else { 7 },
        timeout: NEVER,
        ..QpOptions::default()
    }
}

/// Two queue pairs connected to each other: that of the first host, and of the second.
fn connect(rig: &mut Rig, qps: u64) -> (u32, u32) {
    let hosts = &mut rig.hosts;
    let [qa, qb] = [0, 1].map(|host: usize| hosts[host].create_qp(options(qps)));
    let (pa, pb) = (hosts[0].peer(qa), hosts[1].peer(qb));
    hosts[0].connect(qa, &pb);
    hosts[1].connect(qb, &pa);
    (qa, qb)
}

fn built(headers: &Headers) -> Result<Vec<u8>> {
    let mut frame = vec![0; headers.frame_len(0)];
    headers.build(&[], &mut frame).context("an ACK")?;
    Ok(frame)
}

/// The positive acknowledgement of a request that the first host sent.
fn ack(request: &[u8], qa: u32, msn: u32) -> Result<Vec<u8>> {
    let mut headers = Packet::parse(request).context("a request")?.headers;
    std::mem::swap(&mut headers.eth.src, &mut headers.eth.dst);
    headers.ip = match headers.ip {
        ferroce_proto::wire::Ip::V4(mut ip) => {
            std::mem::swap(&mut ip.src, &mut ip.dst);
            ferroce_proto::wire::Ip::V4(ip)
        }
        other @ ferroce_proto::wire::Ip::V6(_) => other,
    };
    headers.bth.opcode = Opcode::RcAck;
    headers.bth.ack_req = false;
    headers.bth.dest_qp = qa;
    headers.ext = Extensions {
        aeth: Some(aeth::Repr {
            syndrome: Syndrome::Ack {
                credits: NO_CREDITS,
            },
            msn,
        }),
        ..Extensions::default()
    };
    built(&headers)
}

/// One acknowledgement of every message of 8 bytes, back to back, over so many queue pairs in turn: cycles of each. Only
/// the last message of a queue pair has a CQE, which shows that all were taken.
pub(super) fn acks(setup: &Setup, qps: u64) -> Result<Flood> {
    let mut ends = [0; 2];
    let mut dropped = 0;
    let floods = if qps == 1 { FLOODS } else { WIDE_FLOODS };
    for (end, count) in ends.iter_mut().zip(floods) {
        let mut rig = Rig::new(setup, 2)?;
        let pairs: Vec<_> = (0..qps).map(|_| connect(&mut rig, qps).0).collect();
        let target = rig.hosts[1].create_mr(&[0; SHORT], Rights::ALL);
        rig.kept[0] = Some(Vec::new());
        for &qa in &pairs {
            for number in 1..=count / qps {
                let work = Work::write(&[], &target, 0).inline(&pattern(SHORT, 1));
                let last = number == count / qps;
                let work = if last { work } else { work.unsignaled() };
                rig.hosts[0].write_slots(qa, &work.slots());
            }
            rig.hosts[0].post_slots(qa, &[]);
        }
        rig.until(PATIENCE, "the WRITEs to acknowledge", |rig| {
            let kept = rig.kept[0].as_ref().map_or(0, Vec::len);
            Ok(kept as u64 == count)
        })?;
        let requests = rig.kept[0].take().unwrap_or_default();
        rig.kept[0] = Some(Vec::new());
        // To which each belongs, by the UDP port: the queue pair of the sender is in no header.
        let mut of_pair: Vec<Vec<Vec<u8>>> = vec![Vec::new(); pairs.len()];
        for request in &requests {
            let port = Packet::parse(request).context("a request")?.headers.udp;
            let place = pairs
                .iter()
                .position(|qa| 0xc000 | (*qa as u16 & 0x3fff) == port.src_port)
                .context("a request of no queue pair")?;
            let msn = of_pair[place].len() as u32 + 1;
            of_pair[place].push(ack(request, pairs[place], msn)?);
        }
        for number in 0..(count / qps) as usize {
            for frames in &of_pair {
                rig.hosts[0].nic.receive(&frames[number]);
            }
        }
        let start = rig.now;
        let mut left = qps;
        rig.until(PATIENCE, "the acknowledged WRITEs", |rig| {
            while let Some(cqe) = rig.hosts[0].poll(0) {
                ensure!(cqe.status == status::SUCCESS, "status {}", cqe.status);
                left -= 1;
            }
            Ok(left == 0)
        })?;
        *end = rig.now - start;
        let taken = rig.hosts[0].stat("rx_acks");
        dropped += rig.hosts[0].stat("rx_overflow");
        ensure!(
            taken + dropped == count,
            "{taken} of {count} ACKs were counted, {dropped} dropped"
        );
        rig.check()?;
    }
    Ok(slope(floods, ends, dropped))
}

/// SENDs in frames of 60 bytes (64 with FCS), back to back: cycles of each, to its completion in the host's
/// memory.
pub(super) fn tiny(setup: &Setup) -> Result<Flood> {
    let mut ends = [0; 2];
    let mut dropped = 0;
    for (end, count) in ends.iter_mut().zip(FLOODS) {
        let mut rig = Rig::new(setup, 2)?;
        let (qa, qb) = connect(&mut rig, 1);
        let target = rig.hosts[1].create_mr(&[0; SHORT], Rights::ALL);
        let source = rig.hosts[0].create_mr(&pattern(SHORT, 1), Rights::ALL);
        for _ in 0..count {
            rig.hosts[1].post_recv(qb, &[target.sge(0, SHORT as u32)]);
            let work = Work::send(&[source.sge(0, TINY as u32)]).unsignaled();
            rig.hosts[0].write_slots(qa, &work.slots());
        }
        rig.kept[0] = Some(Vec::new());
        rig.kept[1] = Some(Vec::new());
        rig.hosts[0].post_slots(qa, &[]);
        // The doorbells of the receives are through by then, too.
        rig.until(PATIENCE, "the SENDs", |rig| {
            let kept = rig.kept[0].as_ref().map_or(0, Vec::len);
            Ok(kept as u64 == count)
        })?;
        (0..4 * count).for_each(|_| rig.step());
        for mut frame in rig.kept[0].take().unwrap_or_default() {
            frame.resize(frame.len().max(ferroce_sim::link::MIN_FRAME), 0);
            rig.hosts[1].nic.receive(&frame);
        }
        rig.kept[0] = Some(Vec::new());
        let start = rig.now;
        let mut left = count;
        let flooded = rig.until(PATIENCE, "the SENDs received", |rig| {
            while let Some(cqe) = rig.hosts[1].poll(0) {
                ensure!(cqe.status == status::SUCCESS, "status {}", cqe.status);
                left -= 1;
            }
            Ok(left == 0)
        });
        let lost = rig.hosts[1].stat("rx_overflow");
        if lost == 0 {
            flooded?;
        }
        dropped += lost;
        *end = rig.now - start;
        rig.check()?;
    }
    Ok(slope(FLOODS, ends, dropped))
}

fn slope(floods: [u64; 2], ends: [u64; 2], dropped: u64) -> Flood {
    let more = (floods[1] - floods[0]) as f64;
    Flood {
        cycles: (ends[1] as f64 - ends[0] as f64) / more,
        dropped,
    }
}

/// Cycles of a WRITE through idle engines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    /// From the doorbell taken at `s_axil` to the first beat at `m_axis_tx`.
    pub(super) doorbell_to_wire: u64,
    /// Its parts and what follows: doorbell to the WQE's read address, memory, WQE to the payload's read address, memory,
    /// payload to the first beat; last beat at `s_axis_rx` to the first W beat at `m_axi`; that to the first beat of the ACK
    /// at `m_axis_tx`; last beat of the ACK at `s_axis_rx` to the CQE's W beat at `m_axi`.
    pub(super) stages: [u64; 8],
    /// From the doorbell to the completion in the requester's memory.
    pub(super) round_trip: u64,
}

/// A WRITE of 64 bytes from memory, or of 8 bytes inline; the second of two. Each card writes a trace of it into the folder
/// `traces`, if there is one: `0.fst`, `1.fst`.
pub(super) fn single(setup: &Setup, inline: bool, traces: Option<&Path>) -> Result<Single> {
    let mut rig = Rig::new(setup, 2)?;
    let (qa, _) = connect(&mut rig, 1);
    let source = rig.hosts[0].create_mr(&pattern(64, 1), Rights::ALL);
    let target = rig.hosts[1].create_mr(&[0; 64], Rights::ALL);
    let mut done = 0;
    for _ in 0..2 {
        (0..PATIENCE / 100).for_each(|_| rig.step());
        let work = if inline {
            Work::write(&[], &target, 0).inline(&pattern(SHORT, 1))
        } else {
            Work::write(&[source.all()], &target, 0)
        };
        for (index, marks) in rig.marks.iter().enumerate() {
            let mut marks = marks.borrow_mut();
            *marks = Marks::default();
            marks.trace = traces.map(|folder| folder.join(format!("{index}.fst")));
        }
        rig.hosts[0].post_send(qa, &work);
        rig.until(PATIENCE, "a WRITE", |rig| {
            let cqe = rig.hosts[0].poll(0);
            done = rig.hosts[0].nic.now();
            Ok(cqe.is_some_and(|cqe| cqe.status == status::SUCCESS))
        })?;
    }
    rig.check()?;
    let [a, b] = [0, 1].map(|host: usize| rig.marks[host].borrow().clone());
    let span = |from: Option<u64>, to: Option<u64>| {
        let (from, to) = from.zip(to).context("a port did not move")?;
        to.checked_sub(from).context("an answer before its cause")
    };
    Ok(Single {
        doorbell_to_wire: span(a.doorbell, a.first_tx)?,
        stages: [
            span(a.doorbell, a.first_read)?,
            span(a.first_read, a.first_data)?,
            span(a.first_data, a.second_read)?,
            span(a.second_read, a.second_data)?,
            span(a.second_data, a.first_tx)?,
            span(b.last_rx, b.first_write)?,
            span(b.first_write, b.first_tx)?,
            span(a.last_rx, a.first_write)?,
        ],
        round_trip: span(a.doorbell, Some(done))?,
    })
}

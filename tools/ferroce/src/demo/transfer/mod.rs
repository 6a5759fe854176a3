//! The file: cut, moved, announced, compared.

mod message;
pub(super) mod plan;

use anyhow::{Context, Result, ensure};
use ferroce_driver::{MrBuf, SendOp, SendWr, WcOpcode};
use ferroce_sim::card::SimCard;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

use super::options::{Op, Options, Transport};
use super::pair::{Host, Pair, RECV_BYTES, Turn, WINDOW};
use message::Memory;
use plan::{Part, Plan};

/// Bytes after the file at the receiver that must not change.
const GUARD: usize = 4096;
/// Value of these.
const GUARD_BYTE: u8 = 0x5a;
/// Cycles from one look at the completion queues to the next.
const PACE: u64 = 16;
/// Cycles after the last message after which no further one of an unreliable transport arrives.
const QUIET: u64 = 1 << 14;
/// Bytes of the announcement: length of the file, little-endian, and its SHA-256.
const ANNOUNCEMENT: usize = 8 + 32;

/// How the file came over.
pub(super) struct Moved {
    /// Cycles from the first request posted to the last message completed.
    pub(super) cycles: u64,
    pub(super) messages: u64,
    /// Messages that did not arrive, which only unreliable transports have.
    pub(super) missing: u64,
}

/// Moves `file` into the receiver's memory, announces it and compares.
///
/// # Errors
/// A difference, and all of [`Pair::until`].
pub(super) fn transfer(
    pair: &mut Pair<'_>,
    file: &[u8],
    plan: &Plan,
    options: &Options,
    progress: &ProgressBar,
) -> Result<Moved> {
    let [a, b] = &pair.hosts;
    // No byte is right before it was moved.
    let mut old: Vec<u8> = file.iter().map(|byte| !byte).collect();
    let mut new = file.to_vec();
    for image in [&mut old, &mut new] {
        image.extend([GUARD_BYTE; GUARD]);
    }
    let mut memory = Memory::new([&a.pd, &b.pd], plan, options, old, new)?;
    memory.post_receives(&mut pair.hosts[1], plan)?;
    pair.set_pace(PACE);
    let parts: Vec<Part> = plan.queues.iter().flatten().cloned().collect();
    let (cycles, arrived) = exchange(pair, &mut memory, plan, &parts, options, progress)?;
    let digest = Sha256::digest(file);
    let announced = announce(pair, file.len(), &digest)?;
    let missing = arrived.iter().filter(|&&arrived| !arrived).count();
    ensure!(
        missing == 0 || options.transport != Transport::Rc && options.is_hard(),
        "{missing} messages of {} did not arrive",
        parts.len()
    );
    memory.check_found(file.len())?;
    if missing == 0 {
        compare(&announced, file, &memory.target)?;
    }
    for (part, arrived) in parts.iter().zip(arrived) {
        if arrived {
            memory.check_arrived(part)?;
        } else {
            memory.check_missing(part)?;
        }
    }
    Ok(Moved {
        cycles,
        messages: parts.len() as u64,
        missing: missing as u64,
    })
}

/// Moves all parts; [`WINDOW`] messages of each queue pair are in flight. Answers the cycles it took and which arrived.
fn exchange(
    pair: &mut Pair<'_>,
    memory: &mut Memory,
    plan: &Plan,
    parts: &[Part],
    options: &Options,
    progress: &ProgressBar,
) -> Result<(u64, Vec<bool>)> {
    // The requester of a READ is the receiver of the file.
    let poster = usize::from(options.op == Op::Read);
    let (start, mut end) = (pair.now(), pair.now());
    let mut queues = plan.queues.clone();
    let mut left = parts.len();
    let mut in_flight = vec![0; queues.len()];
    let mut arrived = vec![false; parts.len()];
    let waits_for_all = options.receives() && options.transport == Transport::Rc;
    let quiet = if options.transport == Transport::Rc {
        0
    } else {
        QUIET
    };
    pair.until(&format!("{} of the file", options.op), |hosts, now| {
        let mut moved = false;
        let is_here = |index: u32, arrived: &mut [bool]| {
            let place = &mut arrived[index as usize];
            if !std::mem::replace(place, true) {
                progress.inc(parts[index as usize].range.len() as u64);
            }
        };
        while let Some(wc) = hosts[poster].poll()? {
            in_flight[(wc.wr_id >> 32) as usize] -= 1;
            left -= 1;
            moved = true;
            if !options.receives() {
                is_here(wc.wr_id as u32, &mut arrived);
            }
        }
        while let Some(wc) = hosts[1 - poster].poll()? {
            ensure!(
                options.receives(),
                "the other side got {wc:?}; nothing is expected"
            );
            is_here(memory.received(&wc, parts)?, &mut arrived);
            moved = true;
        }
        for (place, queue) in queues.iter_mut().enumerate() {
            let room = (WINDOW - in_flight[place]) as usize;
            let next: Vec<_> = queue.drain(..queue.len().min(room)).collect();
            in_flight[place] += next.len() as u32;
            let host = &mut hosts[poster];
            let to = host.destination(place);
            memory.post(&mut host.qps[place], place, &next, to)?;
        }
        if moved {
            end = now;
        }
        let done = left == 0
            && now >= end + quiet
            && (!waits_for_all || arrived.iter().all(|&arrived| arrived));
        Ok(match (done, moved) {
            (true, _) => Turn::Done,
            (_, true) => Turn::Progress,
            (_, false) => Turn::Nothing,
        })
    })?;
    Ok((end - start, arrived))
}

/// The announcement of the file to the receiver.
struct Announcement {
    len: u64,
    digest: Vec<u8>,
}

/// Sends length and digest, and returns them as the receiver got them.
fn announce(pair: &mut Pair<'_>, len: usize, digest: &[u8]) -> Result<Announcement> {
    let a = &mut pair.hosts[0];
    let at = RECV_BYTES;
    a.small.write(at, &(len as u64).to_le_bytes());
    a.small.write(at + 8, digest);
    let list = [a.small.sge(at..at + ANNOUNCEMENT)];
    a.control
        .post_send(&[SendWr::new(SendOp::Send, &list).signaled()])?;
    let (mut sent, mut received) = (false, None);
    pair.until("SEND of the announcement", |[a, b], _| {
        sent |= a.poll()?.is_some();
        if let Some(wc) = b.poll()? {
            ensure!(
                wc.opcode == WcOpcode::Recv && wc.byte_len as usize == ANNOUNCEMENT,
                "the receiver of an announcement of {ANNOUNCEMENT} bytes got {wc:?}"
            );
            received = Some(
                b.small
                    .to_vec(Host::recv_at(wc.wr_id as usize), ANNOUNCEMENT),
            );
        }
        let done = sent && received.is_some();
        Ok(if done { Turn::Done } else { Turn::Nothing })
    })?;
    let received = received.context("the announcement was waited for")?;
    let (len, digest) = received.split_at(8);
    let len = len
        .iter()
        .rev()
        .fold(0, |len, &byte| len << 8 | u64::from(byte));
    Ok(Announcement {
        len,
        digest: digest.to_vec(),
    })
}

/// What the receiver does: its memory against the announcement. The file only says where they differ.
fn compare(announced: &Announcement, file: &[u8], target: &MrBuf<SimCard>) -> Result<()> {
    let len = announced.len;
    ensure!(
        len == file.len() as u64,
        "a file of {} bytes was announced as {len} bytes",
        file.len()
    );
    let received = target.to_vec(0, file.len());
    let digest = Sha256::digest(&received);
    if digest[..] != announced.digest[..] {
        let first = received.iter().zip(file).position(|(is, was)| is != was);
        let wrong = received
            .iter()
            .zip(file)
            .filter(|(is, was)| is != was)
            .count();
        let place = match first {
            Some(at) => format!(
                "{wrong} bytes differ, the first at {at} ({:#04x}, {:#04x} was sent)",
                received[at], file[at]
            ),
            None => "the file is right, its announced digest is not".into(),
        };
        anyhow::bail!(
            "SHA-256 of the received file is {}, {} was announced: {place}",
            hex(&digest),
            hex(&announced.digest)
        );
    }
    let guard = target.to_vec(file.len(), GUARD);
    if let Some(at) = guard.iter().position(|&byte| byte != GUARD_BYTE) {
        anyhow::bail!("byte {at} behind the file was overwritten");
    }
    Ok(())
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! The file: cut, written, announced, compared.

use std::collections::VecDeque;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use ferroce_driver::{Access, MrBuf, Remote, SendOp, SendWr, WcOpcode};
use ferroce_sim::card::SimCard;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

use super::pair::{Host, Pair, RECV_BYTES, Turn, WINDOW};

/// Bytes of a WRITE, a multiple of every MTU.
const CHUNK: usize = 64 << 10;
/// Bytes behind the file at the receiver that nobody may touch.
const GUARD: usize = 4096;
/// Value of these.
const GUARD_BYTE: u8 = 0x5a;
/// Cycles from one look at the completion queues to the next.
const PACE: u64 = 16;
/// Bytes of the announcement: length of the file, little-endian, and its SHA-256.
const ANNOUNCEMENT: usize = 8 + 32;

/// Writes `file` into the receiver's memory, announces it and compares. Returns the cycles from the
/// first request posted to the last WRITE completed.
///
/// # Errors
/// A difference, and all of [`Pair::until`].
pub(super) fn transfer(
    pair: &mut Pair<'_>,
    file: &[u8],
    mtu: usize,
    progress: &ProgressBar,
) -> Result<u64> {
    let [a, b] = &pair.hosts;
    let mut source = a.pd.alloc_mr(file.len().max(1), Access::empty())?;
    source.write(0, file);
    let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let mut target = b.pd.alloc_mr(file.len() + GUARD, rights)?;
    // No byte is right before it was written.
    let inverse: Vec<u8> = file.iter().map(|byte| !byte).collect();
    target.write(0, &inverse);
    target.write(file.len(), &[GUARD_BYTE; GUARD]);
    pair.set_pace(PACE);
    let cycles = write(
        pair,
        &source,
        &target,
        cut(file.len(), pair.hosts[0].qps.len(), mtu),
        progress,
    )?;
    let digest = Sha256::digest(file);
    let announced = announce(pair, file.len(), &digest)?;
    compare(&announced, file, &target)?;
    Ok(cycles)
}

/// Parts of a file of `len` bytes for each queue pair: whole packets, as evenly as these can be
/// divided, in messages of [`CHUNK`] bytes at most. An empty file is one message of no bytes.
fn cut(len: usize, qps: usize, mtu: usize) -> Vec<VecDeque<Range<usize>>> {
    let packets = len.div_ceil(mtu);
    let edge = |qp: usize| (packets * qp / qps * mtu).min(len);
    let mut parts: Vec<VecDeque<_>> = (0..qps)
        .map(|qp| {
            let (start, end) = (edge(qp), edge(qp + 1));
            (start..end)
                .step_by(CHUNK)
                .map(|at| at..end.min(at + CHUNK))
                .collect()
        })
        .collect();
    if len == 0 {
        parts[0].push_back(0..0);
    }
    parts
}

/// Writes all parts; [`WINDOW`] messages of each queue pair are in flight.
fn write(
    pair: &mut Pair<'_>,
    source: &MrBuf<SimCard>,
    target: &MrBuf<SimCard>,
    mut parts: Vec<VecDeque<Range<usize>>>,
    progress: &ProgressBar,
) -> Result<u64> {
    let start = pair.now();
    let mut end = start;
    let mut left: usize = parts.iter().map(VecDeque::len).sum();
    let mut in_flight = vec![0; parts.len()];
    pair.until("WRITE of the file", |[a, b], now| {
        let mut moved = false;
        while let Some(wc) = a.poll()? {
            // A queue pair's place and the bytes of its message.
            let (place, bytes) = ((wc.wr_id >> 32) as usize, wc.wr_id as u32);
            progress.inc(bytes.into());
            in_flight[place] -= 1;
            left -= 1;
            moved = true;
        }
        if let Some(wc) = b.poll()? {
            anyhow::bail!("the receiver of WRITEs got {wc:?}; nothing is expected");
        }
        for (place, part) in parts.iter_mut().enumerate() {
            let room = (WINDOW - in_flight[place]) as usize;
            let next: Vec<_> = part.drain(..part.len().min(room)).collect();
            in_flight[place] += next.len() as u32;
            post(&mut a.qps[place], place, &next, source, target)?;
        }
        end = now;
        Ok(match (left, moved) {
            (0, _) => Turn::Done,
            (_, true) => Turn::Progress,
            (_, false) => Turn::Nothing,
        })
    })?;
    Ok(end - start)
}

/// Posts a WRITE for each range of the file.
fn post(
    qp: &mut ferroce_driver::Qp<SimCard>,
    place: usize,
    ranges: &[Range<usize>],
    source: &MrBuf<SimCard>,
    target: &MrBuf<SimCard>,
) -> Result<()> {
    let lists: Vec<_> = ranges
        .iter()
        .map(|range| [source.sge(range.clone())])
        .collect();
    let wr = |(range, list): (&Range<usize>, _)| {
        let remote = Remote {
            addr: target.addr() + range.start as u64,
            rkey: target.rkey(),
        };
        let id = (place as u64) << 32 | range.len() as u64;
        SendWr::new(SendOp::Write(remote), list)
            .wr_id(id)
            .signaled()
    };
    let wrs: Vec<_> = ranges
        .iter()
        .zip(lists.iter().map(|list| &list[..]))
        .map(wr)
        .collect();
    Ok(qp.post_send(&wrs)?)
}

/// What the receiver is told of the file.
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
    a.qps[0].post_send(&[SendWr::new(SendOp::Send, &list).signaled()])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_file_in_order_and_evenly() {
        for (len, qps, mtu) in [
            (0, 1, 256),
            (1, 4, 256),
            (255, 1, 256),
            (257, 2, 256),
            (4 << 20, 64, 4096),
            (1_000_003, 7, 1024),
            (CHUNK * 3, 1, 4096),
        ] {
            let parts = cut(len, qps, mtu);
            assert_eq!(parts.len(), qps);
            let mut at = 0;
            for range in parts.iter().flatten() {
                assert_eq!(range.start, at);
                assert!(range.len() <= CHUNK && (len == 0 || !range.is_empty()));
                at = range.end;
            }
            assert_eq!(at, len);
            let packets = |part: &VecDeque<Range<usize>>| {
                part.iter()
                    .map(|range| range.len().div_ceil(mtu))
                    .sum::<usize>()
            };
            let (least, most) = (
                parts.iter().map(packets).min(),
                parts.iter().map(packets).max(),
            );
            assert!(
                most <= least.map(|least| least + 1),
                "{len} bytes over {qps}"
            );
        }
        let empty = cut(0, 3, 256);
        assert_eq!(empty.iter().flatten().count(), 1, "one message of no bytes");
    }
}

//! Latency of small messages.

use anyhow::{Result, ensure};
use ferroce_driver::{SendOp, SendWr, WcOpcode};

use super::pair::{Host, Pair, RECVS, Turn};

/// Messages of each kind, half of them in each direction.
const ROUNDS: u64 = 16;
/// Bytes of a message.
const BYTES: usize = 8;

/// Latency of messages of 8 bytes in cycles, one way, the median of 16: from the call that posts the
/// request to what the host at the other side sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    /// RDMA WRITE: to the last byte in memory.
    pub(super) write: u64,
    /// SEND: to the completion of the receive.
    pub(super) send: u64,
}

/// Measures on the control queue pair, to the cycle.
pub(super) fn ping(pair: &mut Pair<'_>) -> Result<Latency> {
    const {
        assert!(
            ROUNDS as usize / 2 < RECVS,
            "the announcement needs a receive too"
        )
    };
    pair.set_pace(1);
    let write = median(pair, write)?;
    let send = median(pair, send)?;
    Ok(Latency { write, send })
}

fn median(
    pair: &mut Pair<'_>,
    message: impl Fn(&mut Pair<'_>, usize, u64) -> Result<u64>,
) -> Result<u64> {
    let mut cycles = (1..=ROUNDS)
        .map(|round| message(pair, (1 - round % 2) as usize, round))
        .collect::<Result<Vec<_>>>()?;
    cycles.sort_unstable();
    Ok(cycles[cycles.len() / 2])
}

fn write(pair: &mut Pair<'_>, from: usize, value: u64) -> Result<u64> {
    let (start, to) = (pair.now(), 1 - from);
    let bytes = value.to_le_bytes();
    let remote = pair.hosts[to].remote();
    let wr = SendWr::inline(SendOp::Write(remote), &bytes).signaled();
    pair.hosts[from].control.post_send(&[wr])?;
    let (mut seen, mut completed) = (None, false);
    pair.until("WRITE of 8 bytes", |hosts, now| {
        let mut found = [0; BYTES];
        hosts[to].small.read(0, &mut found);
        if seen.is_none() && found == bytes {
            seen = Some(now);
        }
        completed |= hosts[from].poll()?.is_some();
        Ok(turn(seen.is_some() && completed))
    })?;
    Ok(seen.unwrap_or(start) - start)
}

fn send(pair: &mut Pair<'_>, from: usize, value: u64) -> Result<u64> {
    let (start, to) = (pair.now(), 1 - from);
    let bytes = value.to_le_bytes();
    let wr = SendWr::inline(SendOp::Send, &bytes).signaled();
    pair.hosts[from].control.post_send(&[wr])?;
    let (mut seen, mut completed) = (None, false);
    pair.until("SEND of 8 bytes", |hosts, now| {
        if let Some(wc) = hosts[to].poll()? {
            ensure!(
                wc.opcode == WcOpcode::Recv && wc.byte_len as usize == BYTES,
                "the receiver of a SEND of {BYTES} bytes got {wc:?}"
            );
            let found = hosts[to]
                .small
                .to_vec(Host::recv_at(wc.wr_id as usize), BYTES);
            ensure!(found == bytes, "{bytes:?} were sent, {found:?} received");
            seen = Some(now);
        }
        completed |= hosts[from].poll()?.is_some();
        Ok(turn(seen.is_some() && completed))
    })?;
    Ok(seen.unwrap_or(start) - start)
}

fn turn(done: bool) -> Turn {
    if done { Turn::Done } else { Turn::Nothing }
}

//! What both sides tell each other over TCP.

use anyhow::{Context as _, Result, ensure};
use ferroce_driver::Backend;
use serde::{Deserialize, Serialize};

use super::options::{Args, Connection};
use crate::clock::Times;
use crate::device::Device;
use crate::oob::Oob;
use crate::program::BadInput;

/// Name and version of this program.
const PROGRAM: &str = concat!("ferroce-perf ", env!("CARGO_PKG_VERSION"));

/// The peer: in what every version says.
#[derive(Deserialize)]
struct Greeting {
    program: String,
}

/// What one side tells the other before a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    program: String,
    /// What must be equal.
    test: String,
    size: u32,
    all: bool,
    iters: u32,
    duration: Option<f64>,
    bidirectional: bool,
    mtu: usize,
    connection: Connection,
    validate: bool,
    /// Where the side is: number and PSN of each queue pair.
    pub(super) ends: Vec<(u32, u32)>,
    pub(super) gid: [u8; 16],
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

impl Hello {
    /// Of a side with these queue pairs, that the peer reaches at `addr` with `rkey`.
    pub(super) fn new(
        args: &Args,
        ends: Vec<(u32, u32)>,
        gid: [u8; 16],
        (addr, rkey): (u64, u32),
    ) -> Self {
        Self {
            program: PROGRAM.into(),
            test: args.test.name(),
            size: args.bytes(),
            all: args.all,
            iters: args.iters,
            duration: args.duration,
            bidirectional: args.bidirectional,
            mtu: args.mtu.bytes(),
            connection: args.connection,
            validate: args.validate,
            ends,
            gid,
            addr,
            rkey,
        }
    }

    /// The options that must be equal.
    fn agreement(&self) -> String {
        let Self {
            test,
            size,
            all,
            iters,
            duration,
            bidirectional,
            mtu,
            connection,
            validate,
            ends,
            ..
        } = self;
        let sizes = if *all {
            "-a".into()
        } else {
            format!("-s {size}")
        };
        let length = match duration {
            Some(seconds) => format!("-D {seconds}"),
            None => format!("-n {iters}"),
        };
        let bidirectional = if *bidirectional { " -b" } else { "" };
        let validate = if *validate { " --validate" } else { "" };
        let qps = ends.len();
        format!(
            "{test} {sizes} {length} -q {qps} -m {mtu} -c {connection:?}{bidirectional}{validate}"
        )
    }

    /// Tells the peer, hears what it says, and compares.
    pub(super) fn exchange<B: Backend>(
        &self,
        device: &mut Device<B>,
        oob: &mut Oob,
    ) -> Result<Self> {
        let line = trade(device, oob, self)?;
        let unknown = || {
            format!(
                "the peer says `{line}`, which is no ferroce-perf: run the same program on both sides"
            )
        };
        let Greeting { program } = serde_json::from_str(&line).with_context(unknown)?;
        if program != PROGRAM {
            let text = format!(
                "the peer is {program}, this side {PROGRAM}: run the same version on both sides"
            );
            return Err(BadInput(text).into());
        }
        let there: Self = serde_json::from_str(&line).with_context(unknown)?;
        let (ours, theirs) = (self.agreement(), there.agreement());
        if ours != theirs {
            let text =
                format!("the peer runs `{theirs}`, this side `{ours}`: give both the same options");
            return Err(BadInput(text).into());
        }
        ensure!(
            there.ends.iter().all(|(qpn, psn)| (qpn | psn) >> 24 == 0),
            "the peer sent a number of more than 24 bits"
        );
        Ok(there)
    }
}

/// Tells the peer, and hears its line.
fn trade<B: Backend>(
    device: &mut Device<B>,
    oob: &mut Oob,
    ours: &impl Serialize,
) -> Result<String> {
    oob.send_line(device, &serde_json::to_string(ours)?)?;
    oob.receive_line(device)
}

/// What one side tells the other after a test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Messages of each queue pair.
    pub(super) sent: Vec<u64>,
    /// Messages in these times: sent by a side that sends, else received.
    pub(super) messages: u64,
    pub(super) times: Option<Times>,
    /// Messages a second of the host at best.
    pub(super) peak: Option<f64>,
}

impl Outcome {
    /// Tells the peer, when it is done too, and hears its own.
    pub(super) fn exchange<B: Backend>(
        &self,
        device: &mut Device<B>,
        oob: &mut Oob,
    ) -> Result<Self> {
        let line = trade(device, oob, self)?;
        serde_json::from_str(&line).with_context(|| {
            format!(
                "the peer says `{line}`, expected its figures: run the same version on both sides"
            )
        })
    }
}

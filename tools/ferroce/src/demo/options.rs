//! What a run does.

use std::fmt;
use std::str::FromStr;

use ferroce_driver::Mtu;
use ferroce_sim::link;
use ferroce_sim::random::Chance;
use ferroce_sim::rate::Rate;

use super::dut;
use crate::dut::Dut;

/// Cycles of one way over the wire: 100 ns, a few metres of fibre and a MAC at each end.
const WIRE_LATENCY: u64 = 25;
/// Bytes of a packet beyond its payload: headers, ICRC, and what Ethernet spends on a frame.
const PACKET_OVERHEAD: u64 = 100;
/// Packets that a queue pair may send before it is the next one's turn, at most.
const QUANTUM: u64 = 16;
/// Rate of the wire for datagrams in Gb/s: their sender has no flow control.
const DATAGRAM_RATE: u32 = 100;
/// Shortest ACK timeout in cycles, 262 us: far above any round trip on an idle wire.
const MIN_TIMEOUT: u64 = 1 << 16;
/// Cycles of the ACK timeout of code 0 (IBA 11.2.4.2: 4.096 us * 2^code).
const TIMEOUT_UNIT: u64 = 1024;
/// Timeouts without progress after which a run has failed. 8 in a row end a connection, and each may
/// take up to 4 times as long as asked for (IBA 9.7.6.1.3).
const PATIENCE: u64 = 40;

/// What a run does, but for the file.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The cards at both ends: an engine, or the golden model, its behaviour without its timing.
    #[arg(long, value_enum, default_value_t)]
    pub dut: Dut,
    /// Operation that moves the file; an atomic moves 8 bytes.
    #[arg(long, value_enum, default_value_t)]
    pub op: Op,
    /// Transport of the queue pairs that move it: uc does WRITE and SEND, ud SEND.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096.
    #[arg(long, value_name = "BYTES", value_parser = mtu, default_value = "4096")]
    pub mtu: Mtu,
    /// Queue pairs that share the file evenly.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Options::default().qps)]
    pub qps: u32,
    /// Rate of the wire in Gb/s; one beat of the data path a cycle unless given, for datagrams at most 100: what comes
    /// faster than a receiver puts it away is lost.
    #[arg(long, value_name = "GB/S", value_parser = clap::value_parser!(u32).range(1..=400))]
    pub rate: Option<u32>,
    /// Share of the frames that are lost, such as 1% or 0.01.
    #[arg(long, value_name = "SHARE", default_value_t)]
    pub loss: Share,
    /// Share of the frames that are held back until later ones have passed; 1% without a number.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "1%", default_value_t)]
    pub reorder: Share,
    /// Share of the frames in which a bit is flipped; 1% without a number.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "1%", default_value_t)]
    pub corrupt: Share,
    /// Share of the frames that arrive twice; 1% without a number.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "1%", default_value_t)]
    pub duplicate: Share,
    /// Seed of everything random: hardship on the wire, timing of host memory.
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    pub seed: u64,
    /// Cycles without progress after which the run has failed, if not the usual ones.
    #[arg(skip)]
    pub patience: Option<u64>,
}

/// What moves the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Op {
    /// The sender writes to the receiver's memory.
    #[default]
    Write,
    /// The receiver reads from the sender's memory.
    Read,
    /// The sender sends, the receiver receives.
    Send,
    /// The sender changes the receiver's memory by compare-and-swap and fetch-and-add, turn by turn.
    Atomic,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "WRITE",
            Self::Read => "READ",
            Self::Send => "SEND",
            Self::Atomic => "atomics",
        })
    }
}

/// Transport of the queue pairs that move the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dut: Dut::default(),
            op: Op::default(),
            transport: Transport::default(),
            mtu: Mtu::Mtu4096,
            qps: 1,
            rate: None,
            loss: Share::default(),
            reorder: Share::default(),
            corrupt: Share::default(),
            duplicate: Share::default(),
            seed: 1,
            patience: None,
        }
    }
}

impl Options {
    /// Every message takes a receive.
    pub(super) fn receives(&self) -> bool {
        self.op == Op::Send || self.op == Op::Write && self.transport != Transport::Rc
    }

    /// The transport has the operation.
    pub(super) fn is_possible(&self) -> bool {
        match self.transport {
            Transport::Rc => true,
            Transport::Uc => matches!(self.op, Op::Write | Op::Send),
            Transport::Ud => self.op == Op::Send,
        }
    }

    /// The wire does not carry every frame once, in order and as it is.
    pub(super) fn is_hard(&self) -> bool {
        let shares = [self.loss, self.reorder, self.corrupt, self.duplicate];
        shares != [Share::default(); 4]
    }

    fn wire_rate(&self) -> Option<u32> {
        let datagrams = self.transport == Transport::Ud && self.dut.width() == 512;
        self.rate.or(datagrams.then_some(DATAGRAM_RATE))
    }

    /// One direction of the wire, 0 or 1.
    pub(super) fn wire(&self, direction: u64) -> link::Config {
        link::Config {
            latency: WIRE_LATENCY,
            // A card sends a beat a cycle by itself.
            rate: self.wire_rate().map(Rate::ethernet),
            loss: self.loss.chance(),
            reordering: self.reorder.chance(),
            corruption: self.corrupt.chance(),
            duplication: self.duplicate.chance(),
            seed: self.seed.wrapping_mul(2).wrapping_add(direction),
            ..link::Config::default()
        }
    }

    /// Rate of the wire in words.
    fn wire_text(&self) -> String {
        match self.wire_rate() {
            Some(rate) => format!("wire of {rate} Gb/s"),
            None => {
                let gigabits = f64::from(self.dut.width()) / 4.0;
                format!("wire of one beat a cycle ({gigabits} Gb/s)")
            }
        }
    }

    /// Code of the ACK timeout: above the time in which every queue pair is served.
    pub(super) fn timeout(&self) -> u8 {
        let frame = self.mtu.bytes() as u64 + PACKET_OVERHEAD;
        let bytes = u64::from(self.qps) * QUANTUM * frame;
        // Bytes in 2 cycles, as 100 Gb/s are 50 bytes a cycle.
        let path = u64::from(self.dut.width() / 4);
        let rate = self.wire_rate().map_or(path, |rate| path.min(rate.into()));
        let cycles = (2 * 2 * bytes / rate).max(MIN_TIMEOUT);
        cycles.div_ceil(TIMEOUT_UNIT).next_power_of_two().ilog2() as u8
    }

    /// Cycles without progress after which the run has failed.
    pub(super) fn patience(&self) -> u64 {
        self.patience
            .unwrap_or(PATIENCE * (TIMEOUT_UNIT << self.timeout()))
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mtu, qps, seed) = (self.mtu.bytes(), self.qps, self.seed);
        let (op, transport) = (self.op, self.transport);
        let plural = if qps == 1 { "" } else { "s" };
        write!(
            f,
            "two hosts with {}; {}, {transport} {op}, MTU {mtu}, {qps} queue pair{plural}, seed {seed}",
            dut::words(self.dut),
            self.wire_text()
        )?;
        for (name, share) in [
            ("lost", self.loss),
            ("reordered", self.reorder),
            ("corrupted", self.corrupt),
            ("duplicated", self.duplicate),
        ] {
            if share != Share::default() {
                write!(f, ", {share} {name}")?;
            }
        }
        Ok(())
    }
}

/// A share of the whole, 0 to 1; written as `1%` or `0.01`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share(f64);

impl Share {
    /// As the chance of each frame.
    #[must_use]
    pub fn chance(self) -> Chance {
        Chance::new(self.0)
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
            None => text.parse(),
        };
        number
            .ok()
            .filter(|share| (0.0..=1.0).contains(share))
            .map(Self)
            .ok_or("give a share of 0% to 100%, such as 1% or 0.01")
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to what anybody types: 0.07 * 100 is 7.000000000000001.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

fn mtu(text: &str) -> Result<Mtu, &'static str> {
    let mtu = text.parse().ok().and_then(Mtu::from_bytes);
    mtu.ok_or("there is no such MTU; give 256, 512, 1024, 2048 or 4096")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_or_fractions() {
        for (text, share) in [
            ("1%", 0.01),
            ("0.5%", 0.005),
            ("0.01", 0.01),
            ("0", 0.0),
            ("100%", 1.0),
        ] {
            assert_eq!(text.parse(), Ok(Share(share)), "{text}");
        }
        for text in ["", "%", "x", "-1%", "101%", "5", "nan", "1 %"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        assert_eq!("7%".parse::<Share>().unwrap().to_string(), "7%");
        assert_eq!("0.005".parse::<Share>().unwrap().to_string(), "0.5%");
    }

    #[test]
    fn the_timeout_is_above_a_round_of_all_queue_pairs() {
        let code = |qps, dut, rate| {
            Options {
                qps,
                dut,
                rate,
                ..Options::default()
            }
            .timeout()
        };
        assert_eq!(code(1, Dut::Rtl512, None), 6, "65536 cycles");
        assert_eq!(
            code(64, Dut::Rtl512, None),
            8,
            "64 * 16 packets of 66 cycles, twice"
        );
        assert_eq!(
            code(64, Dut::Rtl512, Some(128)),
            code(64, Dut::Rtl512, None)
        );
        assert_eq!(
            code(64, Dut::Rtl64, None),
            11,
            "the eighth part of the width"
        );
        assert_eq!(
            code(64, Dut::Rtl64, Some(400)),
            11,
            "the engine is the limit"
        );
        assert!(code(254, Dut::Rtl512, Some(1)) <= 31);
    }
}

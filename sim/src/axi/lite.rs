//! The host's side of `s_axil`: register accesses as a PCIe bridge makes them.
//!
//! Writes are posted and leave in order, one address and one word a cycle at best. A read leaves after
//! the responses of all writes posted before it; writes posted after it may overtake its answer.

use std::collections::VecDeque;

use fastrand::Rng;

use super::check::{Hold, Violations};
use super::{OKAY, WriteResponse};
use crate::random::{Pauses, Pausing};

/// What the host drives at `s_axil`. WSTRB is all ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromHost {
    /// AWVALID.
    pub awvalid: bool,
    /// AWADDR, in bytes.
    pub awaddr: u32,
    /// WVALID.
    pub wvalid: bool,
    /// WDATA.
    pub wdata: u32,
    /// BREADY.
    pub bready: bool,
    /// ARVALID.
    pub arvalid: bool,
    /// ARADDR, in bytes.
    pub araddr: u32,
    /// RREADY.
    pub rready: bool,
}

/// What the engine drives at `s_axil`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToHost {
    /// AWREADY.
    pub awready: bool,
    /// WREADY.
    pub wready: bool,
    /// BVALID.
    pub bvalid: bool,
    /// BRESP.
    pub bresp: u8,
    /// ARREADY.
    pub arready: bool,
    /// RVALID.
    pub rvalid: bool,
    /// RRESP.
    pub rresp: u8,
    /// RDATA.
    pub rdata: u32,
}

/// Random pauses of the host's side, each channel by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Pauses before an AWVALID.
    pub aw: Pauses,
    /// Pauses before a WVALID.
    pub w: Pauses,
    /// Pauses of BREADY.
    pub b: Pauses,
    /// Pauses before an ARVALID.
    pub ar: Pauses,
    /// Pauses of RREADY.
    pub r: Pauses,
    /// Seed of the pauses.
    pub seed: u64,
}

/// Writes without response; more wait.
const MAX_WRITES: u32 = 16;

#[derive(Clone, Copy, Debug)]
enum Access {
    Write(u32, u32),
    Read(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    None,
    Queued,
    Sent,
    Done(u32),
}

/// An AXI4-Lite master.
#[derive(Debug)]
pub struct Master {
    queue: VecDeque<Access>,
    /// Cycles in which the writes without response came, oldest first.
    posted: VecDeque<u64>,
    now: u64,
    read: Read,
    /// Write whose address or word has not left, with (address to go, word to go).
    write: Option<(u32, u32, bool, bool)>,
    unanswered: u32,
    pausing: [Pausing; 5],
    rng: Rng,
    b: Hold<WriteResponse>,
    r: Hold<(u8, u32)>,
    log: Violations,
}

impl Master {
    /// A master with nothing to do.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let c = config;
        Self {
            queue: VecDeque::new(),
            posted: VecDeque::new(),
            now: 0,
            read: Read::None,
            write: None,
            unanswered: 0,
            pausing: [c.aw, c.w, c.b, c.ar, c.r].map(Pausing::new),
            rng: Rng::with_seed(config.seed),
            b: Hold::new("s_axil B"),
            r: Hold::new("s_axil R"),
            log: Violations::default(),
        }
    }

    /// Posts a write.
    pub fn write(&mut self, offset: u32, value: u32) {
        self.queue.push_back(Access::Write(offset, value));
        self.posted.push_back(self.now);
    }

    /// When the oldest write without response came.
    #[must_use]
    pub fn waits_since(&self) -> Option<u64> {
        self.posted.front().copied()
    }

    /// Starts a read.
    ///
    /// # Panics
    /// If the answer of an earlier read was not taken.
    pub fn start_read(&mut self, offset: u32) {
        assert!(
            self.read == Read::None,
            "the answer of the read before was not taken; one read at a time"
        );
        self.read = Read::Queued;
        self.queue.push_back(Access::Read(offset));
    }

    /// The answer, once. An error response answers all ones, as PCIe does.
    pub fn take_read(&mut self) -> Option<u32> {
        let Read::Done(value) = self.read else {
            return None;
        };
        self.read = Read::None;
        Some(value)
    }

    /// All writes are answered and no read is under way.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.queue.is_empty()
            && self.write.is_none()
            && self.unanswered == 0
            && matches!(self.read, Read::None | Read::Done(_))
    }

    /// Rules the engine broke.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.log
    }

    /// Forgets everything under way.
    pub fn reset(&mut self) {
        self.queue.clear();
        self.posted.clear();
        self.read = Read::None;
        self.write = None;
        self.unanswered = 0;
        self.b.reset();
        self.r.reset();
    }

    /// One cycle `now`: `from` and `to` stood at the port; `from` becomes what the host drives next.
    pub fn step(&mut self, now: u64, from: &mut FromHost, to: &ToHost) {
        self.now = now;
        self.answers(now, from, to);
        if from.awvalid && to.awready {
            from.awvalid = false;
        }
        if from.wvalid && to.wready {
            from.wvalid = false;
        }
        if from.arvalid && to.arready {
            from.arvalid = false;
        }
        let [aw, w, b, ar, r] = self.pausing.each_mut().map(|p| p.now(&mut self.rng));
        from.bready = !b;
        from.rready = !r;
        self.issue(from, ar);
        let Some((address, word, address_left, word_left)) = &mut self.write else {
            return;
        };
        if *address_left && !from.awvalid && !aw {
            (from.awvalid, from.awaddr, *address_left) = (true, *address, false);
        }
        if *word_left && !from.wvalid && !w {
            (from.wvalid, from.wdata, *word_left) = (true, *word, false);
        }
        if !*address_left && !*word_left {
            self.write = None;
        }
    }

    /// A write is on its way and has not left whole.
    fn writing(&self, from: &FromHost) -> bool {
        self.write.is_some() || from.awvalid || from.wvalid
    }

    /// Takes the next access off the queue when its turn has come.
    fn issue(&mut self, from: &mut FromHost, ar_pauses: bool) {
        match self.queue.front() {
            Some(&Access::Write(address, word))
                if !self.writing(from) && self.unanswered < MAX_WRITES =>
            {
                self.write = Some((address, word, true, true));
                self.unanswered += 1;
            }
            Some(&Access::Read(address)) if self.unanswered == 0 && !from.arvalid && !ar_pauses => {
                (from.arvalid, from.araddr) = (true, address);
                self.read = Read::Sent;
            }
            _ => return,
        }
        self.queue.pop_front();
    }

    fn answers(&mut self, now: u64, from: &FromHost, to: &ToHost) {
        let b = WriteResponse {
            valid: to.bvalid,
            id: 0,
            resp: to.bresp,
        };
        self.b.check(now, to.bvalid, from.bready, &b, &mut self.log);
        self.r.check(
            now,
            to.rvalid,
            from.rready,
            &(to.rresp, to.rdata),
            &mut self.log,
        );
        if to.bvalid && from.bready {
            if self.unanswered == u32::from(self.writing(from)) {
                self.log
                    .add(now, "s_axil B", "a response without a complete write");
            } else {
                self.unanswered -= 1;
                self.posted.pop_front();
            }
            if to.bresp != OKAY {
                self.log.add(
                    now,
                    "s_axil B",
                    format!("BRESP {}; OKAY is expected", to.bresp),
                );
            }
        }
        if to.rvalid && from.rready {
            if self.read != Read::Sent || from.arvalid {
                self.log.add(now, "s_axil R", "data without a read");
                return;
            }
            if to.rresp != OKAY {
                self.log.add(
                    now,
                    "s_axil R",
                    format!("RRESP {}; OKAY is expected", to.rresp),
                );
            }
            self.read = Read::Done(if to.rresp == OKAY { to.rdata } else { u32::MAX });
        }
    }
}

//! How a connection is made, and what it came to.

use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::QpOptions;

/// How a connection is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) options: QpOptions,
    /// Longest message.
    pub(crate) longest: usize,
    /// The wire loses frames.
    pub(crate) lossy: bool,
    /// Receives are posted one at a time, about as often as messages need one: some find none.
    pub(crate) late: bool,
    /// Cycles that a message takes at most.
    pub(crate) patience: u64,
    /// In each word of each message.
    pub(crate) mark: u32,
    /// Code of the ACK timeout of side A, if it is not that of `options`.
    pub(crate) timeout: Option<u8>,
}

/// What connections came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Messages that came.
    pub messages: u64,
    /// Their bytes, each compared.
    pub bytes: u64,
    /// Messages that the wire lost of a transport that does not repeat.
    pub lost: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.lost += other.lost;
    }
}

/// A queue pair that gives up late and repeats soon.
pub(crate) fn options(qp_type: u8, mtu: Mtu) -> QpOptions {
    QpOptions {
        qp_type,
        mtu,
        timeout: 3,
        rnr_retry: 7,
        ..QpOptions::default()
    }
}

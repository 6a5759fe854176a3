//! Clients of the DMA, by their AXI IDs: AXI keeps one ID in order, different clients may overtake each other.

/// Reads: entries of the command ring.
pub const READ_COMMAND: usize = 0;
/// Reads: send WQEs.
pub const READ_SEND_WQE: usize = 1;
/// Reads: payload of requests.
pub const READ_PAYLOAD: usize = 2;
/// Reads: payload of READ responses.
pub const READ_RESPONSE: usize = 3;
/// Reads: receive WQEs, and the send WQEs whose data a response brings.
pub const READ_LIST: usize = 4;
/// Reads: consumer records of completion queues.
pub const READ_CQ_RECORD: usize = 5;
/// Reads: what atomics work on.
pub const READ_ATOMIC: usize = 6;
/// Reads: frames to send of the exception queue.
pub const READ_EXCEPTION: usize = 7;
/// Reads: consumer records of event queues.
pub const READ_EQ_RECORD: usize = 8;
/// Clients that read.
pub const READERS: usize = 9;

/// Writes: payload.
pub const WRITE_PAYLOAD: usize = 0;
/// Writes: CQEs.
pub const WRITE_CQE: usize = 1;
/// Writes: completions of commands, each one burst.
pub const WRITE_COMMAND: usize = 2;
/// Writes: EQEs.
pub const WRITE_EQE: usize = 3;
/// Writes: results of atomics.
pub const WRITE_ATOMIC: usize = 4;
/// Writes: received frames of the exception queue.
pub const WRITE_EXCEPTION: usize = 5;
/// Clients that write.
pub const WRITERS: usize = 6;

//! Queues in host memory: receive WQEs, CQEs, events.

pub mod cq_write;
pub mod eq_write;
pub mod rq_fetch;
pub mod rq_number;

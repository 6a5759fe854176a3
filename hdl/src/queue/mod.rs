//! Queues in host memory: scheduling and fetching of WQEs, CQEs, events.

pub mod cq_write;
pub mod eq_write;
pub mod rq_fetch;
pub mod scheduler;
pub mod wqe_fetch;

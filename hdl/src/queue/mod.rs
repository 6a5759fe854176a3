//! Queues in host memory: who is ready, and what their entries say.

pub mod cq_write;
pub mod eq_write;
pub mod rq_fetch;
pub mod scheduler;
pub mod wqe_fetch;

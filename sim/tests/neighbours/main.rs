//! Neighbour handling of the driver, over two cards on a wire: golden model and Verilated engine.

mod answers;
mod bridge;
mod hostile;
mod resolve;
mod rig;

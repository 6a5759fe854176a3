//! The programs: both sides over two simulated cards on a wire, what they print, and bad input.

mod bad_input;
mod pair;
mod peers;
mod perf;
mod pingpong;
mod processes;
mod tables;

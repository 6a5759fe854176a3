//! The programs that users of verbs know, for a Ferroce card: `ferroce-devinfo`, `ferroce-show-gids`,
//! `ferroce-rc-pingpong` with its sisters for UC and UD, `ferroce-perf` and `ferroce-stats`. Names, flags and columns are
//! those of `ibv_devinfo`, `show_gids`, `ibv_rc_pingpong`, perftest and `rdma statistic`; `docs/programs.md` shows them.
//!
//! Each program is a function over any [`Backend`](ferroce_driver::Backend), which a binary gives a card and its
//! standard output.

#![forbid(unsafe_code)]

pub mod clock;
pub mod device;
pub mod devinfo;
pub mod gids;
pub mod oob;
pub mod pattern;
pub mod perf;
pub mod pingpong;
pub mod program;
pub mod stats;
pub mod wait;

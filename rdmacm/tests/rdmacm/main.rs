//! The library as C programs see it: its layouts and symbols against those of the system, and Debian's own programs on it.

mod folder;
#[path = "../../../ibverbs/tests/ibverbs/header.rs"]
mod header;
mod layout;
#[path = "../../../ibverbs/tests/ibverbs/library.rs"]
#[allow(
    dead_code,
    reason = "programs that find each other by TCP are not among these"
)]
mod library;
mod misuse;
mod rping;

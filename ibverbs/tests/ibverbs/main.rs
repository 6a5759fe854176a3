//! The library as C programs see it: its layouts against the header of the system, and Debian's own programs on it.

mod folder;
mod header;
mod info;
mod layout;
mod library;
mod perftest;
mod pingpong;
mod programs;
mod rung;

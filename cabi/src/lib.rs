//! What the libraries with a C ABI share: the structures of verbs, objects behind pointers, events behind descriptors, threads
//! without signals, error numbers, and versions of symbols.

pub mod abi;
pub mod errno;
pub mod handle;
pub mod mailbox;
pub mod signals;
pub mod symbols;

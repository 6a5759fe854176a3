//! The examples run.

use std::error::Error;

#[path = "../examples/async_events.rs"]
mod async_events;
#[path = "../examples/owned.rs"]
mod owned;
#[path = "../examples/write.rs"]
mod write;

#[test]
fn a_write() -> Result<(), Box<dyn Error>> {
    write::main()
}

#[test]
fn requests_that_own_their_buffers() -> Result<(), Box<dyn Error>> {
    owned::main()
}

#[test]
fn events_in_tokio() -> Result<(), Box<dyn Error>> {
    async_events::main()
}

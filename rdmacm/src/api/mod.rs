//! The C functions: each finds the objects behind the pointers it is given, and makes an error number of what went wrong.

mod addrinfo;
mod connect;
mod endpoint;
mod events;
mod ids;
mod qps;

use std::ffi::c_int;
use std::sync::Arc;

use ferroce_cabi::handle::Object;

use crate::errno::{Errno, or_minus_one};
use crate::id::{Channel, CmId, Event};

/// 0, or -1 and `errno`.
fn done(result: Result<(), Errno>) -> c_int {
    or_minus_one(result.map(|()| 0))
}

/// The next event of a channel; waits for one unless the program made the descriptor not block.
fn next(channel: &Channel) -> Result<Arc<Event>, Errno> {
    let event = channel.take()?;
    event.id.follow(&event);
    Ok(event)
}

/// Of an identifier whose functions wait: waits for the event of what was begun, which the program finds in it.
fn complete(id: &Arc<CmId>) -> Result<(), Errno> {
    let channel = {
        let inner = id.lock();
        if !inner.is_sync {
            return Ok(());
        }
        inner.channel.clone()
    };
    acknowledge_last(id);
    let event = next(&channel)?;
    let event = event.give();
    // SAFETY: structures of this library.
    let status = unsafe {
        (*id.shown()).event = event;
        (*event).status
    };
    match status {
        0 => Ok(()),
        // What the peer said, which is no error number.
        1.. => Err(Errno::CONNREFUSED),
        status => Err(Errno::from_raw_os_error(-status)),
    }
}

/// Gives back the event that an identifier shows.
fn acknowledge_last(id: &CmId) {
    // SAFETY: a structure of this library.
    let last = unsafe { std::mem::replace(&mut (*id.shown()).event, std::ptr::null_mut()) };
    if !last.is_null() {
        // The program may have done so.
        let _ = Event::acknowledge(last);
    }
}

//! The reader of vfio-user messages: what it accepts is, written again, the same message.
#![no_main]

use ferroce_vfio_user::header::{Header, Kind};
use ferroce_vfio_user::message::{Message, Request, request};
use libfuzzer_sys::fuzz_target;

fn parse(bytes: &[u8]) -> Option<(Header, Request)> {
    let (head, body) = bytes.split_first_chunk()?;
    let header = Header::parse(head).ok()?;
    assert_eq!(Header::parse(&header.emit()).as_ref(), Ok(&header));
    let message = Message {
        header,
        body: body.to_vec(),
        fds: vec![],
    };
    let parsed = Request::parse(&message).ok()?;
    Some((message.header, parsed))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((header, parsed)) = parse(bytes) else {
        return;
    };
    let no_reply = header.kind == Kind::Command { no_reply: true };
    let (_, again) =
        parse(&request(header.id, &parsed, no_reply)).expect("what was written is one");
    assert_eq!(again, parsed);
});

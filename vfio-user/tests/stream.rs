//! Messages on a socket: in pieces, with file descriptors, and cut off.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use ferroce_vfio_user::message::{self, Request};
use ferroce_vfio_user::payload::{Dma, DmaMap};
use ferroce_vfio_user::stream::{Outbox, Receiver, StreamError, Wait, send};
use ferroce_vfio_user::{MAX_FDS, ProtocolError};

fn map(address: u64) -> Request {
    Request::DmaMap(DmaMap {
        address,
        ..DmaMap::default()
    })
}

fn write(bytes: usize) -> Request {
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
    let count = bytes as u64;
    Request::DmaWrite(Dma { address: 1, count }, data)
}

fn file(text: &str) -> File {
    let mut file: File = rustix::fs::memfd_create("stream", rustix::fs::MemfdFlags::CLOEXEC)
        .unwrap()
        .into();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn a_message_may_come_byte_by_byte() {
    let (mut client, server) = UnixStream::pair().unwrap();
    let mut receiver = Receiver::new();
    let bytes = message::request(3, &map(0x1000), false);
    for (i, byte) in bytes.iter().enumerate() {
        assert!(
            receiver.receive(&server, Wait::Never).unwrap().is_none(),
            "{i}"
        );
        client.write_all(&[*byte]).unwrap();
    }
    let message = receiver.receive(&server, Wait::Never).unwrap().unwrap();
    assert_eq!(Request::parse(&message), Ok(map(0x1000)));
    assert!(receiver.receive(&server, Wait::Never).unwrap().is_none());
}

#[test]
fn descriptors_stay_with_their_message() {
    let (client, server) = UnixStream::pair().unwrap();
    let (one, two) = (file("one"), file("two"));
    for (address, files) in [
        (1, &[][..]),
        (2, &[one.as_fd()]),
        (3, &[]),
        (4, &[two.as_fd()]),
    ] {
        send(&client, &message::request(0, &map(address), false), files).unwrap();
    }
    let mut receiver = Receiver::new();
    for (address, text) in [(1, None), (2, Some("one")), (3, None), (4, Some("two"))] {
        let mut message = receiver.receive(&server, Wait::Forever).unwrap().unwrap();
        assert_eq!(Request::parse(&message), Ok(map(address)));
        let found = message.fds.pop().map(|fd| {
            let mut text = String::new();
            File::from(fd).read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(found.as_deref(), text);
        assert!(message.fds.is_empty());
    }
}

#[test]
fn more_descriptors_than_are_taken_end_the_stream() {
    let (client, server) = UnixStream::pair().unwrap();
    let file = file("x");
    let all = vec![file.as_fd(); MAX_FDS];
    let bytes = message::request(0, &map(1), false);
    send(&client, &bytes, &all).unwrap();
    let message = Receiver::new().receive(&server, Wait::Forever).unwrap();
    assert_eq!(message.unwrap().fds.len(), MAX_FDS);

    let error = send(&client, &bytes, &[all.as_slice(), &all].concat()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);

    // Another sender puts as many on a header in two pieces.
    send(&client, &bytes[..8], &all).unwrap();
    send(&client, &bytes[8..], &all).unwrap();
    let error = Receiver::new().receive(&server, Wait::Forever).unwrap_err();
    let expected = StreamError::Protocol(ProtocolError::Fds);
    assert_eq!(error.to_string(), expected.to_string());
}

#[test]
fn an_end_inside_a_message_is_an_error() {
    for cut in [0, 1, 15, 16, 40] {
        let (mut client, server) = UnixStream::pair().unwrap();
        client
            .write_all(&message::request(0, &map(1), false)[..cut])
            .unwrap();
        drop(client);
        let error = Receiver::new().receive(&server, Wait::Forever).unwrap_err();
        match error {
            StreamError::Closed => assert_eq!(cut, 0),
            StreamError::Truncated => assert_ne!(cut, 0),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn an_outbox_waits_for_room_and_loses_nothing() {
    let (client, server) = UnixStream::pair().unwrap();
    let mut outbox = Outbox::new();
    for id in 0..40 {
        outbox.push(message::request(id, &write(100_000), false));
    }
    outbox.flush(&client).unwrap();
    assert!(
        outbox.bytes() > 1 << 20,
        "nobody reads, so there is no room"
    );
    let reader = thread::spawn(move || {
        let mut receiver = Receiver::new();
        for id in 0..40 {
            let message = receiver.receive(&server, Wait::Forever).unwrap().unwrap();
            assert_eq!(message.header.id, id);
            assert_eq!(Request::parse(&message), Ok(write(100_000)));
        }
    });
    while outbox.bytes() > 0 {
        outbox.flush(&client).unwrap();
        thread::yield_now();
    }
    reader.join().unwrap();
}

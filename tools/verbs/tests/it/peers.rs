//! Peers that are not what they should be: another program, another version, another test, or gone.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use clap::Parser;
use ferroce_verbs_tools::device::Device;
use ferroce_verbs_tools::program::BadInput;
use ferroce_verbs_tools::{perf, pingpong};

use crate::pair::{Kind, RemoteCard, cards};

/// A client of a program, of which `peer` is the server; how it ended.
fn client(
    options: &str,
    side: impl FnOnce(&mut Device<RemoteCard>, &str) -> anyhow::Result<()>,
    peer: impl FnOnce(TcpStream) + Send + 'static,
) -> anyhow::Error {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || peer(listener.accept().unwrap().0));
    let (thread, [card, other]) = cards(Kind::Model);
    let line = format!("program {options} -p {port} 127.0.0.1");
    let mut device = Device::new("unix:/card", true, card, &Default::default()).unwrap();
    let error = side(&mut device, &line).unwrap_err();
    drop((device, other));
    server.join().unwrap();
    thread.assert_healthy();
    error
}

fn perf_client(peer: impl FnOnce(TcpStream) + Send + 'static) -> anyhow::Error {
    let side = |device: &mut Device<_>, line: &str| {
        let args = perf::Args::parse_from(line.split_whitespace());
        perf::run(device, &args, &mut Vec::new())
    };
    client("write_bw -s 64", side, peer)
}

fn pingpong_client(peer: impl FnOnce(TcpStream) + Send + 'static) -> anyhow::Error {
    let side = |device: &mut Device<_>, line: &str| {
        let args = pingpong::RcArgs::parse_from(line.split_whitespace());
        pingpong::run(device, &args.try_into()?, &mut Vec::new())
    };
    client("-s 64", side, peer)
}

/// What the other side of perf says first.
fn line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

/// Says `answer` to the first line of perf, and listens until the end.
fn answer(answer: impl Fn(&str) -> String + Send + 'static) -> impl FnOnce(TcpStream) + Send {
    move |mut stream| {
        let text = answer(&line(&mut stream));
        // The other side may have closed already.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn of_perf() {
    let expect = |error: anyhow::Error, text: &str, is_bad_input: bool| {
        assert!(format!("{error:#}").contains(text), "{text}: {error:#}");
        assert_eq!(error.is::<BadInput>(), is_bad_input, "{error:#}");
    };
    expect(perf_client(drop), "the peer closed the connection", false);
    let version = concat!("ferroce-perf ", env!("CARGO_PKG_VERSION"));
    let older = answer(|_| "{\"program\": \"ferroce-perf 0.0.1\", \"x\": 1}\n".into());
    let text = format!("the peer is ferroce-perf 0.0.1, this side {version}: run the same version");
    expect(perf_client(older), &text, true);
    let reads = answer(|line| line.replace("write_bw", "read_bw"));
    let text = "the peer runs `read_bw -s 64 -n 1000 -q 1 -m 1024 -c Rc`, this side `write_bw";
    expect(perf_client(reads), text, true);
    let other = answer(|_| "SSH-2.0-OpenSSH\n".into());
    expect(perf_client(other), "which is no ferroce-perf", false);
    let endless = answer(|_| "x".repeat(1 << 17));
    expect(perf_client(endless), "without a line end", false);
    let far = answer(|line| line.replace("\"ends\":[[2,", "\"ends\":[[16777216,"));
    expect(perf_client(far), "a number of more than 24 bits", false);
    let few = answer(|line| {
        let (head, tail) = line.split_once("\"ends\":[[").unwrap();
        format!("{head}\"ends\":[[{}", tail.replacen("]]", "],[3,4]]", 1))
    });
    expect(perf_client(few), "-q 2", true);
}

#[test]
fn of_pingpong() {
    let expect = |error: anyhow::Error, text: &str| {
        assert!(format!("{error:#}").contains(text), "{text}: {error:#}");
    };
    expect(pingpong_client(drop), "the peer closed the connection");
    let other = |mut stream: TcpStream| {
        let _ = stream.write_all(&[b'{'; 52]);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    expect(
        pingpong_client(other),
        "expected lid:qpn:psn:gid: run the same program",
    );
}

//! `ferroce-rc-pingpong`: messages to and fro over a reliable connection, as `ibv_rc_pingpong`, with which it exchanges
//! addresses too.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use ferroce_driver::{
    Access, Backend, ConnectAttr, Gid, MrBuf, Mtu, Qp, QpEndpoint, RecvWr, SendOp, SendWr, Wc,
};

use crate::device::{Device, DeviceArgs};
use crate::oob::Oob;
use crate::program::BadInput;

/// Bytes of the message with an address: `lid:qpn:psn:gid` and a zero.
const ADDRESS_BYTES: usize = "0000:000000:000000:00000000000000000000000000000000".len() + 1;
/// `wr_id` of receives and sends.
const RECV: u64 = 1;
const SEND: u64 = 2;

/// Options.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-rc-pingpong",
    version,
    about = "Ping-pong over a reliable connection; without SERVER waits for a client"
)]
pub struct Args {
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// TCP port of the server
    #[arg(short, long, default_value_t = 18515)]
    pub port: u16,
    /// Bytes of a message
    #[arg(short, long, default_value_t = 4096)]
    pub size: u32,
    /// Path MTU in bytes
    #[arg(short, long, default_value = "1024", value_parser = parse_mtu)]
    pub mtu: Mtu,
    /// Receives posted at a time
    #[arg(short, long, default_value_t = 500)]
    pub rx_depth: u32,
    /// Exchanges
    #[arg(short = 'n', long, default_value_t = 1000)]
    pub iters: u32,
    /// Local GID index
    #[arg(short, long, default_value_t = 0)]
    pub gid_idx: u8,
    /// Check the bytes received
    #[arg(short, long)]
    pub chk: bool,
    /// Host of the server
    pub server: Option<String>,
}

/// Reads an MTU in bytes.
///
/// # Errors
/// Which are possible.
pub fn parse_mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse().ok().and_then(Mtu::from_bytes);
    bytes.ok_or_else(|| "possible are 256, 512, 1024, 2048 and 4096".into())
}

fn print_address(out: &mut impl Write, side: &str, qpn: u32, psn: u32, gid: Gid) -> Result<()> {
    let ip = std::net::Ipv6Addr::from(gid.0);
    writeln!(
        out,
        "  {side} address:  LID 0x0000, QPN 0x{qpn:06x}, PSN 0x{psn:06x}, GID {ip}"
    )?;
    Ok(())
}

fn address(end: &QpEndpoint) -> [u8; ADDRESS_BYTES] {
    let gid: String = end.gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("0000:{:06x}:{:06x}:{gid}\0", end.qpn, end.psn);
    text.as_bytes()
        .try_into()
        .expect("all fields have fixed widths")
}

fn parse_address(bytes: &[u8]) -> Result<(u32, u32, Gid)> {
    let text = String::from_utf8_lossy(bytes);
    let wrong = || {
        format!(
            "the peer sent `{}`, expected lid:qpn:psn:gid",
            text.trim_end_matches('\0')
        )
    };
    let parse = || {
        let fields: Vec<_> = text.trim_end_matches('\0').split(':').collect();
        let [_, qpn, psn, gid] = fields[..] else {
            return None;
        };
        let number = |text| u32::from_str_radix(text, 16).ok().filter(|n| *n < 1 << 24);
        let gid = (gid.len() == 32).then(|| u128::from_str_radix(gid, 16).ok())??;
        Some((number(qpn)?, number(psn)?, Gid(gid.to_be_bytes())))
    };
    parse().with_context(wrong)
}

/// Byte `i` of the messages that a side sends.
fn pattern(is_server: bool, i: usize) -> u8 {
    (i.wrapping_mul(31) >> 3) as u8 ^ if is_server { 0xa5 } else { 0 }
}

/// Runs one side.
///
/// # Errors
/// Bad input; the peer or the card failed; wrong bytes received; Ctrl-C.
pub fn run<B: Backend>(device: &mut Device<B>, args: &Args, out: &mut impl Write) -> Result<()> {
    let size = args.size as usize;
    if args.size == 0 || args.iters == 0 || args.rx_depth == 0 {
        return Err(BadInput("-s, -n and -r are at least 1".into()).into());
    }
    device.gid(args.gid_idx)?;
    let is_server = args.server.is_none();
    let pd = device.context.alloc_pd();
    let mut cq = device
        .context
        .create_cq(args.rx_depth.saturating_add(1))
        .map_err(|e| BadInput(e.to_string()))?;
    let built = Qp::builder(&pd)
        .rc()
        .cq(&cq)
        .max_send_wr(1)
        .max_recv_wr(args.rx_depth)
        .sgid_index(args.gid_idx)
        .build();
    let mut qp = built.map_err(|e| BadInput(e.to_string()))?;
    let mut to_send = pd.alloc_mr(size, Access::empty())?;
    let bytes: Vec<_> = (0..size).map(|i| pattern(is_server, i)).collect();
    to_send.write(0, &bytes);
    let received = pd.alloc_mr(size, Access::LOCAL_WRITE)?;
    let local = qp.endpoint()?;
    print_address(out, "local", local.qpn, local.psn, local.gid)?;

    let mut oob = Oob::open(device, args.server.as_deref(), args.port)?;
    let mut message = [0; ADDRESS_BYTES];
    if !is_server {
        oob.send(device, &address(&local))?;
    }
    oob.receive(device, &mut message)?;
    let (qpn, psn, gid) = parse_address(&message)?;
    let mac = device.resolve(args.gid_idx, gid)?;
    let attr = ConnectAttr {
        path_mtu: args.mtu,
        timeout: device.ack_timeout(),
        ..ConnectAttr::default()
    };
    qp.connect_with(&QpEndpoint { qpn, psn, gid, mac }, &attr)?;
    let mut posted = post_recvs(&mut qp, &received, args.rx_depth)?;
    print_address(out, "remote", qpn, psn, gid)?;
    if is_server {
        // Ready for what the client sends: now it may know.
        oob.send(device, &address(&local))?;
        let mut done = [0; 5];
        oob.receive(device, &mut done)?;
    } else {
        oob.send(device, b"done\0")?;
    }

    let (start, card_start) = (Instant::now(), device.context.backend().now_ns());
    let (mut sent, mut got, mut pending) = (0, 0, RECV);
    if !is_server {
        post_send(&mut qp, &to_send)?;
        pending |= SEND;
    }
    let mut wcs = [Wc::default(); 16];
    while sent < args.iters || got < args.iters {
        for wc in device.completions(&mut cq, &mut wcs)? {
            pending &= !wc.wr_id;
            if wc.wr_id == SEND {
                sent += 1;
            } else {
                got += 1;
                posted -= 1;
                if wc.byte_len as usize != size {
                    bail!(
                        "a message of {} bytes came, expected {size}: give both sides the same -s",
                        wc.byte_len
                    );
                }
                if args.chk {
                    check(&received, is_server)?;
                }
                if posted <= 1 {
                    posted += post_recvs(&mut qp, &received, args.rx_depth - posted)?;
                }
            }
            if sent < args.iters && pending == 0 {
                post_send(&mut qp, &to_send)?;
                pending = RECV | SEND;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let card = (device.context.backend().now_ns() - card_start) as f64 / 1e9;
    let bytes = f64::from(args.size) * f64::from(args.iters) * 2.0;
    let mut times = vec![("", seconds)];
    if device.simulated {
        times = vec![(" of host time", seconds), (" of card time", card)];
    }
    for (which, seconds) in times {
        writeln!(
            out,
            "{bytes:.0} bytes in {seconds:.2} seconds = {:.2} Mbit/sec{which}",
            bytes * 8.0 / seconds / 1e6
        )?;
        writeln!(
            out,
            "{} iters in {seconds:.2} seconds = {:.2} usec/iter{which}",
            args.iters,
            seconds * 1e6 / f64::from(args.iters)
        )?;
    }
    // The last acknowledgement may still be on its way to the peer: leave together.
    oob.finish(device)
}

fn check<B: Backend>(received: &MrBuf<B>, is_server: bool) -> Result<()> {
    let bytes = received.to_vec(0, received.len());
    let wrong = bytes
        .iter()
        .enumerate()
        .find(|&(i, &byte)| byte != pattern(!is_server, i));
    match wrong {
        Some((i, byte)) => bail!(
            "invalid data: byte {i} is {byte:#04x}, expected {:#04x}",
            pattern(!is_server, i)
        ),
        None => Ok(()),
    }
}

fn post_recvs<B: Backend>(qp: &mut Qp<B>, to: &MrBuf<B>, count: u32) -> Result<u32> {
    let list = [to.sge(..)];
    for _ in 0..count {
        qp.post_recv(&[RecvWr::new(RECV, &list)])?;
    }
    Ok(count)
}

fn post_send<B: Backend>(qp: &mut Qp<B>, from: &MrBuf<B>) -> Result<()> {
    let list = [from.sge(..)];
    qp.post_send(&[SendWr::new(SendOp::Send, &list).wr_id(SEND).signaled()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_the_original_writes_them() {
        let end = QpEndpoint {
            qpn: 0x11,
            psn: 0x2f_3c4d,
            gid: Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 1)),
            mac: Default::default(),
        };
        let text = b"0000:000011:2f3c4d:00000000000000000000ffff0a000001\0";
        assert_eq!(&address(&end), text);
        assert_eq!(parse_address(text).unwrap(), (0x11, 0x2f_3c4d, end.gid));
        for wrong in [
            "",
            "a:b",
            "0:1:2:3",
            "0000:1000000:000000:00000000000000000000ffff0a000001",
        ] {
            assert!(parse_address(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

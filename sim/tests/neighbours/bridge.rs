//! The card as an ordinary network interface: frames between the wire and a descriptor.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use ferroce_driver::{Mac, Tap, TapError};

use crate::rig::*;

/// Both ends of a way that keeps frames apart.
fn ends() -> Result<(UnixDatagram, UnixDatagram)> {
    let (near, far) = UnixDatagram::pair()?;
    far.set_nonblocking(true)?;
    Ok((near, far))
}

/// Frames waiting at an end.
fn waiting(end: &UnixDatagram) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| end.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())).collect()
}

/// What the driver does not answer reaches the other end, and what comes from there the wire.
fn passes(kind: Kind) -> Result {
    let rig = Rig::new(kind, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    let ((near_a, far_a), (near_b, far_b)) = (ends()?, ends()?);
    a.bridge(near_a)?;
    b.bridge(near_b)?;

    // A kernel behind each card speaks with the other one: ARP for an address that is not a GID, then TCP.
    let (ip_a, ip_b) = (Ipv4Addr::new(192, 168, 7, 1), Ipv4Addr::new(192, 168, 7, 2));
    let mut question = arp(BROADCAST, 1, (MAC[0], ip_a), (Mac([0; 6]), ip_b));
    question.resize(60, 0);
    far_a.send(&question)?;
    rig.run(&mut [&mut a, &mut b], 20_000);
    assert_eq!(waiting(&far_b), [question]);
    let mut tcp = ping((MAC[0], ip_a), (MAC[1], ip_b), 8, &[7; 600]);
    tcp[23] = 6;
    let sum = {
        tcp[24..26].fill(0);
        checksum(&[&tcp[14..34]])
    };
    tcp[24..26].copy_from_slice(&sum);
    far_b.send(&tcp)?;
    rig.run(&mut [&mut a, &mut b], 20_000);
    assert_eq!(waiting(&far_a), [tcp]);

    // A question for a GID is answered by the driver of b, and the answer reaches the kernel behind a too.
    let mut question = arp(BROADCAST, 1, (MAC[0], v4(0)), (Mac([0; 6]), v4(1)));
    question.resize(60, 0);
    far_a.send(&question)?;
    rig.run(&mut [&mut a, &mut b], 20_000);
    assert!(waiting(&far_b).is_empty());
    let mut answer = arp(MAC[0], 2, (MAC[1], v4(1)), (MAC[0], v4(0)));
    answer.resize(60, 0);
    assert_eq!(waiting(&far_a), [answer]);

    // A burst longer than the ring: none is lost, and the order is kept.
    let frame = |i: u8| [&MAC[1].0[..], &MAC[0].0, &[0x88, 0xb5], &[i; 46]].concat();
    let burst = match kind {
        Kind::Model => 100,
        Kind::Rtl(_) => 20,
    };
    let mut got = Vec::new();
    for i in 0..burst {
        while let Err(e) = far_a.send(&frame(i)) {
            assert_eq!(e.kind(), ErrorKind::WouldBlock);
            rig.run(&mut [&mut a, &mut b], 2_000);
            got.extend(waiting(&far_b));
        }
    }
    rig.run(&mut [&mut a, &mut b], 4_000 * u64::from(burst));
    got.extend(waiting(&far_b));
    assert_eq!(got, (0..burst).map(frame).collect::<Vec<_>>());
    // Too long for a slot.
    far_a.send(&[0x55; 2000])?;
    rig.run(&mut [&mut a, &mut b], 20_000);
    assert_eq!(a.counters().dropped, 1);
    assert_eq!(
        (a.counters().from_bridge, b.counters().from_bridge),
        (2 + u64::from(burst), 1)
    );
    assert_eq!(
        (a.counters().to_bridge, b.counters().to_bridge),
        (2, 1 + u64::from(burst))
    );
    // The other side goes away: frames for it are lost and counted.
    drop(far_b);
    far_a.send(&frame(1))?;
    rig.run(&mut [&mut a, &mut b], 20_000);
    assert_eq!(b.counters().dropped, 1);
    rig.assert_healthy();
    Ok(())
}

#[test]
fn model_passes() -> Result {
    passes(Kind::Model)
}

#[test]
fn engine_passes() -> Result {
    passes(Kind::Rtl(512))
}

#[test]
fn names_that_are_none() {
    for name in ["", "a/b", "with blank", "sixteen-bytes-xx"] {
        let refused = Tap::new(name, MAC[0], 1500);
        assert!(matches!(refused, Err(TapError::Name(_))), "{name:?}");
    }
}

/// Runs `ip`, in the network namespace of this process.
fn ip(words: &str) -> Result {
    let done = Command::new("ip").args(words.split(' ')).output()?;
    if !done.status.success() {
        return Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(())
}

const INSIDE: &str = "FERROCE_TAP_NAMESPACE";

/// UDP of the kernel through a TAP device, the card and the wire; the driver of the other card answers its ARP. Runs
/// again in a network namespace of its own, where this user may make one.
#[test]
fn kernel_over_a_tap_device() -> Result {
    if std::env::var_os(INSIDE).is_some() {
        return kernel_sends();
    }
    let tools = ["unshare", "ip"];
    let missing = |tool: &&&str| Command::new(tool).arg("-V").output().is_err();
    let lacking = tools
        .iter()
        .find(missing)
        .map(|tool| format!("`{tool}` is not installed"));
    let probe = "test -w /dev/net/tun && ip tuntap add dev probe0 mode tap";
    let may = || {
        Command::new("unshare")
            .args(["-rn", "sh", "-c", probe])
            .output()
    };
    let refused = match lacking {
        Some(why) => Some(why),
        None => Some(may()?)
            .filter(|done| !done.status.success())
            .map(|done| {
                format!(
                    "no TAP device here: {}",
                    String::from_utf8_lossy(&done.stderr).trim()
                )
            }),
    };
    if let Some(why) = refused {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI needs this test: {why}"
        );
        eprintln!("skipped: {why}");
        return Ok(());
    }
    let done = Command::new("unshare")
        .arg("-rn")
        .arg(std::env::current_exe()?)
        .args(["--exact", "bridge::kernel_over_a_tap_device", "--nocapture"])
        .env(INSIDE, "1")
        .output()?;
    let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
    Ok(())
}

fn kernel_sends() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    let tap = Tap::new("roce%d", MAC[0], 1500)?;
    let name = tap.name().to_owned();
    assert_eq!(name, "roce0");
    let again = Tap::new(&name, MAC[0], 1500);
    assert!(matches!(again, Err(TapError::Refused { .. })));
    ip(&format!("address add {}/24 dev {name}", v4(0)))?;
    ip(&format!("link set {name} up"))?;
    a.bridge(OwnedFd::from(tap))?;
    let ((near, far), here) = (ends()?, UdpSocket::bind((v4(0), 4000))?);
    b.bridge(near)?;
    here.set_nonblocking(true)?;
    let there = (v4(1), 4001);
    let mut answer = [0; 64];
    here.send_to(b"who is there?", there)?;
    let (from, len) = 'found: loop {
        rig.run(&mut [&mut a, &mut b], 10_000);
        for mut frame in waiting(&far) {
            // The same packet back: swapped addresses and ports leave the checksums as they are.
            let udp = frame.starts_with(&MAC[1].0) && frame[12..14] == [8, 0] && frame[23] == 17;
            for (x, y, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
                for i in 0..len {
                    frame.swap(x + i, y + i);
                }
            }
            if udp {
                far.send(&frame)?;
            }
        }
        if let Ok((len, from)) = here.recv_from(&mut answer) {
            break 'found (from, len);
        }
        if a.counters().from_bridge > 1000 {
            return Err("no answer".into());
        }
    };
    assert_eq!(from, there.into());
    assert_eq!(&answer[..len], b"who is there?");
    assert!(b.counters().answered >= 1, "the ARP request of the kernel");
    Ok(())
}

//! Two connection managers and a stranger. The stranger sends copies of their messages with bytes changed, from its own address.
//!
//! It holds: no message ends or changes a connection with another peer than its sender; one message draws few; when both
//! programs have ended, all that waits ends in time.
#![no_main]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use ferroce_cm::{
    Address, CmEvent, Family, Id, IpHeader, Listener, MAD_BYTES, Manager, Output, PortSpace, Rep,
    Req, SidrReq, gid,
};
use libfuzzer_sys::fuzz_target;

/// Changed bytes of a message: place, and what is added.
type Changes = Vec<(u8, u8)>;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A message arrives that was sent, `keep`: and may once more.
    Deliver {
        which: u8,
        keep: bool,
        changes: Changes,
    },
    /// The stranger sends one that was sent, `signed`: with its own address for the sender's.
    Forge {
        which: u8,
        to: bool,
        signed: bool,
        changes: Changes,
    },
    Connect {
        from: bool,
    },
    Find {
        from: bool,
    },
    Act {
        of: bool,
        which: u8,
        act: Act,
    },
    Wait {
        ms: u16,
    },
}

#[derive(Arbitrary, Debug)]
enum Act {
    Accept,
    Answer(bool),
    Establish,
    Communicates,
    Reject,
    Disconnect,
    Abandon,
}

type Mail = (Address, Address, [u8; MAD_BYTES]);

fn ip(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

fn address(host: u8) -> Address {
    Address {
        sgid_index: 0,
        gid: gid(ip(host)),
    }
}

const STRANGER: u8 = 9;

struct Host {
    manager: Manager,
    own: u8,
    /// Each connection and its peer.
    peers: BTreeMap<Id, Address>,
}

impl Host {
    fn new(own: u8) -> Self {
        let mut manager = Manager::new(own.into(), u32::from(own) << 8);
        for space in [PortSpace::Tcp, PortSpace::Udp] {
            manager.listen(Listener {
                key: 1,
                space,
                port: 5,
                address: None,
                family: Family::Both,
            });
        }
        let peers = BTreeMap::new();
        Self {
            manager,
            own,
            peers,
        }
    }

    /// Of a request to `peer`.
    fn header(&self, peer: u8) -> IpHeader {
        IpHeader {
            port: 4,
            from: ip(self.own),
            to: ip(peer),
        }
    }

    /// A request to `peer` is sent.
    fn begin(&mut self, id: Id, peer: u8, mail: &mut Vec<Mail>) {
        self.peers.insert(id, address(peer));
        self.settle(None, mail);
    }

    /// Takes what is to be done, after a message of `from` if there was one.
    fn settle(&mut self, from: Option<Address>, mail: &mut Vec<Mail>) {
        let mut outputs = 0;
        while let Some(output) = self.manager.output() {
            outputs += 1;
            match output {
                Output::Send(to, mad) => mail.push((address(self.own), to, *mad)),
                Output::Event(id, event) => {
                    if let CmEvent::ReqReceived(..) | CmEvent::SidrReqReceived(..) = event {
                        self.peers
                            .insert(id, from.expect("a request is of somebody"));
                    }
                    let peer = self.peers[&id];
                    if let Some(from) = from {
                        assert_eq!(peer.gid, from.gid, "{event:?} by another");
                    }
                }
            }
        }
        assert!(from.is_none() || outputs <= 4, "{outputs} by one message");
        mail.drain(..mail.len().saturating_sub(64));
    }

    fn receive(&mut self, now: Duration, from: Address, mad: &[u8], mail: &mut Vec<Mail>) {
        self.manager.receive(now, from, mad);
        self.settle(Some(from), mail);
    }

    fn act(&mut self, now: Duration, which: u8, act: &Act) {
        let Some(&id) = self.peers.keys().nth(usize::from(which)) else {
            return;
        };
        let manager = &mut self.manager;
        // In the wrong state it is refused.
        let _ = match act {
            Act::Accept => manager.accept(
                now,
                id,
                Rep {
                    qpn: 7,
                    ..Rep::default()
                },
            ),
            Act::Answer(found) => manager.answer(now, id, 1, found.then_some((7, 1)), [0; 136]),
            Act::Establish => manager.establish(id),
            Act::Communicates => manager.communicates(id),
            Act::Reject => manager.reject(id, 28, [0; 148]),
            Act::Disconnect => manager.disconnect(now, id),
            Act::Abandon => {
                manager.abandon(now, id);
                Ok(())
            }
        };
    }
}

fn changed(mut mad: [u8; MAD_BYTES], changes: &Changes) -> [u8; MAD_BYTES] {
    for &(at, more) in changes.iter().take(8) {
        mad[usize::from(at)] = mad[usize::from(at)].wrapping_add(more);
    }
    mad
}

/// `mad` with the address of the stranger wherever `from` stands.
fn signed(mut mad: [u8; MAD_BYTES], from: Address) -> [u8; MAD_BYTES] {
    for at in 0..=MAD_BYTES - 16 {
        if mad[at..at + 16] == from.gid {
            mad[at..at + 16].copy_from_slice(&address(STRANGER).gid);
        }
    }
    mad
}

fn run(steps: &[Step]) {
    let mut now = Duration::ZERO;
    let mut hosts = [Host::new(1), Host::new(2)];
    let mut mail: Vec<Mail> = vec![];
    for step in steps {
        match step {
            Step::Deliver {
                which,
                keep,
                changes,
            } if !mail.is_empty() => {
                let at = usize::from(*which) % mail.len();
                let (from, to, mad) = mail[at];
                if !keep {
                    mail.remove(at);
                }
                let to = hosts.iter_mut().find(|host| address(host.own) == to);
                if let Some(to) = to {
                    to.receive(now, from, &changed(mad, changes), &mut mail);
                }
            }
            Step::Forge {
                which,
                to,
                signed: is_signed,
                changes,
            } if !mail.is_empty() => {
                let (from, _, mut mad) = mail[usize::from(*which) % mail.len()];
                if *is_signed {
                    mad = signed(mad, from);
                }
                let to = &mut hosts[usize::from(*to)];
                to.receive(now, address(STRANGER), &changed(mad, changes), &mut mail);
            }
            Step::Deliver { .. } | Step::Forge { .. } => {}
            Step::Connect { from } => {
                let (host, peer) = (&mut hosts[usize::from(*from)], 2 - u8::from(*from));
                let mut private = [0; 92];
                host.header(peer).emit(&mut private);
                let req = Req {
                    service: PortSpace::Tcp.service(5),
                    qpn: 6,
                    local_gid: gid(ip(host.own)),
                    remote_gid: gid(ip(peer)),
                    private,
                    ..Req::default()
                };
                let id = host.manager.connect(now, address(peer), req);
                host.begin(id, peer, &mut mail);
            }
            Step::Find { from } => {
                let (host, peer) = (&mut hosts[usize::from(*from)], 2 - u8::from(*from));
                let mut private = [0; 216];
                host.header(peer).emit(&mut private);
                let req = SidrReq {
                    request: 0,
                    service: PortSpace::Udp.service(5),
                    private,
                };
                let id = host.manager.find(now, address(peer), req);
                host.begin(id, peer, &mut mail);
            }
            Step::Act { of, which, act } => {
                let host = &mut hosts[usize::from(*of)];
                host.act(now, *which, act);
                host.settle(None, &mut mail);
            }
            Step::Wait { ms } => {
                now += Duration::from_millis((*ms).into());
                for host in &mut hosts {
                    host.manager.tick(now);
                    host.settle(None, &mut mail);
                }
            }
        }
    }
    'hosts: for mut host in hosts {
        host.manager.abandon_all(now);
        for _ in 0..10_000 {
            host.settle(None, &mut mail);
            let Some(at) = host.manager.deadline() else {
                continue 'hosts;
            };
            host.manager.tick(at);
        }
        panic!("something waits for ever");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut source = Unstructured::new(bytes);
    let mut steps = vec![];
    while let Ok(step) = Step::arbitrary(&mut source)
        && steps.len() < 200
        && !source.is_empty()
    {
        steps.push(step);
    }
    run(&steps);
});

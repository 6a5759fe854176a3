//! Two connection managers on a wire that loses what the test wants, in a time of its own.

mod connections;
mod strangers;

use std::net::{IpAddr, Ipv4Addr};

pub(super) use super::*;
use crate::mad::IP_BYTES;

pub(super) const PORT: u16 = 7174;

pub(super) fn address(side: usize) -> Address {
    Address {
        sgid_index: 0,
        gid: gid(ip(side)),
    }
}

pub(super) fn ip(side: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, side as u8 + 1).into()
}

pub(super) fn req(from: usize, space: PortSpace, port: u16) -> Req {
    let ends = IpHeader {
        port: 4000,
        from: ip(from),
        to: ip(1 - from),
    };
    let mut private = [7; 92];
    ends.emit(&mut private);
    Req {
        service: space.service(port),
        qpn: 5,
        initiator_depth: 2,
        flow_control: true,
        psn: 6,
        local_gid: address(from).gid,
        remote_gid: address(1 - from).gid,
        private,
        ..Req::default()
    }
}

pub(super) fn rep() -> Rep {
    Rep {
        qpn: 8,
        psn: 9,
        responder_resources: 2,
        flow_control: true,
        private: [1; 196],
        ..Rep::default()
    }
}

/// A message on the wire: from which side, and what.
pub(super) type Frame = (usize, Mad);

pub(super) struct World {
    pub(super) sides: [Manager; 2],
    pub(super) now: Duration,
    /// Events reported to each side.
    pub(super) event: [Vec<(Id, CmEvent)>; 2],
    /// All that was sent, and whether it came.
    pub(super) sent: Vec<(Frame, bool)>,
    /// Whether the n-th message is lost.
    loses: Box<dyn FnMut(&Mad, usize) -> bool>,
}

impl World {
    pub(super) fn new(loses: impl FnMut(&Mad, usize) -> bool + 'static) -> Self {
        let mut sides = [Manager::new(100, 1 << 20), Manager::new(200, u32::MAX - 2)];
        sides[1].listen(Listener {
            key: 77,
            space: PortSpace::Tcp,
            port: PORT,
            address: None,
            family: Family::V4,
        });
        Self {
            sides,
            now: Duration::ZERO,
            event: [vec![], vec![]],
            sent: vec![],
            loses: Box::new(loses),
        }
    }

    /// A side gets a message from an address.
    pub(super) fn receive(&mut self, side: usize, from: Address, message: Message) {
        let mad = Mad { tid: 1, message }.emit();
        self.sides[side].receive(self.now, from, &mad);
    }

    /// Carries messages until no side has one.
    pub(super) fn carry(&mut self) {
        loop {
            let mut is_quiet = true;
            for side in [0, 1] {
                while let Some(output) = self.sides[side].output() {
                    is_quiet = false;
                    match output {
                        Output::Event(id, event) => self.event[side].push((id, event)),
                        Output::Send(to, bytes) => {
                            assert_eq!(to, address(1 - side));
                            let mad = Mad::parse(&*bytes).unwrap();
                            let is_lost = (self.loses)(&mad, self.sent.len());
                            self.sent.push(((side, mad), !is_lost));
                            if !is_lost {
                                self.sides[1 - side].receive(self.now, address(side), &*bytes);
                            }
                        }
                    }
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Lets time pass until something is to be done; whether there is.
    pub(super) fn wait(&mut self) -> bool {
        let deadlines = self.sides.iter().filter_map(Manager::deadline);
        let Some(at) = deadlines.min() else {
            return false;
        };
        self.now = self.now.max(at);
        for side in &mut self.sides {
            side.tick(self.now);
        }
        self.carry();
        true
    }

    /// The last event reported to a side, waiting for it if need be.
    pub(super) fn next(&mut self, side: usize) -> (Id, CmEvent) {
        self.carry();
        while self.event[side].is_empty() {
            assert!(self.wait(), "nobody waits for anything: {:?}", self.sent);
        }
        self.event[side].remove(0)
    }

    /// A connection up to where both programs know of it; its numbers.
    pub(super) fn connected(&mut self) -> [Id; 2] {
        self.connected_by(5)
    }

    /// The same of queue pair `qpn`, and of the third one after it at the other side.
    pub(super) fn connected_by(&mut self, qpn: u32) -> [Id; 2] {
        let asks = Req {
            qpn,
            ..req(0, PortSpace::Tcp, PORT)
        };
        let a = self.sides[0].connect(self.now, address(1), asks);
        let (b, event) = self.next(1);
        let CmEvent::ReqReceived(77, asked, ends) = event else {
            panic!("{event:?}");
        };
        assert_eq!(
            (asked.local, asked.guid, asked.qpn, asked.psn),
            (a, 100, qpn, 6)
        );
        assert_eq!((ends.from, ends.to, ends.port), (ip(0), ip(1), 4000));
        assert_eq!(asked.private[IP_BYTES..], [7; 56]);
        let found = Rep {
            qpn: qpn + 3,
            ..rep()
        };
        self.sides[1].accept(self.now, b, found).unwrap();
        let (of, event) = self.next(0);
        let CmEvent::RepReceived(answer) = event else {
            panic!("{event:?}");
        };
        let expected = (a, b, 200, qpn + 3);
        assert_eq!((of, answer.local, answer.guid, answer.qpn), expected);
        self.sides[0].establish(a).unwrap();
        assert_eq!(self.next(1), (b, CmEvent::Established));
        [a, b]
    }

    pub(super) fn disconnected(&mut self, [a, b]: [Id; 2]) {
        self.sides[0].disconnect(self.now, a).unwrap();
        let gone = |in_time| CmEvent::Disconnected { in_time };
        assert_eq!(self.next(1), (b, gone(true)));
        // The other side may say so too.
        self.sides[1].disconnect(self.now, b).unwrap();
        assert_eq!(self.next(0), (a, gone(true)));
        assert_eq!(self.next(0), (a, CmEvent::TimeWaitOver));
        assert_eq!(self.next(1), (b, CmEvent::TimeWaitOver));
        self.assert_empty();
    }

    pub(super) fn assert_empty(&self) {
        for side in &self.sides {
            assert!(side.connections.is_empty(), "{side:?}");
            assert_eq!(side.deadline(), None);
        }
    }

    pub(super) fn count(&self, is: impl Fn(&Message) -> bool) -> usize {
        self.sent
            .iter()
            .filter(|((_, mad), _)| is(&mad.message))
            .count()
    }
}

/// Name of a message.
pub(super) fn kind(message: &Message) -> &'static str {
    match message {
        Message::Req(_) => "REQ",
        Message::Mra(_) => "MRA",
        Message::Rej(_) => "REJ",
        Message::Rep(_) => "REP",
        Message::Rtu(_) => "RTU",
        Message::Dreq(..) => "DREQ",
        Message::Drep(_) => "DREP",
        Message::SidrReq(_) => "SIDR_REQ",
        Message::SidrRep(_) => "SIDR_REP",
    }
}

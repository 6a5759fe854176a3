//! What a received message does.

use std::time::Duration;

use super::*;

/// The header, if there is one, names the address that it came from.
fn is_of(ends: Option<IpHeader>, from: Address) -> bool {
    ends.is_none_or(|ends| gid(ends.from) == from.gid)
}

impl Manager {
    /// A MAD came from `from`. What is none, or fits nothing, is left.
    pub fn receive(&mut self, now: Duration, from: Address, bytes: &[u8]) {
        let Some(Mad { tid, message }) = Mad::parse(bytes) else {
            return;
        };
        match message {
            Message::Req(req) => self.on_req(now, from, tid, req),
            Message::Mra(mra) => self.on_mra(now, from, &mra),
            Message::Rej(rej) => self.on_rej(now, from, &rej),
            Message::Rep(rep) => self.on_rep(now, from, tid, rep),
            Message::Rtu(ends) => {
                if let Some(id) = self.of(from, ends)
                    && matches!(self.connections[&id].state, State::RepSent(_))
                {
                    self.put(id, State::Established);
                    self.report(id, CmEvent::Established);
                }
            }
            Message::Dreq(ends, qpn) => self.on_dreq(now, from, tid, ends, qpn),
            Message::Drep(ends) => {
                if let Some(id) = self.of(from, ends)
                    && matches!(self.connections[&id].state, State::DreqSent(_))
                {
                    self.time_wait(now, id, CmEvent::Disconnected { in_time: true });
                }
            }
            Message::SidrReq(req) => self.on_sidr_req(from, tid, req),
            Message::SidrRep(rep) => self.on_sidr_rep(from, rep),
        }
    }

    /// The connection that a message is of: both communication IDs and the address are its own.
    fn of(&self, from: Address, ends: Ends) -> Option<Id> {
        let connection = self.connections.get(&ends.remote)?;
        let is_own = connection.remote == ends.local && connection.peer.gid == from.gid;
        is_own.then_some(ends.remote)
    }

    /// One that came in by a request with the peer's number `remote`.
    fn asked(&self, from: Address, remote: u32, guid: u64) -> Option<Id> {
        self.connections
            .of_remote(from.gid, remote, |c| c.guid == guid)
    }

    /// Ends the connection that a queue pair of the peer has here already: the peer has forgotten it, as it connects the
    /// queue pair anew (IB1 12.4.1). Whether there is one.
    fn end_stale(&mut self, now: Duration, from: Address, guid: u64, qpn: u32) -> bool {
        let is_same = |c: &Connection| {
            let is_there = matches!(
                c.state,
                State::RepSent(_) | State::RepReceived | State::Established | State::DreqSent(_)
            );
            is_there && c.guid == guid
        };
        let Some(id) = self.connections.of_remote_qpn(from.gid, qpn, is_same) else {
            return false;
        };
        // Before the program has established it there is nothing to end yet.
        let _ = self.disconnect(now, id);
        true
    }

    fn refuse(&mut self, to: Address, tid: u64, ends: Ends, about: u8, reason: u16) {
        self.send_rej(to, tid, ends, about, reason, [0; 148]);
    }

    pub(super) fn send_rej(
        &mut self,
        to: Address,
        tid: u64,
        ends: Ends,
        about: u8,
        reason: u16,
        private: [u8; 148],
    ) {
        let Ends { local, remote } = ends;
        let rej = Rej {
            local,
            remote,
            about,
            reason,
            guid: self.guid,
            private,
        };
        self.send(to, tid, Message::Rej(rej));
    }

    fn on_req(&mut self, now: Duration, from: Address, tid: u64, req: Req) {
        let no_peer = Ends {
            local: 0,
            remote: req.local,
        };
        let ends = IpHeader::parse(&req.private);
        // The queue pair would be connected to the one, and the answer goes to the other.
        if req.local_gid != from.gid || !is_of(ends, from) {
            return self.refuse(from, tid, no_peer, about::REQ, reason::INVALID_GID);
        }
        if let Some(id) = self.asked(from, req.local, req.guid) {
            let connection = &self.connections[&id];
            match &connection.state {
                // The program takes its time.
                State::ReqReceived => {
                    let mra = Mra {
                        local: id,
                        remote: req.local,
                        about: about::REQ,
                        service_timeout: DECIDE,
                    };
                    self.send(from, tid, Message::Mra(mra));
                }
                State::RepSent(waiting) => {
                    let again = waiting.mad.clone();
                    self.out.push_back(Output::Send(from, again));
                }
                _ => {}
            }
            return;
        }
        if self.end_stale(now, from, req.guid, req.qpn) {
            return self.refuse(from, tid, no_peer, about::REQ, reason::STALE_CONNECTION);
        }
        let found = ends.and_then(|ends| {
            let listener = self.listener(req.service, &ends)?;
            (listener.space == PortSpace::Tcp).then_some((listener.key, ends))
        });
        let Some((key, ends)) = found else {
            return self.refuse(from, tid, no_peer, about::REQ, reason::INVALID_SERVICE_ID);
        };
        // Listeners have reliable connections.
        if req.transport != 0 {
            return self.refuse(from, tid, no_peer, about::REQ, reason::INVALID_TRANSPORT);
        }
        if self.is_crowded() {
            return;
        }
        let connection = Connection {
            remote: req.local,
            guid: req.guid,
            remote_qpn: req.qpn,
            ..Connection::new(from, tid, State::ReqReceived)
        };
        let id = self.add(connection);
        self.report(id, CmEvent::ReqReceived(key, Box::new(req), ends));
    }

    fn on_mra(&mut self, now: Duration, from: Address, mra: &Mra) {
        let Some(connection) = self.connections.get(&mra.remote) else {
            return;
        };
        let is_meant = matches!(
            (&connection.state, mra.about),
            (State::ReqSent(_), about::REQ) | (State::RepSent(_), about::REP)
        );
        if is_meant && connection.peer.gid == from.gid {
            let at = now + time(mra.service_timeout) + time(ANSWER);
            self.connections.wait(mra.remote, at);
        }
    }

    fn on_rej(&mut self, now: Duration, from: Address, rej: &Rej) {
        let asks = |c: &Connection| matches!(c.state, State::ReqReceived | State::RepSent(_));
        let id = if rej.remote == 0 && rej.reason == reason::TIMEOUT {
            // A peer that gives up before a REP came knows one number, its own (IB1 12.6.7.2).
            self.connections.of_remote(from.gid, rej.local, asks)
        } else {
            Some(rej.remote)
        };
        let Some((id, connection)) = id.and_then(|id| Some((id, self.connections.get(&id)?)))
        else {
            return;
        };
        let knows = connection.remote == 0 || connection.remote == rej.local;
        if connection.peer.gid != from.gid || !knows {
            return;
        }
        match connection.state {
            // The peer ends the connection that it takes for stale, and takes the REQ that comes again.
            State::ReqSent(_) if rej.reason == reason::STALE_CONNECTION => {}
            State::ReqSent(_) | State::RepSent(_) | State::ReqReceived | State::RepReceived => {
                let event = CmEvent::Rejected(rej.reason, Box::new(rej.private));
                self.end(id, event);
            }
            // One that gave up after its REP came: the RTU was lost (as `cm_rej_handler` of Linux).
            State::Established => {
                let event = CmEvent::Rejected(rej.reason, Box::new(rej.private));
                self.time_wait(now, id, event);
            }
            State::DreqSent(_) => {
                self.time_wait(now, id, CmEvent::Disconnected { in_time: true });
            }
            _ => {}
        }
    }

    fn on_rep(&mut self, now: Duration, from: Address, tid: u64, rep: Rep) {
        let ends = Ends {
            local: rep.remote,
            remote: rep.local,
        };
        let known = self.connections.get(&rep.remote);
        let Some(c) = known.filter(|c| c.peer.gid == from.gid) else {
            return self.refuse(from, tid, ends, about::REP, reason::INVALID_COMM_ID);
        };
        match c.state {
            State::ReqSent(_) => {
                if self.end_stale(now, from, rep.guid, rep.qpn) {
                    return self.refuse(from, tid, ends, about::REP, reason::STALE_CONNECTION);
                }
                self.connections
                    .learn(rep.remote, rep.local, rep.guid, rep.qpn);
                self.put(rep.remote, State::RepReceived);
                self.report(rep.remote, CmEvent::RepReceived(Box::new(rep)));
            }
            // The RTU was lost.
            State::Established if c.remote == rep.local => self.rtu(rep.remote),
            _ => {}
        }
    }

    fn on_dreq(&mut self, now: Duration, from: Address, tid: u64, ends: Ends, qpn: u32) {
        let known = self.of(from, ends);
        // A message has 24 bits of the number.
        if known.is_some_and(|id| self.connections[&id].local_qpn & 0xff_ffff != qpn) {
            return;
        }
        // A DREQ for an unknown connection gets a DREP too.
        let answer = Ends {
            local: ends.remote,
            remote: ends.local,
        };
        self.send(from, tid, Message::Drep(answer));
        let Some(id) = known else {
            return;
        };
        if let State::Established | State::RepSent(_) | State::RepReceived | State::DreqSent(_) =
            self.connections[&id].state
        {
            self.time_wait(now, id, CmEvent::Disconnected { in_time: true });
        }
    }

    fn on_sidr_req(&mut self, from: Address, tid: u64, req: SidrReq) {
        /// There is no listener; the sender names another's address, as of REQs.
        const UNSUPPORTED: u8 = 1;
        const REJECTED: u8 = 2;
        let is_sidr =
            |c: &Connection| matches!(c.state, State::SidrReceived | State::SidrAnswered(..));
        if let Some(id) = self.connections.of_remote(from.gid, req.request, is_sidr) {
            if let State::SidrAnswered(mad, _) = &self.connections[&id].state {
                let again = mad.clone();
                self.out.push_back(Output::Send(from, again));
            }
            return;
        }
        let ends = IpHeader::parse(&req.private);
        let is_own = is_of(ends, from);
        let found = ends.filter(|_| is_own).and_then(|ends| {
            let listener = self.listener(req.service, &ends)?;
            (listener.space == PortSpace::Udp).then_some((listener.key, ends))
        });
        let Some((key, ends)) = found else {
            let none = SidrRep {
                request: req.request,
                status: if is_own { UNSUPPORTED } else { REJECTED },
                qpn: 0,
                service: req.service,
                qkey: 0,
                private: [0; 136],
            };
            self.send(from, tid, Message::SidrRep(none));
            return;
        };
        if self.is_crowded() {
            return;
        }
        let connection = Connection {
            remote: req.request,
            ..Connection::new(from, tid, State::SidrReceived)
        };
        let id = self.add(connection);
        self.report(id, CmEvent::SidrReqReceived(key, Box::new(req), ends));
    }

    fn on_sidr_rep(&mut self, from: Address, rep: SidrRep) {
        let id = rep.request;
        let known = self.connections.get(&id);
        let is_due =
            |c: &Connection| matches!(c.state, State::SidrSent(_)) && c.peer.gid == from.gid;
        if !known.is_some_and(is_due) {
            return;
        }
        let event = match rep.status {
            0 => CmEvent::SidrRepReceived(Box::new(rep)),
            status => CmEvent::SidrRefused(status, Box::new(rep.private)),
        };
        self.end(id, event);
    }
}

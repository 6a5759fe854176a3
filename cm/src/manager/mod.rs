//! The protocol of the communication manager (IB1 12.9): states of connections, what is sent again and when.
//!
//! There is no device, no clock and no thread in it: the port, which has these, gives it messages and the time, and
//! takes what it has to send and to report. Times are durations since some start.

mod error;
mod listen;
mod receive;
mod repeat;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub use error::WrongState;
pub use listen::{Family, Listener};
use repeat::{ANSWER, DECIDE, RETRIES, TIME_WAIT, UNDECIDED, time};
use table::Table;

use crate::mad::{
    Ends, IpHeader, MAD_BYTES, Mad, Message, Mra, PortSpace, Rej, Rep, Req, SidrRep, SidrReq,
    about, gid, reason,
};

/// Where a peer is: an entry of the GID table, and its GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Entry of the GID table.
    pub sgid_index: u8,
    /// GID of the peer.
    pub gid: [u8; 16],
}

/// A connection, or a question for a service: the local communication ID.
pub type Id = u32;

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A message goes.
    Send(Address, Box<[u8; MAD_BYTES]>),
    /// The program is to know.
    Event(Id, CmEvent),
}

/// A change of a connection, or a request for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmEvent {
    /// A request for a connection, for the listener with this key.
    ReqReceived(u64, Box<Req>, IpHeader),
    /// A request for a queue pair of datagrams, for the listener with this key.
    SidrReqReceived(u64, Box<SidrReq>, IpHeader),
    /// The peer accepted; the program establishes the connection.
    RepReceived(Box<Rep>),
    /// The connection is there.
    Established,
    /// The peer's queue pair of datagrams.
    SidrRepReceived(Box<SidrRep>),
    /// The peer has none, or said no: the status of its answer, and its data.
    SidrRefused(u8, Box<[u8; 136]>),
    /// The peer said no: the reason, and its data.
    Rejected(u16, Box<[u8; 148]>),
    /// The peer did not answer.
    Unreachable,
    /// The connection is gone; whether the peer said so, or did not answer.
    Disconnected {
        /// The peer answered, or ended it itself.
        in_time: bool,
    },
    /// Late messages are gone too.
    TimeWaitOver,
}

/// A message that waits for its answer.
#[derive(Debug)]
struct Waiting {
    mad: Box<[u8; MAD_BYTES]>,
    left: u8,
    at: Duration,
}

#[derive(Debug)]
enum State {
    ReqSent(Waiting),
    ReqReceived,
    RepSent(Waiting),
    RepReceived,
    Established,
    DreqSent(Waiting),
    TimeWait(Duration),
    SidrSent(Waiting),
    SidrReceived,
    /// Its answer, for a peer that asks again until then.
    SidrAnswered(Box<[u8; MAD_BYTES]>, Duration),
}

/// A connection.
#[derive(Debug)]
struct Connection {
    /// The peer's communication ID.
    remote: u32,
    peer: Address,
    /// The peer's card, and the queue pairs of both, as far as REQ and REP have named them.
    guid: u64,
    remote_qpn: u32,
    local_qpn: u32,
    tid: u64,
    state: State,
    /// Its events are not reported any more.
    is_detached: bool,
}

/// All connections and listeners of a port.
#[derive(Debug)]
pub struct Manager {
    connections: Table,
    listeners: Vec<Listener>,
    guid: u64,
    next: u32,
    tid: u64,
    out: VecDeque<Output>,
}

impl Manager {
    /// That of the card `guid`; communication IDs go on from `first`, which is another in each life of the card.
    pub fn new(guid: u64, first: u32) -> Self {
        Self {
            connections: Table::default(),
            listeners: Vec::new(),
            guid,
            next: first,
            tid: u64::from(first) << 32,
            out: VecDeque::new(),
        }
    }

    /// The next thing to be done.
    pub fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn add(&mut self, connection: Connection) -> Id {
        loop {
            self.next = self.next.wrapping_add(1);
            // 0 says that there is no communication ID.
            if self.next != 0 && !self.connections.contains_key(&self.next) {
                self.connections.insert(self.next, connection);
                return self.next;
            }
        }
    }

    fn send(&mut self, to: Address, tid: u64, message: Message) -> Box<[u8; MAD_BYTES]> {
        let mad = Box::new(Mad { tid, message }.emit());
        self.out.push_back(Output::Send(to, mad.clone()));
        mad
    }

    /// Sends a message and waits for an answer.
    fn ask(&mut self, now: Duration, to: Address, tid: u64, message: Message) -> Waiting {
        Waiting {
            mad: self.send(to, tid, message),
            left: RETRIES,
            at: now + time(ANSWER),
        }
    }

    fn report(&mut self, id: Id, event: CmEvent) {
        if self.connections.get(&id).is_some_and(|c| !c.is_detached) {
            self.out.push_back(Output::Event(id, event));
        }
    }

    /// Tells the end of a connection, whose number waits.
    fn time_wait(&mut self, now: Duration, id: Id, event: CmEvent) {
        self.report(id, event);
        self.put(id, State::TimeWait(now + TIME_WAIT));
    }

    /// Tells the end of a connection, and forgets it.
    fn end(&mut self, id: Id, event: CmEvent) {
        self.report(id, event);
        self.connections.remove(id);
    }

    /// As many requests wait for programs as may.
    fn is_crowded(&self) -> bool {
        self.connections.undecided() >= UNDECIDED
    }

    fn next_tid(&mut self) -> u64 {
        self.tid += 1;
        self.tid
    }

    /// Asks for a connection. `req` is without communication ID and GUID.
    pub fn connect(&mut self, now: Duration, peer: Address, req: Req) -> Id {
        let tid = self.next_tid();
        let id = self.add(Connection {
            local_qpn: req.qpn,
            ..Connection::new(peer, tid, State::ReqReceived)
        });
        let guid = self.guid;
        let message = Message::Req(Req {
            local: id,
            guid,
            remote_timeout: ANSWER,
            local_timeout: ANSWER,
            cm_retries: RETRIES,
            ..req
        });
        let waiting = self.ask(now, peer, tid, message);
        self.put(id, State::ReqSent(waiting));
        id
    }

    /// Asks for the queue pair of a service.
    pub fn find(&mut self, now: Duration, peer: Address, req: SidrReq) -> Id {
        let tid = self.next_tid();
        let id = self.add(Connection::new(peer, tid, State::SidrReceived));
        let message = Message::SidrReq(SidrReq { request: id, ..req });
        let waiting = self.ask(now, peer, tid, message);
        self.put(id, State::SidrSent(waiting));
        id
    }

    fn put(&mut self, id: Id, state: State) {
        self.connections.put(id, state);
    }

    fn get(&self, id: Id) -> Result<&Connection, WrongState> {
        self.connections.get(&id).ok_or(WrongState)
    }

    /// Accepts a connection that was asked for. `rep` is without communication IDs and GUID.
    pub fn accept(&mut self, now: Duration, id: Id, rep: Rep) -> Result<(), WrongState> {
        let c = self.connections.get_mut(id).ok_or(WrongState)?;
        let (peer, tid, remote) = (c.peer, c.tid, c.remote);
        if !matches!(c.state, State::ReqReceived) {
            return Err(WrongState);
        }
        c.local_qpn = rep.qpn;
        let guid = self.guid;
        let message = Message::Rep(Rep {
            local: id,
            remote,
            guid,
            ..rep
        });
        let waiting = self.ask(now, peer, tid, message);
        self.put(id, State::RepSent(waiting));
        Ok(())
    }

    /// Answers a question for a service with a queue pair, its Q_Key and data, or if there is no queue pair with no.
    pub fn answer(
        &mut self,
        now: Duration,
        id: Id,
        service: u64,
        found: Option<(u32, u32)>,
        private: [u8; 136],
    ) -> Result<(), WrongState> {
        /// The program said no.
        const REJECTED: u8 = 2;
        let c = self.get(id)?;
        if !matches!(c.state, State::SidrReceived) {
            return Err(WrongState);
        }
        let (peer, tid, request) = (c.peer, c.tid, c.remote);
        let (qpn, qkey) = found.unwrap_or_default();
        let status = if found.is_some() { 0 } else { REJECTED };
        let message = Message::SidrRep(SidrRep {
            request,
            status,
            qpn,
            service,
            qkey,
            private,
        });
        let mad = self.send(peer, tid, message);
        self.put(id, State::SidrAnswered(mad, now + time(ANSWER) * 2));
        Ok(())
    }

    /// The queue pair is ready for what the peer sends: the connection is established.
    pub fn establish(&mut self, id: Id) -> Result<(), WrongState> {
        if !matches!(self.get(id)?.state, State::RepReceived) {
            return Err(WrongState);
        }
        self.rtu(id);
        self.put(id, State::Established);
        Ok(())
    }

    fn rtu(&mut self, id: Id) {
        if let Some(c) = self.connections.get(&id) {
            let (peer, tid, remote) = (c.peer, c.tid, c.remote);
            self.send(peer, tid, Message::Rtu(Ends { local: id, remote }));
        }
    }

    /// The queue pair received something of the peer: that says as much as an RTU.
    pub fn communicates(&mut self, id: Id) -> Result<(), WrongState> {
        match self.get(id)?.state {
            State::RepSent(_) => {
                self.put(id, State::Established);
                self.report(id, CmEvent::Established);
                Ok(())
            }
            State::Established => Ok(()),
            _ => Err(WrongState),
        }
    }

    /// Refuses a connection: one that was asked for, or one that the peer accepted.
    pub fn reject(&mut self, id: Id, reason: u16, private: [u8; 148]) -> Result<(), WrongState> {
        let c = self.get(id)?;
        let about = match c.state {
            State::ReqReceived => about::REQ,
            State::RepReceived => about::REP,
            State::ReqSent(_) | State::RepSent(_) => about::OTHER,
            _ => return Err(WrongState),
        };
        let (peer, tid) = (c.peer, c.tid);
        let ends = Ends {
            local: id,
            remote: c.remote,
        };
        self.send_rej(peer, tid, ends, about, reason, private);
        self.connections.remove(id);
        Ok(())
    }

    /// Ends a connection; also when the peer has done so already.
    pub fn disconnect(&mut self, now: Duration, id: Id) -> Result<(), WrongState> {
        let c = self.get(id)?;
        match c.state {
            State::Established | State::RepSent(_) => {
                let ends = Ends {
                    local: id,
                    remote: c.remote,
                };
                let (peer, qpn) = (c.peer, c.remote_qpn);
                let tid = self.next_tid();
                let waiting = self.ask(now, peer, tid, Message::Dreq(ends, qpn));
                self.put(id, State::DreqSent(waiting));
                Ok(())
            }
            State::DreqSent(_) | State::TimeWait(_) => Ok(()),
            _ => Err(WrongState),
        }
    }

    /// The program is done with a connection, whatever its state: the peer gets a message, the program no more events.
    pub fn abandon(&mut self, now: Duration, id: Id) {
        let Some(c) = self.connections.get_mut(id) else {
            return;
        };
        c.is_detached = true;
        // Whatever of it does not fit the state was done before.
        let _ = match c.state {
            State::ReqSent(_) => self.reject(id, reason::TIMEOUT, [0; 148]),
            State::ReqReceived | State::RepReceived => self.reject(id, reason::CONSUMER, [0; 148]),
            State::Established | State::RepSent(_) => self.disconnect(now, id),
            State::SidrReceived => self.answer(now, id, 0, None, [0; 136]),
            State::SidrSent(_) => {
                self.connections.remove(id);
                Ok(())
            }
            State::DreqSent(_) | State::TimeWait(_) | State::SidrAnswered(..) => Ok(()),
        };
    }

    /// The process ends: no connection is to stay. Whether answers are due.
    pub fn abandon_all(&mut self, now: Duration) -> bool {
        let ids: Vec<_> = self.connections.keys().copied().collect();
        ids.into_iter().for_each(|id| self.abandon(now, id));
        let mut states = self.connections.values().map(|c| &c.state);
        states.any(|state| matches!(state, State::DreqSent(_)))
    }
}

impl Connection {
    fn new(peer: Address, tid: u64, state: State) -> Self {
        Self {
            remote: 0,
            peer,
            guid: 0,
            remote_qpn: 0,
            local_qpn: 0,
            tid,
            state,
            is_detached: false,
        }
    }
}

//! The connections of a port, and how they are found by what a peer says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::time::Duration;

use super::{Connection, Id, State};

/// A number that a peer has given: its GID, the number, the connection.
type Known = BTreeSet<([u8; 16], u32, Id)>;

/// Connections by communication ID; to be looked at like a map.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: BTreeMap<Id, Connection>,
    by_remote: Known,
    by_remote_qpn: Known,
    /// When something is to be done, and of which.
    due: BTreeSet<(Duration, Id)>,
    undecided: usize,
}

impl Deref for Table {
    type Target = BTreeMap<Id, Connection>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Table {
    /// A connection. What the peer says of itself changes by [`learn`](Self::learn) alone, the state by [`put`](Self::put),
    /// and the time of what waits in it by [`wait`](Self::wait).
    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Connection> {
        self.all.get_mut(&id)
    }

    pub(super) fn insert(&mut self, id: Id, connection: Connection) {
        let (gid, remote, qpn) = connection.far();
        self.by_remote.insert((gid, remote, id));
        self.by_remote_qpn.insert((gid, qpn, id));
        self.note(id, &connection.state);
        self.all.insert(id, connection);
    }

    /// Counts a state that a connection comes to.
    fn note(&mut self, id: Id, state: &State) {
        self.undecided += usize::from(state.is_undecided());
        self.due.extend(state.at().map(|at| (at, id)));
    }

    /// Counts a state no more.
    fn forget(&mut self, id: Id, state: &State) {
        self.undecided -= usize::from(state.is_undecided());
        state.at().map(|at| self.due.remove(&(at, id)));
    }

    /// Another state.
    pub(super) fn put(&mut self, id: Id, state: State) {
        if let Some(mut connection) = self.all.remove(&id) {
            self.forget(id, &connection.state);
            self.note(id, &state);
            connection.state = state;
            self.all.insert(id, connection);
        }
    }

    /// What waits in the state waits until `at`.
    pub(super) fn wait(&mut self, id: Id, at: Duration) {
        if let Some(waiting) = self.all.get_mut(&id).and_then(|c| c.state.waiting()) {
            self.due.remove(&(waiting.at, id));
            waiting.at = at;
            self.due.insert((at, id));
        }
    }

    /// When something is to be done next.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Those with something to be done by `now`.
    pub(super) fn due(&self, now: Duration) -> Vec<Id> {
        let due = self.due.range(..=(now, Id::MAX));
        due.map(|(_, id)| *id).collect()
    }

    /// Requests that wait for programs.
    pub(super) fn undecided(&self) -> usize {
        self.undecided
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        let (gid, remote, qpn) = connection.far();
        self.by_remote.remove(&(gid, remote, id));
        self.by_remote_qpn.remove(&(gid, qpn, id));
        self.forget(id, &connection.state);
        Some(connection)
    }

    /// The peer names its communication ID, its card and its queue pair.
    pub(super) fn learn(&mut self, id: Id, remote: u32, guid: u64, remote_qpn: u32) {
        if let Some(connection) = self.remove(id) {
            let known = Connection {
                remote,
                guid,
                remote_qpn,
                ..connection
            };
            self.insert(id, known);
        }
    }

    /// One that the peer `gid` knows by the communication ID `remote`.
    pub(super) fn of_remote(
        &self,
        gid: [u8; 16],
        remote: u32,
        is: impl Fn(&Connection) -> bool,
    ) -> Option<Id> {
        self.find(&self.by_remote, gid, remote, is)
    }

    /// One to its queue pair `qpn`.
    pub(super) fn of_remote_qpn(
        &self,
        gid: [u8; 16],
        qpn: u32,
        is: impl Fn(&Connection) -> bool,
    ) -> Option<Id> {
        self.find(&self.by_remote_qpn, gid, qpn, is)
    }

    fn find(
        &self,
        known: &Known,
        gid: [u8; 16],
        number: u32,
        is: impl Fn(&Connection) -> bool,
    ) -> Option<Id> {
        let mut found = known.range((gid, number, 0)..=(gid, number, Id::MAX));
        let found = found.find(|(_, _, id)| self.all.get(id).is_some_and(&is));
        found.map(|(_, _, id)| *id)
    }
}

impl Connection {
    fn far(&self) -> ([u8; 16], u32, u32) {
        (self.peer.gid, self.remote, self.remote_qpn)
    }
}

impl State {
    /// A request that waits for the program.
    fn is_undecided(&self) -> bool {
        matches!(self, Self::ReqReceived | Self::SidrReceived)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::address;
    use super::super::{MAD_BYTES, Waiting};
    use super::*;

    #[test]
    fn connections_are_found_by_what_peers_say_last() {
        let mut table = Table::default();
        for (id, side) in [(1, 0), (2, 0), (3, 1)] {
            let state = State::ReqReceived;
            table.insert(id, Connection::new(address(side), 0, state));
        }
        table.learn(2, 7, 0x55, 9);
        table.learn(3, 7, 0x55, 9);
        let gid = address(0).gid;
        let any = |_: &Connection| true;
        assert_eq!(table.of_remote(gid, 0, any), Some(1));
        assert_eq!(table.of_remote(gid, 7, any), Some(2));
        assert_eq!(table.of_remote_qpn(gid, 9, |c| c.guid == 0x55), Some(2));
        assert_eq!(table.of_remote_qpn(gid, 9, |c| c.guid != 0x55), None);
        table.put(1, State::Established);
        assert_eq!(table.undecided(), 2);
        table.learn(2, 8, 0x55, 9);
        assert_eq!(table.of_remote(gid, 7, any), None);
        (1..=3).for_each(|id| drop(table.remove(id)));
        assert_eq!(table.of_remote(gid, 8, any), None);
        assert_eq!((table.undecided(), table.by_remote.len()), (0, 0));
    }

    #[test]
    fn connections_are_due_at_the_time_of_their_state() {
        let second = Duration::from_secs;
        let mut table = Table::default();
        for id in 1..=4 {
            let connection = Connection::new(address(0), 0, State::TimeWait(second(id.into())));
            table.insert(id, connection);
        }
        assert_eq!(table.deadline(), Some(second(1)));
        assert_eq!(table.due(second(3)), [1, 2, 3]);
        table.put(2, State::Established);
        table.learn(3, 7, 0x55, 9);
        drop(table.remove(1));
        assert_eq!(table.due(second(4)), [3, 4]);
        let mad = Box::new([0; MAD_BYTES]);
        let (left, at) = (1, second(9));
        table.put(3, State::DreqSent(Waiting { mad, left, at }));
        table.wait(3, second(2));
        table.wait(4, second(1));
        assert_eq!(table.deadline(), Some(second(2)));
        assert_eq!(table.due(second(9)), [3, 4]);
        table.put(3, State::Established);
        drop(table.remove(4));
        assert_eq!((table.deadline(), table.due.len()), (None, 0));
    }
}

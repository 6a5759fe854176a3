//! Peers that programs look for: the thread of the port asks for all of them, some in a turn.

use std::collections::VecDeque;
use std::time::Duration;

use super::Port;
use crate::errno::Errno;
use ferroce_cm::Address;

/// Peers asked for in a turn: however many a program looks for, connections have theirs.
const TURN: usize = 32;

/// Takes whether a peer was found.
pub(crate) type Answer = Box<dyn FnOnce(&Port, bool) + Send>;

/// A peer that is looked for.
struct Wanted {
    peer: Address,
    until: Duration,
    /// A question to it is on its way.
    is_asked: bool,
    answer: Answer,
}

/// All of them; the one asked for last is the last.
#[derive(Default)]
pub(super) struct Resolver {
    wanted: VecDeque<Wanted>,
    has_ended: bool,
}

impl Resolver {
    /// Looks for a peer, `until` then or as long as questions on their way take; `ENODEV` behind [`end`](Self::end).
    pub(super) fn add(
        &mut self,
        peer: Address,
        until: Duration,
        answer: Answer,
    ) -> Result<(), Errno> {
        if self.has_ended {
            return Err(Errno::NODEV);
        }
        self.wanted.push_back(Wanted {
            peer,
            until,
            is_asked: false,
            answer,
        });
        Ok(())
    }

    /// There is no peer to look for.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Asks for as many as is a turn. `ask` says whether one is found, with `EAGAIN` that it may be yet, with
    /// `EHOSTUNREACH` that it is not and that the next call asks again, with any other error that it never will be.
    /// Answers those that are found or never will be, or whose time is over: all that look for one peer with the same call.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        mut ask: impl FnMut(Address) -> Result<(), Errno>,
    ) -> Vec<(Answer, bool)> {
        let turn = self.wanted.len().min(TURN);
        let mut done = Vec::new();
        let mut gone = Vec::new();
        let is_over = |wanted: &Wanted| wanted.is_asked && now >= wanted.until;
        for mut wanted in self.wanted.drain(..turn).collect::<Vec<_>>() {
            match ask(wanted.peer) {
                Ok(()) => done.push((wanted.answer, true)),
                // What was found out before is no answer to this one.
                Err(Errno::AGAIN) => {
                    wanted.is_asked = true;
                    self.wanted.push_back(wanted);
                }
                Err(Errno::HOSTUNREACH) if !is_over(&wanted) => self.wanted.push_back(wanted),
                Err(error) => {
                    if error == Errno::HOSTUNREACH {
                        gone.push(wanted.peer);
                    }
                    done.push((wanted.answer, false));
                }
            }
        }
        let is_gone = |wanted: &Wanted| is_over(wanted) && gone.contains(&wanted.peer);
        let (ended, wanted): (VecDeque<_>, _) = self.wanted.drain(..).partition(is_gone);
        self.wanted = wanted;
        done.extend(ended.into_iter().map(|wanted| (wanted.answer, false)));
        done
    }

    /// Ends the search: the peers that were looked for, as not found.
    pub(super) fn end(&mut self) -> Vec<(Answer, bool)> {
        self.has_ended = true;
        let wanted = self.wanted.drain(..);
        wanted.map(|wanted| (wanted.answer, false)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u16) -> Address {
        let [high, low] = number.to_be_bytes();
        let ip = std::net::Ipv4Addr::new(10, 0, high, low);
        Address {
            sgid_index: 0,
            gid: ferroce_cm::gid(ip.into()),
        }
    }

    fn wants(numbers: std::ops::Range<u16>) -> Resolver {
        let mut resolver = Resolver::default();
        for number in numbers {
            let until = Duration::from_secs(number.into());
            resolver
                .add(peer(number), until, Box::new(|_, _| ()))
                .unwrap();
        }
        resolver
    }

    #[test]
    fn a_turn_is_bounded_and_all_have_theirs() {
        const PEERS: u16 = 1000;
        let mut resolver = wants(0..PEERS);
        let mut asked = vec![0; PEERS.into()];
        for _ in 0..10 * usize::from(PEERS) / TURN {
            let mut questions = 0;
            let done = resolver.turn(Duration::MAX, |peer| {
                let [.., high, low] = peer.gid;
                asked[usize::from(u16::from_be_bytes([high, low]))] += 1;
                questions += 1;
                Err(Errno::AGAIN)
            });
            assert!(questions == TURN && done.is_empty());
        }
        let (least, most) = (asked.iter().min(), asked.iter().max());
        assert!(least >= Some(&9) && most <= Some(&10), "{least:?} {most:?}");
    }

    #[test]
    fn a_peer_is_given_up_when_its_time_is_over_and_its_questions_are() {
        let mut resolver = wants(1..4);
        let mut turn = |seconds, answer| {
            let now = Duration::from_secs(seconds);
            let done = resolver.turn(now, |_| answer);
            done.into_iter().map(|(_, found)| found).collect::<Vec<_>>()
        };
        // An error of before it was asked for.
        assert!(turn(2, Err(Errno::HOSTUNREACH)).is_empty());
        assert!(turn(2, Err(Errno::AGAIN)).is_empty());
        assert_eq!(turn(2, Err(Errno::HOSTUNREACH)), [false, false]);
        assert!(turn(9, Err(Errno::AGAIN)).is_empty());
        assert_eq!(turn(9, Ok(())), [true]);
        assert!(resolver.is_idle());
    }

    /// One call says that it does not answer, and the next one asks again.
    #[test]
    fn all_that_look_for_a_peer_give_it_up_together() {
        let mut resolver = Resolver::default();
        for until in [1, 1, 1, 9] {
            let until = Duration::from_secs(until);
            resolver.add(peer(1), until, Box::new(|_, _| ())).unwrap();
        }
        let now = Duration::from_secs(2);
        assert!(resolver.turn(now, |_| Err(Errno::AGAIN)).is_empty());
        let mut answers = [Err(Errno::HOSTUNREACH)].into_iter();
        let done = resolver.turn(now, |_| answers.next().unwrap_or(Err(Errno::AGAIN)));
        assert!(done.len() == 3 && done.iter().all(|(_, is_found)| !is_found));
        assert!(!resolver.is_idle());
    }

    /// Such as 127.0.0.1, which is the address of no host on the wire: no question is ever on its way.
    #[test]
    fn a_peer_that_cannot_be_asked_for_is_given_up_at_once() {
        let mut resolver = wants(1..4);
        let done = resolver.turn(Duration::ZERO, |_| Err(Errno::INVAL));
        assert!(done.len() == 3 && done.iter().all(|(_, is_found)| !is_found));
        assert!(resolver.is_idle());
    }

    #[test]
    fn whoever_waits_at_the_end_is_answered() {
        let mut resolver = wants(1..4);
        assert_eq!(resolver.end().len(), 3);
        let refused = resolver.add(peer(1), Duration::ZERO, Box::new(|_, _| ()));
        assert_eq!(refused, Err(Errno::NODEV));
    }
}

//! Connections and services, and what is lost of them.

use super::super::repeat::LOOKED;
use super::*;

#[test]
fn a_connection_comes_and_goes() {
    let mut world = World::new(|_, _| false);
    let ids = world.connected();
    world.disconnected(ids);
    let kinds: Vec<_> = world
        .sent
        .iter()
        .map(|((side, mad), _)| (*side, kind(&mad.message)))
        .collect();
    assert_eq!(
        kinds,
        [(0, "REQ"), (1, "REP"), (0, "RTU"), (0, "DREQ"), (1, "DREP")]
    );
    // Messages of a transaction have its number.
    let tids: Vec<_> = world.sent.iter().map(|((_, mad), _)| mad.tid).collect();
    assert_eq!((tids[0], tids[3]), (tids[1], tids[4]));
    assert_ne!(tids[0], tids[3]);
}

#[test]
fn each_message_may_be_lost() {
    for (lost, times) in [
        ("REQ", 3),
        ("REP", 1),
        ("RTU", 2),
        ("DREQ", 15),
        ("DREP", 1),
    ] {
        let mut left = times;
        let mut world = World::new(move |mad, _| {
            let is_lost = kind(&mad.message) == lost && left > 0;
            left -= usize::from(is_lost);
            is_lost
        });
        let ids = world.connected();
        // A DREP that was lost is asked for by a DREQ that comes again.
        world.disconnected(ids);
        assert_eq!(world.sent.iter().filter(|(_, came)| !came).count(), times);
        assert!(world.now < time(ANSWER) * 17, "{lost}: {:?}", world.now);
    }
}

#[test]
fn no_answer_comes() {
    let mut world = World::new(|_, _| true);
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    assert_eq!(world.next(0), (id, CmEvent::Unreachable));
    assert_eq!(world.sent.len(), 1 + usize::from(RETRIES));
    assert_eq!(world.now, time(ANSWER) * (1 + u32::from(RETRIES)));
    world.assert_empty();
}

#[test]
fn a_peer_vanishes_in_the_middle() {
    // The one that accepted hears nothing more.
    let mut world = World::new(|mad, _| kind(&mad.message) == "RTU");
    let a = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    world.sides[1].accept(world.now, b, rep()).unwrap();
    let _ = world.next(0);
    world.sides[0].establish(a).unwrap();
    assert_eq!(world.next(1), (b, CmEvent::Unreachable));
    assert_eq!(world.count(|m| matches!(m, Message::Rep(_))), 16);

    // The one that ends a connection hears nothing more.
    let mut world = World::new(|mad, _| matches!(kind(&mad.message), "DREQ" | "DREP"));
    let [a, _] = world.connected();
    world.sides[0].disconnect(world.now, a).unwrap();
    assert_eq!(world.next(0), (a, CmEvent::Disconnected { in_time: false }));
    assert_eq!(world.count(|m| matches!(m, Message::Dreq(..))), 16);
}

#[test]
fn what_the_queue_pair_receives_is_as_good_as_an_rtu() {
    let mut world = World::new(|mad, _| kind(&mad.message) == "RTU");
    let a = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    assert_eq!(world.sides[1].communicates(b), Err(WrongState));
    world.sides[1].accept(world.now, b, rep()).unwrap();
    let _ = world.next(0);
    world.sides[0].establish(a).unwrap();
    world.carry();
    world.sides[1].communicates(b).unwrap();
    assert_eq!(world.next(1), (b, CmEvent::Established));
    assert_eq!(world.sides[1].deadline(), None);
}

#[test]
fn a_reject_has_a_reason() {
    let mut world = World::new(|_, _| false);
    // There is no listener.
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, 1));
    let none = Box::new([0; 148]);
    assert_eq!(world.next(0), (id, CmEvent::Rejected(8, none.clone())));
    // There is one, of connections of another kind.
    let uc = Req {
        transport: 1,
        ..req(0, PortSpace::Tcp, PORT)
    };
    let id = world.sides[0].connect(world.now, address(1), uc);
    assert_eq!(world.next(0), (id, CmEvent::Rejected(9, none.clone())));
    // The program does not want to.
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    world.sides[1]
        .reject(b, reason::CONSUMER, [3; 148])
        .unwrap();
    assert_eq!(
        world.next(0),
        (id, CmEvent::Rejected(28, Box::new([3; 148])))
    );
    assert_eq!(world.sides[1].accept(world.now, b, rep()), Err(WrongState));
    // The one that asked does not like the answer.
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    world.sides[1].accept(world.now, b, rep()).unwrap();
    let _ = world.next(0);
    world.sides[0]
        .reject(id, reason::CONSUMER, [0; 148])
        .unwrap();
    assert_eq!(world.next(1), (b, CmEvent::Rejected(28, none.clone())));
    // The one that asked does not want to any more.
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    world.sides[0].abandon(world.now, id);
    // It does not know the number of the other side yet, which finds it by its own.
    assert_eq!(world.next(1), (b, CmEvent::Rejected(4, none)));
    assert_eq!(world.sides[1].accept(world.now, b, rep()), Err(WrongState));
    world.assert_empty();
}

#[test]
fn a_stale_connection_is_asked_for_again() {
    let mut world = World::new(|_, n| n == 0);
    let id = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    world.carry();
    let rej = Message::Rej(Rej {
        local: 9,
        remote: id,
        about: about::REQ,
        reason: 10,
        guid: 0,
        private: [0; 148],
    });
    world.receive(0, address(1), rej);
    // It is sent again, and comes.
    assert!(matches!(world.next(1).1, CmEvent::ReqReceived(..)));
    assert_eq!(world.event[0], []);
}

/// The peer starts again and has forgotten a connection, whose queue pair it uses anew (IB1 12.4.1).
#[test]
fn a_stale_connection_ends() {
    for side in [0, 1] {
        // The side that was asked meets a REQ, the one that asked a REP.
        let mut world = World::new(|_, _| false);
        let old = world.connected()[side];
        let guid = [100, 200][1 - side];
        world.sides[1 - side] = Manager::new(guid, 1 << 30);
        world.sides[1].unlisten(77);
        world.sides[1].listen(Listener {
            key: 77,
            space: PortSpace::Tcp,
            port: PORT,
            address: None,
            family: Family::V4,
        });
        let a = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
        if side == 0 {
            let (b, _) = world.next(1);
            world.sides[1].accept(world.now, b, rep()).unwrap();
            let none = Box::new([0; 148]);
            assert_eq!(world.next(1), (b, CmEvent::Rejected(10, none)));
        }
        let gone = CmEvent::Disconnected { in_time: true };
        assert_eq!(world.next(side), (old, gone));
        assert_eq!(world.count(|m| matches!(m, Message::Rej(_))), 1);
        assert_eq!(world.count(|m| matches!(m, Message::Dreq(_, 5 | 8))), 1);
        assert_eq!(world.next(side), (old, CmEvent::TimeWaitOver));
        // It is asked again, and connected.
        let (b, _) = world.next(1);
        world.sides[1].accept(world.now, b, rep()).unwrap();
        assert!(matches!(world.next(0), (id, CmEvent::RepReceived(_)) if id == a));
        world.sides[0].establish(a).unwrap();
        assert_eq!(world.next(1), (b, CmEvent::Established));
    }
}

/// It gave up after its REP came: the RTU was lost.
#[test]
fn a_peer_that_gave_up_refuses_a_connection() {
    for disconnects in [false, true] {
        let mut world = World::new(|_, _| false);
        let [a, b] = world.connected();
        world.sides[1] = Manager::new(200, 1 << 30);
        let mut expected = CmEvent::Rejected(28, Box::new([0; 148]));
        if disconnects {
            world.sides[0].disconnect(world.now, a).unwrap();
            expected = CmEvent::Disconnected { in_time: true };
        }
        let rej = Message::Rej(Rej {
            local: b,
            remote: a,
            about: 1,
            reason: 28,
            guid: 0,
            private: [0; 148],
        });
        world.receive(0, address(1), rej);
        assert_eq!(world.next(0), (a, expected));
        assert_eq!(world.next(0), (a, CmEvent::TimeWaitOver));
        world.assert_empty();
    }
}

#[test]
fn a_program_may_take_its_time() {
    let mut world = World::new(|_, _| false);
    let a = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
    let (b, _) = world.next(1);
    // The request comes again, is not reported twice, and then waits longer.
    assert!(world.wait());
    assert_eq!(world.count(|m| matches!(m, Message::Mra(_))), 1);
    let deadline = world.sides[0].deadline().unwrap();
    assert_eq!(deadline, world.now + time(DECIDE) + time(ANSWER));
    assert_eq!(world.event, [vec![], vec![]]);
    world.sides[1].accept(world.now, b, rep()).unwrap();
    assert!(matches!(world.next(0), (id, CmEvent::RepReceived(_)) if id == a));
}

#[test]
fn the_side_that_ends_informs_the_other_and_gets_no_event() {
    let mut world = World::new(|_, n| n == 3);
    let [a, b] = world.connected();
    world.sides[0].abandon(world.now, a);
    assert!(world.sides[0].abandon_all(world.now), "an answer is due");
    // The DREQ was lost, and is sent again.
    assert_eq!(world.next(1), (b, CmEvent::Disconnected { in_time: true }));
    assert!(!world.sides[0].abandon_all(world.now));
    while world.wait() {}
    assert_eq!(world.event[0], []);
    world.assert_empty();
}

#[test]
fn services_of_datagrams_are_found() {
    let mut world = World::new(|_, n| n < 2);
    let asked = |world: &World, port| {
        let head = req(0, PortSpace::Udp, port);
        let mut private = [2; 216];
        private[..IP_BYTES].copy_from_slice(&head.private[..IP_BYTES]);
        let _ = world;
        SidrReq {
            request: 0,
            service: head.service,
            private,
        }
    };
    world.sides[1].listen(Listener {
        key: 78,
        space: PortSpace::Udp,
        port: PORT,
        address: Some(ip(1)),
        family: Family::V4,
    });
    let req = asked(&world, PORT);
    let a = world.sides[0].find(world.now, address(1), req);
    let (b, event) = world.next(1);
    assert!(
        matches!(event, CmEvent::SidrReqReceived(78, ..)),
        "{event:?}"
    );
    let service = PortSpace::Udp.service(PORT);
    world.sides[1]
        .answer(world.now, b, service, Some((5, 6)), [4; 136])
        .unwrap();
    let (id, event) = world.next(0);
    let CmEvent::SidrRepReceived(found) = event else {
        panic!("{event:?}")
    };
    assert_eq!(
        (id, found.qpn, found.qkey, found.private),
        (a, 5, 6, [4; 136])
    );
    let req = asked(&world, 1);
    let a = world.sides[0].find(world.now, address(1), req);
    assert!(matches!(world.next(0), (id, CmEvent::SidrRefused(1, _)) if id == a));
    while world.wait() {}
    world.assert_empty();
}

/// Connections that wait for nothing cost nothing: neither where time passes nor where one more comes.
#[test]
fn no_turn_looks_at_all_connections() {
    let mut world = World::new(|_, _| false);
    for qpn in 1000..2000 {
        world.connected_by(qpn);
    }
    LOOKED.set(0);
    for side in &mut world.sides {
        assert_eq!(side.deadline(), None);
        side.tick(world.now);
    }
    assert_eq!(LOOKED.get(), 0);
    let [_, b] = world.connected();
    world.sides[1].disconnect(world.now, b).unwrap();
    world.carry();
    assert!(LOOKED.get() < 50, "{} were looked at", LOOKED.get());
}

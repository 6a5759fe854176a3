//! Messages that fit nothing, too many of them, and any loss at all.

use proptest::prelude::*;

use super::*;

#[test]
fn messages_of_others_do_nothing() {
    let mut world = World::new(|_, _| false);
    let [a, b] = world.connected();
    let stranger = Address {
        sgid_index: 0,
        gid: [9; 16],
    };
    let ends = |local, remote| Ends { local, remote };
    let none = [0; 148];
    for message in [
        Message::Rtu(ends(b, a)),
        Message::Dreq(ends(b, a), 5),
        Message::Drep(ends(b, a)),
        Message::Rej(Rej {
            local: b,
            remote: a,
            about: 1,
            reason: 28,
            guid: 0,
            private: none,
        }),
        Message::Mra(Mra {
            local: b,
            remote: a,
            about: 0,
            service_timeout: 31,
        }),
        Message::Rep(Rep {
            local: b,
            remote: a,
            ..rep()
        }),
    ] {
        world.receive(0, stranger, message);
    }
    while let Some(output) = world.sides[0].output() {
        // The stranger is answered, at its own address.
        assert!(
            matches!(output, Output::Send(to, _) if to == stranger),
            "{output:?}"
        );
    }
    // Numbers that do not fit each other: queue pairs 5 and 8 are connected.
    world.receive(0, address(1), Message::Dreq(ends(b + 1, a), 5));
    world.receive(0, address(1), Message::Dreq(ends(b, a), 8));
    world.receive(1, address(0), Message::Dreq(ends(a, b), 5));
    world.carry();
    assert_eq!(world.event, [vec![], vec![]]);
    world.disconnected([a, b]);
}

#[test]
fn a_request_in_the_name_of_another_is_refused() {
    let mut world = World::new(|_, _| false);
    world.sides[1].listen(Listener {
        key: 78,
        space: PortSpace::Udp,
        port: PORT,
        address: None,
        family: Family::V4,
    });
    let liar = Address {
        sgid_index: 0,
        gid: gid([10, 0, 0, 9].into()),
    };
    let whole = req(0, PortSpace::Tcp, PORT);
    // The header names another, or the path does.
    let path = Req {
        local_gid: liar.gid,
        ..whole.clone()
    };
    let mut header = whole.clone();
    let (port, from, to) = (4000, [10, 0, 0, 9].into(), ip(1));
    IpHeader { port, from, to }.emit(&mut header.private);
    let mut private = [0; 216];
    private[..92].copy_from_slice(&whole.private);
    let find = SidrReq {
        request: 3,
        service: PortSpace::Udp.service(PORT),
        private,
    };
    for message in [
        Message::Req(path),
        Message::Req(header),
        Message::SidrReq(find),
    ] {
        world.receive(1, liar, message);
        let Some(Output::Send(to, mad)) = world.sides[1].output() else {
            panic!("it is not refused");
        };
        assert_eq!(to, liar);
        let why = match Mad::parse(&mad[..]).unwrap().message {
            Message::Rej(rej) => rej.reason,
            Message::SidrRep(rep) => rep.status.into(),
            other => panic!("{other:?}"),
        };
        assert!(matches!(why, reason::INVALID_GID | 2), "{why}");
    }
    world.carry();
    assert_eq!(world.event, [vec![], vec![]]);
    world.assert_empty();
}

#[test]
fn requests_are_bounded() {
    let mut world = World::new(|_, _| false);
    for n in 0..2 * UNDECIDED as u32 {
        let req = Req {
            local: n + 1,
            guid: 1,
            qpn: n,
            ..req(0, PortSpace::Tcp, PORT)
        };
        world.receive(1, address(0), Message::Req(req));
    }
    assert_eq!(world.sides[1].connections.len(), UNDECIDED);
}

proptest! {
    /// Whatever is lost and comes twice, both programs hear of a connection's end at last, in bounded time.
    #[test]
    fn any_loss_ends(losses in prop::collection::vec(any::<bool>(), 200)) {
        let mut world = World::new(move |_, n| losses.get(n).copied().unwrap_or(true));
        let a = world.sides[0].connect(world.now, address(1), req(0, PortSpace::Tcp, PORT));
        world.carry();
        let mut steps = 0;
        loop {
            for side in [0, 1] {
                for (id, event) in std::mem::take(&mut world.event[side]) {
                    let now = world.now;
                    let manager = &mut world.sides[side];
                    let done = match event {
                        CmEvent::ReqReceived(..) => manager.accept(now, id, rep()),
                        CmEvent::RepReceived(_) => manager.establish(id),
                        CmEvent::Established => manager.disconnect(now, id),
                        _ => Ok(()),
                    };
                    prop_assert_eq!(done, Ok(()));
                }
            }
            world.carry();
            // The side that asked ends it too, so that nothing stays.
            if world.event == [vec![], vec![]] && !world.wait() {
                if world.sides.iter().all(|side| side.connections.is_empty()) {
                    break;
                }
                world.sides[0].abandon(world.now, a);
                world.sides[1].abandon_all(world.now);
            }
            steps += 1;
            prop_assert!(steps < 200);
        }
        world.assert_empty();
    }

    /// Bytes of any kind, in any state.
    #[test]
    fn garbage_does_no_harm(
        mads in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 256)), 1..20),
        side in 0usize..2,
    ) {
        let mut world = World::new(|_, _| false);
        let ids = world.connected();
        for (attribute, mut bytes) in mads {
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
            bytes[16..18].copy_from_slice(&[0, 0x10 + attribute % 12]);
            // Numbers of a connection that there is.
            bytes[28..32].copy_from_slice(&ids[side].to_be_bytes());
            world.sides[side].receive(world.now, Address { sgid_index: 0, gid: [5; 16] }, &bytes);
            world.sides[side].receive(world.now, address(1 - side), &bytes[..200]);
        }
        while let Some(output) = world.sides[side].output() {
            let is_event = matches!(output, Output::Event(..));
            prop_assert!(!is_event, "{:?}", output);
        }
        world.disconnected(ids);
    }
}

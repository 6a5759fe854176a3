//! The end of identifiers, without a device.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::*;

/// Long enough to see that a thread waits.
const WHILE: Duration = Duration::from_millis(50);

fn pair() -> (Arc<Channel>, Arc<CmId>) {
    let channel = Channel::create().unwrap();
    let context = std::ptr::null_mut();
    let id = CmId::create(Some(channel.clone()), context, PortSpace::Tcp, IBV_QPT_RC);
    (channel, id.unwrap())
}

fn report(id: &Arc<CmId>) {
    let (kind, details) = (RDMA_CM_EVENT_ADDR_RESOLVED, Details::default());
    id.lock().report(Event::new(id, None, kind, details));
}

#[test]
fn the_end_waits_for_an_event_on_its_way() {
    let (channel, id) = pair();
    for is_given in [false, true] {
        report(&id);
        let event = channel.take().unwrap();
        let (ended, ends) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                id.destroy(None);
                ended.send(()).unwrap();
            });
            let end = ends.recv_timeout(WHILE);
            assert!(end.is_err(), "the event is on its way");
            match is_given {
                // A function that failed.
                false => drop(event),
                true => Event::acknowledge(event.give()).unwrap(),
            }
            ends.recv().unwrap();
        });
    }
}

/// So the end, which takes the lock of the identifier first, leaves none for later.
#[test]
fn an_event_is_there_with_its_state() {
    let (channel, id) = pair();
    id.lock().phase = Phase::Connecting;
    report(&id);
    thread::scope(|scope| {
        // The channel is locked meanwhile: nothing can be put.
        channel.events.take_out(|_| {
            scope.spawn(|| deliver::deliver_to(&id, cm::CmEvent::Unreachable));
            let start = Instant::now();
            while start.elapsed() < WHILE {
                let inner = id.inner.try_lock();
                let is_changed = inner.is_ok_and(|inner| inner.phase == Phase::Failed);
                assert!(!is_changed, "the event is on its way");
            }
            true
        });
    });
    assert_eq!(channel.take().unwrap().kind(), RDMA_CM_EVENT_UNREACHABLE);
}

/// So rdma_get_cm_event(3) has it; the reason of a connection comes with REJECTED.
#[test]
fn a_refused_question_for_datagrams_is_unreachable() {
    let (channel, id) = pair();
    for (event, kind) in [
        (
            cm::CmEvent::SidrRefused(2, Box::new([7; 136])),
            RDMA_CM_EVENT_UNREACHABLE,
        ),
        (
            cm::CmEvent::Rejected(2, Box::new([7; 148])),
            RDMA_CM_EVENT_REJECTED,
        ),
    ] {
        id.lock().phase = Phase::Connecting;
        deliver::deliver_to(&id, event);
        let event = channel.take().unwrap();
        // SAFETY: what the event shows.
        let status = unsafe { (*event.shown()).status };
        assert_eq!((event.kind(), status), (kind, 2));
    }
}

/// As in Linux, where the program accepts it first; so is one that was refused.
#[test]
fn a_request_that_is_not_accepted_has_no_events() {
    let (channel, id) = pair();
    id.lock().phase = Phase::Asked;
    deliver::report_removal(&id);
    deliver::deliver_to(&id, cm::CmEvent::Rejected(4, Box::new([0; 148])));
    assert_eq!(id.lock().phase, Phase::Refused);
    deliver::report_removal(&id);
    assert!(channel.try_take().is_none());
    id.lock().phase = Phase::Connecting;
    deliver::report_removal(&id);
    assert_eq!(channel.take().unwrap().kind(), RDMA_CM_EVENT_DEVICE_REMOVAL);
}

/// As rdma-core's library fills in a request without parameters (`ucma_copy_conn_param_to_kern`).
#[test]
fn a_program_that_asks_for_nothing_gets_no_flow_control() {
    let asked = connect::Asked::default();
    assert_eq!((asked.retry, asked.rnr_retry), (7, 7));
    assert!(!asked.flow_control);
}

#[test]
fn nothing_of_an_identifier_stays() {
    let (_channel, id) = pair();
    let comm = u32::MAX;
    id.lock().comm = Some(comm);
    lock(&CONNECTED).insert(comm, Arc::downgrade(&id));
    id.give_up(None);
    id.destroy(None);
    assert!(!lock(&CONNECTED).contains_key(&comm));
    // The next one may have its place in memory, and gets none of its requests.
    let key = id.key;
    drop(id);
    assert_ne!(pair().1.key, key);
}

/// As in Linux, where the peer of one more is rejected; a request that was taken makes room.
#[test]
fn a_listener_has_so_many_requests_as_the_program_may_leave() {
    let (channel, listener) = pair();
    {
        let mut inner = listener.lock();
        inner.phase = Phase::Listening;
        inner.backlog = 2;
    }
    let ask = || {
        let id = CmId::create(
            Some(channel.clone()),
            std::ptr::null_mut(),
            PortSpace::Tcp,
            IBV_QPT_RC,
        );
        deliver::report_request(&listener, &id.unwrap(), Details::default())
    };
    assert_eq!([ask(), ask(), ask()], [Ok(()), Ok(()), Err(Errno::NOMEM)]);
    drop(channel.take().unwrap());
    assert_eq!([ask(), ask()], [Ok(()), Err(Errno::NOMEM)]);
    // the end of one that the program has not seen makes room too
    drop(channel.events.take_out(|_| true));
    assert_eq!([ask(), ask(), ask()], [Ok(()), Ok(()), Err(Errno::NOMEM)]);
    drop(channel.events.take_out(|_| true));
}

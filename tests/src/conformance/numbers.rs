//! Objects of all numbers, and operands over their whole range.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status::BAD_STATE};
use ferroce_proto::abi::cq::{CqCtx, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::{EqCtx, event};
use ferroce_proto::abi::qpc::SrqCtx;
use ferroce_proto::abi::regs::{self, Params, Params3, feature};
use ferroce_proto::wire::{Opcode, Syndrome};
use ferroce_sim::testhost::{Host, Mr, QpOptions, Rights, Side, Work};

use super::bench::{Bench, Conn};
use super::event_queue::Eq;
use super::script::{Script, syndromes};
use super::{ATOMIC, RC, UD, cases, check, ud};

const EVENTS: u32 = ATOMIC | feature::READ | feature::EVENTS;
const SRQ: u32 = RC | feature::SRQ | feature::EVENTS;

cases! {
    queues_of_all_numbers, EVENTS, "abi cmd", "Queue pairs and completion queues of all numbers work, and report their failures to the event queue they name.";
    shared_receive_queues_of_all_numbers, SRQ, "abi cmd", "So do shared receive queues, and their limits.";
    queues_are_created_once, SRQ, "abi cmd", "CREATE of a completion queue, event queue or shared receive queue that is there is refused, and the queue goes on. After DESTROY it is taken.";
    domains_of_all_numbers, ATOMIC | feature::READ, "IB1 10.2.3", "A protection domain has any number of 24 bits; its keys are no other's.";
    doorbells_of_no_queue, RC, "abi doorbell", "Doorbells of queues that the build does not have are ignored.";
    states_of_all_psns, RC, "abi cmd", "QUERY_QP reports PSNs in all their bits.";
    datagrams_of_all_senders, UD, "IB1 9.8.3", "A datagram comes from any of 2^24 queue pairs.";
    atomics_of_all_bits, ATOMIC, "IB1 9.4.5", "Atomics work on all 64 bits, at every address, with as many under way as the engine keeps.";
}

/// Numbers that take each of 32 bits both ways, twice; at first sight 0, so that what begins at 0 has fallen, too.
const WIDE: [u32; 7] = [
    0,
    u32::MAX,
    0x5a96_33c1,
    0xa569_cc3e,
    0,
    u32::MAX,
    0x3c5a_a5c3,
];

/// Numbers below `count`, a power of two, each bit of which comes and goes; 0 and 1 are left to others.
fn numbers(count: u32) -> Vec<u32> {
    let bits = (1..32).map(|bit| 1 << bit).take_while(|n| *n < count);
    let more = [
        count - 1,
        2,
        0x5555_5555 & (count - 1),
        0xaaaa_aaaa & (count - 1),
        3,
    ];
    bits.chain(more).filter(|n| *n > 1).collect()
}

fn params(host: &mut Host) -> Params {
    Params::parse(&host.read32(regs::PARAMS).to_le_bytes())
}

/// Event queues of all numbers.
fn event_queues(host: &mut Host) -> Vec<Eq> {
    let count = 1 << params(host).log_eq.min(8);
    let eqs = (0..count).map(|number| Eq::new(host, number, 4, number.into()));
    eqs.collect()
}

fn queues_of_all_numbers(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (mut from, mut to) = (event_queues(&mut c.a), event_queues(&mut c.b));
    let Params { log_qp, log_cq, .. } = params(&mut c.a);
    let memory = [&mut c.pair.a, &mut c.pair.b].map(|host| host.create_mr(&[0; 64], Rights::ALL));
    for n in numbers(1 << log_qp) {
        let cqn = n as u16 & ((1 << log_cq) - 1);
        let eqn = n as u8 & (from.len() as u8 - 1);
        let options = QpOptions {
            send_cq: cqn,
            recv_cq: cqn,
            ..QpOptions::default()
        };
        for host in [&mut c.pair.a, &mut c.pair.b] {
            host.create_cq_with(cqn, 3, |ctx| ctx.eqn = eqn);
            host.create_qp_as(n, options);
        }
        (c.qa, c.qb) = (n, n);
        c.join(n, n);
        every_operation(&mut c, &memory, cqn);
        // A key that is none ends both queue pairs.
        let mut bad = Work::write(&[], &memory[1], 0).inline(&[1; 8]);
        bad.head.rkey = memory[1].key ^ WIDE[n as usize % WIDE.len()] ^ 1 << 31;
        c.post(&bad);
        check(
            "status",
            c.wait_on(Side::A, cqn).status,
            status::REM_ACCESS_ERR,
        );
        c.settle();
        let eqn = usize::from(eqn);
        let failed = (event::QP_FATAL, n, status::REM_ACCESS_ERR);
        check("events of A", from[eqn].all(&c.a), vec![failed]);
        let refused = (event::QP_ACCESS_ERR, n, status::GENERAL_ERR);
        check("events of B", to[eqn].all(&c.b), vec![refused]);
        from[eqn].give_back(&c.a);
        to[eqn].give_back(&c.b);
        for host in [&mut c.pair.a, &mut c.pair.b] {
            host.reset_qp(n);
            host.destroy_cq(cqn);
        }
    }
}

/// One request of each kind from A to B; the completions come to this completion queue.
fn every_operation(c: &mut Conn, [own, far]: &[Mr; 2], cqn: u16) {
    let n = c.qa;
    c.recv(&[far.all()]);
    let works = [
        Work::send(&[own.all()]),
        Work::write(&[own.all()], far, 0),
        Work::read(&[own.all()], far, 0),
        Work::fetch_add(own.sge(0, 8), far, 8, 1),
    ];
    c.post_all(&works);
    for side in [Side::A, Side::A, Side::A, Side::A, Side::B] {
        let cqe = c.wait_on(side, cqn);
        check(
            "queue pair and status",
            (cqe.qpn, cqe.status),
            (n, status::SUCCESS),
        );
    }
}

fn domains_of_all_numbers(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for number in WIDE {
        let domain = number & 0xff_ffff;
        let memory = [&mut c.pair.a, &mut c.pair.b].map(|host| {
            host.pd = domain;
            host.number_regions(number & 0x2aa | 0x40);
            host.create_mr(&[0; 64], Rights::ALL)
        });
        c.start_again();
        every_operation(&mut c, &memory, 0);
        c.reconnect(Side::A, |_| {});
        c.reconnect(Side::B, |contexts| contexts.rq.pd ^= 1 << (number % 24));
        c.post(&Work::write(&[memory[0].all()], &memory[1], 0));
        check("status", c.wait(Side::A).status, status::REM_ACCESS_ERR);
        c.settle();
        [&mut c.pair.a, &mut c.pair.b]
            .into_iter()
            .zip(&memory)
            .for_each(|(host, mr)| host.deregister(mr));
    }
}

fn shared_receive_queues_of_all_numbers(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut eqs = event_queues(&mut s.host);
    let params = s.host.read32(regs::PARAMS3);
    let count = 1 << Params3::parse(&params.to_le_bytes()).log_srq;
    for srqn in 0..count {
        let eqn = srqn as u8 & (eqs.len() as u8 - 1);
        s.host.pd = WIDE[usize::from(srqn) % WIDE.len()] & 0xff_ffff;
        check("number", s.host.create_srq_on(eqn, 3, 0, 0), srqn);
    }
    for srqn in numbers(count.into()).into_iter().chain([1]) {
        let srqn = srqn as u16;
        let eqn = usize::from(srqn) & (eqs.len() - 1);
        let eq = &mut eqs[eqn];
        s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
        for _ in 0..3 {
            s.host.post_srq(srqn, &[]);
        }
        s.host.arm_srq(srqn, 8);
        let request = s.request(Opcode::RcSendOnly);
        let answers = s.next(&request, &[]);
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
        let limit = (event::SRQ_LIMIT, srqn.into(), 0);
        check("events", eq.all(&s.host), vec![limit]);
        eq.give_back(&s.host);
    }
}

fn queues_are_created_once(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let mut eq = Eq::new(&mut c.a, 0, 4, 5);
    let (srqn, cqn) = (c.a.create_srq(3, 0, 0), c.a.create_cq(3));
    let (base, consumer) = (c.a.alloc_ring(4096), c.a.alloc_record());
    let (log_size, eqn) = (3, 0);
    let cq = CqCtx {
        base,
        consumer,
        log_size,
        eqn,
    };
    let other = EqCtx {
        base,
        consumer,
        log_size,
        vector: 6,
        ..EqCtx::default()
    };
    let srq = SrqCtx {
        base,
        numbers: base,
        log_size,
        ..SrqCtx::default()
    };
    let queues = [
        (opcode::CREATE_CQ, 0, cq.emit()),
        (opcode::CREATE_CQ, cqn.into(), cq.emit()),
        (opcode::CREATE_EQ, 0, other.emit()),
        (opcode::CREATE_SRQ, srqn.into(), srq.emit()),
    ];
    for (opcode, index, image) in queues {
        let head = CmdHead {
            opcode,
            index,
            ..CmdHead::default()
        };
        let status = c.a.command(head, &[image]).status;
        check("status", (opcode, status), (opcode, BAD_STATE));
    }
    c.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY);
    let (qa, qb) = (c.qa, c.qb);
    c.a.post_recv(qa, &[]);
    c.b.post_send(qb, &Work::send(&[]));
    c.settle();
    check("event", eq.take(&c.a), Some((event::COMPLETION, 0, 0)));
    check("interrupts", c.interrupts(), vec![5]);
    check("completion", c.wait(Side::A).status, status::SUCCESS);

    let ends = [
        (opcode::DESTROY_CQ, queues[1]),
        (opcode::DESTROY_EQ, queues[2]),
        (opcode::DESTROY_SRQ, queues[3]),
    ];
    for (destroy, (create, index, image)) in ends {
        c.a.expect(destroy, index, &[0; 64]);
        c.a.expect(create, index, &image);
    }
}

fn doorbells_of_no_queue(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for number in WIDE {
        // The build's numbers have fewer bits.
        let queue = number & 0xffff | 1 << (number % 2 + 14);
        for doorbell in [doorbell::sq, doorbell::rq, doorbell::cq, doorbell::srq] {
            s.host.nic.write32(doorbell(queue), number.rotate_left(9));
        }
    }
    check("packets", s.quiet().len(), 0);
    s.untouched("after doorbells of others");
    s.recv();
    let request = s.request(Opcode::RcSendOnly);
    let answers = s.next(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
}

fn states_of_all_psns(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for psn in WIDE.map(|n| n & 0xff_ffff) {
        let options = QpOptions {
            psn,
            max_rd_atomic: psn as u8 & 0xf,
            ..QpOptions::default()
        };
        s.host.create_qp_as(s.qpn, options);
        s.peer.psn = !psn & 0xff_ffff;
        s.reopen(|_| {});
        let state = s.host.query(s.qpn);
        let psns = (state.sq_psn, state.una_psn, state.rq_psn);
        check("PSNs", psns, (psn, psn, s.peer.psn));
    }
}

fn datagrams_of_all_senders(bench: &mut Bench) {
    let mut s: Script = bench.script(ud::options());
    for sender in WIDE.map(|n| n & 0xff_ffff) {
        s.recv();
        let mut request = s.request(Opcode::UdSendOnly);
        let deth = request.ext.deth.as_mut().expect("a datagram has it");
        deth.src_qp = sender;
        s.send(&request, &[1; 8]);
        let senders: Vec<_> = s.cqes().iter().map(|cqe| cqe.src_qpn).collect();
        check("senders", senders, vec![sender]);
    }
}

/// A number of 64 bits for each place and round; of each place all bits come and go.
fn value(place: u32, round: usize) -> u64 {
    let low = u64::from(WIDE[round].rotate_left(place));
    let high = u64::from(WIDE[round].rotate_left(place + 7));
    high << 32 | low
}

fn atomics_of_all_bits(bench: &mut Bench) {
    const PLACES: u32 = 16;
    let options = QpOptions {
        max_rd_atomic: PLACES as u8,
        ..QpOptions::default()
    };
    let mut c = bench.connect(options);
    let results = c.a.create_mr(&[0; 8 * PLACES as usize], Rights::ALL);
    // Nothing maps the first and the last pages: of them is what the rounds without a bit, and with all, name.
    let all = c.b.register(0, u64::MAX, Rights::ALL);
    for round in 0..WIDE.len() {
        let spot = |place: u32| match value(place + 3, round) {
            0 => u64::from(place) << 13,
            u64::MAX => !0 << 21 | u64::from(place) << 13,
            other => other & !7,
        };
        let mut works = Vec::new();
        let mut expected = Vec::new();
        for place in 0..PLACES {
            let at = spot(place);
            // The places of two rounds may be the same.
            let _there_already = c.b.memory.map(at, vec![0; 8]).is_err();
            let (before, operand) = (value(place, round), value(place + 11, round));
            c.b.write(at, &before.to_le_bytes());
            let result = results.sge(8 * u64::from(place), 8);
            let mut work = Work::fetch_add(result, &all, 0, operand);
            let mut after = before.wrapping_add(operand);
            if place % 4 != 0 {
                // Every other comparison finds what it asks for.
                let compare = before ^ u64::from(place & 1);
                work = Work::cmp_swap(result, &all, 0, compare, operand);
                after = if place & 1 == 0 { operand } else { before };
            }
            work.head.remote_addr = at;
            works.push(work);
            expected.push((at, before, after));
        }
        c.post_all(&works);
        for (place, (at, before, after)) in expected.into_iter().enumerate() {
            check("status", c.wait(Side::A).status, status::SUCCESS);
            let found = [
                c.a.read(results.addr + 8 * place as u64, 8),
                c.b.read(at, 8),
            ];
            let found = found.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
            check("before and after", found, [before, after]);
        }
    }
}

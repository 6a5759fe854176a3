//! Frames to the own address: they come back and do not leave.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::Bench;
use super::script::QKEY;
use super::{RC, UD, cases, check, check_bytes};

cases! {
    own_connection, RC, "abi", "Two queue pairs of one card talk to each other; no frame leaves the port.";
    own_read, RC | feature::READ, "abi", "A READ from the own card brings the data; no frame leaves the port.";
    own_datagram, UD, "abi", "A datagram to the own address arrives; no frame leaves the port.";
}

/// Two connected queue pairs of card A.
fn loopback(bench: &mut Bench) -> (super::bench::Conn, u32, u32) {
    let mut c = bench.connect(QpOptions::default());
    let (one, two) = (
        c.a.create_qp(QpOptions::default()),
        c.a.create_qp(QpOptions::default()),
    );
    let peers = [c.a.peer(one), c.a.peer(two)];
    c.a.connect(one, &peers[1]);
    c.a.connect(two, &peers[0]);
    (c, one, two)
}

fn own_connection(bench: &mut Bench) {
    let (mut c, one, two) = loopback(bench);
    let data = pattern(5000, 3);
    let source = c.a.create_mr(&data, Rights::NONE);
    let target = c.a.create_mr(&[0; 12_000], Rights::ALL);
    c.a.post_recv(two, &[target.sge(0, 5000)]);
    c.a.post_send(one, &Work::send(&[source.all()]));
    c.a.post_send(one, &Work::write(&[source.all()], &target, 6001));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(c.wait(Side::A).status);
    }
    check("completions", statuses, vec![status::SUCCESS; 3]);
    check_bytes("SEND", &c.a.read(target.addr, 5000), &data);
    check_bytes("WRITE", &c.a.read(target.addr + 6001, 5000), &data);
    check("packets of A on the wire", c.packets(Side::A).len(), 0);
}

fn own_read(bench: &mut Bench) {
    let (mut c, one, _) = loopback(bench);
    let data = pattern(5000, 4);
    let source = c.a.create_mr(&data, Rights::ALL);
    let target = c.a.create_mr(&[0; 5000], Rights::ALL);
    c.a.post_send(one, &Work::read(&[target.all()], &source, 0));
    check("status", c.wait(Side::A).status, status::SUCCESS);
    check_bytes("READ", &c.a.contents(&target), &data);
    check("packets of A on the wire", c.packets(Side::A).len(), 0);
}

fn own_datagram(bench: &mut Bench) {
    let options = QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    };
    let mut c = bench.connect(options);
    let qa = c.qa;
    let me = c.a.peer(qa);
    c.a.write_ah(1, &me, |_| {});
    let source = c.a.create_mr(&pattern(100, 3), Rights::NONE);
    let target = c.a.create_mr(&[0; 200], Rights::ALL);
    c.a.post_recv(qa, &[target.all()]);
    let work = Work::datagram(&[source.all()], 1, qa, QKEY);
    c.a.post_send(qa, &work);
    let statuses = [c.wait(Side::A).status, c.wait(Side::A).status];
    check("completions", statuses, [status::SUCCESS; 2]);
    let found = c.a.contents(&target);
    check_bytes("payload", &found[GRH_LEN..][..100], &pattern(100, 3));
    check("packets of A on the wire", c.packets(Side::A).len(), 0);
}

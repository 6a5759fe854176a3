//! CNPs that arrive: they are counted, and change nothing at the responder.

use ferroce_proto::wire::Opcode;

use super::bench::{Bench, Sent};
use super::notification::{LONG, NP, STRANGERS, notice, script, set_source};
use super::script::build;
use super::{cases, check, check_bytes, ud};

cases! {
    cnp_is_handled, NP, "A17.9.3", "A CNP of the peer is counted as handled; nothing else happens.";
    cnp_is_ignored, NP, "A17.9.3", "A CNP from another address, of another partition or for what is no connection is counted as ignored.";
    cnp_flood, NP, "A17.9.3", "Thousands of CNPs one after the other are counted; the connection beside them goes on.";
}

fn cnp_is_handled(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    let cnp = notice(&s);
    let answers = s.counts("rp_cnp_handled", 1, |s| s.send(&cnp, &[]));
    check("answers", answers.len(), 0);
    check("CNPs ignored", s.host.stat("rp_cnp_ignored"), 0);
    s.untouched("after a CNP");
}

fn cnp_is_ignored(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    let datagrams = s.host.create_qp(ud::options());
    let peer = s.peer;
    s.host.connect(datagrams, &peer);
    for (what, spoil) in STRANGERS {
        let mut cnp = notice(&s);
        spoil(&mut cnp);
        let answers = s.counts("rp_cnp_ignored", 1, |s| s.send(&cnp, &[]));
        check(&format!("answers to {what}"), answers.len(), 0);
    }
    for qpn in [datagrams, 0] {
        let mut cnp = notice(&s);
        cnp.bth.dest_qp = qpn;
        s.counts("rp_cnp_ignored", 1, |s| s.send(&cnp, &[]));
    }
    s.untouched("after CNPs of others");
    let (qpn, cnp) = (s.qpn, notice(&s));
    s.host.reset_qp(qpn);
    s.counts("rp_cnp_ignored", 1, |s| s.send(&cnp, &[]));
    check("CNPs handled", s.host.stat("rp_cnp_handled"), 0);
}

fn cnp_flood(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    let ours = build(&notice(&s), &[]);
    let mut others = notice(&s);
    set_source(&mut others, [10, 0, 0, 77]);
    let others = build(&others, &[]);
    for _ in 0..1000 {
        s.hand(&ours);
        s.hand(&others);
    }
    s.hand_next(&s.request(Opcode::RcWriteOnly), &[1; 8]);
    for _ in 0..1000 {
        s.hand(&ours);
    }
    let answers = s.quiet();
    let opcodes: Vec<_> = answers.iter().map(Sent::opcode).collect();
    check("answers", opcodes, vec![Opcode::RcAck]);
    check_bytes("the target", &s.contents()[..8], &[1; 8]);
    check("CNPs handled", s.host.stat("rp_cnp_handled"), 2000);
    check("CNPs ignored", s.host.stat("rp_cnp_ignored"), 1000);
    check("frames lost", s.host.stat("rx_overflow"), 0);
}

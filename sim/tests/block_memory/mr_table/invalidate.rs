//! `mr_table`: keys that a peer invalidates.

use ferroce_hdl::bus::dma::MR_LATENCY;
use ferroce_proto::abi::mr::MrCtx;

use super::{PORTS, Setup, region, write_of};

impl Setup {
    /// Asks for an invalidation; the answer comes within `limit` cycles. `during` says what commands write meanwhile.
    fn invalidate(
        &mut self,
        key: u32,
        (pd, qpn): (u32, u32),
        limit: usize,
        during: impl Fn(&mut Self, usize),
    ) -> bool {
        let dut = self.bench.dut_mut();
        let mut set = |name: &str, value: u64| dut.set(dut.input(name).unwrap(), value);
        set("inv_request.key", key.into());
        set("inv_request.pd", pd.into());
        set("inv_request.qpn", qpn.into());
        self.ask("inv", limit, during)
    }
}

#[test]
fn a_key_is_invalidated_by_its_owner() {
    let mut setup = Setup::new();
    let mr = region();
    setup.write(3, mr);
    let access = write_of(mr.key, 0x1fff, 1);
    let nothing = |_: &mut Setup, _: usize| {};
    assert!(
        !setup.invalidate(mr.key, (8, 5), 5, nothing),
        "protection domain"
    );
    assert!(
        !setup.invalidate(mr.key ^ 1, (7, 5), 5, nothing),
        "key variant"
    );
    assert!(
        !setup.invalidate(mr.key ^ 1 << 20, (7, 5), 5, nothing),
        "alias"
    );
    setup.cycle(&[Some(access); PORTS]);
    assert!(setup.invalidate(mr.key, (7, 5), 5, nothing));
    setup.table[3].valid = false;
    setup.cycle(&[Some(access); PORTS]);
    assert!(!setup.invalidate(mr.key, (7, 5), 5, nothing), "once");
    (0..MR_LATENCY).for_each(|_| setup.cycle(&[None; PORTS]));
    assert!(setup.expected.is_empty());
}

/// Windows of a queue pair by its peer alone; no others, and no region without the right.
#[test]
fn not_every_key_is_a_peers_to_invalidate() {
    let plain = MrCtx {
        invalidate: false,
        ..region()
    };
    let window = MrCtx {
        window: true,
        ..plain
    };
    let own = MrCtx {
        qp_only: true,
        qpn: 5,
        ..window
    };
    let right = |mr| MrCtx {
        invalidate: true,
        ..mr
    };
    for (mr, may) in [
        (plain, false),
        (right(plain), true),
        (window, false),
        (right(window), false),
        (own, true),
        (MrCtx { qpn: 6, ..own }, false),
    ] {
        let mut setup = Setup::new();
        setup.write(3, mr);
        assert_eq!(
            setup.invalidate(mr.key, (7, 5), 5, |_, _| {}),
            may,
            "{mr:?}"
        );
    }
}

/// A command that writes while a key is being looked at is before or behind the invalidation, not both.
#[test]
fn an_invalidation_and_a_command_do_not_mix() {
    for at in 0..5 {
        let mut setup = Setup::new();
        let old = region();
        let new = MrCtx {
            key: old.key + 1,
            ..old
        };
        setup.write(3, old);
        let ok = setup.invalidate(old.key, (7, 5), 10, |setup, n| {
            if n == at {
                setup.write(3, new);
            }
        });
        // The command's entry stands, whoever was first.
        if ok && at == 4 {
            setup.write(3, new);
        }
        let access = write_of(new.key, 0x1000, 16);
        setup.cycle(&[Some(access); PORTS]);
        (0..MR_LATENCY).for_each(|_| setup.cycle(&[None; PORTS]));
        assert!(setup.expected.is_empty());
    }
}

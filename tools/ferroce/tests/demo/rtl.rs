//! The run over the emitted Verilog. Small files: what the RTL makes of long ones is `cargo xtask demo`'s to show.

use ferroce::demo::Options;
use ferroce::dut::Dut;
use ferroce_driver::Mtu;

use crate::run::{figure, intact};

fn on(dut: Dut) -> Options {
    Options {
        dut,
        ..Options::default()
    }
}

#[test]
fn files_of_every_size_arrive() {
    for dut in [Dut::Rtl512, Dut::Rtl64] {
        for mtu in [Mtu::Mtu256, Mtu::Mtu4096] {
            let bytes = mtu.bytes();
            for len in [0, bytes - 1, bytes + 1] {
                let options = Options { mtu, ..on(dut) };
                let outcome = intact(&options, len);
                assert_eq!(figure(&outcome, "retransmissions"), 0.0);
            }
        }
    }
}

#[test]
fn a_clean_wire_is_used_to_the_full() {
    for (dut, goal) in [(Dut::Rtl512, 55.0), (Dut::Rtl64, 7.7)] {
        let outcome = intact(&on(dut), 1 << 20);
        let goodput = figure(&outcome, "goodput_bytes_per_cycle");
        assert!(goodput >= goal, "{goodput} bytes a cycle of {}", dut.name());
    }
}

#[test]
fn hardship_does_not_change_the_file() {
    let share = |text: &str| text.parse().unwrap();
    let hardships = [
        Options {
            loss: share("2%"),
            ..on(Dut::Rtl512)
        },
        Options {
            loss: share("2%"),
            reorder: share("2%"),
            duplicate: share("2%"),
            corrupt: share("1%"),
            mtu: Mtu::Mtu1024,
            qps: 5,
            ..on(Dut::Rtl64)
        },
    ];
    for options in hardships {
        let outcome = intact(&options, 200_001);
        assert!(figure(&outcome, "retransmissions") > 0.0, "{options}");
    }
}

#[test]
fn many_queue_pairs_share_the_wire() {
    let options = Options {
        qps: 64,
        ..on(Dut::Rtl512)
    };
    intact(&options, 1 << 18);
}

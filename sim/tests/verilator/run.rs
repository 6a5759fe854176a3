//! Models at work: ports, instances, traces, misuse.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use ferroce_sim::verilator::{self, Options, Port, Spec};

use super::{build, counter, delay};

/// Words that differ in every word and with `salt`, cut to `width` bits.
fn pattern(width: usize, salt: u32) -> Vec<u32> {
    let mut words: Vec<u32> = (0..width.div_ceil(32) as u32)
        .map(|i| (i + 1).wrapping_mul(0x9e37_79b9) ^ salt)
        .collect();
    let unused = words.len() * 32 - width;
    *words.last_mut().unwrap() &= !0 >> unused;
    words
}

#[test]
fn ports_of_every_width_carry_their_bits() {
    let mut dut = build(&delay()).instance().unwrap();
    for width in [1, 8, 9, 16, 17, 32, 33, 64, 65, 512, 1000, 1024] {
        let (d, q) = (
            dut.input(&format!("d{width}")).unwrap(),
            dut.output(&format!("q{width}")).unwrap(),
        );
        for salt in [0, !0, 0x1234_5678] {
            let sent = pattern(width, salt);
            dut.write(d, &sent);
            dut.tick();
            let mut got = vec![!0; sent.len()];
            dut.read(q, &mut got);
            assert_eq!(got, sent, "{width} bits");
            dut.read(d, &mut got);
            assert_eq!(got, sent, "{width} bits, read back");
        }
        if width <= 64 {
            let value = u64::MAX >> (64 - width);
            dut.set(d, value);
            dut.tick();
            assert_eq!(dut.get(q), value);
        } else {
            dut.edit(d, |words| words.fill(!0));
            dut.tick();
            let top = width % 32;
            let last = if top == 0 { !0 } else { (1 << top) - 1 };
            assert_eq!(
                *dut.view(q).last().unwrap(),
                last,
                "bits above the width are cleared"
            );
            assert!(
                dut.view(q)[..dut.view(q).len() - 1]
                    .iter()
                    .all(|w| *w == !0)
            );
        }
    }
}

#[test]
fn combinational_outputs_follow_at_the_next_evaluation() {
    let mut dut = build(&delay()).instance().unwrap();
    let (d, any, q) = (
        dut.input("d8").unwrap(),
        dut.output("any").unwrap(),
        dut.output("q8").unwrap(),
    );
    dut.set(d, 3);
    assert!(!dut.is_set(any));
    dut.eval();
    assert!(dut.is_set(any));
    assert_eq!(dut.get(q), 0, "no edge yet");
    dut.settle();
    assert_eq!(dut.get(q), 0);
    dut.rise();
    assert_eq!(dut.get(q), 3);
}

#[test]
fn fields_are_ranges_of_their_port() {
    let source = "module swap(input wire [99:0] s, output wire [99:0] m, input wire [9:0] t, output wire [9:0] u);
  assign m = {s[35:0], s[99:36]};
  assign u = {t[3:0], t[9:4]};
endmodule
";
    let spec = Spec::new("swap", source).ports([
        Port::input("s", 100)
            .field("low", 0, 36)
            .field("high", 36, 64),
        Port::output("m", 100)
            .field("low", 0, 64)
            .field("high", 64, 36),
        Port::input("t", 10).field("a.x", 0, 4).field("a.y", 4, 6),
        Port::output("u", 10).field("a.y", 0, 6).field("a.x", 6, 4),
    ]);
    let mut dut = build(&spec).instance().unwrap();
    for (input, value) in [
        ("s.low", 0x9_8765_4321),
        ("s.high", u64::MAX - 5),
        ("t.a.x", 9),
        ("t.a.y", 33),
    ] {
        let input = dut.input(input).unwrap();
        dut.set(input, value);
    }
    dut.eval();
    for (output, value) in [
        ("m.high", 0x9_8765_4321),
        ("m.low", u64::MAX - 5),
        ("u.a.x", 9),
        ("u.a.y", 33),
    ] {
        assert_eq!(dut.get(dut.output(output).unwrap()), value, "{output}");
    }
}

#[test]
fn a_module_needs_neither_clock_nor_ports() {
    let spec = Spec::new("empty", "module empty; endmodule\n");
    let mut dut = build(&spec).instance().unwrap();
    dut.tick();
    dut.eval();
}

#[test]
fn instances_are_independent() {
    let model = build(&counter());
    let (rst, count) = (model.input("rst").unwrap(), model.output("count").unwrap());
    let mut first = model.instance().unwrap();
    let mut second = model.instance().unwrap();
    first.ticks(10);
    second.ticks(3);
    first.set(rst, 0);
    second.set(rst, 1);
    first.tick();
    second.tick();
    assert_eq!((first.get(count), second.get(count)), (11, 0));
    drop(first);
    second.set(rst, 0);
    let moved = std::thread::spawn(move || {
        second.ticks(5);
        second.get(count)
    });
    assert_eq!(moved.join().unwrap(), 5);
}

#[test]
fn models_live_side_by_side_and_outlive_each_other() {
    let counter = build(&counter());
    let count = counter.output("count").unwrap();
    let mut counting = counter.instance().unwrap();
    drop(counter);
    for _ in 0..3 {
        let mut delay = build(&delay()).instance().unwrap();
        let (d, q) = (delay.input("d64").unwrap(), delay.output("q64").unwrap());
        delay.set(d, 77);
        delay.tick();
        counting.tick();
        assert_eq!(delay.get(q), 77);
    }
    assert_eq!(counting.get(count), 3);
}

#[test]
fn what_reset_misses_can_be_made_random() {
    let model = build(&counter());
    let left = model.output("never_set").unwrap();
    let start = |seed: u64| {
        let mut dut = model.instance_randomised(seed).unwrap();
        dut.tick();
        dut.get(left)
    };
    let mut zero = model.instance().unwrap();
    zero.tick();
    assert_eq!(zero.get(left), 0);
    assert_ne!(start(1), 0);
    assert_ne!(start(1), start(2));
    assert_eq!(start(7), start(7));
}

#[test]
fn a_seed_gives_the_same_also_beside_other_threads() {
    let source = "module many(input wire clk, output wire [1023:0] q);
  reg [1023:0] q0, q1, q2, q3;
  assign q = q0 ^ q1 ^ q2 ^ q3;
endmodule
";
    let spec = Spec::new("many", source)
        .clock("clk")
        .ports([Port::input("clk", 1), Port::output("q", 1024)]);
    let model = &build(&spec);
    let q = model.output("q").unwrap();
    let start = |seed: u64| {
        let mut dut = model.instance_randomised(seed).unwrap();
        dut.eval();
        let mut words = [0; 32];
        dut.read(q, &mut words);
        words
    };
    let first = start(7);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert_eq!(start(7), first);
                }
            });
        }
    });
}

#[test]
fn traced_instance_writes_fst() {
    let options = Options {
        trace: true,
        ..Options::default()
    };
    let model = verilator::build(&counter(), &options).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("counter.fst");
    let mut dut = model.instance().unwrap();
    dut.ticks(2);
    dut.trace(&path).unwrap();
    dut.ticks(1000);
    dut.end_trace();
    assert!(fs::metadata(&path).unwrap().len() > 300);
    let again = dir.path().join("again.fst");
    dut.trace(&again).unwrap();
    dut.ticks(10);
    drop(dut);
    assert!(fs::metadata(&again).unwrap().len() > 100);

    let mut dut = model.instance().unwrap();
    let refused = dut
        .trace(dir.path().join("absent/counter.fst"))
        .unwrap_err();
    assert!(
        refused.to_string().contains("absent/counter.fst"),
        "{refused}"
    );
    dut.tick();

    let mut plain = build(&counter()).instance().unwrap();
    let refused = plain.trace(&path).unwrap_err();
    assert!(refused.to_string().contains("Options::trace"), "{refused}");
}

#[test]
fn coverage_is_written() {
    let options = Options {
        coverage: true,
        ..Options::default()
    };
    let model = verilator::build(&counter(), &options).unwrap();
    for _ in 0..2 {
        model.instance().unwrap().ticks(10);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coverage.dat");
    model.write_coverage(&path).unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("counter"));
    // Up 10 times and down 9 times with the clock in each of the two.
    let clock = text.lines().find(|line| line.contains("\u{2}clk"));
    assert!(clock.unwrap().ends_with("' 38"), "{clock:?}");

    let refused = build(&counter()).write_coverage("x").unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("Options::coverage"), "{text}");
}

/// The text of the panic of `f`.
fn panic_text(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn misuse_panics_and_harms_nothing() {
    let delay = build(&delay());
    let counter = build(&counter());
    let mut dut = delay.instance().unwrap();
    let (d8, d512) = (delay.input("d8").unwrap(), delay.input("d512").unwrap());
    assert!(panic_text(|| dut.set(d8, 256)).contains("0x100 cannot be set: `d8[7:0]`"));
    assert!(panic_text(|| dut.set(d512, 1)).contains("use `write`"));
    assert!(panic_text(|| dut.write(d512, &[0; 15])).contains("words for 512 bits"));
    assert!(
        panic_text(|| {
            dut.view(d8);
        })
        .contains("use `read`")
    );
    let other = counter.input("rst").unwrap();
    assert!(panic_text(|| dut.set(other, 1)).contains("handle of another model"));
    dut.set(d8, 255);
    dut.tick();
    assert_eq!(dut.get(delay.output("q8").unwrap()), 255);
}

#[test]
fn a_model_that_stops_panics_with_verilogs_message() {
    let source = "module stops(input wire clk, input wire [1:0] how);
  always @(posedge clk) begin
    if (how == 2'd1) $finish;
    if (how == 2'd2) $stop;
    if (how == 2'd3) $fatal(0, \"broken promise\");
  end
endmodule
";
    let spec = Spec::new("stops", source)
        .clock("clk")
        .ports([Port::input("clk", 1), Port::input("how", 2)]);
    let model = build(&spec);
    let how = model.input("how").unwrap();
    for (value, message) in [
        (1, "$finish at source.v:3"),
        (2, "source.v:4"),
        (3, "source.v:5"),
    ] {
        let mut dut = model.instance().unwrap();
        dut.tick();
        dut.set(how, value);
        let text = panic_text(|| dut.tick());
        assert!(
            text.contains("model `stops` stopped") && text.contains(message),
            "{text}"
        );
    }
}

#[test]
fn a_loop_that_does_not_settle_panics() {
    let source = "module ring(input wire en, output wire q);
  assign q = en & ~q;
endmodule
";
    let spec = Spec::new("ring", source).ports([Port::input("en", 1), Port::output("q", 1)]);
    let mut dut = build(&spec).instance().unwrap();
    let en = dut.input("en").unwrap();
    dut.eval();
    dut.set(en, 1);
    let text = panic_text(|| dut.eval());
    assert!(text.contains("did not converge"), "{text}");
}

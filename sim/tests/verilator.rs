//! The Verilator harness, with small modules written for it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ferroce_sim::verilator::{self, Error, Model, Options, Port, Spec};

/// Registers of every storage class of Verilator, and a combinational output.
fn delay() -> Spec {
    let widths = [1, 8, 9, 16, 17, 32, 33, 64, 65, 512, 1000, 1024];
    let mut source = String::from("module delay(input wire clk");
    let mut body = String::new();
    let mut ports = vec![Port::input("clk", 1)];
    for width in widths {
        let high = width - 1;
        source += &format!(",\n  input wire [{high}:0] d{width}, output reg [{high}:0] q{width}");
        body += &format!("  always @(posedge clk) q{width} <= d{width};\n");
        ports.push(Port::input(format!("d{width}"), width));
        ports.push(Port::output(format!("q{width}"), width));
    }
    source += ",\n  output wire any);\n  assign any = |d8;\n";
    ports.push(Port::output("any", 1));
    Spec::new("delay", source + &body + "endmodule\n")
        .clock("clk")
        .ports(ports)
}

/// A counter with a reset, and a register that nothing resets.
const COUNTER: &str = "module counter(input wire clk, input wire rst, output reg [31:0] count,
                                      output wire [63:0] never_set);
  reg [63:0] left;
  assign never_set = left;
  always @(posedge clk) begin
    count <= rst ? 32'd0 : count + 32'd1;
    left <= left;
  end
endmodule
";

fn counter() -> Spec {
    Spec::new("counter", COUNTER).clock("clk").ports([
        Port::input("clk", 1),
        Port::input("rst", 1),
        Port::output("count", 32),
        Port::output("never_set", 64),
    ])
}

fn build(spec: &Spec) -> Model {
    verilator::build(spec, &Options::default()).unwrap()
}

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

/// Options with a cache of `test`'s own, without models but with Verilator's run-time library of an
/// earlier run.
fn own_cache(test: &str) -> (Options, PathBuf) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    for entry in fs::read_dir(&cache).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.join("model.so").exists() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let options = Options {
        cache: Some(cache.clone()),
        ..Options::default()
    };
    (options, cache)
}

#[test]
fn second_build_comes_from_the_cache() {
    let (options, cache) = own_cache("second_build");
    let first = verilator::build(&counter(), &options).unwrap();
    assert!(first.compiled() > 0);
    let second = verilator::build(&counter(), &options).unwrap();
    assert_eq!(second.compiled(), 0);
    let mut changed = counter();
    changed.source = changed.source.replace("32'd1", "32'd2");
    let third = verilator::build(&changed, &options).unwrap();
    assert!(third.compiled() > 0);
    let mut dut = third.instance().unwrap();
    dut.ticks(4);
    assert_eq!(dut.get(third.output("count").unwrap()), 8);
    assert!(leftovers(&cache).is_empty());
}

#[test]
fn racing_builds_build_once() {
    let (options, _) = own_cache("racing_builds");
    let build = || verilator::build(&counter(), &options).unwrap().compiled() > 0;
    let compiled = std::thread::scope(|scope| {
        let builds = [(); 4].map(|()| scope.spawn(build));
        builds.map(|build| build.join().unwrap())
    });
    assert_eq!(compiled.into_iter().filter(|compiled| *compiled).count(), 1);
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
    let mut dut = verilator::build(&counter(), &options)
        .unwrap()
        .instance()
        .unwrap();
    dut.ticks(10);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coverage.dat");
    dut.write_coverage(&path).unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("counter"));
}

#[test]
fn missing_tools_are_named_with_their_package() {
    let nowhere = || Some(PathBuf::from("/nonexistent/tool"));
    let verilator = Options {
        verilator: nowhere(),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &verilator)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/nonexistent/tool") && error.contains("apt install verilator"),
        "{error}"
    );
    let cxx = Options {
        cxx: nowhere(),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &cxx).unwrap_err().to_string();
    assert!(
        error.contains("/nonexistent/tool") && error.contains("apt install g++"),
        "{error}"
    );
}

/// A program in `dir` that runs `script`.
fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// What a build left in its cache beside finished entries.
fn leftovers(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).unwrap().map(|e| e.unwrap().path());
    entries
        .filter(|p| p.is_dir() && !p.join("model.so").exists() && !p.join("runtime.h").exists())
        .collect()
}

#[test]
fn old_verilator_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let old = program(dir.path(), "verilator", "echo 'Verilator 4.038 2020-07-11'");
    let options = Options {
        verilator: Some(old),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    assert!(matches!(error, Error::Version { .. }));
    assert!(
        error.to_string().contains("4.038") && error.to_string().contains("5.006"),
        "{error}"
    );
}

#[test]
fn failing_compiler_leaves_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "test \"$1\" = --version && echo broken 1.0 && exit; echo no space left >&2; exit 1";
    let options = Options {
        cxx: Some(program(dir.path(), "g++", script)),
        cache: Some(dir.path().join("cache")),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    assert!(matches!(error, Error::Compile { .. }));
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(leftovers(&dir.path().join("cache")).is_empty());
}

#[test]
fn missing_zlib_is_named_with_its_package() {
    let dir = tempfile::tempdir().unwrap();
    let script = "test \"$1\" = --version && echo g++ 1.0 && exit
        echo 'gtkwave/fstapi.c:1:10: fatal error: zlib.h: No such file or directory' >&2; exit 1";
    let options = Options {
        trace: true,
        cxx: Some(program(dir.path(), "g++", script)),
        cache: Some(dir.path().join("cache")),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    assert!(
        error.to_string().contains("apt install zlib1g-dev"),
        "{error}"
    );
}

#[test]
fn rejected_verilog_is_shown_with_its_line() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options {
        cache: Some(cache.path().into()),
        ..Options::default()
    };
    let mut spec = counter();
    spec.source = spec.source.replace("count + 32'd1", "cuont + 32'd1");
    let error = verilator::build(&spec, &options).unwrap_err();
    assert!(matches!(error, Error::Verilate { .. }));
    assert!(
        error.to_string().contains("source.v:6") && error.to_string().contains("cuont"),
        "{error}"
    );
    assert!(leftovers(cache.path()).is_empty());
}

#[test]
fn port_list_must_be_the_modules() {
    type Change = fn(&mut Spec);
    let cases: [(Change, &str); 7] = [
        (
            |s| s.ports[2].width = 16,
            "`count` is listed as output of 16 bits and is an output of 32 bits",
        ),
        (
            |s| s.ports[1] = Port::output("rst", 1),
            "`rst` is listed as output",
        ),
        (|s| s.ports.push(Port::input("enable", 1)), "no such port"),
        (
            |s| s.ports.push(Port::input("rst", 1)),
            "`rst` is listed twice",
        ),
        (
            |s| drop(s.ports.pop()),
            "output `never_set` of 64 bits is not listed",
        ),
        (
            |s| s.clock = Some("clock".into()),
            "clock `clock` is not a 1-bit input",
        ),
        (
            |s| s.ports[2] = Port::output("count", 32).field("top", 30, 3),
            "`count.top`",
        ),
    ];
    for (change, message) in cases {
        let mut spec = counter();
        change(&mut spec);
        let error = verilator::build(&spec, &Options::default()).unwrap_err();
        assert!(matches!(error, Error::PortMismatch { .. }));
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn unknown_names_bring_near_ones() {
    let model = build(&counter());
    let error = model.output("cuont").unwrap_err().to_string();
    assert!(
        error.contains("no output `cuont`") && error.contains("nearest names: count"),
        "{error}"
    );
    let error = model.input("count").unwrap_err().to_string();
    assert!(error.contains("is an output, not an input"), "{error}");
    assert!(model.signal("count").is_ok());
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

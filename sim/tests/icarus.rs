//! A second simulator: the emitted Verilog of the 64-bit engine in Icarus, with four values a bit.
//!
//! Verilator has no X. So a run of two hosts is recorded at the pins of a card, from reset through a message each way, and
//! Icarus is given the same inputs, X where no channel is valid: each output that counts must be what it was, and known.

use std::cell::RefCell;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::rc::Rc;

use ferroce_hdl::engine::builds;
use ferroce_proto::abi::cq::status;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Engine, Inputs, Options, Outputs, Pins, VerilatedPins, build};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};
use ferroce_sim::verilator;
use ferroce_system::or_skip;
use ferroce_system::packages::{IVERILOG, check_present};

const WIDTH: usize = 64;

/// A port with its width, what stands at it, and whether that counts.
type Port<T> = (&'static str, usize, fn(&T) -> u64, fn(&T) -> bool);

fn bytes(data: &[u8; ferroce_sim::axi::MAX_LANES]) -> u64 {
    u64::from_le_bytes(*data.first_chunk().expect("64 lanes"))
}

const INPUTS: &[Port<Inputs>] = &[
    ("rst", 1, |i| i.rst.into(), |_| true),
    ("s_axis_rx_tvalid", 1, |i| i.rx.valid.into(), |_| true),
    ("s_axis_rx_tdata", 64, |i| bytes(&i.rx.data), |i| i.rx.valid),
    ("s_axis_rx_tkeep", 8, |i| i.rx.keep, |i| i.rx.valid),
    ("s_axis_rx_tlast", 1, |i| i.rx.last.into(), |i| i.rx.valid),
    ("s_axis_rx_tuser", 1, |i| i.rx.user.into(), |i| i.rx.valid),
    ("m_axis_tx_tready", 1, |i| i.tx_ready.into(), |_| true),
    ("pause_req", 8, |i| i.pause_req.into(), |_| true),
    ("rx_backlog", 1, |i| i.rx_backlog.into(), |_| true),
    ("s_axil_awvalid", 1, |i| i.lite.awvalid.into(), |_| true),
    (
        "s_axil_awaddr",
        22,
        |i| i.lite.awaddr.into(),
        |i| i.lite.awvalid,
    ),
    ("s_axil_wvalid", 1, |i| i.lite.wvalid.into(), |_| true),
    (
        "s_axil_wdata",
        32,
        |i| i.lite.wdata.into(),
        |i| i.lite.wvalid,
    ),
    ("s_axil_wstrb", 4, |_| 15, |i| i.lite.wvalid),
    ("s_axil_bready", 1, |i| i.lite.bready.into(), |_| true),
    ("s_axil_arvalid", 1, |i| i.lite.arvalid.into(), |_| true),
    (
        "s_axil_araddr",
        22,
        |i| i.lite.araddr.into(),
        |i| i.lite.arvalid,
    ),
    ("s_axil_rready", 1, |i| i.lite.rready.into(), |_| true),
    ("m_axi_awready", 1, |i| i.axi.awready.into(), |_| true),
    ("m_axi_wready", 1, |i| i.axi.wready.into(), |_| true),
    ("m_axi_arready", 1, |i| i.axi.arready.into(), |_| true),
    ("m_axi_bvalid", 1, |i| i.axi.b.valid.into(), |_| true),
    ("m_axi_bid", 4, |i| i.axi.b.id.into(), |i| i.axi.b.valid),
    ("m_axi_bresp", 2, |i| i.axi.b.resp.into(), |i| i.axi.b.valid),
    ("m_axi_rvalid", 1, |i| i.axi.r.valid.into(), |_| true),
    (
        "m_axi_rdata",
        64,
        |i| bytes(&i.axi.r.data),
        |i| i.axi.r.valid,
    ),
    ("m_axi_rid", 4, |i| i.axi.r.id.into(), |i| i.axi.r.valid),
    ("m_axi_rresp", 2, |i| i.axi.r.resp.into(), |i| i.axi.r.valid),
    ("m_axi_rlast", 1, |i| i.axi.r.last.into(), |i| i.axi.r.valid),
    ("irq_ready", 1, |i| i.irq_ready.into(), |_| true),
];

const OUTPUTS: &[Port<Outputs>] = &[
    ("s_axis_rx_tready", 1, |o| o.rx_ready.into(), |_| true),
    ("pause_ack", 8, |o| o.pause_ack.into(), |_| true),
    ("pause_send", 8, |o| o.pause_send.into(), |_| true),
    ("m_axis_tx_tvalid", 1, |o| o.tx.valid.into(), |_| true),
    ("m_axis_tx_tkeep", 8, |o| o.tx.keep, |o| o.tx.valid),
    ("m_axis_tx_tlast", 1, |o| o.tx.last.into(), |o| o.tx.valid),
    ("m_axis_tx_tuser", 1, |o| o.tx.user.into(), |o| o.tx.valid),
    ("s_axil_awready", 1, |o| o.lite.awready.into(), |_| true),
    ("s_axil_wready", 1, |o| o.lite.wready.into(), |_| true),
    ("s_axil_bvalid", 1, |o| o.lite.bvalid.into(), |_| true),
    (
        "s_axil_bresp",
        2,
        |o| o.lite.bresp.into(),
        |o| o.lite.bvalid,
    ),
    ("s_axil_arready", 1, |o| o.lite.arready.into(), |_| true),
    ("s_axil_rvalid", 1, |o| o.lite.rvalid.into(), |_| true),
    (
        "s_axil_rresp",
        2,
        |o| o.lite.rresp.into(),
        |o| o.lite.rvalid,
    ),
    (
        "s_axil_rdata",
        32,
        |o| o.lite.rdata.into(),
        |o| o.lite.rvalid,
    ),
    ("m_axi_awvalid", 1, |o| o.axi.aw.valid.into(), |_| true),
    ("m_axi_awid", 4, |o| o.axi.aw.id.into(), |o| o.axi.aw.valid),
    ("m_axi_awaddr", 64, |o| o.axi.aw.addr, |o| o.axi.aw.valid),
    (
        "m_axi_awlen",
        8,
        |o| o.axi.aw.len.into(),
        |o| o.axi.aw.valid,
    ),
    (
        "m_axi_awsize",
        3,
        |o| o.axi.aw.size.into(),
        |o| o.axi.aw.valid,
    ),
    (
        "m_axi_awburst",
        2,
        |o| o.axi.aw.burst.into(),
        |o| o.axi.aw.valid,
    ),
    ("m_axi_wvalid", 1, |o| o.axi.w.valid.into(), |_| true),
    ("m_axi_wstrb", 8, |o| o.axi.w.strb, |o| o.axi.w.valid),
    ("m_axi_wlast", 1, |o| o.axi.w.last.into(), |o| o.axi.w.valid),
    ("m_axi_bready", 1, |o| o.axi.bready.into(), |_| true),
    ("m_axi_arvalid", 1, |o| o.axi.ar.valid.into(), |_| true),
    ("m_axi_arid", 4, |o| o.axi.ar.id.into(), |o| o.axi.ar.valid),
    ("m_axi_araddr", 64, |o| o.axi.ar.addr, |o| o.axi.ar.valid),
    (
        "m_axi_arlen",
        8,
        |o| o.axi.ar.len.into(),
        |o| o.axi.ar.valid,
    ),
    (
        "m_axi_arsize",
        3,
        |o| o.axi.ar.size.into(),
        |o| o.axi.ar.valid,
    ),
    (
        "m_axi_arburst",
        2,
        |o| o.axi.ar.burst.into(),
        |o| o.axi.ar.valid,
    ),
    ("m_axi_rready", 1, |o| o.axi.rready.into(), |_| true),
    ("irq_valid", 1, |o| o.irq_valid.into(), |_| true),
    ("irq_vector", 11, |o| o.irq_vector.into(), |o| o.irq_valid),
];

/// Lanes of data of which each counts by itself.
const LANES: &[(&str, fn(&Outputs) -> (u64, u64))] = &[
    ("m_axis_tx_tdata", |o| {
        (bytes(&o.tx.data), if o.tx.valid { o.tx.keep } else { 0 })
    }),
    ("m_axi_wdata", |o| {
        (
            bytes(&o.axi.w.data),
            if o.axi.w.valid { o.axi.w.strb } else { 0 },
        )
    }),
];

/// What stood at the pins, a line a cycle of binary digits; X is what does not count.
#[derive(Default)]
struct Trace {
    inputs: String,
    outputs: String,
    cycles: usize,
}

impl Trace {
    fn add(&mut self, inputs: &Inputs, outputs: &Outputs) {
        line(&mut self.inputs, INPUTS, inputs);
        self.inputs.push('\n');
        if self.cycles == 0 {
            // Nothing is known before the first edge in reset.
            let bits = OUTPUTS.iter().map(|port| port.1).sum::<usize>() + 64 * LANES.len();
            self.outputs.push_str(&"x".repeat(bits));
        } else {
            line(&mut self.outputs, OUTPUTS, outputs);
            for (_, lanes) in LANES {
                let (data, keep) = lanes(outputs);
                for lane in (0..8).rev() {
                    bits(
                        &mut self.outputs,
                        data >> (8 * lane) & 0xff,
                        8,
                        keep >> lane & 1 == 1,
                    );
                }
            }
        }
        self.outputs.push('\n');
        self.cycles += 1;
    }
}

fn line<T>(text: &mut String, ports: &[Port<T>], values: &T) {
    for (_, width, value, counts) in ports {
        bits(text, value(values), *width, counts(values));
    }
}

fn bits(text: &mut String, value: u64, width: usize, counts: bool) {
    if counts {
        write!(text, "{value:0width$b}").expect("text takes all");
    } else {
        text.push_str(&"x".repeat(width));
    }
}

/// Pins that are recorded.
struct Recorded(VerilatedPins, Rc<RefCell<Trace>>);

impl Pins for Recorded {
    fn lanes(&self) -> usize {
        self.0.lanes()
    }

    fn settle(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        self.0.settle(inputs, outputs);
        self.1.borrow_mut().add(inputs, outputs);
    }

    fn clock(&mut self) {
        self.0.clock();
    }
}

/// A SEND each way between two cards; what stood at the pins of the first.
fn run() -> Trace {
    let engine = build::model(WIDTH, &verilator::Options::default()).expect("the engine builds");
    let trace = Rc::new(RefCell::new(Trace::default()));
    let mut first = true;
    let mut pair = Pair::new(|memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        let pins = engine
            .instance_randomised(7)
            .expect("there is memory for an engine");
        let pins = VerilatedPins::new(pins).expect("the ports of an engine");
        if std::mem::take(&mut first) {
            let pins = Recorded(pins, Rc::clone(&trace));
            return Box::new(Engine::new(pins, memory, &Options::default()));
        }
        Box::new(Engine::new(pins, memory, &Options::default()))
    });
    let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
    for (from, to, sender, receiver) in [(Side::A, Side::B, qa, qb), (Side::B, Side::A, qb, qa)] {
        let source = pair.host(from).create_mr(&pattern(1500, 1), Rights::ALL);
        let target = pair.host(to).create_mr(&[0; 1500], Rights::ALL);
        pair.host(to).post_recv(receiver, &[target.all()]);
        pair.host(from)
            .post_send(sender, &Work::send(&[source.all()]));
        for side in [from, to] {
            assert_eq!(pair.wait(side, 0).status, status::SUCCESS);
        }
        assert_eq!(pair.host(to).contents(&target), pattern(1500, 1));
    }
    pair.run(100);
    drop(pair);
    Rc::into_inner(trace)
        .expect("the card is gone")
        .into_inner()
}

/// The bench: each cycle's inputs, a look at the outputs, an edge.
fn bench(top: &str, cycles: usize) -> String {
    let mut ports = String::new();
    let mut connect = |name: &str, vector: &str, at: &mut usize, width: usize| {
        *at -= width;
        write!(ports, ",\n    .{name}({vector}[{at} +: {width}])").expect("text takes all");
    };
    let inputs: usize = INPUTS.iter().map(|port| port.1).sum();
    let outputs = OUTPUTS.iter().map(|port| port.1).sum::<usize>() + 64 * LANES.len();
    let (mut i, mut o) = (inputs, outputs);
    for (name, width, ..) in INPUTS {
        connect(name, "now", &mut i, *width);
    }
    for (name, width, ..) in OUTPUTS {
        connect(name, "out", &mut o, *width);
    }
    for (name, _) in LANES {
        connect(name, "out", &mut o, 64);
    }
    format!(
        "module bench;
  reg clk = 0;
  reg [{inputs}-1:0] now, stimulus [0:{cycles}-1];
  reg [{outputs}-1:0] want, wanted [0:{cycles}-1];
  wire [{outputs}-1:0] out;
  integer cycle, wrong = 0, place;
  {top} dut(.clk(clk){ports});
  initial begin
    $readmemb(\"inputs.txt\", stimulus);
    $readmemb(\"outputs.txt\", wanted);
    for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin
      now = stimulus[cycle];
      want = wanted[cycle];
      #1;
      for (place = 0; place < {outputs}; place = place + 1)
        if (want[place] !== 1'bx && out[place] !== want[place] && wrong < 20) begin
          wrong = wrong + 1;
          $display(\"cycle %0d: bit %0d is %b, %b is right\", cycle, place, out[place], want[place]);
        end
      #1 clk = 1;
      #1 clk = 0;
    end
    $display(\"%0d cycles, %0d wrong\", cycle, wrong);
  end
endmodule
"
    )
}

fn execute(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

#[test]
fn nothing_that_counts_is_unknown() {
    if or_skip(check_present(&[IVERILOG])).is_none() {
        return;
    }
    let trace = run();
    let dir = tempfile::tempdir().unwrap();
    let design = builds::verilog(WIDTH).expect("the engine is emitted");
    let files = [
        ("engine.v", design.parametric().source()),
        ("bench.v", bench(&design.top, trace.cycles)),
        ("inputs.txt", trace.inputs),
        ("outputs.txt", trace.outputs),
    ];
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let mut compile = Command::new("iverilog");
    compile.current_dir(&dir).args([
        "-g2012",
        "-s",
        "bench",
        "-o",
        "bench.vvp",
        "bench.v",
        "engine.v",
    ]);
    execute(&mut compile);
    let text = execute(Command::new("vvp").current_dir(&dir).arg("bench.vvp"));
    let expected = format!("{} cycles, 0 wrong", trace.cycles);
    assert!(
        text.contains(&expected),
        "expected {expected}; Icarus says\n{text}"
    );
    assert!(trace.cycles > 2000, "a run of {} cycles", trace.cycles);
}

//! The block bench: right blocks pass under every pause, each kind of wrong one is caught.

use ferroce_hdl::prelude::{Bits, Skid};
use ferroce_sim::bench::{
    Agent, AxisSink, AxisSource, Bench, Failure, Frame, StreamSink, StreamSource,
};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Port, Spec};

/// A register stage of a stream. The macros make it break a rule.
const STAGE: &str = "
module stage(input wire clk, input wire rst,
             input wire [79:0] s_payload, input wire s_valid, output wire s_ready,
             output reg [79:0] m_payload, output reg m_valid, input wire m_ready);
  assign s_ready = !m_valid || m_ready;
  wire blocked = m_valid && !m_ready;
  reg [7:0] count;
  wire late = count > 8'd40;
  always @(posedge clk) begin
    count <= rst ? 8'd0 : count + {7'd0, !late};
    if (s_ready) begin
      m_valid <= s_valid;
      m_payload <= s_payload;
    end
`ifdef WITHDRAWS
    if (late && blocked) m_valid <= 1'b0;
`endif
`ifdef CHANGES
    if (late && blocked) m_payload[75] <= !m_payload[75];
`endif
`ifdef CORRUPTS
    if (late && s_ready) m_payload[79] <= !s_payload[79];
`endif
`ifdef STALLS
    if (late && s_ready) m_valid <= 1'b0;
`endif
    if (rst) m_valid <= 1'b0;
  end
endmodule
";

fn stage(fault: &str) -> Spec {
    let define = if fault.is_empty() {
        String::new()
    } else {
        format!("`define {fault}\n")
    };
    let payload = |port: Port| port.field("psn", 0, 24).field("va", 24, 56);
    Spec::new("stage", define + STAGE).clock("clk").ports([
        Port::input("clk", 1),
        Port::input("rst", 1),
        payload(Port::input("s_payload", 80)),
        Port::input("s_valid", 1),
        Port::output("s_ready", 1),
        payload(Port::output("m_payload", 80)),
        Port::output("m_valid", 1),
        Port::input("m_ready", 1),
    ])
}

/// Sends `count` items through the stage; returns the cycles it took.
fn send(fault: &str, count: u64, idle: Pauses, back: Pauses) -> Result<u64, Failure> {
    let mut bench = Bench::new(&stage(fault)).unwrap();
    let mut source = StreamSource::new(bench.dut(), "s", idle).unwrap();
    let mut sink = StreamSink::new(bench.dut(), "m", back).unwrap();
    for psn in 0..count {
        let va = bench.rng().u64(..1 << 56);
        source.push(source.item().with("psn", psn).with("va", va));
        sink.expect(sink.item().with("psn", psn).with("va", va));
    }
    let mut agents: [&mut dyn Agent; 2] = [&mut source, &mut sink];
    bench.reset(&mut agents);
    let start = bench.cycle();
    bench.finish(&mut agents, 20_000)?;
    assert_eq!((source.sent(), sink.count()), (count, count));
    Ok(bench.cycle() - start)
}

#[test]
fn a_right_stage_passes_under_every_pause() {
    let some = Pauses::new(0.3, 4);
    assert_eq!(send("", 1000, Pauses::NONE, Pauses::NONE).unwrap(), 1001);
    for (idle, back) in [(some, Pauses::NONE), (Pauses::NONE, some), (some, some)] {
        assert!(send("", 1000, idle, back).unwrap() > 1200);
    }
}

#[test]
fn broken_rules_are_named_with_cycle_and_seed() {
    let back = Pauses::new(0.3, 4);
    for (fault, message) in [
        ("WITHDRAWS", "`m` withdrew an item"),
        ("CHANGES", "`m` changed an item"),
        ("CORRUPTS", "differs"),
        ("STALLS", "`m` waits for 9"),
    ] {
        let failure = send(fault, 1000, Pauses::NONE, back)
            .unwrap_err()
            .to_string();
        assert!(failure.contains(message), "{fault}: {failure}");
        assert!(
            failure.contains("`stage`, cycle ") && failure.contains("FERROCE_SEED="),
            "{failure}"
        );
    }
}

#[test]
fn unexpected_and_logged_items() {
    let mut bench = Bench::new(&stage("")).unwrap();
    let mut source = StreamSource::new(bench.dut(), "s", Pauses::NONE).unwrap();
    let mut sink = StreamSink::new(bench.dut(), "m", Pauses::NONE).unwrap();
    let first = source.item().with("psn", 5);
    source.push(first);
    bench.reset(&mut [&mut source, &mut sink]);
    bench.run(&mut [&mut source, &mut sink], 10).unwrap();
    let (cycle, item) = sink.pop().unwrap();
    assert_eq!((item.get("psn"), item.get("va")), (5, 0));
    assert_eq!(
        cycle,
        source.last_sent().unwrap() + 1,
        "latency of one cycle"
    );
    assert!(sink.pop().is_none());

    sink.expect(sink.item().with("psn", 6));
    for psn in [6, 7] {
        source.push(source.item().with("psn", psn));
    }
    let failure = bench
        .run(&mut [&mut source, &mut sink], 10)
        .unwrap_err()
        .to_string();
    assert!(
        failure.contains("not expected") && failure.contains("psn: 0x7"),
        "{failure}"
    );
}

#[test]
fn reset_clears_what_is_under_way() {
    let mut bench = Bench::new(&stage("")).unwrap();
    let mut source = StreamSource::new(bench.dut(), "s", Pauses::NONE).unwrap();
    let mut sink = StreamSink::new(bench.dut(), "m", Pauses::new(1.0, 1000)).unwrap();
    bench.reset(&mut [&mut source, &mut sink]);
    source.push(source.item().with("psn", 1));
    bench.run(&mut [&mut source, &mut sink], 5).unwrap();
    let valid = bench.dut().output("m_valid").unwrap();
    assert!(bench.dut().is_set(valid));
    bench.reset(&mut [&mut source, &mut sink]);
    assert!(!bench.dut().is_set(valid));
    bench.run(&mut [&mut source, &mut sink], 5).unwrap();
}

/// Wires from `s_axis` to `m_axis`, 64 bits wide; `keep` is what drives `m_axis_tkeep`.
fn wires(keep: &str) -> Spec {
    let widths = [
        ("tdata", 64),
        ("tkeep", 8),
        ("tlast", 1),
        ("tuser", 1),
        ("tvalid", 1),
    ];
    let mut source = String::from(
        "module wires(input wire clk, input wire m_axis_tready, output wire s_axis_tready",
    );
    let mut body = String::from("  assign s_axis_tready = m_axis_tready;\n");
    let mut ports = vec![
        Port::input("clk", 1),
        Port::input("m_axis_tready", 1),
        Port::output("s_axis_tready", 1),
    ];
    for (name, width) in widths {
        let high = width - 1;
        source += &format!(
            ",\n  input wire [{high}:0] s_axis_{name}, output wire [{high}:0] m_axis_{name}"
        );
        let value = if name == "tkeep" {
            keep.to_owned()
        } else {
            format!("s_axis_{name}")
        };
        body += &format!("  assign m_axis_{name} = {value};\n");
        ports.push(Port::input(format!("s_axis_{name}"), width));
        ports.push(Port::output(format!("m_axis_{name}"), width));
    }
    Spec::new("wires", source + ");\n" + &body + "endmodule\n")
        .clock("clk")
        .ports(ports)
}

/// Sends frames of 1 to 40 bytes, every third one bad.
fn send_frames(keep: &str, idle: Pauses, back: Pauses) -> Result<(), Failure> {
    let mut bench = Bench::new(&wires(keep)).unwrap();
    let mut source = AxisSource::new(bench.dut(), "s_axis", idle).unwrap();
    let mut sink = AxisSink::new(bench.dut(), "m_axis", back).unwrap();
    for length in (1..=40).cycle().take(200) {
        let bytes: Vec<u8> = (0..length).map(|_| bench.rng().u8(..)).collect();
        let frame = Frame {
            bytes,
            bad: length % 3 == 0,
        };
        source.push(&frame);
        sink.expect(frame);
    }
    bench.finish(&mut [&mut source, &mut sink], 10_000)?;
    assert_eq!(sink.count(), 200);
    Ok(())
}

#[test]
fn frames_pass_under_every_pause() {
    let some = Pauses::new(0.3, 4);
    for (idle, back) in [
        (Pauses::NONE, Pauses::NONE),
        (some, Pauses::NONE),
        (Pauses::NONE, some),
        (some, some),
    ] {
        send_frames("s_axis_tkeep", idle, back).unwrap();
    }
}

#[test]
fn broken_byte_enables_are_caught() {
    for keep in ["s_axis_tkeep & ~8'h2", "s_axis_tkeep >> 1", "8'h7f"] {
        let failure = send_frames(keep, Pauses::NONE, Pauses::NONE)
            .unwrap_err()
            .to_string();
        assert!(
            failure.contains("tkeep") || failure.contains("differs"),
            "{keep}: {failure}"
        );
    }
}

#[test]
#[should_panic(expected = "the payload has no field `pns`; it has psn, va")]
fn unknown_fields_are_refused_with_the_names_there_are() {
    let bench = Bench::new(&stage("")).unwrap();
    let source = StreamSource::new(bench.dut(), "s", Pauses::NONE).unwrap();
    let _ = source.item().with("pns", 1);
}

#[test]
fn an_emitted_block_runs() {
    let some = Pauses::new(0.3, 4);
    for (idle, back, cycles) in [
        (Pauses::NONE, Pauses::NONE, 1001..=1001),
        (some, some, 1200..=20_000),
    ] {
        let mut bench = Bench::of(Skid::<Bits<100>>::default).unwrap();
        let mut source = StreamSource::new(bench.dut(), "s", idle).unwrap();
        let mut sink = StreamSink::new(bench.dut(), "m", back).unwrap();
        bench.reset(&mut [&mut source, &mut sink]);
        for number in 0..1000 {
            let mut item = source.item();
            item.set_words("payload", &[number, !number, number << 3, number & 15]);
            source.push(item.clone());
            sink.expect(item);
        }
        let start = bench.cycle();
        bench.finish(&mut [&mut source, &mut sink], 20_000).unwrap();
        assert!(cycles.contains(&(bench.cycle() - start)));
    }
}

//! The crossing cells and the port around the MAC, simulated with clocks that have nothing to do with each other; the host side.
use std::path::Path;

use super::{has, log, run};

/// Builds a bench of `hdl/shell/tb` with these sources; the folder it is in.
fn bench(name: &str, sources: &[&str]) -> Option<tempfile::TempDir> {
    if !has("verilator", "--version") || !has("make", "--version") {
        return None;
    }
    let shell = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../hdl/shell"));
    let folder = tempfile::tempdir().unwrap();
    let words = "--binary --timing -Wall -Wno-UNUSEDSIGNAL -Wno-UNDRIVEN -Wno-BLKSEQ -Wno-DECLFILENAME -Wno-SYNCASYNCNET \
                 -CFLAGS -O0 -j 2 --Mdir";
    let mut words: Vec<_> = words.split_whitespace().collect();
    let bench = format!("tb/{name}.sv");
    let out = folder.path().to_str().unwrap();
    words.extend([out, "--top-module", name, &bench]);
    words.extend([
        "cdc/ferroce_cdc_level.v",
        "cdc/ferroce_cdc_reset.v",
        "cdc/ferroce_cdc_count.v",
        "cdc/ferroce_cdc_fifo.v",
    ]);
    words.extend(sources);
    let output = run(shell, "verilator", &words);
    assert!(output.status.success(), "{}", log(&output));
    Some(folder)
}

fn passes(folder: &Path, name: &str, args: &[&str]) {
    let seed = std::env::var("FERROCE_SEED").unwrap_or("1".into());
    let seed = format!("+seed={seed}");
    let words: Vec<_> = args.iter().copied().chain([&*seed]).collect();
    let output = run(folder, &format!("./V{name}"), &words);
    let text = log(&output);
    assert!(
        output.status.success() && text.contains("PASS"),
        "{words:?}: {text}"
    );
    println!("{words:?}: {}", text.lines().next().unwrap_or_default());
}

#[test]
fn items_cross_once_in_order_whatever_the_clocks() {
    let Some(folder) = bench("cdc_tb", &[]) else {
        return;
    };
    for (wr, rd) in [
        (3103, 4000),
        (4000, 3103),
        (4000, 4000),
        (1000, 7777),
        (9000, 1200),
    ] {
        let (wr, rd) = (format!("+wr={wr}"), format!("+rd={rd}"));
        passes(folder.path(), "cdc_tb", &[&wr, &rd]);
    }
}

#[test]
fn frames_pass_the_mac_whole_or_are_counted() {
    let sources = [
        "ferroce_rx_drop.v",
        "ferroce_frame_hold.v",
        "ferroce_tx_gate.v",
        "ferroce_mac_skid.v",
        "ferroce_mac_cmac.v",
    ];
    let Some(folder) = bench("mac_tb", &sources) else {
        return;
    };
    passes(folder.path(), "mac_tb", &[]);
}

#[test]
fn interrupts_that_are_masked_come_later() {
    let Some(folder) = bench("msix_tb", &["ferroce_msix_qdma.v"]) else {
        return;
    };
    passes(folder.path(), "msix_tb", &[]);
}

#[test]
fn the_core_is_reset_with_the_bridge_alone() {
    let sources = ["ferroce_msix_qdma.v", "ferroce_host_qdma.v"];
    let Some(folder) = bench("host_tb", &sources) else {
        return;
    };
    passes(folder.path(), "host_tb", &[]);
}

#[test]
fn frames_pass_the_gigabit_mac() {
    let sources = [
        "ferroce_rx_drop.v",
        "ferroce_frame_hold.v",
        "ferroce_mac_1g.v",
    ];
    let Some(folder) = bench("mac_1g_tb", &sources) else {
        return;
    };
    passes(folder.path(), "mac_1g_tb", &[]);
}

#[test]
fn the_phy_is_reset_for_as_long_as_it_asks() {
    let Some(folder) = bench("phy_reset_tb", &["ferroce_phy_reset.v"]) else {
        return;
    };
    passes(folder.path(), "phy_reset_tb", &[]);
}

//! The Rust model of the receive front against its Verilog, cycle by cycle: both come from the same tables.

use fastrand::Rng;
use ferroce_hdl::bus::types::RxMeta;
use ferroce_hdl::emit::with_stack;
use ferroce_hdl::eth::packet_buffer::RxStats;
use ferroce_hdl::eth::rx_front::RxFront;
use ferroce_hdl::prelude::*;
use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::Signal;

use crate::frames::{MAC, any_packet, garbage, odd_packet, port};

/// Some packets, most of them good, as beats: bytes, `tkeep`, `tlast`.
fn beats(rng: &mut Rng, lanes: usize) -> Vec<(Vec<u8>, u64, bool)> {
    let frames = (0..24).map(|i| match i % 4 {
        0 => odd_packet(rng, 80),
        1 => garbage(rng, 80),
        _ => any_packet(rng, 100),
    });
    let beats = |frame: Vec<u8>| -> Vec<_> {
        let beat = |bytes: &[u8]| {
            let mut lanes = vec![0x5a; lanes];
            lanes[..bytes.len()].copy_from_slice(bytes);
            (lanes, !0 >> (64 - bytes.len()), false)
        };
        let mut beats: Vec<_> = frame.chunks(lanes).map(beat).collect();
        beats.last_mut().expect("frames have bytes").2 = true;
        beats
    };
    frames.flat_map(beats).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("whole words"));
    bytes.chunks(4).map(word).collect()
}

fn bits<const N: usize>(bytes: &[u8]) -> Bits<N> {
    let mut bits = Bits::default();
    for (i, byte) in bytes.iter().enumerate() {
        bits.set_bits::<8>(8 * i, byte.to_bits());
    }
    bits
}

fn compare<const W: usize, const K: usize, const A: usize>() {
    let mut bench = Bench::of(RxFront::<W, K, A, 9>::default).unwrap_or_else(|e| panic!("{e}"));
    let mut model = RxFront::<W, K, A, 9>::default();
    model.connect_all();
    let beats = beats(bench.rng(), K);
    let mut beats = beats.iter();
    let mut gids = port().gids.into_iter();
    let dut = bench.dut();
    let input = |name: &str| dut.input(name).expect("a port");
    let output = |name: &str| dut.output(name).expect("a port");
    let [rst, valid, keep, last, user] = [
        "rst",
        "s_axis_rx_tvalid",
        "s_axis_rx_tkeep",
        "s_axis_rx_tlast",
        "s_axis_rx_tuser",
    ]
    .map(input);
    let [data, mac, enable, promiscuous, gid_write, gid] = [
        "s_axis_rx_tdata",
        "mac",
        "enable",
        "promiscuous",
        "gid_write",
        "gid",
    ]
    .map(input);
    let classes = input("classes");
    let no_classes = vec![0; Signal::from(classes).words()];
    let [meta_ready, beats_ready] = ["meta_ready", "beats_ready"].map(input);
    let [meta_valid, meta, beats_valid, beats_data, stats] = [
        "meta_valid",
        "meta_payload",
        "beats_valid",
        "beats_data",
        "stats",
    ]
    .map(output);
    let mac_bits = MAC
        .0
        .iter()
        .rev()
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let mut packets = 0;
    for cycle in 0.. {
        let reset = cycle < 20;
        let entry = if reset { None } else { gids.next() };
        let beat = if reset || entry.is_some() || bench.rng().u8(..8) == 0 {
            None
        } else {
            beats.next()
        };
        if beats.len() == 0 && bench.rng().u8(..32) == 0 {
            break;
        }
        let take = bench.rng().bool();
        let idle = (vec![0; K], 0, false);
        let (bytes, mask, end) = beat.unwrap_or(&idle);
        let (index, (address, ipv6)) = entry.unwrap_or_default();

        let dut = bench.dut_mut();
        dut.set(rst, reset.into());
        dut.set(valid, beat.is_some().into());
        dut.write(data, &words(bytes));
        dut.set(keep, *mask);
        dut.set(last, (*end).into());
        dut.set(user, 0);
        dut.set(mac, mac_bits);
        dut.set(enable, 1);
        dut.write(classes, &no_classes);
        dut.set(promiscuous, 0);
        dut.set(gid_write, entry.is_some().into());
        let mut fields = vec![0; 5];
        fields[0] = u32::from(index);
        for (i, word) in words(&address.0).into_iter().enumerate() {
            fields[i] |= word << 8;
            fields[i + 1] |= word >> 24;
        }
        fields[4] |= 1 << 8 | u32::from(ipv6) << 9;
        dut.write(gid, &fields);
        dut.set(meta_ready, take.into());
        dut.set(beats_ready, take.into());

        model.s_axis_rx.tvalid.next = beat.is_some();
        model.s_axis_rx.tdata.next = bits(bytes);
        model.s_axis_rx.tkeep.next = mask.to_bits();
        model.s_axis_rx.tlast.next = *end;
        model.mac.next = mac_bits.to_bits();
        model.enable.next = true;
        model.gid_write.next = entry.is_some();
        model.gid.next.index = index.to_bits();
        model.gid.next.gid = bits(&address.0);
        model.gid.next.valid = true;
        model.gid.next.ipv6 = ipv6;
        model.meta.ready.next = take;
        model.beats.ready.next = take;

        dut.settle();
        model.clock.drive(false, reset);
        assert!(simulate(&mut model, 100), "the model does not settle");
        if !reset {
            let dut = bench.dut();
            let events: Bits<{ RxStats::BITS }> = model.stats.val().into();
            assert_eq!(dut.get(stats), events.to_u64(), "stats, cycle {cycle}");
            assert_eq!(
                dut.is_set(meta_valid),
                model.meta.valid.val(),
                "meta, cycle {cycle}"
            );
            assert_eq!(
                dut.is_set(beats_valid),
                model.beats.valid.val(),
                "beats, cycle {cycle}"
            );
            if model.meta.valid.val() {
                let bits: Bits<{ RxMeta::BITS }> = model.meta.payload.val().into();
                let mut found = vec![0; RxMeta::BITS.div_ceil(32)];
                dut.read(meta, &mut found);
                for (i, word) in found.into_iter().enumerate() {
                    assert_eq!(
                        word,
                        bits.get_bits::<32>(32 * i).to_u32(),
                        "meta word {i}, cycle {cycle}"
                    );
                }
                packets += u32::from(take);
            }
            if model.beats.valid.val() {
                let mut found = vec![0; W.div_ceil(32)];
                dut.read(beats_data, &mut found);
                for (i, word) in found.into_iter().enumerate() {
                    let bits = model.beats.data.val().get_bits::<32>(32 * i);
                    assert_eq!(word, bits.to_u32(), "beat word {i}, cycle {cycle}");
                }
            }
        }
        bench.dut_mut().rise();
        model.clock.drive(true, reset);
        assert!(simulate(&mut model, 100), "the model does not settle");
    }
    assert!(packets > 8, "{packets} packets");
}

#[test]
fn the_rust_model_is_the_verilog() {
    with_stack(|| {
        compare::<512, 64, 10>();
        compare::<64, 8, 13>();
    });
}

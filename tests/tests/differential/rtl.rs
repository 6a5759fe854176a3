//! The engine against the golden model: 120 scenarios over both data paths and both kinds of wire, most on the narrow
//! one, which takes less time.
//!
//! An engine stands in the world of the seed ([`World::of`]) before the wire of the seed ([`stand`]). Its table sizes are those of
//! the standard build. Its state before reset is random, or what another host left ([`inherits`]).

use std::ops::RangeInclusive;

use ferroce_hdl::engine::{self, builds::STANDARD};
use ferroce_proto::abi::regs;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::build;
use ferroce_sim::testhost::Pair;
use ferroce_sim::verilator;
use ferroce_tests::differential::generate::Class;
use ferroce_tests::differential::{Card, Setup, campaign};
use ferroce_tests::inherited::inherited;
use ferroce_tests::world::{World, inherits, stand};

/// The engine's features.
const FEATURES: u32 = engine::FEATURES;

/// An engine; its wire may stand where nothing waits for time.
fn engine(width: usize, class: Class) -> Card {
    let engine = build::model(width, &verilator::Options::default()).expect("the engine builds");
    Card::new("engine", move |memory, seed| {
        let mut options = World::of(seed).options(seed);
        if class == Class::Lossless {
            options.tx_stand = stand(seed);
        }
        let fresh = |memory| -> Box<dyn Nic> {
            let engine = build::engine(&engine, memory, &options);
            Box::new(engine.expect("there is memory for an engine"))
        };
        if inherits(seed) {
            inherited(fresh, memory, seed)
        } else {
            fresh(memory)
        }
    })
}

fn campaign(width: usize, class: Class, seeds: RangeInclusive<u64>) {
    campaign::run(&format!("{class:?}, {width} bits"), class, seeds, || {
        Setup::engine(engine(width, class))
    });
}

#[test]
fn lossless_512() {
    campaign(512, Class::Lossless, 1..=30);
}

#[test]
fn lossless_64() {
    campaign(64, Class::Lossless, 401..=460);
}

#[test]
fn lossy_512() {
    campaign(512, Class::Lossy, 1..=10);
}

#[test]
fn lossy_64() {
    campaign(64, Class::Lossy, 101..=120);
}

#[test]
#[ignore = "takes an hour"]
fn many() {
    for width in ferroce_hdl::engine::builds::WIDTHS {
        for class in [Class::Lossless, Class::Lossy] {
            campaign(width, class, 1001..=3500);
        }
    }
}

/// What the scenarios are made for is what the engine says of itself, and the model.
#[test]
fn the_engine_is_the_one_tested() {
    assert_eq!(FEATURES, ferroce_sim::model::FEATURES);
    for width in ferroce_hdl::engine::builds::WIDTHS {
        let card = engine(width, Class::Lossy);
        let mut pair = Pair::new(|memory| (card.build)(memory, 0));
        assert_eq!(pair.a.read32(regs::FEATURES), FEATURES);
        assert_eq!(pair.a.read32(regs::PARAMS).to_le_bytes(), STANDARD.emit());
    }
}

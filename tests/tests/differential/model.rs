//! The golden model against itself at another pace: no scenario's outcome depends on timing.

use ferroce_proto::abi::regs::{Params, feature};
use ferroce_sim::model::Model;
use ferroce_tests::differential::generate::Class;
use ferroce_tests::differential::{Card, Setup, campaign};

use crate::jitter::Jitter;

/// Tables just large enough for the scenarios.
pub(crate) const PARAMS: Params = Params {
    log_qp: 4,
    log_mr: 6,
    log_cq: 4,
    log_outstanding: 8,
    log_gid: 4,
    log_eq: 0,
};

/// All features that scenarios have something for.
pub(crate) const FEATURES: u32 = feature::RC
    | feature::READ
    | feature::ATOMIC
    | feature::UC
    | feature::VLAN
    | feature::LONG_WQE
    | feature::INVALIDATE;

/// The model with the engine's features.
pub(crate) fn model() -> Card {
    Card::new("model", |memory, _| {
        Box::new(Model::with_features(PARAMS, FEATURES, memory))
    })
}

fn setup() -> Setup {
    Setup {
        params: PARAMS,
        features: FEATURES,
        reference: model(),
        subject: Card::new("model at another pace", |memory, seed| {
            let model = Model::with_features(PARAMS, FEATURES, memory);
            Box::new(Jitter::new(model, seed))
        }),
    }
}

#[test]
fn lossless() {
    campaign::run("lossless", Class::Lossless, 1..=1000, setup);
}

#[test]
fn lossy() {
    campaign::run("lossy", Class::Lossy, 1..=500, setup);
}

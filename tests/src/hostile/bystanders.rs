//! Connections of others beside an attacker.

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::Mtu;
use ferroce_sim::link::Config;
use ferroce_sim::testhost::QpOptions;

use crate::conformance::run::Target;
use crate::differential::Card;
use crate::scene::Scene;
use crate::scene::shape::{Shape, options};
use crate::world::World;

/// Cycles in which things are done.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// A command.
    pub(super) command: u64,
    /// A message of a bystander.
    pub(super) message: u64,
}

/// In the words of the bystanders.
pub(super) const MARK: u32 = 0xb57a_1de5;

/// A card with connections of bystanders to a model.
pub(super) fn scene(card: &Card, direct: bool, seed: u64, patience: Patience) -> Scene {
    let model = Target::Model.card(World::Fast);
    let (model, _) = model.expect("a model needs no build");
    let mut scene = Scene::new(
        [card, &model],
        [direct, true],
        seed,
        &Config::default(),
        patience.command,
    );
    let is_even = seed.is_multiple_of(2);
    // Turns of two packets.
    let window = if is_even { 8 } else { 0 };
    for (qpn, kind) in [([2, 2], qp_type::RC), ([3, 3], qp_type::UD)] {
        let (mtu, longest) = match kind {
            qp_type::RC if is_even => (Mtu::Mtu256, 12_000),
            qp_type::RC => (Mtu::Mtu1024, 4000),
            _ => (Mtu::Mtu1024, 1024),
        };
        let shape = Shape {
            options: QpOptions {
                qkey: 0xb57a_0001,
                timeout: 8,
                window,
                ..options(kind, mtu)
            },
            longest,
            lossy: false,
            late: false,
            patience: patience.message,
            mark: MARK,
            timeout: None,
        };
        scene.add(qpn, shape, seed ^ u64::from(kind));
    }
    scene.open_all();
    scene
}

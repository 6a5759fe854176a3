//! The golden model against itself, through the raw host contract.
//!
//! The rules of the transport are cases of the conformance suite (`ferroce_tests::conformance`); here stands what is the
//! model's own, the host contract, and random traffic.

mod bad_wqe;
mod commands;
mod completion;
mod data;
mod datagram;
mod features;
mod forger;
mod fuzz;
mod hostile;
mod loss;
mod shared;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::testhost::{Pair, QpOptions};

/// Two hosts with a golden model each.
fn pair() -> Pair {
    Pair::new(|memory| Box::new(Model::new(DEFAULT_PARAMS, memory)))
}

/// Two hosts and a pair of connected queue pairs of the same options.
fn connected(options: QpOptions) -> (Pair, u32, u32) {
    let mut pair = pair();
    let (qa, qb) = pair.connect(options, options);
    (pair, qa, qb)
}

#[track_caller]
fn assert_success(cqe: &Cqe, index: u16) {
    assert_eq!(
        (cqe.status, cqe.wqe_index),
        (status::SUCCESS, index),
        "{cqe:?}"
    );
}

#[track_caller]
fn assert_status(cqe: &Cqe, index: u16, status: u8) {
    assert_eq!((cqe.status, cqe.wqe_index), (status, index), "{cqe:?}");
}

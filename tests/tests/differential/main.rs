//! Random differential test of the implementations of the card, see [`ferroce_tests::differential`].

mod defects;
mod jitter;
mod model;
mod reach;
mod rtl;

//! The engine is not slower than the baseline says; a few scenarios, exact in cycles.

#[test]
fn no_figure_is_worse_than_the_baseline() {
    let failures = xtask::bench::gate();
    assert!(
        failures.is_empty(),
        "{}\nif that is meant to be: cargo xtask bench --quick --write",
        failures.join("\n")
    );
}

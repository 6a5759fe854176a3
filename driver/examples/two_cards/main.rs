//! Two cards on a wire: every RC operation with its data checked and its completion reported by interrupt, an access
//! outside of what is mapped, and a fresh start after it.
//!
//! ```text
//! cargo run -p ferroce-driver --example two_cards -- unix:/tmp/a unix:/tmp/b
//! cargo run -p ferroce-driver --example two_cards -- 0000:01:00.0 0000:02:00.0
//! ```

mod exercise;

use exercise::{Result, operations, outside, pair};
use ferroce_driver::open::open;

fn main() -> Result<()> {
    let cards: Vec<String> = std::env::args().skip(1).collect();
    let [first, second] = cards.as_slice() else {
        return Err(format!("give two cards, each {}", ferroce_driver::open::FORMS).into());
    };
    // The second time on cards that had an access refused the first time.
    for round in 1..=2 {
        let (mut a, mut b) = pair(open(first)?, open(second)?)?;
        println!("round {round}: both cards are open");
        operations(&mut a, &mut b)?;
        operations(&mut b, &mut a)?;
        println!("WRITE, READ, SEND and atomics: the data is right, both ways");
        outside(&mut a, &b)?;
    }
    println!("done");
    Ok(())
}

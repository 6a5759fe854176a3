//! Two cards on a wire: every RC operation with its data checked, an access outside of what is mapped, and a fresh start
//! after it.
//!
//! ```text
//! cargo run -p ferroce-driver --example two_cards -- unix:/tmp/a unix:/tmp/b
//! cargo run -p ferroce-driver --example two_cards -- 0000:01:00.0 0000:02:00.0
//! ```

mod exercise;

use exercise::{Result, operations, outside, pair};
use ferroce_driver::Backend;
use ferroce_driver::vfio::Vfio;
use ferroce_driver::vfio_user::VfioUser;

/// What stands before the path of a socket.
const SOCKET: &str = "unix:";

/// Runs it twice: the second time on cards that had an access refused the first time.
fn run<B: Backend>(open: impl Fn(&str) -> Result<B>, cards: &[String; 2]) -> Result<()> {
    for round in 1..=2 {
        let (mut a, mut b) = pair(open(&cards[0])?, open(&cards[1])?)?;
        println!("round {round}: both cards are open");
        operations(&mut a, &mut b)?;
        operations(&mut b, &mut a)?;
        println!("WRITE, READ, SEND and atomics: the data is right, both ways");
        outside(&mut a, &b)?;
    }
    println!("done");
    Ok(())
}

fn main() -> Result<()> {
    let cards: Vec<String> = std::env::args().skip(1).collect();
    let cards: [String; 2] = cards.try_into().map_err(|_| {
        "give two cards: unix:PATH unix:PATH for sockets of `cargo xtask simnic`, or two PCI addresses".to_owned()
    })?;
    if cards.iter().all(|card| card.starts_with(SOCKET)) {
        run(
            |card| Ok(VfioUser::connect(card[SOCKET.len()..].as_ref())?),
            &cards,
        )
    } else {
        run(|card| Ok(Vfio::open(card)?), &cards)
    }
}

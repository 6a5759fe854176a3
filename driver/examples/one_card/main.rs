//! One end of a connection to another process; each end sends the other one a line about itself. A test kills this
//! process, resets its card and takes it away.
//!
//! ```text
//! cargo run -p ferroce-driver --example one_card -- unix:/tmp/a 1 17
//! ```
//!
//! Card, its number (address 10.0.0.NUMBER), code of the ACK timeout. It prints the line `end ...`, reads that of the
//! other end, and then orders:
//!
//! | order | what |
//! |---|---|
//! | `write` | writes a message; prints `wrote` and how that went |
//! | `forever` | prints `going` when the first messages are written, and writes until one fails; prints `ended` and why |
//! | `reset` | resets the card in the middle of transfers and ends as it stands |
//! | `end` | closes the card |

#[allow(dead_code, reason = "that of two cards")]
#[path = "../two_cards/exercise.rs"]
mod exercise;

use std::io::stdin;

use exercise::{End, Peer, Result};
use ferroce_driver::AnyBackend;
use ferroce_driver::open::open;

/// Messages after which transfers count as under way.
const GOING: usize = 8;
/// Messages under way when the card is reset.
const WINDOW: usize = 4;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [card, number, timeout] = args.as_slice() else {
        return Err("give a card, its number, and the code of the ACK timeout".into());
    };
    let mut end = End::open(open(card)?, number.parse()?)?;
    println!("{}", end.describe()?);
    let mut lines = stdin().lines();
    let peer: Peer = lines.next().ok_or("the other end is gone")??.parse()?;
    end.connect(&peer, timeout.parse()?)?;
    for order in lines {
        match order?.as_str() {
            "write" => println!("wrote {:?}", end.write(&peer)?.status),
            "forever" => forever(&mut end, &peer)?,
            "reset" => reset(&mut end, &peer)?,
            "end" => break,
            other => return Err(format!("`{other}` is no order").into()),
        }
    }
    drop(end);
    println!("closed");
    Ok(())
}

fn forever(end: &mut End<AnyBackend>, peer: &Peer) -> Result<()> {
    for _ in 0..GOING {
        end.write(peer)?.ok()?;
    }
    println!("going");
    loop {
        if let Err(error) = end.write(peer).and_then(|wc| Ok(wc.ok()?)) {
            println!("ended: {error}");
            return Err(error.to_string().into());
        }
    }
}

/// Ends the process: the driver would wait for a card that forgot it.
fn reset(end: &mut End<AnyBackend>, peer: &Peer) -> Result<()> {
    for _ in 0..WINDOW {
        end.post_write(peer)?;
    }
    match end.context.backend() {
        AnyBackend::Vfio(card) => card.reset()?,
        AnyBackend::VfioUser(card) => card.reset()?,
        _ => return Err("cards of this kind are not reset here".into()),
    }
    if end.context.status().absent {
        return Err("the card did not come back from its reset".into());
    }
    println!("reset");
    std::process::exit(0)
}

//! Driver and card together, the same on the golden model and on the engine.

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use ferroce_driver::{Context, Cq, Gid, Mac, Qp, Wc};
use ferroce_sim::card::SimCard;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;

/// Longest wait for what must come, in ns.
const LIMIT: Duration = Duration::from_micros(200);

type Done = Result<(), Box<dyn Error>>;

/// Tests of these functions on two models and on two engines.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod model {
            $(#[test]
            fn $case() -> crate::Done {
                super::$case(ferroce_sim::card::SimCard::models())
            })*
        }
        mod engine {
            $(#[test]
            fn $case() -> crate::Done {
                super::$case(crate::engines()?)
            })*
        }
    };
}

mod classes;
mod events;
mod shared;
mod windows;

/// Two engines of the standard build.
fn engines() -> Result<[SimCard; 2], Box<dyn Error>> {
    let model = build::model(64, &verilator::Options::default())?;
    let options = Options::host(1);
    Ok(SimCard::pair(|memory| {
        build::engine(&model, memory, &options)
    })?)
}

/// The card of host `last`, with that address.
fn open(card: SimCard, last: u8) -> Result<Context<SimCard>, Box<dyn Error>> {
    let context = Context::open(card)?;
    context.set_mac(Mac([2, 0, 0, 0, 0, last]))?;
    context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, last)))?;
    Ok(context)
}

fn connect(a: &mut Qp<SimCard>, b: &mut Qp<SimCard>) -> Done {
    let (end_a, end_b) = (a.endpoint()?, b.endpoint()?);
    a.connect(&end_b)?;
    b.connect(&end_a)?;
    Ok(())
}

fn take(cq: &mut Cq<SimCard>) -> Wc {
    let mut wcs = [Wc::default()];
    assert_eq!(cq.wait(&mut wcs, LIMIT), 1, "a completion in time");
    wcs[0]
}

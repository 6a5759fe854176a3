//! Traffic classes by the driver: the card holds all of them.

use ferroce_driver::{Backend, Classes};
use ferroce_proto::abi::regs;
use ferroce_sim::card::SimCard;

use crate::{Done, open};

on_both!(the_card_holds_them);

/// Every register that the driver writes reads as it was written.
fn the_card_holds_them([a, _]: [SimCard; 2]) -> Done {
    let context = open(a, 1)?;
    let read = |register: u32| context.backend().read32(register.into());
    let registers: Vec<u32> = (regs::TRUST..=regs::PFC_STORM).step_by(4).collect();
    let before: Vec<u32> = registers.iter().map(|&register| read(register)).collect();
    context.set_classes(&Classes::default())?;
    let after: Vec<u32> = registers.iter().map(|&register| read(register)).collect();
    assert_eq!(after, before, "the default is what it has after reset");
    let mut classes: Classes =
        "trust=pcp:5 dscp2prio=63:6 prio_tc=3,2,1,0,3,2,1,0 turn=127,strict,1,2 \
         xoff=65535/511 xon=500/200 lossy=40/30 watchdog=16383 storm=8191"
            .parse()?;
    classes.pause_obeyed = 0xcb;
    context.set_classes(&classes)?;
    for (register, expected) in [
        (regs::TRUST, 0x501),
        (regs::DSCP_PRIO_7, 0x6777_7777),
        (regs::PRIO_CLASS, 0x0123_0123),
        (regs::CLASS_WEIGHT, 0x0201_007f),
        (regs::PFC_CONFIG, 0xcb),
        (regs::PFC_WATCHDOG, 16_383),
        (regs::PFC_XOFF, 0x01ff_ffff),
        (regs::PFC_XON, 0x00c8_01f4),
        (regs::PFC_LOSSY, 0x001e_0028),
        (regs::PFC_STORM, 8191),
    ] {
        assert_eq!(read(register), expected, "{register:#x}");
    }
    Ok(())
}

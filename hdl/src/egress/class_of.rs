//! Class of a packet: its DSCP or PCP gives the priority, that the class (IEEE 802.1Q; the DSCP of RFC 2474 is the upper six bits of
//! the traffic class). A look-up a cycle; 2 cycles.
use super::CLASSES;
use super::types::ClassSetup;
use crate::prelude::*;

/// Priority of a packet with this DSCP and, in a tag, this PCP.
#[kernel_fn]
pub fn priority_of(setup: ClassSetup, dscp: Bits<6>, has_tag: Bit, pcp: Bits<3>) -> Bits<3> {
    let prio = if !setup.by_pcp {
        setup.dscp_prio.slice::<3>(dscp.resize::<8>() * 4)
    } else if has_tag {
        pcp
    } else {
        setup.default_prio
    };
    prio
}

/// Class of a priority.
#[kernel_fn]
pub fn class_of_priority(setup: ClassSetup, prio: Bits<3>) -> Bits<2> {
    let class = setup.prio_class.slice::<2>(prio.resize::<5>() * 4);
    class
}

/// A class as one bit of all of them.
#[kernel_fn]
pub fn class_bit(packet_class: Bits<2>) -> Bits<CLASSES> {
    bits::<CLASSES>(1) << packet_class
}

/// The class of such a bit.
#[kernel_fn]
pub fn class_number(of_class: Bits<CLASSES>) -> Bits<2> {
    bits::<2>(0)
        .replace_bit(0, of_class.bit(1) | of_class.bit(3))
        .replace_bit(1, of_class.bit(2) | of_class.bit(3))
}

/// The look-up.
#[derive(Clone, Debug, Block)]
pub struct ClassOf {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// Type of service or traffic class of the packet.
    pub tclass: Signal<In, Bits<8>>,
    /// It has an 802.1Q tag.
    pub has_tag: Signal<In, Bit>,
    /// Its PCP.
    pub pcp: Signal<In, Bits<3>>,
    /// Two cycles later: its priority.
    pub prio: Signal<Out, Bits<3>>,
    /// And its class.
    pub packet_class: Signal<Out, Bits<2>>,
    found: Dff<Bits<3>>,
    prio_q: Dff<Bits<3>>,
    class_q: Dff<Bits<2>>,
}

impl Logic for ClassOf {
    describe!(
        "class_of",
        "Priority and class of a packet, by its DSCP or PCP."
    );

    #[kernel]
    fn update(&mut self) {
        found = priority_of(setup, tclass.slice::<6>(2), has_tag, pcp);
        prio_q = found;
        class_q = class_of_priority(setup, found);
        prio = prio_q;
        packet_class = class_q;
    }
}

//! Class of a packet: its DSCP or PCP gives the priority, that the class (IEEE 802.1Q; the DSCP of RFC 2474 is the upper six bits of
//! the traffic class). A look-up a cycle; 2 cycles.
use super::types::ClassSetup;
use crate::prelude::*;

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
        let dscp = tclass.slice::<6>(2).resize::<8>();
        found = setup.dscp_prio.slice::<3>(dscp * 4);
        if setup.by_pcp {
            found = setup.default_prio;
            if has_tag {
                found = pcp;
            }
        }
        prio_q = found;
        class_q = setup.prio_class.slice::<2>(found.resize::<5>() * 4);
        prio = prio_q;
        packet_class = class_q;
    }
}

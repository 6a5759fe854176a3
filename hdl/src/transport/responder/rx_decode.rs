//! What the BTH says of a packet by itself: its opcode, and whether its queue pair can be there.
//!
//! Combinational: a table of 128 opcodes, those of RC, UC and UD. What other opcodes give means nothing; their class is
//! that of no queue pair.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::opcode::Operation;

use crate::prelude::*;

/// A packet by its BTH.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct RxKind {
    /// The number is that of a queue pair of this card, not 0.
    pub exists: Bit,
    /// A request.
    pub request: Bit,
    /// A response.
    pub response: Bit,
    /// A SEND of any form.
    pub send: Bit,
    /// A WRITE of any form.
    pub write: Bit,
    /// A READ request.
    pub read: Bit,
    /// An atomic.
    pub atomic: Bit,
    /// Fetch and add.
    pub add: Bit,
    /// Starts its message.
    pub first: Bit,
    /// Ends its message.
    pub last: Bit,
    /// Carries immediate data.
    pub with_imm: Bit,
    /// Carries an rkey to invalidate.
    pub with_inv: Bit,
    /// Carries an AETH.
    pub aeth: Bit,
    /// A READ response.
    pub read_response: Bit,
    /// An atomic response.
    pub atomic_ack: Bit,
}

/// Decodes the BTH for a card of 2^Q queue pairs.
#[derive(Block)]
#[block(check)]
pub struct RxDecode<const Q: usize> {
    /// Opcode.
    pub opcode: Signal<In, Bits<8>>,
    /// Destination queue pair.
    pub qpn: Signal<In, Bits<24>>,
    /// What they say.
    pub kind: Signal<Out, RxKind>,

    #[init(Constant::new((0xff_ffffu64 >> Q << Q).to_bits()))]
    high: Constant<Bits<24>>,
    #[init(opcodes(Opcode::is_request))]
    requests: Constant<Bits<128>>,
    #[init(opcodes(Opcode::is_response))]
    responses: Constant<Bits<128>>,
    #[init(operation(Operation::Send))]
    sends: Constant<Bits<128>>,
    #[init(operation(Operation::Write))]
    writes: Constant<Bits<128>>,
    #[init(operation(Operation::ReadRequest))]
    reads: Constant<Bits<128>>,
    #[init(opcodes(|o| o.has_atomic_eth()))]
    atomics: Constant<Bits<128>>,
    #[init(operation(Operation::FetchAdd))]
    adds: Constant<Bits<128>>,
    #[init(opcodes(Opcode::is_start))]
    starts: Constant<Bits<128>>,
    #[init(opcodes(Opcode::is_end))]
    ends: Constant<Bits<128>>,
    #[init(opcodes(Opcode::has_imm))]
    imms: Constant<Bits<128>>,
    #[init(opcodes(Opcode::has_ieth))]
    invs: Constant<Bits<128>>,
    #[init(opcodes(Opcode::has_aeth))]
    aeths: Constant<Bits<128>>,
    #[init(operation(Operation::ReadResponse))]
    read_responses: Constant<Bits<128>>,
    #[init(operation(Operation::AtomicAck))]
    atomic_acks: Constant<Bits<128>>,
}

/// Bit n: the opcode n is what `is` says.
fn opcodes(is: impl Fn(Opcode) -> bool) -> Constant<Bits<128>> {
    let mut set = Bits::<128>::default();
    for o in Opcode::ALL {
        if o.code() < 128 && is(*o) {
            set = set.replace_bit(usize::from(o.code()), true);
        }
    }
    Constant::new(set)
}

/// The opcodes of one operation.
fn operation(which: Operation) -> Constant<Bits<128>> {
    opcodes(|o| o.operation() == which)
}

impl<const Q: usize> RxDecode<Q> {
    fn check() {
        assert!(
            (4..=14).contains(&Q),
            "2^{Q} queue pairs: 2^4 to 2^14 can be built"
        );
    }
}

impl<const Q: usize> Logic for RxDecode<Q> {
    describe!(
        "rx_decode",
        format!("q{Q}"),
        "What the BTH says of a packet by itself."
    );

    #[kernel]
    fn update(&mut self) {
        let code = opcode.low::<7>();
        kind.exists = !(qpn & high).any() & qpn.any();
        kind.request = requests.bit(code);
        kind.response = responses.bit(code);
        kind.send = sends.bit(code);
        kind.write = writes.bit(code);
        kind.read = reads.bit(code);
        kind.atomic = atomics.bit(code);
        kind.add = adds.bit(code);
        kind.first = starts.bit(code);
        kind.last = ends.bit(code);
        kind.with_imm = imms.bit(code);
        kind.with_inv = invs.bit(code);
        kind.aeth = aeths.bit(code);
        kind.read_response = read_responses.bit(code);
        kind.atomic_ack = atomic_acks.bit(code);
    }
}

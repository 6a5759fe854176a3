//! The order of DCQCN: which step follows on which. No state of its own.
//!
//! | step | does | next |
//! |---|---|---|
//! | Sweep | clears the table, after reset | Pick |
//! | Pick | takes an event, or visits a queue pair | Load |
//! | Load | its state arrives | Due; of one without a CNP yet: a CNP Act, else Pick; Reset: Store |
//! | Due | compares times | Choose |
//! | Choose | looks for an increase | Add if one is due, else CatchUp |
//! | CatchUp, Tick | counts ticks of alpha and periods that passed | Cut if a decrease is due, else Act; behind Raise of a first CNP: Store |
//! | Add, Mean | an increase: target, then rate | Add while more are due, then Due; by bytes: Bytes |
//! | Cut | a decrease | Due; behind Raise: Store |
//! | Act | the event itself | Sent: Count; a CNP that decreases at once: Raise; else Store |
//! | Count, Bytes | counts its bytes | Add if they are enough, else Store |
//! | Raise | one tick of alpha, now | CatchUp |
//! | Store | the state goes back | Answer if the rate changed, else Pick |
//! | Answer | a rate update leaves | Pick |
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::dcqcn_terms::DcqcnTerms;
use super::types::*;
use crate::bus::payload::payload;
use crate::prelude::*;

/// What DCQCN is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum DcqcnStep {
    /// Clears the table.
    Sweep,
    /// Chooses an event.
    Pick,
    /// The state arrives.
    Load,
    /// Compares times.
    Due,
    /// Chooses what happens first.
    Choose,
    /// Starts the ticks before it.
    CatchUp,
    /// They are counted.
    Tick,
    /// An increase: the target;
    Add,
    /// the rate.
    Mean,
    /// A decrease.
    Cut,
    /// The event itself.
    Act,
    /// Counts its bytes.
    Count,
    /// Bytes beyond the next increase.
    Bytes,
    /// A CNP that decreases at once: alpha.
    Raise,
    /// The state goes back.
    Store,
    /// A rate update leaves.
    Answer,
}

payload! {
    /// What is remembered while a queue pair is looked at.
    DcqcnWork {
        /// Increases by time, on end.
        increases: Bits<6>,
        /// The increase is one by bytes.
        by_bytes: Bit,
        /// Ticks of alpha are counted.
        alpha_ticks: Bit,
        /// Periods without a CNP are counted.
        monitor_ticks: Bit,
        /// The event is the first CNP.
        sets: Bit,
        /// It is a CNP that decreases at once.
        cuts: Bit,
    }

    /// How far it is.
    DcqcnStatus {
        /// Sweep: the last word of the table.
        swept: Bit,
        /// Pick: a queue pair can be looked at.
        open: Bit,
        /// Load: a CNP came for the queue pair before.
        active: Bit,
        /// An increase by time is due before a decrease.
        increase_due: Bit,
        /// A decrease is due, or the CNP makes one.
        falls: Bit,
        /// Tick: all are counted.
        ticked: Bit,
        /// Cut: the decrease is computed.
        cut: Bit,
        /// Bytes: they are enough for an increase.
        enough: Bit,
        /// Store: the rate changed.
        changed: Bit,
        /// Answer: it is taken.
        taken: Bit,
    }
}

/// The order, combinational.
#[derive(Block)]
pub struct DcqcnOrder {
    /// The step.
    pub step: Signal<In, DcqcnStep>,
    /// The event.
    pub kind: Signal<In, CongestionEventKind>,
    /// See there.
    pub work: Signal<In, DcqcnWork>,
    /// See there.
    pub status: Signal<In, DcqcnStatus>,
    /// See there.
    pub terms: Signal<In, DcqcnTerms>,
    /// The next step.
    pub next_step: Signal<Out, DcqcnStep>,
}

impl Logic for DcqcnOrder {
    describe!("dcqcn_order", "Which step of DCQCN follows on which.");

    #[kernel]
    fn update(&mut self) {
        let mut next = step;
        match step {
            DcqcnStep::Sweep => {
                if status.swept {
                    next = DcqcnStep::Pick;
                }
            }
            DcqcnStep::Pick => {
                if status.open {
                    next = DcqcnStep::Load;
                }
            }
            DcqcnStep::Load => {
                next = DcqcnStep::Due;
                if kind == CongestionEventKind::Reset {
                    next = DcqcnStep::Store;
                } else if !status.active {
                    next = DcqcnStep::Pick;
                    if kind == CongestionEventKind::Cnp {
                        next = DcqcnStep::Act;
                    }
                }
            }
            DcqcnStep::Due => next = DcqcnStep::Choose,
            DcqcnStep::Choose => {
                next = DcqcnStep::CatchUp;
                if status.increase_due {
                    next = DcqcnStep::Add;
                }
            }
            DcqcnStep::CatchUp => next = DcqcnStep::Tick,
            DcqcnStep::Tick => {
                if status.ticked {
                    next = DcqcnStep::Act;
                    if status.falls {
                        next = DcqcnStep::Cut;
                    }
                    // all but the decrease is done
                    if work.sets & !work.cuts {
                        next = DcqcnStep::Store;
                    }
                }
            }
            DcqcnStep::Add => next = DcqcnStep::Mean,
            DcqcnStep::Mean => {
                next = DcqcnStep::Due;
                if work.by_bytes {
                    next = DcqcnStep::Bytes;
                } else if status.increase_due & !work.increases.all() {
                    next = DcqcnStep::Add;
                }
            }
            DcqcnStep::Cut => {
                if status.cut {
                    next = DcqcnStep::Due;
                    if work.cuts {
                        next = DcqcnStep::Store;
                    }
                }
            }
            DcqcnStep::Act => {
                next = DcqcnStep::Store;
                if (kind == CongestionEventKind::Cnp) & terms.at_once {
                    next = DcqcnStep::Raise;
                } else if (kind == CongestionEventKind::Sent) & !terms.no_bytes {
                    next = DcqcnStep::Count;
                }
            }
            DcqcnStep::Count => next = DcqcnStep::Bytes,
            DcqcnStep::Bytes => {
                next = DcqcnStep::Store;
                if status.enough {
                    next = DcqcnStep::Add;
                }
            }
            DcqcnStep::Raise => next = DcqcnStep::CatchUp,
            DcqcnStep::Store => {
                next = DcqcnStep::Pick;
                if status.changed {
                    next = DcqcnStep::Answer;
                }
            }
            _ => {
                if status.taken {
                    next = DcqcnStep::Pick;
                }
            }
        }
        next_step = next;
    }
}

//! The proofs: block, checker, method, and for each the bugs that must break it.

use ferroce_hdl::egress::class_turn::ClassTurn;
use ferroce_hdl::emit::{self, Design};
use ferroce_hdl::eth::pause_out::PauseOut;
use ferroce_hdl::memory::dma_read::DmaRead;
use ferroce_hdl::memory::dma_write::DmaWrite;
use ferroce_hdl::memory::mr_table::{MrPort, MrTable};
use ferroce_hdl::memory::split::Split;
use ferroce_hdl::prelude::{Arbiter, Bits, Block, Deep, Fifo, Skid, SkidRam};
use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_hdl::transport::requester::retire::Retire;
use ferroce_hdl::transport::requester::sq_rules::SqRules;
use ferroce_hdl::transport::requester::sq_terms::SqTermsOf;
use ferroce_hdl::transport::responder::rq_rules::RqRules;

use super::checker::Checker;
use super::proof::{Bug, Proof};

/// The checker of `sq_ring` names kinds of events by these numbers.
const _: () = assert!(
    SqEventKind::Start as u8 == 3
        && SqEventKind::Retired as u8 == 7
        && SqEventKind::Command as u8 == 8
        && SqEventKind::Executed as u8 == 12
);

fn emitted<B: Block>(make: impl FnOnce() -> B + Send) -> Design {
    let design = emit::with_stack(|| {
        let mut block = make();
        block.connect_all();
        emit::verilog(&block)
    });
    design.unwrap_or_else(|errors| panic!("{errors:#?}"))
}

macro_rules! checker {
    ($name:literal) => {
        Checker {
            text: include_str!(concat!("../../../../hdl/formal/", $name, ".v")),
        }
    };
}

/// Modules that the checkers share.
pub(super) const COMMON: &str = include_str!("../../../../hdl/formal/common.v");

/// Of a queue.
const FULL_LATE: Bug = Bug {
    what: "full one item late",
    from: "full_d = items_q == most;",
    to: "full_d = items_q > most;",
};

/// All proofs.
pub(super) const PROOFS: &[Proof] = &[
    Proof {
        name: "skid",
        block: || emitted(Skid::<Bits<8>>::default),
        checker: checker!("skid"),
        depth: 3,
        reach: 8,
        bugs: &[
            Bug {
                what: "the item that came when the receiver stopped is lost",
                from: "out_d = spare_q;",
                to: "out_d = s_payload;",
            },
            Bug {
                what: "a second item is taken without room",
                from: "spare_valid_d = s_valid;",
                to: "spare_valid_d = 1'b0;",
            },
        ],
    },
    Proof {
        name: "skid_ram",
        block: || emitted(SkidRam::<Bits<8>>::default),
        checker: checker!("skid_ram"),
        depth: 3,
        reach: 8,
        bugs: &[
            Bug {
                what: "the item that waits is not the next one",
                from: "read_d = read_q ^ comes;",
                to: "read_d = read_q ^ push;",
            },
            Bug {
                what: "a second item is taken without room",
                from: "spare_valid_d = comes;",
                to: "spare_valid_d = 1'b0;",
            },
        ],
    },
    Proof {
        name: "fifo",
        block: || emitted(Fifo::<Bits<8>, 4>::default),
        checker: checker!("fifo"),
        depth: 3,
        reach: 24,
        bugs: &[
            FULL_LATE,
            Bug {
                what: "an item leaves while the next one waits for the receiver",
                from: "assign fetch = !empty_q & m_ready;",
                to: "assign fetch = !empty_q;",
            },
        ],
    },
    Proof {
        name: "fifo_narrow",
        block: || emitted(Fifo::<Bits<2>, 4>::default),
        checker: checker!("fifo_narrow"),
        depth: 3,
        reach: 24,
        bugs: &[Bug {
            what: "an item that goes past the RAM is not the one shown",
            from: "word <= pass ? wdata :",
            to: "word <=",
        }],
    },
    Proof {
        name: "deep",
        block: || emitted(Deep::<Bits<8>, 4>::default),
        checker: checker!("deep"),
        depth: 3,
        reach: 24,
        bugs: &[
            FULL_LATE,
            Bug {
                what: "an item leaves while the next one waits for the receiver",
                from: "assign fetch = !empty_q & (m_ready | !held_q);",
                to: "assign fetch = !empty_q;",
            },
            Bug {
                what: "the last item behind one that leaves is not seen",
                from: "empty_d = (items_q == 16'd2) | !held_q;",
                to: "empty_d = 1'b1;",
            },
        ],
    },
    Proof {
        name: "arbiter",
        block: || emitted(Arbiter::<9>::default),
        checker: checker!("arbiter"),
        depth: 2,
        reach: 12,
        bugs: &[
            Bug {
                what: "the turn does not move on",
                from: "mask_after_last_d = above;",
                to: "mask_after_last_d = mask_after_last_q;",
            },
            Bug {
                what: "two grants",
                from: "grant = later & ~(from_later << 1);",
                to: "grant = later;",
            },
        ],
    },
    Proof {
        name: "class_turn",
        block: || emitted(ClassTurn::<4>::default),
        checker: checker!("class_turn"),
        depth: 3,
        reach: 12,
        bugs: &[
            Bug {
                what: "a paused queue starts a frame",
                from: "assign may_share_d = share & ~strict_q & ~pause;",
                to: "assign may_share_d = share & ~strict_q;",
            },
            Bug {
                what: "a paused strict queue starts a frame",
                from: "assign may_strict_d = strict_q & ~pause;",
                to: "assign may_strict_d = strict_q;",
            },
            Bug {
                what: "a queue in debt waits for one that has nothing to send",
                from: "assign refill = !(|(ready & able_q & rich));",
                to: "assign refill = !(|(able_q & rich));",
            },
            Bug {
                what: "queues in debt send before those that are not",
                from: "share = rich;",
                to: "share = near;",
            },
            Bug {
                what: "control takes no turns",
                from: "assign fresh = first & control & ~served_q;",
                to: "assign fresh = first & control;",
            },
            Bug {
                what: "quanta are saved up",
                from: "filled = quantum;",
                to: "filled = sum;",
            },
        ],
    },
    Proof {
        name: "pause_out",
        block: || emitted(PauseOut::<64>::default),
        checker: checker!("pause_out"),
        depth: 2,
        reach: 40,
        bugs: &[
            Bug {
                what: "a level stays for 15 cycles",
                from: "localparam STAYS = 4'hf;",
                to: "localparam STAYS = 4'he;",
            },
            Bug {
                what: "a storm ends no pause",
                from: "wants[7] = asks_q[3] & !stopped_q[3];",
                to: "wants[7] = asks_q[3];",
            },
            Bug {
                what: "a storm is never over",
                from: "stops = stopped_q & asks_q;",
                to: "stops = stopped_q;",
            },
            Bug {
                what: "classes that send pauses are refused too",
                from: "refused_d = ~lossless_q;",
                to: "refused_d = 4'd15;",
            },
        ],
    },
    Proof {
        name: "psn_receive",
        block: || emitted(RqRules::default),
        checker: checker!("psn_receive"),
        depth: 1,
        reach: 1,
        bugs: &[Bug {
            what: "the window of duplicates is a PSN short",
            from: "assign duplicate = live & !request[RqRequest_unreliable] & ahead[23];",
            to: "assign duplicate = live & !request[RqRequest_unreliable] & (ahead > 24'h800000);",
        }],
    },
    Proof {
        name: "psn_send",
        block: || emitted(SqTermsOf::default),
        checker: checker!("psn_send"),
        depth: 2,
        reach: 3,
        bugs: &[
            Bug {
                what: "a PSN that was not granted is in the window",
                from: "at_psn = (distance < state[SqState_inflight +: 24]) & current",
                to: "at_psn = (distance <= state[SqState_inflight +: 24]) & current",
            },
            Bug {
                what: "a PSN that has not left is in the window",
                from: "& (missing < reach) & known",
                to: "& known",
            },
            Bug {
                what: "what another incarnation sent is in the window",
                from: "& (distance < reach) & known",
                to: "& (distance < reach)",
            },
            Bug {
                what: "a life takes the incarnation of what left before it",
                from: "assign is_noted = following == departed[Departed_incarnation +: 2];",
                to: "assign is_noted = 1'b0;",
            },
        ],
    },
    Proof {
        name: "mr_port",
        block: || emitted(MrPort::<2>::default),
        checker: checker!("mr_port"),
        depth: 5,
        reach: 7,
        bugs: &[
            Bug {
                what: "the end of the address space is not seen",
                from: "assign sum = {1'b0, fetched_q[MrAccess_addr +: 64]} + fetched_q[MrAccess_more +: 65];",
                to: "assign sum = {1'b0, fetched_q[MrAccess_addr +: 64] + fetched_q[MrAccess_more +: 64]};",
            },
            Bug {
                what: "a window of one queue pair is reached by all",
                from: "checks_d[MrChecks_queue] = !entry_q[MrCtx_qp_only] | (entry_q[MrCtx_qpn +: 24] == {8'd0, access_q[MrAccess_qpn +: 16]});",
                to: "checks_d[MrChecks_queue] = 1'b1;",
            },
        ],
    },
    Proof {
        name: "mr_table",
        block: || emitted(MrTable::<2, 1>::default),
        checker: checker!("mr_table"),
        depth: 3,
        reach: 14,
        bugs: &[
            Bug {
                what: "a write in the last cycle of an invalidation is not seen",
                from: "if (touched_q | write) begin",
                to: "if (touched_q) begin",
            },
            Bug {
                what: "a peer ends the window of another queue pair",
                from: "may = copy_rdata[MrCtx_qpn +: 24] == {8'd0, qpn_q};",
                to: "may = 1'b1;",
            },
            Bug {
                what: "a window of a queue pair is bound over",
                from: "free = !(copy_rdata[MrCtx_qp_only] & (copy_rdata[MrCtx_valid] | empty_q));",
                to: "free = 1'b1;",
            },
        ],
    },
    Proof {
        name: "split",
        block: || emitted(Split::<8>::default),
        checker: checker!("split"),
        depth: 2,
        reach: 8,
        bugs: &[Bug {
            what: "the last two bursts are one",
            from: "(over & ~(burst - 14'd1))",
            to: "(over & ~(burst | (burst - 14'd1)))",
        }],
    },
    Proof {
        name: "dma_read",
        block: || emitted(DmaRead::<64, 8, 5>::default),
        checker: checker!("dma_read"),
        depth: 2,
        reach: 9,
        bugs: &[
            Bug {
                what: "requests are let in although the list has no room for their bursts",
                from: "localparam limit = 16'h10;",
                to: "localparam limit = 16'h1e;",
            },
            Bug {
                what: "a request that ends a byte behind its window is one burst",
                from: "& ~burst) << 1;",
                to: "& ~burst & ~14'd1) << 1;",
            },
            Bug {
                what: "every burst of client 8 ends a request",
                from: "last_d = m_axi_rlast & ends_8_m_payload;",
                to: "last_d = m_axi_rlast;",
            },
        ],
    },
    Proof {
        name: "dma_write",
        block: || emitted(DmaWrite::<64, 8>::default),
        checker: checker!("dma_write"),
        depth: 2,
        reach: 9,
        bugs: &[Bug {
            what: "the channel changes hands while the last beat waits",
            from: "assign owner_m_ready = beat_valid & beat_last & last_s_ready;",
            to: "assign owner_m_ready = beat_valid & beat_last;",
        }],
    },
    Proof {
        name: "retire",
        block: || emitted(Retire::<2, 3>::default),
        checker: checker!("retire"),
        depth: 2,
        reach: 12,
        bugs: &[Bug {
            what: "the first message that is not acknowledged is taken off when all PSNs behind it are",
            from: "acked_d = una_distance[23] &",
            to: "acked_d = (una_distance >= 24'h7fffff) &",
        }],
    },
    Proof {
        name: "sq_ring",
        block: || emitted(SqRules::default),
        checker: checker!("sq_ring"),
        depth: 1,
        reach: 1,
        bugs: &[Bug {
            what: "a READ or atomic counts twice",
            from: "next[SqState_used +: 16] = state[SqState_used +: 16] + 16'd1;",
            to: "next[SqState_used +: 16] = state[SqState_used +: 16] + (terms[SqTerms_answered] ? 16'd2 : 16'd1);",
        }],
    },
    Proof {
        name: "sq_room",
        block: || emitted(SqTermsOf::default),
        checker: checker!("sq_room"),
        depth: 2,
        reach: 3,
        bugs: &[Bug {
            what: "the ring is full at 2^15 messages, whatever its size",
            from: "fresh & t0[image[SqCtx_ot_log +: 4]]",
            to: "fresh & t0[15]",
        }],
    },
];

//! What a command that is carried out does, in plain Rust.

use ferroce_proto::abi::cmd::{CmdHead, GidEntry, opcode};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, SrqCtx, state};

use super::generate::Command;
use super::host::{Effect, Event};

/// What a command that is answered OK does, but for its completion.
pub(super) fn effects(command: &Command) -> Vec<Effect> {
    let Command { head, images } = command;
    let (index, [first, ..]) = (u64::from(head.index), images);
    match head.opcode {
        opcode::MODIFY_QP => modify(head, images),
        opcode::QUERY_QP => {
            let event = Event {
                qpn: index,
                psn: head.sq_psn.into(),
                state: u64::from(head.sq_state) & 7,
                ..Event::default()
            };
            let other = Event {
                psn: head.rq_psn.into(),
                state: u64::from(head.rq_state) & 7,
                ..event.clone()
            };
            vec![
                Effect::SqEvent(event),
                Effect::RqEvent(other),
                Effect::Answered,
            ]
        }
        opcode::CREATE_CQ | opcode::DESTROY_CQ => {
            let open = head.opcode == opcode::CREATE_CQ;
            let mut effects = vec![Effect::Cq {
                cqn: index,
                open,
                resize: None,
                image: CqCtx::parse(first).emit().to_vec(),
            }];
            if !open {
                effects.extend([Effect::DrainStart, Effect::DrainDone]);
            }
            effects
        }
        opcode::RESIZE_CQ => vec![resize(command), Effect::DrainStart, Effect::DrainDone],
        opcode::CREATE_EQ | opcode::DESTROY_EQ => {
            let open = head.opcode == opcode::CREATE_EQ;
            let mut effects = vec![Effect::Eq {
                eqn: index,
                open,
                image: EqCtx::parse(first).emit().to_vec(),
            }];
            if !open {
                effects.extend([Effect::DrainStart, Effect::DrainDone]);
            }
            effects
        }
        opcode::CREATE_SRQ | opcode::DESTROY_SRQ | opcode::ARM_SRQ => {
            let ctx = SrqCtx::parse(first);
            let mut effects = vec![];
            if head.opcode == opcode::CREATE_SRQ {
                effects.push(Effect::Srq(index, ctx.emit().to_vec()));
            }
            effects.push(Effect::SrqEvent {
                srqn: index,
                set: head.opcode != opcode::ARM_SRQ,
                image: head.opcode == opcode::CREATE_SRQ,
                limit: ctx.limit.into(),
            });
            effects.push(Effect::Answered);
            if head.opcode == opcode::DESTROY_SRQ {
                effects.extend([Effect::DrainStart, Effect::DrainDone]);
            }
            effects
        }
        opcode::WRITE_AH => vec![
            Effect::DrainStart,
            Effect::DrainDone,
            Effect::Ah(index, AvCtx::parse(first).emit().to_vec()),
        ],
        opcode::WRITE_MR => vec![
            Effect::Mr(index, MrCtx::parse(first).emit().to_vec()),
            Effect::DrainStart,
            Effect::DrainDone,
        ],
        opcode::SET_GID => {
            let entry = GidEntry::parse(first);
            vec![Effect::Gid(index, entry.emit().to_vec())]
        }
        _ => vec![],
    }
}

/// The order to resize a completion queue.
pub(super) fn resize(Command { head, images }: &Command) -> Effect {
    Effect::Cq {
        cqn: head.index.into(),
        open: false,
        resize: Some(head.cq_taken.into()),
        image: CqCtx::parse(&images[0]).emit().to_vec(),
    }
}

fn modify(head: &CmdHead, [first, second, third]: &[[u8; 64]; 3]) -> Vec<Effect> {
    let qpn = u64::from(head.index);
    let sq_ends = head.qp_sq_state && head.sq_state == state::RESET;
    let rq_ends = head.qp_rq_state && head.rq_state == state::RESET;
    // the images of queues that end, or of those that do not
    let images = |ending: bool| {
        let sq = Effect::Sq(qpn, SqCtx::parse(first).emit().to_vec());
        let av = Effect::Av(qpn, AvCtx::parse(second).emit().to_vec());
        let rq = Effect::Rq(qpn, RqCtx::parse(third).emit().to_vec());
        [
            (head.qp_sq && sq_ends == ending, sq),
            (head.qp_av && sq_ends == ending, av),
            (head.qp_rq && rq_ends == ending, rq),
        ]
        .into_iter()
        .filter_map(|(due, effect)| due.then_some(effect))
    };
    let mut effects: Vec<_> = images(false).collect();
    effects.extend([
        Effect::SqEvent(Event {
            qpn,
            psn: head.sq_psn.into(),
            state: u64::from(head.sq_state) & 7,
            set: head.qp_sq_state,
            reset: head.qp_sq_state && head.sq_reset,
            image: head.qp_sq,
        }),
        Effect::RqEvent(Event {
            qpn,
            psn: head.rq_psn.into(),
            state: u64::from(head.rq_state) & 7,
            set: head.qp_rq_state,
            reset: head.qp_rq_state && head.rq_reset,
            image: head.qp_rq,
        }),
        Effect::Answered,
    ]);
    if sq_ends || rq_ends {
        effects.extend([Effect::DrainStart, Effect::DrainDone]);
        effects.extend(images(true));
    }
    effects
}

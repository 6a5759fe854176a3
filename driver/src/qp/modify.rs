//! Transitions of queue pairs.

use std::sync::Arc;

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::qpc::{RqCtx, SqCtx};
use ferroce_proto::wire::eth::tag::vid;
use ferroce_proto::wire::{Mtu, ip, psn};

use super::{InitAttr, ModifyError, Qp, QpAttr, RtrAttr, RtsAttr};
use crate::command::Command;
use crate::mr::Access;
use crate::state::{QpState, QpType};
use crate::{Backend, Features};

impl<B: Backend> Qp<B> {
    /// Brings the queue pair to another state. The card is asked first whether it is in ERR or SQE by itself.
    ///
    /// # Errors
    /// [`ModifyError`]: no such transition, an attribute out of range, or refused; the state is unchanged then.
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        let to = attr.state();
        let runs = !matches!(self.state, QpState::Reset | QpState::Init);
        if runs && !matches!(to, QpState::Reset | QpState::Err) {
            self.refresh()?;
        }
        let from = self.state;
        if !from.next().contains(&to) {
            let qpn = self.number;
            return Err(ModifyError::Transition { qpn, from, to });
        }
        if to == QpState::Rts && (from == QpState::Rtr) == (*attr == QpAttr::Resume) {
            let qpn = self.number;
            return Err(ModifyError::Resume { qpn, from });
        }
        let connects = match attr {
            QpAttr::Rtr(_) => Some(true),
            QpAttr::RtrUd(_) => Some(false),
            _ => None,
        };
        if connects.is_some_and(|connects| connects == (self.qp_type == QpType::Ud)) {
            let (qpn, qp_type) = (self.number, self.qp_type);
            return Err(ModifyError::Transport { qpn, qp_type });
        }
        self.check_attr(attr)?;
        match attr {
            QpAttr::Reset => {
                self.reset()?;
                self.sq_image = SqCtx::default();
                self.detach();
                self.queues = Arc::new(self.queues.afresh());
                self.attach();
            }
            QpAttr::Init(attr) => self.enter_init(attr)?,
            QpAttr::Rtr(attr) => self.enter_rtr(attr)?,
            QpAttr::RtrUd(mtu) => self.enter_rtr_ud(*mtu)?,
            QpAttr::Rts(attr) => self.enter_rts(attr)?,
            QpAttr::Sqd => self.steer("bring to SQD QP", QpState::Sqd)?,
            QpAttr::Resume => self.steer("bring back to RTS QP", QpState::Rts)?,
            QpAttr::Err => self.enter_err()?,
        }
        self.state = to;
        Ok(())
    }

    /// Whether the attributes are in range; changes nothing.
    ///
    /// # Errors
    /// [`ModifyError::Path`], [`ModifyError::Range`].
    pub fn check_attr(&self, attr: &QpAttr) -> Result<(), ModifyError> {
        match attr {
            QpAttr::Rtr(attr) => {
                let qpn = self.number;
                let path = attr.path.check(&self.pd.card);
                path.map_err(|cause| ModifyError::Path { qpn, cause })?;
                self.check_range("dest_qpn", attr.dest_qpn, psn::MASK)?;
                self.check_range("rq_psn", attr.rq_psn, psn::MASK)?;
                self.check_range("min_rnr_timer", attr.min_rnr_timer.into(), 31)?;
                self.rd_atomic("max_dest_rd_atomic", attr.max_dest_rd_atomic)?;
            }
            QpAttr::Rts(attr) => {
                self.check_range("sq_psn", attr.sq_psn, psn::MASK)?;
                self.check_range("timeout", attr.timeout.into(), 31)?;
                self.check_range("retry_cnt", attr.retry_cnt.into(), 7)?;
                self.check_range("rnr_retry", attr.rnr_retry.into(), 7)?;
                self.rd_atomic("max_rd_atomic", attr.max_rd_atomic)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn enter_init(&mut self, attr: &InitAttr) -> Result<(), ModifyError> {
        if self.state == QpState::Reset {
            let head = CmdHead {
                sq_reset: true,
                rq_reset: true,
                ..self.both(QpState::Init)
            };
            self.command("bring to INIT QP", head, [None; 3])?;
        }
        self.init = *attr;
        Ok(())
    }

    fn enter_rtr(&mut self, attr: &RtrAttr) -> Result<(), ModifyError> {
        let path = &attr.path;
        let mut av = path.vector(self.number, attr.dest_qpn, self.init.pkey);
        // switches mark only what is ECN-capable; a program that names ECN bits has its own reasons
        if self.features.contains(Features::RATES) && av.tclass & ip::ECN_CE == 0 {
            av.tclass |= ip::ECN_ECT0;
        }
        let rq = RqCtx {
            remote_gid: path.dgid.to_le_bits(),
            min_rnr_timer: attr.min_rnr_timer,
            max_dest_rd_atomic: self.rd_atomic("max_dest_rd_atomic", attr.max_dest_rd_atomic)?,
            sgid_index: path.sgid_index,
            check_vlan: true,
            vlan: vid(path.vlan),
            ..self.responder(attr.path_mtu)
        };
        // The requester stays in INIT. Its image names the event queue of what the responder reports.
        let head = CmdHead {
            qp_sq: true,
            qp_av: true,
            qp_rq: true,
            qp_rq_state: true,
            rq_reset: true,
            rq_state: QpState::Rtr.code(),
            rq_psn: attr.rq_psn,
            ..CmdHead::default()
        };
        let sq = self.requester();
        let images = [Some(sq.emit()), Some(av.emit()), Some(rq.emit())];
        self.command("bring to RTR QP", head, images)?;
        self.path_mtu = Some(attr.path_mtu);
        self.image = rq;
        self.sq_image = sq;
        Ok(())
    }

    /// The responder's image as far as it does not name the peer.
    fn responder(&self, mtu: Mtu) -> RqCtx {
        let access = self.init.access;
        RqCtx {
            rq_base: self.rings.iova(self.rq_offset),
            qp_type: self.qp_type.code(),
            mtu: mtu.code(),
            rq_log: self.queues.rq.size().ilog2() as u8,
            rq_stride: self.rq_stride,
            remote_write: access.contains(Access::REMOTE_WRITE),
            remote_read: access.contains(Access::REMOTE_READ),
            remote_atomic: access.contains(Access::REMOTE_ATOMIC),
            pkey: self.init.pkey,
            pd: self.pd.number,
            cqn: self.recv_cq.number as u16,
            qkey: self.init.qkey,
            srq_valid: self.srq.is_some(),
            srqn: self.srq.as_ref().map_or(0, |core| core.number as u16),
            ..RqCtx::default()
        }
    }

    fn enter_rtr_ud(&mut self, mtu: Mtu) -> Result<(), ModifyError> {
        let head = CmdHead {
            qp_sq: true,
            qp_rq: true,
            qp_rq_state: true,
            rq_reset: true,
            rq_state: QpState::Rtr.code(),
            ..CmdHead::default()
        };
        let (sq, image) = (self.requester(), self.responder(mtu));
        let images = [Some(sq.emit()), None, Some(image.emit())];
        self.command("bring to RTR QP", head, images)?;
        self.path_mtu = Some(mtu);
        self.image = image;
        self.sq_image = sq;
        Ok(())
    }

    fn enter_rts(&mut self, attr: &RtsAttr) -> Result<(), ModifyError> {
        let max_rd_atomic = self.rd_atomic("max_rd_atomic", attr.max_rd_atomic)?;
        let sq = SqCtx {
            mtu: self.path_mtu.unwrap_or(Mtu::Mtu1024).code(),
            retry_cnt: attr.retry_cnt,
            rnr_retry: attr.rnr_retry,
            timeout: attr.timeout,
            max_rd_atomic,
            rate_limit: self.sq_image.rate_limit,
            window: self.sq_image.window,
            swift: self.swift,
            ..self.requester()
        };
        let head = CmdHead {
            qp_sq: true,
            sq_reset: true,
            sq_psn: attr.sq_psn,
            ..self.both(QpState::Rts)
        };
        self.command("bring to RTS QP", head, [Some(sq.emit()), None, None])?;
        self.still_runs(QpState::Rts)?;
        self.max_rd_atomic = max_rd_atomic;
        self.sq_image = sq;
        Ok(())
    }

    /// The requester's image as far as it does not name the peer.
    fn requester(&self) -> SqCtx {
        SqCtx {
            qp_type: self.qp_type.code(),
            mtu: Mtu::Mtu1024.code(),
            sq_log: self.queues.sq.size().ilog2() as u8,
            ot_log: self.outstanding.log as u8,
            pd: self.pd.number,
            cqn: self.send_cq.number as u16,
            ot_base: self.outstanding.base,
            sq_base: self.rings.iova(0),
            ..SqCtx::default()
        }
    }

    /// What is posted is flushed by the images. Before RTR the card has none, or those of the last life of the number.
    fn enter_err(&self) -> Result<(), ModifyError> {
        let starts = matches!(self.state, QpState::Reset | QpState::Init);
        let head = CmdHead {
            qp_sq: starts,
            qp_rq: starts,
            ..self.both(QpState::Err)
        };
        let sq = starts.then(|| self.requester().emit());
        let rq = starts.then(|| self.responder(Mtu::Mtu1024).emit());
        self.command("bring to ERR QP", head, [sq, None, rq])
    }

    /// Brings the requester to `state`. The responder goes on: a queue pair that goes to ERR meanwhile shows it there, and
    /// stays in ERR.
    fn steer(&mut self, operation: &'static str, to: QpState) -> Result<(), ModifyError> {
        let head = CmdHead {
            qp_sq_state: true,
            sq_state: to.code(),
            ..CmdHead::default()
        };
        self.command(operation, head, [None; 3])?;
        self.still_runs(to)
    }

    /// What failed meanwhile was not revived: either side in ERR takes the queue pair along, SQE goes to RTS only.
    fn still_runs(&mut self, to: QpState) -> Result<(), ModifyError> {
        self.refresh()?;
        let (qpn, from) = (self.number, self.state);
        match from {
            QpState::Err => self.enter_err()?,
            QpState::Sqe if to != QpState::Rts => {}
            _ => return Ok(()),
        }
        Err(ModifyError::Transition { qpn, from, to })
    }

    /// Head of a command that brings requester and responder to `state`.
    fn both(&self, state: QpState) -> CmdHead {
        CmdHead {
            qp_sq_state: true,
            sq_state: state.code(),
            qp_rq_state: true,
            rq_state: state.code(),
            ..CmdHead::default()
        }
    }

    pub(super) fn command(
        &self,
        operation: &'static str,
        head: CmdHead,
        images: [Option<[u8; 64]>; 3],
    ) -> Result<(), ModifyError> {
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: self.number,
            ..head
        };
        self.pd.card.execute(operation, &Command { head, images })?;
        Ok(())
    }

    pub(super) fn check_range(
        &self,
        attribute: &'static str,
        value: u32,
        maximum: u32,
    ) -> Result<(), ModifyError> {
        if value <= maximum {
            return Ok(());
        }
        let (qpn, minimum) = (self.number, 0);
        Err(ModifyError::Range {
            qpn,
            attribute,
            value,
            minimum,
            maximum,
        })
    }

    /// READs and atomics: as asked for, or the card's limit.
    fn rd_atomic(&self, attribute: &'static str, value: Option<u8>) -> Result<u8, ModifyError> {
        let limit = match self.qp_type {
            QpType::Rc => self.pd.card.info.max_rd_atomic,
            QpType::Uc | QpType::Ud => 0,
        };
        let value = value.unwrap_or(limit);
        self.check_range(attribute, value.into(), limit.into())?;
        Ok(value)
    }
}

//! What a host does with its card while traffic goes on: commands and register reads that are waited for in no other way
//! than by letting time pass.

use std::collections::VecDeque;

use ferroce_proto::abi::cmd::{CmdCpl, CmdHead, opcode, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs;
use ferroce_sim::testhost::{Command, Host, Mr, Peer, Rights};

use crate::conformance::rates::limiting;

/// Cycles between two reads of a register.
const PROBE_EVERY: u64 = 700;
/// Cycles in which a register read is answered, whatever memory and wire do: behind 600 doorbells on a bus that pauses.
const REGISTER_BOUND: u64 = 10_000;

/// What the host does when a command is answered.
pub(crate) type Then = Box<dyn FnOnce(&mut Host, &CmdCpl)>;

struct Order {
    head: CmdHead,
    images: Vec<[u8; 64]>,
    then: Then,
}

/// The commands of a host.
pub(crate) struct Kernel {
    todo: VecDeque<Order>,
    under_way: Option<(Command, Order, u64)>,
    /// Cycle in which the register read under way began, and the register.
    reading: Option<(u64, u32)>,
    next_read: u64,
    /// Cycles in which a command is answered.
    pub(crate) bound: u64,
    /// Registers are read now and then.
    pub(crate) probing: bool,
    /// What the card wrote may be on its way when the card has its response.
    pub(crate) posts: bool,
    /// Most cycles that a command took.
    pub(crate) slowest: u64,
}

impl Kernel {
    pub(crate) fn new(bound: u64) -> Self {
        Self {
            todo: VecDeque::new(),
            under_way: None,
            reading: None,
            next_read: 0,
            bound,
            probing: true,
            posts: false,
            slowest: 0,
        }
    }

    /// Nothing is to be done or under way.
    pub(crate) fn idle(&self) -> bool {
        self.todo.is_empty() && self.under_way.is_none()
    }

    /// Nothing is to be done or under way at the registers either.
    pub(crate) fn at_rest(&self) -> bool {
        self.idle() && self.reading.is_none()
    }

    /// A command behind the others.
    pub(crate) fn order(
        &mut self,
        head: CmdHead,
        images: &[[u8; 64]],
        then: impl FnOnce(&mut Host, &CmdCpl) + 'static,
    ) {
        self.todo.push_back(Order {
            head,
            images: images.to_vec(),
            then: Box::new(then),
        });
    }

    /// A command on an object that must succeed.
    pub(crate) fn create(&mut self, opcode: u8, index: u32, image: &[u8; 64]) {
        self.order(plain(opcode, index), &[*image], ok);
    }

    /// A region is registered, which was planned.
    pub(crate) fn register(&mut self, host: &Host, mr: &Mr, rights: Rights) {
        self.register_then(host, mr, rights, || {});
    }

    /// Likewise, and then there is something to do.
    pub(crate) fn register_then(
        &mut self,
        host: &Host,
        mr: &Mr,
        rights: Rights,
        then: impl FnOnce() + 'static,
    ) {
        let image = host.region(mr, rights).emit();
        let head = plain(opcode::WRITE_MR, mr.key >> 8);
        self.order(head, &[image], move |host, answer| {
            ok(host, answer);
            then();
        });
    }

    /// A region is taken back.
    pub(crate) fn deregister(&mut self, mr: Mr) {
        let head = plain(opcode::WRITE_MR, mr.key >> 8);
        self.order(head, &[MrCtx::default().emit()], move |host, answer| {
            ok(host, answer);
            host.took_back(&mr);
        });
    }

    /// A queue pair goes from RESET to RTS.
    pub(crate) fn open(&mut self, host: &Host, qpn: u32, peer: &Peer) {
        self.order(host.opening(qpn, peer), &host.images(qpn, peer), ok);
    }

    /// A queue pair sends no faster than `mbps` Mb/s; 0 is as fast as it can.
    pub(crate) fn limit(&mut self, host: &Host, qpn: u32, peer: &Peer, mbps: u32) {
        let (head, images) = limiting(host, qpn, peer, mbps);
        self.order(head, &images, ok);
    }

    /// A queue pair goes to ERR.
    pub(crate) fn fail(&mut self, qpn: u32) {
        let head = CmdHead {
            qp_sq_state: true,
            sq_state: state::ERR,
            qp_rq_state: true,
            rq_state: state::ERR,
            ..plain(opcode::MODIFY_QP, qpn)
        };
        self.order(head, &[], ok);
    }

    /// A queue pair goes to RESET.
    pub(crate) fn reset(&mut self, qpn: u32, then: impl FnOnce() + 'static) {
        let head = CmdHead {
            qp_sq_state: true,
            sq_reset: true,
            qp_rq_state: true,
            rq_reset: true,
            ..plain(opcode::MODIFY_QP, qpn)
        };
        self.order(head, &[], move |host, answer| {
            ok(host, answer);
            host.was_reset(qpn);
            then();
        });
    }

    /// Time has passed.
    ///
    /// # Panics
    /// If the card does not answer in time.
    pub(crate) fn step(&mut self, host: &mut Host, now: u64) {
        if let Some((command, order, since)) = self.under_way.take() {
            match host.answer(&command) {
                Some(answer) => {
                    self.slowest = self.slowest.max(now - since);
                    (order.then)(host, &answer);
                }
                None => {
                    let bound = self.bound;
                    assert!(
                        now < since + bound,
                        "no answer in {bound} cycles to {:?}",
                        order.head
                    );
                    self.under_way = Some((command, order, since));
                }
            }
        }
        if self.under_way.is_none()
            && let Some(order) = self.todo.pop_front()
        {
            let command = host.start(order.head, &order.images);
            self.under_way = Some((command, order, now));
        }
        self.probe(host, now);
    }

    fn probe(&mut self, host: &mut Host, now: u64) {
        let Some((since, register)) = self.reading else {
            if self.probing && now >= self.next_read {
                // More often while a command is under way.
                let counts = self.under_way.is_some() && !self.posts;
                let register = if counts { regs::CMD_CI } else { regs::MAGIC };
                host.nic.start_read32(register.into());
                self.reading = Some((now, register));
            }
            return;
        };
        match host.nic.take_read32() {
            Some(value) if register == regs::CMD_CI => {
                if let Some((command, order, _)) = &self.under_way
                    && command.is_counted(value)
                {
                    let there = host.answer(command).is_some();
                    assert!(
                        there,
                        "CMD_CI counts {:?}, which has no completion",
                        order.head
                    );
                }
                (self.reading, self.next_read) = (None, now + PROBE_EVERY / 16);
            }
            Some(value) => {
                assert_eq!(value, regs::MAGIC_VALUE, "register MAGIC");
                (self.reading, self.next_read) = (None, now + PROBE_EVERY);
            }
            None => assert!(
                now < since + REGISTER_BOUND,
                "no answer in {REGISTER_BOUND} cycles to a register read"
            ),
        }
    }
}

/// The head of a command on an object.
pub(crate) fn plain(opcode: u8, index: u32) -> CmdHead {
    CmdHead {
        opcode,
        index,
        ..CmdHead::default()
    }
}

/// The command must have succeeded.
pub(crate) fn ok(_: &mut Host, answer: &CmdCpl) {
    assert_eq!(answer.status, status::OK, "command {}", answer.opcode);
}

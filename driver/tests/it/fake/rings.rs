//! The rings in host memory.

use std::sync::atomic::{Ordering, fence};

use ferroce_driver::{Sge, eventfd};
use ferroce_proto::abi::cq::{Cqe, opcode};
use ferroce_proto::abi::eq::Eqe;
use ferroce_proto::abi::wqe::{self, RecvWqe, SLOT_BYTES, SendWqe};

use super::{Fake, State};
use crate::setup::sge;

impl Fake {
    /// Writes a CQE with its owner bit; `false` if the ring is full.
    pub(crate) fn put_cqe(&self, cqn: u32, cqe: Cqe) -> bool {
        self.state().put_cqe(cqn, cqe)
    }

    /// As if so many CQEs had come: a multiple of two passes over the ring.
    pub(crate) fn skip_cqes(&self, cqn: u32, cqes: u64) {
        let mut state = self.state();
        let producer = &mut state.cqs.get_mut(&cqn).unwrap().1;
        *producer = producer.wrapping_add(cqes as u32);
    }

    /// As if so many events had come: a multiple of two passes over the ring.
    pub(crate) fn skip_events(&self, eqn: u32, events: u64) {
        let mut state = self.state();
        let producer = &mut state.eqs.get_mut(&eqn).unwrap().1;
        *producer = producer.wrapping_add(events as u32);
    }

    /// Writes an event and raises the interrupt of its queue; `false` if the ring is full. Without the queue it is forgotten.
    pub(crate) fn put_event(&self, eqn: u32, event: u8, detail: u8, object: u32) -> bool {
        let eqe = Eqe {
            event,
            detail,
            object,
            ..Eqe::default()
        };
        self.state().put_event(eqn, eqe)
    }

    /// Completes the send WQE at `index` on the completion queue of its queue pair.
    pub(crate) fn complete_send(&self, qpn: u32, index: u32, status: u8) -> bool {
        let mut state = self.state();
        let cqn = state.qps[&qpn].sq.cqn.into();
        state.put_cqe(
            cqn,
            Cqe {
                qpn,
                wqe_index: index as u16,
                status,
                ..Cqe::default()
            },
        )
    }

    /// Completes the receive WQE of ordinal `index`.
    pub(crate) fn complete_recv(&self, qpn: u32, index: u32, status: u8) -> bool {
        let mut state = self.state();
        let cqn = state.qps[&qpn].rq.cqn.into();
        state.put_cqe(
            cqn,
            Cqe {
                qpn,
                wqe_index: index as u16,
                status,
                opcode: opcode::RECV,
                recv: true,
                ..Cqe::default()
            },
        )
    }

    /// The send WQE at producer index `index`: head, list, inline data.
    pub(crate) fn send_wqe(&self, qpn: u32, index: u32) -> (SendWqe, Vec<Sge>, Vec<u8>) {
        let state = self.state();
        let ctx = state.qps[&qpn].sq;
        let slot = |i: u32| {
            let place = u64::from((index + i) & ((1 << ctx.sq_log) - 1));
            state.read::<SLOT_BYTES>(ctx.sq_base + place * SLOT_BYTES as u64)
        };
        let head = SendWqe::parse(slot(0).first_chunk().unwrap());
        let body: Vec<u8> = (0..head.slots.into())
            .flat_map(slot)
            .skip(SendWqe::BYTES)
            .collect();
        if head.inline_data {
            return (head, Vec::new(), body[..head.length as usize].to_vec());
        }
        (head, list(&body, head.num_sge), body)
    }

    /// The receive WQE of ordinal `index`: head and list.
    pub(crate) fn recv_wqe(&self, qpn: u32, index: u32) -> (RecvWqe, Vec<Sge>) {
        let rq = self.state().qps[&qpn].rq;
        self.wqe(rq.rq_base, rq.rq_log, rq.rq_stride, index)
    }

    /// The receive WQE of ordinal `index` of a shared receive queue: head and list.
    pub(crate) fn shared_wqe(&self, srqn: u32, index: u32) -> (RecvWqe, Vec<Sge>) {
        let srq = self.state().srqs[&srqn];
        let number = self.shared_number(srqn, index);
        self.wqe(srq.base, srq.log_size, srq.stride, number)
    }

    /// The number of that WQE.
    pub(crate) fn shared_number(&self, srqn: u32, index: u32) -> u32 {
        let state = self.state();
        let srq = state.srqs[&srqn];
        let entry = u64::from(index & ((1 << srq.log_size) - 1));
        u16::from_le_bytes(state.read(srq.numbers + 2 * entry)).into()
    }

    fn wqe(&self, base: u64, log: u8, stride: u8, index: u32) -> (RecvWqe, Vec<Sge>) {
        let state = self.state();
        let place = u64::from(index & ((1 << log) - 1)) << stride;
        let bytes: Vec<u8> = (0..1 << stride)
            .flat_map(|i| state.read::<SLOT_BYTES>(base + (place + i) * SLOT_BYTES as u64))
            .collect();
        let head = RecvWqe::parse(bytes.first_chunk().unwrap());
        (head, list(&bytes[RecvWqe::BYTES..], head.num_sge))
    }
}

fn list(bytes: &[u8], entries: u8) -> Vec<Sge> {
    let entries = bytes.chunks_exact(wqe::Sge::BYTES).take(entries.into());
    entries
        .map(|bytes| wqe::Sge::parse(bytes.try_into().unwrap()))
        .map(|entry| sge(entry.addr, entry.length, entry.lkey))
        .collect()
}

impl State {
    fn reach(&self, addr: u64, len: usize) -> *mut u8 {
        let addr = addr as usize;
        let (start, size) = self
            .mapped
            .range(..=addr)
            .next_back()
            .expect("DMA to a mapped address");
        assert!(
            addr + len <= start + size,
            "DMA of {len} bytes at {addr:#x} within a mapped range"
        );
        std::ptr::with_exposed_provenance_mut(addr)
    }

    pub(crate) fn read<const N: usize>(&self, addr: u64) -> [u8; N] {
        let mut bytes = [0; N];
        // SAFETY: the range is mapped, so the driver keeps it allocated.
        unsafe {
            self.reach(addr, N)
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), N)
        }
        bytes
    }

    pub(super) fn write(&self, addr: u64, bytes: &[u8]) {
        // SAFETY: the range is mapped, so the driver keeps it allocated and unreferenced.
        unsafe {
            self.reach(addr, bytes.len())
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        }
    }

    /// Writes an entry whose last 8 bytes hold the phase.
    fn put_entry(&self, at: u64, bytes: &[u8]) {
        let (front, last) = bytes.split_at(bytes.len() - 8);
        self.write(at, front);
        // As on the bus: whoever sees the owner bit sees the rest.
        fence(Ordering::Release);
        let last = u64::from_le_bytes(last.try_into().unwrap()).to_le();
        let last_at = self.reach(at + front.len() as u64, 8).cast::<u64>();
        // SAFETY: the word is mapped and aligned, and no reference to it exists.
        unsafe { last_at.write_volatile(last) };
    }

    pub(super) fn put_event(&mut self, eqn: u32, eqe: Eqe) -> bool {
        let Some((ctx, producer)) = self.eqs.get(&eqn).copied() else {
            return true;
        };
        let consumed = u32::from_le_bytes(self.read(ctx.consumer));
        if producer.wrapping_sub(consumed) == 1 << ctx.log_size {
            return false;
        }
        let owner = producer >> ctx.log_size & 1 == 0;
        let place = u64::from(producer & ((1 << ctx.log_size) - 1));
        let at = ctx.base + place * Eqe::BYTES as u64;
        self.put_entry(at, &Eqe { owner, ..eqe }.emit());
        self.eqs.get_mut(&eqn).unwrap().1 = producer.wrapping_add(1);
        eventfd::raise(&self.interrupts[&ctx.vector.into()]).unwrap();
        true
    }

    pub(super) fn put_cqe(&mut self, cqn: u32, cqe: Cqe) -> bool {
        let (ctx, producer) = self.cqs[&cqn];
        let consumed = u32::from_le_bytes(self.read(ctx.consumer));
        if producer.wrapping_sub(consumed) == 1 << ctx.log_size {
            return false;
        }
        let owner = producer >> ctx.log_size & 1 == 0;
        let place = u64::from(producer & ((1 << ctx.log_size) - 1));
        let bytes = Cqe { owner, ..cqe }.emit();
        let at = ctx.base + place * Cqe::BYTES as u64;
        self.put_entry(at, &bytes);
        self.cqs.get_mut(&cqn).unwrap().1 = producer.wrapping_add(1);
        true
    }
}

//! An AXI4 master for the tests of the memory.

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_sim::axi::{Address, Config, FromMaster, INCR, MAX_LANES, Memory, ToMaster, WriteData};
use ferroce_sim::memory::HostMemory;

/// A master that makes the accesses of the test and notes the answers.
pub(crate) struct Master {
    lanes: usize,
    pub(crate) memory: Memory,
    pub(crate) from: FromMaster,
    pub(crate) to: ToMaster,
    pub(crate) now: u64,
    pub(crate) aw: VecDeque<Address>,
    pub(crate) w: VecDeque<WriteData>,
    pub(crate) ar: VecDeque<Address>,
    /// (cycle, id, resp)
    pub(crate) responses: Vec<(u64, u8, u8)>,
    /// (cycle, id, resp, last, data)
    pub(crate) beats: Vec<(u64, u8, u8, bool, Vec<u8>)>,
    /// Chance in 256 that RREADY or BREADY is 0.
    pub(crate) reluctance: u8,
    rng: Rng,
}

impl Master {
    pub(crate) fn new(host: Rc<dyn HostMemory>, lanes: usize, config: &Config) -> Self {
        Self {
            lanes,
            memory: Memory::new(host, lanes, config),
            from: FromMaster::default(),
            to: ToMaster::default(),
            now: 0,
            aw: VecDeque::new(),
            w: VecDeque::new(),
            ar: VecDeque::new(),
            responses: Vec::new(),
            beats: Vec::new(),
            reluctance: 0,
            rng: Rng::with_seed(config.seed ^ 0xa5a5),
        }
    }

    fn address(&self, id: u8, addr: u64, beats: usize) -> Address {
        Address {
            valid: true,
            id,
            addr,
            len: (beats - 1) as u8,
            size: self.lanes.trailing_zeros() as u8,
            burst: INCR,
        }
    }

    pub(crate) fn read(&mut self, id: u8, addr: u64, beats: usize) {
        self.ar.push_back(self.address(id, addr, beats));
    }

    /// Writes `data` at `addr`, with `strobe` saying which bytes.
    pub(crate) fn write(&mut self, id: u8, addr: u64, data: &[u8], strobe: impl Fn(usize) -> bool) {
        let skip = addr as usize % self.lanes;
        let beats = (skip + data.len()).div_ceil(self.lanes);
        self.aw.push_back(self.address(id, addr, beats));
        for beat in 0..beats {
            let mut w = WriteData {
                valid: true,
                last: beat + 1 == beats,
                strb: 0,
                data: [0xee; MAX_LANES],
            };
            for lane in 0..self.lanes {
                let at = (beat * self.lanes + lane).wrapping_sub(skip);
                if at < data.len() {
                    w.data[lane] = data[at];
                    w.strb |= u64::from(strobe(at)) << lane;
                }
            }
            self.w.push_back(w);
        }
    }

    pub(crate) fn step(&mut self) {
        let (from, to) = (&mut self.from, &self.to);
        if !from.aw.valid {
            from.aw = self.aw.pop_front().unwrap_or_default();
        }
        if !from.w.valid {
            from.w = self.w.pop_front().unwrap_or_default();
        }
        if !from.ar.valid {
            from.ar = self.ar.pop_front().unwrap_or_default();
        }
        from.bready = self.rng.u8(..) >= self.reluctance;
        from.rready = self.rng.u8(..) >= self.reluctance;
        if to.b.valid && from.bready {
            self.responses.push((self.now, to.b.id, to.b.resp));
        }
        if to.r.valid && from.rready {
            let data = to.r.data[..self.lanes].to_vec();
            self.beats
                .push((self.now, to.r.id, to.r.resp, to.r.last, data));
        }
        let taken = [
            from.aw.valid && to.awready,
            from.w.valid && to.wready,
            from.ar.valid && to.arready,
        ];
        self.memory.step(self.now, &self.from, &mut self.to);
        let from = &mut self.from;
        from.aw.valid &= !taken[0];
        from.w.valid &= !taken[1];
        from.ar.valid &= !taken[2];
        self.now += 1;
    }

    pub(crate) fn idle(&self) -> bool {
        let from = &self.from;
        self.aw.is_empty()
            && self.w.is_empty()
            && self.ar.is_empty()
            && !(from.aw.valid || from.w.valid || from.ar.valid)
            && !(self.to.b.valid || self.to.r.valid)
            && self.memory.idle()
    }

    pub(crate) fn finish(&mut self) {
        for _ in 0..200_000 {
            if self.idle() {
                return;
            }
            self.step();
        }
        panic!("memory still busy after 200000 cycles");
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.memory
            .violations()
            .list()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

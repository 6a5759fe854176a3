//! What the benches share: the AXI4 port as an agent, host memory with contents that tell their address.

use std::rc::Rc;

use fastrand::Rng;
use ferroce_sim::axi::{self, Address, Config, FromMaster, MAX_LANES, ToMaster};
use ferroce_sim::bench::Agent;
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Random pauses.
pub(crate) fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

/// The byte that [`filled`] memory holds at `addr`.
pub(crate) fn byte_at(addr: u64) -> u8 {
    (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8
}

/// Memory of `bytes` bytes from `addr` on, filled with [`byte_at`].
pub(crate) fn filled(addr: u64, bytes: usize) -> Rc<Ranges> {
    let memory = Rc::new(Ranges::new());
    fill(&memory, addr, bytes);
    memory
}

/// Maps more memory filled with [`byte_at`].
pub(crate) fn fill(memory: &Ranges, addr: u64, bytes: usize) {
    let contents = (0..bytes as u64).map(|i| byte_at(addr + i)).collect();
    memory
        .map(addr, contents)
        .expect("ranges of a test do not overlap");
}

/// Bytes of memory.
pub(crate) fn dump(memory: &Ranges, addr: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    memory.read(addr, &mut out).expect("mapped by the test");
    out
}

/// Bytes as words of an item, least significant first.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| {
        chunk
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    bytes.chunks(4).map(word).collect()
}

/// Words of an item as bytes.
pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Handles of AR and R.
struct ReadPorts {
    arid: Output,
    araddr: Output,
    arlen: Output,
    arsize: Output,
    arburst: Output,
    arvalid: Output,
    arready: Input,
    rid: Input,
    rdata: Input,
    rresp: Input,
    rlast: Input,
    rvalid: Input,
    rready: Output,
}

/// Handles of AW, W and B.
struct WritePorts {
    awid: Output,
    awaddr: Output,
    awlen: Output,
    awsize: Output,
    awburst: Output,
    awvalid: Output,
    awready: Input,
    wdata: Output,
    wstrb: Output,
    wlast: Output,
    wvalid: Output,
    wready: Input,
    bid: Input,
    bresp: Input,
    bvalid: Input,
    bready: Output,
}

macro_rules! ports {
    ($type:ident, $dut:ident: $($name:ident $find:ident),*) => {
        $type { $($name: $dut.$find(concat!("m_axi_", stringify!($name))).expect("a port of AXI4")),* }
    };
}

/// Host memory at the port `m_axi`, either or both halves of it.
pub(crate) struct AxiPort {
    pub(crate) memory: axi::Memory,
    to: ToMaster,
    reads: Option<ReadPorts>,
    writes: Option<WritePorts>,
    lanes: usize,
}

impl AxiPort {
    /// Memory for a data path of `lanes` bytes.
    pub(crate) fn new(
        dut: &Dut,
        memory: Rc<dyn HostMemory>,
        lanes: usize,
        config: &Config,
    ) -> Self {
        let reads = dut.output("m_axi_arvalid").is_ok().then(|| {
            ports!(ReadPorts, dut: arid output, araddr output, arlen output, arsize output, arburst output,
                arvalid output, arready input, rid input, rdata input, rresp input, rlast input, rvalid input,
                rready output)
        });
        let writes = dut.output("m_axi_awvalid").is_ok().then(|| {
            ports!(WritePorts, dut: awid output, awaddr output, awlen output, awsize output, awburst output,
                awvalid output, awready input, wdata output, wstrb output, wlast output, wvalid output,
                wready input, bid input, bresp input, bvalid input, bready output)
        });
        Self {
            memory: axi::Memory::new(memory, lanes, config),
            to: ToMaster::default(),
            reads,
            writes,
            lanes,
        }
    }
}

impl Agent for AxiPort {
    fn drive(&mut self, dut: &mut Dut, _: &mut Rng) {
        let to = &self.to;
        if let Some(p) = &self.reads {
            dut.set(p.arready, to.arready.into());
            dut.set(p.rid, to.r.id.into());
            dut.write(p.rdata, &words(&to.r.data[..self.lanes]));
            dut.set(p.rresp, to.r.resp.into());
            dut.set(p.rlast, to.r.last.into());
            dut.set(p.rvalid, to.r.valid.into());
        }
        if let Some(p) = &self.writes {
            dut.set(p.awready, to.awready.into());
            dut.set(p.wready, to.wready.into());
            dut.set(p.bid, to.b.id.into());
            dut.set(p.bresp, to.b.resp.into());
            dut.set(p.bvalid, to.b.valid.into());
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let mut from = FromMaster::default();
        if let Some(p) = &self.reads {
            from.ar = Address {
                valid: dut.is_set(p.arvalid),
                id: dut.get(p.arid) as u8,
                addr: dut.get(p.araddr),
                len: dut.get(p.arlen) as u8,
                size: dut.get(p.arsize) as u8,
                burst: dut.get(p.arburst) as u8,
            };
            from.rready = dut.is_set(p.rready);
            if !from.rready {
                return Err("RREADY is 0; it is 1 at all times".into());
            }
        }
        if let Some(p) = &self.writes {
            from.aw = Address {
                valid: dut.is_set(p.awvalid),
                id: dut.get(p.awid) as u8,
                addr: dut.get(p.awaddr),
                len: dut.get(p.awlen) as u8,
                size: dut.get(p.awsize) as u8,
                burst: dut.get(p.awburst) as u8,
            };
            from.w.valid = dut.is_set(p.wvalid);
            from.w.last = dut.is_set(p.wlast);
            from.w.strb = dut.get(p.wstrb);
            let mut data = [0; MAX_LANES / 4];
            dut.read(p.wdata, &mut data[..self.lanes / 4]);
            from.w.data.copy_from_slice(&bytes(&data));
            from.bready = dut.is_set(p.bready);
            if !from.bready {
                return Err("BREADY is 0; it is 1 at all times".into());
            }
        }
        self.memory.step(cycle, &from, &mut self.to);
        match self.memory.violations().list().first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok(()),
        }
    }

    fn pending(&self) -> Option<String> {
        (!self.memory.idle()).then(|| "memory has bursts under way".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.memory.reset();
        self.to = ToMaster::default();
        let mut rng = Rng::with_seed(0);
        self.drive(dut, &mut rng);
    }
}

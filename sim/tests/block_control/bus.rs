//! A host at the port `s_axil`.

use fastrand::Rng;
use ferroce_sim::axi::lite::{Config, FromHost, Master, ToHost};
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

struct Ports {
    awvalid: Input,
    awaddr: Input,
    wvalid: Input,
    wdata: Input,
    wstrb: Input,
    bready: Input,
    arvalid: Input,
    araddr: Input,
    rready: Input,
    awready: Output,
    wready: Output,
    bvalid: Output,
    bresp: Output,
    arready: Output,
    rvalid: Output,
    rresp: Output,
    rdata: Output,
}

/// The host.
pub(crate) struct Bus {
    pub(crate) master: Master,
    from: FromHost,
    ports: Ports,
}

impl Bus {
    pub(crate) fn new(dut: &Dut, config: &Config) -> Self {
        let input = |name| dut.input(&format!("s_axil_{name}")).expect("a port");
        let output = |name| dut.output(&format!("s_axil_{name}")).expect("a port");
        Self {
            master: Master::new(config),
            from: FromHost::default(),
            ports: Ports {
                awvalid: input("awvalid"),
                awaddr: input("awaddr"),
                wvalid: input("wvalid"),
                wdata: input("wdata"),
                wstrb: input("wstrb"),
                bready: input("bready"),
                arvalid: input("arvalid"),
                araddr: input("araddr"),
                rready: input("rready"),
                awready: output("awready"),
                wready: output("wready"),
                bvalid: output("bvalid"),
                bresp: output("bresp"),
                arready: output("arready"),
                rvalid: output("rvalid"),
                rresp: output("rresp"),
                rdata: output("rdata"),
            },
        }
    }
}

impl Agent for Bus {
    fn drive(&mut self, dut: &mut Dut, _: &mut Rng) {
        let (from, p) = (&self.from, &self.ports);
        dut.set(p.awvalid, from.awvalid.into());
        dut.set(p.awaddr, from.awaddr.into());
        dut.set(p.wvalid, from.wvalid.into());
        dut.set(p.wdata, from.wdata.into());
        dut.set(p.wstrb, 0xf);
        dut.set(p.bready, from.bready.into());
        dut.set(p.arvalid, from.arvalid.into());
        dut.set(p.araddr, from.araddr.into());
        dut.set(p.rready, from.rready.into());
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let p = &self.ports;
        let to = ToHost {
            awready: dut.is_set(p.awready),
            wready: dut.is_set(p.wready),
            bvalid: dut.is_set(p.bvalid),
            bresp: dut.get(p.bresp) as u8,
            arready: dut.is_set(p.arready),
            rvalid: dut.is_set(p.rvalid),
            rresp: dut.get(p.rresp) as u8,
            rdata: dut.get(p.rdata) as u32,
        };
        self.master.step(cycle, &mut self.from, &to);
        match self.master.violations().list().first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok(()),
        }
    }

    fn pending(&self) -> Option<String> {
        (!self.master.idle()).then(|| "accesses are under way".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.master.reset();
        self.from = FromHost::default();
        self.drive(dut, &mut Rng::with_seed(0));
    }
}

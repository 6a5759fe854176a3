//! How many LUTs lie between the registers of a netlist.

use anyhow::{Result, ensure};

use super::netlist::{Bit, Class, Module, class};

struct Node<'a> {
    class: Class,
    /// Pin and net.
    inputs: Vec<(&'a str, usize)>,
}

/// What is known of a net.
#[derive(Clone, Copy)]
enum Known {
    No,
    /// Being found.
    Open,
    /// Levels, and the net before the last cell of the longest path.
    Yes(u32, Option<usize>),
}

/// The combinational paths of a module.
pub(super) struct Paths<'a> {
    nodes: Vec<Node<'a>>,
    /// By net.
    driver: Vec<Option<usize>>,
    known: Vec<Known>,
}

impl<'a> Paths<'a> {
    /// Those of `module`, which is flat.
    pub(super) fn new(module: &'a Module) -> Self {
        let cells = || module.cells.values();
        let nets = cells().flat_map(|cell| cell.connections.values().flatten());
        let ports = module.netnames.values().flat_map(|net| &net.bits);
        let nets = nets.chain(ports).filter_map(Bit::net).max().unwrap_or(0) + 1;
        let mut driver = vec![None; nets];
        let mut nodes = vec![];
        for cell in cells() {
            let (class, mut inputs) = (class(&cell.kind), vec![]);
            // Of a memory made of LUTs the address of an output that is used; that of the port that writes is none.
            let reads = |pin: &str| {
                let port = pin.strip_prefix("ADDR").map(|port| format!("DO{port}"));
                port.is_some_and(|out| cell.connections.contains_key(&out))
            };
            for (pin, bits) in &cell.connections {
                let out = cell.port_directions.get(pin).is_some_and(|d| d == "output");
                for net in bits.iter().filter_map(Bit::net) {
                    if out {
                        driver[net] = Some(nodes.len());
                    } else if class != Class::LutRam || reads(pin) {
                        inputs.push((pin.as_str(), net));
                    }
                }
            }
            nodes.push(Node { class, inputs });
        }
        let known = vec![Known::No; nets];
        Self {
            nodes,
            driver,
            known,
        }
    }

    /// The cell that drives `net`, unless a path begins there.
    fn driver(&self, net: usize) -> Option<&Node<'a>> {
        let node = self.driver.get(net).copied().flatten();
        node.map(|at| &self.nodes[at])
            .filter(|node| node.class != Class::State)
    }

    /// Levels from a register or port to `net`. Without recursion: paths of a whole engine are deep.
    ///
    /// # Errors
    /// `net` is part of a loop.
    pub(super) fn levels(&mut self, net: usize) -> Result<u32> {
        if net >= self.known.len() {
            return Ok(0);
        }
        let mut stack = vec![net];
        while let Some(&net) = stack.last() {
            if let Known::Yes(..) = self.known[net] {
                stack.pop();
                continue;
            }
            let inputs = self.driver(net).map_or(&[][..], |node| &node.inputs);
            let waits = inputs.iter().map(|&(_, input)| input);
            let waits = waits.filter(|&input| !matches!(self.known[input], Known::Yes(..)));
            let waits: Vec<_> = waits.collect();
            if waits.is_empty() {
                let through = |&(pin, input)| (self.through(net, pin, input), input);
                let longest = inputs.iter().map(through).max_by_key(|path| path.0);
                self.known[net] =
                    longest.map_or(Known::Yes(0, None), |(l, input)| Known::Yes(l, Some(input)));
                continue;
            }
            let looped = waits
                .iter()
                .any(|&input| matches!(self.known[input], Known::Open));
            ensure!(!looped, "a loop of combinational cells at net {net}");
            self.known[net] = Known::Open;
            stack.extend(waits);
        }
        Ok(self.found(net).0)
    }

    /// Where the longest path to `net` begins; its levels are known.
    pub(super) fn begin(&self, mut net: usize) -> usize {
        while let (_, Some(before)) = self.found(net) {
            net = before;
        }
        net
    }

    fn found(&self, net: usize) -> (u32, Option<usize>) {
        match self.known.get(net) {
            Some(&Known::Yes(levels, before)) => (levels, before),
            _ => (0, None),
        }
    }

    /// Levels at `net` of a path that enters its cell by `pin` from the net `input`.
    fn through(&self, net: usize, pin: &str, input: usize) -> u32 {
        let class = self.driver(net).map_or(Class::Free, |node| node.class);
        let chained = || {
            let from = self.driver(input).map(|node| node.class);
            from == Some(Class::Carry) && matches!(pin, "CI" | "CIN" | "CYINIT")
        };
        let own = match class {
            Class::Lut | Class::LutRam | Class::Other => 1,
            Class::Carry => u32::from(!chained()),
            Class::Mux | Class::Free | Class::State => 0,
        };
        self.found(input).0 + own
    }
}

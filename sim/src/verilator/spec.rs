//! What is to be simulated: Verilog text, its top module and the ports of that module.

use ferroce_hdl::emit::{self, Design};

use super::Error;

/// A module to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Name of the top module.
    pub top: String,
    /// Verilog text of the top module and all modules below it.
    pub source: String,
    /// 1-bit input that [`Dut::tick`](super::Dut::tick) drives; none for combinational modules.
    pub clock: Option<String>,
    /// All ports of the top module.
    pub ports: Vec<Port>,
}

/// A port of the top module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name in the Verilog.
    pub name: String,
    /// Width in bits, at least 1.
    pub width: usize,
    /// Direction as the module sees it.
    pub direction: Direction,
    /// Named bit ranges of a structured port; may nest and overlap.
    pub fields: Vec<Field>,
}

/// A named bit range of a port, addressed as `port.path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name within the port, with `.` between levels.
    pub path: String,
    /// Lowest bit within the port.
    pub offset: usize,
    /// Width in bits, at least 1.
    pub width: usize,
}

/// Direction of a port as the module sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Driven by the harness.
    Input,
    /// Driven by the model.
    Output,
}

impl Direction {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Input => Self::Output,
            Self::Output => Self::Input,
        }
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

impl Spec {
    /// A module without clock and ports yet.
    pub fn new(top: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            top: top.into(),
            source: source.into(),
            clock: None,
            ports: Vec::new(),
        }
    }

    /// Names the clock input.
    #[must_use]
    pub fn clock(mut self, name: impl Into<String>) -> Self {
        self.clock = Some(name.into());
        self
    }

    /// Adds ports.
    #[must_use]
    pub fn ports(mut self, ports: impl IntoIterator<Item = Port>) -> Self {
        self.ports.extend(ports);
        self
    }

    /// Checks what can be checked without the Verilog: names are there once, the clock is a 1-bit
    /// input, fields lie within their ports.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (index, port) in self.ports.iter().enumerate() {
            if self.ports[..index]
                .iter()
                .any(|other| other.name == port.name)
            {
                return Err(self.mismatch(format!("`{}` is listed twice", port.name)));
            }
            for field in &port.fields {
                let end = field.offset.checked_add(field.width);
                if field.width == 0 || end.is_none_or(|end| end > port.width) {
                    return Err(self.mismatch(format!(
                        "field `{}.{}` ({} bits from bit {} up) is not within the {} bits of its port",
                        port.name, field.path, field.width, field.offset, port.width
                    )));
                }
            }
        }
        let Some(clock) = &self.clock else {
            return Ok(());
        };
        let is_clock =
            |p: &Port| p.name == *clock && p.width == 1 && p.direction == Direction::Input;
        if self.ports.iter().any(is_clock) {
            Ok(())
        } else {
            Err(self.mismatch(format!("clock `{clock}` is not a 1-bit input")))
        }
    }

    pub(super) fn mismatch(&self, what: String) -> Error {
        Error::PortMismatch {
            top: self.top.clone(),
            what,
        }
    }
}

impl From<&Design> for Spec {
    /// The clock is the input `clk`, if there is one.
    fn from(design: &Design) -> Self {
        let field = |field: &emit::Field| Field {
            path: field.path.clone(),
            offset: field.offset,
            width: field.width,
        };
        let port = |port: &emit::Port| Port {
            name: port.name.clone(),
            width: port.width,
            direction: match port.direction {
                emit::Direction::In => Direction::Input,
                emit::Direction::Out => Direction::Output,
            },
            fields: port.fields.iter().map(field).collect(),
        };
        let is_clock =
            |port: &&emit::Port| port.name == "clk" && port.direction == emit::Direction::In;
        Self {
            top: design.top.clone(),
            source: design.source(),
            clock: design
                .ports
                .iter()
                .find(is_clock)
                .map(|port| port.name.clone()),
            ports: design.ports.iter().map(port).collect(),
        }
    }
}

impl Port {
    /// An input of `width` bits.
    pub fn input(name: impl Into<String>, width: usize) -> Self {
        Self::new(name, width, Direction::Input)
    }

    /// An output of `width` bits.
    pub fn output(name: impl Into<String>, width: usize) -> Self {
        Self::new(name, width, Direction::Output)
    }

    fn new(name: impl Into<String>, width: usize, direction: Direction) -> Self {
        Self {
            name: name.into(),
            width,
            direction,
            fields: Vec::new(),
        }
    }

    /// Adds the field `path` at bits `offset + width - 1 .. offset`.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>, offset: usize, width: usize) -> Self {
        self.fields.push(Field {
            path: path.into(),
            offset,
            width,
        });
        self
    }
}

//! Registers: how the cell says that it is one, and the `always @(posedge clk)` of its parent.
use num_bigint::BigUint;
use rust_hdl_core::prelude::{Verilog, VerilogLiteral};

use super::collect::{Body, Node};
use super::print::{Printer, indent, line};
use super::scope::Scope;

/// First word of the text that stands for a register.
const REGISTER: &str = "register";

/// The body of a register cell with ports `clock`, `d`, `q`: it prints inside its parent. `None` has no reset.
pub fn register(reset: Option<VerilogLiteral>) -> Verilog {
    Verilog::Custom(match reset {
        Some(value) => format!("{REGISTER} {value:x}"),
        None => REGISTER.into(),
    })
}

/// The reset value if `text` stands for a register.
pub(super) fn parse(text: &str) -> Option<Option<BigUint>> {
    match text.strip_prefix(REGISTER)? {
        "" => Some(None),
        reset => {
            let (_, hex) = reset.split_once("'h")?;
            Some(Some(BigUint::parse_bytes(hex.as_bytes(), 16)?))
        }
    }
}

/// Registers of one clock and reset.
struct Domain<'a> {
    clk: &'a str,
    rst: Option<&'a str>,
    under_reset: String,
    otherwise: String,
}

/// The registers among the children of `node`, one `always` per clock and reset.
pub(super) fn print(node: &Node, scope: &Scope, printer: &Printer) -> String {
    let mut domains: Vec<Domain> = vec![];
    for child in &node.children {
        let Body::Register(reset) = &child.body else {
            continue;
        };
        let port = |name: &str| {
            scope
                .symbol(&format!("{}${name}", child.key))
                .expect("registers have these ports")
        };
        let clk = printer.name(port("clock$clk"));
        let rst = reset.as_ref().map(|_| printer.name(port("clock$rst")));
        let known = domains.iter().position(|d| (d.clk, d.rst) == (clk, rst));
        let index = known.unwrap_or_else(|| {
            domains.push(Domain {
                clk,
                rst,
                under_reset: String::new(),
                otherwise: String::new(),
            });
            domains.len() - 1
        });
        let domain = &mut domains[index];
        let pad = indent(if rst.is_some() { 3 } else { 2 });
        let (d, q) = (printer.taken(port("d")), printer.name(port("q")));
        if let Some(value) = reset {
            let value = printer.expression(&scope.value_of(&scope.symbols[port("q")], value));
            line(&mut domain.under_reset, &pad, &format!("{q} <= {value};"));
        }
        line(&mut domain.otherwise, &pad, &format!("{q} <= {d};"));
    }
    domains
        .iter()
        .map(Domain::text)
        .collect::<Vec<_>>()
        .join("\n")
}

impl Domain<'_> {
    fn text(&self) -> String {
        let mut out = String::new();
        line(
            &mut out,
            &indent(1),
            &format!("always @(posedge {}) begin", self.clk),
        );
        match self.rst {
            Some(rst) => {
                line(&mut out, &indent(2), &format!("if ({rst}) begin"));
                out.push_str(&self.under_reset);
                line(&mut out, &indent(2), "end else begin");
                out.push_str(&self.otherwise);
                line(&mut out, &indent(2), "end");
            }
            None => out.push_str(&self.otherwise),
        }
        line(&mut out, &indent(1), "end");
        out
    }
}

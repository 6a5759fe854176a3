//! One block as the text of one module.
use std::collections::HashSet;

use super::check;
use super::collect::{Body, Node};
use super::direct::{self, Direct};
use super::error::{EmitError, Reason};
use super::group::{self, Piece};
use super::ir::{Bits, Expr, Stmt, Sym, Target};
use super::lower::{self, Kernel};
use super::print::{Printer, indent, line, literal, range};
use super::scope::{Role, Scope};
use super::unused::{self, Reads};
use super::{name, register};
use rust_hdl_core::prelude::AtomKind;

/// Prints the block `node` as the module `name`; `children` are the module names of its children.
pub(crate) fn text(node: &Node, name: &str, children: &[String]) -> Result<String, Vec<EmitError>> {
    let refuse = |reason| EmitError {
        block: node.path.clone(),
        at: None,
        reason,
    };
    let mut scope =
        Scope::new(node).map_err(|reasons| reasons.into_iter().map(refuse).collect::<Vec<_>>())?;
    let body = match &node.body {
        Body::Kernel(source) => {
            let kernel = lower::kernel(node, &mut scope, source)?;
            let errors = check::drivers(&scope, &kernel, &node.path);
            if !errors.is_empty() {
                return Err(errors);
            }
            let assembly = Assembly::new(node, &scope, kernel);
            if let Some(sym) = group::asleep(&assembly.pieces) {
                let key = name::rust(&scope.symbols[sym].key);
                return Err(vec![refuse(Reason::Constant(key))]);
            }
            assembly.print(node, children)
        }
        Body::Custom(text) => custom(node, text),
        Body::Register(_) | Body::Foreign => unreachable!("refused by the caller"),
    };
    let doc = &node
        .description
        .as_ref()
        .expect("checked by the caller")
        .doc;
    Ok(format!("// {doc}\nmodule {name} (\n{body}"))
}

/// Port list of a module; `wires` are the outputs that are not variables.
fn ports(node: &Node, wires: &dyn Fn(&str) -> bool) -> String {
    let (mut ports, mut last) = (vec![], None);
    for leaf in &node.signals {
        let name = name::verilog(&leaf.key);
        let kind = match leaf.kind {
            AtomKind::InputParameter => "input  wire",
            AtomKind::OutputParameter if wires(&name) => "output wire",
            AtomKind::OutputParameter => "output reg ",
            _ => continue,
        };
        // once for all signals of an interface
        let doc = node.description.as_ref().and_then(|d| d.field(&leaf.key));
        let comment = doc
            .filter(|_| doc != last)
            .map(|doc| format!("{}// {doc}\n", indent(1)));
        last = doc;
        let comment = comment.unwrap_or_default();
        ports.push(format!(
            "{comment}{}{kind} {}{name}",
            indent(1),
            range(leaf.width)
        ));
    }
    format!("{}\n);\n", ports.join(",\n"))
}

/// A block whose body is text of its author.
fn custom(node: &Node, text: &str) -> String {
    let assigned = |name: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words
            .windows(2)
            .any(|w| w[0] == "assign" && w[1].split(['[', '=']).next() == Some(name))
    };
    let mut out = ports(node, &assigned);
    for leaf in &node.signals {
        let name = name::verilog(&leaf.key);
        match leaf.kind {
            AtomKind::Constant => line(
                &mut out,
                &indent(1),
                &format!("localparam {name} = {};", literal(leaf.width, &leaf.value)),
            ),
            AtomKind::LocalSignal => {
                let kind = if assigned(&name) { "wire" } else { "reg" };
                line(
                    &mut out,
                    &indent(1),
                    &format!("{kind} {}{name};", range(leaf.width)),
                );
            }
            _ => {}
        }
    }
    out.push('\n');
    for text in text.trim_matches('\n').lines() {
        let pad = if text.is_empty() {
            String::new()
        } else {
            indent(1)
        };
        line(&mut out, &pad, text.trim_end());
    }
    let inputs = node.signals.iter();
    let inputs = inputs.filter(|leaf| leaf.kind == AtomKind::InputParameter);
    let inputs: Vec<_> = inputs
        .map(|leaf| (name::verilog(&leaf.key), leaf.width))
        .collect();
    out.push_str(&unused::of_text(&inputs, text));
    out + "endmodule\n"
}

/// A kernel cut into pieces, with its wiring.
struct Assembly<'a> {
    scope: &'a Scope,
    alias: Vec<Sym>,
    pieces: Vec<Piece>,
    /// What children take without an `assign` before.
    direct: Direct,
    /// Signals that some `always` assigns.
    variables: HashSet<Sym>,
    assertions: Vec<(Sym, String)>,
}

impl<'a> Assembly<'a> {
    fn new(node: &Node, scope: &'a Scope, kernel: Kernel) -> Self {
        let assertions = kernel.assertions;
        let (alias, mut pieces) = wiring(node, scope, &kernel.links);
        pieces.extend(group::pieces(kernel.statements));
        let mut variables = HashSet::new();
        for piece in &mut pieces {
            if let Piece::Always(code) = piece {
                code.iter().for_each(|s| {
                    s.writes(&mut |t| {
                        variables.insert(t.sym());
                    })
                });
                default_temporaries(scope, code);
            }
        }
        let direct = direct::take(scope, &mut pieces);
        Self {
            scope,
            alias,
            pieces,
            direct,
            variables,
            assertions,
        }
    }

    fn print(&self, node: &Node, children: &[String]) -> String {
        let printer = Printer::new(self.scope, &self.alias, &self.direct);
        let instances = self.instances(node, children, &printer);
        let registers = register::print(node, self.scope, &printer);
        let logic = self.logic(&printer);
        let output = |name: &str| {
            !self
                .variables
                .iter()
                .any(|sym| self.scope.symbols[*sym].name == name)
        };
        let mut out = ports(node, &output);
        let assertions = self.assertions(&printer);
        let sections = [
            printer.parameters(),
            self.declarations(node),
            instances,
            logic,
            registers,
            assertions,
            self.unused(node),
        ];
        for section in sections.iter().filter(|s| !s.is_empty()) {
            out.push('\n');
            out.push_str(section);
        }
        out + "endmodule\n"
    }

    /// Assertions, looked at with every edge outside reset.
    fn assertions(&self, printer: &Printer) -> String {
        let port = |key| self.scope.symbol(key).map(|sym| printer.name(sym));
        let (Some(clk), Some(rst), false) = (
            port("clock$clk"),
            port("clock$rst"),
            self.assertions.is_empty(),
        ) else {
            return String::new();
        };
        let mut out = String::from("`ifndef SYNTHESIS\n");
        line(
            &mut out,
            &indent(1),
            &format!("always @(posedge {clk}) if (!{rst}) begin"),
        );
        for (sym, why) in &self.assertions {
            let test = format!("if ({}) $error(\"%m: {why}\");", printer.name(*sym));
            line(&mut out, &indent(2), &test);
        }
        line(&mut out, &indent(1), "end");
        out + "`endif\n"
    }

    /// What nothing reads.
    fn unused(&self, node: &Node) -> String {
        let mut reads = Reads::new(node, self.scope, &self.alias, &self.direct, &self.pieces);
        for (sym, _) in &self.assertions {
            reads.note(*sym, Bits::All);
        }
        reads.print(&self.direct)
    }

    fn declarations(&self, node: &Node) -> String {
        let mut out = String::new();
        // By name: a wire stands in the same place whether a field or a `let` of the kernel made it.
        let mut order: Vec<_> = self.scope.symbols.iter().enumerate().collect();
        order.sort_by_key(|(_, symbol)| &symbol.name);
        for (sym, symbol) in order {
            if self.alias[sym] != sym
                || self.direct.contains_key(&sym)
                || matches!(symbol.role, Role::Input | Role::Output)
            {
                continue;
            }
            let register = match symbol.role {
                Role::ChildInput(child) | Role::ChildOutput(child) => {
                    matches!(node.children[child].body, Body::Register(_))
                }
                _ => false,
            };
            let (kind, mut names, doc) = match symbol.role {
                // what a register takes and what it holds, in one line if both are variables
                Role::ChildInput(_) if register && self.variables.contains(&sym) => continue,
                Role::ChildOutput(child) if register => {
                    let next = self
                        .scope
                        .symbol(&format!("{}$d", node.children[child].key));
                    let next = next.filter(|d| self.variables.contains(d));
                    let name = |d: Sym| format!("{}, ", self.scope.symbols[d].name);
                    let doc = node.description.as_ref().and_then(|b| b.field(&symbol.key));
                    ("reg ", next.map(name).unwrap_or_default(), doc)
                }
                _ if self.variables.contains(&sym) => ("reg ", String::new(), None),
                _ => ("wire", String::new(), None),
            };
            names.push_str(&symbol.name);
            let doc = doc.map(|doc| format!(" // {doc}")).unwrap_or_default();
            line(
                &mut out,
                &indent(1),
                &format!("{kind} {}{names};{doc}", range(symbol.width)),
            );
        }
        out
    }

    fn instances(&self, node: &Node, children: &[String], printer: &Printer) -> String {
        let mut out = String::new();
        for (index, child) in node.children.iter().enumerate() {
            if matches!(child.body, Body::Register(_)) {
                continue;
            }
            let pins: Vec<_> = child
                .signals
                .iter()
                .filter(|leaf| leaf.kind.is_parameter())
                .map(|leaf| {
                    let sym = self
                        .scope
                        .symbol(&format!("{}${}", child.key, leaf.key))
                        .expect("ports are symbols");
                    format!(
                        "{}.{}({})",
                        indent(2),
                        name::verilog(&leaf.key),
                        printer.taken(sym)
                    )
                })
                .collect();
            line(
                &mut out,
                &indent(1),
                &format!("{} {} (", children[index], name::instance(&child.key)),
            );
            out.push_str(&pins.join(",\n"));
            line(&mut out, "\n", &format!("{});", indent(1)));
        }
        out
    }

    fn logic(&self, printer: &Printer) -> String {
        let mut out = String::new();
        let mut after_block = false;
        for piece in &self.pieces {
            match piece {
                Piece::Assign(target, value) => {
                    if after_block {
                        out.push('\n');
                    }
                    let (target, value) = (printer.target(target), printer.expression(value));
                    line(&mut out, &indent(1), &format!("assign {target} = {value};"));
                    after_block = false;
                }
                Piece::Comment(text) => {
                    if after_block {
                        out.push('\n');
                    }
                    line(&mut out, &indent(1), &format!("// {text}"));
                    after_block = false;
                }
                Piece::Always(code) => {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    line(&mut out, &indent(1), "always @* begin");
                    printer.block(code, 2, &mut out);
                    line(&mut out, &indent(1), "end");
                    after_block = true;
                }
            }
        }
        out
    }
}

/// What every symbol is wired to, and the wires that need an `assign`.
fn wiring(node: &Node, scope: &Scope, links: &[(Sym, Sym)]) -> (Vec<Sym>, Vec<Piece>) {
    let mut alias: Vec<Sym> = (0..scope.symbols.len()).collect();
    let mut pieces = vec![];
    for &(to, from) in links
        .iter()
        .filter(|(to, _)| scope.symbols[*to].role == Role::Output)
    {
        match scope.symbols[from].role {
            // The child drives the port itself.
            Role::ChildOutput(child)
                if alias[from] == from
                    && !matches!(node.children[child].body, Body::Register(_)) =>
            {
                alias[from] = to;
            }
            _ => pieces.push(Piece::Assign(
                Target::Whole(to),
                Expr::Signal {
                    sym: from,
                    width: scope.symbols[from].width,
                },
            )),
        }
    }
    for &(to, from) in links
        .iter()
        .filter(|(to, _)| scope.symbols[*to].role != Role::Output)
    {
        alias[to] = alias[from];
    }
    (alias, pieces)
}

/// A temporary that only some branch assigns gets a value at the top, so that it is no latch.
fn default_temporaries(scope: &Scope, code: &mut Vec<Stmt>) {
    let (mut inner, mut given) = (vec![], HashSet::new());
    for statement in code.iter() {
        if let Stmt::Assign(Target::Whole(sym), _) = statement {
            given.insert(*sym);
            continue;
        }
        statement.writes(&mut |t| {
            if scope.symbols[t.sym()].role == Role::Temporary && given.insert(t.sym()) {
                inner.push(t.sym());
            }
        });
    }
    for sym in inner.into_iter().rev() {
        let zero = Expr::number(scope.symbols[sym].width, 0u8);
        code.insert(0, Stmt::Assign(Target::Whole(sym), zero));
    }
}

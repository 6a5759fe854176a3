//! A checker of `hdl/formal` and its instance in the flattened copy of the block it checks.
//!
//! Each port of the checker stands on a line of its own and is connected to the signal of its name, or to what follows
//! `// =` on that line:
//!
//! * names of the block with `.` between levels;
//! * `port.field` for a field of a port of structure type;
//! * `field of EXPR as port` for that field of another vector of the same structure;
//! * `each(N, EXPR)` for the concatenation of EXPR with 0 to N - 1 for `#`, 0 in the lowest bits.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use ferroce_hdl::emit::{Design, Field};

/// A checker as it stands in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checker {
    /// Verilog of the module, with its claim above it.
    pub(super) text: &'static str,
}

impl Checker {
    /// What the comment above the module says behind `word:`.
    pub(super) fn says(&self, word: &str) -> Option<String> {
        let lines = self.text.lines().map_while(|l| l.strip_prefix("// "));
        let mut found = None::<String>;
        for line in lines {
            let is_head = ["Says:", "Assumes:"].iter().any(|h| line.starts_with(h));
            match (&mut found, line.strip_prefix(word)) {
                (_, Some(rest)) => found = Some(rest.trim_start_matches(':').trim().into()),
                (Some(_), None) if is_head => break,
                (Some(text), None) => {
                    text.push(' ');
                    text.push_str(line);
                }
                (None, None) => {}
            }
        }
        found
    }

    /// Name of the module.
    fn name(&self) -> Result<&'static str> {
        let found = self.text.lines().find_map(|l| l.strip_prefix("module "));
        let name = found.and_then(|rest| rest.split([' ', '(', '#']).next());
        name.context("a checker without a module")
    }

    /// Its instance in a copy of `design`.
    ///
    /// # Errors
    /// A port of the checker that names no field of the block.
    pub(super) fn instance(&self, design: &Design) -> Result<String> {
        let name = self.name()?;
        let (mut wires, mut ports) = (String::new(), vec![]);
        for line in self.text.lines().take_while(|l| !l.starts_with(");")) {
            let line = line.trim();
            if !line.starts_with("input ") && !line.starts_with("output ") {
                continue;
            }
            let (port, source) = line.split_once("// =").unwrap_or((line, ""));
            let port = port.trim().trim_end_matches(',');
            let port = port.rsplit(' ').next().unwrap_or_default();
            let source = match source.trim() {
                "" => port.to_owned(),
                text => {
                    expression(text, design, &mut wires).with_context(|| format!("port {port}"))?
                }
            };
            ports.push(format!("        .{port}({source})"));
        }
        let ports = ports.join(",\n");
        Ok(format!(
            "`ifdef FORMAL\n{wires}    {name} formal_checker (\n{ports}\n    );\n`endif\n"
        ))
    }

    /// Outputs of the checker with their ranges: wires of the block.
    pub(super) fn wires(&self) -> String {
        let head = self.text.lines().take_while(|l| !l.starts_with(");"));
        let outputs = head.filter_map(|l| l.trim().strip_prefix("output "));
        outputs.fold(String::new(), |text, output| {
            let output = output.trim_end_matches(',').trim_start_matches("reg ");
            text + &format!("    wire {output};\n")
        })
    }
}

fn field<'a>(design: &'a Design, port: &str, path: &str) -> Result<&'a Field> {
    let found = design.ports.iter().find(|p| p.name == port);
    let fields = &found.with_context(|| format!("no port {port}"))?.fields;
    let found = fields.iter().find(|f| f.path == path);
    found.with_context(|| format!("port {port} has no field {path}"))
}

/// Verilog for what stands behind `// =`.
fn expression(text: &str, design: &Design, wires: &mut String) -> Result<String> {
    if let Some((path, rest)) = text.split_once(" of ") {
        let Some((vector, port)) = rest.rsplit_once(" as ") else {
            bail!("`{text}`: `field of EXPR as port` is expected");
        };
        let field = field(design, port, path)?;
        let name = format!(
            "formal_{}_{}",
            path.replace('.', "_"),
            wires.lines().count()
        );
        let vector = names(vector, design);
        let _ = writeln!(
            wires,
            "    wire [{}:0] {name} = {vector} >> {};",
            field.width - 1,
            field.offset
        );
        return Ok(name);
    }
    let Some(list) = text.strip_prefix("each(").and_then(|t| t.strip_suffix(')')) else {
        return Ok(names(text, design));
    };
    let (count, each) = list.split_once(", ").context("`each(N, EXPR)`")?;
    let count: usize = count.parse().context("the number of `each(N, EXPR)`")?;
    let parts = (0..count)
        .rev()
        .map(|i| names(&each.replace('#', &i.to_string()), design));
    Ok(format!("{{{}}}", parts.collect::<Vec<_>>().join(", ")))
}

/// `text` with its dotted names as Verilog has them: part selects of ports, escaped names of the flattened block.
fn names(text: &str, design: &Design) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let end = rest[start..].find(|c| !is_name(c));
        let end = end.map_or(rest.len(), |end| start + end);
        out += &rest[..start];
        let name = &rest[start..end];
        out += &match name.split_once('.') {
            // The base of a sized literal, such as the h of 4'hf.
            None => name.to_owned(),
            Some((port, path)) => match field(design, port, path) {
                Ok(f) if f.width == 1 => format!("{port}[{}]", f.offset),
                Ok(f) => format!("{port}[{} +: {}]", f.offset, f.width),
                Err(_) => format!("\\{name} "),
            },
        };
        rest = &rest[end..];
    }
    out + rest
}

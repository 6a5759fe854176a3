//! The engine on a board: shell, constraints, scripts of the tools.

pub(super) mod card;
pub(super) mod ecp5;
mod script;
mod shell;
pub(super) mod text;
mod xdc;

use ferroce_hdl::emit::{Module, parametric};

use self::card::Card;
use super::Build;
use super::bundle::{Bundle, MARK};

/// Verilog of the engine and, behind it, of a shell: path and text.
fn sources<'a>(
    modules: &'a [Module],
    shell: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> Vec<(String, &'a str)> {
    let engine = modules
        .iter()
        .map(|m| (format!("rtl/{}.v", m.name), m.text.as_str()));
    let shell = shell
        .into_iter()
        .map(|(name, text)| (format!("shell/{name}.v"), *text));
    engine.chain(shell).collect()
}

/// Starts a bundle with these sources; also their paths.
fn begin(sources: &[(String, &str)]) -> (Bundle, Vec<String>) {
    let mut bundle = Bundle::default();
    let paths: Vec<_> = sources.iter().map(|(path, _)| path.clone()).collect();
    for (path, text) in sources {
        bundle.add(path, *text);
    }
    let list: String = paths.iter().map(|path| format!("{path}\n")).collect();
    bundle.add(MARK, list);
    bundle.add("registers.md", crate::regs::page());
    bundle.add("registers.rdl", crate::regs::rdl());
    (bundle, paths)
}

/// Everything for `card`, around an engine of these modules.
pub(crate) fn bundle(card: &Card, build: &Build, modules: &[Module]) -> Bundle {
    let top = shell::top(card);
    let engine = parametric(modules);
    let mut sources = sources(&engine, shell::CELLS.iter().chain(shell::NIC_100G));
    sources.push((format!("shell/ferroce_{}.v", card.name), &top));
    let (mut bundle, paths) = begin(&sources);
    bundle.add("stub/vendor.v", shell::VENDOR);
    for (cell, text) in shell::SCOPED {
        bundle.add(format!("constraints/scoped/{cell}.xdc"), *text);
    }
    for (name, text) in xdc::files(card) {
        bundle.add(format!("constraints/{name}.xdc"), text);
    }
    bundle.add("settings.tcl", script::settings(card));
    bundle.add("ip.tcl", script::IP);
    bundle.add("scope.tcl", script::SCOPE);
    bundle.add("build.tcl", script::BUILD);
    bundle.add("ferroce.core", script::core(card, &paths));
    bundle.add("README.md", text::readme(card, build, modules));
    bundle
}

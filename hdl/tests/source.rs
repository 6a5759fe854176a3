//! What rust-hdl's macro drops from a kernel without a word, and the syntax tree therefore does not show: `..=`, match
//! guards, `cfg`, the place of `.index()`. Found in the source text of every kernel of this crate (but those that a
//! `macro_rules!` of the crate writes, whose text is no kernel yet).
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// Line and what is wrong there.
type Finding = (usize, &'static str);

const INCLUSIVE: &str = "`..=` loses its last turn in Verilog: write `..`";
const GUARD: &str = "the guard of a match arm is dropped in Verilog: put an `if` into the arm";
const INDEX: &str =
    "`.index()` outside an offset or a `match`: the sum may or may not wrap; compare `Bits`";
const CFG: &str = "`cfg` inside a kernel holds for Rust only: put it on the block";
const CALL: &str = "a function whose name begins like a cast is taken for one: rename it";

/// Walks a file; inside kernels it looks for the constructs above.
#[derive(Default)]
struct Kernels {
    inside: bool,
    /// `.index()` may stand here.
    offset: bool,
    findings: Vec<Finding>,
}

impl Kernels {
    fn found(&mut self, span: proc_macro2::Span, what: &'static str) {
        if self.inside {
            self.findings.push((span.start().line, what));
        }
    }

    fn offset(&mut self, allowed: bool, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.offset, allowed);
        walk(self);
        self.offset = before;
    }
}

impl<'a> Visit<'a> for Kernels {
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.inside = item.attrs.iter().any(|a| a.path().is_ident("hdl_gen"));
        if self.inside {
            self.visit_block(&item.block);
        }
        self.inside = false;
    }

    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        if attribute.path().is_ident("cfg") {
            self.found(attribute.pound_token.span, CFG);
        }
    }

    fn visit_expr_range(&mut self, range: &'a syn::ExprRange) {
        if let syn::RangeLimits::Closed(token) = &range.limits {
            self.found(token.spans[0], INCLUSIVE);
        }
        visit::visit_expr_range(self, range);
    }

    fn visit_expr_match(&mut self, m: &'a syn::ExprMatch) {
        for arm in &m.arms {
            if let Some((token, _)) = &arm.guard {
                self.found(token.span, GUARD);
            }
        }
        self.offset(true, |kernels| kernels.visit_expr(&m.expr));
        self.offset(false, |kernels| {
            m.arms.iter().for_each(|arm| kernels.visit_arm(arm))
        });
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let method = call.method.to_string();
        if method == "index" && !self.offset {
            self.found(call.method.span(), INDEX);
        }
        // What an index is taken of is a value again.
        let of_value = self.offset && method != "index" && !method.starts_with("get_bit");
        self.offset(of_value, |kernels| kernels.visit_expr(&call.receiver));
        let takes_offset = ["get_bit", "get_bits", "replace_bit"].contains(&method.as_str());
        for (position, argument) in call.args.iter().enumerate() {
            self.offset(takes_offset && position == 0, |kernels| {
                kernels.visit_expr(argument)
            });
        }
    }

    // Between brackets it is no silent mistake: the emission refuses it.
    fn visit_expr_index(&mut self, index: &'a syn::ExprIndex) {
        self.visit_expr(&index.expr);
        self.offset(true, |kernels| kernels.visit_expr(&index.index));
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let first = path
                .path
                .segments
                .first()
                .map(|s| s.ident.to_string())
                .unwrap_or_default();
            let last = path
                .path
                .segments
                .last()
                .map(|s| s.ident.to_string())
                .unwrap_or_default();
            let casts = [
                "bits",
                "bit_cast",
                "Bits",
                "unsigned_cast",
                "signed_cast",
                "signed_bit_cast",
            ];
            let looks = casts.iter().any(|cast| first.starts_with(cast));
            if looks && !casts.contains(&first.as_str()) || first == "Bits" && last != "from" {
                self.found(path.path.segments[0].ident.span(), CALL);
            }
        }
        visit::visit_expr_call(self, call);
    }
}

fn findings(source: &str) -> Vec<Finding> {
    let mut kernels = Kernels::default();
    kernels.visit_file(&syn::parse_file(source).expect("the file compiles"));
    kernels.findings
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn kernels_keep_to_what_is_translated() {
    let mut files = vec![];
    for folder in ["src", "tests"] {
        rust_files(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            &mut files,
        );
    }
    let mut all = vec![];
    for file in files {
        let source = std::fs::read_to_string(&file).expect("a source file is text");
        all.extend(
            findings(&source)
                .iter()
                .map(|(line, what)| format!("{}:{line}: {what}", file.display())),
        );
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

#[test]
fn every_construct_is_found() {
    let of = |body: &str| {
        let source =
            format!("impl Logic for X {{ #[hdl_gen] fn update(&mut self) {{\n{body}\n}} }}");
        findings(&source)
            .into_iter()
            .map(|(_, what)| what)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("for i in 0..=7 {}"), [INCLUSIVE]);
    assert_eq!(
        of("match self.s.val() { S::A if self.x.val() => {} _ => {} }"),
        [GUARD]
    );
    assert_eq!(of("if self.a.val().index() + 1 == 4 {}"), [INDEX]);
    assert_eq!(
        of("self.y.next = (self.a.val().index() + 1).to_bits::<8>();"),
        [INDEX]
    );
    assert_eq!(
        of("self.y.next = self.x.val().get_bits::<8>(self.a.val().index() * 8);"),
        [""; 0]
    );
    assert_eq!(
        of("match self.a.val().index() { 0 => {} _ => { if self.b.val().index() == 1 {} } }"),
        [INDEX]
    );
    assert_eq!(
        of("self.y.next = self.x.val().get_bit((self.a.val() + self.b.val()).index());"),
        [""; 0]
    );
    assert_eq!(of("self.y.next = bits_of(self.x.val());"), [CALL]);
    assert_eq!(of("self.y.next = Bits::<8>::count(self.x.val());"), [CALL]);
    assert_eq!(
        of("self.y.next = bit_cast::<9, 8>(self.x.val()) + bits::<9>(1);"),
        [""; 0]
    );
    assert_eq!(of("#[cfg(test)] { self.y.next = true; }"), [CFG]);
    // Outside kernels everything goes.
    assert_eq!(findings("impl X { fn f(&self) { for i in 0..=7 {} } }"), []);
}

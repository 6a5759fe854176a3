//! What the macros refuse, with the line it stands in, and the prefix form of what they take.
use syn::spanned::Spanned;

use crate::rewrite::Rewrite;

/// Line (the kernel's first is 1) and text of each refusal.
fn refusals(body: &str) -> Vec<(usize, String)> {
    let item: syn::ImplItemFn =
        syn::parse_str(&format!("fn update(&mut self) {{\n{body}\n}}")).expect("plain Rust");
    let mut rewrite = Rewrite::of_kernel(&item);
    rewrite.statements(&item.block.stmts);
    let line = |e: &syn::Error| e.span().start().line - 1;
    rewrite
        .errors
        .iter()
        .map(|e| (line(e), e.to_string()))
        .collect()
}

fn refused(body: &str, line: usize, what: &str) {
    let found = refusals(body);
    assert_eq!(found.len(), 1, "{body}: {found:?}");
    assert_eq!(found[0].0, line, "{body}");
    assert!(found[0].1.contains(what), "{body}: {}", found[0].1);
}

fn text(body: &str) -> String {
    let item: syn::ImplItemFn =
        syn::parse_str(&format!("fn update(&mut self) {{\n{body}\n}}")).expect("plain Rust");
    assert!(item.span().source_text().is_some());
    let text = Rewrite::of_kernel(&item).statements(&item.block.stmts).text;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_not_translated_is_refused_where_it_stands() {
    refused(
        "let a = b;\nfor i in 0..=7 { c = a; }",
        2,
        "`for i in 0..n`",
    );
    refused("for x in list { c = x; }", 1, "`for i in 0..n`");
    refused("while a { b = c; }", 1, "no statement of a kernel");
    refused(
        "match s {\n    S::A if x => { y = 1; }\n    _ => {}\n}",
        2,
        "no guard",
    );
    refused("match a { 0 => { y = 1; } 1 => {} }", 1, "end with `_ =>`");
    refused("match a { x => { y = 1; } }", 1, "a pattern is");
    refused("let x;", 1, "`let` needs a value");
    refused("let (a, b) = c;", 1, "`let` takes one name");
    refused("y = a / b;", 1, "no hardware");
    refused("y = if a { b };", 1, "needs an `else`");
    refused("y = a.count_ones();", 1, "no method of the kernel language");
    refused("y = a.slice(3);", 1, "no method of the kernel language");
    refused("y = bits(3);", 1, "the width is needed");
    refused("a + b;", 1, "a value that nobody takes");
    refused("println!(\"{}\", 1);", 1, "this macro has no meaning");
    refused("assert!(a == b);", 1, "what is broken");
    refused("forward!(m <= s);", 1, "both are ports of this block");
    refused("copy!(a, b);", 1, "to <= from");
    refused("y = u[f(1)].m;", 1, "between brackets");
    refused("let x = a;\ny = x[0];", 2, "a local has no elements");
    refused("fn f() {}", 1, "no items inside a kernel");
    refused("y = \"text\";", 1, "only integers");
    refused("3 = y;", 1, "assign to a signal");
}

#[test]
fn names_are_locals_where_they_are_declared() {
    assert_eq!(
        text("let a = b; y = a;"),
        "(at 2) (let a (p b)) (at 2) (assign (p y) (v a))"
    );
    // the first `a` is a field, and so is the one behind the block
    assert_eq!(
        text("if c { let a = b; y = a; }\ny = a;"),
        "(at 2) (if (arm (p c) (at 2) (let a (p b)) (at 2) (assign (p y) (v a)))) (at 3) (assign (p y) (p a))"
    );
}

#[test]
fn comments_of_their_own_line_stand_before_the_statement() {
    assert_eq!(
        text("// why\ny = a; // not this"),
        "(comment \"why\") (at 3) (assign (p y) (p a))"
    );
}

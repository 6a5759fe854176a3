//! The arms of a `match`.
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Pat};

use crate::rewrite::{Both, Rewrite, is_constant};
use crate::text::{list, tight};

impl Rewrite {
    /// Arms of a `match`; `run` writes a body.
    pub(crate) fn arms(
        &mut self,
        m: &syn::ExprMatch,
        run: &mut dyn FnMut(&mut Self, &Expr) -> Both,
    ) -> Both {
        let on = self.expr(&m.expr);
        let numbers = m.arms.iter().any(|arm| is_number(&arm.pat));
        let (mut rust, mut text, mut ends) = (vec![], vec![on.text], false);
        for arm in &m.arms {
            if let Some((token, _)) = &arm.guard {
                self.refuse(token, "no guard: put an `if` into the arm");
            }
            let mut alternatives = vec![];
            patterns(&arm.pat, &mut alternatives);
            let (mut tests, mut names) = (vec![], vec![]);
            for pattern in alternatives {
                let (test, name) = self.pattern(pattern, numbers);
                tests.push(test);
                names.push(name);
            }
            let both = self.scope(|r| run(r, &arm.body));
            text.push(list("case", [list("of", &names), both.text]));
            let (body, wild) = (both.rust, names.iter().any(|n| n == "_"));
            ends |= wild;
            rust.push(match (numbers, wild) {
                (true, true) => quote!({ #body }),
                (true, false) => quote!(if #(#tests)||* { #body } else),
                (false, _) => quote!(#(#tests)|* => { #body }),
            });
        }
        if numbers && !ends {
            return self.refuse(
                &m.expr,
                "numbers have more values than these: end with `_ =>`",
            );
        }
        let scrutinee = on.rust;
        let rust = if numbers {
            quote_spanned!(m.span()=> { let on = #scrutinee; #(#rust)* })
        } else {
            quote_spanned!(m.span()=> match #scrutinee { #(#rust)* })
        };
        Both {
            rust,
            text: text.join(" "),
        }
    }

    /// The pattern, or the comparison with `on`; its name in the prefix form.
    fn pattern(&mut self, pattern: &Pat, numbers: bool) -> (TokenStream, String) {
        match pattern {
            Pat::Wild(w) => (quote!(#w), "_".into()),
            Pat::Lit(lit) if !numbers => (quote!(#lit), tight(lit)),
            Pat::Lit(lit) => (quote_spanned!(lit.span()=> on == #lit), tight(lit)),
            Pat::Path(path) if numbers => {
                let name = tight(path);
                self.constant(name.clone(), quote!(#path));
                (
                    quote_spanned!(path.span()=> on == ::ferroce_hdl::front::konst(#path)),
                    name,
                )
            }
            Pat::Path(path) => (quote!(#path), tight(path)),
            Pat::Ident(ident) if numbers && is_constant(&ident.ident) => {
                let name = ident.ident.to_string();
                self.constant(name.clone(), quote!(#ident));
                (
                    quote_spanned!(ident.span()=> on == ::ferroce_hdl::front::konst(#ident)),
                    name,
                )
            }
            other => {
                self.refuse(
                    other,
                    "a pattern is a variant, a constant, a literal or `_`",
                );
                (quote!(_), "_".into())
            }
        }
    }
}

fn patterns<'a>(pattern: &'a Pat, out: &mut Vec<&'a Pat>) {
    match pattern {
        Pat::Or(or) => or.cases.iter().for_each(|p| patterns(p, out)),
        Pat::Paren(p) => patterns(&p.pat, out),
        other => out.push(other),
    }
}

fn is_number(pattern: &Pat) -> bool {
    match pattern {
        Pat::Lit(lit) => matches!(lit.lit, syn::Lit::Int(_)),
        Pat::Ident(i) => is_constant(&i.ident),
        Pat::Path(p) => p
            .path
            .segments
            .last()
            .is_some_and(|s| is_constant(&s.ident)),
        Pat::Or(or) => or.cases.iter().any(is_number),
        _ => false,
    }
}

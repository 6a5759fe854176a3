//! Places: what is read and written by name.
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Member};

use crate::rewrite::{Local, Rewrite, is_constant};
use crate::text::{list, tight};

/// `self.a[i].b`, `a[i].b`, or a local and its fields.
pub(crate) struct Place {
    root: Root,
    steps: Vec<Step>,
}

enum Root {
    /// Its name, and `self` where the name stands.
    Field(Ident, Ident),
    Local(Ident, String),
}

enum Step {
    Member(Ident),
    Index(Box<Expr>),
}

impl Place {
    /// A port of this block, not of a child.
    pub(crate) fn own(&self) -> bool {
        !self.steps.iter().any(|s| matches!(s, Step::Member(_)))
    }

    pub(crate) fn text(&self) -> String {
        let mut parts: Vec<String> = vec![];
        if let Root::Field(name, _) = &self.root {
            parts.push(name.to_string());
        }
        for step in &self.steps {
            match step {
                Step::Member(name) => parts.push(name.to_string()),
                Step::Index(i) => {
                    if let Some(last) = parts.last_mut() {
                        last.push_str(&format!("[{}]", tight(i)));
                    }
                }
            }
        }
        match &self.root {
            Root::Field(..) => list("p", parts),
            Root::Local(_, unique) if parts.is_empty() => list("v", [unique]),
            Root::Local(_, unique) => list("f", std::iter::once(list("v", [unique])).chain(parts)),
        }
    }

    /// As Rust has it, nothing added.
    pub(crate) fn plain(&self) -> TokenStream {
        let start = match &self.root {
            Root::Field(name, this) => quote_spanned!(name.span()=> #this.#name),
            Root::Local(name, _) => name.to_token_stream(),
        };
        self.steps.iter().fold(start, |base, step| match step {
            Step::Member(name) => quote_spanned!(name.span()=> #base.#name),
            Step::Index(i) => quote_spanned!(i.span()=> #base[#i]),
        })
    }

    pub(crate) fn read(&self) -> TokenStream {
        let Root::Field(name, this) = &self.root else {
            return self.plain();
        };
        let span = name.span();
        let start = quote_spanned!(span=> ::ferroce_hdl::front::At(&#this.#name).get());
        self.steps.iter().fold(start, |base, step| match step {
            Step::Member(name) => {
                quote_spanned!(name.span()=> ::ferroce_hdl::front::At(&#base.#name).get())
            }
            Step::Index(i) => quote_spanned!(i.span()=> ::ferroce_hdl::front::At(&#base[#i]).get()),
        })
    }

    /// What stands left of `=`.
    pub(crate) fn written(&self) -> TokenStream {
        let Root::Field(name, this) = &self.root else {
            return self.plain();
        };
        let span = name.span();
        let start = quote_spanned!(span=> ::ferroce_hdl::front::AtMut(&mut #this.#name).open());
        let open = self.steps.iter().fold(start, |base, step| match step {
            Step::Member(name) => {
                quote_spanned!(name.span()=> ::ferroce_hdl::front::AtMut(&mut #base.#name).open())
            }
            Step::Index(i) => {
                quote_spanned!(i.span()=> ::ferroce_hdl::front::AtMut(&mut #base[#i]).open())
            }
        });
        quote_spanned!(span=> *#open)
    }
}

impl Rewrite {
    /// The place that `e` names, if it names one.
    pub(crate) fn place(&mut self, e: &Expr) -> Option<Place> {
        match e {
            Expr::Paren(p) => self.place(&p.expr),
            Expr::Group(g) => self.place(&g.expr),
            Expr::Path(p) => {
                let name = p.path.get_ident()?;
                let root = match self.local(name) {
                    Some(Local::Value(unique)) => Root::Local(name.clone(), unique.clone()),
                    Some(Local::Loop) => return None,
                    None if is_constant(name) || !self.has_self => return None,
                    None => Root::Field(name.clone(), self.receiver(name)),
                };
                Some(Place {
                    root,
                    steps: vec![],
                })
            }
            Expr::Field(f) => {
                let Member::Named(name) = &f.member else {
                    return None;
                };
                if matches!(&*f.base, Expr::Path(p) if p.path.is_ident("self")) {
                    return Some(Place {
                        root: Root::Field(name.clone(), self.receiver(name)),
                        steps: vec![],
                    });
                }
                let mut place = self.place(&f.base)?;
                place.steps.push(Step::Member(name.clone()));
                Some(place)
            }
            Expr::Index(i) => {
                let mut place = self.place(&i.expr)?;
                if let (Root::Local(..), []) = (&place.root, &place.steps[..]) {
                    self.refuse(i, "a local has no elements: take its bits, `x.bit(i)`");
                }
                self.elaborated(&i.index);
                place.steps.push(Step::Index(i.index.clone()));
                Some(place)
            }
            _ => None,
        }
    }

    /// Arithmetic of loop variables and constants between brackets: makes the constants known.
    fn elaborated(&mut self, e: &Expr) {
        match e {
            Expr::Binary(b) => {
                self.elaborated(&b.left);
                self.elaborated(&b.right);
            }
            Expr::Paren(p) => self.elaborated(&p.expr),
            Expr::Group(g) => self.elaborated(&g.expr),
            Expr::Lit(_) => {}
            Expr::Path(p) => match p.path.get_ident() {
                Some(name) if self.is_loop(name) => {}
                _ => self.constant(tight(p), quote!(#p)),
            },
            other => drop(self.refuse(
                other,
                "between brackets stand literals, constants and loop variables",
            )),
        }
    }
}

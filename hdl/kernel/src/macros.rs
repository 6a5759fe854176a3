//! The macros of the language: `copy!`, `forward!`, `assert!`.
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Ident, Token};

use crate::rewrite::{Both, Rewrite, join};
use crate::text::{list, quoted, tight};

/// `copy!(to <= from; a, b)`.
struct Copy {
    to: Expr,
    from: Expr,
    fields: Punctuated<Ident, Token![,]>,
}

/// `forward!(to <= from)`.
struct Forward {
    to: Expr,
    from: Expr,
}

impl Parse for Forward {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let both: Expr = input.parse()?;
        match both {
            Expr::Binary(b) if matches!(b.op, BinOp::Le(_)) => Ok(Self {
                to: *b.left,
                from: *b.right,
            }),
            other => Err(syn::Error::new(other.span(), "write `to <= from`")),
        }
    }
}

impl Parse for Copy {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let Forward { to, from } = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self {
            to,
            from,
            fields: Punctuated::parse_terminated(input)?,
        })
    }
}

impl Rewrite {
    pub(crate) fn call(&mut self, m: &syn::Macro) -> Both {
        let name = tight(&m.path);
        let result = match name.as_str() {
            "copy" => m.parse_body::<Copy>().map(|c| self.copy(&c)),
            "forward" => m.parse_body::<Forward>().map(|f| self.forward(&f)),
            "assert" => m
                .parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
                .map(|a| self.claim(m, &a)),
            _ => Ok(self.refuse(
                m,
                "this macro has no meaning in a kernel; `copy!`, `forward!` and `assert!` have",
            )),
        };
        result.unwrap_or_else(|e| {
            let both = Both {
                rust: quote!(),
                text: String::new(),
            };
            self.errors.push(e);
            both
        })
    }

    fn copy(&mut self, c: &Copy) -> Both {
        let (to, from) = (&c.to, &c.from);
        let parts = c.fields.iter().map(|field| {
            let left: Expr = syn::parse_quote_spanned!(field.span()=> #to.#field);
            let right: Expr = syn::parse_quote_spanned!(field.span()=> #from.#field);
            self.assign(&left, &right)
        });
        join(parts.collect())
    }

    /// Own port to child, child to own port, or child to child.
    fn forward(&mut self, f: &Forward) -> Both {
        let (Some(to), Some(from)) = (self.place(&f.to), self.place(&f.from)) else {
            return self.refuse(&f.to, "`forward!` takes two interfaces");
        };
        let (a, b) = (to.plain(), from.plain());
        let span = f.to.span();
        let rust = match (to.own(), from.own()) {
            (true, true) => {
                return self.refuse(&f.to, "both are ports of this block: assign their signals");
            }
            (true, false) => {
                quote_spanned!(span=> ::ferroce_hdl::prelude::LogicLink::link(&mut #a, &mut #b);)
            }
            (false, true) => {
                quote_spanned!(span=> ::ferroce_hdl::prelude::LogicLink::link(&mut #b, &mut #a);)
            }
            (false, false) => quote_spanned!(span=> #b.join(&mut #a);),
        };
        Both {
            rust,
            text: list("forward", [to.text(), from.text()]),
        }
    }

    fn claim(&mut self, m: &syn::Macro, arguments: &Punctuated<Expr, Token![,]>) -> Both {
        let (
            Some(test),
            Some(Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(why),
                ..
            })),
        ) = (arguments.first(), arguments.get(1))
        else {
            return self.refuse(&m.path, "`assert!(condition, \"what is broken\")`");
        };
        let test = self.expr(test);
        let rust = test.rust;
        // rust-hdl runs a kernel until it settles: looked at with the edge, when the registers have not moved yet
        let this = self.receiver(&Ident::new("assert", why.span()));
        Both {
            rust: quote_spanned! {why.span()=>
                if #this.clock.clk.pos_edge() && !#this.clock.rst.val() {
                    ::core::assert!(#rust, #why);
                }
            },
            text: list("assert", [test.text, quoted(&why.value())]),
        }
    }
}

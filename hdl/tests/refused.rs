//! Everything the emission refuses, with its message.
use ferroce_hdl::emit::{self, Reason};
use ferroce_hdl::prelude::*;

/// A block `X` with these fields and this kernel, and what is said of it.
macro_rules! refused {
    ({ $($field: ident: $type: ty),* $(,)? } { $($kernel: tt)* } $($message: literal),+ $(,)?) => {{
        #[derive(LogicBlock, Default)]
        struct X { $($field: $type),* }
        #[allow(clippy::precedence, clippy::single_match, unused_parens)]
        impl Logic for X {
            describe!("x", "Under test.");
            $($kernel)*
        }
        assert_eq!(messages(&X::default()), [$($message),+]);
    }};
}

fn messages(block: &dyn Block) -> Vec<String> {
    match emit::verilog(block) {
        Ok(design) => panic!("accepted:\n{}", design.source()),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// A child to be wired.
#[derive(LogicBlock, Default)]
struct Child {
    x: Signal<In, Bits<8>>,
    y: Signal<Out, Bits<8>>,
}

impl Logic for Child {
    describe!("child", "Passes a byte on.");
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = self.x.val();
    }
}

const LIMIT: u64 = 4;

#[test]
fn rust_constant() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bit> } { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val() == LIMIT; } }
        "top: `y = a == LIMIT`: `LIMIT` is not a signal of this block; a Rust constant is unknown here: list it in \
         `describe!(..; LIMIT)` or use a `Constant` field");
}

#[test]
fn child_input_read_back() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bits<8>>, u: Child }
        { #[hdl_gen] fn update(&mut self) { self.u.x.next = self.a.val(); self.y.next = self.u.x.val() ^ self.u.y.val(); } }
        "top: `y = u.x ^ u.y`: reads back `u.x`, an input of a child: assign a `Signal<Local, _>` and use that in both \
         places");
}

#[test]
fn latch() {
    refused!({ a: Signal<In, Bits<8>>, c: Signal<In, Bit>, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) { if self.c.val() { self.y.next = self.a.val(); } } }
        "top: `y` keeps its old value on some path (a latch): assign a default at the top of the kernel");
}

#[test]
fn latch_in_one_arm() {
    refused!({ a: Signal<In, Bits<2>>, y: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) { match self.a.val().index() { 0 => self.y.next = true, 1 => {} _ => self.y.next = false } } }
        "top: `y` keeps its old value on some path (a latch): assign a default at the top of the kernel");
}

/// Something with parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Parts {
    low: Bits<4>,
    high: Bits<12>,
}

/// Parts in parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Nested {
    head: Bits<4>,
    parts: Parts,
}

#[test]
fn latch_of_a_field() {
    refused!({ a: Signal<In, Bits<12>>, y: Signal<Out, Parts> } { #[hdl_gen] fn update(&mut self) { self.y.next.high = self.a.val(); } }
        "top: `y bits 3:0` keeps its old value on some path (a latch): assign a default at the top of the kernel");
}

#[test]
fn field_of_a_field() {
    refused!({ n: Signal<In, Nested>, y: Signal<Out, Bits<4>> } { #[hdl_gen] fn update(&mut self) { self.y.next = self.n.val().parts.low; } }
    "top: `y = n.val().parts.low`: a field of a field is not supported: put the inner struct into a \
         `Signal<Local, _>`",
    );
}

#[test]
fn undriven() {
    refused!({ a: Signal<In, Bits<8>>, w: Signal<Local, Bit>, u: Child, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val(); } }
        "top: `w` is never driven", "top: `u.x` is never driven");
}

#[test]
fn driven_twice() {
    refused!({ a: Signal<In, Bits<8>>, u: Child, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) {
            Signal::<In, Bits<8>>::link(&mut self.a, &mut self.u.x);
            self.u.x.next = self.a.val();
            self.y.next = self.u.y.val();
        } }
        "top: `u.x` is driven a second time");
    refused!({ a: Signal<In, Bits<8>>, b: Signal<In, Bits<8>>, u: Child, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) {
            Signal::<In, Bits<8>>::link(&mut self.a, &mut self.u.x);
            Signal::<In, Bits<8>>::link(&mut self.b, &mut self.u.x);
            self.y.next = self.u.y.val();
        } }
        "top: `link`: `u.x` is driven a second time");
}

#[test]
fn driven_from_the_wrong_side() {
    refused!({ a: Signal<In, Bits<8>>, u: Child }
        { #[hdl_gen] fn update(&mut self) { self.u.x.next = self.a.val(); self.u.y.next = self.a.val(); } }
        "top: `u.y = a`: `u.y` is an output of a child or an input of this block and cannot be driven here");
    refused!({ a: Signal<In, Bits<8>> } { #[hdl_gen] fn update(&mut self) { self.a.next = 1.into(); } }
        "top: `a = 1`: `a` is an output of a child or an input of this block and cannot be driven here");
}

#[test]
fn read_before_write() {
    refused!({ a: Signal<In, Bits<8>>, w: Signal<Local, Bits<8>>, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.w.val(); self.w.next = self.a.val(); } }
        "top: `y = ..`: reads `w` before it is assigned: move the assignment up");
    refused!({ c: Signal<In, Bit>, w: Signal<Local, Bits<8>>, y: Signal<Out, Bits<8>> }
        { #[hdl_gen] fn update(&mut self) {
            self.y.next = 0.into();
            if self.c.val() { self.w.next = 1.into(); } else { self.y.next = self.w.val(); }
            self.w.next = 2.into();
        } }
        "top: `y = ..`: reads `w` before it is assigned: move the assignment up");
}

#[test]
fn ambiguous_index() {
    refused!({ a: Signal<In, Bits<8>>, i: Signal<In, Bits<2>>, y: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val().get_bit((self.i.val() + 1).index()); } }
        "top: `y = a.get_bit((i + 1))`: a sum in brackets may or may not wrap before `.index()`: put it in a \
         `Signal<Local, _>` or take out the brackets");
}

#[test]
fn dynamic_array_index() {
    let errors = {
        #[derive(LogicBlock, Default)]
        struct X {
            a: [Signal<In, Bit>; 4],
            i: Signal<In, Bits<2>>,
            y: Signal<Out, Bit>,
        }
        impl Logic for X {
            describe!("x", "Under test.");
            #[hdl_gen]
            fn update(&mut self) {
                self.y.next = self.a[self.i.val().index()].val();
            }
        }
        messages(&X::default())
    };
    assert_eq!(
        errors,
        [
            "top: `y = a[i.val().index()]`: index `i.val().index()` is not known at elaboration: use literals and loop \
          variables, or a `match`"
        ]
    );
}

#[test]
fn literal_too_wide() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bits<8>>, t: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val() + 256; self.t.next = self.a.val() == 1000; } }
        "top: `y = a + 256`: 256 does not fit in 8 bits", "top: `t = a == 1000`: 1000 does not fit in 8 bits");
}

#[test]
fn out_of_range() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bit>, z: Signal<Out, Bits<4>> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val().get_bit(8); self.z.next = self.a.val().get_bits::<4>(9); } }
        "top: `y = a.get_bit(8)`: bit 8 of a value of 8 bits", "top: `z = a.get_bits::<4>(9)`: bit 9 of a value of 8 bits");
}

#[test]
fn hidden_conversion() {
    refused!({ a: Signal<In, Bits<8>>, b: Signal<In, Bits<4>>, y: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = self.a.val().index() == self.b.val().index(); } }
        "top: `y = a == b`: 8 bits stand against 4: cast with `bit_cast::<_, _>()` so that both sides have one width");
}

#[test]
fn patterns() {
    refused!({ a: Signal<In, Bits<2>>, y: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = false; match self.a.val().index() { 4 => self.y.next = true, _ => {} } } }
        "top: `match a`: pattern `4` is no value of the matched type: use an integer literal, `true`, `false` or a \
         variant");
}

#[test]
fn sign_extension() {
    refused!({ a: Signal<In, Signed<8>>, y: Signal<Out, Signed<16>> }
        { #[hdl_gen] fn update(&mut self) { self.y.next = signed_bit_cast(self.a.val()); } }
        "top: `y = signed_cast(a)`: signed_bit_cast is not supported: extend the sign by hand");
}

#[test]
fn link_in_a_branch() {
    refused!({ clock: ClkRst, c: Signal<In, Bit>, r: Reg<Bit> }
        { #[hdl_gen] fn update(&mut self) { if self.c.val() { ClkRst::link(&mut self.clock, &mut self.r.clock); } self.r.d.next = true; } }
        "top: `link`: a link or clock inside `if` or `match` is not supported: connect it unconditionally");
}

#[test]
fn loop_variable() {
    refused!({ i: Signal<In, Bits<4>>, y: Signal<Out, Bit> }
        { #[hdl_gen] fn update(&mut self) {
            self.y.next = false;
            for i in 0..4 { if self.i.val().get_bit(i) { self.y.next = true; } }
        } }
        "top: `for i in 0..4`: the loop variable has the name of the signal or constant `i`: rename the variable");
}

#[test]
fn keyword() {
    refused!({ a: Signal<In, Bit>, priority: Signal<Out, Bit> } { #[hdl_gen] fn update(&mut self) { self.priority.next = self.a.val(); } }
        "top: `priority` cannot be a Verilog name (a keyword): rename the field or block");
}

#[test]
fn names_that_clash() {
    refused!({ r: Reg<Bit>, r_q: Signal<In, Bit>, clock: ClkRst }
        { #[hdl_gen] fn update(&mut self) { dff_setup!(self, clock, r); } }
        "top: `r_q` and `r.q` would both print as `r_q`: rename one");
}

#[test]
fn no_name() {
    #[derive(LogicBlock, Default)]
    struct X {
        a: Signal<In, Bit>,
    }
    impl Logic for X {
        #[hdl_gen]
        fn update(&mut self) {}
    }
    assert_eq!(
        messages(&X::default()),
        [
            "top: the block has no name: write `describe!(\"name\", \"What it does.\");` in its `impl Logic`"
        ]
    );
}

/// Different contents under one name: the suffix is missing.
#[derive(LogicBlock, Default)]
struct Unnamed<const N: usize> {
    a: Signal<In, Bits<N>>,
    y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for Unnamed<N> {
    describe!("buffer", "Passes on.");
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = self.a.val();
    }
}

#[test]
fn modules_that_clash() {
    refused!({ a: Signal<In, Bits<4>>, u: Unnamed<4>, v: Unnamed<5> }
        { #[hdl_gen] fn update(&mut self) { self.u.a.next = self.a.val(); self.v.a.next = 1.into(); } }
        "top.v: another block named `buffer` (top.u) has different contents: make the name tell them apart, \
         `describe!(\"buffer\", <suffix from the parameters>, ..)`");
}

#[test]
fn errors_of_all_blocks_at_once() {
    #[derive(LogicBlock, Default)]
    struct Bad {
        y: Signal<Out, Bit>,
    }
    impl Logic for Bad {
        describe!("bad", "Drives nothing.");
        #[hdl_gen]
        fn update(&mut self) {}
    }
    refused!({ u: [Bad; 2], y: Signal<Out, Bit> } { #[hdl_gen] fn update(&mut self) { self.y.next = self.u[0].y.val() && LIMIT == 4; } }
        "top.u[0]: `y` is never driven", "top.u[1]: `y` is never driven",
        "top: `y = u[0].y && LIMIT == 4`: `LIMIT` is not a signal of this block; a Rust constant is unknown here: list it \
         in `describe!(..; LIMIT)` or use a `Constant` field");
}

#[test]
fn black_box() {
    #[derive(LogicBlock, Default)]
    struct X {
        a: Signal<In, Bit>,
    }
    impl Logic for X {
        describe!("x", "A primitive.");
        fn update(&mut self) {}
        fn hdl(&self) -> Verilog {
            Verilog::Blackbox(BlackBox {
                code: String::new(),
                name: "BUFG".into(),
            })
        }
    }
    assert_eq!(
        messages(&X::default()),
        ["top: a black box is not supported: instantiate it in hand-written Verilog"]
    );
}

#[test]
fn reasons_can_be_matched() {
    #[derive(LogicBlock, Default)]
    struct X {
        y: Signal<Out, Bit>,
    }
    impl Logic for X {
        describe!("x", "Drives nothing.");
        #[hdl_gen]
        fn update(&mut self) {}
    }
    let errors = emit::verilog(&X::default()).expect_err("nothing drives y");
    assert_eq!(errors[0].reason, Reason::Undriven("y".into()));
    assert_eq!((errors[0].block.as_str(), &errors[0].at), ("top", &None));
}

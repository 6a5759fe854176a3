//! Everything the emission refuses, with its message.
use ferroce_hdl::emit::{self, Reason};
use ferroce_hdl::prelude::*;

/// A block `X` with these fields and this kernel, and the messages of the emission.
macro_rules! refused {
    ({ $($field: ident: $type: ty),* $(,)? } { $($kernel: tt)* } $($message: literal),+ $(,)?) => {{
        #[derive(Block)]
        struct X { $($field: $type),* }
        #[allow(clippy::precedence, clippy::single_match, unused_parens)]
        impl Logic for X {
            describe!("x", "Under test.");
            #[kernel] fn update(&mut self) { $($kernel)* }
        }
        assert_eq!(messages(&X::default()), [$($message),+]);
    }};
}

/// The messages, with `at` for file and line.
fn messages(block: &dyn Block) -> Vec<String> {
    let text = |e: &emit::EmitError| match &e.at {
        Some(at) => e.to_string().replace(at.as_str(), "at"),
        None => e.to_string(),
    };
    match emit::verilog(block) {
        Ok(design) => panic!("accepted:\n{}", design.source()),
        Err(errors) => errors.iter().map(text).collect(),
    }
}

/// A child to be wired.
#[derive(Block)]
struct Child {
    x: Signal<In, Bits<8>>,
    y: Signal<Out, Bits<8>>,
}

impl Logic for Child {
    describe!("child", "Passes a byte on.");
    #[kernel]
    fn update(&mut self) {
        y = x;
    }
}

#[test]
fn child_input_read_back() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bits<8>>, u: Child }
        { u.x = a; y = u.x ^ u.y; }
        "at: top: reads back `u.x`, an input of a child: name the value with `let` and use that in both \
         places");
}

#[test]
fn asleep() {
    refused!({ y: Signal<Out, Bits<8>> }
        { let mut v = bits::<8>(1); if v.bit(0) { v = v + 1; } y = v; }
        "top: `v` depends on no signal: assign it once, as a constant");
}

#[test]
fn latch() {
    refused!({ a: Signal<In, Bits<8>>, c: Signal<In, Bit>, y: Signal<Out, Bits<8>> }
        { if c { y = a; } }
        "top: `y` keeps its old value on some path (a latch): assign a default at the top of the kernel");
}

#[test]
fn latch_in_one_arm() {
    refused!({ a: Signal<In, Bits<2>>, y: Signal<Out, Bit> }
        { match a { 0 => y = true, 1 => {} _ => y = false } }
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
    refused!({ a: Signal<In, Bits<12>>, y: Signal<Out, Parts> } { y.high = a; }
        "top: `y bits 3:0` keeps its old value on some path (a latch): assign a default at the top of the kernel");
}

#[test]
fn undriven() {
    refused!({ a: Signal<In, Bits<8>>, w: Signal<Local, Bit>, u: Child, y: Signal<Out, Bits<8>> }
        { y = a; }
        "top: `w` is never driven", "top: `u.x` is never driven");
}

#[test]
fn driven_twice() {
    refused!({ a: Signal<In, Bits<8>>, u: Child, y: Signal<Out, Bits<8>> }
        {
            forward!(a <= u.x);
            u.x = a;
            y = u.y;
        }
        "top: `u.x` is driven a second time");
    refused!({ a: Signal<In, Bits<8>>, b: Signal<In, Bits<8>>, u: Child, y: Signal<Out, Bits<8>> }
        {
            forward!(a <= u.x);
            forward!(b <= u.x);
            y = u.y;
        }
        "at: top: `u.x` is driven a second time");
}

#[test]
fn driven_from_the_wrong_side() {
    refused!({ a: Signal<In, Bits<8>>, u: Child }
        { u.x = a; u.y = a; }
        "at: top: `u.y` is an output of a child or an input of this block and cannot be driven here");
    refused!({ a: Signal<In, Bits<8>> } { a = 1.into(); }
        "at: top: `a` is an output of a child or an input of this block and cannot be driven here");
}

#[test]
fn read_before_write() {
    refused!({ a: Signal<In, Bits<8>>, w: Signal<Local, Bits<8>>, y: Signal<Out, Bits<8>> }
        { y = w; w = a; }
        "top: reads `w` before it is assigned: move the assignment up");
    refused!({ c: Signal<In, Bit>, w: Signal<Local, Bits<8>>, y: Signal<Out, Bits<8>> }
        {
            y = 0.into();
            if c { w = 1.into(); } else { y = w; }
            w = 2.into();
        }
        "top: reads `w` before it is assigned: move the assignment up");
}

#[test]
fn literal_too_wide() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bits<8>>, t: Signal<Out, Bit> }
        { y = a + 256; t = a == 1000; }
        "at: top: 256 does not fit in 8 bits", "at: top: 1000 does not fit in 8 bits");
}

#[test]
fn out_of_range() {
    refused!({ a: Signal<In, Bits<8>>, y: Signal<Out, Bit>, z: Signal<Out, Bits<4>> }
        { y = a.get_bit(8); z = a.get_bits::<4>(9); }
        "at: top: bit 8 of a value of 8 bits", "at: top: bit 9 of a value of 8 bits");
}

#[test]
fn patterns() {
    refused!({ a: Signal<In, Bits<2>>, y: Signal<Out, Bit> }
        { y = false; match a { 4 => y = true, _ => {} } }
        "at: top: pattern `4` is no value of the matched type: use an integer literal, `true`, `false` or a \
         variant");
}

#[test]
fn keyword() {
    refused!({ a: Signal<In, Bit>, priority: Signal<Out, Bit> } { priority = a; }
        "top: `priority` cannot be a Verilog name (a keyword): rename the field or block");
}

#[test]
fn no_name() {
    #[derive(Block)]
    struct X {
        a: Signal<In, Bit>,
    }
    impl Logic for X {
        #[kernel]
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
#[derive(Block)]
struct Unnamed<const N: usize> {
    a: Signal<In, Bits<N>>,
    y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for Unnamed<N> {
    describe!("buffer", "Passes on.");
    #[kernel]
    fn update(&mut self) {
        y = a;
    }
}

#[test]
fn modules_of_one_name() {
    refused!({ a: Signal<In, Bits<4>>, u: Unnamed<4>, v: Unnamed<5> }
        { u.a = a; v.a = 1.into(); }
        "top.v: another block named `buffer` (top.u) has different contents: make the name tell them apart, \
         `describe!(\"buffer\", <suffix from the parameters>, ..)`");
}

#[test]
fn errors_of_all_blocks_at_once() {
    #[derive(Block)]
    struct Bad {
        y: Signal<Out, Bit>,
    }
    impl Logic for Bad {
        describe!("bad", "Drives nothing.");
        #[kernel]
        fn update(&mut self) {}
    }
    refused!({ u: [Bad; 2], y: Signal<Out, Bits<2>> } { if u[0].y { y = 4; } else { y = 0; } }
        "top.u[0]: `y` is never driven", "top.u[1]: `y` is never driven", "at: top: 4 does not fit in 2 bits");
}

#[test]
fn black_box() {
    #[derive(Block)]
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
    #[derive(Block)]
    struct X {
        y: Signal<Out, Bit>,
    }
    impl Logic for X {
        describe!("x", "Drives nothing.");
        #[kernel]
        fn update(&mut self) {}
    }
    let errors = emit::verilog(&X::default()).expect_err("nothing drives y");
    assert_eq!(errors[0].reason, Reason::Undriven("y".into()));
    assert_eq!((errors[0].block.as_str(), &errors[0].at), ("top", &None));
}

#[test]
fn forward_in_a_branch() {
    refused!({ c: Signal<In, Bit>, a: Signal<In, Bits<8>>, u: Child }
        { if c { forward!(u.x <= a); } }
        "at: top: `forward!` inside `if` or `match` is not supported: connect it unconditionally");
}

#[test]
fn bits_of_a_record() {
    refused!({ n: Signal<In, Nested>, y: Signal<Out, Bits<4>> } { let all: Bits<20> = n.into(); y = all.low::<4>() + 16; }
        "at: top: 16 does not fit in 4 bits");
}

#[test]
fn the_line_is_named() {
    #[derive(Block)]
    struct X {
        a: Signal<In, Bits<4>>,
        y: Signal<Out, Bit>,
    }
    const LINE: u32 = line!() + 6;
    impl Logic for X {
        describe!("x", "Compares with a number that does not fit.");
        #[kernel]
        fn update(&mut self) {
            y = a == 16;
        }
    }
    let errors = emit::verilog(&X::default()).expect_err("16 has five bits");
    let at = format!("hdl/tests/refused.rs:{}", LINE - 1);
    assert_eq!(errors[0].at.as_deref(), Some(at.as_str()));
}

//! What must not compile. Each case is compiled twice: as it is right, and with the one line changed that makes it wrong.

macro_rules! misuse {
    ($(#[doc = $what:literal])* $case:ident, $error:literal, right $right:literal, wrong $wrong:literal, in $before:literal .. $after:literal) => {
        $(#[doc = $what])*
        #[doc = concat!("```no_run\n", $before, $right, $after, "\n```\n")]
        #[doc = concat!("```compile_fail,", $error, "\n", $before, $wrong, $after, "\n```\n")]
        struct $case;
    };
}

misuse!(
    /// A list of memory that is not the driver's is a promise.
    ForeignMemory, "E0133",
    right "unsafe { mr.sge(..) }", wrong "mr.sge(..)",
    in "fn f<B: ferroce_driver::Backend>(mr: &ferroce_driver::Mr<B>) -> ferroce_driver::Sge { " .. " }"
);
misuse!(
    /// An entry is not made up.
    MadeUpEntry, "E0423",
    right "unsafe { Sge::from_raw_parts(1, 2, 3) }", wrong "Sge(Default::default())",
    in "use ferroce_driver::Sge;\nfn f() -> Sge { " .. " }"
);
misuse!(
    /// Registered memory of others must outlive the region, which the caller promises.
    Register, "E0133",
    right "unsafe { pd.reg_mr(at, 8, access) }", wrong "pd.reg_mr(at, 8, access)",
    in "use ferroce_driver::*;\nfn f<B: Backend>(pd: &Pd<B>, at: *mut u8, access: Access) -> Result<Mr<B>, MrError> { " .. " }"
);
misuse!(
    /// A queue pair has one poster at a time.
    TwoPosters, "E0499",
    right "let b = &mut two;", wrong "let b = &mut one;",
    in "use ferroce_driver::*;\nfn f<B: Backend + Send + Sync>(mut one: Qp<B>, mut two: Qp<B>) {\n    let a = &mut one;\n    "
    .. "\n    std::thread::scope(|s| { s.spawn(move || a.post_send(&[])); s.spawn(move || b.post_send(&[])); });\n}"
);
misuse!(
    /// A completion queue has one poller at a time.
    TwoPollers, "E0596",
    right "&mut Cq<B>", wrong "&Cq<B>",
    in "use ferroce_driver::*;\nfn f<B: Backend>(cq: " .. ") -> usize { cq.poll(&mut [Wc::default(); 4]) }"
);
misuse!(
    /// A card that is bound to a thread stays there.
    OtherThread, "E0277",
    right "Backend + Send + Sync + 'static", wrong "Backend + 'static",
    in "use ferroce_driver::*;\nfn f<B: " .. ">(mut qp: Qp<B>) { std::thread::spawn(move || qp.post_send(&[])); }"
);
misuse!(
    /// The bytes of a region that a peer may write are copied, not borrowed.
    Borrowed, "E0308",
    right "&buf.to_vec(0, 8)[..]", wrong "&buf[..]",
    in "use ferroce_driver::*;\nfn f<B: Backend>(buf: &MrBuf<B>) -> u8 { let bytes: &[u8] = " .. "; bytes[0] }"
);
misuse!(
    /// A buffer that was posted is the request's.
    PostedBuffer, "E0382",
    right "buf[0] = 1; let _ = queues.recv(2, buf, 0);", wrong "let _ = queues.recv(2, buf, 0); buf[0] = 1;",
    in "use ferroce_driver::*;\nfn f<B: Backend>(queues: &mut OwnedQueues<B>, mut buf: Buf<B>) { " .. " }"
);
misuse!(
    /// A queue pair that joined posts through its owner only.
    JoinedQueuePair, "E0596",
    right "queues.qp(2).unwrap().state()", wrong "queues.qp(2).unwrap().post_send(&[])",
    in "use ferroce_driver::*;\nfn f<B: Backend>(queues: &mut OwnedQueues<B>) { let _ = " .. "; }"
);
misuse!(
    /// A list must outlive its request until that is posted.
    DeadList, "E0597",
    right "wrs = [SendWr::new(SendOp::Send, &outer)];", wrong "let inner = [buf.sge(..)]; wrs = [SendWr::new(SendOp::Send, &inner)];",
    in "use ferroce_driver::*;\nfn f<B: Backend>(qp: &mut Qp<B>, buf: &MrBuf<B>) {\n    let outer = [buf.sge(..)];\n    let wrs;\n    { "
    .. " }\n    let _ = qp.post_send(&wrs);\n}"
);
misuse!(
    /// A completion queue notifies by a channel of its own card's type.
    OtherBackend, "E0308",
    right "CompChannel<B>", wrong "CompChannel<C>",
    in "use ferroce_driver::*;\nfn f<B: Backend, C: Backend>(context: &Context<B>, channel: &" .. ") { let _ = context.create_cq_on(8, channel); }"
);
misuse!(
    /// A register may send the card anywhere.
    Register32, "E0133",
    right "unsafe { context.backend().write32(0x18, 1) }", wrong "context.backend().write32(0x18, 1)",
    in "use ferroce_driver::*;\nfn f<B: Backend>(context: &Context<B>) { " .. " }"
);
misuse!(
    /// Only the code that mapped memory for the card unmaps it.
    Unmap, "E0133",
    right "unsafe { context.backend().unmap(at, 8) }", wrong "context.backend().unmap(at, 8)",
    in "use ferroce_driver::*;\nfn f<B: Backend>(context: &Context<B>, at: *mut u8) { let _ = " .. "; }"
);

//! Panics as results: a test host panics when a card does not answer, and shrinking asks for that many times.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// What the panic being caught on this thread says; `None` if none is to be caught.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `f`; if it panics, gives what it says and where instead of printing it.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let kept = CAUGHT.with_borrow_mut(|caught| {
                caught
                    .as_mut()
                    .map(|text| *text = info.to_string())
                    .is_some()
            });
            if !kept {
                print(info);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(f));
    let what = CAUGHT.take().unwrap_or_default();
    result.map_err(|_| what)
}

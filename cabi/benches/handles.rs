//! What it costs a C program that its objects are looked up: one that the thread used last, and one after another went.
//!
//! `cargo bench -p ferroce-cabi`

#![allow(missing_docs, reason = "`criterion_group!` makes a public function")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ferroce_cabi::handle::{Object, Shown, get, object};

struct Thing {
    shown: Shown<u64>,
}

object!(Thing, u64);

fn make() -> Arc<Thing> {
    let shown = Shown::new(0);
    Arc::new(Thing { shown })
}

fn handles(c: &mut Criterion) {
    let things: Vec<_> = (0..256).map(|_| make()).collect();
    for thing in &things {
        Thing::registry().add(thing.clone());
    }
    let handle = things[100].shown();
    let found = || get::<Thing>(black_box(handle)).is_ok();
    c.bench_function("used last", |b| b.iter(found));
    let went = || {
        let other = make();
        Thing::registry().add(other.clone());
        Thing::registry().remove(&other);
    };
    c.bench_function("after another went", |b| {
        b.iter_batched(went, |()| found(), BatchSize::PerIteration);
    });
    let other = things[200].shown().addr();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let other = std::ptr::without_provenance_mut(other);
                black_box(get::<Thing>(other).is_ok());
            }
        });
        c.bench_function("beside another thread", |b| b.iter(found));
        is_done.store(true, Ordering::Relaxed);
    });
}

criterion_group!(benches, handles);
criterion_main!(benches);

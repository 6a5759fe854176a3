//! Work that is spread over the processors.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many threads can run at once.
#[must_use]
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Gives out `jobs` in their order to as many threads, each with a `worker` of its own. What came of them, in that order.
pub fn each<I, W, R>(threads: usize, jobs: I, worker: impl Fn() -> W + Sync) -> Vec<R>
where
    I: IntoIterator<IntoIter: Send>,
    W: FnMut(I::Item) -> R,
    R: Send,
{
    let worker = || {
        let mut work = worker();
        move |job| Ok::<_, Infallible>(work(job))
    };
    let Ok(results) = try_each(threads, jobs, worker);
    results
}

/// As [`each`], but gives out no more jobs when one has failed.
///
/// # Errors
/// That of the first of them that failed.
pub fn try_each<I, W, R, E>(
    threads: usize,
    jobs: I,
    worker: impl Fn() -> W + Sync,
) -> Result<Vec<R>, E>
where
    I: IntoIterator<IntoIter: Send>,
    W: FnMut(I::Item) -> Result<R, E>,
    R: Send,
    E: Send,
{
    let left = Mutex::new(Some(jobs.into_iter().enumerate()));
    let results = Mutex::new(vec![]);
    let take = || lock(&left).as_mut()?.next();
    let run = || {
        let mut work = worker();
        while let Some((at, job)) = take() {
            let result = work(job);
            if result.is_err() {
                *lock(&left) = None;
            }
            lock(&results).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(at, _)| at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let expected: Vec<u32> = (1..=100).collect();
        assert_eq!(each(3, 0..100, || |job| job + 1), expected);
        assert!(each(3, [(); 0], || |()| ()).is_empty());
    }

    #[test]
    fn a_thread_keeps_its_worker() {
        let counts = each(1, 0..3, || {
            let mut count = 0;
            move |_| {
                count += 1;
                count
            }
        });
        assert_eq!(counts, [1, 2, 3]);
    }

    #[test]
    fn nothing_begins_after_a_failure() {
        let begun = AtomicU32::new(0);
        let result = try_each(1, 0..10, || {
            |job| {
                begun.fetch_add(1, Ordering::Relaxed);
                if job < 3 { Ok(job) } else { Err(job) }
            }
        });
        assert_eq!(result, Err(3));
        assert_eq!(begun.into_inner(), 4);
    }
}

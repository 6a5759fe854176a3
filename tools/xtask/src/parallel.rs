//! Work that is spread over the processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does the work of all jobs, as many at once as there are processors. What came of them, in the order of `jobs`.
pub(crate) fn each<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return };
            let result = work(job);
            let mut results = results.lock().expect("no thread panics with it");
            results.push((at, result));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
    });
    let mut results = results.into_inner().expect("no thread panics with it");
    results.sort_by_key(|&(at, _)| at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u32> = (0..100).collect();
        let expected: Vec<u32> = (1..=100).collect();
        assert_eq!(each(&jobs, |job| job + 1), expected);
        assert!(each(&[(); 0], |()| ()).is_empty());
    }
}

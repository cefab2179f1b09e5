//! A few threads that live as long as one call.
//!
//! There is no pool: a process that forks between two calls has no threads to lose, and a call that
//! is given up has joined its threads before it returns. Spawning costs some 50 µs, so callers hand
//! over work in batches.

use crate::error::{ErrorKind, Result};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// How long the calling thread sleeps between two looks at whether to go on: within 100 ms of Ctrl-C
/// the workers have to have finished a piece of work, too.
const LOOK: Duration = Duration::from_millis(20);

/// Does `work(state, index)` for all of `0..count`, and gives the results in that order.
///
/// Each thread makes a `state` for itself. `go_on` is asked by the calling thread; `stop` becomes
/// true when it says no, for workers to look at in the middle of long pieces.
///
/// # Errors
/// [`ErrorKind::Cancelled`].
pub(crate) fn map<S, R: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    go_on: &mut dyn FnMut() -> bool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut state = state();
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            done.push((index, work(&mut state, index)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let handles = spawn(scope, threads.min(count), &worker);
        if handles.is_empty() {
            return worker(); // no thread is to be had, or nothing to do
        }
        while handles.iter().any(|handle| !handle.is_finished()) {
            thread::park_timeout(LOOK);
            if !go_on() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        collect(handles)
    });
    if stop.load(Ordering::Relaxed) {
        return Err(ErrorKind::Cancelled.into());
    }
    done.sort_unstable_by_key(|&(index, _)| index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

type Done<R> = Vec<(usize, R)>;

fn spawn<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    worker: &'scope (impl Fn() -> Done<R> + Sync),
) -> Vec<ScopedJoinHandle<'scope, Done<R>>> {
    let caller = thread::current();
    let one = |_| {
        let caller = caller.clone();
        let run = move || {
            let done = worker();
            caller.unpark();
            done
        };
        thread::Builder::new().spawn_scoped(scope, run).ok()
    };
    (0..threads).filter_map(one).collect()
}

fn collect<R>(handles: Vec<ScopedJoinHandle<'_, Done<R>>>) -> Done<R> {
    let mut all = Vec::new();
    for handle in handles {
        match handle.join() {
            Ok(done) => all.extend(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    all
}

/// As many threads as the machine runs at once.
pub(crate) fn available() -> usize {
    thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for threads in 0..5 {
            for count in [0, 1, 2, 100] {
                let stop = AtomicBool::new(false);
                let all = map(
                    count,
                    threads,
                    &stop,
                    &mut || true,
                    || 0,
                    |state, index| {
                        *state += 1;
                        thread::yield_now();
                        (index, *state)
                    },
                );
                let all = all.unwrap();
                assert!(all.iter().enumerate().all(|(at, &(index, _))| at == index));
                assert_eq!(all.len(), count);
                assert!(all.iter().all(|&(_, state)| state >= 1));
            }
        }
    }

    #[test]
    fn a_caller_that_gives_up_gets_no_results() {
        let stop = AtomicBool::new(false);
        let slow = |(): &mut (), _| thread::sleep(Duration::from_millis(1));
        let result = map(100_000, 2, &stop, &mut || false, || (), slow);
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Cancelled));
    }
}

//! A few threads that live as long as one call.
//!
//! There is no pool: a process that forks between two calls has no threads to lose, and a call that
//! is given up has joined its threads before it returns. Spawning costs some 50 µs, so callers hand
//! over work in batches.

use crate::error::{ErrorKind, Result};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle, Thread};
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
    let mut all = Vec::with_capacity(count);
    each(count, threads, stop, go_on, state, work, &mut |results| {
        all.extend(results);
        true
    })?;
    Ok(all)
}

/// The same, but what is done is handed to `take` on the calling thread while the rest is being
/// worked on: in order, and as much at once as has come together. A false from `take` ends it all.
///
/// # Errors
/// [`ErrorKind::Cancelled`].
pub(crate) fn each<S, R: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    go_on: &mut dyn FnMut() -> bool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
    take: &mut dyn FnMut(Ready<'_, R>) -> bool,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Order::default());
    let working = AtomicUsize::new(0);
    let worker = || {
        let mut state = state();
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = work(&mut state, index);
            locked(&done).put(index, result);
        }
    };
    thread::scope(|scope| {
        let handles = spawn(scope, threads.min(count), &worker, &working);
        if handles.is_empty() {
            worker(); // no thread is to be had, or nothing to do
        }
        while working.load(Ordering::Acquire) > 0 {
            thread::park_timeout(LOOK);
            let ended = stop.load(Ordering::Relaxed);
            let settled = ended || (hand_out(&done, take) && go_on());
            if !settled {
                stop.store(true, Ordering::Relaxed);
            }
        }
        join(handles);
    });
    if stop.load(Ordering::Relaxed) || !hand_out(&done, take) {
        return Err(ErrorKind::Cancelled.into());
    }
    Ok(())
}

/// Results in order, each with all before it.
pub(crate) type Ready<'a, R> = &'a mut dyn Iterator<Item = R>;

/// What is done but not yet handed out, from the result on whose turn it is.
struct Order<R> {
    due: usize,
    waiting: VecDeque<Option<R>>,
}

impl<R> Default for Order<R> {
    fn default() -> Self {
        Self {
            due: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl<R> Order<R> {
    fn put(&mut self, index: usize, result: R) {
        let place = index - self.due;
        if place >= self.waiting.len() {
            self.waiting.resize_with(place + 1, || None);
        }
        self.waiting[place] = Some(result);
    }

    /// Takes what has its turn out.
    fn ready(&mut self) -> VecDeque<Option<R>> {
        let full = self.waiting.iter().take_while(|result| result.is_some());
        let rest = self.waiting.split_off(full.count());
        let ready = std::mem::replace(&mut self.waiting, rest);
        self.due += ready.len();
        ready
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands out what has its turn, if there is any; false if no more is wanted.
fn hand_out<R>(done: &Mutex<Order<R>>, take: &mut dyn FnMut(Ready<'_, R>) -> bool) -> bool {
    let ready = locked(done).ready();
    ready.is_empty() || take(&mut ready.into_iter().flatten())
}

/// A thread that works. The caller is woken when it ends, however that comes about, and not before it
/// counts no more: it would go to sleep again.
struct Working<'a> {
    count: &'a AtomicUsize,
    caller: Thread,
}

impl<'a> Working<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self {
            count,
            caller: thread::current(),
        }
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Release);
        self.caller.unpark();
    }
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    worker: &'scope (impl Fn() + Sync),
    working: &'scope AtomicUsize,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let one = |_| {
        let working = Working::new(working);
        let run = move || {
            let _working = working;
            worker();
        };
        thread::Builder::new().spawn_scoped(scope, run).ok()
    };
    (0..threads).filter_map(one).collect()
}

fn join(handles: Vec<ScopedJoinHandle<'_, ()>>) {
    for handle in handles {
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// As many threads as the machine runs at once.
pub(crate) fn available() -> usize {
    thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

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
    fn the_caller_wakes_when_the_work_is_done() {
        let small = || {
            let stop = AtomicBool::new(false);
            let work = |(): &mut (), index| index;
            map(10, 2, &stop, &mut || true, || (), work).unwrap();
        };
        // On a busy machine some rounds take long; on no machine all do.
        let quick = (0..50).any(|_| {
            let start = Instant::now();
            (0..10).for_each(|_| small());
            start.elapsed() < 5 * LOOK
        });
        assert!(quick);
    }

    #[test]
    #[should_panic(expected = "at work")]
    fn a_panic_at_work_comes_out() {
        let stop = AtomicBool::new(false);
        let work = |(): &mut (), index| assert!(index < 5, "at work");
        let _ = map(10, 2, &stop, &mut || true, || (), work);
    }

    #[test]
    fn results_are_handed_out_in_order_while_others_are_worked_on() {
        let stop = AtomicBool::new(false);
        let (mut seen, mut parts) = (Vec::new(), 0);
        let slow = |(): &mut (), index| {
            thread::sleep(Duration::from_millis(1));
            index
        };
        each(100, 2, &stop, &mut || true, || (), slow, &mut |ready| {
            seen.extend(ready);
            parts += 1;
            true
        })
        .unwrap();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert!(parts > 1);
    }

    #[test]
    fn a_taker_that_has_enough_ends_the_work() {
        for threads in [0, 1, 3] {
            let (stop, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
            let slow = |(): &mut (), _| {
                begun.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            };
            let count = if threads == 0 { 3 } else { 100_000 };
            let mut take = |_: Ready<'_, ()>| false;
            let result = each(count, threads, &stop, &mut || true, || (), slow, &mut take);
            assert!(matches!(result.unwrap_err().kind(), ErrorKind::Cancelled));
            assert!(begun.into_inner() < 1000);
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

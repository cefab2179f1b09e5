//! The lines of a large part of a file, in blocks and on several threads.
//!
//! The part is cut into blocks of one size, and each thread takes the next block that nobody has
//! taken. A block owns the lines that *begin* in it: its reader looks at the byte before the block
//! to learn whether one begins right there, and reads on behind the block until the last of its
//! lines ends. So every line belongs to exactly one block, wherever the cuts fall. The blocks are
//! handed out in file order by the calling thread, which between them asks whether to go on.
//!
//! A block and the end of its last line are read into one buffer, small enough to stay in the
//! second-level cache between the read and the walk. A line that is longer than the buffer is
//! measured first and then read into a buffer of just that size, unless it is at fault already.
//!
//! The end of the part is its end when the scan began; a last line that has no LF before it is left
//! alone.

mod reader;

use crate::index::Batch;
use crate::lines::Source;
use crate::store::Report;
use reader::Reader;
use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

/// How often the calling thread asks whether to go on, at least.
const PATIENCE: Duration = Duration::from_millis(50);

/// So few blocks are not worth a thread.
const FEW: u64 = 2;

/// Finished blocks that may wait for the calling thread.
const WAITING: usize = 8;

/// What the lines of one block hold.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// How many lines there are, blank ones and all.
    pub(crate) lines: u64,
    /// The offset behind the last line's LF.
    pub(crate) end: u64,
    /// The entries.
    pub(crate) rows: Batch,
    /// What else was met; lines are counted from 1 in this block.
    pub(crate) report: Report,
    /// The source ended before the block did: there is nothing to be expected behind it.
    cut: bool,
}

/// How a scan is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Bytes in a block.
    pub(crate) block: usize,
    /// How many threads walk lines, besides the calling one; with 0 that one does it.
    pub(crate) threads: usize,
}

/// Scans the lines in `range` of `source`, which must start where a line does, and gives the
/// blocks that have lines to `take`, in order. `go_on` is asked every now and then; false, or a
/// `Break` from `take`, ends the scan.
pub(crate) fn scan<S: Source + Sync + ?Sized>(
    source: &S,
    range: Range<u64>,
    plan: Plan,
    take: &mut dyn FnMut(Block),
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<ControlFlow<()>> {
    let work = Work {
        source,
        block: plan.block.max(1),
        range,
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let mut order = Order {
        take,
        waiting: BTreeMap::new(),
        due: 0,
        cut: false,
    };
    if plan.threads == 0 || work.blocks() <= FEW {
        return work.alone(&mut order, go_on);
    }
    scope(|scope| match work.start(scope, plan.threads) {
        Some(receiver) => work.collect(receiver, &mut order, go_on),
        None => work.alone(&mut order, go_on),
    })
}

/// A scan that is being done: what all its threads look at.
struct Work<'s, S: ?Sized> {
    source: &'s S,
    range: Range<u64>,
    block: usize,
    /// The first block that nobody has taken.
    next: AtomicU64,
    stop: AtomicBool,
}

/// A block's number and what came of it.
type Outcome = (u64, io::Result<Block>);

impl<S: Source + Sync + ?Sized> Work<'_, S> {
    fn blocks(&self) -> u64 {
        let length = self.range.end.saturating_sub(self.range.start);
        length.div_ceil(self.block as u64)
    }

    fn take_next(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.blocks()).then_some(number)
    }

    /// Does everything on the calling thread.
    fn alone(
        &self,
        order: &mut Order<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<ControlFlow<()>> {
        let mut reader = Reader::new(self);
        let mut asked = Instant::now();
        while let Some(number) = self.take_next() {
            order.put(number, reader.read(number)?);
            if order.cut {
                break;
            }
            if asked.elapsed() >= PATIENCE {
                asked = Instant::now();
                if !go_on() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Starts up to `threads` threads; none at all if the system refuses.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
    ) -> Option<Receiver<Outcome>> {
        let (sender, receiver) = sync_channel(WAITING);
        let mut started = false;
        for _ in 0..threads {
            let sender = sender.clone();
            started |= Builder::new()
                .spawn_scoped(scope, move || self.run(&sender))
                .is_ok();
        }
        started.then_some(receiver)
    }

    /// What each thread does.
    fn run(&self, out: &SyncSender<Outcome>) {
        let mut reader = Reader::new(self);
        while let Some(number) = self.take_next() {
            if out.send((number, reader.read(number))).is_err() {
                return;
            }
        }
    }

    /// Hands out what the threads send, until they are done or nothing more is wanted.
    fn collect(
        &self,
        receiver: Receiver<Outcome>,
        order: &mut Order<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<ControlFlow<()>> {
        let mut asked = Instant::now();
        let result = loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok((number, Ok(block))) => order.put(number, block),
                Ok((_, Err(error))) => break Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(ControlFlow::Continue(())),
            }
            if order.cut {
                break Ok(ControlFlow::Continue(()));
            }
            if asked.elapsed() >= PATIENCE {
                asked = Instant::now();
                if !go_on() {
                    break Ok(ControlFlow::Break(()));
                }
            }
        };
        // Without a receiver no thread waits to send.
        self.stop.store(true, Ordering::Relaxed);
        drop(receiver);
        result
    }
}

/// Puts blocks in their order.
struct Order<'t> {
    take: &'t mut dyn FnMut(Block),
    /// Blocks that came before their turn.
    waiting: BTreeMap<u64, Block>,
    /// Whose turn it is.
    due: u64,
    /// The source ended in a block that had its turn; those behind it are not wanted.
    cut: bool,
}

impl Order<'_> {
    fn put(&mut self, number: u64, block: Block) {
        self.waiting.insert(number, block);
        while !self.cut
            && let Some(block) = self.waiting.remove(&self.due)
        {
            self.due += 1;
            self.cut = block.cut;
            if block.lines > 0 {
                (self.take)(block);
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

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
//! measured first and then read into a buffer of just that size.
//!
//! The end of the part is its end when the scan began; a last line that has no LF before it is left
//! alone.

use crate::envelope::{Kind, Members};
use crate::index::Batch;
use crate::json::{Fault, LineVisitor, Shape, Visitor, Walker};
use crate::lines::{Source, read_most_at};
use crate::store::Report;
use memchr::{memchr, memrchr};
use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

/// How often the calling thread asks whether to go on, at least.
const PATIENCE: Duration = Duration::from_millis(50);

/// Room behind a block for the end of its last line.
const OVERHANG: usize = 64 << 10;

/// How much is read at once in search of a line's end: most lines are shorter.
const STEP: usize = 16 << 10;

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
    /// How many threads walk lines, besides the calling one.
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
    if work.blocks() <= FEW {
        return work.alone(&mut order, go_on);
    }
    scope(|scope| match work.start(scope, plan.threads.max(1)) {
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

/// One thread's buffer and walker.
struct Reader<'w, 's, S: ?Sized> {
    work: &'w Work<'s, S>,
    buffer: Vec<u8>,
    /// How much of the buffer is filled, from its start.
    filled: usize,
    /// Offset of the buffer's first byte.
    base: u64,
    /// How many rows the last block had.
    rows: usize,
    walker: Walker,
}

impl<'w, 's, S: Source + ?Sized> Reader<'w, 's, S> {
    fn new(work: &'w Work<'s, S>) -> Self {
        Self {
            work,
            buffer: Vec::new(),
            filled: 0,
            base: 0,
            rows: 0,
            walker: Walker::new(),
        }
    }

    /// Reads and walks the lines of one block.
    fn read(&mut self, number: u64) -> io::Result<Block> {
        let range = &self.work.range;
        let from = range.start + number * self.work.block as u64;
        let to = range.end.min(from + self.work.block as u64);
        self.base = from - u64::from(number > 0);
        let wanted = (to - self.base) as usize;
        self.make_room(wanted);
        self.filled = read_most_at(self.work.source, &mut self.buffer[..wanted], self.base)?;

        let mut block = Block {
            cut: self.filled < wanted,
            rows: Batch::with_capacity(self.rows + self.rows / 8),
            ..Block::default()
        };
        let start = match memchr(b'\n', &self.buffer[..self.filled]) {
            _ if number == 0 => 0,
            Some(place) => place + 1,
            None => return Ok(block),
        };
        let end = self.finish_line(&mut block.cut)?;
        if start < end {
            let offset = self.base + start as u64;
            let mut collector = Collector {
                block: &mut block,
                members: Members::default(),
                offset,
            };
            self.walker.lines(&self.buffer[start..end], &mut collector);
            block.end = self.base + end as u64;
            self.rows = block.rows.len();
        }
        Ok(block)
    }

    /// Makes the buffer large enough for a block of this length and the end of its last line.
    /// A buffer that was made for a long line is given back.
    fn make_room(&mut self, length: usize) {
        let behind = self.work.range.end - self.base - length as u64;
        let room = length + behind.min(OVERHANG as u64) as usize;
        if self.buffer.len() < room || self.buffer.len() / 4 > room {
            self.buffer = vec![0; room];
        }
    }

    /// Reads on until the last line in the buffer has its LF; returns the place behind the last LF
    /// that belongs to the block.
    fn finish_line(&mut self, cut: &mut bool) -> io::Result<usize> {
        while !*cut && self.filled > 0 && self.buffer[self.filled - 1] != b'\n' {
            let offset = self.base + self.filled as u64;
            let behind = self.work.range.end.saturating_sub(offset);
            let room = STEP
                .min(self.buffer.len() - self.filled)
                .min(behind as usize);
            if behind == 0 {
                break;
            }
            if room == 0 {
                return self.finish_long_line(cut);
            }
            let place = &mut self.buffer[self.filled..self.filled + room];
            let got = self.work.source.read_at(place, offset)?;
            *cut = got == 0;
            if let Some(end) = memchr(b'\n', &place[..got]) {
                return Ok(self.filled + end + 1);
            }
            self.filled += got;
        }
        let last = memrchr(b'\n', &self.buffer[..self.filled]);
        Ok(last.map_or(0, |place| place + 1))
    }

    /// The same for a line that is longer than the buffer: its end is looked for first.
    #[cold]
    fn finish_long_line(&mut self, cut: &mut bool) -> io::Result<usize> {
        let Some(end) = self.find_end(self.base + self.filled as u64)? else {
            let last = memrchr(b'\n', &self.buffer[..self.filled]);
            return Ok(last.map_or(0, |place| place + 1));
        };
        let mut longer = vec![0; (end - self.base) as usize];
        longer[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
        self.buffer = longer;
        let offset = self.base + self.filled as u64;
        self.filled += read_most_at(self.work.source, &mut self.buffer[self.filled..], offset)?;
        *cut = self.filled < self.buffer.len();
        self.finish_line(cut)
    }

    /// The offset behind the next LF; None if there is none, or nobody wants to know any more.
    fn find_end(&self, mut offset: u64) -> io::Result<Option<u64>> {
        let mut probe = vec![0; self.work.block.clamp(1, 1 << 18)];
        while offset < self.work.range.end && !self.work.stop.load(Ordering::Relaxed) {
            let behind = (self.work.range.end - offset).min(probe.len() as u64) as usize;
            let got = self.work.source.read_at(&mut probe[..behind], offset)?;
            if let Some(end) = memchr(b'\n', &probe[..got]) {
                return Ok(Some(offset + end as u64 + 1));
            }
            if got == 0 {
                break;
            }
            offset += got as u64;
        }
        Ok(None)
    }
}

/// Makes a block out of its lines.
struct Collector<'b> {
    block: &'b mut Block,
    members: Members,
    /// Offset of the text that is walked.
    offset: u64,
}

impl Visitor for Collector<'_> {
    #[inline]
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        self.members.member(depth, key, value);
    }

    #[inline]
    fn wants(&self, depth: u8, key: &[u8]) -> bool {
        self.members.wants(depth, key)
    }
}

impl LineVisitor for Collector<'_> {
    fn line(&mut self, line: &[u8], start: usize, answer: Result<Option<Shape>, Fault>) {
        let block = &mut *self.block;
        block.lines += 1;
        let members = std::mem::take(&mut self.members);
        let offset = self.offset + start as u64;
        match answer.map(|shape| shape.map(|shape| members.envelope(line, shape))) {
            Err(fault) => {
                let byte = offset + fault.at as u64;
                block.report.skip(block.lines, byte, fault.reason);
            }
            Ok(Some(envelope)) if !envelope.dropped => match envelope.kind {
                Kind::Header => block.report.headers += 1,
                _ => block.rows.push(offset, line.len() as u64, envelope),
            },
            Ok(_) => block.report.blank += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{self, Key};
    use crate::index::Index;
    use proptest::prelude::*;

    /// What a scan of several blocks finds: lines, where they end, the report, and of each row its
    /// place, id and parent.
    #[derive(Debug, Default, PartialEq)]
    struct Found {
        lines: u64,
        end: u64,
        report: Report,
        rows: Vec<((u64, u64), Key, u32)>,
    }

    impl Found {
        fn add_rows(&mut self, index: &Index) {
            let rows = 0..index.len() as crate::Row;
            let look = |row| (index.span(row), index.id(row), index.parent(row));
            self.rows.extend(rows.map(look));
        }
    }

    fn scanned(data: &[u8], range: Range<u64>, plan: Plan) -> Found {
        let (mut found, mut index) = (Found::default(), Index::default());
        let mut take = |block: Block| {
            found.report.add(block.report, found.lines);
            found.lines += block.lines;
            found.end = block.end;
            index.extend(block.rows);
        };
        let result = scan(data, range, plan, &mut take, &mut || true);
        assert!(matches!(result, Ok(ControlFlow::Continue(()))));
        found.add_rows(&index);
        found
    }

    /// The slow twin: splits the whole text and reads line by line.
    fn naive(data: &[u8], range: Range<u64>) -> Found {
        let (mut found, mut index) = (Found::default(), Index::default());
        let mut offset = range.start;
        let part = &data[range.start as usize..data.len().min(range.end as usize)];
        for piece in part.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = piece.strip_suffix(b"\n") else {
                break;
            };
            found.lines += 1;
            let report = &mut found.report;
            match envelope::read(line) {
                _ if line.iter().all(|byte| b" \t\r".contains(byte)) => report.blank += 1,
                Err(fault) => report.skip(found.lines, offset + fault.at as u64, fault.reason),
                Ok(envelope) if envelope.dropped => report.blank += 1,
                Ok(envelope) if envelope.kind == Kind::Header => report.headers += 1,
                Ok(envelope) => {
                    index.push(offset, line.len() as u64, envelope);
                }
            }
            offset += piece.len() as u64;
            found.end = offset;
        }
        found.add_rows(&index);
        found
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            3 => r#"\{"type":"message","id":"abcdef[0-3]{2}","parentId":(null|"abcdef[0-3]{2}"),"message":\{"role":"(user|x)"\}\}"#,
            1 => r#"\{"type":"(session|label|x)","id":("[ab]{0,2}"|1|null|\{\}),"parentId":("[ab]{0,2}"|1|0),"a":\[0, 1\]\}"#,
            1 => "[ \t\r]{0,3}",
            1 => "(null|0|true|\"\"|\\{|x|\\[\\]|\"a)",
        ];
        proptest::collection::vec((line, any::<bool>()), 0..30).prop_map(|lines| {
            let last = lines.len().saturating_sub(1);
            let lines = lines.into_iter().enumerate();
            let end = |at, lf| if at < last || lf { "\n" } else { "" };
            lines
                .map(|(at, (line, lf))| line + end(at, lf))
                .collect::<String>()
                .into_bytes()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Blocks of any size and any number of threads give what a plain split gives.
        #[test]
        fn any_cut_gives_the_lines_of_a_plain_split(
            text in text(),
            block in prop_oneof![1_usize..20, 20_usize..2000],
            threads in 1_usize..4,
            skip in 0_usize..3,
        ) {
            let starts: Vec<_> = memchr::memchr_iter(b'\n', &text).take(skip).collect();
            let range = starts.last().map_or(0, |&lf| lf as u64 + 1)..text.len() as u64;
            let found = scanned(&text, range.clone(), Plan { block, threads });
            prop_assert_eq!(found, naive(&text, range));
        }

        /// Where the source ends before it should, everything before that is found.
        #[test]
        fn a_source_that_shrinks_ends_there(text in text(), block in 1_usize..300, more in 1_u64..99) {
            let range = 0..text.len() as u64 + more;
            let found = scanned(&text, range.clone(), Plan { block, threads: 2 });
            prop_assert_eq!(found, naive(&text, range));
        }
    }

    /// A line much longer than a block is found, whatever stands around it.
    #[test]
    fn a_long_line_is_one_line() {
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
        for text in [
            long.clone(),
            format!("{{}}\n{long}{{}}\n"),
            long.repeat(2) + "{",
        ] {
            let range = 0..text.len() as u64;
            for block in [1000, 70_000, 1 << 19, 1 << 21] {
                let plan = Plan { block, threads: 2 };
                let found = scanned(text.as_bytes(), range.clone(), plan);
                assert_eq!(found, naive(text.as_bytes(), range.clone()), "{block}");
            }
        }
    }

    /// A scan ends when the caller says so.
    #[test]
    fn a_scan_can_be_ended() {
        struct Slow;
        impl Source for Slow {
            fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
                std::thread::sleep(Duration::from_millis(20));
                buf.fill(b'\n');
                Ok(buf.len())
            }
            fn size(&self) -> io::Result<u64> {
                Ok(u64::MAX)
            }
        }
        let began = Instant::now();
        let plan = Plan {
            block: 1 << 10,
            threads: 2,
        };
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            asked < 3
        };
        let result = scan(&Slow, 0..1 << 40, plan, &mut |_| (), &mut go_on);
        assert!(matches!(result, Ok(ControlFlow::Break(()))));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    /// An error of the source ends the scan and is told.
    #[test]
    fn an_error_is_told() {
        struct Broken;
        impl Source for Broken {
            fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
                if offset > 3000 {
                    return Err(io::Error::other("broken"));
                }
                buf.fill(b'\n');
                Ok(buf.len())
            }
            fn size(&self) -> io::Result<u64> {
                Ok(1 << 20)
            }
        }
        for size in [6000, 1 << 20] {
            let plan = Plan {
                block: 4000,
                threads: 2,
            };
            let result = scan(&Broken, 0..size, plan, &mut |_| (), &mut || true);
            assert!(result.is_err(), "{size}");
        }
    }
}

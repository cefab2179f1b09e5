//! One thread of a scan: its buffer, its walker, and the lines of a block.

use super::{Block, Work};
use crate::envelope::{Kind, Members};
use crate::index::Batch;
use crate::json::{self, Fault, LineVisitor, Shape, Visitor, Walker};
use crate::lines::{Source, find_end, read_most_at};
use memchr::{memchr, memrchr};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room behind a block for the end of its last line.
const OVERHANG: usize = 64 << 10;

/// How much is read at once in search of a line's end: most lines are shorter.
const STEP: usize = 16 << 10;

/// How much of a long line is read at once, so that a scan can be ended on the way.
const STRIDE: usize = 16 << 20;

/// A buffer and a walker.
pub(super) struct Reader<'w, 's, S: ?Sized> {
    work: &'w Work<'s, S>,
    buffer: Vec<u8>,
    /// How much of the buffer is filled, from its start.
    filled: usize,
    /// Offset of the buffer's first byte.
    base: u64,
    /// The source has ended before it should.
    cut: bool,
    /// How many rows the last block had.
    rows: usize,
    walker: Walker,
}

/// The last line of a block, where it is long and at fault from its beginning on.
struct Hopeless {
    fault: Fault,
    /// Where the line begins, and the offset behind its LF.
    start: u64,
    end: u64,
}

impl<'w, 's, S: Source + ?Sized> Reader<'w, 's, S> {
    pub(super) fn new(work: &'w Work<'s, S>) -> Self {
        Self {
            work,
            buffer: Vec::new(),
            filled: 0,
            base: 0,
            cut: false,
            rows: 0,
            walker: Walker::new(),
        }
    }

    /// Reads and walks the lines of one block.
    pub(super) fn read(&mut self, number: u64) -> io::Result<Block> {
        let start = self.fill(number)?;
        let (end, hopeless) = match start {
            Some(start) => self.finish_line(start)?,
            None => (0, None),
        };
        let mut block = Block {
            cut: self.cut,
            rows: Batch::with_capacity(self.rows + self.rows / 8),
            ..Block::default()
        };
        if let Some(start) = start.filter(|&start| start < end) {
            let mut collector = Collector {
                block: &mut block,
                members: Members::default(),
                offset: self.base + start as u64,
                stop: &self.work.stop,
            };
            self.walker.lines(&self.buffer[start..end], &mut collector);
            block.end = self.base + end as u64;
            self.rows = block.rows.len();
        }
        if let Some(Hopeless { fault, start, end }) = hopeless {
            block.lines += 1;
            let byte = start + fault.at as u64;
            block.report.skip(block.lines, byte, fault.reason);
            block.end = end;
        }
        Ok(block)
    }

    /// Reads a block into the buffer; returns the place of the first line that begins in it.
    fn fill(&mut self, number: u64) -> io::Result<Option<usize>> {
        let range = &self.work.range;
        let from = range.start + number * self.work.block as u64;
        let to = range.end.min(from + self.work.block as u64);
        self.base = from - u64::from(number > 0);
        let wanted = (to - self.base) as usize;
        self.make_room(wanted);
        self.filled = read_most_at(self.work.source, &mut self.buffer[..wanted], self.base)?;
        self.cut = self.filled < wanted;
        if number == 0 {
            return Ok(Some(0));
        }
        Ok(memchr(b'\n', &self.buffer[..self.filled]).map(|place| place + 1))
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

    /// Reads on until the last line in the buffer has its LF. Returns the place behind the last LF
    /// of the block's lines, and the line behind it that is not worth reading, if there is one.
    fn finish_line(&mut self, start: usize) -> io::Result<(usize, Option<Hopeless>)> {
        while !self.cut && self.filled > 0 && self.buffer[self.filled - 1] != b'\n' {
            let offset = self.base + self.filled as u64;
            let behind = self.work.range.end.saturating_sub(offset);
            if behind == 0 {
                break;
            }
            let room = STEP.min(self.buffer.len() - self.filled);
            if room == 0 {
                return self.finish_long_line(start);
            }
            let room = room.min(behind as usize);
            let place = &mut self.buffer[self.filled..self.filled + room];
            let got = self.work.source.read_at(place, offset)?;
            self.cut = got == 0;
            if let Some(end) = memchr(b'\n', &place[..got]) {
                return Ok((self.filled + end + 1, None));
            }
            self.filled += got;
        }
        Ok((self.last_end(), None))
    }

    /// The place behind the last LF in the buffer.
    fn last_end(&self) -> usize {
        memrchr(b'\n', &self.buffer[..self.filled]).map_or(0, |place| place + 1)
    }

    /// The same for a line that is longer than the buffer. Its end is looked for first.
    #[cold]
    fn finish_long_line(&mut self, start: usize) -> io::Result<(usize, Option<Hopeless>)> {
        let stop = &self.work.stop;
        let goes_on = || !stop.load(Ordering::Relaxed);
        let line = self.last_end().max(start);
        let behind = self.base + self.filled as u64;
        let (end, found) = find_end(self.work.source, behind, &goes_on)?;
        if !found || end >= self.work.range.end {
            return Ok((line, None));
        }
        if let Some(fault) = json::hopeless(&self.buffer[line..self.filled]) {
            let (start, end) = (self.base + line as u64, end + 1);
            return Ok((line, Some(Hopeless { fault, start, end })));
        }
        let mut longer = vec![0; (end + 1 - self.base) as usize];
        longer[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
        self.buffer = longer;
        while self.filled < self.buffer.len() && goes_on() {
            let end = self.buffer.len().min(self.filled + STRIDE);
            let place = &mut self.buffer[self.filled..end];
            let got = read_most_at(self.work.source, place, self.base + self.filled as u64)?;
            self.filled += got;
            if got == 0 {
                self.cut = true;
                break;
            }
        }
        Ok((self.last_end(), None))
    }
}

/// Makes a block out of its lines.
struct Collector<'b> {
    block: &'b mut Block,
    members: Members,
    /// Offset of the text that is walked.
    offset: u64,
    stop: &'b AtomicBool,
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

    #[inline]
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
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

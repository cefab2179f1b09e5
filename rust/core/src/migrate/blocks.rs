//! The old file in blocks of whole lines, each with what the index knows of it.
//!
//! New ids are hashes of whole lines. They are made here, so that a thread that reads ahead makes
//! them while another one writes.

use super::{derived_id, keeps_id};
use crate::Row;
use crate::error::{Error, Result};
use crate::store::Store;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};

/// Bytes of the old file in a block.
const BLOCK: u64 = 1 << 20;

/// A line of a block.
#[derive(Debug)]
pub(super) struct Line {
    /// Where it lies in the block, without its LF.
    pub(super) place: Range<usize>,
    pub(super) is_row: bool,
    /// The id that the row gets, if it needs one and nobody has it.
    pub(super) fresh: u32,
}

/// Whole lines of the old file; the last one may have no LF at the end of the file.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Where it begins in the file.
    pub(super) offset: u64,
    pub(super) lines: Vec<Line>,
}

/// The blocks of a file from one on.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) size: u64,
    end: u64,
    epoch: u64,
    derive: bool,
    /// Where the next block begins, the number of its first line, and its first row.
    offset: u64,
    line: u64,
    row: Row,
}

impl Blocks {
    /// With `derive` rows without an id of their own get one.
    pub(super) fn new(store: &Store, derive: bool) -> Self {
        Self {
            size: BLOCK,
            end: store.end(),
            epoch: store.index().epoch(),
            derive,
            offset: 0,
            line: 1,
            row: 0,
        }
    }

    /// Whether there is a next block.
    pub(super) fn is_left(&self) -> bool {
        self.offset < self.end
    }

    /// Reads the next block; false at the end of the file.
    pub(super) fn next(&mut self, store: &Store, block: &mut Block) -> Result<bool> {
        if store.index().epoch() != self.epoch {
            let reason = "the file changed while it was migrated";
            return Err(Error::lost(store.path(), self.offset, reason));
        }
        if !self.is_left() {
            return Ok(false);
        }
        self.read(store, &mut block.bytes)?;
        block.offset = self.offset;
        block.lines.clear();
        let mut start = 0;
        while start < block.bytes.len() {
            let rest = &block.bytes[start..];
            let end = start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = self.line(store, &block.bytes, start..end);
            block.lines.push(line);
            start = end + 1;
        }
        self.offset += block.bytes.len() as u64;
        Ok(true)
    }

    /// Sends all blocks; those that come back are filled again.
    pub(super) fn send_all(
        &mut self,
        store: &Store,
        empty: &Receiver<Block>,
        full: &SyncSender<Result<Block>>,
    ) {
        loop {
            let mut block = empty.try_recv().unwrap_or_default();
            let sent = match self.next(store, &mut block) {
                Ok(true) => full.send(Ok(block)).is_ok(),
                Ok(false) => false,
                Err(error) => {
                    let _ = full.send(Err(error));
                    false
                }
            };
            if !sent {
                return;
            }
        }
    }

    fn line(&mut self, store: &Store, bytes: &[u8], place: Range<usize>) -> Line {
        let index = store.index();
        let span = (self.offset + place.start as u64, place.len() as u64);
        let is_row = (self.row as usize) < index.len() && index.span(self.row) == span;
        let fresh = if is_row && self.derive && !keeps_id(index, self.row) {
            derived_id(self.line, &bytes[place.clone()], 0)
        } else {
            0
        };
        self.line += 1;
        self.row += Row::from(is_row);
        Line {
            place,
            is_row,
            fresh,
        }
    }

    fn read(&self, store: &Store, block: &mut Vec<u8>) -> Result<()> {
        let left = self.end - self.offset;
        let mut size = self.size.min(left);
        loop {
            store.read_into(self.offset, size, block)?;
            if size == left {
                return Ok(());
            }
            if let Some(last) = memchr::memrchr(b'\n', block) {
                block.truncate(last + 1);
                return Ok(());
            }
            size = (size * 2).min(left);
        }
    }
}

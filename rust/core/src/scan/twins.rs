//! A scan in blocks beside a plain split of the text.

use super::{Block, Plan, Report, scan};
use crate::envelope::{self, Key, Kind};
use crate::index::Index;
use std::ops::{ControlFlow, Range};

/// What a scan of several blocks finds: lines, where they end, the report, and of each row its
/// place, id and parent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
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

/// What a scan in blocks finds.
pub(crate) fn scanned(data: &[u8], range: Range<u64>, plan: Plan) -> Found {
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
pub(crate) fn naive(data: &[u8], range: Range<u64>) -> Found {
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

/// Blocks of any size and any number of threads give what a plain split gives. The first two bytes
/// choose them.
pub(crate) fn check(data: &[u8]) {
    let &[size, threads, ref text @ ..] = data else {
        return;
    };
    let plan = Plan {
        block: 1 + usize::from(size) * if threads & 4 == 0 { 1 } else { 37 },
        threads: if threads < 0xf0 {
            0
        } else {
            usize::from(threads & 3)
        },
    };
    let start = match threads & 8 {
        0 => 0,
        _ => memchr::memchr(b'\n', text).map_or(0, |lf| lf as u64 + 1),
    };
    let range = start..text.len() as u64;
    assert_eq!(scanned(text, range.clone(), plan), naive(text, range));
}

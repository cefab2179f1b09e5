//! What a scan met besides entries.

use std::borrow::Cow;

/// How many skipped lines are kept with place and reason; all are counted.
pub const REPORT_ROWS: usize = 1000;

/// A line that is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Physical line, from 1.
    pub line: u64,
    /// Byte offset in the file where it stops being JSON.
    pub byte: u64,
    pub reason: Cow<'static, str>,
}

/// What a scan met besides entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that are no JSON, exactly counted.
    pub skipped: u64,
    /// The first of them.
    pub skipped_lines: Vec<Skipped>,
    /// Blank lines, and lines that hold null, false, 0 or "".
    pub blank: u64,
    /// Header lines; 1 in a sound file.
    pub headers: u64,
}

impl Report {
    /// Counts a line that is no JSON from `byte` on, and keeps it if there is room.
    pub(crate) fn skip(&mut self, line: u64, byte: u64, reason: &'static str) {
        self.skipped += 1;
        if self.skipped_lines.len() < REPORT_ROWS {
            self.skipped_lines.push(Skipped {
                line,
                byte,
                reason: Cow::Borrowed(reason),
            });
        }
    }

    /// The lines that began at `from` begin at `to` now.
    pub(crate) fn move_lines(&mut self, from: u64, to: u64) {
        for skipped in &mut self.skipped_lines {
            skipped.byte = skipped.byte - from + to;
        }
    }

    /// Adds what was met behind the first `lines` lines; there they were counted from 1 again.
    pub(crate) fn add(&mut self, more: Self, lines: u64) {
        self.skipped += more.skipped;
        self.blank += more.blank;
        self.headers += more.headers;
        let room = REPORT_ROWS - self.skipped_lines.len();
        let placed = more.skipped_lines.into_iter().take(room);
        self.skipped_lines.extend(placed.map(|skipped| Skipped {
            line: skipped.line + lines,
            ..skipped
        }));
    }
}

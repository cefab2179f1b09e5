//! Physical lines of a file, read in chunks into one reused buffer.
//!
//! Lines end in LF only. A line is told with its byte offset and its number (from 1), and whether
//! its LF was there. The buffer grows only for a line that is longer than it.

use std::io;

/// Bytes that can be read at an offset: a file, or memory.
pub trait Source {
    /// Reads into `buf` from `offset`; 0 at the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// How many bytes there are now.
    fn size(&self) -> io::Result<u64>;
}

impl Source for std::fs::File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            #[cfg(unix)]
            let got = std::os::unix::fs::FileExt::read_at(self, buf, offset);
            #[cfg(windows)]
            let got = std::os::windows::fs::FileExt::seek_read(self, buf, offset);
            match got {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Source for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|o| self.get(o..))
            .unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Fills `buf` from `offset`; false if the source ends before.
pub fn read_exact_at<S: Source + ?Sized>(
    source: &S,
    buf: &mut [u8],
    offset: u64,
) -> io::Result<bool> {
    Ok(read_most_at(source, buf, offset)? == buf.len())
}

/// Fills `buf` from `offset` as far as the source goes; returns how far that is.
pub fn read_most_at<S: Source + ?Sized>(
    source: &S,
    buf: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match source.read_at(&mut buf[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// One physical line, without its LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Byte offset of the line's first byte in the source.
    pub offset: u64,
    /// Physical line number, from 1.
    pub number: u64,
    /// The line without its LF.
    pub bytes: &'a [u8],
    /// Whether the line ended in LF (only the last one may not).
    pub terminated: bool,
}

/// How many bytes are asked for at once, unless a caller knows better: little enough to stay in the
/// second-level cache until they have been looked at.
pub const CHUNK: usize = 1 << 19;

/// Reads lines from a [`Source`].
pub struct LineReader<'s, S: Source + ?Sized> {
    source: &'s S,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    start: usize,
    filled: usize,
    /// Source offset of `buffer[start]`.
    offset: u64,
    number: u64,
    chunk: usize,
    ended: bool,
}

impl<'s, S: Source + ?Sized> LineReader<'s, S> {
    /// Starts at `offset`, which must be the start of the line with this `number`.
    pub fn new(source: &'s S, offset: u64, number: u64, chunk: usize) -> Self {
        let chunk = chunk.max(1);
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            offset,
            number,
            chunk,
            ended: false,
        }
    }

    /// The next line; None at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        let length = loop {
            let unread = &self.buffer[self.start..self.filled];
            if let Some(n) = memchr::memchr(b'\n', &unread[searched..]) {
                break searched + n;
            }
            searched = unread.len();
            if self.ended {
                break searched;
            }
            self.fill()?;
        };
        let from = self.start;
        let terminated = from + length < self.filled;
        if length == 0 && !terminated {
            return Ok(None);
        }
        let step = length + usize::from(terminated);
        let line = Line {
            offset: self.offset,
            number: self.number,
            bytes: &self.buffer[from..from + length],
            terminated,
        };
        self.start += step;
        self.offset += step as u64;
        self.number += 1;
        Ok(Some(line))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        // A line that is longer than the buffer doubles it, so that the copying stays linear.
        let room = if self.filled < self.chunk {
            self.chunk
        } else {
            self.filled
        };
        if self.buffer.len() < self.filled + room {
            self.buffer.resize(self.filled + room, 0);
        }
        let got = self.source.read_at(
            &mut self.buffer[self.filled..],
            self.offset + self.filled as u64,
        )?;
        self.filled += got;
        self.ended = got == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(data: &[u8], chunk: usize) -> Vec<(u64, u64, Vec<u8>, bool)> {
        let mut reader = LineReader::new(data, 0, 1, chunk);
        let mut out = Vec::new();
        while let Some(l) = reader.next_line().unwrap() {
            out.push((l.offset, l.number, l.bytes.to_vec(), l.terminated));
        }
        out
    }

    /// The naive twin: split the whole text.
    fn naive(data: &[u8]) -> Vec<(u64, u64, Vec<u8>, bool)> {
        let mut out = Vec::new();
        let mut offset = 0u64;
        for (i, piece) in data.split_inclusive(|&b| b == b'\n').enumerate() {
            let terminated = piece.last() == Some(&b'\n');
            let text = &piece[..piece.len() - usize::from(terminated)];
            out.push((offset, i as u64 + 1, text.to_vec(), terminated));
            offset += piece.len() as u64;
        }
        out
    }

    proptest! {
        #[test]
        fn any_chunk_size_gives_the_lines_of_a_plain_split(data in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..300), chunk in 1usize..40) {
            prop_assert_eq!(collect(&data, chunk), naive(&data));
        }
    }
}

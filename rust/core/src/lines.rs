//! Physical lines of a file, read in chunks into one reused buffer.
//!
//! Lines end in LF only. A line is told with its byte offset and its number (from 1), and whether
//! its LF was there. The buffer grows only for a line that is longer than it, and not for one that
//! cannot become JSON any more: of gigabytes of zeros, as a crash may leave them, only the
//! beginning is kept.

use crate::json;
use memchr::memchr;
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
    /// The line without its LF; only its beginning, if that is at fault already and it is long.
    pub bytes: &'a [u8],
    /// The length of the whole line in bytes, without its LF.
    pub length: u64,
    /// Whether the line ended in LF (only the last one may not).
    pub terminated: bool,
}

/// How many bytes are asked for at once, unless a caller knows better: little enough to stay in the
/// second-level cache until they have been looked at.
pub const CHUNK: usize = 1 << 19;

/// A line this long is looked at before it is read on.
pub(crate) const LONG: usize = 1 << 20;

/// The offset of the next LF from `offset` on, and true; or of the source's end, and false. The
/// latter also if `goes_on` says no.
pub(crate) fn find_end<S: Source + ?Sized>(
    source: &S,
    mut offset: u64,
    goes_on: &dyn Fn() -> bool,
) -> io::Result<(u64, bool)> {
    let mut probe = vec![0; 1 << 18];
    while goes_on() {
        let got = source.read_at(&mut probe, offset)?;
        if let Some(place) = memchr(b'\n', &probe[..got]) {
            return Ok((offset + place as u64, true));
        }
        if got == 0 {
            break;
        }
        offset += got as u64;
    }
    Ok((offset, false))
}

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
    /// A line this long is looked at before it is read on.
    long: usize,
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
            long: LONG,
            ended: false,
        }
    }

    /// The next line; None at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        let (length, terminated) = loop {
            let unread = &self.buffer[self.start..self.filled];
            if let Some(n) = memchr(b'\n', &unread[searched..]) {
                break ((searched + n) as u64, true);
            }
            let judged = searched >= self.long;
            searched = unread.len();
            if self.ended {
                break (searched as u64, false);
            }
            if searched >= self.long && !judged && self.is_hopeless() {
                let behind = self.offset + searched as u64;
                let (end, terminated) = find_end(self.source, behind, &|| true)?;
                break (end - self.offset, terminated);
            }
            self.fill()?;
        };
        if length == 0 && !terminated {
            return Ok(None);
        }
        let step = length + u64::from(terminated);
        let from = self.start;
        let kept = length.min((self.filled - from) as u64) as usize;
        let line = Line {
            offset: self.offset,
            number: self.number,
            bytes: &self.buffer[from..from + kept],
            length,
            terminated,
        };
        self.start = self.filled.min(from + kept + usize::from(terminated));
        self.offset += step;
        self.number += 1;
        Ok(Some(line))
    }

    fn is_hopeless(&self) -> bool {
        let line = &self.buffer[self.start..self.filled];
        // Whether a byte order mark is in order here is not for us to say.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        json::hopeless(line).is_some()
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

    /// Offset, number, whole length, LF, and what is kept of each line.
    type Lines = Vec<(u64, u64, u64, bool, Vec<u8>)>;

    fn collect(data: &[u8], chunk: usize, long: usize) -> Lines {
        let mut reader = LineReader::new(data, 0, 1, chunk);
        reader.long = long;
        let mut lines = Lines::new();
        while let Some(line) = reader.next_line().unwrap() {
            let bytes = line.bytes.to_vec();
            lines.push((
                line.offset,
                line.number,
                line.length,
                line.terminated,
                bytes,
            ));
        }
        lines
    }

    /// The naive twin: split the whole text.
    fn naive(data: &[u8]) -> Lines {
        let mut lines = Lines::new();
        let mut offset = 0;
        for (i, piece) in data.split_inclusive(|&b| b == b'\n').enumerate() {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let length = text.len() as u64;
            lines.push((
                offset,
                i as u64 + 1,
                length,
                text.len() < piece.len(),
                text.to_vec(),
            ));
            offset += piece.len() as u64;
        }
        lines
    }

    proptest! {
        /// Any chunk size gives the lines of a plain split.
        #[test]
        fn any_chunk_gives_the_lines_of_a_plain_split(
            data in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..300),
            chunk in 1usize..40,
        ) {
            prop_assert_eq!(collect(&data, chunk, usize::MAX), naive(&data));
        }

        /// Of a long line that is at fault at least the fault is kept, of any other one all.
        #[test]
        fn only_hopeless_lines_are_cut(
            lines in proptest::collection::vec("[\\[\\]0-9, a]{0,30}", 0..10),
            chunk in 1usize..40,
            long in 4usize..20,
            mark: bool,
        ) {
            let data = ["", "\u{feff}"][usize::from(mark)].to_owned() + &lines.join("\n");
            let mut found = collect(data.as_bytes(), chunk, long);
            let whole = naive(data.as_bytes());
            for (line, whole) in found.iter_mut().zip(&whole) {
                if line.4.len() < whole.4.len() {
                    prop_assert!(line.4.len() >= long && whole.4.starts_with(&line.4));
                    let skip = if mark && line.0 == 0 { 3 } else { 0 };
                    prop_assert!(json::hopeless(&line.4[skip..]).is_some());
                    prop_assert_eq!(json::validate(&line.4[skip..]), json::validate(&whole.4[skip..]));
                    line.4.clone_from(&whole.4);
                }
            }
            prop_assert_eq!(found, whole);
        }
    }

    /// A line of zeros, however long, takes no room.
    #[test]
    fn zeros_take_no_room() {
        struct Zeros;
        impl Source for Zeros {
            fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
                let left = self.size()? - offset;
                let got = left.min(buf.len() as u64) as usize;
                buf[..got].fill(0);
                Ok(got)
            }
            fn size(&self) -> io::Result<u64> {
                Ok(1 << 28)
            }
        }
        let mut reader = LineReader::new(&Zeros, 0, 1, CHUNK);
        let line = reader.next_line().unwrap().unwrap();
        assert_eq!((line.length, line.terminated), (1 << 28, false));
        assert!(line.bytes.len() < 4 * LONG);
        assert!(reader.next_line().unwrap().is_none());
    }
}

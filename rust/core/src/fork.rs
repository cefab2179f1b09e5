//! A copy of a session behind another header.
//!
//! The lines stay as they are, so the kernel copies them from file to file, and the index of the copy
//! is that of the original with other offsets: nothing is read, and nothing is scanned twice. What is
//! read of the copy later is checked line by line, as it always is.

use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::lines;
use crate::place;
use crate::store::{Backing, Options, Store, Tail};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle, scope};

/// What a copy begins with, and where it goes.
#[derive(Debug, Clone, Copy)]
pub struct Copy<'a> {
    /// The new header's line, with its LF.
    pub header: &'a [u8],
    pub target: &'a Path,
    /// Whether to wait until it is on the device.
    pub sync: bool,
}

impl Store {
    /// Writes the session to a new file behind another header, and goes on with that file; all or
    /// nothing. A torn tail stays behind, a whole one gets its LF.
    ///
    /// False, with nothing done, where the header is not a line of its own at the file's start: then
    /// offsets and line numbers would change by more than the header's length.
    pub fn fork(&mut self, copy: Copy<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        if self.header_offset() > 0 || self.lines == 0 {
            return Ok(false);
        }
        let (start, end) = self.body();
        let mut draft = Draft::begin(copy.target)?;
        draft.write(copy.header)?;
        match &self.backing {
            Backing::Memory(text) => draft.write(&text[start as usize..end as usize])?,
            Backing::File(file) => {
                if !draft.copy(file, start..end, go_on)? {
                    return Err(self.cut_at(end));
                }
            }
        }
        self.go_on_behind(copy, draft).map(|()| true)
    }

    /// Opens a session file whose first line is the header `old`, and forks it; the lines are copied
    /// while they are checked.
    ///
    /// None, with nothing done, where the file does not begin like that (any more).
    pub fn open_forked(
        source: &Path,
        old: &[u8],
        copy: Copy<'_>,
        options: Options,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>> {
        let error = |e| Error::io(e, source);
        let (file, meta) = place::open_to_read(source).map_err(error)?;
        let mut line = vec![0; old.len() + 1];
        let is_whole = lines::read_exact_at(&file, &mut line, 0).map_err(error)?;
        if !is_whole || line.strip_suffix(b"\n") != Some(old) {
            return Ok(None);
        }
        let body = line.len() as u64..meta.len();
        let mut draft = Draft::begin(copy.target)?;
        draft.write(copy.header)?;
        let twin = file.try_clone().map_err(error)?;
        let stop = AtomicBool::new(false);
        let copying = || draft.copy(&twin, body.clone(), &mut || !stop.load(Ordering::Relaxed));
        let (opened, copied) = scope(|scope| {
            let copying = Builder::new().spawn_scoped(scope, copying).ok();
            let opened = Self::open_with(source, file, &meta, options, None, go_on);
            stop.store(opened.is_err(), Ordering::Relaxed);
            (opened, copying.map(joined))
        });
        let mut store = opened?;
        let (start, end) = store.body();
        if copied.is_none() || start != body.start || store.header_offset() > 0 {
            return Ok(None);
        }
        if copied.transpose()? == Some(false) {
            return Err(store.cut_at(body.end));
        }
        if end < body.end {
            draft.cut(copy.header.len() as u64 + end - start)?;
        } else if !draft.copy(&twin, body.end..end, go_on)? {
            return Err(store.cut_at(end));
        }
        store.go_on_behind(copy, draft)?;
        Ok(Some(store))
    }

    fn cut_at(&self, end: u64) -> Error {
        let reason = "the file is shorter than when it was read";
        Error::lost(&self.path, end, reason)
    }

    /// Goes on in a copy that has another header, but for the LF of a whole tail all lines.
    fn go_on_behind(&mut self, copy: Copy<'_>, mut draft: Draft) -> Result<()> {
        let head = Self::memory(copy.header.to_vec(), self.options)?;
        let (start, end) = self.body();
        let whole = self.tail == Tail::Whole;
        if whole {
            draft.write(b"\n")?;
        }
        let made = draft.publish(copy.sync)?;
        let new_start = copy.header.len() as u64;
        self.index.move_lines(start, new_start);
        self.report.move_lines(start, new_start);
        self.lines += u64::from(whole);
        self.sealed_end = end - start + new_start + u64::from(whole);
        self.end = self.sealed_end;
        self.tail = Tail::Clean;
        if self.saved_end > 0 {
            self.saved_end = self.saved_end - start + new_start;
        }
        self.take_header_of(head);
        self.go_on_in(copy.target, made);
        Ok(())
    }
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::How;
    use crate::store::known::knowledge;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const OLD: &str =
        "{\"type\":\"session\",\"version\":3,\"id\":\"old\",\"more\":\"a long header\"}\n";
    const NEW: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"new\"}\n";

    fn entry(n: u32, parent: &str) -> String {
        format!(
            "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},\"timestamp\":\
             \"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n"
        )
    }

    fn open(path: &Path) -> Store {
        Store::open(path, Options::default(), &mut || true).unwrap()
    }

    fn copy(target: &Path) -> Copy<'_> {
        Copy {
            header: NEW.as_bytes(),
            target,
            sync: false,
        }
    }

    fn fork(store: &mut Store, to: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        store.fork(copy(to), go_on)
    }

    fn forked(folder: &TempDir, text: &str) -> Option<(Store, PathBuf)> {
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, text).unwrap();
        let mut store = open(&from);
        let done = fork(&mut store, &to, &mut || true).unwrap();
        assert_eq!(std::fs::read_to_string(&from).unwrap(), text);
        assert_eq!(to.exists(), done);
        done.then_some((store, to))
    }

    #[test]
    fn what_is_known_of_a_copy_is_what_a_scan_of_it_finds() {
        let long = entry(1, "null") + &entry(2, "\"00000001\"");
        let odd = format!("\nno json\n{long}{OLD}{{\"type\":\"custom\"}}\nbad");
        for text in [
            &long,
            "",
            &odd,
            long.trim_end(),
            "\n\n",
            &format!("{long}{{\"torn"),
        ] {
            let folder = TempDir::new().unwrap();
            let (mut store, path) = forked(&folder, &format!("{OLD}{text}")).unwrap();
            assert_eq!(knowledge(&mut store), knowledge(&mut open(&path)), "{text}");
            let change = store.append(entry(9, "null").as_bytes(), How::default(), &mut || true);
            assert!(change.unwrap().written);
            assert_eq!(knowledge(&mut store), knowledge(&mut open(&path)), "{text}");
        }
    }

    #[test]
    fn a_file_is_copied_while_it_is_scanned() {
        let long = entry(1, "null") + &entry(2, "\"00000001\"");
        let odd = format!("\nno json\n{long}{OLD}{{\"type\":\"custom\"}}\nbad");
        let many: String = (0..9000).map(|n| entry(n, "null")).collect();
        for text in [
            &long,
            "",
            &odd,
            long.trim_end(),
            "\n\n",
            &format!("{many}{{\"torn"),
        ] {
            let folder = TempDir::new().unwrap();
            let (from, to) = (folder.path().join("old"), folder.path().join("new"));
            std::fs::write(&from, format!("{OLD}{text}")).unwrap();
            let old = OLD.trim_end().as_bytes();
            let store = Store::open_forked(&from, old, copy(&to), Options::default(), &mut || true);
            let mut store = store.unwrap().unwrap();
            assert_eq!(knowledge(&mut store), knowledge(&mut open(&to)), "{text}");
            fork(&mut open(&from), &folder.path().join("twin"), &mut || true).unwrap();
            let twin = std::fs::read(folder.path().join("twin")).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), twin);
        }
    }

    #[test]
    fn a_file_that_begins_otherwise_or_is_given_up_leaves_nothing() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        let many: String = (0..40_000).map(|n| entry(n, "null")).collect();
        std::fs::write(&from, format!("{OLD}{many}")).unwrap();
        let old = OLD.trim_end();
        let forked = |old: &str, on: bool| {
            Store::open_forked(
                &from,
                old.as_bytes(),
                copy(&to),
                Options::default(),
                &mut || on,
            )
        };
        assert!(forked(&old[1..], true).unwrap().is_none());
        assert!(forked("", true).unwrap().is_none());
        assert!(forked(&many.repeat(2), true).unwrap().is_none());
        std::fs::write(&to, "mine").unwrap();
        assert!(forked(old, true).is_err());
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_header_that_does_not_begin_the_file_is_left_to_others() {
        for text in [
            format!("\n{OLD}{}", entry(1, "null")),
            format!("\u{feff}{OLD}"),
            OLD.trim_end().into(),
        ] {
            assert!(forked(&TempDir::new().unwrap(), &text).is_none());
        }
    }

    #[test]
    fn a_session_in_memory_is_written_as_well() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("new");
        let text = format!("{OLD}{}", entry(1, "null"));
        let mut store = Store::memory(text.into_bytes(), Options::default()).unwrap();
        assert!(fork(&mut store, &path, &mut || true).unwrap());
        assert_eq!(knowledge(&mut store), knowledge(&mut open(&path)));
    }

    #[test]
    fn a_source_that_was_cut_gives_no_copy() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, format!("{OLD}{}", entry(1, "null"))).unwrap();
        let mut store = open(&from);
        std::fs::write(&from, OLD).unwrap();
        assert!(fork(&mut store, &to, &mut || true).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(store.path(), from);
    }

    #[test]
    fn nothing_is_left_where_the_name_is_taken_or_the_user_gives_up() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, format!("{OLD}{}", entry(1, "null"))).unwrap();
        let mut store = open(&from);
        assert!(fork(&mut store, &to, &mut || false).is_err());
        assert!(!to.exists());
        std::fs::write(&to, "mine").unwrap();
        assert!(fork(&mut store, &to, &mut || true).is_err());
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

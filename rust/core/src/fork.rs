//! A copy of a session behind another header.
//!
//! The lines stay as they are, so the kernel copies them from file to file, and the index of the copy
//! is that of the original with other offsets: nothing is read, and nothing is scanned twice. What is
//! read of the copy later is checked line by line, as it always is.

use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::store::{Backing, Store, Tail};
use std::path::Path;

impl Store {
    /// Writes the session to a new file behind `header` (a line with its LF), and goes on with that
    /// file; all or nothing. A torn tail stays behind, a whole one gets its LF.
    ///
    /// False, with nothing done, where the header is not a line of its own at the file's start: then
    /// offsets and line numbers would change by more than the header's length.
    pub fn fork(
        &mut self,
        path: &Path,
        header: &[u8],
        sync: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        if self.header_offset() > 0 || self.lines == 0 {
            return Ok(false);
        }
        let head = Self::memory(header.to_vec(), self.options)?;
        let (start, end) = self.body();
        let mut draft = Draft::begin(path)?;
        draft.write(header)?;
        match &self.backing {
            Backing::Memory(text) => draft.write(&text[start as usize..end as usize])?,
            Backing::File(file) => {
                if !draft.copy(file, start..end, go_on)? {
                    return Err(Error::lost(
                        &self.path,
                        end,
                        "the file is shorter than when it was read",
                    ));
                }
            }
        }
        let whole = self.tail == Tail::Whole;
        if whole {
            draft.write(b"\n")?;
        }
        let made = draft.publish(sync)?;
        let new_start = header.len() as u64;
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
        self.go_on_in(path, made);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::How;
    use crate::store::Options;
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

    /// What a store knows, without its path.
    fn knowledge(store: &mut Store) -> String {
        let rows = 0..store.index().len() as u32;
        let lines: Vec<_> = rows
            .map(|r| {
                let index = store.index();
                let about = (index.span(r), index.parent(r), index.kind(r), index.id(r));
                (about, store.line(r).unwrap())
            })
            .collect();
        let ends = (store.end, store.sealed_end, store.lines, store.tail);
        let head = (store.header().to_vec(), store.session.clone(), store.body());
        format!("{lines:?} {ends:?} {head:?} {:?}", store.report())
    }

    fn forked(folder: &TempDir, text: &str) -> Option<(Store, PathBuf)> {
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, text).unwrap();
        let mut store = open(&from);
        let done = store
            .fork(&to, NEW.as_bytes(), false, &mut || true)
            .unwrap();
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
        assert!(
            store
                .fork(&path, NEW.as_bytes(), true, &mut || true)
                .unwrap()
        );
        assert_eq!(knowledge(&mut store), knowledge(&mut open(&path)));
    }

    #[test]
    fn a_source_that_was_cut_gives_no_copy() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, format!("{OLD}{}", entry(1, "null"))).unwrap();
        let mut store = open(&from);
        std::fs::write(&from, OLD).unwrap();
        assert!(
            store
                .fork(&to, NEW.as_bytes(), false, &mut || true)
                .is_err()
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(store.path(), from);
    }

    #[test]
    fn nothing_is_left_where_the_name_is_taken_or_the_user_gives_up() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&from, format!("{OLD}{}", entry(1, "null"))).unwrap();
        let mut store = open(&from);
        assert!(
            store
                .fork(&to, NEW.as_bytes(), false, &mut || false)
                .is_err()
        );
        assert!(!to.exists());
        std::fs::write(&to, "mine").unwrap();
        assert!(
            store
                .fork(&to, NEW.as_bytes(), false, &mut || true)
                .is_err()
        );
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

use super::*;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use tempfile::TempDir;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n";
/// As many lines of this length make a file that is worth an index.
const ROWS: usize = 9;
const TEXT: usize = 500_000;
/// A clock that goes three seconds before the file's.
const LATER: u64 = 3_000_000_000;

fn line(row: usize, text: usize) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{row:08x}\",\"parentId\":null,\"message\":{{\"role\":\"user\",\
         \"content\":\"{}\"}}}}\n",
        "x".repeat(text)
    )
}

/// A session file with a saved index.
struct Case {
    folder: TempDir,
    path: PathBuf,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines: String = (0..ROWS).map(|row| line(row, TEXT)).collect();
        fs::write(&path, format!("{HEADER}{lines}")).unwrap();
        let case = Self { folder, path };
        Store::open(&case.path, Options::default(), &mut || true)
            .unwrap()
            .save_index(&case.cache(), now() + LATER);
        assert!(case.saved().exists());
        case
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn saved(&self) -> PathBuf {
        place(&self.cache(), &self.path)
    }

    fn load(&self) -> Option<Saved> {
        let (file, meta) = files::open_to_read(&self.path).unwrap();
        load(&self.cache(), &self.path, &file, &meta)
    }

    fn open(&self) -> Store {
        Store::open_cached(&self.path, Options::default(), &self.cache(), &mut || true).unwrap()
    }

    /// Writes over a part of the file, and appends a line: it has grown, and its ends are the same.
    fn edit_and_grow(&self, row: usize, text: &str) {
        let at = HEADER.len() + row * line(0, TEXT).len();
        let file = File::options().write(true).open(&self.path).unwrap();
        file.write_all_at(text.as_bytes(), at as u64).unwrap();
        let end = file.metadata().unwrap().len();
        file.write_all_at(line(ROWS, 10).as_bytes(), end).unwrap();
    }
}

fn content(store: &mut Store, row: Row) -> Result<Vec<u8>> {
    store.read_checked(|store| store.line(row), &mut || true)
}

/// Whatever byte is damaged, and wherever the bytes end, the index is not believed.
#[test]
fn every_damaged_byte_is_noticed() {
    let case = Case::new();
    assert!(case.load().is_some());
    let sound = fs::read(case.saved()).unwrap();
    for at in 0..sound.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = sound.clone();
            damaged[at] ^= change;
            fs::write(case.saved(), &damaged).unwrap();
            assert!(case.load().is_none(), "{at} {change}");
        }
        fs::write(case.saved(), &sound[..at]).unwrap();
        assert!(case.load().is_none(), "{at}");
    }
    fs::write(case.saved(), [&sound[..], b"x"].concat()).unwrap();
    assert!(case.load().is_none());
}

/// Bytes that nobody wrote, with a check sum that holds, give no index and no panic.
#[test]
fn made_up_bytes_with_the_right_sum_do_no_harm() {
    let case = Case::new();
    let sound = fs::read(case.saved()).unwrap();
    for at in 16..sound.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = sound[16..].to_vec();
            damaged[at - 16] ^= change;
            let sum = xxh3_64(&damaged).to_le_bytes();
            fs::write(case.saved(), [MAGIC, &sum[..], &damaged].concat()).unwrap();
            if let Some(saved) = case.load() {
                // A wrong place is noticed when a line is read there.
                let (file, meta) = files::open_to_read(&case.path).unwrap();
                let options = Options::default();
                let store =
                    Store::open_with(&case.path, file, &meta, options, Some(saved), &mut || true);
                let store = store.unwrap();
                for row in 0..store.index().len() as Row {
                    let _ = store.line(row);
                }
            }
        }
    }
}

/// Every mark of the file must be the one that was saved; only growth is looked at more closely.
#[test]
fn each_mark_of_the_file_counts() {
    let then = Stamp {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: 4,
        ctime: 5,
    };
    let at = then.ctime + RACY;
    assert!(is_believed(then, at, then));
    let others = [
        Stamp { dev: 9, ..then },
        Stamp { ino: 9, ..then },
        Stamp { size: 2, ..then },
        Stamp { mtime: 9, ..then },
        Stamp { ctime: 9, ..then },
        Stamp {
            size: 9,
            ino: 9,
            ..then
        },
        Stamp {
            size: 9,
            dev: 9,
            ..then
        },
    ];
    for now in others {
        assert!(!is_believed(then, at + 9, now), "{now:?}");
    }
    let grown = Stamp {
        size: 9,
        mtime: 9,
        ctime: 9,
        ..then
    };
    assert!(is_believed(then, at, grown));
}

/// What was saved too soon after a change, or before it by a clock that was set back, is no proof.
#[test]
fn a_clock_that_was_set_back_makes_nothing_believable() {
    let stamp = Stamp {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: RACY,
        ctime: RACY,
    };
    for at in [0, RACY - 1, RACY, 2 * RACY - 1] {
        assert!(!is_believed(stamp, at, stamp), "{at}");
    }
    let case = Case::new();
    fs::remove_file(case.saved()).unwrap();
    let store = Store::open(&case.path, Options::default(), &mut || true).unwrap();
    for at in [0, now() - LATER, now()] {
        store.save_index(&case.cache(), at);
        assert!(!case.saved().exists(), "{at}");
    }
}

/// A change at either end of what was indexed is noticed, though the file has grown since.
#[test]
fn the_ends_are_compared_after_growth() {
    let case = Case::new();
    case.edit_and_grow(3, "{");
    assert!(case.open().saved_end() > 0);
    let header = HEADER.replace("\"s\"", "\"t\"");
    let case = Case::new();
    let file = File::options().write(true).open(&case.path).unwrap();
    file.write_all_at(header.as_bytes(), 0).unwrap();
    case.edit_and_grow(3, "{");
    assert_eq!(case.open().saved_end(), 0);
    let case = Case::new();
    let end = fs::metadata(&case.path).unwrap().len();
    let file = File::options().write(true).open(&case.path).unwrap();
    file.write_all_at(b"y", end - 100).unwrap();
    case.edit_and_grow(3, "{");
    assert_eq!(case.open().saved_end(), 0);
}

/// Lines whose ends have moved are found by a scan, and read as they are now.
#[test]
fn a_line_that_moved_is_found_by_a_scan() {
    let case = Case::new();
    let (first, second) = (line(3, TEXT - 10), line(4, TEXT + 10));
    case.edit_and_grow(3, &format!("{first}{second}"));
    for row in [3, 4] {
        let mut store = case.open();
        let is_first = row == 3;
        if is_first {
            assert!(store.saved_end() > 0);
            assert!(store.line(row).is_err());
        }
        let wanted = if is_first { &first } else { &second };
        assert_eq!(
            content(&mut store, row).unwrap(),
            wanted.trim_end().as_bytes()
        );
        assert_eq!(store.saved_end(), 0);
        assert!(!case.saved().exists());
        assert_eq!(store.index().len(), ROWS + 1);
        assert_eq!(
            content(&mut store, ROWS as Row).unwrap(),
            line(ROWS, 10).trim_end().as_bytes()
        );
    }
}

/// Where a scan finds other entries than the saved index told, rows mean nothing any more: that is an
/// error, and the next open scans.
#[test]
fn another_entry_in_a_lines_place_is_an_error_once() {
    let case = Case::new();
    case.edit_and_grow(3, &line(0x77, TEXT));
    let mut store = case.open();
    assert!(store.saved_end() > 0);
    let error = content(&mut store, 3).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost { .. }));
    let mut store = case.open();
    assert_eq!(store.saved_end(), 0);
    assert_eq!(
        content(&mut store, 3).unwrap(),
        line(0x77, TEXT).trim_end().as_bytes()
    );
}

/// A torn or whole tail behind the saved part is still there after a scan.
#[test]
fn the_tail_outlives_a_scan() {
    for (tail, rows) in [
        ("{\"type\":\"mess", ROWS),
        (line(ROWS, 10).trim_end(), ROWS + 1),
    ] {
        let case = Case::new();
        let moved = format!("{}{}", line(3, TEXT - 10), line(4, TEXT + 10));
        let at = HEADER.len() + 3 * line(0, TEXT).len();
        let file = File::options().write(true).open(&case.path).unwrap();
        file.write_all_at(moved.as_bytes(), at as u64).unwrap();
        let end = file.metadata().unwrap().len();
        file.write_all_at(tail.as_bytes(), end).unwrap();
        let mut store = case.open();
        let before = store.tail();
        content(&mut store, 3).unwrap();
        assert_eq!((store.tail(), store.index().len()), (before, rows));
    }
}

/// All saved indexes together have a size; the oldest go first, and so does what writers left behind.
#[test]
fn the_oldest_saved_indexes_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, size, age| {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_len(size).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(time).unwrap();
        file
    };
    make("old.index", ROOM / 2, 300);
    make("middle.index", ROOM / 2, 200);
    make("new.index", 1, 100);
    make("dead.tmp", 1, 10);
    let writing = make("writing.tmp", 1, 4000);
    writing.lock().unwrap();
    make("another", ROOM, 9000);
    tidy(folder.path()).unwrap();
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["another", "middle.index", "new.index", "writing.tmp"]
    );
}

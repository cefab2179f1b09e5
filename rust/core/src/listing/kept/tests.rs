use super::super::{Depth, Order};
use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

const LATER: i64 = i64::MAX;

fn find(root: &Path, kept: &Path, settled: i64) -> KeptFiles {
    let options = Options {
        order: Order::Listed,
        depth: Depth::Own,
        lenient: false,
        threads: 2,
    };
    KeptFiles::find(root, options, Some(kept), settled, &mut || true).unwrap()
}

fn write(path: &Path, text: &str) {
    let header = "{\"type\":\"session\",\"id\":\"a\"}\n";
    let line = format!("{{\"type\":\"session_info\",\"name\":\"{text}\"}}\n");
    fs::write(path, [header, &line].concat()).unwrap();
    set_time(path, 5);
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Lists a folder, keeps what may be kept, and gives the names of all files, and of those that were read.
fn listed(root: &Path, kept: &Path, settled: i64) -> (Vec<String>, Vec<String>) {
    let mut files = find(root, kept, settled);
    let mut rows = files.known();
    let mut read = Vec::new();
    loop {
        let batch = files.read(2, u64::MAX, &mut || true).unwrap();
        if batch.is_empty() {
            break;
        }
        for (path, shown) in batch {
            read.push(name(&path));
            if let Ok((shown, mark)) = shown {
                rows.push(Row { path, shown, mark });
            }
        }
    }
    assert_eq!(read.len(), files.len());
    if files.is_stale() {
        fs::write(kept, text_of(&rows)).unwrap();
    }
    let mut names: Vec<_> = rows.iter().map(|row| name(&row.path)).collect();
    names.sort();
    read.sort();
    (names, read)
}

fn text_of(rows: &[Row]) -> Vec<u8> {
    let kept = rows.iter().filter_map(|row| Some((row, row.mark?)));
    let kept: Vec<_> = kept
        .map(|(row, mark)| (row.path.as_path(), &row.shown, mark))
        .collect();
    written(kept.into_iter())
}

#[test]
fn only_files_that_are_not_as_they_were_are_read() {
    let root = tempfile::tempdir().unwrap();
    let (folder, kept) = (root.path().join("sessions"), root.path().join("kept"));
    fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(format!("{name}.jsonl"));
    for name in ["a", "b", "c", "d"] {
        write(&path(name), name);
    }
    let expect = |all: &str, read: &str| {
        let (names, found) = listed(&folder, &kept, LATER);
        assert_eq!(
            (names.join(" "), found.join(" ")),
            (all.into(), read.into())
        );
    };
    expect("a b c d", "a b c d");
    expect("a b c d", "");
    set_time(&path("a"), 6);
    write(&path("b"), "longer");
    fs::remove_file(path("c")).unwrap();
    expect("a b d", "a b");
    expect("a b d", "");
    fs::write(path("bad"), "no session").unwrap();
    expect("a b d", "bad");
    expect("a b d", "bad");
    #[cfg(unix)]
    {
        // As long and as old as the one that stood here.
        let other = root.path().join("other");
        write(&other, "e");
        fs::rename(other, path("d")).unwrap();
        expect("a b d", "bad d");
    }
    fs::write(&kept, "damaged").unwrap();
    expect("a b d", "a b bad d");
    fs::remove_file(&kept).unwrap();
    fs::create_dir(&kept).unwrap();
    assert_eq!(find(&folder, &kept, LATER).len(), 4);
}

#[test]
fn what_changed_just_now_is_not_kept() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("a.jsonl"), "a");
    let kept = root.path().join("kept");
    for _ in 0..2 {
        assert_eq!(listed(root.path(), &kept, 5_000_000_000).1, ["a"]);
        assert!(!kept.exists());
    }
}

#[test]
fn what_changed_between_the_look_and_the_reading_is_not_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.jsonl");
    write(&path, "a");
    let mut files = find(root.path(), &root.path().join("kept"), LATER);
    write(&path, "other");
    let rows = files.read(1, 1, &mut || true).unwrap();
    assert!(matches!(rows[..], [(_, Ok((_, None)))]));
    assert!(!files.is_stale());
}

#[test]
fn giving_up_is_told() {
    let root = tempfile::tempdir().unwrap();
    let many = 3000;
    for number in 0..many {
        fs::write(root.path().join(format!("{number}.jsonl")), "").unwrap();
    }
    let mut files = find(root.path(), root.path(), LATER);
    let result = files.read(many, u64::MAX, &mut || false);
    // It may be done before the question is asked.
    match result {
        Ok(rows) => assert_eq!(rows.len(), many),
        Err(error) => assert!(matches!(error.kind(), ErrorKind::Cancelled)),
    }
}

#[test]
fn a_first_message_is_cut_between_characters() {
    for sign in ["a", "ü", "語", "😀"] {
        for (count, left) in [(999, 999), (1000, 1000), (1001, 1000), (5000, 1000)] {
            let mut text = sign.repeat(count).into_bytes();
            shorten(&mut text);
            assert_eq!(String::from_utf8(text).unwrap(), sign.repeat(left));
        }
    }
    // A lone surrogate is one character.
    let mut text = b"\xed\xa0\x80".repeat(1001);
    shorten(&mut text);
    assert_eq!(text.len(), 3000);
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..20)
}

fn optional() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(bytes())
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![-1e300..1e300, Just(f64::INFINITY), Just(-0.0), Just(3.0)]
}

fn summary() -> impl Strategy<Value = Summary> {
    let texts = (bytes(), bytes(), bytes());
    let perhaps = (optional(), optional(), optional(), optional());
    let numbers = any::<(i64, i64, u64, u64, u64)>();
    let headers = (
        proptest::option::of(number()),
        any::<Option<i64>>(),
        number(),
    );
    (texts, perhaps, numbers, headers).prop_map(|(texts, perhaps, numbers, headers)| {
        let (modified, mtime, messages, skipped, size): (i64, i64, u64, u64, u64) = numbers;
        Summary {
            id: texts.0,
            cwd: texts.1,
            first_message: texts.2,
            parent: perhaps.0,
            name: perhaps.1,
            last_role: perhaps.2,
            stop_reason: perhaps.3,
            version: headers.0,
            created: headers.1,
            cost: headers.2,
            modified,
            mtime,
            messages,
            skipped,
            size,
        }
    })
}

fn row() -> impl Strategy<Value = Row> {
    ("[a-zü/.]{0,12}", summary(), any::<(u64, i64)>()).prop_map(|(path, shown, mark)| Row {
        path: path.into(),
        shown,
        mark: Some(Mark {
            inode: mark.0,
            changed: mark.1,
        }),
    })
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were_and_damage_is_noticed(rows in proptest::collection::vec(row(), 0..4)) {
        let file = text_of(&rows);
        let old = read(&file).unwrap();
        prop_assert_eq!(old.len(), rows.len());
        for (old, row) in old.iter().zip(&rows) {
            prop_assert_eq!(&old.path[..], row.path.as_os_str().as_encoded_bytes());
            prop_assert_eq!(&old.shown, &row.shown);
            prop_assert_eq!(Some(old.mark), row.mark);
        }
        for at in 0..file.len() {
            prop_assert!(read(&file[..at]).is_none(), "cut at {}", at);
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            prop_assert!(read(&damaged).is_none(), "byte {}", at);
        }
        prop_assert!(read(&[&file[..], b"x"].concat()).is_none());
    }

    #[test]
    fn bytes_that_only_their_own_check_sum_speaks_for_do_no_harm(
        rows in proptest::collection::vec(row(), 0..4),
        changes in proptest::collection::vec((any::<usize>(), any::<u64>()), 1..6),
        noise in bytes(),
    ) {
        let mut body = text_of(&rows).split_off(FIRST_LINE);
        for (at, number) in changes {
            let at = (at % body.len()) & !7;
            let end = body.len().min(at + 8);
            body[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
        for body in [body, noise] {
            let file = [first_line(xxh3_64(&body)).as_bytes(), &body].concat();
            prop_assert!(read(&file).is_none_or(|rows| rows.len() <= file.len()));
        }
    }
}

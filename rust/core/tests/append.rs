//! Appends and new files, without Python: what others do to the file meanwhile, and what is refused.
#![allow(clippy::unwrap_used)]

use sessiontree_core::ErrorKind;
use sessiontree_core::append::How;
use sessiontree_core::draft::{self, Draft};
use sessiontree_core::store::{Options, Store, Tail};
use std::fs;
use std::io::Write;
use std::path::Path;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"cwd\":\"/\"}\n";

fn line(id: &str) -> String {
    format!("{{\"type\":\"custom\",\"id\":\"{id}\",\"parentId\":null}}\n")
}

fn open(path: &Path) -> Store {
    Store::open(path, Options::default(), &mut || true).unwrap()
}

fn append(store: &mut Store, id: &str) -> sessiontree_core::append::Change {
    store
        .append(line(id).as_bytes(), How::default(), &mut || true)
        .unwrap()
}

fn by_others(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_others_append_stands_before_what_we_append() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, HEADER).unwrap();
    let mut store = open(&path);
    append(&mut store, "a1");
    by_others(&path, &(line("b1") + "{\"torn"));
    let change = append(&mut store, "a2");
    assert_eq!((change.foreign, change.sealed), (1, true));
    assert_eq!(store.index().len(), 3);
    let text = [HEADER, &line("a1"), &line("b1"), "{\"torn\n", &line("a2")].concat();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(store.line(2).unwrap(), line("a2").trim_end().as_bytes());
}

#[test]
fn an_unterminated_line_waits_for_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, HEADER).unwrap();
    let mut store = open(&path);
    by_others(&path, line("b1").trim_end());
    store.refresh(&mut || true).unwrap();
    assert_eq!((store.index().len(), store.tail()), (0, Tail::Torn));
    by_others(&path, "\n");
    assert_eq!(store.refresh(&mut || true).unwrap().foreign, 1);
    assert_eq!(store.tail(), Tail::Clean);
}

#[test]
fn strict_takes_nothing_in_and_another_session_is_no_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, HEADER).unwrap();
    let mut store = open(&path);
    by_others(&path, &line("b1"));
    let strict = How {
        strict: true,
        ..How::default()
    };
    let refused = store.append(line("a1").as_bytes(), strict, &mut || true);
    assert!(matches!(
        refused.unwrap_err().kind(),
        ErrorKind::Conflict { .. }
    ));
    assert_eq!(store.index().len(), 0);
    fs::remove_file(&path).unwrap();
    fs::write(&path, HEADER.replace("s1", "s2")).unwrap();
    let lost = store.append(line("a1").as_bytes(), How::default(), &mut || true);
    assert!(matches!(lost.unwrap_err().kind(), ErrorKind::Lost { .. }));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        HEADER.replace("s1", "s2")
    );
}

#[test]
fn a_vanished_file_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("s.jsonl");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, HEADER.to_owned() + &line("a1")).unwrap();
    let mut store = open(&path);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert!(append(&mut store, "a2").rebuilt);
    let text = [HEADER, &line("a1"), &line("a2")].concat();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_new_file_takes_a_free_name_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut draft = Draft::begin(&path).unwrap();
    draft.write(b"new").unwrap();
    fs::write(&path, "other").unwrap();
    assert!(draft.publish(false).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    fs::write(&path, "").unwrap();
    draft::create(&path, &[b"a", b"b"], true).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "ab");
}

#[test]
fn a_sweep_takes_the_dead_and_leaves_the_living() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let alive = Draft::begin(&path).unwrap();
    fs::write(folder.path().join(".7.sessiontree-tmp"), "dead").unwrap();
    assert_eq!(draft::sweep(&path), 1);
    assert_eq!(draft::sweep(&path), 0);
    alive.publish(false).unwrap();
    assert!(path.exists());
}

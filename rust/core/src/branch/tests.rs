//! Branched sessions against a naive twin on parsed values, and their index against a scan.

use super::*;
use crate::store::known::knowledge;
use crate::walk;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

const OLD: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"old\"}\n";
const NEW: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"new\",\"more\":1}\n";
const MORE: &str =
    "{\"type\":\"label\",\"id\":\"99999999\",\"parentId\":null,\"targetId\":\"x\"}\n";

fn open(path: &Path) -> Store {
    Store::open(path, Options::default(), &mut || true).unwrap()
}

/// The text that the new session must have: unchanged lines to the byte, others by their values.
fn twin(store: &Store, path: &[Row]) -> Vec<std::result::Result<Vec<u8>, Value>> {
    let value = |row: Row| serde_json::from_slice::<Value>(&store.line(row).unwrap()).unwrap();
    let is_label = |row: &Row| value(*row)["type"] == "label";
    let mut parent = Value::Null;
    let mut out = Vec::new();
    for (at, &row) in path.iter().enumerate().filter(|(_, row)| !is_label(row)) {
        let mut entry = value(row);
        let before = entry.clone();
        let id = entry["id"].clone();
        let is_numbers_child = at > 0 && parent.is_null() && !is_label(&path[at - 1]);
        if !is_numbers_child {
            entry["parentId"] = parent;
        }
        let first = entry["firstKeptEntryId"].clone();
        let dropped = path
            .iter()
            .position(|row| value(*row)["id"] == first && is_label(row));
        if let Some(at) = dropped.filter(|_| entry["type"] == "compaction" && first != id) {
            let mut behind = path[at..].iter().filter(|row| !is_label(row));
            if let Some(&next) = behind.find(|row| value(**row)["id"].is_string()) {
                entry["firstKeptEntryId"] = value(next)["id"].clone();
            }
        }
        let same = entry == before && before.get("parentId").is_some();
        out.push(if same {
            Ok(store.line(row).unwrap())
        } else {
            Err(entry)
        });
        parent = if id.is_string() { id } else { Value::Null };
    }
    out
}

fn check(store: &Store, leaf: Row, long: u64) {
    let Ok(path) = walk::path(store.index(), store.index().owner(leaf)) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("new");
    let parts = Parts {
        header: NEW.as_bytes(),
        path: &path,
        more: MORE.as_bytes(),
    };
    let talks = Plan::new(store.index(), &path, long).talks;
    let mut made = store
        .branch_by(long, parts, Some(&target), false, &mut || true)
        .unwrap();
    assert_eq!(target.exists(), talks);
    let mut in_memory = store
        .branch_by(long, parts, None, false, &mut || true)
        .unwrap();
    let text = in_memory.read(0, in_memory.end()).unwrap();
    assert_eq!(made.read(0, made.end()).unwrap(), text);
    let mut scanned = Store::memory(text.clone(), Options::default()).unwrap();
    assert_eq!(knowledge(&mut in_memory), knowledge(&mut scanned));
    assert_eq!(knowledge(&mut made), knowledge(&mut scanned));
    let body = text
        .strip_prefix(NEW.as_bytes())
        .unwrap()
        .strip_suffix(MORE.as_bytes())
        .unwrap();
    let lines: Vec<&[u8]> = body.split_inclusive(|&b| b == b'\n').collect();
    let wanted = twin(store, &path);
    assert_eq!(lines.len(), wanted.len());
    for (line, wanted) in lines.iter().zip(wanted) {
        let line = line.strip_suffix(b"\n").unwrap();
        match wanted {
            Ok(text) => assert_eq!(line, text),
            Err(value) => assert_eq!(serde_json::from_slice::<Value>(line).unwrap(), value),
        }
    }
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..12_u8).prop_map(|n| json!(format!("{n:08x}"))),
        2 => (0..4_u8).prop_map(|n| json!(format!("id \" {n}"))),
        1 => (0..3_u8).prop_map(|n| json!(n)),
    ]
}

/// An entry's text; its parent is most often the entry before.
fn entry() -> impl Strategy<Value = (Value, Option<Value>)> {
    let kind = prop_oneof![
        3 => Just("message"), 2 => Just("label"), 1 => Just("compaction"), 1 => Just("custom")
    ];
    let parent =
        prop_oneof![6 => Just(None), 1 => id().prop_map(Some), 1 => Just(Some(Value::Null))];
    (kind, id(), parent, id(), 0..3_usize).prop_map(|(kind, id, parent, other, pad)| {
        let mut entry = json!({"type": kind, "id": id, "timestamp": "2026-01-01T00:00:00.000Z"});
        let roles = ["user", "system", "assistant"];
        match kind {
            "message" => entry["message"] = json!({"role": roles[pad]}),
            "compaction" => entry["firstKeptEntryId"] = other,
            _ => {}
        }
        entry["pad"] = json!(" ".repeat(pad * 20));
        (entry, parent)
    })
}

fn text_of(entries: &[(Value, Option<Value>)], noise: &[&str], whole_tail: bool) -> String {
    let mut text = OLD.to_owned();
    let mut before = Value::Null;
    for (n, (entry, parent)) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        entry["parentId"] = parent.clone().unwrap_or(before);
        before = entry["id"].clone();
        text += &entry.to_string();
        text += "\n";
        text += noise.get(n).unwrap_or(&"");
    }
    if whole_tail {
        text.trim_end().to_owned()
    } else {
        text
    }
}

proptest! {
    /// The text is that of the twin, and what is known of it what a scan finds.
    #[test]
    fn a_branch_is_what_the_twin_says(
        entries in prop::collection::vec(entry(), 1..14),
        noise in prop::collection::vec(prop_oneof![4 => Just(""), 1 => Just("\n"), 1 => Just("no\n")], 0..6),
        whole_tail: bool,
        leaf: prop::sample::Index,
        long in prop_oneof![Just(1_u64), 50..600_u64, Just(LONG)],
    ) {
        let text = text_of(&entries, &noise, whole_tail);
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("old");
        std::fs::write(&path, &text).unwrap();
        let store = open(&path);
        let leaf = leaf.index(store.index().len()) as Row;
        check(&store, leaf, long);
        check(&Store::memory(text.clone().into_bytes(), Options::default()).unwrap(), leaf, long);
        prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

fn entry_text(n: u32, pad: usize) -> String {
    let parent = if n == 0 {
        "null".into()
    } else {
        format!("\"{:08x}\"", n - 1)
    };
    let pad = "x".repeat(pad);
    format!(
        "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},\"timestamp\":\
         \"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{pad}\"}}}}\n"
    )
}

fn branch(store: &Store, to: &Path, go_on: GoOn<'_>) -> Result<Store> {
    let path: Vec<Row> = (0..store.index().len() as Row).collect();
    let parts = Parts {
        header: NEW.as_bytes(),
        path: &path,
        more: b"",
    };
    store.branch(parts, Some(to), false, go_on)
}

#[test]
fn long_runs_and_lines_longer_than_them_are_copied_whole() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("old"), folder.path().join("new"));
    let lines: String = (0..40)
        .map(|n| entry_text(n, if n == 20 { 2 << 20 } else { 70_000 }))
        .collect();
    std::fs::write(&from, format!("{OLD}{lines}")).unwrap();
    let mut made = branch(&open(&from), &to, &mut || true).unwrap();
    assert_eq!(
        std::fs::read_to_string(&to).unwrap(),
        format!("{NEW}{lines}")
    );
    assert_eq!(knowledge(&mut made), knowledge(&mut open(&to)));
    let change = made.append(entry_text(40, 1).as_bytes(), How::default(), &mut || true);
    assert!(change.unwrap().written);
    assert_eq!(knowledge(&mut made), knowledge(&mut open(&to)));
}

#[test]
fn a_source_that_was_cut_or_changed_gives_no_session() {
    for (pad, cut) in [(10, true), (10, false), (400_000, true), (400_000, false)] {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("old"), folder.path().join("new"));
        let lines: String = (0..9).map(|n| entry_text(n, pad)).collect();
        std::fs::write(&from, format!("{OLD}{lines}")).unwrap();
        let store = open(&from);
        let text = if cut {
            OLD.to_owned()
        } else {
            format!("{OLD}{}", "z".repeat(lines.len()))
        };
        std::fs::write(&from, text).unwrap();
        assert!(branch(&store, &to, &mut || true).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn nothing_is_left_where_the_name_is_taken_or_the_user_gives_up() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("old"), folder.path().join("new"));
    std::fs::write(&from, format!("{OLD}{}", entry_text(0, 1))).unwrap();
    assert!(branch(&open(&from), &to, &mut || false).is_err());
    assert!(!to.exists());
    std::fs::write(&to, "mine").unwrap();
    assert!(branch(&open(&from), &to, &mut || true).is_err());
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn an_empty_file_is_given_its_content() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("old"), folder.path().join("new"));
    std::fs::write(&from, format!("{OLD}{}", entry_text(0, 1))).unwrap();
    std::fs::write(&to, "").unwrap();
    let mut made = branch(&open(&from), &to, &mut || true).unwrap();
    assert_eq!(knowledge(&mut made), knowledge(&mut open(&to)));
}

//! Migrated files against a twin that works on parsed values, and byte by byte where nothing changes.

use super::*;
use crate::store::Options;
use crate::store::known::knowledge;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn store(text: &[u8]) -> Store {
    Store::memory(text.to_vec(), Options::default()).unwrap()
}

fn migrated(text: &[u8], ids: Ids, block: u64) -> Vec<u8> {
    let store = store(text);
    let mut migration = Migration::new(&store, ids);
    migration.blocks.size = block;
    let mut out = Vec::new();
    while let Some(part) = migration.next_part(&store).unwrap() {
        out.extend_from_slice(part);
    }
    out
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

const HEADER: &str = r#"{"type":"session","id":"s"}"#;

fn file(lines: &[&str]) -> Vec<u8> {
    let mut all = vec![HEADER];
    all.extend(lines);
    (all.join("\n") + "\n").into_bytes()
}

/// The lines behind the header, with given ids `n1`, `n2`, ...
fn with_given(lines: &[&str]) -> Vec<String> {
    let ids = (1..=lines.len()).map(|n| format!("\"n{n}\"").into_bytes());
    let out = text_of(migrated(&file(lines), Ids::Given(ids.collect()), 1 << 20));
    let mut lines = out.lines().map(str::to_owned);
    assert_eq!(
        lines.next().unwrap(),
        r#"{"type":"session","id":"s","version":3}"#
    );
    lines.collect()
}

#[test]
fn ids_and_parents_are_added_in_order() {
    assert_eq!(
        with_given(&[
            r#"{"type":"message","x":1e400 }"#,
            "{}",
            r#"{ "id":5,"parentId" : "x"}"#
        ]),
        [
            r#"{"type":"message","x":1e400,"id":"n1","parentId":null }"#,
            r#"{"id":"n2","parentId":"n1"}"#,
            r#"{ "id":"n3","parentId" : "n2"}"#,
        ]
    );
}

#[test]
fn ids_of_their_own_stay() {
    let lines = [
        r#"{"id":"a\u0062"}"#,
        r#"{"id":"twice"}"#,
        r#"{"id":"twice"}"#,
        r#"{"id":""}"#,
        r#"{"id":null}"#,
    ];
    assert_eq!(
        with_given(&lines),
        [
            r#"{"id":"a\u0062","parentId":null}"#,
            r#"{"id":"n2","parentId":"a\u0062"}"#,
            r#"{"id":"twice","parentId":"n2"}"#,
            r#"{"id":"n4","parentId":"twice"}"#,
            r#"{"id":"n5","parentId":"n4"}"#,
        ]
    );
}

#[test]
fn lines_that_hold_no_entry_stay_and_are_not_in_the_chain() {
    let lines = [
        r#"{"a":1}"#,
        "5",
        "",
        "bad",
        "0",
        " [1] ",
        "\"id\"",
        r#"{"b":2}"#,
    ];
    let expected = [
        r#"{"a":1,"id":"n1","parentId":null}"#,
        "5",
        "",
        "bad",
        "0",
        " [1] ",
        "\"id\"",
        r#"{"b":2,"id":"n5","parentId":"n1"}"#,
    ];
    assert_eq!(with_given(&lines), expected);
}

/// What the compaction keeps, for an index of `text`.
fn kept(text: &str) -> String {
    let compaction = format!(r#"{{"type":"compaction","firstKeptEntryIndex":{text},"z":0}}"#);
    let lines = [
        r#"{"a":1}"#,
        "5",
        r#"{"type":"session"}"#,
        r#"{"b":2}"#,
        &compaction,
        r#"{"c":3}"#,
    ];
    with_given(&lines)[4].clone()
}

#[test]
fn an_index_becomes_an_id() {
    let end = |id: &str| {
        format!(
            r#"{{"type":"compaction","z":0,"id":"n4","parentId":"n3","firstKeptEntryId":"{id}"}}"#
        )
    };
    assert_eq!(kept("1"), end("n1"));
    assert_eq!(kept("4"), end("n3"));
    assert_eq!(kept("4.0"), end("n3"));
    // A line without a place for an id: the next entry.
    assert_eq!(kept("2"), end("n3"));
    // The compaction itself: nothing before it is kept.
    assert_eq!(kept("5"), end("n4"));
    // Headers, fractions, what is not there and what follows the compaction: all is kept.
    for index in ["0", "-0", "3", "1.5", "-1", "99", "1e400", "6"] {
        assert_eq!(kept(index), end("n1"), "{index}");
    }
    for index in ["null", "\"4\"", "{}"] {
        let line = format!(
            r#"{{"type":"compaction","firstKeptEntryIndex":{index},"z":0,"id":"n4","parentId":"n3","firstKeptEntryId":"n1"}}"#
        );
        assert_eq!(kept(index), line);
    }
}

#[test]
fn an_unusable_index_keeps_from_the_boundary_before() {
    let lines = [
        r#"{"a":1}"#,
        r#"{"id":"own"}"#,
        r#"{"type":"compaction","firstKeptEntryIndex":2}"#,
        r#"{"type":"compaction","firstKeptEntryIndex":99}"#,
        r#"{"type":"compaction","firstKeptEntryId":"own","firstKeptEntryIndex":99}"#,
        r#"{"type":"compaction","firstKeptEntryId":"gone","firstKeptEntryIndex":99}"#,
        r#"{"type":"compaction"}"#,
        r#"{"type":"compaction","firstKeptEntryIndex":99}"#,
        r#"{"id":""}"#,
        r#"{"type":"compaction","firstKeptEntryId":"","firstKeptEntryIndex":99}"#,
    ];
    let ends = [
        r#"{"type":"compaction","id":"n3","parentId":"own","firstKeptEntryId":"own"}"#,
        r#"{"type":"compaction","id":"n4","parentId":"n3","firstKeptEntryId":"own"}"#,
        r#"{"type":"compaction","firstKeptEntryId":"own","id":"n5","parentId":"n4"}"#,
        r#"{"type":"compaction","firstKeptEntryId":"own","id":"n6","parentId":"n5"}"#,
        r#"{"type":"compaction","id":"n7","parentId":"n6"}"#,
        r#"{"type":"compaction","id":"n8","parentId":"n7","firstKeptEntryId":"n7"}"#,
        r#"{"id":"n9","parentId":"n8"}"#,
        r#"{"type":"compaction","firstKeptEntryId":"n7","id":"n10","parentId":"n9"}"#,
    ];
    assert_eq!(with_given(&lines)[2..], ends);
}

#[test]
fn only_the_role_of_hook_messages_changes_in_version_2() {
    let lines = [
        r#"{"type":"message","message":{ "role" : "hookMessage","x":{"role":"hookMessage"}} }"#,
        r#"{"type":"message","message":{"role":"x","r\u006fle":"hook\u004dessage"}}"#,
        r#"{"type":"custom","message":{"role":"hookMessage"}}"#,
        r#"{"type":"message","message":"hookMessage"}"#,
        r#"{"type":"message","message":null}"#,
    ];
    let mut expected = lines.map(str::to_owned);
    expected[0] = expected[0].replacen("hookMessage", "custom", 1);
    expected[1] = expected[1].replacen(r"hook\u004dessage", "custom", 1);
    let out = text_of(migrated(&file(&lines), Ids::Present, 1 << 20));
    assert_eq!(out.lines().skip(1).collect::<Vec<_>>(), expected);
}

#[test]
fn headers_get_the_version() {
    let text = b"\xEF\xBB\xBF{\"version\" : null,\"type\":\"session\",\"id\":\"s\"}\r\n{}\n{\"type\":\"session\",\"version\":9}";
    let out = migrated(text, Ids::Present, 1 << 20);
    let expected = b"\xEF\xBB\xBF{\"version\" : 3,\"type\":\"session\",\"id\":\"s\"}\r\n{}\n{\"type\":\"session\",\"version\":3}";
    assert_eq!(text_of(out), text_of(expected.to_vec()));
}

#[test]
fn a_torn_tail_stays_torn() {
    let text = [&file(&[]), &b"{\"type\":\"mess"[..]].concat();
    let out = text_of(migrated(&text, Ids::Derived, 1 << 20));
    assert!(out.ends_with("3}\n{\"type\":\"mess"), "{out}");
}

#[test]
fn derived_ids_give_way() {
    let line = r#"{"type":"custom"}"#;
    let first = derived_id(2, line.as_bytes(), 0);
    let second = derived_id(2, line.as_bytes(), 1);
    let taken = format!(r#"{{"id":"{first:08x}"}}"#);
    let out = text_of(migrated(&file(&[line, &taken]), Ids::Derived, 1 << 20));
    assert!(
        out.contains(&format!(r#""id":"{second:08x}","parentId":null"#)),
        "{out}"
    );
}

/// The twin: each line on its own, with a JSON library.
fn twin(text: &str, given: &[String]) -> Vec<Value> {
    let mut lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let id_of = |value: &Value| {
        let entry = Some(value).filter(|v| v["type"] != "session");
        entry?.get("id")?.as_str().map(str::to_owned)
    };
    let owned: Vec<Option<String>> = lines.iter().map(id_of).collect();
    let mut previous = Value::Null;
    let mut boundary: Option<usize> = None;
    let mut drawn = given.iter();
    for n in 0..lines.len() {
        if lines[n]["type"] == "session" {
            lines[n]["version"] = 3.into();
            continue;
        }
        let id = drawn.next().unwrap();
        if !lines[n].is_object() {
            continue;
        }
        let own = owned[n]
            .clone()
            .filter(|id| !id.is_empty() && !owned[n + 1..].contains(&Some(id.clone())));
        let id = Value::from(own.unwrap_or(id.clone()));
        let index = lines[n].get("firstKeptEntryIndex").cloned();
        let fields: &mut Map<String, Value> = lines[n].as_object_mut().unwrap();
        fields.insert("id".into(), id.clone());
        fields.insert("parentId".into(), previous);
        previous = id;
        if lines[n]["type"] == "compaction" {
            let usable = |n: &usize| lines[*n].is_object() && lines[*n]["type"] != "session";
            let wanted = index
                .as_ref()
                .and_then(Value::as_u64)
                .filter(|&i| i <= n as u64 && i > 0);
            let wanted = wanted.filter(|&i| lines[i as usize]["type"] != "session");
            let target = wanted.and_then(|i| match i as usize {
                i if i == n => Some(n),
                i => (i..n).find(usable),
            });
            let target = target.or(boundary.filter(|_| index.is_some()));
            if let Some(target) = target {
                lines[n]["firstKeptEntryId"] = lines[target]["id"].clone();
            }
            if index.is_some_and(|i| i.is_number()) {
                lines[n]
                    .as_object_mut()
                    .unwrap()
                    .remove("firstKeptEntryIndex");
            }
            boundary = target.or(Some(n));
        } else {
            boundary.get_or_insert(n);
            if lines[n]["type"] == "message" && lines[n]["message"]["role"] == "hookMessage" {
                lines[n]["message"]["role"] = "custom".into();
            }
        }
    }
    lines
}

fn line() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        3 => Just(None),
        2 => "[ab]{1,2}".prop_map(|id| Some(Value::from(id))),
        1 => Just(Some(json!(1))),
        1 => Just(Some(json!(""))),
    ];
    let index = prop_oneof![
        1 => Just(None),
        6 => (-1..9_i32).prop_map(|n| Some(json!(n))),
        1 => Just(Some(json!(1.5))),
        1 => Just(Some(Value::Null)),
    ];
    let bodies = prop_oneof![
        4 => Just(json!({"type": "message", "message": {"role": "user"}})),
        1 => Just(json!({"type": "message", "message": {"role": "hookMessage"}})),
        2 => Just(json!({"type": "compaction"})),
        1 => Just(json!({"type": "session"})),
        1 => Just(json!({})),
        1 => Just(json!([1])),
        1 => Just(json!("text")),
    ];
    (bodies, id, index, any::<bool>()).prop_map(|(mut body, id, index, parent)| {
        let compaction = body.get("type") == Some(&json!("compaction"));
        if let Some(fields) = body.as_object_mut() {
            fields.extend(id.map(|id| ("id".to_owned(), id)));
            fields.extend(
                index
                    .filter(|_| compaction)
                    .map(|i| ("firstKeptEntryIndex".to_owned(), i)),
            );
            if parent {
                fields.insert("parentId".into(), json!("old"));
            }
        }
        body
    })
}

proptest! {
    #[test]
    fn reads_as_the_twin_says(lines in prop::collection::vec(line(), 0..12), block in 1..200_u64) {
        let texts: Vec<String> = lines.iter().map(Value::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let text = file(&texts);
        let ids: Vec<String> = (0..lines.len()).map(|n| format!("n{n}")).collect();
        let given = Ids::Given(ids.iter().map(|id| format!("\"{id}\"").into_bytes()).collect());
        let out = text_of(migrated(&text, given, block));
        let read: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        prop_assert_eq!(read, twin(&text_of(text), &ids));
    }

    /// What is known of the new file is what a scan of it finds; the tail may be of any kind.
    #[test]
    fn nothing_need_be_scanned(
        lines in prop::collection::vec(line(), 0..12),
        noise in prop::collection::vec(prop_oneof![4 => Just(""), 1 => Just("no\n"), 1 => Just("\n")], 0..8),
        tail in prop_oneof![Just(""), Just("{}"), Just("{\"torn"), Just(" ")],
        mark: bool,
        given: bool,
        block in 1..200_u64,
    ) {
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        text += HEADER;
        text += "\n";
        for (n, line) in lines.iter().enumerate() {
            text += noise.get(n).unwrap_or(&"");
            text += &line.to_string();
            text += "\n";
        }
        text += tail;
        let store = store(text.as_bytes());
        let texts = || (0..store.index().len()).map(|n| format!("\"n{n}\"").into_bytes()).collect();
        let ids = || if given { Ids::Given(texts()) } else { Ids::Derived };
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("new");
        let mut migration = Migration::new(&store, ids());
        migration.blocks.size = block;
        let mut draft = Draft::begin(&path).unwrap();
        migration.write_to(&store, &mut draft, &mut || true).unwrap();
        let mut new = migration.finish(&store, &path, draft.publish(false).unwrap()).unwrap();
        let written = std::fs::read(&path).unwrap();
        prop_assert_eq!(text_of(written), text_of(migrated(text.as_bytes(), ids(), block)));
        let mut scanned = Store::open(&path, Options::default(), &mut || true).unwrap();
        prop_assert_eq!(knowledge(&mut new), knowledge(&mut scanned));
    }

    /// A file that went through it stays as it is, and the size of blocks does not matter.
    #[test]
    fn done_once_is_done(lines in prop::collection::vec(line(), 0..12), block in 1..100_u64) {
        let texts: Vec<String> = lines.iter().map(Value::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let once = migrated(&file(&texts), Ids::Derived, 1 << 20);
        prop_assert_eq!(&migrated(&file(&texts), Ids::Derived, block), &once);
        let index = |line: &Value| line.get("firstKeptEntryIndex").is_some_and(Value::is_null);
        if !lines.iter().any(index) {
            prop_assert_eq!(&migrated(&once, Ids::Derived, block), &once);
        }
    }
}

use super::twins::naive;
use super::*;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"a","timestamp":"2024-01-01T00:00:00.000Z","cwd":"/w"}"#;

fn summed(text: &[u8], chunk: usize) -> Result<Summary> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, text).unwrap();
    Reader::with_chunk(false, chunk).summary(&path, &|| true)
}

fn lines(entries: &[&str]) -> Summary {
    summed(
        format!("{HEADER}\n{}\n", entries.join("\n")).as_bytes(),
        CHUNK,
    )
    .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn some_text() -> impl Strategy<Value = String> {
    proptest::sample::select(
        &[
            "",
            " ",
            "a",
            "b c",
            "é\u{2028}",
            "\n\"\\",
            "  named  ",
            "[{}]",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn content() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        some_text().prop_map(|text| serde_json::json!({"type": "text", "text": text})),
        some_text().prop_map(|text| serde_json::json!({"text": text, "type": "thinking"})),
        Just(serde_json::json!({"type": "text"})),
        Just(serde_json::json!(["text"])),
        Just(Value::Null),
    ];
    prop_oneof![
        some_text().prop_map(Value::String),
        proptest::collection::vec(block, 0..4).prop_map(Value::Array),
        Just(Value::Null),
        Just(serde_json::json!({"type": "text", "text": "no"})),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let role = proptest::sample::select(&["user", "assistant", "toolResult", "system"][..]);
    let time = prop_oneof![
        Just(Value::Null),
        Just(Value::from("5")),
        (-5i64..3_000_000_000_000).prop_map(Value::from),
    ];
    (role, content(), time, some_text()).prop_map(|(role, content, time, stop)| {
        serde_json::json!({"role": role, "content": content, "timestamp": time, "stopReason": stop})
    })
}

fn entry() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        Just(Value::Null),
        Just(Value::from("text")),
        Just(serde_json::json!({"role": 5, "content": "x"})),
        Just(serde_json::json!({"role": "user"})),
        message(),
    ];
    let time = prop_oneof![
        Just("bad"),
        Just("2024-05-05T00:00:00.000Z"),
        Just("2024-05-06")
    ];
    let name = prop_oneof![
        some_text().prop_map(Value::String),
        Just(Value::Null),
        Just(Value::from(5))
    ];
    prop_oneof![
        (odd, time).prop_map(|(message, time)| {
            serde_json::json!({"type": "message", "timestamp": time, "message": message})
                .to_string()
        }),
        name.prop_map(|name| serde_json::json!({"type": "session_info", "name": name}).to_string()),
        proptest::sample::select(
            &[
                "",
                "  ",
                "5",
                "[]",
                "no json",
                "{",
                r#"{"type":"label"}"#,
                HEADER
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn a_summary_says_what_parsing_every_line_says(entries in proptest::collection::vec(entry(), 0..12), chunk in 1usize..300) {
        let file = format!("{HEADER}\n{}\n", entries.join("\n"));
        let wanted = naive(&file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        fs::write(&path, &file).unwrap();
        let mut reader = Reader::with_chunk(false, chunk);
        let got = reader.summary(&path, &|| true).unwrap();
        prop_assert_eq!(&got, &Reader::new(false).summary(&path, &|| true).unwrap());
        prop_assert_eq!(got.name.as_deref().map(text), wanted.name.as_deref());
        prop_assert_eq!(got.messages, wanted.messages);
        prop_assert_eq!(text(&got.first_message), &wanted.first);
        let header = 1_704_067_200_000;
        prop_assert_eq!(got.modified, if wanted.activity > 0 { wanted.activity } else { header });
        prop_assert_eq!(got.last_role.as_deref().map(text), wanted.role.as_deref());
        prop_assert_eq!(got.stop_reason.as_deref().map(text), wanted.stop.as_deref());
        prop_assert_eq!(got.skipped, wanted.skipped);
        prop_assert_eq!(got.size, file.len() as u64);
        let all = reader.text(&path, &|| true).unwrap();
        prop_assert_eq!(text(&all), wanted.all.join(" "));
    }

    #[test]
    fn a_file_cut_anywhere_is_listed_as_far_as_it_goes(cut in 0usize..400) {
        let file = format!("{HEADER}\n{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"hi\"}}}}\n{{\"type\":\"session_info\",\"name\":\"n\"}}\n");
        let cut = cut.min(file.len());
        let part = &file.as_bytes()[..cut];
        match summed(part, CHUNK) {
            Ok(got) => {
                prop_assert!(cut >= HEADER.len());
                // A torn tail is no skipped line: somebody may be writing it.
                prop_assert_eq!(got.skipped, 0);
            }
            Err(_) => prop_assert!(cut < HEADER.len()),
        }
    }
}

#[test]
fn the_header_tells_who_and_where() {
    let file = r#"{"type":"session","version":"4","id":"\u0061","timestamp":null,"cwd":5,"parentSession":"/p","id":"b\ud800"}"#;
    let got = summed(file.as_bytes(), CHUNK).unwrap();
    assert_eq!(got.id, b"b\xed\xa0\x80");
    assert_eq!((got.version, got.created), (Some(4.0), Some(0)));
    assert_eq!(
        (text(&got.cwd), got.parent.as_deref()),
        ("", Some(&b"/p"[..]))
    );
    // Only a text is a time to be shown as the last activity.
    assert_eq!(got.modified, (got.mtime + 500_000).div_euclid(1_000_000));
}

#[test]
fn versions_are_numbers_as_javascript_makes_them() {
    for (value, wanted) in [
        ("3", 3.0),
        ("null", 1.0),
        ("true", 1.0),
        ("false", 0.0),
        ("\"\"", 0.0),
        ("\" 2 \"", 2.0),
        ("2.5", 2.5),
    ] {
        assert_eq!(content::version(value.as_bytes()), Some(wanted), "{value}");
    }
    for value in ["\"abc\"", "{}", "[]", "\"inf\"", "\"1 2\""] {
        assert!(content::version(value.as_bytes()).is_none(), "{value}");
    }
}

#[test]
fn keys_may_be_escaped_and_the_last_of_them_counts() {
    let got = lines(&[
        r#"{"t\u0079pe":"mess\u0061ge","message":{"r\u006fle":"user","content":"a","content":"b"},"message":{"role":"user","content":"c"}}"#,
        r#"{"type":"session_info","name":"x","name":" \ufeffy\u3000"}"#,
    ]);
    assert_eq!((got.messages, text(&got.first_message)), (1, "c"));
    assert_eq!(got.name.as_deref(), Some(&b"y"[..]));
}

#[test]
fn texts_that_are_no_strings_are_joined_as_javascript_joins_them() {
    let block = |text: &str| format!(r#"{{"type":"text","text":{text}}}"#);
    let numbers = [
        "1e21",
        "1e-7",
        "0.000001",
        "-0",
        "5.50",
        "1e400",
        "-1e400",
        "123456789012345680000",
    ];
    let blocks: Vec<_> = numbers
        .iter()
        .chain(&["null", "true", "{}"])
        .map(|text| block(text))
        .collect();
    let content = format!("[{}]", blocks.join(","));
    let mut out = Vec::new();
    content::push_text(&mut out, content.as_bytes());
    let wanted = "1e+21 1e-7 0.000001 0 5.5 Infinity -Infinity 123456789012345680000  true ";
    assert_eq!(text(&out), wanted);
}

#[test]
fn impossible_times_count_as_unknown() {
    let entry = |time: &str| {
        format!(
            r#"{{"type":"message","timestamp":"2024-05-05","message":{{"role":"user","content":"","timestamp":{time}}}}}"#
        )
    };
    let written = dates::parse(b"2024-05-05").unwrap();
    for time in ["1e400", "-1e400", "9e15", "null", "\"5\""] {
        assert_eq!(lines(&[&entry(time)]).modified, written, "{time}");
    }
    assert_eq!(
        lines(&[&entry("1704067300000.75")]).modified,
        1_704_067_300_000
    );
}

#[test]
fn a_byte_order_mark_is_accepted_and_cr_is_white_space() {
    let got = summed(format!("\u{feff}{HEADER}\r\n\r\n").as_bytes(), 7).unwrap();
    assert_eq!((text(&got.id), got.skipped), ("a", 0));
}

#[test]
fn what_is_no_session_is_told_with_its_place() {
    let message = |text: &str| summed(text.as_bytes(), CHUNK).unwrap_err().to_string();
    assert!(message("").starts_with("the file is empty"));
    assert!(message("x\n").starts_with("no session header"));
    let told = message("\nx\n{}\n");
    assert!(
        told.starts_with("the first entry is no session header"),
        "{told}"
    );
    assert!(told.ends_with("line 3, byte 3)"), "{told}");
    assert!(
        message("{\"type\":\"session\",\"id\":5}")
            .starts_with("the session header has no string id")
    );
}

#[test]
fn a_title_before_the_header_is_the_name_until_a_session_info_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let named = |before: &str, after: &str| {
        fs::write(&path, format!("{before}\n{HEADER}\n{after}\n")).unwrap();
        let got = Reader::new(true).summary(&path, &|| true).unwrap();
        got.name.map(|name| String::from_utf8(name).unwrap())
    };
    let title = r#"{"type":"title","v":1,"title":" t ","pad":"   "}"#;
    assert_eq!(named(title, "").as_deref(), Some("t"));
    assert_eq!(named(r#"{"type":"other","title":"t"}"#, ""), None);
    assert_eq!(named(r#"{"type":"title","title":5}"#, ""), None);
    let info = r#"{"type":"session_info","name":"n"}"#;
    assert_eq!(named(title, info).as_deref(), Some("n"));
    assert_eq!(named(title, r#"{"type":"session_info"}"#), None);
}

#[test]
fn one_long_line_costs_that_line_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let long = "x".repeat(3_000_000);
    let file = format!(
        "{HEADER}\n{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"{long}\"}}}}\n"
    );
    fs::write(&path, &file).unwrap();
    for chunk in [10, 1000, CHUNK] {
        let mut reader = Reader::with_chunk(false, chunk);
        let got = reader.summary(&path, &|| true).unwrap();
        assert_eq!(got.first_message.len(), long.len());
        assert!(reader.buffer.len() <= file.len() + 2 * chunk);
    }
}

#[test]
fn a_long_read_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, format!("{HEADER}\n{}", "{}\n".repeat(1000))).unwrap();
    let asked = std::cell::Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() < 5
    };
    let stopped = Reader::with_chunk(false, 100)
        .summary(&path, &go_on)
        .unwrap_err();
    assert!(matches!(stopped.kind(), ErrorKind::Cancelled));
    assert_eq!(asked.get(), 5);
}

/// Costs count where a session's totals count them: answers, tool results, summaries and usage
/// entries; what is no finite number counts as nothing.
#[test]
fn costs_are_added_up() {
    let message = |role: &str, usage: &str| {
        format!(
            r#"{{"type":"message","id":"a","message":{{"role":"{role}","content":"","usage":{usage}}}}}"#
        )
    };
    let of_kind =
        |kind: &str| format!(r#"{{"type":"{kind}","id":"a","usage":{{"cost":{{"total":0.5}}}}}}"#);
    let entries = [
        message(
            "assistant",
            r#"{"input":1,"cost":{"input":9,"total":1.25}}"#,
        ),
        message("toolResult", r#"{"cost":{"total":1,"total":2}}"#),
        message("user", r#"{"cost":{"total":100}}"#),
        message("assistant", r#"{"cost":{"total":"7"}}"#),
        message("assistant", r#"{"cost":{"total":1e999}}"#),
        message("assistant", r#"{"cost":7}"#),
        message("assistant", r#"[{"cost":{"total":7}}]"#),
        message("assistant", r#"{"co\u0073t":{"total":-0.25}}"#),
        of_kind("usage"),
        of_kind("compaction"),
        of_kind("branch_summary"),
        of_kind("custom"),
    ];
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let cost = lines(&entries).cost;
    assert!((cost - 4.5).abs() < 1e-12, "{cost}");
}

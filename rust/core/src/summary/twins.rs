//! What a listing shows, beside what one gets from the whole file in memory, every line a tree of
//! values.

use super::{Builder, Reader, Result, Summary, header};
use crate::lines::CHUNK;
use crate::{dates, json};
use serde_json::Value;
use std::path::Path;

/// The summary of a text that is read in chunks of this size; no file's time is known.
pub(crate) fn summary(text: &[u8], chunk: usize, lenient: bool) -> Result<Summary> {
    built(text, chunk, Builder::new(lenient, None)).map(|builder| builder.summary)
}

fn built(text: &[u8], chunk: usize, mut builder: Builder) -> Result<Builder> {
    let size = text.len() as u64;
    let mut reader = Reader::with_chunk(builder.lenient, chunk);
    let fed = reader.feed(text, size, &mut builder, &|| true);
    assert!(matches!(fed, Ok(true)));
    match builder.refusal.or_else(|| builder.finish(size, 0)) {
        None => Ok(builder),
        Some((line, byte, reason)) => {
            Err(header::not_a_session(Path::new("f"), line, byte, reason))
        }
    }
}

/// What the naive twin knows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Naive {
    pub(crate) name: Option<String>,
    pub(crate) messages: u64,
    pub(crate) first: String,
    pub(crate) all: Vec<String>,
    pub(crate) activity: i64,
    pub(crate) role: Option<String>,
    pub(crate) stop: Option<String>,
    pub(crate) skipped: u64,
}

/// Reads all lines behind the first one; `None` where there is something that this parser reads in
/// another way than JavaScript does.
pub(crate) fn naive(text: &str) -> Option<Naive> {
    let mut out = Naive::default();
    let mut rest = text.split_inclusive('\n').skip(1).peekable();
    while let Some(line) = rest.next() {
        let is_tail = rest.peek().is_none() && !line.ends_with('\n');
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            if json::validate(line.trim_end_matches('\n').as_bytes()).is_ok() {
                return None;
            }
            out.skipped += u64::from(!json::is_blank(line.as_bytes()) && !is_tail);
            continue;
        };
        if entry["type"] == "session_info" {
            match &entry["name"] {
                Value::Null => out.name = None,
                Value::String(name) => {
                    out.name = Some(trim(name).to_owned()).filter(|name| !name.is_empty());
                }
                _ => {}
            }
        }
        if entry["type"] == "message" {
            out.messages += 1;
            naive_message(&mut out, &entry)?;
        }
    }
    Some(out)
}

/// JavaScript's white space is not quite Unicode's.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() && c != '\u{85}' || c == '\u{feff}')
}

fn naive_message(out: &mut Naive, entry: &Value) -> Option<()> {
    let message = &entry["message"];
    let Some(role) = message["role"].as_str() else {
        return Some(());
    };
    out.role = Some(role.to_owned());
    out.stop = message["stopReason"].as_str().map(str::to_owned);
    if message.get("content").is_none() || !["user", "assistant"].contains(&role) {
        return Some(());
    }
    let own = message["timestamp"].as_f64().and_then(time);
    let written = match entry.get("timestamp") {
        Some(Value::String(text)) => dates::parse(text.as_bytes()),
        Some(Value::Number(number)) => number.as_f64().and_then(time),
        Some(Value::Null | Value::Bool(false)) => Some(0),
        Some(Value::Bool(true)) => Some(1),
        _ => None,
    };
    out.activity = out.activity.max(own.or(written).unwrap_or(0));
    let shown = shown(&message["content"])?;
    if shown.is_empty() {
        return Some(());
    }
    if role == "user" && out.first.is_empty() {
        out.first.clone_from(&shown);
    }
    out.all.push(shown);
    Some(())
}

/// The time that JavaScript makes of a number of milliseconds.
fn time(number: f64) -> Option<i64> {
    (number.abs() <= dates::LIMIT as f64).then_some(number as i64)
}

/// The texts of a content, joined; `None` if there are numbers among them, which are written in
/// JavaScript's own way.
fn shown(content: &Value) -> Option<String> {
    let blocks = match content {
        Value::String(text) => return Some(text.clone()),
        Value::Array(blocks) => blocks.iter().filter(|block| block["type"] == "text"),
        _ => return Some(String::new()),
    };
    let texts = blocks.map(|block| match &block["text"] {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(_) => None,
        _ => Some(String::new()),
    });
    Some(texts.collect::<Option<Vec<_>>>()?.join(" "))
}

/// Chunks of any size give one summary, and it is the naive one's where that has one. The first two
/// bytes choose the size.
pub(crate) fn check(data: &[u8]) {
    let &[chunk, lenient, ref text @ ..] = data else {
        return;
    };
    let (chunk, lenient) = (1 + usize::from(chunk), lenient & 1 == 1);
    let said = |chunk| summary(text, chunk, lenient).map_err(|error| error.to_string());
    let got = said(chunk);
    assert_eq!(got, said(CHUNK));
    let all = built(text, chunk, Builder::new(lenient, Some(Vec::new())));
    let all = all.map(|builder| builder.text.unwrap_or_default());
    assert_eq!(all.is_ok(), got.is_ok());
    let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let header = matches!(header::find(first, Path::new("f"), false), Ok(found) if found == first);
    let (Ok(got), Ok(all), Ok(text), true) = (got, all, std::str::from_utf8(text), header) else {
        return;
    };
    if let Some(wanted) = naive(text) {
        check_naive(&got, &all, &wanted);
    }
}

fn check_naive(got: &Summary, all: &[u8], wanted: &Naive) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(got.name.as_deref().map(text), wanted.name);
    assert_eq!(got.messages, wanted.messages);
    assert_eq!(text(&got.first_message), wanted.first);
    if wanted.activity > 0 {
        assert_eq!(got.modified, wanted.activity);
    }
    assert_eq!(got.last_role.as_deref().map(text), wanted.role);
    assert_eq!(got.stop_reason.as_deref().map(text), wanted.stop);
    assert_eq!(got.skipped, wanted.skipped);
    assert_eq!(text(all), wanted.all.join(" "));
}

//! How long the core takes, without Python: `cargo bench -p sessiontree-core`.
//!
//! The texts are made here and are the same everywhere. Each benchmark first makes sure that what it
//! measures gives the right answer.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sessiontree_core::append::How;
use sessiontree_core::listing::{Depth, Files, Options as Listing, Order};
use sessiontree_core::store::{Options, Store};
use sessiontree_core::summary::Summary;
use sessiontree_core::{Result, envelope, json, walk};
use std::hint::black_box;
use std::path::{Path, PathBuf};

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\
                      \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/code\"}\n";

/// A message of the user, or an answer with a tool call and usage, of some 300 bytes and more.
fn entry(number: u32, text: &str) -> String {
    let parent = match number {
        0 => "null".to_owned(),
        n => format!("\"{:08x}\"", n - 1),
    };
    let message = if number.is_multiple_of(2) {
        format!("\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":{number}")
    } else {
        format!(
            "\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}},\
             {{\"type\":\"toolCall\",\"id\":\"t{number}\",\"name\":\"read\",\"arguments\":\
             {{\"path\":\"src/a.py\",\"offset\":1}}}}],\"api\":\"a\",\"provider\":\"p\",\"model\":\"m\",\
             \"usage\":{{\"input\":{number},\"output\":20,\"cacheRead\":0,\"cacheWrite\":0,\
             \"totalTokens\":40,\"cost\":{{\"input\":0.5,\"output\":0.25,\"total\":0.75}}}},\
             \"stopReason\":\"toolUse\",\"timestamp\":{number}"
        )
    };
    format!(
        "{{\"type\":\"message\",\"id\":\"{number:08x}\",\"parentId\":{parent},\
         \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{{{message}}}}}\n"
    )
}

/// A session with so many entries in one chain.
fn session(entries: u32, text: &str) -> String {
    let mut all = HEADER.to_owned();
    for number in 0..entries {
        all.push_str(&entry(number, text));
    }
    all
}

/// Text with an escape every forty characters, as code has it.
fn long_text() -> String {
    "for part in text.split(\\\"\\\\t\\\"): count += 1\\n".repeat(100)
}

fn options() -> Options {
    Options {
        threads: 1,
        ..Options::default()
    }
}

fn open(path: &Path) -> Store {
    Store::open(path, options(), &mut || true).expect("a session")
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a writable folder");
    path
}

fn scan(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("scan");
    for (name, entries, text) in [
        ("short lines", 40_000, "a few words"),
        ("long lines", 4000, &*long_text()),
    ] {
        let text = session(entries, text);
        let path = write(folder.path(), &format!("{name}.jsonl"), &text);
        assert_eq!(open(&path).index().len(), entries as usize);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| open(&path)));
    }
    group.finish();
}

fn lines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("line");
    for (name, text) in [("short", "a few words"), ("long", &*long_text())] {
        let line = entry(1, text);
        let line = line.trim_end().as_bytes();
        let read = envelope::read(line).expect("an entry");
        assert_eq!(read.id, envelope::Key::Text(b"00000001"[..].into()));
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(format!("envelope of a {name} one"), |bencher| {
            bencher.iter(|| envelope::read(black_box(line)));
        });
        group.bench_function(format!("is a {name} one JSON"), |bencher| {
            bencher.iter(|| json::validate(black_box(line)));
        });
    }
    group.finish();
}

fn walks(criterion: &mut Criterion) {
    const ENTRIES: u32 = 100_000;
    let text = session(ENTRIES, "a few words").into_bytes();
    let mut store = Store::memory(text, options()).expect("a session");
    let leaf = ENTRIES - 1;
    let mut group = criterion.benchmark_group("walk of 100,000 entries");
    assert_eq!(
        walk::path(store.index(), leaf).expect("a path").len(),
        100_000
    );
    group.bench_function("path", |bencher| {
        bencher.iter(|| walk::path(store.index(), black_box(leaf)));
    });
    group.bench_function("common ancestor", |bencher| {
        bencher.iter(|| walk::common_ancestor(store.index(), black_box(leaf / 2), leaf));
    });
    group.bench_function("leaves", |bencher| {
        bencher.iter(|| walk::leaves(store.index()));
    });
    let id = store.index().id(leaf / 3);
    assert_eq!(store.index().find(&id), Some(leaf / 3));
    group.bench_function("row of an id", |bencher| {
        bencher.iter(|| store.index().find(black_box(&id)));
    });
    assert_eq!(store.index_mut().children(leaf / 3), [leaf / 3 + 1]);
    group.bench_function("children", |bencher| {
        bencher.iter(|| store.index_mut().children(black_box(leaf / 3)));
    });
    group.finish();
}

fn appends(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("append");
    for entries in [100, 100_000] {
        let path = write(folder.path(), "a.jsonl", &session(entries, "a few words"));
        let mut store = open(&path);
        let mut number = entries;
        group.bench_function(format!("to {entries} entries"), |bencher| {
            bencher.iter_batched(
                || {
                    number += 1;
                    entry(number, "a few words")
                },
                |line| store.append(line.as_bytes(), How::default(), &mut || true),
                BatchSize::SmallInput,
            );
        });
        let written = (number - entries) as usize;
        assert_eq!(open(&path).index().len(), entries as usize + written);
    }
    group.finish();
}

fn messages(shown: &[(PathBuf, Result<Summary>)]) -> u64 {
    let counts = shown.iter().flat_map(|(_, shown)| shown);
    counts.map(|summary| summary.messages).sum()
}

fn listings(criterion: &mut Criterion) {
    const SESSIONS: u32 = 500;
    let folder = tempfile::tempdir().expect("a folder");
    let text = session(12, "a few words");
    for number in 0..SESSIONS {
        write(folder.path(), &format!("{number}.jsonl"), &text);
    }
    let list = |threads| {
        let how = Listing {
            order: Order::Name,
            depth: Depth::Own,
            lenient: false,
            threads,
        };
        let mut files = Files::find(folder.path(), how, &mut || true).expect("a folder");
        let shown = files.summaries(usize::MAX, u64::MAX, &mut || true);
        shown.expect("no one stops it")
    };
    assert_eq!(messages(&list(1)), u64::from(SESSIONS) * 12);
    let mut group = criterion.benchmark_group("list 500 sessions");
    for threads in [1, 2] {
        group.bench_function(format!("threads: {threads}"), |bencher| {
            bencher.iter(|| list(threads));
        });
    }
    group.finish();
}

criterion_group! {
    name = core;
    config = Criterion::default().sample_size(20);
    targets = scan, lines, walks, appends, listings
}
criterion_main!(core);

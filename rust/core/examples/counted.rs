//! What `benches/instructions.py` counts the instructions of: one scan, one listing, or many appends,
//! and little else.
//!
//! `counted scan FILE`, `counted list FOLDER` and `counted append FILE TIMES`; says how many rows or
//! sessions there are in the end.

use sessiontree_core::Result;
use sessiontree_core::append::How;
use sessiontree_core::listing::{self, Depth, Files, Order};
use sessiontree_core::store::{Options, Store};
use std::env::args;
use std::path::Path;
use std::process::ExitCode;

/// One thread: what the others wait for is no work.
fn open(path: &Path) -> Result<Store> {
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    Store::open(path, options, &mut || true)
}

fn append(path: &Path, times: u32) -> Result<Store> {
    let mut store = open(path)?;
    for number in 0..times {
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"{number:08x}\",\"parentId\":null,\
             \"timestamp\":\"2026-01-01T00:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"step {number}\",\"timestamp\":0}}}}\n"
        );
        store.append(line.as_bytes(), How::default(), &mut || true)?;
    }
    Ok(store)
}

fn list(folder: &Path) -> Result<usize> {
    let options = listing::Options {
        order: Order::Name,
        depth: Depth::Own,
        lenient: false,
        threads: 1,
    };
    let mut files = Files::find(folder, options, &mut || true)?;
    let shown = files.summaries(usize::MAX, u64::MAX, &mut || true)?;
    Ok(shown.iter().filter(|(_, shown)| shown.is_ok()).count())
}

fn main() -> ExitCode {
    let words: Vec<String> = args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["scan", path] => open(Path::new(path)).map(|store| store.index().len()),
        ["list", path] => list(Path::new(path)),
        ["append", path, times] => {
            let store = append(Path::new(path), times.parse().unwrap_or_default());
            store.map(|store| store.index().len())
        }
        _ => {
            eprintln!("usage: counted scan FILE | counted list FOLDER | counted append FILE TIMES");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(count) => {
            println!("{count}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

//! What `benches/instructions.py` counts the instructions of: one scan, or many appends, and little else.
//!
//! `counted scan FILE` and `counted append FILE TIMES`; says how many rows there are in the end.

use sessiontree_core::Result;
use sessiontree_core::append::How;
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

fn main() -> ExitCode {
    let words: Vec<String> = args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["scan", path] => open(Path::new(path)),
        ["append", path, times] => append(Path::new(path), times.parse().unwrap_or_default()),
        _ => {
            eprintln!("usage: counted scan FILE | counted append FILE TIMES");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(store) => {
            println!("{}", store.index().len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

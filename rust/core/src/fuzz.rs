//! What has to hold for any bytes at all, one function a part of this crate. Each compares fast code
//! with its slow twin, or one way of reading with another one; a panic is a fault.
//!
//! `rust/fuzz` searches for bytes that prove one wrong. What it came upon on the way lies in
//! `rust/fuzz/corpus`, and is asked again by every test run.

/// The validator: all walkers of JSON against each other and against the slow one.
pub fn validator(data: &[u8]) {
    crate::json::twins::check_line(data);
    crate::json::twins::check_lines(data);
}

/// What the index takes from a line.
pub fn envelope(data: &[u8]) {
    crate::envelope::twins::check(data);
}

/// Scans in blocks and threads, in chunks, and of a file that grows.
pub fn scan(data: &[u8]) {
    crate::scan::twins::check(data);
    crate::store::twins::check(data);
}

/// The header, as finding, opening and listing see it.
pub fn header(data: &[u8]) {
    crate::header::twins::check(data);
}

/// What a listing shows.
pub fn summary(data: &[u8]) {
    crate::summary::twins::check(data);
}

/// The saved index.
pub fn cache(data: &[u8]) {
    crate::cache::twins::check(data);
}

/// What is kept of listings.
pub fn kept(data: &[u8]) {
    crate::listing::kept::twins::check(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Everything the fuzzer has kept still holds, on every toolchain.
    #[test]
    fn the_corpus_holds() {
        let parts = [
            ("validator", validator as fn(&[u8])),
            ("envelope", envelope),
            ("scan", scan),
            ("header", header),
            ("summary", summary),
            ("cache", cache),
            ("kept", kept),
        ];
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for (name, check) in parts {
            let files: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().collect();
            assert!(files.len() >= 10, "{name}");
            for file in files {
                let path = file.unwrap().path();
                println!("{}", path.display());
                check(&fs::read(path).unwrap());
            }
        }
    }
}

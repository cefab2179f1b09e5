//! What has to hold for the bytes of a file of kept rows.

use super::{first_line, read, written};
use crate::summary::packed;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes are nothing, or rows that are written as they were read; a right check sum proves nothing.
pub(crate) fn check(data: &[u8]) {
    let file = [first_line(xxh3_64(data)).as_bytes(), data].concat();
    for bytes in [data, &file] {
        let Some(rows) = read(bytes) else {
            continue;
        };
        let paths: Vec<_> = rows
            .iter()
            .map(|row| packed::path_of(row.path.clone()))
            .collect();
        let whole = rows.iter().zip(&paths);
        let again = written(whole.map(|(row, path)| (path.as_path(), &row.shown, row.mark)));
        assert_eq!(again, bytes);
    }
}

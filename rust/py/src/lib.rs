//! Thin bindings of `sessiontree-core`: the private module `sessiontree._native`.

// pyo3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod access;
mod appending;
mod columns;
mod draft;
mod errors;
mod json;
mod kept;
mod keys;
mod lines;
mod listing;
mod looks;
mod migrate;
mod packed;
mod repair;
mod rows;
mod store;
mod written;

/// The private native module; `python/sessiontree/_native.pyi` describes it.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::draft::{create_file, migrate_file, replace_file, sweep};
    #[pymodule_export]
    use crate::json::{may_hold_minus_zero, survey};
    #[pymodule_export]
    use crate::kept::{KeptFiles, Looking, rows_to_keep};
    #[pymodule_export]
    use crate::lines::{message_lines, written_time};
    #[pymodule_export]
    use crate::listing::{SessionFiles, SessionInfo, header_line, newest_first, parse_date};
    #[pymodule_export]
    use crate::looks::look_at;
    #[pymodule_export]
    use crate::migrate::{Migration, derived_id, splice_members};
    #[pymodule_export]
    use crate::packed::{pack_info, unpack_infos};
    #[pymodule_export]
    use crate::repair::{examine, exchange_images, moved_image, repair_file};
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::store::Store;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::prelude::*;
        // So that nobody measures a debug build by accident.
        module.add(
            "BUILD_PROFILE",
            if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        )?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

//! Questions about JSON texts that are cheaper to answer here.

use pyo3::prelude::*;
use sessiontree_core::json;

/// Whether the number `-0` may stand in a JSON text; never no where one does.
#[pyfunction]
pub fn may_hold_minus_zero(text: &[u8]) -> bool {
    json::may_hold_minus_zero(text)
}

//! The tree as it is shown: every row once, and no row lost.
//!
//! It differs from paths in two points. A parent of "", 0 or false ends a path, but in the tree it
//! is looked up like any other. And where parents form a cycle, its first row is shown as a root.

use crate::Row;
use crate::index::{Index, MISSING, ROOT};

/// The parent in the tree, or a number from [`MISSING`] on.
fn parent(index: &Index, row: Row) -> u32 {
    match index.parent(row) {
        ROOT => index.falsy_parent(row).unwrap_or(ROOT),
        parent => parent,
    }
}

/// Whether nothing is above the row but itself; cycles of several rows do not count.
fn is_root(index: &Index, row: Row) -> bool {
    let parent = parent(index, row);
    parent >= MISSING || index.same_id(row, parent)
}

/// Rows that hang on nothing (no parent, an unknown one, or themselves), and the first row of each
/// cycle; in file order.
pub fn tree_roots(index: &mut Index) -> Vec<Row> {
    let loops = loops(index).to_vec();
    let root = |row: &Row| is_root(index, *row) || loops.binary_search(row).is_ok();
    (0..index.len() as Row).filter(root).collect()
}

/// Rows below a row: oldest first, rows of the same time in file order, unknown times last.
///
/// Where an id stands twice, the rows below are those of the last one; the others have none.
pub fn tree_children(index: &mut Index, row: Row) -> Vec<Row> {
    if index.owner(row) != row {
        return Vec::new();
    }
    let mut rows = index.children(row);
    rows.extend(index.falsy_children(row));
    let loops = loops(index).to_vec();
    rows.retain(|&r| !index.same_id(r, row) && loops.binary_search(&r).is_err());
    rows.sort_by_key(|&r| (index.time(r).is_none(), index.time(r), r));
    rows
}

/// The first row of each cycle, ascending.
fn loops(index: &mut Index) -> &[Row] {
    if index.loops_mut().is_none() {
        let found = find_loops(index);
        *index.loops_mut() = Some(found);
    }
    index.loops_mut().as_deref().unwrap_or_default()
}

fn find_loops(index: &Index) -> Vec<Row> {
    let len = index.len() as Row;
    if index.is_ordered() && !index.has_falsy_parents() {
        return Vec::new();
    }
    // Each row is visited once: a walk up stops at what an earlier walk has seen.
    let mut walk = vec![ROOT; index.len()];
    let mut first_rows = Vec::new();
    for start in 0..len {
        let mut row = start;
        while walk[row as usize] == ROOT && !is_root(index, row) {
            walk[row as usize] = start;
            row = parent(index, row);
        }
        if walk[row as usize] == start {
            first_rows.push(first_of(index, row));
        }
        walk[row as usize] = start;
    }
    first_rows.sort_unstable();
    first_rows
}

/// The first row of the cycle that `at` lies on.
fn first_of(index: &Index, at: Row) -> Row {
    let mut first = at;
    let mut row = parent(index, at);
    while row != at {
        first = first.min(row);
        row = parent(index, row);
    }
    first
}

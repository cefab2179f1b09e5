//! Walks over the tree, on rows alone: iterative, and every one ends.
//!
//! A parent that is not in the file ends a path. A cycle is an error where one path was asked for;
//! contexts stop at the first repeated row instead. In a sound file every parent comes before its
//! children ([`Index::is_ordered`]), and several walks are shorter for it.

mod marks;
mod tree;

pub use marks::{Landmarks, Marks, landmarks, on_path};
pub use tree::{tree_children, tree_roots};

use crate::Row;
use crate::envelope::{Kind, Role};
use crate::error::{ErrorKind, Result};
use crate::index::{Index, MISSING};
use rustc_hash::FxHashSet;

/// The rows from the root to `leaf`. A missing parent ends the path; a cycle is an error.
pub fn path(index: &Index, leaf: Row) -> Result<Vec<Row>> {
    let (mut rows, end) = climb(index, leaf);
    if let End::Cycle(at) = end {
        return Err(ErrorKind::Cycle {
            rows: cycle_of(index, at),
        }
        .into());
    }
    rows.reverse();
    Ok(rows)
}

/// The rows from the root to `leaf`; a path that runs into a cycle starts at its first repeated
/// row, and the flag says so.
pub fn path_until_cycle(index: &Index, leaf: Row) -> (Vec<Row>, bool) {
    let (mut rows, end) = climb(index, leaf);
    let cyclic = matches!(end, End::Cycle(_));
    if let End::Cycle(at) = end {
        // `at` lies on the cycle; the first repeated row is where the tail enters it.
        let cycle: FxHashSet<Row> = cycle_of(index, at).into_iter().collect();
        let entry = rows.iter().position(|r| cycle.contains(r)).unwrap_or(0);
        rows.truncate(entry + cycle.len());
    }
    rows.reverse();
    (rows, cyclic)
}

/// The rows of the cycle that `at` lies on, child before parent.
fn cycle_of(index: &Index, at: Row) -> Vec<Row> {
    let mut rows = vec![at];
    let mut row = index.parent(at);
    while row != at {
        rows.push(row);
        row = index.parent(row);
    }
    rows
}

enum End {
    Root,
    /// Some row of the cycle.
    Cycle(Row),
}

/// Rows from `leaf` upwards. More steps than rows means a cycle.
fn climb(index: &Index, leaf: Row) -> (Vec<Row>, End) {
    let mut rows = Vec::new();
    let mut row = leaf;
    loop {
        rows.push(row);
        let parent = index.parent(row);
        if parent >= MISSING {
            return (rows, End::Root);
        }
        if rows.len() > index.len() {
            return (rows, End::Cycle(parent));
        }
        row = parent;
    }
}

/// How many rows the path to `row` has.
pub fn depth(index: &Index, row: Row) -> Result<usize> {
    let mut depth = 0;
    let mut at = row;
    while at < MISSING {
        depth += 1;
        at = index.parent(at);
        if depth > index.len() {
            return path(index, row).map(|rows| rows.len());
        }
    }
    Ok(depth)
}

/// The deepest row on the paths to both.
///
/// In an ordered index this costs the rows between the two and their ancestor, however long the
/// paths are.
pub fn common_ancestor(index: &Index, a: Row, b: Row) -> Result<Option<Row>> {
    if index.is_ordered() {
        return Ok(meet(index, a, b));
    }
    let (mut a, mut b) = (a, b);
    let (mut above_a, mut above_b) = (depth(index, a)?, depth(index, b)?);
    while a != b {
        // The deeper one moves up; of two equally deep ones both do, one after the other.
        let (row, above) = if above_a >= above_b {
            (&mut a, &mut above_a)
        } else {
            (&mut b, &mut above_b)
        };
        *row = index.parent(*row);
        *above -= 1;
        if *above == 0 {
            return Ok(None);
        }
    }
    Ok(Some(a))
}

/// Of two rows the later one cannot be an ancestor of the other, so it moves up.
fn meet(index: &Index, a: Row, b: Row) -> Option<Row> {
    let (mut low, mut high) = (a.min(b), a.max(b));
    while low != high {
        let parent = index.parent(high);
        if parent >= MISSING {
            return None;
        }
        (low, high) = (low.min(parent), low.max(parent));
    }
    Some(low)
}

/// The rows behind `from` on the path to `leaf`; None if `from` is not on it.
///
/// The search goes no further up than `stop`.
pub fn descent(index: &Index, from: Row, leaf: Row, stop: Option<Row>) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    let mut row = leaf;
    while row != from {
        let over = Some(row) == stop || rows.len() > index.len();
        if over || index.is_ordered() && row < from {
            return None;
        }
        rows.push(row);
        row = index.parent(row);
        if row >= MISSING {
            return None;
        }
    }
    rows.reverse();
    Some(rows)
}

/// The rows of a context, and whether `kept` is on the path before the compaction.
///
/// The compaction comes first, then what it kept from `kept` on (without system messages), then
/// what follows it. Only these rows are walked over in an ordered index; `compaction` must be on
/// the path to `leaf`, which must not run into a cycle (see [`select`] for that).
pub fn context_rows(
    index: &Index,
    leaf: Row,
    compaction: Row,
    kept: Option<Row>,
) -> (Vec<Row>, bool) {
    let mut rows = Vec::new();
    let mut row = leaf;
    while row != compaction && row < MISSING && rows.len() <= index.len() {
        rows.push(row);
        row = index.parent(row);
    }
    let before = kept.and_then(|kept| descent(index, kept, compaction, None).map(|b| (kept, b)));
    let found = before.is_some();
    if let Some((kept, before)) = before.filter(|(kept, _)| *kept != compaction) {
        let inner = before.len().saturating_sub(1);
        let upwards = before[..inner].iter().rev().chain([&kept]);
        rows.extend(upwards.filter(|&&r| !is_system(index, r)));
    }
    rows.push(compaction);
    rows.reverse();
    (rows, found && kept != Some(compaction))
}

fn is_system(index: &Index, row: Row) -> bool {
    index.kind(row) == Kind::Message && index.role(row) == Role::System
}

/// As [`context_rows`], from a path that has been walked already.
pub fn select(index: &Index, path: &[Row], compaction: Row, kept: Option<Row>) -> (Vec<Row>, bool) {
    let Some(at) = path.iter().position(|&r| r == compaction) else {
        return (path.to_vec(), false);
    };
    let (before, after) = (&path[..at], &path[at + 1..]);
    let first = before.iter().position(|&r| Some(r) == kept);
    let kept = before[first.unwrap_or(at)..].iter().copied();
    let mut rows = vec![compaction];
    rows.extend(kept.filter(|&r| !is_system(index, r)));
    rows.extend(after);
    (rows, first.is_some())
}

/// A row and everything below it, in file order.
pub fn subtree(index: &mut Index, row: Row) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open = vec![row];
    while let Some(row) = open.pop() {
        if seen.insert(row) {
            rows.push(row);
            open.extend(index.children(row));
        }
    }
    rows.sort_unstable();
    rows
}

/// Rows that are no row's parent, in file order.
pub fn leaves(index: &Index) -> Vec<Row> {
    let mut inner = vec![false; index.len()];
    for row in 0..index.len() as Row {
        let parent = index.parent(row);
        if parent < MISSING {
            inner[parent as usize] = true;
        }
    }
    let rows = inner.iter().enumerate().filter(|(_, inner)| !**inner);
    rows.map(|(row, _)| row as Row).collect()
}

#[cfg(test)]
mod tests;

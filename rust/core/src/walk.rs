//! Walks over the tree, on rows alone: iterative, and every one ends.

use crate::Row;
use crate::envelope::{Kind, Role};
use crate::error::{ErrorKind, Result};
use crate::index::{Index, MISSING};

/// The rows from the root to `leaf`. A missing parent ends the path; a cycle is an error.
pub fn path(index: &Index, leaf: Row) -> Result<Vec<Row>> {
    let (mut rows, end) = climb(index, leaf);
    if let End::Cycle(at) = end {
        let mut cycle = vec![at];
        let mut row = index.parent(at);
        while row != at {
            cycle.push(row);
            row = index.parent(row);
        }
        return Err(ErrorKind::Cycle { rows: cycle }.into());
    }
    rows.reverse();
    Ok(rows)
}

/// The rows from the root to `leaf`; a path that runs into a cycle starts at its first repeated
/// row, and the flag says so.
pub fn path_until_cycle(index: &Index, leaf: Row) -> (Vec<Row>, bool) {
    let (mut rows, end) = climb(index, leaf);
    if let End::Cycle(at) = end {
        // `at` lies on the cycle; the first repeated row is where the tail enters it.
        let on_cycle = cycle_rows(index, at);
        let entry = rows.iter().position(|r| on_cycle.contains(r)).unwrap_or(0);
        rows.truncate(entry + on_cycle.len());
        rows.reverse();
        return (rows, true);
    }
    rows.reverse();
    (rows, false)
}

fn cycle_rows(index: &Index, at: Row) -> rustc_hash::FxHashSet<Row> {
    let mut rows = rustc_hash::FxHashSet::default();
    let mut row = at;
    while rows.insert(row) {
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

/// What a context needs to know of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Landmarks {
    /// The newest compaction.
    pub compaction: Option<Row>,
    /// The newest `thinking_level_change`.
    pub thinking: Option<Row>,
    /// The newest `model_change` or assistant message.
    pub model: Option<Row>,
}

/// The landmarks of a path, newest first.
pub fn landmarks(index: &Index, path: &[Row]) -> Landmarks {
    let newest = |wanted: &dyn Fn(Row) -> bool| path.iter().rev().copied().find(|&r| wanted(r));
    Landmarks {
        compaction: newest(&|r| index.kind(r) == Kind::Compaction),
        thinking: newest(&|r| index.kind(r) == Kind::ThinkingLevelChange),
        model: newest(&|r| {
            index.kind(r) == Kind::ModelChange
                || index.kind(r) == Kind::Message && index.role(r) == Role::Assistant
        }),
    }
}

/// The rows of a context: the compaction first, then what it kept, then what came after it.
///
/// `kept` is the row its `firstKeptEntryId` names, if it lies on the path. System messages of the
/// kept part are left out.
pub fn select(index: &Index, path: &[Row], compaction: Row, kept: Option<Row>) -> Vec<Row> {
    let Some(at) = path.iter().position(|&r| r == compaction) else {
        return path.to_vec();
    };
    let before = &path[..at];
    let from = kept
        .and_then(|k| before.iter().position(|&r| r == k))
        .unwrap_or(at);
    let system = |r: Row| index.kind(r) == Kind::Message && index.role(r) == Role::System;
    let mut rows = vec![compaction];
    rows.extend(before[from..].iter().copied().filter(|&r| !system(r)));
    rows.extend(&path[at + 1..]);
    rows
}

/// The deepest row on both paths.
pub fn common_ancestor(a: &[Row], b: &[Row]) -> Option<Row> {
    a.iter()
        .zip(b)
        .take_while(|(x, y)| x == y)
        .last()
        .map(|(x, _)| *x)
}

/// Whether `row` lies on the path of `leaf`. Costs the distance between them where no entry stands
/// before its parent.
pub fn on_path(index: &Index, row: Row, leaf: Row) -> bool {
    let mut at = leaf;
    for _ in 0..=index.len() {
        if at == row {
            return true;
        }
        let parent = index.parent(at);
        if parent >= MISSING || at < row && index.is_ordered() {
            return false;
        }
        at = parent;
    }
    false
}

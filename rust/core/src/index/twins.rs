//! Everything that an index can be asked, asked: two indexes of one text must give the same answers,
//! and one that was made up must give some.

use super::Index;
use crate::Row;
use crate::envelope::{Key, Kind, Role};
use crate::walk;

/// What an index answers.
#[derive(Debug, PartialEq)]
pub(crate) struct Answers {
    rows: Vec<Entry>,
    roots: Vec<Row>,
    orphans: Vec<Row>,
    leaves: Vec<Row>,
    tree: Vec<Row>,
    labels: Vec<Row>,
    infos: Vec<Row>,
    leaf: Option<Row>,
    conversation: Option<Row>,
    distinct: usize,
    ordered: bool,
}

/// What it answers about one row.
#[derive(Debug, PartialEq)]
struct Entry {
    span: (u64, u64),
    id: Key,
    parent: u32,
    owner: Row,
    kind: Kind,
    role: Role,
    time: Option<i64>,
    named: Option<Row>,
    children: Vec<Row>,
    tree_children: Vec<Row>,
    path: (Vec<Row>, bool),
    ancestor: Option<Row>,
}

/// Asks an index everything about all of its rows; meant for small ones.
pub(crate) fn answers(index: &mut Index) -> Answers {
    let all = 0..index.len() as Row;
    Answers {
        rows: all.map(|row| entry(index, row)).collect(),
        roots: index.roots().collect(),
        orphans: index.orphans(),
        leaves: walk::leaves(index),
        tree: walk::tree_roots(index),
        labels: index.labels().to_vec(),
        infos: index.infos().to_vec(),
        leaf: index.leaf(),
        conversation: index.conversation(),
        distinct: index.distinct_ids(),
        ordered: index.is_ordered(),
    }
}

fn entry(index: &mut Index, row: Row) -> Entry {
    let id = index.id(row);
    let last = index.len() as Row - 1;
    Entry {
        span: index.span(row),
        parent: index.parent(row),
        owner: index.owner(row),
        kind: index.kind(row),
        role: index.role(row),
        time: index.time(row),
        named: index.find(&id),
        children: index.children_of_key(&id),
        tree_children: walk::tree_children(index, row),
        path: walk::path_until_cycle(index, row),
        ancestor: walk::common_ancestor(index, row, last).unwrap_or_default(),
        id,
    }
}

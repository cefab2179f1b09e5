//! The tree against its naive twin, which walks wherever the other one remembers.

use super::*;
use crate::json;
use crate::repair::parts::Parts;
use proptest::prelude::*;

/// A tree of entries whose ids are their rows, with these parents.
fn tree(parents: &[u32]) -> Tree {
    let mut tree = Tree::default();
    for (row, parent) in parents.iter().enumerate() {
        let text = format!(r#"{{"type":"custom","id":"{row}","parentId":"{parent}"}}"#);
        push(&mut tree, row, &text);
    }
    tree
}

fn push(tree: &mut Tree, row: usize, text: &str) {
    let mut parts = Parts::default();
    json::walk(text.as_bytes(), &mut parts).unwrap();
    let sound = Sound {
        role: Role::Entry(row as Row),
        text: text.as_bytes(),
        parts: &parts,
        dropped: false,
    };
    let place = Place {
        line: row as u64 + 2,
        offset: 100 * row as u64,
        length: text.len() as u64,
        ended: true,
    };
    tree.push(place, &sound);
}

/// The way up from a row, itself first.
fn way(parents: &[u32], row: u32) -> Vec<u32> {
    let mut way = vec![];
    let mut at = row;
    while (at as usize) < parents.len() && !way.contains(&at) {
        way.push(at);
        at = parents[at as usize];
    }
    way
}

/// Hangs a row on the nearest one before it that is not below it.
fn attach(parents: &mut [u32], row: u32) {
    let fit = |&parent: &u32| !way(parents, parent).contains(&row);
    parents[row as usize] = (0..row).rev().find(fit).unwrap_or(ROOT);
}

fn naive(mut parents: Vec<u32>) -> Vec<u32> {
    let rows = parents.len() as u32;
    let lost: Vec<u32> = (0..rows)
        .filter(|&row| parents[row as usize] >= rows)
        .collect();
    let mut cycles = vec![];
    for start in 0..rows {
        let up = way(&parents, start);
        let back = up.last().map_or(ROOT, |&last| parents[last as usize]);
        if let Some(at) = up.iter().position(|&row| row == back) {
            let first = up[at..].iter().copied().min().unwrap();
            parents[first as usize] = ROOT;
            cycles.push(first);
        }
    }
    for row in cycles.into_iter().chain(lost) {
        attach(&mut parents, row);
    }
    parents
}

proptest! {
    /// Every lost entry and every cycle ends up where looking at each candidate would put it.
    #[test]
    fn attached_as_by_looking_at_each(parents in (1u32..14).prop_flat_map(|n| prop::collection::vec(0..n + 2, n as usize))) {
        let mut found = tree(&parents);
        found.finish(&mut Findings::default());
        prop_assert_eq!(&found.parent, &naive(parents));
        let ranks = Ranks::of(&found.parent);
        for row in 0..found.parent.len() as Row {
            for below in 0..found.parent.len() as Row {
                prop_assert_eq!(ranks.is_above(row, below), way(&found.parent, below).contains(&row));
            }
        }
    }

    /// As many entries are told to be out of reach as are.
    #[test]
    fn unreachable_ones_are_counted(parents in (1u32..14).prop_flat_map(|n| prop::collection::vec(0..n + 1, n as usize))) {
        let rows = parents.len() as u32;
        let mut findings = Findings::default();
        tree(&parents).finish(&mut findings);
        let of = |kind| findings.kept.iter().filter(move |f| f.kind == kind);
        let below: u64 = of(Kind::Unreachable).map(|f| f.a).sum();
        let broken = of(Kind::Cycle).chain(of(Kind::MissingParent)).count() as u64;
        // Nobody has null as the parent here, so nobody is within reach.
        prop_assert_eq!(below + broken, u64::from(rows));
    }
}

/// The text of a string is what JSON makes of it again, halves of characters included.
#[test]
fn quoted_texts() {
    for text in ["", "a", "\"\\", "\n\u{1}\u{7f}", "ü€😀"] {
        let json = quoted(text.as_bytes());
        assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
    }
    assert_eq!(quoted(b"\xed\xa0\x80x"), br#""\ud800x""#);
}

/// Of entries with one id the later ones get others, which nobody has, and references follow.
#[test]
fn doubled_ids() {
    let mut tree = Tree::default();
    for (row, text) in [
        r#"{"type":"custom","id":"a","parentId":null}"#,
        r#"{"type":"custom","id":"a","parentId":"a"}"#,
        r#"{"type":"label","id":"b","parentId":"a","targetId":"a"}"#,
        r#"{"type":"custom","id":1,"parentId":"b"}"#,
        r#"{"type":"custom","id":1,"parentId":1}"#,
    ]
    .iter()
    .enumerate()
    {
        push(&mut tree, row, text);
    }
    let mut findings = Findings::default();
    tree.finish(&mut findings);
    assert_eq!(findings.counts[Kind::Duplicate as usize], 2);
    let new = |row| tree.name(row);
    assert_ne!(new(1), new(4));
    assert_eq!(tree.changes(0), []);
    assert_eq!(tree.changes(1), [("id", new(1))]);
    assert_eq!(
        tree.changes(2),
        [("parentId", new(1)), ("targetId", new(1))]
    );
    assert_eq!(tree.changes(4), [("id", new(4))]);
}

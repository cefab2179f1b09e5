//! Every walk against a naive twin that knows only ids and parent ids, on random forests with
//! cycles, ids that stand twice, parents that come late or never, and odd parents.

use super::*;
use crate::envelope::{Envelope, Key, TIME_UNKNOWN};
use proptest::prelude::*;
use std::collections::HashMap;

/// A row as the naive twin sees it.
#[derive(Debug, Clone)]
struct Entry {
    id: Key,
    parent: Key,
    kind: Kind,
    role: Role,
    time: i64,
}

fn id(text: &str) -> Key {
    Key::Text(text.as_bytes().into())
}

fn nth(n: usize) -> Key {
    id(&format!("{n:08x}"))
}

/// Some ids are packed into the index (eight characters), some are interned.
fn text(n: u8) -> Key {
    if n.is_multiple_of(2) {
        nth(n.into())
    } else {
        id(&format!("id {n}"))
    }
}

/// A key in a form that can be hashed; None equals nothing, not even itself.
fn hashable(key: &Key) -> Option<String> {
    match key {
        Key::Opaque => None,
        Key::Number(n) => Some(format!("number {}", n + 0.0)),
        other => Some(format!("{other:?}")),
    }
}

fn names(key: &Key) -> bool {
    !matches!(key, Key::Missing | Key::Null | Key::Opaque)
}

struct Naive<'a> {
    entries: &'a [Entry],
    by_id: HashMap<String, Row>,
}

impl<'a> Naive<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        let with_id = entries.iter().enumerate();
        let by_id = with_id.filter_map(|(row, e)| Some((hashable(&e.id)?, row as Row)));
        Self {
            entries,
            by_id: by_id.collect(),
        }
    }

    fn entry(&self, row: Row) -> &Entry {
        &self.entries[row as usize]
    }

    fn find(&self, key: &Key) -> Option<Row> {
        self.by_id.get(&hashable(key)?).copied()
    }

    fn parent(&self, row: Row) -> Option<Row> {
        let parent = &self.entry(row).parent;
        self.find(parent).filter(|_| !parent.is_falsy())
    }

    fn tree_parent(&self, row: Row) -> Option<Row> {
        let Entry { id, parent, .. } = self.entry(row);
        let own = hashable(id).is_some() && hashable(id) == hashable(parent);
        self.find(parent).filter(|_| names(parent) && !own)
    }

    /// From the leaf upwards until a row would come again.
    fn upwards(leaf: Row, parent: impl Fn(Row) -> Option<Row>) -> (Vec<Row>, bool) {
        let mut rows = vec![leaf];
        while let Some(next) = parent(rows[rows.len() - 1]) {
            if rows.contains(&next) {
                return (rows, true);
            }
            rows.push(next);
        }
        (rows, false)
    }

    fn path(&self, leaf: Row) -> (Vec<Row>, bool) {
        let (mut rows, cyclic) = Self::upwards(leaf, |row| self.parent(row));
        rows.reverse();
        (rows, cyclic)
    }

    fn landmarks(&self, leaf: Row) -> Landmarks {
        let (path, cyclic) = self.path(leaf);
        let newest = |wanted: &dyn Fn(&Entry) -> bool| {
            let mut upwards = path.iter().rev().copied();
            upwards.find(|&row| wanted(self.entry(row)))
        };
        let answered = |e: &Entry| e.kind == Kind::Message && e.role == Role::Assistant;
        Landmarks {
            compaction: newest(&|e| e.kind == Kind::Compaction),
            thinking: newest(&|e| e.kind == Kind::ThinkingLevelChange),
            model: newest(&|e| e.kind == Kind::ModelChange || answered(e)),
            cyclic,
        }
    }

    fn common_ancestor(&self, a: Row, b: Row) -> Option<Row> {
        let (a, b) = (self.path(a).0, self.path(b).0);
        let pairs = a.iter().zip(&b).take_while(|(x, y)| x == y);
        pairs.last().map(|(row, _)| *row)
    }

    fn cycle_first(&self, row: Row) -> Option<Row> {
        let (rows, cyclic) = Self::upwards(row, |row| self.tree_parent(row));
        let last = *rows.last().filter(|_| cyclic)?;
        let entry = self.tree_parent(last)?;
        let at = rows.iter().position(|&r| r == entry)?;
        (entry == row).then(|| rows[at..].iter().copied().min())?
    }

    fn is_tree_root(&self, row: Row) -> bool {
        self.tree_parent(row).is_none() || self.cycle_first(row) == Some(row)
    }

    fn rows(&self) -> impl Iterator<Item = Row> + use<> {
        0..self.entries.len() as Row
    }
}

fn index_of(entries: &[Entry]) -> Index {
    let mut index = Index::default();
    for entry in entries {
        add(&mut index, entry);
    }
    index
}

fn add(index: &mut Index, entry: &Entry) {
    let envelope = Envelope {
        kind: entry.kind,
        role: entry.role,
        id: entry.id.clone(),
        parent: entry.parent.clone(),
        time: entry.time,
        dropped: false,
    };
    index.push(0, 0, envelope);
}

fn key(ids: u8) -> impl Strategy<Value = Key> {
    prop_oneof![
        20 => (0..ids).prop_map(text),
        1 => Just(Key::Missing),
        2 => Just(Key::Null),
        1 => any::<bool>().prop_map(Key::Bool),
        2 => (0..3_u8).prop_map(|n| Key::Number(f64::from(n))),
        1 => Just(Key::Number(-0.0)),
        1 => Just(id("")),
        1 => Just(Key::Opaque),
    ]
}

fn entry(ids: u8) -> impl Strategy<Value = Entry> {
    let kinds = prop_oneof![
        4 => Just(Kind::Message),
        1 => Just(Kind::Compaction),
        1 => Just(Kind::ThinkingLevelChange),
        1 => Just(Kind::ModelChange),
        1 => Just(Kind::Unknown),
    ];
    let roles = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::System)];
    let times = prop_oneof![3 => 0..4_i64, 1 => Just(TIME_UNKNOWN)];
    (key(ids), key(ids), kinds, roles, times).prop_map(|(id, parent, kind, role, time)| Entry {
        id,
        parent,
        kind,
        role,
        time,
    })
}

/// Forests with everything that can be wrong in them.
fn wild() -> impl Strategy<Value = Vec<Entry>> {
    (2..40_u8).prop_flat_map(|ids| prop::collection::vec(entry(ids), 1..40))
}

/// Forests as pi writes them: each id once, each parent before its children.
fn sound() -> impl Strategy<Value = Vec<Entry>> {
    let parents = prop::collection::vec((entry(1), any::<prop::sample::Index>()), 1..60);
    parents.prop_map(|drawn| {
        let mut entries: Vec<Entry> = Vec::new();
        for (n, (entry, parent)) in drawn.into_iter().enumerate() {
            let at = parent.index(n + 1);
            let parent = at.checked_sub(1).map_or(Key::Null, |at| text(at as u8));
            let id = text(n as u8);
            entries.push(Entry {
                id,
                parent,
                ..entry
            });
        }
        entries
    })
}

fn forests() -> impl Strategy<Value = Vec<Entry>> {
    prop_oneof![wild(), sound()]
}

proptest! {
    #[test]
    fn paths_and_depths(entries in forests()) {
        let (index, naive) = (index_of(&entries), Naive::new(&entries));
        for leaf in naive.rows() {
            let (rows, cyclic) = naive.path(leaf);
            prop_assert_eq!(path_until_cycle(&index, leaf), (rows.clone(), cyclic));
            if cyclic {
                prop_assert!(path(&index, leaf).is_err() && depth(&index, leaf).is_err());
            } else {
                prop_assert_eq!(depth(&index, leaf).unwrap(), rows.len());
                prop_assert_eq!(path(&index, leaf).unwrap(), rows);
            }
        }
    }

    #[test]
    fn ordered_means_ordered(entries in forests()) {
        let (index, naive) = (index_of(&entries), Naive::new(&entries));
        if index.is_ordered() {
            prop_assert!(naive.rows().all(|row| naive.parent(row).is_none_or(|p| p < row)));
        }
    }

    /// Questions between the appends, so that what is remembered must stay right or be forgotten.
    #[test]
    fn remembered_landmarks(entries in forests(), asked in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let mut index = Index::default();
        for (n, entry) in entries.iter().enumerate() {
            let before = (index.epoch(), n.checked_sub(1).map(|last| path_until_cycle(&index, last as Row)));
            add(&mut index, entry);
            let naive = Naive::new(&entries[..=n]);
            for leaf in [n as Row, asked[n % asked.len()].index(n + 1) as Row] {
                prop_assert_eq!(landmarks(&mut index, leaf), naive.landmarks(leaf));
            }
            if before.0 == index.epoch() && n > 0 {
                prop_assert_eq!(before.1, Some(path_until_cycle(&index, n as Row - 1)));
            }
        }
    }

    #[test]
    fn contexts(entries in forests()) {
        let (mut index, naive) = (index_of(&entries), Naive::new(&entries));
        for leaf in naive.rows() {
            let marks = landmarks(&mut index, leaf);
            let Some(compaction) = marks.compaction else { continue };
            let (path, cyclic) = naive.path(leaf);
            for kept in naive.rows().map(Some).chain([None]) {
                let selected = select(&index, &path, compaction, kept);
                let at = path.iter().position(|&r| r == compaction).unwrap();
                let first = path[..at].iter().position(|&r| Some(r) == kept);
                let mut expected = vec![compaction];
                expected.extend(path[first.unwrap_or(at)..at].iter().filter(|&&r| {
                    let e = naive.entry(r);
                    !(e.kind == Kind::Message && e.role == Role::System)
                }));
                expected.extend(&path[at + 1..]);
                prop_assert_eq!(&selected, &(expected, first.is_some()));
                if !cyclic {
                    prop_assert_eq!(context_rows(&index, leaf, compaction, kept), selected);
                }
            }
        }
    }

    #[test]
    fn descents_and_ancestors(entries in forests()) {
        let (mut index, naive) = (index_of(&entries), Naive::new(&entries));
        for a in naive.rows() {
            for b in naive.rows() {
                let (path, cyclic) = naive.path(b);
                let at = path.iter().position(|&r| r == a);
                prop_assert_eq!(descent(&index, a, b, None), at.map(|at| path[at + 1..].to_vec()));
                prop_assert_eq!(on_path(&mut index, a, b), at.is_some());
                if cyclic || naive.path(a).1 {
                    prop_assert!(a == b || common_ancestor(&index, a, b).is_err());
                } else {
                    prop_assert_eq!(common_ancestor(&index, a, b).unwrap(), naive.common_ancestor(a, b));
                }
            }
        }
    }

    #[test]
    fn subtrees_and_leaves(entries in forests()) {
        let (mut index, naive) = (index_of(&entries), Naive::new(&entries));
        for top in naive.rows() {
            let below = naive.rows().filter(|&row| naive.path(row).0.contains(&top));
            prop_assert_eq!(subtree(&mut index, top), below.collect::<Vec<_>>());
        }
        let bare = naive.rows().filter(|&row| naive.rows().all(|r| naive.parent(r) != Some(row)));
        prop_assert_eq!(leaves(&index), bare.collect::<Vec<_>>());
    }

    #[test]
    fn trees(entries in forests()) {
        let (mut index, naive) = (index_of(&entries), Naive::new(&entries));
        let roots = naive.rows().filter(|&row| naive.is_tree_root(row));
        prop_assert_eq!(tree_roots(&mut index), roots.collect::<Vec<_>>());
        for row in naive.rows() {
            let mut below: Vec<Row> = naive
                .rows()
                .filter(|&r| naive.tree_parent(r) == Some(row) && !naive.is_tree_root(r))
                .collect();
            below.sort_by_key(|&r| match naive.entry(r).time {
                TIME_UNKNOWN => i64::MAX,
                time => time,
            });
            prop_assert_eq!(tree_children(&mut index, row), below);
        }
    }

    /// However broken the parents are, the tree shows each row exactly once.
    #[test]
    fn no_row_is_lost(entries in forests()) {
        let mut index = index_of(&entries);
        let mut open = tree_roots(&mut index);
        let mut shown = Vec::new();
        while let Some(row) = open.pop() {
            shown.push(row);
            prop_assert!(shown.len() <= entries.len());
            open.extend(tree_children(&mut index, row));
        }
        shown.sort_unstable();
        prop_assert_eq!(shown, (0..entries.len() as Row).collect::<Vec<_>>());
    }
}

/// Two branches whose rows take turns, long enough for leaps: neither is on the other's path.
#[test]
fn leaps_do_not_miss() {
    let mut index = Index::default();
    for n in 0..20_000_usize {
        let entry = Entry {
            id: nth(n),
            parent: n.checked_sub(2).map_or(Key::Null, nth),
            kind: Kind::Message,
            role: Role::User,
            time: 0,
        };
        add(&mut index, &entry);
        if n.is_multiple_of(97) {
            landmarks(&mut index, n as Row);
        }
    }
    for leaf in [19_999, 19_998, 10_001, 1023, 1024] {
        for row in 0..20_000 {
            let expected = row <= leaf && row % 2 == leaf % 2;
            assert_eq!(on_path(&mut index, row, leaf), expected, "{row} {leaf}");
        }
    }
}

/// A chain of `len` rows whose kinds `special` tells.
fn chain(len: usize, special: impl Fn(usize) -> Kind) -> Index {
    let mut index = Index::default();
    for n in 0..len {
        let entry = Entry {
            id: nth(n),
            parent: n.checked_sub(1).map_or(Key::Null, nth),
            kind: special(n),
            role: Role::User,
            time: n as i64,
        };
        add(&mut index, &entry);
    }
    index
}

const LONG: usize = 1_000_000;

#[test]
fn a_chain_of_a_million() {
    let mut index = chain(LONG, |_| Kind::Message);
    let leaf = (LONG - 1) as Row;
    assert_eq!(path(&index, leaf).unwrap().len(), LONG);
    assert_eq!(depth(&index, leaf).unwrap(), LONG);
    assert_eq!(common_ancestor(&index, leaf, 7).unwrap(), Some(7));
    assert_eq!(subtree(&mut index, 10).len(), LONG - 10);
    assert_eq!(leaves(&index), [leaf]);
    assert_eq!(tree_roots(&mut index), [0]);
    assert_eq!(tree_children(&mut index, 5), [6]);
}

#[test]
fn a_cycle_of_a_million() {
    let mut index = chain(LONG, |_| Kind::Message);
    // The first row again, now below the last one: all its children hang on it from here on.
    let entry = Entry {
        id: nth(0),
        parent: nth(LONG - 1),
        kind: Kind::Message,
        role: Role::User,
        time: 0,
    };
    add(&mut index, &entry);
    let leaf = LONG as Row;
    assert!(path(&index, leaf).is_err() && depth(&index, leaf).is_err());
    let (rows, cyclic) = path_until_cycle(&index, leaf);
    assert_eq!((rows.len(), cyclic), (LONG, true));
    assert!(landmarks(&mut index, leaf).cyclic);
    assert_eq!(tree_roots(&mut index), [0, 1]);
}

#[test]
fn landmarks_far_up_are_found_without_walking_there_again() {
    let level = |n| match n {
        3 => Kind::ThinkingLevelChange,
        _ => Kind::Message,
    };
    let mut index = chain(LONG, level);
    let leaf = (LONG - 1) as Row;
    assert_eq!(marks::steps(&mut index, leaf), LONG);
    assert_eq!(landmarks(&mut index, leaf).thinking, Some(3));
    assert_eq!(marks::steps(&mut index, leaf), 0);
    for row in (0..leaf).step_by(7919) {
        assert!(marks::steps(&mut index, row) <= 1024);
        assert_eq!(landmarks(&mut index, row).thinking.is_some(), row >= 3);
        assert!(on_path(&mut index, row, leaf));
    }
}

#[test]
fn remembering_costs_little_memory() {
    let mut index = Index::default();
    for n in 0..100_000_usize {
        let entry = Entry {
            id: nth(n),
            parent: n.checked_sub(1).map_or(Key::Null, nth),
            kind: Kind::Message,
            role: Role::Assistant,
            time: 0,
        };
        add(&mut index, &entry);
        assert_eq!(landmarks(&mut index, n as Row).model, Some(n as Row));
    }
    assert!(index.marks_mut().heap_bytes() < 10_000);
}

//! For tests: all that a store knows, so that what was made without a scan can be compared with one.

use super::Store;
use crate::Row;
use crate::envelope::Key;

/// What a store knows, without its path.
pub(crate) fn knowledge(store: &mut Store) -> String {
    let rows = 0..store.index().len() as Row;
    let lines: Vec<_> = rows
        .map(|r| {
            let i = store.index();
            let about = (i.span(r), i.parent(r), i.kind(r), i.role(r), i.time(r));
            (about, i.id(r), store.line(r).unwrap())
        })
        .collect();
    let ends = (store.end, store.sealed_end, store.lines, store.tail);
    let head = (store.header().to_vec(), store.session.clone(), store.body());
    let index = store.index_mut();
    let all = (index.leaf(), index.conversation(), index.orphans());
    let null = index.children_of_key(&Key::Null);
    let labels = index.labels().to_vec();
    let is_ordered = index.is_ordered();
    format!(
        "{lines:?} {ends:?} {head:?} {all:?} {null:?} {labels:?} {is_ordered} {:?}",
        store.report()
    )
}

//! The columnar index: about 45 bytes an entry, and all that tree questions need.
//!
//! A row is an entry of the file, in file order; session headers are not rows. Columns hold where
//! the line lies, what it is, its id and its parent's row. Ids compare by type and value, as in a
//! JavaScript Map. Where an id stands twice, the last row owns it, and every child of that id hangs
//! on the last row; a parent may come later than its children.

mod batch;
mod ids;
pub(crate) mod saved;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

use crate::Row;
use crate::envelope::{Envelope, Key, Kind, Role, TIME_UNKNOWN};
use crate::walk::Marks;
use ids::{INTERNED, Owners, canonical, packed};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use batch::Batch;
pub use ids::IdKey;
pub(crate) use ids::Interner;

/// Parent column: the entry has no parent (null, missing, "", 0, false).
pub const ROOT: u32 = u32::MAX;
/// Parent column: the parent's id is not in the file.
pub const MISSING: u32 = u32::MAX - 1;

/// Tells one shape of a tree from every other one that this process has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epoch(u64);

impl Default for Epoch {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Children as linked lists, made when first asked for and kept up by appends.
#[derive(Debug, Default)]
struct Family {
    first: Vec<u32>,
    next: Vec<u32>,
}

/// What a row says of its parent.
enum Parent {
    /// Eight ASCII characters.
    Packed(IdKey),
    Key(Key),
}

/// The columns. All have one element a row.
#[derive(Debug, Default)]
pub struct Index {
    offset: Vec<u64>,
    length: Vec<u32>,
    id: Vec<IdKey>,
    parent: Vec<u32>,
    time: Vec<i64>,
    kind: Vec<Kind>,
    role: Vec<Role>,
    /// Lengths that do not fit into the column (lines over 4 GiB).
    long: FxHashMap<Row, u64>,
    interner: Interner,
    owners: Owners,
    /// Parent ids that no row has, with the rows that wait for them.
    waiting: FxHashMap<IdKey, Vec<Row>>,
    /// Falsy parents other than a missing one: `null`, "", 0, false.
    falsy: FxHashMap<IdKey, Vec<Row>>,
    family: Option<Family>,
    labels: Vec<Row>,
    infos: Vec<Row>,
    /// Some id stands in more than one row.
    reused: bool,
    /// Some row came before its parent, or is its own parent.
    late: bool,
    epoch: Epoch,
    /// What walks remember; empty after every change of [`Epoch`].
    marks: Marks,
    /// The first row of each cycle, once somebody asked.
    loops: Option<Vec<Row>>,
    leaf: Option<Row>,
    conversation: Option<Row>,
}

impl Index {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }

    /// The lines that began at `from` begin at `to` now.
    pub(crate) fn move_lines(&mut self, from: u64, to: u64) {
        for offset in &mut self.offset {
            *offset = *offset - from + to;
        }
    }

    /// Makes room for more rows: twice as many, or half as many more where they come one by one.
    fn make_room(&mut self, more: usize) {
        if self.offset.capacity() - self.offset.len() >= more {
            return;
        }
        let usual = if more > 1 { self.len() } else { self.len() / 2 };
        let more = more.max(usual).max(32);
        self.offset.reserve_exact(more);
        self.length.reserve_exact(more);
        self.id.reserve_exact(more);
        self.parent.reserve_exact(more);
        self.time.reserve_exact(more);
        self.kind.reserve_exact(more);
        self.role.reserve_exact(more);
    }

    /// Gives back room after a scan: columns that double may be half empty, and would take 78 bytes an
    /// entry.
    pub(crate) fn trim(&mut self) {
        let enough = self.len() + self.len() / 2;
        self.offset.shrink_to(enough);
        self.length.shrink_to(enough);
        self.id.shrink_to(enough);
        self.parent.shrink_to(enough);
        self.time.shrink_to(enough);
        self.kind.shrink_to(enough);
        self.role.shrink_to(enough);
    }

    /// Adds a row: the line at `offset` of `length` bytes (without its LF).
    pub fn push(&mut self, offset: u64, length: u64, envelope: Envelope) -> Row {
        self.make_room(1);
        let row = self.len() as Row;
        self.offset.push(offset);
        self.push_length(row, length);
        self.time.push(envelope.time);
        self.kind.push(envelope.kind);
        self.role.push(envelope.role);
        let id = self.interner.intern(envelope.id);
        let parent = match packed(&envelope.parent) {
            Some(id) => Parent::Packed(id),
            None => Parent::Key(envelope.parent),
        };
        self.connect(row, id, parent);
        row
    }

    /// Adds the row of another index, whose line lies elsewhere and hangs on another of its rows, or
    /// on null.
    pub(crate) fn push_copy(
        &mut self,
        other: &Self,
        from: Row,
        (offset, length): (u64, u64),
        parent: Option<Row>,
    ) {
        self.make_room(1);
        let row = self.len() as Row;
        self.offset.push(offset);
        self.push_length(row, length);
        self.time.push(other.time[from as usize]);
        self.kind.push(other.kind[from as usize]);
        self.role.push(other.role[from as usize]);
        let own = other.id[from as usize];
        let id = match own.0 & INTERNED {
            0 => own,
            _ => self.interner.intern(other.id(from)),
        };
        let parent = match parent.map(|row| (row, other.id[row as usize])) {
            Some((_, id)) if id.0 & INTERNED == 0 => Parent::Packed(id),
            Some((row, _)) => Parent::Key(other.id(row)),
            None => Parent::Key(Key::Null),
        };
        self.connect(row, id, parent);
    }

    /// Adds the row of another index, whose line lies elsewhere and has other ids, and the role that
    /// hook messages have today.
    pub(crate) fn push_renamed(
        &mut self,
        other: &Self,
        from: Row,
        (offset, length): (u64, u64),
        id: Key,
        parent: Key,
    ) {
        let role = match other.role(from) {
            Role::HookMessage => Role::Custom,
            role => role,
        };
        let envelope = Envelope {
            kind: other.kind(from),
            role,
            id,
            parent,
            time: other.time[from as usize],
            dropped: false,
        };
        self.push(offset, length, envelope);
    }

    /// Adds the rows of a scan.
    pub(crate) fn extend(&mut self, mut batch: Batch) {
        let first = self.len();
        self.make_room(batch.len());
        self.offset.extend_from_slice(&batch.offset);
        self.time.extend_from_slice(&batch.time);
        self.kind.extend_from_slice(&batch.kind);
        self.role.extend_from_slice(&batch.role);
        for at in 0..batch.len() {
            let row = (first + at) as Row;
            self.push_length(row, batch.length[at]);
            let (id, parent) = (batch.id[at], batch.parent[at]);
            let id = batch.take(id).map_or(id, |key| self.interner.intern(key));
            let parent = batch
                .take(parent)
                .map_or(Parent::Packed(parent), Parent::Key);
            self.connect(row, id, parent);
        }
    }

    fn push_length(&mut self, row: Row, length: u64) {
        self.length.push(u32::try_from(length).unwrap_or(u32::MAX));
        if length >= u64::from(u32::MAX) {
            self.long.insert(row, length);
        }
    }

    /// Gives the last row its id and its parent.
    fn connect(&mut self, row: Row, id: IdKey, parent: Parent) {
        self.id.push(id);
        self.note(row, id, self.kind[row as usize], self.role[row as usize]);
        let replaced = self.owners.push(&self.id);
        let parent = match parent {
            Parent::Packed(id) => self.resolve_id(row, id),
            Parent::Key(key) => self.resolve(row, key),
        };
        self.parent.push(parent);
        if replaced && self.interner.is_name(id) {
            // Every child of the old owner is now the new one's: look-ups go through the owner.
            self.reused = true;
            self.family = None;
            self.reshaped();
        }
        self.late |= parent == row;
        self.loops = None;
        self.adopt(row, id);
        if let Some(family) = &mut self.family {
            family.first.push(ROOT);
            family.next.push(ROOT);
            family.link(row, parent);
        }
    }

    fn note(&mut self, row: Row, id: IdKey, kind: Kind, role: Role) {
        if self.interner.is_text(id) {
            self.leaf = Some(row);
        }
        match kind {
            Kind::Label => self.labels.push(row),
            Kind::SessionInfo => self.infos.push(row),
            Kind::Message if matches!(role, Role::User | Role::Assistant) => {
                self.conversation.get_or_insert(row);
            }
            _ => {}
        }
    }

    fn resolve(&mut self, row: Row, parent: Key) -> u32 {
        if parent.is_falsy() {
            if parent != Key::Missing {
                let id = self.interner.intern(parent);
                self.falsy.entry(id).or_default().push(row);
            }
            return ROOT;
        }
        let id = self.interner.intern(parent);
        self.resolve_id(row, id)
    }

    fn resolve_id(&mut self, row: Row, id: IdKey) -> u32 {
        // Nearly every entry's parent is the entry before it.
        if row > 0 && self.id[row as usize - 1] == id && self.id[row as usize] != id {
            return row - 1;
        }
        self.row_of(id).unwrap_or_else(|| {
            self.waiting.entry(id).or_default().push(row);
            MISSING
        })
    }

    fn adopt(&mut self, row: Row, id: IdKey) {
        let Some(children) = self.waiting.remove(&id) else {
            return;
        };
        self.late = true;
        self.reshaped();
        for child in children {
            self.parent[child as usize] = row;
            if let Some(family) = &mut self.family {
                family.link(child, row);
            }
        }
    }

    /// Rows that were there before have other ancestors now.
    fn reshaped(&mut self) {
        self.epoch = Epoch::default();
        self.marks = Marks::default();
    }

    fn row_of(&self, id: IdKey) -> Option<Row> {
        self.owners.find(&self.id, id)
    }

    /// The last row with this id.
    pub fn find(&self, key: &Key) -> Option<Row> {
        self.row_of(self.interner.find(key)?)
    }

    /// The row that look-ups of this row's id give: itself, unless the id was used again later.
    pub fn owner(&self, row: Row) -> Row {
        self.row_of(self.id[row as usize]).unwrap_or(row)
    }

    /// The number of different ids; rows without an id count as one.
    pub fn distinct_ids(&self) -> usize {
        self.owners.count(&self.id)
    }

    /// The id of a row.
    pub fn id(&self, row: Row) -> Key {
        self.interner.key(self.id[row as usize])
    }

    /// Whether the row's line has no id at all.
    pub(crate) fn has_no_id(&self, row: Row) -> bool {
        self.interner.is_missing(self.id[row as usize])
    }

    /// Whether the row's line names no parent at all, not even null.
    pub(crate) fn has_no_parent(&self, row: Row) -> bool {
        let named = |rows: &Vec<Row>| rows.binary_search(&row).is_ok();
        self.parent[row as usize] == ROOT && !self.falsy.values().any(named)
    }

    /// Whether the row's id is a string.
    pub fn has_text_id(&self, row: Row) -> bool {
        self.interner.is_text(self.id[row as usize])
    }

    /// The parent's row, [`ROOT`] or [`MISSING`].
    pub fn parent(&self, row: Row) -> u32 {
        match self.parent[row as usize] {
            parent if self.reused && parent < MISSING => self.owner(parent),
            parent => parent,
        }
    }

    /// Whether every parent comes before its children; then there are no cycles either.
    pub fn is_ordered(&self) -> bool {
        !self.late && !self.reused
    }

    /// A number that stays as long as rows are only added: what was found out about the ancestors
    /// of a row holds as long as it stays. No two indexes of a process share one.
    pub fn epoch(&self) -> u64 {
        self.epoch.0
    }

    pub(crate) fn marks_mut(&mut self) -> &mut Marks {
        &mut self.marks
    }

    pub(crate) fn loops_mut(&mut self) -> &mut Option<Vec<Row>> {
        &mut self.loops
    }

    /// Whether two rows have one id.
    pub fn same_id(&self, a: Row, b: Row) -> bool {
        self.id[a as usize] == self.id[b as usize]
    }

    /// Rows whose parent is "", 0 or false, by that parent.
    fn named_falsy(&self) -> impl Iterator<Item = (IdKey, &[Row])> {
        let named = |id: &IdKey| self.interner.is_name(*id);
        let all = self.falsy.iter().filter(move |(id, _)| named(id));
        all.map(|(id, rows)| (*id, rows.as_slice()))
    }

    /// The row with an id that is falsy but no null ("", 0, false), if this is the row's parent.
    /// Paths end there, but the tree goes on.
    pub fn falsy_parent(&self, row: Row) -> Option<Row> {
        let (id, _) = self
            .named_falsy()
            .find(|(_, rows)| rows.binary_search(&row).is_ok())?;
        self.row_of(id)
    }

    /// Whether some entry is below one whose id is falsy.
    pub fn has_falsy_parents(&self) -> bool {
        self.named_falsy().any(|(id, _)| self.row_of(id).is_some())
    }

    /// Rows whose falsy parent is this row.
    pub fn falsy_children(&self, row: Row) -> &[Row] {
        let own = self
            .named_falsy()
            .find(|(id, _)| *id == self.id[row as usize]);
        own.map_or(&[], |(_, rows)| rows)
    }

    /// Byte offset and length (without LF) of a row's line.
    pub fn span(&self, row: Row) -> (u64, u64) {
        let length = match self.length[row as usize] {
            u32::MAX => self.long[&row],
            n => u64::from(n),
        };
        (self.offset[row as usize], length)
    }

    /// The type of a row.
    pub fn kind(&self, row: Row) -> Kind {
        self.kind[row as usize]
    }

    /// The message role of a row.
    pub fn role(&self, row: Row) -> Role {
        self.role[row as usize]
    }

    /// The entry's time in ms; None if it is not written as pi writes it.
    pub fn time(&self, row: Row) -> Option<i64> {
        Some(self.time[row as usize]).filter(|&t| t != TIME_UNKNOWN)
    }

    /// Rows of label entries, in file order.
    pub fn labels(&self) -> &[Row] {
        &self.labels
    }

    /// Rows of `session_info` entries, in file order.
    pub fn infos(&self) -> &[Row] {
        &self.infos
    }

    /// The last row whose id is a string.
    pub fn leaf(&self) -> Option<Row> {
        self.leaf
    }

    /// The first user or assistant message: from then on a session has a file.
    pub fn conversation(&self) -> Option<Row> {
        self.conversation
    }

    /// Rows that have no parent.
    pub fn roots(&self) -> impl Iterator<Item = Row> + '_ {
        self.parent
            .iter()
            .enumerate()
            .filter(|(_, p)| **p == ROOT)
            .map(|(row, _)| row as Row)
    }

    /// Rows whose parent is unknown, in file order.
    pub fn orphans(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.waiting.values().flatten().copied().collect();
        rows.sort_unstable();
        rows
    }

    /// Rows whose `parentId` equals `key` exactly, in file order: `null` is not "missing".
    pub fn children_of_key(&mut self, key: &Key) -> Vec<Row> {
        let Some(id) = self.interner.find(key) else {
            return Vec::new();
        };
        if let Some(row) = self.row_of(id).filter(|_| !key.is_falsy()) {
            return self.children(row);
        }
        self.falsy
            .get(&id)
            .or_else(|| self.waiting.get(&id))
            .cloned()
            .unwrap_or_default()
    }

    /// Rows whose parent is `row`, in file order.
    pub fn children(&mut self, row: Row) -> Vec<Row> {
        let family = self.family.take().unwrap_or_else(|| Family::of(self));
        let mut rows = Vec::new();
        let mut at = family.first[row as usize];
        while at != ROOT {
            rows.push(at);
            at = family.next[at as usize];
        }
        self.family = Some(family);
        rows.sort_unstable();
        rows
    }

    /// Heap bytes of the index, the id table among them.
    pub fn heap_bytes(&self) -> usize {
        let column = |len: usize, width: usize| len * width;
        column(self.offset.capacity(), 8)
            + column(self.length.capacity(), 4)
            + column(self.id.capacity(), 8)
            + column(self.parent.capacity(), 4)
            + column(self.time.capacity(), 8)
            + column(self.kind.capacity(), 1)
            + column(self.role.capacity(), 1)
            + self.owners.heap_bytes()
            + self.marks.heap_bytes()
            + self
                .family
                .as_ref()
                .map_or(0, |f| (f.first.capacity() + f.next.capacity()) * 4)
    }

    /// The columns, for copying out.
    pub fn columns(&self) -> Columns<'_> {
        Columns {
            offset: &self.offset,
            kind: &self.kind,
            role: &self.role,
            time: &self.time,
            index: self,
        }
    }
}

impl Family {
    fn of(index: &Index) -> Self {
        let mut family = Self {
            first: vec![ROOT; index.len()],
            next: vec![ROOT; index.len()],
        };
        for row in 0..index.len() as Row {
            family.link(row, index.parent(row));
        }
        family
    }

    fn link(&mut self, row: Row, parent: u32) {
        if parent < MISSING {
            self.next[row as usize] = self.first[parent as usize];
            self.first[parent as usize] = row;
        }
    }
}

/// Read access to whole columns.
pub struct Columns<'a> {
    pub offset: &'a [u64],
    pub kind: &'a [Kind],
    pub role: &'a [Role],
    pub time: &'a [i64],
    index: &'a Index,
}

impl Columns<'_> {
    /// The parent of each row.
    pub fn parent(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.index.len() as Row).map(|row| self.index.parent(row))
    }

    /// The length of each line in bytes, without its LF.
    pub fn length(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.index.len() as Row).map(|row| self.index.span(row).1)
    }
}

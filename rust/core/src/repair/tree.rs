//! Ids and parents: what is wrong with them, and what a repair makes of them.
//!
//! References are read as they were written: they mean the last entry with this id before them in the
//! file, and only where there is none the first one behind. So of two entries with one id the later
//! one gets another id, and who came after it goes on to mean it.
//!
//! Every step takes time in proportion to the number of entries, whatever their parents say.

use super::lines::{Place, Role, Sound};
use super::parts::{self, TARGETS};
use super::{Finding, Findings, Kind};
use crate::Row;
use crate::envelope::Key;
use crate::index::{IdKey, Interner};
use crate::migrate::derived_id;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

/// Parent column: none. The highest row number, so that a row is never it.
const ROOT: u32 = u32::MAX;
/// Parent column: its id has not been met.
const MISSING: u32 = u32::MAX - 1;

/// How much of an id is shown.
const SHOWN: usize = 200;

/// A reference that has to lead somewhere.
struct Target {
    row: Row,
    kind: Kind,
    id: Option<IdKey>,
    /// The row that is meant, if it stands before.
    owner: Option<Row>,
    /// As it stands in the line.
    text: Vec<u8>,
}

/// The tree of a file, entry by entry.
#[derive(Default)]
pub(super) struct Tree {
    ids: Interner,
    /// The last row with an id.
    rows: FxHashMap<IdKey, Row>,
    /// The first row with an id that has been given again.
    first: FxHashMap<IdKey, Row>,
    /// Ids that were named before an entry had them, with those that named them as their parent.
    waiting: FxHashMap<IdKey, Vec<Row>>,
    id: Vec<IdKey>,
    parent: Vec<u32>,
    offset: Vec<u64>,
    line: Vec<u64>,
    /// Rows whose id was taken, and the ids they get.
    renamed: FxHashMap<Row, [u8; 8]>,
    /// What these name of such rows: the member, as in [`TARGETS`], and the row.
    renamed_targets: FxHashMap<Row, Vec<(usize, Row)>>,
    targets: Vec<Target>,
    /// Rows that get another parent.
    attached: FxHashMap<Row, u32>,
}

impl Tree {
    /// Takes the next entry.
    pub(super) fn push(&mut self, place: Place, sound: &Sound<'_>) {
        let Role::Entry(row) = sound.role else {
            return;
        };
        let value = |place: &std::ops::Range<usize>| &sound.text[place.clone()];
        self.offset.push(place.offset);
        self.line.push(place.line);
        let parent = parts::key(value(&sound.parts.parent));
        let parent = self.parent_row(row, parent);
        self.parent.push(parent);
        self.note_targets(row, sound);
        let id = parts::key(value(&sound.parts.id));
        let named = is_name(&id);
        let id = self.ids.intern(id);
        self.id.push(id);
        if !named {
            return;
        }
        match self.rows.insert(id, row) {
            Some(before) => {
                self.first.entry(id).or_insert(before);
                self.renamed.insert(row, [0; 8]);
            }
            None => {
                for child in self.waiting.remove(&id).unwrap_or_default() {
                    self.parent[child as usize] = row;
                }
            }
        }
    }

    fn parent_row(&mut self, row: Row, parent: Key) -> u32 {
        if parent.is_falsy() {
            return ROOT;
        }
        if parent == Key::Opaque {
            return MISSING;
        }
        let id = self.ids.intern(parent);
        self.rows.get(&id).copied().unwrap_or_else(|| {
            self.waiting.entry(id).or_default().push(row);
            MISSING
        })
    }

    fn note_targets(&mut self, row: Row, sound: &Sound<'_>) {
        let kind = &sound.text[sound.parts.kind.clone()];
        for (member, place) in sound.parts.targets.iter().enumerate() {
            let text = &sound.text[place.clone()];
            let key = parts::key(text);
            let id = is_name(&key).then(|| self.ids.intern(key));
            let owner = id.and_then(|id| self.rows.get(&id)).copied();
            if let Some(owner) = owner
                && self.renamed.contains_key(&owner)
            {
                let named = self.renamed_targets.entry(row).or_default();
                named.push((member, owner));
            }
            if let Some(kind) = target_kind(kind, member) {
                let text = cut(text).to_vec();
                self.targets.push(Target {
                    row,
                    kind,
                    id,
                    owner,
                    text,
                });
            }
        }
    }

    /// Looks the whole tree over, and decides what is to become of it.
    pub(super) fn finish(&mut self, findings: &mut Findings) {
        self.name_anew(findings);
        let cycles = self.break_cycles();
        let lost = self.parent.iter().enumerate();
        let lost: Vec<Row> = lost
            .filter(|(_, parent)| **parent == MISSING)
            .map(|(row, _)| row as Row)
            .collect();
        let missing = self.missing_parents();
        if !(cycles.is_empty() && lost.is_empty()) {
            let mut attaching = Attaching::new(self, &cycles, &lost);
            attaching.tell_unreachable(self, findings);
            for (row, length) in cycles {
                attaching.attach(self, row);
                let mut finding = self.finding(Kind::Cycle, row);
                finding.a = length;
                finding.to = self.new_parent(row).unwrap_or_default();
                findings.add(finding);
            }
            for row in lost {
                attaching.attach(self, row);
                let mut finding = self.finding(Kind::MissingParent, row);
                finding.shown = missing
                    .get(&row)
                    .map_or_else(Vec::new, |&id| self.shown(id));
                finding.to = self.new_parent(row).unwrap_or_default();
                findings.add(finding);
            }
        }
        self.look_at_targets(findings);
    }

    fn finding(&self, kind: Kind, row: Row) -> Finding {
        let at = row as usize;
        Finding {
            id: match self.ids.key(self.id[at]) {
                Key::Text(id) => Some(cut(&id).to_vec()),
                _ => None,
            },
            ..Finding::at(kind, self.line[at], self.offset[at])
        }
    }

    /// The beginning of an id as JSON has it.
    fn shown(&self, id: IdKey) -> Vec<u8> {
        match self.ids.key(id) {
            Key::Text(text) => quoted(cut(&text)),
            other => other.to_string().into_bytes(),
        }
    }

    fn missing_parents(&mut self) -> FxHashMap<Row, IdKey> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting
            .flat_map(|(id, rows)| rows.into_iter().map(move |row| (row, id)))
            .collect()
    }

    /// Gives entries whose id is taken ids that nobody has.
    fn name_anew(&mut self, findings: &mut Findings) {
        let mut rows: Vec<Row> = self.renamed.keys().copied().collect();
        rows.sort_unstable();
        let mut given = HashSet::new();
        for row in rows {
            let old = self.shown(self.id[row as usize]);
            let line = self.line[row as usize];
            let new = (0..).map(|attempt| derived_id(line, &old, attempt));
            let new = new.map(|id| format!("{id:08x}")).find(|id| {
                let key = self.ids.find(&Key::Text(id.as_bytes().into()));
                let taken = key.is_some_and(|key| self.rows.contains_key(&key));
                !taken && given.insert(id.clone())
            });
            let mut finding = self.finding(Kind::Duplicate, row);
            let new = new.unwrap_or_default();
            finding.to = quoted(new.as_bytes());
            findings.add(finding);
            let new = new.as_bytes().try_into().unwrap_or_default();
            self.renamed.insert(row, new);
        }
    }

    /// Cuts each cycle at its first row, which then has no parent; with the cycles' lengths.
    fn break_cycles(&mut self) -> Vec<(Row, u64)> {
        const NEW: u32 = 0;
        let mut cycles = Vec::new();
        // The walk that came here first, from 1.
        let mut walk = vec![NEW; self.parent.len()];
        for start in 0..self.parent.len() as Row {
            let mut row = start;
            while row < MISSING && walk[row as usize] == NEW {
                walk[row as usize] = start + 1;
                row = self.parent[row as usize];
            }
            if row < MISSING && walk[row as usize] == start + 1 {
                let (mut first, mut length, mut at) = (row, 1, self.parent[row as usize]);
                while at != row {
                    first = first.min(at);
                    length += 1;
                    at = self.parent[at as usize];
                }
                self.parent[first as usize] = ROOT;
                cycles.push((first, length));
            }
        }
        cycles
    }

    fn is_named(&self, row: Row) -> bool {
        self.renamed.contains_key(&row) || self.ids.is_text(self.id[row as usize])
    }

    /// The JSON text of a row's id in the repaired file.
    fn name(&self, row: Row) -> Vec<u8> {
        match (self.renamed.get(&row), self.ids.key(self.id[row as usize])) {
            (Some(new), _) => quoted(new),
            (None, Key::Text(id)) => quoted(&id),
            (None, _) => b"null".to_vec(),
        }
    }

    /// The text of a row's parent, if it is not what stands in the file.
    fn new_parent(&self, row: Row) -> Option<Vec<u8>> {
        let parent = match self.attached.get(&row) {
            Some(&ROOT) => return Some(b"null".to_vec()),
            Some(&parent) => parent,
            None => *self.parent.get(row as usize)?,
        };
        let changed = self.attached.contains_key(&row) || self.renamed.contains_key(&parent);
        changed.then(|| self.name(parent))
    }

    /// The members of a row that a repair changes, and their new texts.
    pub(super) fn changes(&self, row: Row) -> Vec<(&'static str, Vec<u8>)> {
        let mut changes = Vec::new();
        if self.renamed.contains_key(&row) {
            changes.push(("id", self.name(row)));
        }
        if let Some(parent) = self.new_parent(row) {
            changes.push(("parentId", parent));
        }
        for &(member, target) in self.renamed_targets.get(&row).into_iter().flatten() {
            changes.push((TARGETS[member], self.name(target)));
        }
        changes
    }

    fn look_at_targets(&mut self, findings: &mut Findings) {
        let targets = std::mem::take(&mut self.targets);
        let kept = |target: &Target| target.kind == Kind::CompactionTarget;
        let ranks = targets.iter().any(kept).then(|| Ranks::of(&self.parent));
        for target in &targets {
            let owner = target.owner.or_else(|| {
                let id = target.id?;
                self.first.get(&id).or_else(|| self.rows.get(&id)).copied()
            });
            let off_path = match (&ranks, owner) {
                (Some(ranks), Some(owner)) if kept(target) => !ranks.is_above(owner, target.row),
                _ => false,
            };
            if owner.is_none() || off_path {
                let mut finding = self.finding(target.kind, target.row);
                finding.shown.clone_from(&target.text);
                finding.a = u64::from(off_path);
                findings.add(finding);
            }
        }
    }
}

/// Whether an entry with this id can be found by it.
fn is_name(id: &Key) -> bool {
    !matches!(id, Key::Missing | Key::Null | Key::Opaque)
}

/// What is found if this member of such an entry leads nowhere.
fn target_kind(kind: &[u8], member: usize) -> Option<Kind> {
    [
        ("label", 0, Kind::LabelTarget),
        ("context_edit", 0, Kind::EditTarget),
        ("compaction", 1, Kind::CompactionTarget),
    ]
    .into_iter()
    .find(|&(name, at, _)| at == member && parts::is_text(kind, name))
    .map(|(_, _, found)| found)
}

pub(super) fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(SHOWN)]
}

/// The JSON text of a string in WTF-8.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    while let [first, ..] = rest {
        let surrogate = matches!(rest, [0xed, 0xa0..=0xbf, _, ..]);
        match first {
            b'"' | b'\\' => out.extend([b'\\', *first]),
            0..=0x1f => out.extend(format!("\\u{first:04x}").into_bytes()),
            _ if surrogate => {
                let unit = 0xd000 | u32::from(rest[1] & 0x3f) << 6 | u32::from(rest[2] & 0x3f);
                out.extend(format!("\\u{unit:04x}").into_bytes());
            }
            _ => out.push(*first),
        }
        rest = &rest[if surrogate { 3 } else { 1 }..];
    }
    out.push(b'"');
    out
}

/// Rows that have lost their parent, on their way to another one.
struct Attaching {
    /// The topmost row above each row, as far as it is known: follow it until it stays.
    top: Vec<u32>,
    /// The nearest row before each one that can be a parent.
    before: Vec<u32>,
    /// The same, without some that are known to be below the same topmost row.
    jump: Vec<u32>,
    /// Rows that hang on nothing by mistake, and how many there are below them.
    broken: FxHashMap<Row, (u64, Row)>,
}

impl Attaching {
    fn new(tree: &Tree, cycles: &[(Row, u64)], lost: &[Row]) -> Self {
        let rows = tree.parent.len();
        let mut before = vec![ROOT; rows];
        let mut named = ROOT;
        for row in 0..rows as Row {
            before[row as usize] = named;
            if tree.is_named(row) {
                named = row;
            }
        }
        let broken = cycles
            .iter()
            .map(|&(row, _)| row)
            .chain(lost.iter().copied());
        let mut this = Self {
            top: tops(&tree.parent),
            jump: before.clone(),
            before,
            broken: broken.map(|row| (row, (0, ROOT))).collect(),
        };
        for row in 0..rows as Row {
            let top = this.top[row as usize];
            if let Some((below, first)) = this.broken.get_mut(&top).filter(|_| top != row) {
                *below += 1;
                *first = (*first).min(row);
            }
        }
        this
    }

    fn tell_unreachable(&self, tree: &Tree, findings: &mut Findings) {
        let mut all: Vec<_> = self
            .broken
            .iter()
            .filter(|(_, (below, _))| *below > 0)
            .collect();
        all.sort_unstable();
        for (&row, &(below, first)) in all {
            let mut finding = tree.finding(Kind::Unreachable, first);
            finding.a = below;
            finding.b = tree.line[row as usize];
            findings.add(finding);
        }
    }

    fn find(&mut self, mut row: Row) -> Row {
        while self.top[row as usize] != row {
            let next = self.top[row as usize];
            self.top[row as usize] = self.top[next as usize];
            row = next;
        }
        row
    }

    /// Hangs a topmost row on the nearest one before it in the file that is not below it.
    fn attach(&mut self, tree: &mut Tree, row: Row) {
        let nearest = self.before[row as usize];
        let mut parent = nearest;
        while parent != ROOT && self.find(parent) == row {
            parent = self.jump[parent as usize];
        }
        if nearest != parent {
            self.jump[nearest as usize] = parent;
        }
        if parent != ROOT {
            self.top[row as usize] = self.find(parent);
        }
        tree.parent[row as usize] = parent;
        tree.attached.insert(row, parent);
    }
}

/// The topmost row above each row, of parents without cycles.
fn tops(parent: &[u32]) -> Vec<u32> {
    let mut top = vec![ROOT; parent.len()];
    let mut way = Vec::new();
    for start in 0..parent.len() as Row {
        let mut row = start;
        while top[row as usize] == ROOT && parent[row as usize] < MISSING {
            way.push(row);
            row = parent[row as usize];
        }
        let found = match top[row as usize] {
            ROOT => row,
            top => top,
        };
        top[row as usize] = found;
        for passed in way.drain(..) {
            top[passed as usize] = found;
        }
    }
    top
}

/// Which rows stand above which: those whose span holds theirs.
struct Ranks {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Ranks {
    fn of(parent: &[u32]) -> Self {
        let rows = parent.len();
        let (mut child, mut sibling) = (vec![ROOT; rows], vec![ROOT; rows]);
        for (row, &above) in parent.iter().enumerate() {
            if above < MISSING {
                sibling[row] = std::mem::replace(&mut child[above as usize], row as u32);
            }
        }
        let (mut first, mut last) = (vec![0; rows], vec![0; rows]);
        let mut count = 0;
        for (root, _) in parent
            .iter()
            .enumerate()
            .filter(|(_, above)| **above >= MISSING)
        {
            let mut row = root as u32;
            loop {
                first[row as usize] = count;
                count += 1;
                let mut next = child[row as usize];
                while next == ROOT {
                    last[row as usize] = count;
                    next = sibling[row as usize];
                    if next != ROOT || row == root as u32 {
                        break;
                    }
                    row = parent[row as usize];
                    if row == root as u32 {
                        last[row as usize] = count;
                        break;
                    }
                }
                if next == ROOT {
                    break;
                }
                row = next;
            }
        }
        Self { first, last }
    }

    /// Whether a row is on the path of another one.
    fn is_above(&self, row: Row, below: Row) -> bool {
        let at = self.first[below as usize];
        (self.first[row as usize]..self.last[row as usize]).contains(&at)
    }
}

#[cfg(test)]
mod tests;

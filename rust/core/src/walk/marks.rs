//! What a context needs to know of a path, without walking it again every turn.
//!
//! The newest compaction, thinking level and model above a row do not change while rows are only
//! added, so they are remembered for rows that were asked for, and every [`STRIDE`] rows of a path
//! on the way. The next question climbs to the nearest remembered row: a few steps where the leaf
//! has moved on by appends, at most about a stride after a move to another branch. Remembered rows
//! also know the next one above, so that a path can be gone up in leaps. A change of the shape (see
//! [`Index::epoch`]) forgets everything.

use super::{descent, path_until_cycle};
use crate::Row;
use crate::envelope::{Kind, Role};
use crate::index::{Index, MISSING, ROOT};
use rustc_hash::FxHashMap;

/// Rows of a path between two that are remembered for good: 25 bytes for every thousandth row.
const STRIDE: u32 = 1024;

/// What a context needs to know of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Landmarks {
    /// The newest compaction.
    pub compaction: Option<Row>,
    /// The newest `thinking_level_change`.
    pub thinking: Option<Row>,
    /// The newest `model_change` or assistant message.
    pub model: Option<Row>,
    /// The path runs into a cycle and was cut there.
    pub cyclic: bool,
}

/// Landmarks in five words; [`ROOT`] is none.
#[derive(Debug, Clone, Copy)]
struct Mark {
    compaction: u32,
    thinking: u32,
    model: u32,
    /// Rows this is about: those of a part of a path, or of all of it.
    rows: u32,
    /// The next row above that is remembered for good.
    leap: u32,
}

impl Mark {
    const NONE: Self = Self {
        compaction: ROOT,
        thinking: ROOT,
        model: ROOT,
        rows: 0,
        leap: ROOT,
    };

    /// Goes one row up.
    fn add(&mut self, index: &Index, row: Row) {
        self.rows += 1;
        let newest = match index.kind(row) {
            Kind::Compaction => &mut self.compaction,
            Kind::ThinkingLevelChange => &mut self.thinking,
            Kind::ModelChange => &mut self.model,
            Kind::Message if index.role(row) == Role::Assistant => &mut self.model,
            _ => return,
        };
        if *newest == ROOT {
            *newest = row;
        }
    }

    /// The mark of this part of a path and all that is above it.
    fn over(self, above: Self) -> Self {
        let newest = |own, other| if own == ROOT { other } else { own };
        Self {
            compaction: newest(self.compaction, above.compaction),
            thinking: newest(self.thinking, above.thinking),
            model: newest(self.model, above.model),
            rows: self.rows + above.rows,
            leap: self.leap,
        }
    }

    fn landmarks(self, cyclic: bool) -> Landmarks {
        let some = |row| Some(row).filter(|&r| r != ROOT);
        Landmarks {
            compaction: some(self.compaction),
            thinking: some(self.thinking),
            model: some(self.model),
            cyclic,
        }
    }
}

/// Marks that are remembered.
#[derive(Debug, Default)]
pub struct Marks {
    fixed: FxHashMap<Row, Mark>,
    /// The last ones asked for: a leaf that moves on leaves no trace but every [`STRIDE`] rows.
    recent: [Option<(Row, Mark)>; 4],
    oldest: usize,
}

impl Marks {
    fn get(&self, row: Row) -> Option<Mark> {
        let fixed = || self.fixed.get(&row).copied();
        self.recent_at(row).or_else(fixed)
    }

    fn recent_at(&self, row: Row) -> Option<Mark> {
        let mut recent = self.recent.iter().flatten();
        recent.find(|(r, _)| *r == row).map(|(_, mark)| *mark)
    }

    fn keep(&mut self, row: Row, mark: Mark) {
        self.recent[self.oldest] = Some((row, mark));
        self.oldest = (self.oldest + 1) % self.recent.len();
    }

    /// Heap bytes, nearly.
    pub fn heap_bytes(&self) -> usize {
        self.fixed.capacity() * (size_of::<(Row, Mark)>() + 1)
    }
}

/// The landmarks of the path to `leaf`.
pub fn landmarks(index: &mut Index, leaf: Row) -> Landmarks {
    if let Some(mark) = index.marks_mut().get(leaf) {
        return mark.landmarks(false);
    }
    let marks = std::mem::take(index.marks_mut());
    let climbed = climb(index, &marks, leaf);
    *index.marks_mut() = marks;
    match climbed {
        Some(climb) => remember(index.marks_mut(), &climb).landmarks(false),
        None => landmarks_of_cycle(index, leaf),
    }
}

/// A path up to what is remembered (or to the root).
struct Climb {
    /// Its rows in parts of a stride, from the leaf on, each with the row it begins at.
    parts: Vec<(Row, Mark)>,
    /// Where it ended, if not at the root, and what is remembered there.
    above: Option<(Row, Mark)>,
}

/// Climbs from `leaf`; None for a cycle.
fn climb(index: &Index, marks: &Marks, leaf: Row) -> Option<Climb> {
    let mut parts = Vec::new();
    let (mut begin, mut part) = (leaf, Mark::NONE);
    let mut row = leaf;
    let mut left = index.len();
    let above = loop {
        if let Some(mark) = marks.get(row) {
            break Some((row, mark));
        }
        part.add(index, row);
        left = left.checked_sub(1)?;
        row = index.parent(row);
        if part.rows == STRIDE {
            parts.push((begin, part));
            (begin, part) = (row, Mark::NONE);
        }
        if row >= MISSING {
            break None;
        }
    };
    if part.rows > 0 {
        parts.push((begin, part));
    }
    Some(Climb { parts, above })
}

/// Remembers the marks of a climb; gives that of the leaf, where the first part begins.
fn remember(marks: &mut Marks, climb: &Climb) -> Mark {
    let (above, mut mark) = climb.above.unwrap_or((ROOT, Mark::NONE));
    let mut leap = if marks.fixed.contains_key(&above) {
        above
    } else {
        mark.leap
    };
    for &(row, part) in climb.parts.iter().rev() {
        let below = Mark { leap, ..part }.over(mark);
        if below.rows / STRIDE > mark.rows / STRIDE {
            marks.fixed.insert(row, below);
            leap = row;
        }
        mark = below;
    }
    if let Some(&(leaf, _)) = climb.parts.first() {
        marks.keep(leaf, mark);
    }
    mark
}

/// Whether `row` lies on the path to `leaf`.
///
/// In an ordered index this costs a thousandth of the distance between them.
pub fn on_path(index: &mut Index, row: Row, leaf: Row) -> bool {
    if !index.is_ordered() {
        return descent(index, row, leaf, None).is_some();
    }
    landmarks(index, leaf);
    let mut from = leaf;
    while let Some(mark) = index.marks_mut().get(from)
        && mark.leap < MISSING
        && mark.leap >= row
    {
        from = mark.leap;
    }
    descent(index, row, from, None).is_some()
}

fn landmarks_of_cycle(index: &Index, leaf: Row) -> Landmarks {
    let (path, cyclic) = path_until_cycle(index, leaf);
    let mut mark = Mark::NONE;
    for row in path.into_iter().rev() {
        mark.add(index, row);
    }
    mark.landmarks(cyclic)
}

/// How many rows the next question about `leaf` walks over.
#[cfg(test)]
pub(super) fn steps(index: &mut Index, leaf: Row) -> usize {
    let marks = std::mem::take(index.marks_mut());
    let parts = climb(index, &marks, leaf).map_or(Vec::new(), |climb| climb.parts);
    *index.marks_mut() = marks;
    parts.iter().map(|(_, part)| part.rows as usize).sum()
}

//! The first reading: what is wrong with each line, and with all of them together.

use super::lines::{Place, Role, Sound, Taker};
use super::parts::{inside, is_text};
use super::salvage::{self, Piece};
use super::tree::{Tree, cut};
use super::{Examined, Finding, Findings, Kind, LookFor};
use crate::error::Result;
use crate::{dates, images, json, summary};
use memchr::memmem;
use std::collections::HashSet;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_128;

/// Longer lines are told.
const LARGE: u64 = 1 << 20;

/// So much may the clock go back, in ms.
const JUMP: i64 = 60_000;

/// Of damaged lines so much is shown.
const SHOWN: usize = 60;

/// The types that pi writes, and those other programs are known to write.
const TYPES: [&str; 13] = [
    "message",
    "model_change",
    "thinking_level_change",
    "usage",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "context_edit",
    "label",
    "session_info",
    "active_tools_change",
    "leaf",
];

/// An examination on its way.
#[derive(Default)]
pub(super) struct Examiner<'l> {
    /// Asked for images that were moved out. A repair can do nothing about them and does not ask.
    look_for: Option<&'l mut LookFor<'l>>,
    findings: Findings,
    tree: Tree,
    /// JavaScript's number of the header's version, if it is one.
    pub(super) version: Option<f64>,
    entries: u64,
    /// Lines that pi keeps, the header among them: what an index of version 1 counts.
    kept: u64,
    image_bytes: u64,
    /// Hashes of the ids of tool calls.
    calls: HashSet<u128>,
    latest: Option<i64>,
}

impl Taker for Examiner<'_> {
    fn blank(&mut self, place: Place) -> Result<()> {
        self.look_at_end(place);
        Ok(())
    }

    fn sound(&mut self, place: Place, sound: &Sound<'_>) -> Result<()> {
        self.look_at_end(place);
        self.look_at_images(place, sound)?;
        self.kept += u64::from(!sound.dropped);
        match sound.role {
            Role::Header => self.version = summary::of_header(sound.text).version,
            Role::SecondHeader => self.add(Kind::Header, place, sound),
            Role::Value => {
                let mut finding = Finding::at(Kind::Foreign, place.line, place.offset);
                finding.shown = begin(sound.text);
                self.findings.add(finding);
            }
            Role::Entry(_) => self.entry(place, sound),
        }
        Ok(())
    }

    fn zeros(&mut self, place: Place) -> Result<()> {
        let mut finding = Finding::at(Kind::Nul, place.line, place.offset);
        finding.b = place.length;
        self.findings.add(finding);
        Ok(())
    }

    fn damaged(&mut self, place: Place, text: &[u8], pieces: &[Piece]) -> Result<()> {
        let rest = || pieces.iter().filter(|piece| !piece.sound);
        let good = pieces.len() - rest().count();
        let void = |piece: &Piece| salvage::is_void(&text[piece.place.clone()]);
        let kind = match good {
            0 if place.ended => Kind::Malformed,
            0 => Kind::Torn,
            _ if rest().count() > 0 && rest().all(void) => Kind::Nul,
            _ => Kind::Glued,
        };
        let mut finding = Finding::at(kind, place.line, place.offset);
        if good == 0 {
            finding.shown = begin(text);
            finding.a = place.length;
        } else {
            finding.a = good as u64;
            finding.b = rest().map(|piece| piece.place.len() as u64).sum();
        }
        self.findings.add(finding);
        Ok(())
    }
}

impl<'l> Examiner<'l> {
    pub(super) fn that_looks(look_for: &'l mut LookFor<'l>) -> Self {
        Self {
            look_for: Some(look_for),
            ..Self::default()
        }
    }
}

impl Examiner<'_> {
    /// What was found, and the tree as a repair makes it.
    pub(super) fn finish(mut self, size: u64, mode: u32) -> (Examined, Tree) {
        self.tree.finish(&mut self.findings);
        let kept = &mut self.findings.kept;
        kept.sort_by_key(|finding| (finding.byte, finding.line));
        let examined = Examined {
            findings: self.findings,
            entries: self.entries,
            size,
            image_bytes: self.image_bytes,
            mode,
        };
        (examined, self.tree)
    }

    fn look_at_end(&mut self, place: Place) {
        if !place.ended && place.length > 0 {
            let finding = Finding::at(Kind::Unterminated, place.line, place.offset);
            self.findings.add(finding);
        }
    }

    fn look_at_images(&mut self, place: Place, sound: &Sound<'_>) -> Result<()> {
        let mut inside = 0;
        for image in images::find(sound.text) {
            let text = &sound.text[image];
            if images::moved(text).is_some() {
                self.look_for(text, place, sound)?;
            } else {
                inside += text.len() as u64;
            }
        }
        self.image_bytes += inside;
        if place.length > LARGE {
            let mut finding = about(Kind::Large, place, sound);
            (finding.a, finding.b) = (place.length, inside);
            self.findings.add(finding);
        }
        Ok(())
    }

    fn look_for(&mut self, mark: &[u8], place: Place, sound: &Sound<'_>) -> Result<()> {
        let Some(trouble) = self.look_for.as_mut().map_or(Ok(None), |ask| ask(mark))? else {
            return Ok(());
        };
        let kind = if trouble.lost {
            Kind::LostImage
        } else {
            Kind::DamagedImage
        };
        let mut finding = about(kind, place, sound);
        finding.shown = trouble.text;
        self.findings.add(finding);
        Ok(())
    }

    fn add(&mut self, kind: Kind, place: Place, sound: &Sound<'_>) {
        let finding = about(kind, place, sound);
        self.findings.add(finding);
    }

    fn add_numbered(&mut self, kind: Kind, place: Place, sound: &Sound<'_>, a: u64) {
        let finding = about(kind, place, sound);
        self.findings.add(Finding { a, ..finding });
    }

    fn entry(&mut self, place: Place, sound: &Sound<'_>) {
        self.entries += 1;
        let value = |place: &Range<usize>| &sound.text[place.clone()];
        let kind = value(&sound.parts.kind);
        let known = TYPES.iter().copied().find(|known| is_text(kind, known));
        match known {
            None if inside(kind).is_none() => {
                self.add_numbered(Kind::Nameless, place, sound, 0);
            }
            None => {
                let mut finding = about(Kind::UnknownType, place, sound);
                finding.shown = begin(kind);
                self.findings.add(finding);
            }
            Some(known) => self.look_at_contents(place, sound, known),
        }
        // Labels of a branch that was made a session keep their old times.
        if known != Some("label") {
            self.look_at_time(place, sound);
        }
        if self.version.is_some_and(|version| version < 2.0) {
            return self.look_at_index(place, sound);
        }
        if inside(kind).is_some() && inside(value(&sound.parts.id)).is_none() {
            self.add_numbered(Kind::Nameless, place, sound, 1);
        }
        self.tree.push(place, sound);
    }

    fn look_at_contents(&mut self, place: Place, sound: &Sound<'_>, kind: &str) {
        let first = |place: &Range<usize>| sound.text[place.clone()].first();
        let parts = sound.parts;
        match kind {
            "message" if first(&parts.message) != Some(&b'{') => {
                self.add_numbered(Kind::Unusable, place, sound, 0);
            }
            "message" => self.look_at_calls(place, sound),
            "session_info" if !matches!(first(&parts.name), None | Some(b'"' | b'n')) => {
                self.add_numbered(Kind::Unusable, place, sound, 1);
            }
            "context_edit" if !matches!(first(&parts.replacement), Some(b'n' | b'{')) => {
                self.add_numbered(Kind::Unusable, place, sound, 2);
            }
            _ => {}
        }
    }

    fn look_at_time(&mut self, place: Place, sound: &Sound<'_>) {
        let text = &sound.text[sound.parts.time.clone()];
        let Some(time) = inside(text).and_then(|_| dates::of_json(text)) else {
            return;
        };
        let latest = self.latest.unwrap_or(time);
        if time < latest.saturating_sub(JUMP) {
            self.add_numbered(Kind::Clock, place, sound, latest.abs_diff(time));
            self.latest = Some(time);
        } else {
            self.latest = Some(latest.max(time));
        }
    }

    /// Calls are noted, and results must have one before them.
    fn look_at_calls(&mut self, place: Place, sound: &Sound<'_>) {
        let value = |place: &Range<usize>| &sound.text[place.clone()];
        let message = &sound.parts.inner;
        if is_text(value(&message.role), "toolResult") {
            let call = value(&message.call);
            if !inside(call).is_some_and(|raw| self.calls.contains(&hash(raw))) {
                let mut finding = about(Kind::ResultWithoutCall, place, sound);
                finding.shown = cut(call).to_vec();
                self.findings.add(finding);
            }
            return;
        }
        let content = value(&message.content);
        // Escapes could spell it, too.
        let calls = memmem::find(content, b"toolCall").is_some();
        if content.first() == Some(&b'[') && (calls || memmem::find(content, b"\\u").is_some()) {
            for id in json::elements(content).filter_map(call_id) {
                self.calls.insert(hash(id));
            }
        }
    }

    /// The index of version 1 must name a line up to the compaction's own.
    fn look_at_index(&mut self, place: Place, sound: &Sound<'_>) {
        let value = |place: &Range<usize>| &sound.text[place.clone()];
        let index = value(&sound.parts.kept_index);
        if !is_text(value(&sound.parts.kind), "compaction") || index.is_empty() {
            return;
        }
        let number = match index.first() {
            Some(b'-' | b'0'..=b'9') => json::number(index),
            _ => f64::NAN,
        };
        let own = (self.kept - 1) as f64;
        if !(number.fract() == 0.0 && (1.0..=own).contains(&number)) {
            let mut finding = about(Kind::CompactionTarget, place, sound);
            finding.shown = cut(index).to_vec();
            finding.a = 2;
            self.findings.add(finding);
        }
    }
}

/// A finding about an entry.
fn about(kind: Kind, place: Place, sound: &Sound<'_>) -> Finding {
    let id = inside(&sound.text[sound.parts.id.clone()]);
    Finding {
        id: id.map(|raw| cut(&json::decode_string(raw)).to_vec()),
        ..Finding::at(kind, place.line, place.offset)
    }
}

/// The beginning of a text.
fn begin(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(SHOWN)].to_vec()
}

/// Of equal texts, however they are escaped. With 128 bits two others have one by intent alone.
fn hash(raw: &[u8]) -> u128 {
    xxh3_128(&json::decode_string(raw))
}

/// The raw id of a block that is a tool call.
fn call_id(block: &[u8]) -> Option<&[u8]> {
    if block.first() != Some(&b'{') {
        return None;
    }
    let (mut is_call, mut id) = (false, None);
    for (key, value) in json::members(block) {
        if json::key_is(key, "type") {
            is_call = is_text(value, "toolCall");
        } else if json::key_is(key, "id") {
            id = inside(value);
        }
    }
    id.filter(|_| is_call)
}

//! The core of sessiontree: everything that touches every byte or every row of a session file.
//!
//! A session file is an append-only log of JSON lines. This crate scans it in chunks, keeps a
//! columnar [`index`](index::Index) of it, walks the tree on integers, and appends to the file.
//! Bodies are never decoded here; the callers read the bytes of the lines they want.
#![deny(unsafe_code)]

pub mod append;
pub mod branch;
pub mod cache;
pub mod compose;
pub mod dates;
pub mod draft;
pub mod envelope;
mod error;
pub mod fork;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod header;
pub mod images;
pub mod index;
pub mod json;
pub mod lines;
pub mod listing;
pub mod migrate;
mod parallel;
mod place;
pub mod repair;
mod scan;
#[allow(unsafe_code)]
mod simd;
pub mod splice;
pub mod store;
pub mod summary;
pub mod walk;

pub use error::{Error, ErrorKind, Result, stays};

/// A row of the index: the position of an entry among the entries of its file.
pub type Row = u32;

//! Manual pages of the C interface, made from its headers' comments.
//!
//! A header states each fact once, in the grammar that `include/portals4.h` explains at its top;
//! this crate turns it into roff. It knows that grammar and no C beyond it: whether the header
//! compiles, and agrees with the library, is checked elsewhere.
//!
//! ```text
//! portals4.h ──Header::parse──▶ sections of items ──function_page──▶ man3/PtlPut.3 …
//!                                               └───types_page──────▶ man7/portals4_types.7
//! doc/man/portals4.7 ──────────────────────────────overview_page────▶ man7/portals4.7
//! ```
//!
//! Read the headers of a [`Manual`] with [`Header::parse`], then call [`pages`] once with all of
//! them, and the example programs whose calls the pages show.
#![forbid(unsafe_code)]

mod doc;
mod example;
mod header;
mod manual;
mod page;
mod roff;

pub use doc::{Block, Doc, Param, Return};
pub use example::Program;
pub use header::{Composite, Entry, Function, Header, Item, ParseError, Section};
pub use manual::{CCI, MANUALS, Manual, PORTALS3, PORTALS4};
pub use page::{Page, pages};

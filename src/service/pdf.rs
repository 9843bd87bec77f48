//! The text of PDF files: what `pdf::` does. Files come from strangers: each is read object by object, only as far as its text
//! needs it, within bounds on depth, size and number, and every step asks whether the call may go on.
//! Pictures are not looked at, so a page that was scanned has no text.

mod file;
mod filter;
mod font;
mod glyph;
mod lines;
mod lock;
mod object;
mod page;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use crate::base::error::{Error, Kind, Result};
use file::File;
use object::{Dict, Value};
use page::Runner;
use std::collections::HashSet;
use std::rc::Rc;

/// The largest file, in bytes.
pub const MAX: usize = 64 << 20;
/// Most pages of a file.
pub const MAX_PAGES: usize = 20_000;

/// Asked before so many bytes are taken, and with 0 again and again: an error ends the work.
pub type Ask<'a> = &'a dyn Fn(usize) -> Result<()>;

/// Which part of a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The first page, counted from 1.
    pub first: usize,
    /// Most pages.
    pub pages: usize,
    /// Most bytes of text, more or less.
    pub bytes: usize,
}

impl Default for Wanted {
    /// All pages, 4 MiB of text.
    fn default() -> Self {
        Wanted { first: 1, pages: MAX_PAGES, bytes: 4 << 20 }
    }
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// As the file says itself; empty where it does not.
    pub title: String,
    /// As the file says itself; empty where it does not.
    pub author: String,
    /// Pages of the whole file.
    pub count: usize,
    /// The text of each page that was read.
    pub pages: Vec<String>,
    /// Whether that is all that was wanted: not where the text was cut, or a page could not be read to its end.
    pub whole: bool,
    /// Signs of which the file does not say what they stand for.
    pub unknown: usize,
}

/// Reads the text of a file.
///
/// # Errors
/// `invalid_arguments` for what is no PDF, is broken beyond reading or is locked with a password; `too_large` past [`MAX`];
/// those of `ask`.
pub fn text(bytes: &[u8], wanted: &Wanted, ask: Ask) -> Result<Text> {
    if bytes.len() > MAX {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the PDF has {} bytes; at most {} MiB are taken", bytes.len(), MAX >> 20),
        ));
    }
    let file = File::open(bytes, ask)?;
    let info = file.info()?;
    let said = |key: &[u8]| -> Result<String> { Ok(file.at(&info, key)?.text().map(text_of).unwrap_or_default()) };
    let leaves = leaves(&file)?;
    let mut out = Text {
        title: one_line(&said(b"Title")?),
        author: one_line(&said(b"Author")?),
        count: leaves.len(),
        whole: true,
        ..Text::default()
    };
    let mut runner = Runner::new(&file);
    let mut left = wanted.bytes;
    for leaf in leaves.iter().skip(wanted.first.max(1) - 1).take(wanted.pages) {
        if left == 0 {
            out.whole = false;
            break;
        }
        let Value::Map(page) = file.get(&leaf.page)? else { continue };
        let (text, whole) = runner.run(&page, &leaf.resources, leaf.rotate, left)?;
        left = left.saturating_sub(text.len().max(1));
        out.whole &= whole;
        out.pages.push(text);
    }
    out.unknown = runner.unknown;
    Ok(out)
}

/// A page, with what it inherits.
struct Leaf {
    page: Value,
    resources: Rc<Dict>,
    rotate: i64,
}

/// The pages of a file in their order.
fn leaves(file: &File) -> Result<Vec<Leaf>> {
    let catalog = file.catalog()?;
    let root = catalog.get(b"Pages").cloned().unwrap_or(Value::Null);
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![Leaf { page: root, resources: Rc::default(), rotate: 0 }];
    while let Some(node) = open.pop() {
        (file.ask)(0)?;
        let Value::Map(dict) = file.get(&node.page)? else { continue };
        let resources = match dict.get(b"Resources").map(|value| file.get(value)).transpose()? {
            Some(Value::Map(own)) => Rc::new(own),
            _ => node.resources,
        };
        let rotate = file.at(&dict, b"Rotate")?.integer().unwrap_or(node.rotate);
        let Value::Array(kids) = file.at(&dict, b"Kids")? else {
            if out.len() < MAX_PAGES {
                out.push(Leaf { page: node.page, resources, rotate });
            }
            continue;
        };
        if let Value::Ref(number, _) = node.page
            && !seen.insert(number)
        {
            // A tree that grows into itself.
            continue;
        }
        if open.len() + kids.len() > 4 * MAX_PAGES {
            continue;
        }
        open.extend(kids.into_iter().rev().map(|page| Leaf { page, resources: resources.clone(), rotate }));
    }
    if out.is_empty() {
        return Err(file::broken("has no pages that can be read"));
    }
    Ok(out)
}

/// A text outside of pages: in UTF-16 or UTF-8 where it says so, and else in one byte a sign.
fn text_of(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0,
        [0xff, 0xfe, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest).0,
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    text.replace('\0', "")
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

//! `pdf::`: the text of PDF files. The reading is `service::pdf`'s; nothing is fetched here.

use crate::base::error::Result;
use crate::host::argument::Options;
use crate::script::control;
use crate::script::module::HostModule;
use crate::service::pdf::{self, MAX_PAGES, Text, Wanted};
use rhai::{Array, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "pdf",
        "The text of PDF files. A file has at most 64 MiB and 20,000 pages. A page that was scanned has no text, for pictures are not read.",
        || rhai::exported_module!(api),
    )
}

fn text(bytes: &[u8], opts: Map) -> Result<Map> {
    let options = Options::read(opts, &["first", "pages", "max_chars"])?;
    let default = Wanted::default();
    let wanted = Wanted {
        first: options.count("first", 1..=MAX_PAGES)?.unwrap_or(default.first),
        pages: options.count("pages", 0..=MAX_PAGES)?.unwrap_or(default.pages),
        bytes: options.count("max_chars", 0..=8 << 20)?.unwrap_or(default.bytes),
    };
    Ok(shown(pdf::text(bytes, &wanted, &control::reserve)?))
}

fn shown(text: Text) -> Map {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let pages: Array = text.pages.into_iter().map(Into::into).collect();
    let mut map = Map::new();
    map.insert("title".into(), text.title.into());
    map.insert("author".into(), text.author.into());
    map.insert("count".into(), number(text.count).into());
    map.insert("pages".into(), pages.into());
    map.insert("whole".into(), text.whole.into());
    map.insert("unknown".into(), number(text.unknown).into());
    map
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Blob, Map};

    #[rhai_fn(return_raw)]
    pub fn text(call: NativeCallContext, file: Blob) -> Res<Map> {
        text_with(call, file, Map::new())
    }

    /// The text of a file, page by page, in the order in which it was drawn. Gives a map: `pages` (an array of texts), `count`
    /// (pages of the whole file), `title` and `author` (empty where the file does not say), `whole` (whether that is all that
    /// was asked for), `unknown` (signs of which the file does not say what they stand for).
    /// Options: `first` (the first page, from 1), `pages` (most pages), `max_chars` (where to stop, about 4 million unless given).
    ///
    /// Throws `invalid_arguments` for what is no PDF, is broken, or is locked with a password; `too_large` beyond the limits.
    ///
    /// ```rhai
    /// let page = "BT /F 12 Tf 0 700 Td (Tea and milk) Tj ET";
    /// let file = `%PDF-1.4
    /// 1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
    /// 2 0 obj << /Type /Pages /Count 1 /Kids [3 0 R] >> endobj
    /// 3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >> endobj
    /// 4 0 obj << /Length ${page.len()} >> stream
    /// ${page}
    /// endstream endobj
    /// 5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
    /// trailer << /Root 1 0 R >>`;
    /// let read = pdf::text(file.to_blob());
    /// assert_eq(read.pages, ["Tea and milk"]);
    /// assert_eq(read.count, 1);
    /// ```
    #[rhai_fn(return_raw, name = "text")]
    pub fn text_with(call: NativeCallContext, file: Blob, opts: Map) -> Res<Map> {
        ctx::live(&call)?;
        super::text(&file, opts).or_raise(&call)
    }
}

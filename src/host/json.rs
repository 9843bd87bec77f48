//! `json::`: values as JSON text and back, 64-bit integers exact. Parsing is `base::json`'s, converting `script::value`'s.

use crate::base::error::{Error, Result};
use crate::script::{control, module::HostModule, value};
use rhai::Dynamic;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "json",
        "JSON text and back. Integers of 64 bits are exact, and nothing is ever rounded: a wider one is read as the text of its digits.",
        || rhai::exported_module!(api),
    )
}

/// Reads JSON text into a script value, asking the memory budget first.
///
/// # Errors
/// `invalid_arguments` with the place, `quota` when there is no memory for it.
pub fn read(text: &str) -> Result<Dynamic> {
    // Every value but the first stands behind one of these; each costs a parsed and a script value.
    let values = text.bytes().filter(|b| matches!(b, b',' | b'[' | b'{' | b':')).count();
    let each = size_of::<serde_json::Value>() + size_of::<Dynamic>() + 16;
    control::reserve(values.saturating_mul(each).saturating_add(text.len().saturating_mul(2)))?;
    value::from_json(&crate::base::json::parse_foreign(text)?)
}

/// Writes a script value as JSON text, asking the memory budget as the text grows.
///
/// # Errors
/// Those of `value::to_json`, and `quota`.
pub fn write(value: &Dynamic, layout: Layout) -> Result<String> {
    let json = value::to_json(value)?;
    let mut page = Page::default();
    let written = match layout {
        Layout::Compact => serde_json::to_writer(&mut page, &json),
        Layout::Pretty => serde_json::to_writer_pretty(&mut page, &json),
    };
    match (page.refused, written) {
        (Some(error), _) => Err(error),
        (None, Err(e)) => Err(Error::internal(format!("json: {e}"))),
        (None, Ok(())) => String::from_utf8(page.bytes).map_err(|e| Error::internal(format!("json: {e}"))),
    }
}

/// Bytes that grow within the memory budget.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    refused: Option<Error>,
}

impl std::io::Write for Page {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        if self.bytes.capacity() - self.bytes.len() < part.len() {
            let more = part.len().max(self.bytes.capacity());
            if let Err(error) = control::reserve(self.bytes.len().saturating_add(more)) {
                self.refused = Some(error);
                return Err(std::io::ErrorKind::OutOfMemory.into());
            }
            self.bytes.reserve(more);
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How JSON text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No white space.
    Compact,
    /// Two spaces a level.
    Pretty,
}

#[rhai::plugin::export_module]
mod api {
    use super::Layout;
    use crate::host::argument::Options;
    use crate::script::ctx::{OrRaise, Res};
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    #[rhai_fn(return_raw)]
    pub fn encode(call: NativeCallContext, value: Dynamic) -> Res<String> {
        super::write(&value, Layout::Compact).or_raise(&call)
    }

    /// A value as JSON text. `()` becomes `null`; map keys come out in alphabetical order.
    /// Options: `pretty` (bool) sets it over several lines, two spaces a level.
    ///
    /// Throws `invalid_arguments` naming the path of what JSON cannot hold (a function, NaN, a blob, a value of the host),
    /// `too_large` for text over 8 MiB, arrays over a million entries, maps over 100,000 keys, or more than 128 levels.
    ///
    /// ```rhai
    /// assert_eq(json::encode(#{n: 9007199254740993, list: [1.5, ()]}), `{"list":[1.5,null],"n":9007199254740993}`);
    /// assert_eq(json::encode(#{a: 1}, #{pretty: true}), "{\n  \"a\": 1\n}");
    /// ```
    #[rhai_fn(return_raw, name = "encode")]
    pub fn encode_with(call: NativeCallContext, value: Dynamic, opts: Map) -> Res<String> {
        let options = Options::read(opts, &["pretty"]).or_raise(&call)?;
        let layout =
            if options.flag("pretty").or_raise(&call)?.unwrap_or(false) { Layout::Pretty } else { Layout::Compact };
        super::write(&value, layout).or_raise(&call)
    }

    /// The value behind a JSON text: objects are maps, `null` is `()`, numbers with a point or an exponent are floats.
    /// An integer outside 64 bits is the text of its digits, as is a number too large for a float.
    ///
    /// Throws `invalid_arguments` with line, column and byte where it is not JSON.
    ///
    /// ```rhai
    /// let order = json::decode(`{"id": 9007199254740993, "items": ["tea"]}`);
    /// assert_eq(order.id, 9007199254740993);
    /// assert_eq(order.items[0], "tea");
    /// assert_eq(json::decode("[18446744073709551615]")[0], "18446744073709551615");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn decode(call: NativeCallContext, text: &str) -> Res<Dynamic> {
        super::read(text).or_raise(&call)
    }
}

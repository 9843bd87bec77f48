//! `text::`: building and shaping text without quadratic cost. The shaping is `service::text`'s.

use crate::base::error::Result;
use crate::script::control;
use crate::script::module::HostModule;
use crate::service::text::GoOn;
use rhai::{Array, Dynamic};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "text",
        "Building and shaping text. In a loop use a builder or `join`: `s += part` copies the whole text each time.",
        || rhai::exported_module!(api),
    )
}

/// A text that grows cheaply.
#[derive(Debug, Clone, Default)]
pub struct TextBuilder(String);

impl TextBuilder {
    /// Appends, asking the memory budget before the buffer grows.
    fn push(&mut self, part: &str) -> Result<()> {
        if self.0.capacity() - self.0.len() < part.len() {
            let more = part.len().max(self.0.capacity());
            control::reserve(more.saturating_add(self.0.len()))?;
            self.0.reserve(more);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// Texts as an array, asking the memory budget first.
fn list(text: &str, pieces: fn(&str, &GoOn) -> Result<Vec<String>>) -> Result<Array> {
    // A piece takes at least two bytes of the text, with what parts it from the next.
    control::reserve(
        (text.len() / 2 + 1).saturating_mul(size_of::<Dynamic>() + 48).min(text.len().saturating_mul(48)),
    )?;
    Ok(pieces(text, &control::check)?.into_iter().map(Dynamic::from).collect())
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::list;
    use crate::host::argument;
    use crate::script::control;
    use crate::script::ctx::{OrRaise, Res};
    use crate::service::text;
    use rhai::Array;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// A text that grows cheaply: `push(part)` appends, `to_string()` gives what is there.
    pub type TextBuilder = super::TextBuilder;

    /// The entries of an array as one text, with `separator` between them. Entries are text, numbers or bools.
    ///
    /// Throws `invalid_arguments` naming an entry of another type.
    ///
    /// ```rhai
    /// assert_eq(text::join(["a", 2, true], ", "), "a, 2, true");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn join(call: NativeCallContext, parts: Array, separator: &str) -> Res<String> {
        let mut whole = super::TextBuilder::default();
        for (at, part) in parts.iter().enumerate() {
            let part = argument::scalar(part, &format!("parts[{at}]")).or_raise(&call)?;
            if at > 0 {
                whole.push(separator).or_raise(&call)?;
            }
            whole.push(&part).or_raise(&call)?;
        }
        Ok(whole.0)
    }

    /// An empty builder.
    ///
    /// ```rhai
    /// let report = text::builder();
    /// for n in 1..4 { report.push(`line ${n};`); }
    /// assert_eq(report.to_string(), "line 1;line 2;line 3;");
    /// ```
    pub fn builder() -> TextBuilder {
        TextBuilder::default()
    }

    /// Appends a text, a number or a bool to a builder.
    ///
    /// Throws `invalid_arguments` for another type, `quota` when the memory budget is used up.
    ///
    /// ```rhai
    /// let b = text::builder();
    /// b.push("total: ");
    /// b.push(3);
    /// assert_eq(b.to_string(), "total: 3");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn push(call: NativeCallContext, builder: &mut TextBuilder, part: Dynamic) -> Res<()> {
        let part = argument::scalar(&part, "part").or_raise(&call)?;
        builder.push(&part).or_raise(&call)
    }

    /// What was pushed so far, as a text; the builder goes on.
    ///
    /// ```rhai
    /// let b = text::builder();
    /// assert_eq(b.to_string(), "");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn to_string(call: NativeCallContext, builder: &mut TextBuilder) -> Res<String> {
        control::reserve(builder.0.len()).or_raise(&call)?;
        Ok(builder.0.clone())
    }

    /// The first `count` characters. What was cut off is shown by an ellipsis, which counts as one of them.
    ///
    /// Throws `invalid_arguments` for a negative count.
    ///
    /// ```rhai
    /// assert_eq(text::truncate("lapidary", 5), "lapi…");
    /// assert_eq(text::truncate("gem", 5), "gem");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn truncate(call: NativeCallContext, text: &str, count: i64) -> Res<String> {
        let count = argument::count(count, "count").or_raise(&call)?;
        control::reserve(text.len()).or_raise(&call)?;
        Ok(text::truncate(text, count))
    }

    /// The lines without their ends (`\n`, `\r\n` or `\r`); an end of line at the end of the text opens no further line.
    ///
    /// ```rhai
    /// assert_eq(text::lines("one\r\ntwo\n"), ["one", "two"]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lines(call: NativeCallContext, text: &str) -> Res<Array> {
        list(text, text::lines).or_raise(&call)
    }

    /// The words: runs of letters and digits, with the apostrophes and hyphens inside them.
    ///
    /// ```rhai
    /// assert_eq(text::words("Well-known: don't!"), ["Well-known", "don't"]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn words(call: NativeCallContext, text: &str) -> Res<Array> {
        list(text, text::words).or_raise(&call)
    }

    /// A name fit for addresses and files: lower-case ASCII letters and digits with single hyphens between.
    /// Latin letters lose their marks, letters of other scripts are left out, so it may be empty.
    ///
    /// ```rhai
    /// assert_eq(text::slug("Crème brûlée, twice!"), "creme-brulee-twice");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn slug(call: NativeCallContext, text: &str) -> Res<String> {
        control::reserve(text.len()).or_raise(&call)?;
        text::slug(text, &control::check).or_raise(&call)
    }

    /// How alike two texts are, from 0.0 (nothing in common) to 1.0 (the same but for case and spacing): one minus the edit
    /// distance over the longer length. Of each text the first 2,000 characters count.
    ///
    /// ```rhai
    /// assert_eq(text::fuzzy("Kitchen  light", "kitchen light"), 1.0);
    /// assert(text::fuzzy("kitchen", "kitten") > text::fuzzy("kitchen", "garage"), "the nearer name wins");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fuzzy(call: NativeCallContext, a: &str, b: &str) -> Res<f64> {
        text::fuzzy(a, b, &control::check).or_raise(&call)
    }

    /// The text with line ends so that no line is wider than `width` characters. Lines break at white space; a longer word is
    /// cut. Existing line ends stay.
    ///
    /// Throws `invalid_arguments` for a width below 1.
    ///
    /// ```rhai
    /// assert_eq(text::wrap("to be or not to be", 9), "to be or\nnot to be");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wrap(call: NativeCallContext, text: &str, width: i64) -> Res<String> {
        let width = argument::count(width - 1, "width - 1").or_raise(&call)? + 1;
        control::reserve(text.len().saturating_mul(2)).or_raise(&call)?;
        text::wrap(text, width, &control::check).or_raise(&call)
    }
}

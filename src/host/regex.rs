//! `regex::`: patterns in linear time. The matching is `service::pattern`'s.

use crate::base::error::Result;
use crate::script::alloc;
use crate::script::module::HostModule;
use crate::service::pattern::{self, Match};
use rhai::{Dynamic, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "regex",
        "Regular expressions that take time in proportion to the text, whatever the pattern; so no look-around and no back-references. Positions count characters, as `sub_string` does.",
        || rhai::exported_module!(api),
    )
}

fn place(found: Match) -> Dynamic {
    let mut map = Map::new();
    map.insert("text".into(), found.text.into());
    map.insert("start".into(), position(found.start));
    map.insert("end".into(), position(found.end));
    Dynamic::from_map(map)
}

fn position(at: usize) -> Dynamic {
    i64::try_from(at).unwrap_or(i64::MAX).into()
}

/// Compiles the pattern: kept for whoever comes next, so this call does not pay for it.
fn ready(pattern: &str) -> Result<()> {
    alloc::uncharged(|| pattern::prepare(pattern))
}

#[rhai::plugin::export_module]
mod api {
    use super::{place, ready};
    use crate::script::control;
    use crate::script::ctx::{OrRaise, Res};
    use crate::service::pattern;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    /// Whether a pattern matches anywhere in a text.
    ///
    /// Throws `invalid_arguments` for a pattern that cannot be read, `too_large` for one that is too costly for such a text
    /// (`1[01]{3000}x` over megabytes of zeros and ones); so in all functions here.
    ///
    /// ```rhai
    /// assert(regex::is_match(`^\d{4}-\d{2}$`, "2024-07"), "a month");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn is_match(call: NativeCallContext, pattern: &str, text: &str) -> Res<bool> {
        ready(pattern).and_then(|()| pattern::is_match(pattern, text)).or_raise(&call)
    }

    /// The first match as a map with `text`, `start` and `end` (characters from 0, `end` not included), or `()`.
    ///
    /// ```rhai
    /// let found = regex::find(`\d+`, "room 42, floor 3");
    /// assert_eq(found, #{text: "42", start: 5, end: 7});
    /// assert_eq(regex::find("x", "abc"), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn find(call: NativeCallContext, pattern: &str, text: &str) -> Res<Dynamic> {
        Ok(ready(pattern).and_then(|()| pattern::find(pattern, text)).or_raise(&call)?.map_or(Dynamic::UNIT, place))
    }

    /// Every match, in order and not overlapping, each as `find` gives it.
    ///
    /// Throws `too_large` for more than 10,000 matches.
    ///
    /// ```rhai
    /// let numbers = regex::find_all(`\d+`, "3 of 12").map(|m| m.text);
    /// assert_eq(numbers, ["3", "12"]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn find_all(call: NativeCallContext, pattern: &str, text: &str) -> Res<Array> {
        Ok(ready(pattern)
            .and_then(|()| pattern::find_all(pattern, text, &control::reserve))
            .or_raise(&call)?
            .into_iter()
            .map(place)
            .collect())
    }

    /// The groups of the first match, or `()`: a map with `groups` (an array; 0 is the whole match) and `named` (a map).
    /// A group that took no part is `()`.
    ///
    /// ```rhai
    /// let c = regex::captures(`(?<hour>\d+):(\d+)`, "at 14:30");
    /// assert_eq(c.named.hour, "14");
    /// assert_eq(c.groups, ["14:30", "14", "30"]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn captures(call: NativeCallContext, pattern: &str, text: &str) -> Res<Dynamic> {
        let Some(found) = ready(pattern).and_then(|()| pattern::captures(pattern, text)).or_raise(&call)? else {
            return Ok(Dynamic::UNIT);
        };
        let group = |text: Option<String>| text.map_or(Dynamic::UNIT, Dynamic::from);
        let mut map = Map::new();
        map.insert("groups".into(), found.numbered.into_iter().map(group).collect::<Array>().into());
        let named: Map = found.named.into_iter().map(|(name, text)| (name.as_str().into(), group(text))).collect();
        map.insert("named".into(), named.into());
        Ok(map.into())
    }

    /// A text with every match replaced. In the replacement `$1` or `${name}` is a group and `$$` a dollar sign.
    ///
    /// Throws `too_large` where the result would pass 64 MiB.
    ///
    /// ```rhai
    /// assert_eq(regex::replace(`(\w+)@(\w+)`, "ann@home", "$2 of $1"), "home of ann");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn replace(call: NativeCallContext, pattern: &str, text: &str, replacement: &str) -> Res<String> {
        ready(pattern).and_then(|()| pattern::replace(pattern, text, replacement, &control::reserve)).or_raise(&call)
    }

    /// The parts of a text between the matches.
    ///
    /// Throws `too_large` for more than 10,000 parts.
    ///
    /// ```rhai
    /// assert_eq(regex::split(`\s*[,;]\s*`, "tea, milk;sugar"), ["tea", "milk", "sugar"]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn split(call: NativeCallContext, pattern: &str, text: &str) -> Res<Array> {
        Ok(ready(pattern)
            .and_then(|()| pattern::split(pattern, text, &control::reserve))
            .or_raise(&call)?
            .into_iter()
            .map(Dynamic::from)
            .collect())
    }
}

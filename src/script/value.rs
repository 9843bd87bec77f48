//! The only converter between script values and JSON, and between our errors and what `catch (e)` sees.
//! What JSON cannot hold is an error that names its path; nothing is rounded, wrapped or dropped.

use super::control;
use crate::base::error::{Error, Fallback, Kind, Result};
use rhai::{Array, Blob, Dynamic, FnPtr, ImmutableString, Map};
use serde_json::{Number, Value};

/// The longest text at the boundary, in bytes.
pub const MAX_TEXT: usize = 8 << 20;
/// The longest array at the boundary.
pub const MAX_ARRAY: usize = 1_000_000;
/// The largest map at the boundary.
pub const MAX_MAP: usize = 100_000;
/// How deep a value may nest at the boundary.
pub const MAX_DEPTH: usize = 128;

/// A JSON value as a script value. Integers are `i64`, other numbers `f64`.
///
/// # Errors
/// `invalid_arguments` for an integer beyond `i64`, `quota` where the running call has no memory left for it.
pub fn from_json(value: &Value) -> Result<Dynamic> {
    script_value(value, &mut Meter::default())
}

/// A JSON object as a script map.
///
/// # Errors
/// As [`from_json`].
pub fn from_object(map: &serde_json::Map<String, Value>) -> Result<Map> {
    script_map(map, &mut Meter::default())
}

fn script_value(value: &Value, meter: &mut Meter) -> Result<Dynamic> {
    Ok(match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(b) => Dynamic::from_bool(*b),
        Value::Number(n) => from_number(n)?,
        Value::String(s) => {
            meter.take(s.len())?;
            Dynamic::from(ImmutableString::from(s.as_str()))
        }
        Value::Array(items) => {
            meter.take(items.len().saturating_mul(size_of::<Dynamic>()))?;
            Dynamic::from_array(items.iter().map(|item| script_value(item, meter)).collect::<Result<Array>>()?)
        }
        Value::Object(map) => Dynamic::from_map(script_map(map, meter)?),
    })
}

fn script_map(map: &serde_json::Map<String, Value>, meter: &mut Meter) -> Result<Map> {
    meter.take(map.len().saturating_mul(ENTRY))?;
    map.iter().map(|(key, value)| Ok((key.as_str().into(), script_value(value, meter)?))).collect()
}

fn from_number(n: &Number) -> Result<Dynamic> {
    if let Some(i) = n.as_i64() {
        return Ok(Dynamic::from_int(i));
    }
    if n.is_u64() {
        return Err(Error::invalid(format!("the integer {n} does not fit into 64 bits with a sign")));
    }
    n.as_f64().map(Dynamic::from_float).ok_or_else(|| Error::invalid(format!("the number {n} cannot be held")))
}

/// A script value as JSON, exactly.
///
/// # Errors
/// `invalid_arguments` naming the path of what JSON cannot hold (a function, NaN, an infinity, a blob, a value of the
/// host), `too_large` for what passes the boundary's caps, `quota` where the running call has no memory left for it.
pub fn to_json(value: &Dynamic) -> Result<Value> {
    json_at(value, &Place { before: None, step: Step::Top, depth: 0 }, &mut Meter::default())
}

/// About what an entry of a map takes.
const ENTRY: usize = 64;

/// Asks the memory budget for what a conversion makes, in portions: a text that stands a thousand times in a script's
/// array is one text there and a thousand in JSON.
#[derive(Default)]
struct Meter {
    total: usize,
    asked: usize,
}

impl Meter {
    const PORTION: usize = 64 << 10;

    #[inline]
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.total = self.total.saturating_add(bytes);
        if self.total - self.asked < Meter::PORTION {
            return Ok(());
        }
        let have = std::mem::replace(&mut self.asked, self.total);
        if control::may_hold(have, self.total - have) {
            return Ok(());
        }
        control::check()?;
        Err(Error::new(Kind::TooLarge, "the value is too large to be converted"))
    }
}

/// Where in a value a conversion is; made into text only for an error.
struct Place<'a> {
    before: Option<&'a Place<'a>>,
    step: Step<'a>,
    depth: usize,
}

enum Step<'a> {
    Top,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    fn then(&'a self, step: Step<'a>) -> Place<'a> {
        Place { before: Some(self), step, depth: self.depth + 1 }
    }

    fn path(&self) -> String {
        let before = self.before.map(Place::path).unwrap_or_default();
        match self.step {
            Step::Top => before,
            Step::Key(key) if before.is_empty() => key.to_owned(),
            Step::Key(key) => format!("{before}.{key}"),
            Step::Index(at) => format!("{before}[{at}]"),
        }
    }

    fn shown(&self) -> String {
        if self.depth == 0 { "the value".to_owned() } else { format!("`{}`", self.path()) }
    }

    fn unfit(&self, what: &str) -> Error {
        Error::invalid(format!("{} is {what}, which JSON cannot hold", self.shown()))
    }

    fn too_large(&self, what: &str, got: usize, cap: usize) -> Error {
        Error::new(Kind::TooLarge, format!("{} is {what} of {got}; at most {cap} are taken", self.shown()))
    }
}

fn json_at(value: &Dynamic, place: &Place, meter: &mut Meter) -> Result<Value> {
    if place.depth > MAX_DEPTH {
        return Err(Error::new(Kind::TooLarge, format!("the value nests deeper than {MAX_DEPTH} levels")));
    }
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(b) = value.as_bool() {
        return Ok(Value::Bool(b));
    }
    if let Ok(i) = value.as_int() {
        return Ok(Value::from(i));
    }
    if let Ok(f) = value.as_float() {
        return Number::from_f64(f).map(Value::Number).ok_or_else(|| place.unfit(&format!("the number {f}")));
    }
    if let Ok(c) = value.as_char() {
        return Ok(Value::String(c.to_string()));
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        if text.len() > MAX_TEXT {
            return Err(place.too_large("a text", text.len(), MAX_TEXT));
        }
        meter.take(text.len())?;
        return Ok(Value::String(text.as_str().to_owned()));
    }
    if let Some(items) = value.read_lock::<Array>() {
        if items.len() > MAX_ARRAY {
            return Err(place.too_large("an array", items.len(), MAX_ARRAY));
        }
        meter.take(items.len().saturating_mul(size_of::<Value>()))?;
        let mut out = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            out.push(json_at(item, &place.then(Step::Index(at)), meter)?);
        }
        return Ok(Value::Array(out));
    }
    if let Some(map) = value.read_lock::<Map>() {
        if map.len() > MAX_MAP {
            return Err(place.too_large("a map", map.len(), MAX_MAP));
        }
        meter.take(map.len().saturating_mul(ENTRY + size_of::<Value>()))?;
        let mut out = serde_json::Map::new();
        for (key, item) in map.iter() {
            out.insert(key.as_str().to_owned(), json_at(item, &place.then(Step::Key(key)), meter)?);
        }
        return Ok(Value::Object(out));
    }
    if value.is::<Blob>() {
        return Err(place.unfit("a blob").hint("make it text first: base64::encode(blob)"));
    }
    if value.is::<FnPtr>() {
        return Err(place.unfit("a function"));
    }
    Err(place.unfit(&format!("a value of type {}", type_name(value))))
}

/// The name of a value's type as scripts know it: of a type of the host, without the rooms it lives in.
#[must_use]
pub fn type_name(value: &Dynamic) -> &str {
    let name = value.type_name();
    name.rsplit("::").next().unwrap_or(name)
}

/// `text` of the language with the types of the host as scripts know them: some of its messages show where a type lives.
#[must_use]
pub fn plain_types(text: &str) -> String {
    const ROOMS: [&str; 6] = ["lapidary::", "alloc::", "std::", "core::", "rhai::", "hashbrown::"];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = ROOMS.iter().filter_map(|room| rest.find(room)).min() {
        let (before, path) = rest.split_at(at);
        out.push_str(before);
        let end = path.find(|c| !is_name(c) && c != ':').unwrap_or(path.len());
        let (path, mut behind) = path.split_at(end);
        let within = out.ends_with(is_name) || out.ends_with("::");
        if within {
            // The end of a longer name, which is a script's own.
            out.push_str(path);
            rest = behind;
            continue;
        }
        if behind.starts_with('<') {
            let mut depth = 0;
            let close = behind.find(|c| {
                depth += match c {
                    '<' => 1,
                    '>' => -1,
                    _ => 0,
                };
                depth == 0
            });
            behind = close.map_or("", |close| &behind[close + 1..]);
        }
        out.push_str(match path.rsplit("::").next().unwrap_or(path) {
            "Arc" | "Rc" | "RwLock" | "Dynamic" => "a shared value",
            "String" | "ImmutableString" | "str" => "string",
            "Vec" => "array",
            "BTreeMap" | "HashMap" => "map",
            name => name,
        });
        rest = behind;
    }
    out + rest
}

/// Whether a value nests deeper than `most`, what closures captured included: such a value must not outlive its call,
/// because dropping it takes as much stack.
#[must_use]
pub fn depth_exceeds(value: &Dynamic, most: usize) -> bool {
    /// Closures may capture the same value on many ways.
    const CLOSURES: usize = 256;
    fn deeper(value: &Dynamic, left: usize, closures: &mut usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return true };
        if let Some(items) = value.read_lock::<Array>() {
            return items.iter().any(|item| deeper(item, left, closures));
        }
        if let Some(map) = value.read_lock::<Map>() {
            return map.values().any(|item| deeper(item, left, closures));
        }
        if let Some(pointer) = value.read_lock::<FnPtr>() {
            *closures = closures.saturating_sub(1);
            return *closures == 0 || pointer.curry().iter().any(|item| deeper(item, left, closures));
        }
        false
    }
    deeper(value, most + 1, &mut { CLOSURES })
}

/// The error of a value that nests too deep to be kept.
pub(super) fn too_deep(what: &str) -> Error {
    Error::new(Kind::TooLarge, format!("{what} nests deeper than {MAX_DEPTH} levels"))
}

/// What a copy of a value takes, in bytes: texts are shared, lists and maps are not.
#[must_use]
pub fn weight(value: &Dynamic) -> usize {
    let own = size_of::<Dynamic>();
    if let Some(items) = value.read_lock::<Array>() {
        return own + 24 + items.iter().map(weight).sum::<usize>();
    }
    if let Some(map) = value.read_lock::<Map>() {
        return own + 24 + map.values().map(|item| ENTRY + weight(item)).sum::<usize>();
    }
    own + value.read_lock::<Blob>().map_or(0, |bytes| 24 + bytes.len())
}

/// What a script catches: `#{code, message, hint}`, with the fields of a failure that are set.
pub fn error_to_dynamic(error: &Error) -> Dynamic {
    let mut map = Map::new();
    map.insert("code".into(), error.code().into());
    map.insert("message".into(), error.message().into());
    map.insert("hint".into(), error.hint_text().map_or(Dynamic::UNIT, Into::into));
    if error.retryable() != error.kind().retryable() {
        map.insert("retryable".into(), error.retryable().into());
    }
    if let Some(ms) = error.retry_after_ms() {
        map.insert("retry_after_ms".into(), i64::try_from(ms).unwrap_or(i64::MAX).into());
    }
    if let Some(action) = error.user_action() {
        map.insert("user_action".into(), action.into());
    }
    if !error.fallbacks().is_empty() {
        let list: Array = error
            .fallbacks()
            .iter()
            .map(|f| {
                let mut m = Map::new();
                m.insert("tool".into(), f.tool.as_str().into());
                m.insert("when".into(), f.when.as_str().into());
                Dynamic::from_map(m)
            })
            .collect();
        map.insert("fallbacks".into(), list.into());
    }
    Dynamic::from_map(map)
}

/// Reads a failure map back: the counterpart of [`error_to_dynamic`], for `failure(#{..})` and for what a script throws.
///
/// # Errors
/// `invalid_arguments` that says which field is wrong.
pub fn error_from_map(map: &Map) -> Result<Error> {
    const KNOWN: [&str; 7] = ["code", "message", "hint", "retryable", "retry_after_ms", "user_action", "fallbacks"];
    if let Some(key) = map.keys().find(|k| !KNOWN.contains(&k.as_str())) {
        return Err(
            Error::invalid(format!("a failure has no field `{key}`")).hint(format!("fields: {}", KNOWN.join(" ")))
        );
    }
    let code = text(map, "code").ok_or_else(|| Error::invalid("a failure needs a `code`"))?;
    let kind = Kind::from_code(&code).ok_or_else(|| {
        Error::invalid(format!("`{code}` is not a failure code"))
            .hint(format!("codes: {}", Kind::ALL.map(Kind::code).join(" ")))
    })?;
    let message = text(map, "message").unwrap_or_else(|| code.replace('_', " "));
    let mut error = Error::new(kind, message);
    if let Some(hint) = text(map, "hint") {
        error = error.hint(hint);
    }
    if let Some(yes) = map.get("retryable").and_then(|v| v.as_bool().ok()) {
        error = error.with_retryable(yes);
    }
    if let Some(ms) = map.get("retry_after_ms").and_then(|v| v.as_int().ok()).and_then(|ms| u64::try_from(ms).ok()) {
        error = error.with_retry_after_ms(ms);
    }
    if let Some(action) = text(map, "user_action") {
        error = error.with_user_action(action);
    }
    if let Some(list) = map.get("fallbacks").and_then(|v| v.read_lock::<Array>().map(|l| l.clone())) {
        let fallbacks = list
            .iter()
            .map(|item| {
                let entry = item.read_lock::<Map>().map(|m| m.clone()).unwrap_or_default();
                text(&entry, "tool")
                    .map(|tool| Fallback { tool, when: text(&entry, "when").unwrap_or_default() })
                    .ok_or_else(|| Error::invalid("a fallback is a map with `tool` and `when`"))
            })
            .collect::<Result<Vec<_>>>()?;
        error = error.with_fallbacks(fallbacks);
    }
    Ok(error)
}

/// The text under `key`, if there is one.
#[must_use]
pub fn text(map: &Map, key: &str) -> Option<String> {
    map.get(key).and_then(|v| v.read_lock::<ImmutableString>().map(|s| s.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_round_trips_exactly() {
        let cases = [
            json!(null),
            json!(true),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(0.1),
            json!("é 中 👩‍👩‍👧 \u{0}"),
            json!([]),
            json!({}),
            json!({"a": [1, 2.5, {"b": null}], "z": ""}),
        ];
        for case in cases {
            assert_eq!(to_json(&from_json(&case).unwrap()).unwrap(), case);
        }
    }

    #[test]
    fn an_integer_beyond_i64_is_an_error_not_a_wrap() {
        assert!(from_json(&json!(u64::MAX)).is_err());
    }

    #[test]
    fn what_json_cannot_hold_is_named_with_its_path() {
        let mut inner = Map::new();
        inner.insert("c".into(), Dynamic::from_blob(vec![1]));
        let mut map = Map::new();
        map.insert("a".into(), Dynamic::from_array(vec![Dynamic::UNIT, Dynamic::from_map(inner)]));
        let e = to_json(&Dynamic::from_map(map)).unwrap_err();
        assert!(e.message().contains("`a[1].c` is a blob"), "{e}");
        assert!(to_json(&Dynamic::from_float(f64::NAN)).is_err());
        assert!(to_json(&Dynamic::from(FnPtr::new("f").unwrap())).is_err());
    }

    #[test]
    fn a_shared_text_is_paid_for_each_time_it_stands_in_json() {
        let text = ImmutableString::from("x".repeat(1 << 20));
        let many = Dynamic::from_array(vec![Dynamic::from(text); 100]);
        assert!(to_json(&many).is_ok(), "outside a call there is no budget");
        let control = control::Control::start(control::Budget { memory: 8 << 20, ..control::Budget::CALL });
        let _running = control::enter(control);
        assert_eq!(to_json(&many).unwrap_err().kind(), Kind::Quota);
    }

    #[test]
    fn a_failure_reads_back() {
        let e = Error::new(Kind::UpstreamAuth, "the drive said 401")
            .hint("look again")
            .with_user_action("reconnect")
            .with_fallbacks(vec![Fallback { tool: "web_search".into(), when: "public".into() }]);
        let map = error_to_dynamic(&e).cast::<Map>();
        assert_eq!(error_from_map(&map).unwrap(), e);
    }

    #[test]
    fn messages_of_the_language_name_types_as_scripts_know_them() {
        for (said, want) in [
            (
                "data type incorrect: lapidary::service::secret::Secret (expecting string)",
                "data type incorrect: Secret (expecting string)",
            ),
            (
                "f (alloc::sync::Arc<std::sync::poison::rwlock::RwLock<rhai::types::dynamic::Dynamic>>, i64)",
                "f (a shared value, i64)",
            ),
            ("alloc::vec::Vec<alloc::string::String>", "array"),
            ("f (&mut lapidary::host::net::Response, alloc::string::String)", "f (&mut Response, string)"),
            ("no function net::get (i64), my_std::x and `std`", "no function net::get (i64), my_std::x and `std`"),
            ("core::option::Option<", "Option"),
            ("", ""),
        ] {
            assert_eq!(plain_types(said), want);
        }
    }
}

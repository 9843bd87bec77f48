//! Calls that a model wrote into its text, because it cannot or did not call otherwise. Pure.
//! Only forms that nobody writes by accident count: an example in the middle of a sentence stays text.

use super::ToolCall;
use super::assemble::made_up_id;
use serde_json::{Map, Value};
use std::ops::Range;

/// Longest text that is looked at, in bytes.
const MOST_TEXT: usize = 128 << 10;
/// Most calls in one text; more stay text.
const MOST_CALLS: usize = 32;

/// Most lines that begin as a call does and are none: each may be looked at to the end of the text.
const MOST_MISSES: usize = 100;

struct Found {
    at: Range<usize>,
    name: String,
    arguments: String,
}

/// The calls in a text, and the text without them; `None` where there is none.
///
/// The forms: `<tool_call>{..}</tool_call>` and `<function_call>{..}</function_call>`;
/// `<function=NAME><parameter=KEY>VALUE</parameter></function>`; a line or a fenced block that holds exactly
/// `{"name": .., "arguments": {..}}` or `{"function_call": {..}}`. What stands in other fences, in quotations or beside other
/// words on its line is none. Arguments that are a string already stay as they are.
#[must_use]
pub fn calls_in_text(text: &str) -> Option<(String, Vec<ToolCall>)> {
    if text.len() > MOST_TEXT || !text.contains(['{', '<']) {
        return None;
    }
    if let Some(whole) = whole_object(text.trim()) {
        let calls = whole.into_iter().map(|(name, arguments)| call(name, arguments)).collect();
        return Some((String::new(), calls));
    }
    let mut found: Vec<Found> = Vec::new();
    let (mut at, mut misses) = (0, 0);
    while at < text.len() && found.len() < MOST_CALLS && misses < MOST_MISSES {
        let end = text[at..].find('\n').map_or(text.len(), |n| at + n + 1);
        at = match block(text, at, end, &mut found) {
            Some(next) => next,
            None => {
                misses += usize::from(text[at..end].trim_start().starts_with(['<', '{']));
                end
            }
        };
    }
    if found.is_empty() {
        return None;
    }
    let mut left = String::new();
    let mut from = 0;
    for one in &found {
        // Several calls may stand in one place.
        left.push_str(text.get(from..one.at.start).unwrap_or_default());
        from = from.max(one.at.end);
    }
    left.push_str(&text[from..]);
    let calls = found.into_iter().map(|one| call(one.name, one.arguments)).collect();
    Some((tidy(&left), calls))
}

fn call(name: String, arguments: String) -> ToolCall {
    ToolCall { id: made_up_id(), name, arguments }
}

/// Without the empty lines that the calls leave behind.
fn tidy(text: &str) -> String {
    let mut out = text.trim().to_owned();
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    out
}

/// Looks at what begins in the line from `at` to `end`; gives where to go on, where that is not the next line.
fn block(text: &str, at: usize, end: usize, found: &mut Vec<Found>) -> Option<usize> {
    let line = &text[at..end];
    let start = at + (line.len() - line.trim_start().len());
    let trimmed = line.trim();
    if let Some(fence) = fence_of(trimmed) {
        return Some(fenced(text, at, end, fence, trimmed, found));
    }
    for (open, close) in [("<tool_call>", "</tool_call>"), ("<function_call>", "</function_call>")] {
        if trimmed.starts_with(open) {
            return tagged(text, start, open, close, found);
        }
    }
    if trimmed.starts_with("<function=") {
        return function_tag(text, start, found);
    }
    if trimmed.starts_with('{') {
        let len = object_len(&text[start..])?;
        let rest_of_line = text[start + len..].split('\n').next().unwrap_or_default();
        if !rest_of_line.trim().is_empty() {
            return None;
        }
        for (name, arguments) in read_calls(&text[start..start + len])? {
            found.push(Found { at: start..start + len, name, arguments });
        }
        return Some(start + len);
    }
    None
}

/// The marks that open a fence on this line.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let len = line.chars().take_while(|c| *c == mark).count();
    (len >= 3).then(|| &line[..len])
}

/// A fenced block: exactly a call in it, or several, one a line, make it one; else it is passed over whole.
fn fenced(text: &str, at: usize, end: usize, fence: &str, first: &str, found: &mut Vec<Found>) -> usize {
    let mut next = end;
    while next < text.len() {
        let line_end = text[next..].find('\n').map_or(text.len(), |n| next + n + 1);
        let line = text[next..line_end].trim();
        if line.starts_with(fence) && line.chars().all(|c| fence.starts_with(c)) {
            let word = first[fence.len()..].trim().to_ascii_lowercase();
            let is_for_calls = matches!(word.as_str(), "" | "json" | "tool_call" | "tool_code" | "function_call");
            let body = text[end..next].trim();
            if let Some(calls) = is_for_calls.then(|| only_calls(body)).flatten() {
                found.extend(calls.into_iter().map(|(name, arguments)| Found { at: at..line_end, name, arguments }));
            }
            return line_end;
        }
        next = line_end;
    }
    // A fence that is not closed: the model was cut off, and so may be what is in it.
    text.len()
}

/// Calls, and nothing else: of an object, a list, objects behind one another, or one of the tags.
fn only_calls(body: &str) -> Option<Vec<(String, String)>> {
    if let Some(calls) = whole_object(body) {
        return Some(calls);
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let rest = body[at..].trim_start();
        let start = body.len() - rest.len();
        if rest.is_empty() {
            break;
        }
        let count = found.len();
        let end = body[start..].find('\n').map_or(body.len(), |n| start + n + 1);
        if fence_of(rest).is_some() {
            return None;
        }
        at = block(body, start, end, &mut found)?;
        if found.len() == count {
            return None;
        }
    }
    (!found.is_empty()).then(|| found.into_iter().map(|one| (one.name, one.arguments)).collect())
}

fn whole_object(text: &str) -> Option<Vec<(String, String)>> {
    (text.starts_with('{') || text.starts_with('[')).then(|| read_calls(text)).flatten()
}

fn tagged(text: &str, start: usize, open: &str, close: &str, found: &mut Vec<Found>) -> Option<usize> {
    let inner = start + open.len();
    let body_start = inner + (text[inner..].len() - text[inner..].trim_start().len());
    // By the object's own end: a string in it may hold the closing tag.
    let (body_end, has_object) = match object_len(&text[body_start..]) {
        Some(len) => (body_start + len, true),
        None => (inner + text[inner..].find(close)?, false),
    };
    let rest = &text[body_end..];
    let after = rest.trim_start();
    let end = match after.starts_with(close) {
        true => body_end + (rest.len() - after.len()) + close.len(),
        // Cut off behind a whole object: the closing tag is all that is missing.
        false if has_object && after.is_empty() => text.len(),
        false => return None,
    };
    let body = text[body_start..body_end].trim();
    let calls = match has_object {
        true => read_calls(body)?,
        false => {
            let mut inside = Vec::new();
            function_tag(body, 0, &mut inside)?;
            inside.into_iter().map(|one| (one.name, one.arguments)).collect()
        }
    };
    found.extend(calls.into_iter().map(|(name, arguments)| Found { at: start..end, name, arguments }));
    Some(end)
}

/// `<function=NAME><parameter=KEY>VALUE</parameter></function>`; every value is text.
fn function_tag(text: &str, start: usize, found: &mut Vec<Found>) -> Option<usize> {
    let rest = text[start..].strip_prefix("<function=")?;
    let (name, inner) = rest.split_once('>')?;
    let name = name.trim().trim_matches('"');
    let close = inner.find("</function>")?;
    let mut body = inner[..close].trim();
    let mut arguments = Map::new();
    if body.starts_with('{') {
        arguments = serde_json::from_str(body).ok()?;
    } else {
        while let Some(parameter) = body.strip_prefix("<parameter=") {
            let (key, value) = parameter.split_once('>')?;
            let (value, after) = value.split_once("</parameter>")?;
            arguments.insert(key.trim().trim_matches('"').to_owned(), Value::String(value.trim().to_owned()));
            body = after.trim_start();
        }
        if !body.is_empty() {
            return None;
        }
    }
    if !is_name(name) {
        return None;
    }
    let end = text.len() - inner.len() + close + "</function>".len();
    found.push(Found { at: start..end, name: name.to_owned(), arguments: Value::Object(arguments).to_string() });
    Some(end)
}

/// The length of the JSON object that a text begins with.
fn object_len(text: &str) -> Option<usize> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// The calls that a document is: one, or a list of nothing else.
fn read_calls(document: &str) -> Option<Vec<(String, String)>> {
    match serde_json::from_str(document).ok()? {
        Value::Array(list) if !list.is_empty() && list.len() <= MOST_CALLS => list.iter().map(read_call).collect(),
        value => read_call(&value).map(|call| vec![call]),
    }
}

fn read_call(value: &Value) -> Option<(String, String)> {
    let map = value.as_object()?;
    if let Some(inner) = map.get("function_call").or_else(|| map.get("tool_call")) {
        return (map.len() == 1).then(|| read_call(inner)).flatten();
    }
    // The form of the wire, written out.
    if let Some(inner) = map.get("function").filter(|inner| inner.is_object()) {
        let is_wire = map.keys().all(|key| matches!(key.as_str(), "function" | "type" | "id"));
        return is_wire.then(|| read_call(inner)).flatten();
    }
    let name = map.get("name")?.as_str().filter(|name| is_name(name))?;
    if !map.keys().all(|key| matches!(key.as_str(), "name" | "arguments" | "parameters" | "id" | "type")) {
        return None;
    }
    let arguments = match map.get("arguments").or_else(|| map.get("parameters"))? {
        // Encoded already: not once more.
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        arguments @ Value::Object(map) if !is_schema(map) => arguments.to_string(),
        _ => return None,
    };
    Some((name.to_owned(), arguments))
}

/// A definition of a tool is none of its calls.
fn is_schema(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str) == Some("object") && map.get("properties").is_some_and(Value::is_object)
}

fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_alphanumeric() || "_-.:/".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

    const CALLS: &[Row] = &[
        // One object, and nothing around it.
        ("{\"name\":\"roll\",\"arguments\":{\"n\":1}}", "", &[("roll", "{\"n\":1}")]),
        ("  {\"name\": \"roll\", \"arguments\": {}}\n", "", &[("roll", "{}")]),
        ("{\"function_call\":{\"name\":\"roll\",\"arguments\":{\"n\":1}}}", "", &[("roll", "{\"n\":1}")]),
        ("{\"function_call\":{\"name\":\"roll\",\"arguments\":\"{\\\"n\\\":1}\"}}", "", &[("roll", "{\"n\":1}")]),
        ("{\"name\":\"roll\",\"parameters\":{\"n\":1}}", "", &[("roll", "{\"n\":1}")]),
        ("{\"name\":\"roll\",\"arguments\":null}", "", &[("roll", "{}")]),
        ("{\"name\":\"roll\",\"arguments\":\"\"}", "", &[("roll", "")]),
        ("{\"name\":\"roll\",\"arguments\":\"{\\\"n\\\":\"}", "", &[("roll", "{\"n\":")]),
        ("{\n  \"name\": \"roll\",\n  \"arguments\": {\n    \"n\": 1\n  }\n}", "", &[("roll", "{\"n\":1}")]),
        ("[{\"name\":\"a\",\"arguments\":{}},{\"name\":\"b\",\"arguments\":{}}]", "", &[("a", "{}"), ("b", "{}")]),
        ("{\"type\":\"function\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}", "", &[("a", "{}")]),
        ("{\"type\":\"function\",\"name\":\"a\",\"parameters\":{\"x\":\"y\"}}", "", &[("a", "{\"x\":\"y\"}")]),
        ("{\"name\":\"caf\u{e9}\",\"arguments\":{\"t\":\"\u{1f600}\"}}", "", &[("caf\u{e9}", "{\"t\":\"\u{1f600}\"}")]),
        // Tags.
        ("<tool_call>{\"name\":\"roll\",\"arguments\":{\"n\":1}}</tool_call>", "", &[("roll", "{\"n\":1}")]),
        ("<tool_call>\n{\"name\":\"roll\",\"arguments\":{}}\n</tool_call>", "", &[("roll", "{}")]),
        ("<function_call>{\"name\":\"roll\",\"arguments\":{}}</function_call>", "", &[("roll", "{}")]),
        (
            "<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"b\",\"arguments\":{}}</tool_call>",
            "",
            &[("a", "{}"), ("b", "{}")],
        ),
        (
            "<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"b\",\"arguments\":{}}</tool_call>",
            "",
            &[("a", "{}"), ("b", "{}")],
        ),
        ("Let me see.\n<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>", "Let me see.", &[("a", "{}")]),
        ("One.\n\n<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n\nTwo.", "One.\n\nTwo.", &[("a", "{}")]),
        (
            "<tool_call>{\"name\":\"a\",\"arguments\":{\"t\":\"</tool_call>\"}}</tool_call>",
            "",
            &[("a", "{\"t\":\"</tool_call>\"}")],
        ),
        ("<tool_call>{\"name\":\"a\",\"arguments\":{\"t\":\"x\\ny\"}}</tool_call>", "", &[("a", "{\"t\":\"x\\ny\"}")]),
        ("<tool_call>{\"name\":\"a\",\"arguments\":{}}", "", &[("a", "{}")]),
        ("<tool_call>[{\"name\":\"a\",\"arguments\":{}}]</tool_call>", "", &[("a", "{}")]),
        ("  <tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>  ", "", &[("a", "{}")]),
        // Functions with parameters.
        ("<function=roll><parameter=n>1</parameter></function>", "", &[("roll", "{\"n\":\"1\"}")]),
        (
            "<function=roll>\n<parameter=n>\n 1 \n</parameter>\n<parameter=m>a b</parameter>\n</function>",
            "",
            &[("roll", "{\"n\":\"1\",\"m\":\"a b\"}")],
        ),
        ("<function=roll></function>", "", &[("roll", "{}")]),
        ("<function=roll>{\"n\":1}</function>", "", &[("roll", "{\"n\":1}")]),
        (
            "<tool_call>\n<function=roll>\n<parameter=n>1</parameter>\n</function>\n</tool_call>",
            "",
            &[("roll", "{\"n\":\"1\"}")],
        ),
        ("So.\n<function=a></function>\n<function=b></function>", "So.", &[("a", "{}"), ("b", "{}")]),
        // Lines and fences.
        ("I roll.\n{\"name\":\"roll\",\"arguments\":{\"n\":1}}\nThere.", "I roll.\n\nThere.", &[("roll", "{\"n\":1}")]),
        ("{\"name\":\"a\",\"arguments\":{}}\n{\"name\":\"b\",\"arguments\":{}}", "", &[("a", "{}"), ("b", "{}")]),
        ("```json\n{\"name\":\"roll\",\"arguments\":{\"n\":1}}\n```", "", &[("roll", "{\"n\":1}")]),
        ("```\n{\"name\":\"roll\",\"arguments\":{}}\n```", "", &[("roll", "{}")]),
        ("```JSON\r\n{\"name\":\"roll\",\"arguments\":{}}\r\n```\r\n", "", &[("roll", "{}")]),
        ("~~~json\n{\"name\":\"roll\",\"arguments\":{}}\n~~~", "", &[("roll", "{}")]),
        ("Sure:\n```json\n{\n \"name\": \"roll\",\n \"arguments\": {}\n}\n```\nDone", "Sure:\nDone", &[("roll", "{}")]),
        (
            "```json\n{\"name\":\"a\",\"arguments\":{}}\n{\"name\":\"b\",\"arguments\":{}}\n```",
            "",
            &[("a", "{}"), ("b", "{}")],
        ),
        ("```json\n[{\"name\":\"a\",\"arguments\":{}}]\n```", "", &[("a", "{}")]),
        ("```tool_call\n{\"name\":\"a\",\"arguments\":{}}\n```", "", &[("a", "{}")]),
        ("```\n<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n```", "", &[("a", "{}")]),
        (
            "```json\n{\"name\":\"a\",\"arguments\":{}}\n```\n```json\n{\"name\":\"b\",\"arguments\":{}}\n```",
            "",
            &[("a", "{}"), ("b", "{}")],
        ),
    ];

    const NONE: &[&str] = &[
        "",
        "hello",
        "a {brace}",
        "{}",
        "[]",
        "[1]",
        "null",
        "{\"name\":\"Ann\",\"age\":3}",
        "{\"name\":\"Ann\"}",
        "{\"arguments\":{}}",
        "{\"name\":\"\",\"arguments\":{}}",
        "{\"name\":\"two words\",\"arguments\":{}}",
        "{\"name\":1,\"arguments\":{}}",
        "{\"name\":\"roll\",\"arguments\":[1]}",
        "{\"name\":\"roll\",\"arguments\":{\"n\":}",
        "{\"name\":\"roll\",\"description\":\"rolls\",\"parameters\":{\"type\":\"object\"}}",
        "{\"name\":\"roll\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}",
        "[{\"name\":\"a\",\"arguments\":{}}, 1]",
        "You write {\"name\":\"roll\",\"arguments\":{}} to roll.",
        "{\"name\":\"roll\",\"arguments\":{}} is how you call it.",
        "Such as `{\"name\":\"roll\",\"arguments\":{}}`",
        "> {\"name\":\"roll\",\"arguments\":{}}",
        "- {\"name\":\"roll\",\"arguments\":{}}",
        "A model writes <tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call> to call.",
        "`<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>`",
        "<tool_call>not json</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{</tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{}} and words",
        "<function=roll><parameter=n>1</parameter>",
        "<function=roll><parameter=n>1</function>",
        "<function=roll>words</function>",
        "<function=></function>",
        "```python\n{\"name\":\"roll\",\"arguments\":{}}\n```",
        "```json\n// an example\n{\"name\":\"roll\",\"arguments\":{}}\n```",
        "```json\n{\"name\":\"roll\",\"arguments\":{}}\nwords\n```",
        "```json\n{\"name\":\"roll\",\"arguments\":{}}",
        "````\n```json\n{\"name\":\"roll\",\"arguments\":{}}\n```\n````",
        "```xml\n<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n```",
    ];

    #[test]
    fn calls_are_found_in_every_form_that_models_write_them_in() {
        for (text, want_left, want) in CALLS {
            let Some((left, calls)) = calls_in_text(text) else { panic!("nothing found in {text:?}") };
            let got: Vec<(&str, &str)> = calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
            assert_eq!((left.as_str(), got.as_slice()), (*want_left, *want), "{text:?}");
            assert!(calls.iter().all(|c| c.id.len() == 13 && c.id.starts_with("call_")), "{text:?}");
        }
    }

    #[test]
    fn an_example_in_prose_data_or_half_a_call_is_no_call() {
        for text in NONE {
            let found = calls_in_text(text);
            assert!(found.is_none(), "{text:?} gave {found:?}");
        }
    }

    #[test]
    fn a_long_text_of_openings_is_looked_at_in_good_time() {
        for piece in ["<tool_call>\n", "{\"a\":", "<function=a>\n", "```\n", "{\n", "<tool_call>{\n"] {
            let _ = calls_in_text(&piece.repeat(MOST_TEXT / piece.len()));
        }
    }
}

//! A documented function is a tool: its comment becomes the schema, its parameters the order of the arguments.
//! It reads comments as text and knows no script; whoever loads the file hands them over.

use super::doc_type::{self, is_identifier, json_prefix};
use super::names;
use super::schema::cut;
use super::spec::{Example, Locality, SideEffect, Spec, empty_parameters};
use crate::base::error::Fallback;
use crate::script::lint::is_reserved_word;
use crate::service::permissions::Permission;
use serde_json::{Map, Value};

/// One parameter of a documented function, in the order of the function.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamPlan {
    /// The argument's name in the schema: the parameter's, without the `_` that keeps it off a reserved word.
    pub schema_name: String,
    /// Which parameter of the function it is, from 0.
    pub position: usize,
    /// What it is when the call leaves it out.
    pub default: Option<Value>,
    /// Whether it arrives as `()` when the call leaves it out.
    pub optional: bool,
}

/// What is wrong with a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocError {
    /// The line of the file, from 1.
    pub line: usize,
    /// What is wrong; lower case, no full stop.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

const TAGS: [&str; 13] = [
    "param",
    "local",
    "endpoint",
    "network",
    "writes",
    "spends",
    "hidden",
    "category",
    "permission",
    "fallback",
    "timeout",
    "returns",
    "example",
];

const PARAM_EXAMPLE: &str = "/// @param {integer 1..100} count=1 - How many dice";

/// Reads the comment of a function with these parameters. `comments` are as Rhai gives them, with their `///` or `/** */`;
/// `line` is the file's line of the first of them.
///
/// # Errors
/// The first thing that is wrong, with its line and what to write instead.
pub fn from_doc(
    function: &str,
    params: &[&str],
    comments: &[&str],
    line: usize,
) -> Result<(Spec, Vec<ParamPlan>), DocError> {
    let here = |message: String, hint: Option<&str>| DocError { line, message, hint: hint.map(str::to_owned) };
    names::check(function).map_err(|reason| here(reason, None))?;
    let mut reader = Reader {
        function,
        params,
        line,
        spec: Spec::new(function, String::new(), empty_parameters()),
        described: Vec::new(),
        found: Vec::new(),
    };
    reader.read(&strip(comments))?;
    reader.finish()
}

/// The lines of the comments without their marks.
fn strip<'a>(comments: &[&'a str]) -> Vec<&'a str> {
    let mut lines = Vec::new();
    for comment in comments {
        let mut block = false;
        for raw in comment.lines() {
            let mut text = raw.trim();
            if !block && let Some(rest) = text.strip_prefix("///") {
                lines.push(rest.strip_prefix(' ').unwrap_or(rest).trim_end());
                continue;
            }
            let opens = !block && text.starts_with("/**");
            if opens {
                text = text[3..].trim_start();
                block = true;
            }
            if let Some(rest) = text.strip_suffix("*/").filter(|_| block) {
                text = rest.trim_end();
                block = false;
            }
            if !opens {
                text = text.strip_prefix('*').map_or(text, str::trim_start);
            }
            lines.push(text);
        }
    }
    lines
}

/// A parameter that the comment describes.
struct Found {
    name: String,
    line: usize,
    schema: Value,
    default: Option<Value>,
    optional: bool,
}

/// What the next plain line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Description,
    Param,
    Nothing,
}

struct Reader<'a> {
    function: &'a str,
    params: &'a [&'a str],
    line: usize,
    spec: Spec,
    described: Vec<&'a str>,
    found: Vec<Found>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, lines: &[&'a str]) -> Result<(), DocError> {
        let mut open = Open::Description;
        let mut fenced = false;
        for (index, text) in lines.iter().enumerate() {
            let line = self.line + index;
            let trimmed = text.trim();
            fenced ^= trimmed.starts_with("```") && open == Open::Description;
            let tag = trimmed.strip_prefix('@').filter(|t| !fenced && t.starts_with(|c: char| c.is_ascii_alphabetic()));
            if let Some(tag) = tag {
                let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tag.len());
                let (word, rest) = (&tag[..end], tag[end..].trim());
                self.tag(word, rest, line).map_err(|(message, hint)| DocError { line, message, hint })?;
                open = if word == "param" { Open::Param } else { Open::Nothing };
                continue;
            }
            match open {
                Open::Description => self.described.push(text),
                _ if trimmed.is_empty() => open = Open::Nothing,
                Open::Param => {
                    if let Some(found) = self.found.last_mut() {
                        extend_description(&mut found.schema, trimmed);
                    }
                }
                Open::Nothing => {
                    return Err(DocError {
                        line,
                        message: format!("`{}` stands after the tags", cut(trimmed, 60)),
                        hint: Some("what describes the tool stands before the first tag".to_owned()),
                    });
                }
            }
        }
        Ok(())
    }

    fn tag(&mut self, word: &str, rest: &str, line: usize) -> Result<(), (String, Option<String>)> {
        let bare = |hint: &str| {
            if rest.is_empty() {
                Ok(())
            } else {
                Err((format!("`@{word}` takes nothing, got `{}`", cut(rest, 40)), Some(hint.to_owned())))
            }
        };
        let expects = |what: &str, example: &str| {
            (format!("`@{word}` needs {what}, got `{}`", cut(rest, 60)), Some(format!("write {example}")))
        };
        let spec = &mut self.spec;
        match word {
            "param" => return self.param(rest, line),
            "local" | "endpoint" => {
                bare(&format!("write /// @{word}"))?;
                let says = if word == "local" { Locality::Local } else { Locality::Endpoint };
                if spec.is_local != Locality::Unset && spec.is_local != says {
                    return Err((
                        "`@local` and `@endpoint` exclude each other".to_owned(),
                        Some("keep one of them".to_owned()),
                    ));
                }
                spec.is_local = says;
            }
            "network" => {
                bare("write /// @network")?;
                spec.network = true;
            }
            "writes" => {
                bare("write /// @writes")?;
                spec.writes = true;
            }
            "spends" => {
                bare("write /// @spends")?;
                spec.side_effect = Some(SideEffect::Spend);
            }
            "hidden" => {
                bare("write /// @hidden")?;
                spec.hidden = true;
            }
            "category" => {
                if rest.is_empty() || rest.contains(char::is_whitespace) {
                    return Err(expects("one word", "/// @category web"));
                }
                spec.category = Some(rest.to_owned());
            }
            "permission" => {
                if rest.is_empty() {
                    return Err(expects("a permission", "/// @permission EXTERNAL_HTTP"));
                }
                for name in rest.split(|c: char| c == ',' || c.is_whitespace()).filter(|n| !n.is_empty()) {
                    let permission = Permission::read(name)
                        .map_err(|e| (e.message().to_owned(), e.hint_text().map(str::to_owned)))?;
                    if !spec.permissions.contains(&permission) {
                        spec.permissions.push(permission);
                    }
                }
            }
            "fallback" => {
                let (tool, when) = split_dash(rest);
                if names::check(tool).is_err() {
                    return Err(expects("a tool's name", "/// @fallback web_search - the answer is public"));
                }
                spec.fallbacks.push(Fallback { tool: tool.to_owned(), when: when.to_owned() });
            }
            "timeout" => {
                let seconds = rest.parse::<u64>().ok().filter(|s| *s >= 1);
                spec.timeout_s = Some(seconds.ok_or_else(|| expects("whole seconds from 1", "/// @timeout 20"))?);
            }
            "returns" => {
                let example = "/// @returns {city: string, degrees: number} The weather";
                let (schema, _) = doc_type::returns(rest)
                    .map_err(|reason| (format!("`@returns`: {reason}"), Some(format!("write {example}"))))?;
                spec.output_schema = schema;
            }
            "example" => {
                let example = read_example(rest, line).map_err(|reason| {
                    (format!("`@example`: {reason}"), Some("write /// @example {\"sides\": 20} => /rolled/".to_owned()))
                })?;
                spec.examples.push(example);
            }
            other => {
                let close = names::did_you_mean(other, TAGS, 1);
                let hint = match close.first() {
                    Some(close) => format!("did you mean `@{close}`?"),
                    None => format!("the tags are @{}", TAGS.join(" @")),
                };
                return Err((format!("the tag `@{}` is unknown", cut(other, 40)), Some(hint)));
            }
        }
        Ok(())
    }

    /// `{type} name=default - description`, `{type} [name] - description`.
    fn param(&mut self, rest: &str, line: usize) -> Result<(), (String, Option<String>)> {
        let example = || Some(format!("write {PARAM_EXAMPLE}"));
        let Some(rest) = rest.strip_prefix('{') else {
            return Err((format!("`@param` begins with a type in braces, got `{}`", cut(rest, 60)), example()));
        };
        let Some(close) = closing_brace(rest) else {
            return Err((format!("the brace of `@param {{{}` is not closed", cut(rest, 60)), example()));
        };
        let mut schema = doc_type::parse(&rest[..close])
            .map_err(|reason| (format!("`@param`: {reason}"), Some(format!("a type is {}", doc_type::FORMS))))?;
        let rest = rest[close + 1..].trim_start();
        let (bracketed, rest) = rest.strip_prefix('[').map_or((false, rest), |rest| (true, rest));
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        if !is_identifier(&name) {
            return Err((format!("`@param` names no parameter after its type, got `{}`", cut(rest, 60)), example()));
        }
        let mut rest = &rest[end..];
        let mut default = None;
        if let Some(after) = rest.trim_start().strip_prefix('=') {
            let after = after.trim_start();
            // In `[name=value]` the bracket ends the value.
            let (value, left) = match after.find(']').filter(|_| bracketed && !after.starts_with('[')) {
                Some(end) => (&after[..end], Some(&after[end..])),
                None => (after, None),
            };
            let (value, after) = doc_type::default(&schema, value).map_err(|reason| {
                (
                    format!("the default of `{name}` does not fit: {reason}"),
                    Some(format!("the type is {{{}}}", self_type(&schema))),
                )
            })?;
            default = Some(value);
            rest = left.unwrap_or(after);
        }
        if bracketed {
            rest = rest.trim_start().strip_prefix(']').ok_or_else(|| {
                (
                    format!("the bracket of `[{name}` is not closed"),
                    Some("write /// @param {string} [name] - What it is".to_owned()),
                )
            })?;
        }
        let description = read_description(rest).ok_or_else(|| {
            (format!("expected ` - ` and a description after `{name}`, got `{}`", cut(rest.trim(), 60)), example())
        })?;
        if self.found.iter().any(|f| same_name(&f.name, &name)) {
            return Err((format!("`{name}` is described twice"), None));
        }
        if !description.is_empty() {
            extend_description(&mut schema, description);
        }
        if let (Some(default), Some(map)) = (&default, schema.as_object_mut()) {
            map.insert("default".to_owned(), default.clone());
        }
        let optional = bracketed && default.is_none();
        self.found.push(Found { name, line, schema, default, optional });
        Ok(())
    }

    fn finish(mut self) -> Result<(Spec, Vec<ParamPlan>), DocError> {
        let signature = format!("{}({})", self.function, self.params.join(", "));
        if let Some(stray) = self.found.iter().find(|f| !self.params.iter().any(|p| same_name(p, &f.name))) {
            let close = names::did_you_mean(&stray.name, self.params.iter().copied(), 1);
            return Err(DocError {
                line: stray.line,
                message: format!("`@param {}` is no parameter of `{signature}`", stray.name),
                hint: Some(close.first().map_or_else(
                    || "the comment and the function must name the same parameters".to_owned(),
                    |close| format!("did you mean `{close}`?"),
                )),
            });
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut plan = Vec::with_capacity(self.params.len());
        for (position, param) in self.params.iter().enumerate() {
            let Some(at) = self.found.iter().position(|f| same_name(param, &f.name)) else {
                return Err(DocError {
                    line: self.line,
                    message: format!("the parameter `{param}` of `{signature}` has no `@param` line"),
                    hint: Some(format!("add /// @param {{string}} {param} - What it is")),
                });
            };
            let found = self.found.swap_remove(at);
            let schema_name = bare_name(param).to_owned();
            if found.default.is_none() && !found.optional {
                required.push(Value::String(schema_name.clone()));
            }
            properties.insert(schema_name.clone(), found.schema);
            plan.push(ParamPlan { schema_name, position, default: found.default, optional: found.optional });
        }
        self.spec.description = join_paragraphs(&self.described);
        if self.spec.description.is_empty() {
            return Err(DocError {
                line: self.line,
                message: format!("the comment of `{}` does not say what it does", self.function),
                hint: Some("begin with a sentence on what the tool does and when to use it".to_owned()),
            });
        }
        if let Some(parameters) = self.spec.parameters.as_object_mut() {
            parameters.insert("properties".to_owned(), Value::Object(properties));
            if !required.is_empty() {
                parameters.insert("required".to_owned(), Value::Array(required));
            }
        }
        Ok((self.spec, plan))
    }
}

/// The name in the schema of a parameter: `match_` stands for `match`, which Rhai keeps for itself.
fn bare_name(param: &str) -> &str {
    param.strip_suffix('_').filter(|bare| is_reserved_word(bare)).unwrap_or(param)
}

fn same_name(a: &str, b: &str) -> bool {
    bare_name(a) == bare_name(b)
}

fn self_type(schema: &Value) -> String {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("object");
    if let Some(Value::Array(words)) = schema.get("enum") {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    let (least, most) = if kind == "string" { ("minLength", "maxLength") } else { ("minimum", "maximum") };
    let bound = |key: &str| schema.get(key).map(Value::to_string).unwrap_or_default();
    match (kind, schema.get("items")) {
        ("array", Some(items)) => format!("{}[]", self_type(items)),
        _ if schema.get(least).is_some() || schema.get(most).is_some() => {
            format!("{kind} {}..{}", bound(least), bound(most))
        }
        _ => kind.to_owned(),
    }
}

/// The brace that closes a type, outside quotes.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// What follows the dash; empty where nothing follows the name; `None` where the dash is missing.
fn read_description(rest: &str) -> Option<&str> {
    let rest = rest.trim();
    if rest.is_empty() {
        return Some("");
    }
    rest.strip_prefix(['-', '–', '—']).map(str::trim)
}

fn split_dash(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = (&text[..end], text[end..].trim());
    (word, rest.strip_prefix(['-', '–', '—']).unwrap_or(rest).trim())
}

fn extend_description(schema: &mut Value, more: &str) {
    if let Some(map) = schema.as_object_mut() {
        match map.get_mut("description") {
            Some(Value::String(text)) => {
                text.push(' ');
                text.push_str(more);
            }
            _ => {
                map.insert("description".to_owned(), more.into());
            }
        }
    }
}

fn read_example(text: &str, line: usize) -> Result<Example, String> {
    if !text.starts_with('{') {
        return Err(format!("expected the arguments as an object, got `{}`", cut(text, 60)));
    }
    let (arguments, rest) = json_prefix(text)?;
    let Some(expect) = rest.trim_start().strip_prefix("=>").map(str::trim) else {
        return Err(format!("expected `=>` after the arguments, got `{}`", cut(rest.trim(), 60)));
    };
    let inner = expect.strip_prefix('/').and_then(|e| e.strip_suffix('/')).filter(|e| !e.is_empty());
    let Some(inner) = inner else {
        return Err(format!("expected a regular expression between slashes, got `{}`", cut(expect, 60)));
    };
    if regex::Regex::new(inner).is_err() {
        return Err(format!("/{}/ is not a regular expression", cut(inner, 60)));
    }
    Ok(Example { arguments, expect: inner.to_owned(), line })
}

/// Lines of a paragraph become one, paragraphs stay apart, lists and fenced code keep their lines.
fn join_paragraphs(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut fenced = false;
    let mut gap = false;
    for line in lines {
        let trimmed = line.trim();
        let fence = trimmed.starts_with("```");
        if trimmed.is_empty() && !fenced {
            gap = !text.is_empty();
            continue;
        }
        let own_line = fenced || fence || is_list_item(trimmed);
        if gap {
            text.push_str("\n\n");
        } else if !text.is_empty() {
            text.push(if own_line || text.ends_with("```") { '\n' } else { ' ' });
        }
        gap = false;
        text.push_str(if fenced { line } else { trimmed });
        fenced ^= fence;
    }
    text.truncate(text.trim_end().len());
    text
}

fn is_list_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    ["- ", "* ", "+ ", "| "].iter().any(|mark| line.starts_with(mark))
        || (digits > 0 && (line[digits..].starts_with(". ") || line[digits..].starts_with(") ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

//! Lines that call a tool without a model: `/roll_dice sides=20`. Pure.

use super::super::row::Call;
use crate::base::error::{Error, Result, excerpt};
use crate::tool::registry::Snapshot;
use serde_json::{Map, Value};

/// The call that a line stands for; nothing where it begins with no `/` and a name.
///
/// # Errors
/// `not_found` for a tool that does not exist, `invalid_arguments` for what is no `key=value`.
#[must_use]
pub fn parse(text: &str, snapshot: &Snapshot) -> Option<Result<Call>> {
    let line = text.trim().strip_prefix('/')?;
    let name: String = line.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
    let rest = &line[name.len()..];
    if name.is_empty() || !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
        return None;
    }
    Some(call(&name, rest.trim(), snapshot))
}

fn call(name: &str, rest: &str, snapshot: &Snapshot) -> Result<Call> {
    let Some(tool) = snapshot.get(name) else {
        return Err(Error::not_found(format!("there is no tool `{}`", excerpt(name, 60)))
            .hint("a line that begins with `/` calls a tool; begin it with a space to say it to the model"));
    };
    let is_text = |key: &str| {
        let schema = tool.spec.parameters.get("properties").and_then(|all| all.get(key));
        schema.and_then(|schema| schema.get("type")).and_then(Value::as_str) == Some("string")
    };
    let arguments = if rest.starts_with('{') {
        rest.to_owned()
    } else {
        let mut map = Map::new();
        for word in words(rest) {
            let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(Error::invalid(format!("`{}` is no key=value", excerpt(&word, 60)))
                    .hint("write /tool key=value other=\"two words\", or one JSON object"));
            };
            let read = if is_text(key) { None } else { serde_json::from_str(value).ok() };
            map.insert(key.to_owned(), read.unwrap_or_else(|| Value::from(value)));
        }
        Value::Object(map).to_string()
    };
    Ok(Call { id: "call_1".to_owned(), name: name.to_owned(), arguments })
}

/// Words between blanks; quotes hold blanks together and go.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for c in text.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.push(c),
            None if (c == '"' || c == '\'') && (word.is_empty() || word.ends_with('=')) => {
                quote = Some(c);
                is_word = true;
            }
            None if c.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            None => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_hold_words_together_where_a_value_begins() {
        for (text, expected) in [
            ("", ""),
            ("a=1 b=2", "a=1|b=2"),
            ("a=\"two words\" b='x y'", "a=two words|b=x y"),
            ("a=it's b=2", "a=it's|b=2"),
            ("a=\"\"", "a="),
            ("  a=1\n\tb=2 ", "a=1|b=2"),
            ("a=\"open b=2", "a=open b=2"),
        ] {
            assert_eq!(words(text).join("|"), expected, "{text}");
        }
    }
}

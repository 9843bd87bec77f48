//! What the parser's errors mean to somebody who writes another language most days: our message, and what to write.

use crate::base::error::{Error, Kind};
use rhai::{LexError, ParseErrorType};

/// A parse error at a place of `line`, whose columns count characters from 1.
pub(super) fn explain(kind: &ParseErrorType, line: Option<&str>, column: usize) -> Error {
    let error = match kind {
        ParseErrorType::TooManyFunctions => {
            return Error::new(Kind::TooLarge, "the file has too many functions and closures").hint("split it");
        }
        ParseErrorType::ExprTooDeep => {
            return Error::invalid("the expression nests too deep, or chains too much")
                .hint("give the inner part a name with `let`, or a function of its own");
        }
        ParseErrorType::BadInput(LexError::ImproperSymbol(word, _)) if word == "eval" => {
            return Error::invalid("`eval` is off: a script cannot make code")
                .hint("use a function, or a map of functions");
        }
        other => Error::invalid(lowered(&other.to_string())),
    };
    let hint = match kind {
        ParseErrorType::Reserved(word) if line.is_some_and(|line| is_key(line, column, word)) => {
            Some(format!("a reserved word as the key of a map stands in quotes: `\"{word}\": ..`"))
        }
        ParseErrorType::Reserved(word) => Some(reserved(word)),
        ParseErrorType::WrongDocComment => {
            Some("`///` stands directly before a function only; write `//` here".to_owned())
        }
        ParseErrorType::WrongFnDefinition => Some("move it out, or write a closure: let f = |x| ..".to_owned()),
        ParseErrorType::MismatchedType(wanted, _) if wanted.contains("boolean") => {
            Some("a condition is true or false: compare, such as `n != 0`, `text != \"\"`, `value != ()`".to_owned())
        }
        ParseErrorType::UnknownOperator(op) => operator(op),
        ParseErrorType::BadInput(LexError::MalformedChar(_)) => {
            Some("text stands in double quotes or backticks; single quotes hold one character".to_owned())
        }
        ParseErrorType::BadInput(LexError::UnterminatedString) => {
            Some("close it on the same line, or use backticks for a text of several lines".to_owned())
        }
        ParseErrorType::BadInput(LexError::MalformedNumber(_)) => {
            Some("a whole number has 64 bits with a sign: at most 9223372036854775807".to_owned())
        }
        ParseErrorType::MissingToken(..) => line.and_then(|line| habit(line, column)),
        _ => None,
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// As our messages are: lower case, no full stop.
pub(super) fn lowered(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

fn reserved(word: &str) -> String {
    match word {
        "null" | "nil" | "void" => "the empty value is `()`".to_owned(),
        "var" => "a variable begins with `let`".to_owned(),
        "async" | "await" | "spawn" | "thread" => "calls simply wait here: leave the word out".to_owned(),
        "new" => "values are made by functions and literals: leave the word out".to_owned(),
        "print" | "debug" => "call it by name only, or use log::info".to_owned(),
        "#!" => "a script has no such first line: take it out".to_owned(),
        "#" => "a comment begins with `//`; a map with `#{`".to_owned(),
        "@" => "tags such as @local stand in the `///` comment of a function".to_owned(),
        "?" | "++" | "--" => operator(word).unwrap_or_default(),
        _ if super::lint::is_reserved_word(word) => format!(
            "`{word}` is a reserved word of Rhai: choose another name (a tool's parameter is read as \
             arguments[\"{word}\"], or named `{word}_` in a documented function)"
        ),
        _ => format!("Rhai keeps `{word}` for itself"),
    }
}

/// Whether the word at the column is followed by the colon of a map.
fn is_key(line: &str, column: usize, word: &str) -> bool {
    let rest: String = line.chars().skip(column.saturating_sub(1)).collect();
    rest.strip_prefix(word).map(str::trim_start).is_some_and(|rest| rest.starts_with(':') && !rest.starts_with("::"))
}

fn operator(op: &str) -> Option<String> {
    Some(match op {
        "?" => "write `if a { b } else { c }`".to_owned(),
        "++" => "write `+= 1`".to_owned(),
        "--" => "write `-= 1`".to_owned(),
        _ => return None,
    })
}

/// What a missing symbol really was: a word of another language at the place or before it.
fn habit(line: &str, column: usize) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let chars: Vec<char> = line.chars().collect();
    let at = column.saturating_sub(1).min(chars.len());
    let here: String = chars[at..].iter().copied().take_while(|c| is_word(*c)).collect();
    let before: Vec<char> =
        chars[..at].iter().rev().copied().skip_while(|c| c.is_whitespace()).take_while(|c| is_word(*c)).collect();
    let before: String = before.into_iter().rev().collect();
    Some(match (before.as_str(), here.as_str()) {
        (_, "and") => "write `&&`".to_owned(),
        (_, "or") => "write `||`".to_owned(),
        ("not", _) => "write `!`".to_owned(),
        ("def" | "function" | "func", _) => "a function begins with `fn`".to_owned(),
        ("pub" | "public", _) => "every function is public unless it is `private`".to_owned(),
        ("class" | "struct", _) => "there are no classes: a map with closures holds data and functions".to_owned(),
        ("elif" | "elsif" | "elseif", _) => "write `else if`".to_owned(),
        ("del", _) => "write `map.remove(key)`".to_owned(),
        ("from", _) => "write import \"std/<module>\" as m;".to_owned(),
        _ => match chars.get(at) {
            Some('"' | '`') if matches!(before.as_str(), "f" | "r" | "b") => {
                "text with values is written `text ${value}`, in backticks".to_owned()
            }
            Some(':') if line.trim_start().starts_with('{') || line.contains(" { ") && !line.contains("let ") => {
                "a map begins with `#{`".to_owned()
            }
            Some(':') => "variables and parameters have no types".to_owned(),
            Some('=') if chars.get(at + 1) == Some(&'>') => "a closure is written |x| x + 1".to_owned(),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::habit;

    #[test]
    fn habits_of_other_languages_are_recognised_where_a_semicolon_is_missed() {
        let table = [
            ("if a and b {", 6, Some("`&&`")),
            ("x or y", 3, Some("`||`")),
            ("not a", 5, Some("`!`")),
            ("def f():", 5, Some("`fn`")),
            ("pub fn f() {}", 5, Some("`private`")),
            ("class A {", 7, Some("no classes")),
            ("} elif x {", 8, Some("`else if`")),
            ("f\"a\"", 2, Some("backticks")),
            ("{ \"a\": 1 }", 6, Some("`#{`")),
            ("let x: int = 1;", 6, Some("no types")),
            ("x => x", 3, Some("|x|")),
            ("let a = 5", 10, None),
            ("a b", 3, None),
            ("", 1, None),
            ("é", 9, None),
        ];
        for (line, column, part) in table {
            let hint = habit(line, column);
            assert_eq!(hint.is_some(), part.is_some(), "{line}: {hint:?}");
            assert!(hint.unwrap_or_default().contains(part.unwrap_or_default()), "{line}");
        }
    }
}

//! A guess at how many tokens a text costs a model. It knows no model's own vocabulary.

use super::dialect::{self, Dialect, WireNames};

/// About how many tokens `text` is: one per four ASCII characters, one per character beyond ASCII.
///
/// An estimate for people who compare descriptions; it is within about a third for English and errs high elsewhere.
#[must_use]
pub fn estimate_tokens(text: &str) -> usize {
    let beyond = text.chars().filter(|c| !c.is_ascii()).count();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + beyond
}

/// Estimated tokens of a tool as a model reads it, in the dialect that most providers take.
#[must_use]
pub fn of_tool(spec: &super::spec::Spec) -> usize {
    dialect::define(spec, Dialect::OpenAi, &WireNames::default()).tokens
}

/// Estimated tokens of a definition in some dialect: of the text itself, or of its JSON.
#[must_use]
pub fn of_definition(definition: &serde_json::Value) -> usize {
    match definition {
        serde_json::Value::String(text) => estimate_tokens(text),
        other => estimate_tokens(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ascii_characters_or_one_other_are_a_token() {
        let rows: [(&str, usize); 6] = [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中文", 2), ("ab→", 2)];
        for (text, tokens) in rows {
            assert_eq!(estimate_tokens(text), tokens, "{text:?}");
        }
    }
}

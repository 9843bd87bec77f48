//! Where in a script's text something stands that was only seen as a value: a constant, a tool of `TOOLS`, a key of its schema.
//! It looks for words and knows no language, so a place is the best guess and 0 is none.

/// A line and a column, from 1; 0 and 0 where nothing was found.
pub(super) type Place = (usize, usize);

/// The line of a top-level constant.
pub(super) fn constant(text: &str, name: &str) -> usize {
    text.lines()
        .position(|l| {
            l.trim_start()
                .strip_prefix("const ")
                .and_then(|rest| rest.trim_start().strip_prefix(name))
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        })
        .map_or(0, |n| n + 1)
}

/// Where the name of a tool stands as a text, or `TOOLS` does.
pub(super) fn tool(text: &str, name: &str) -> Place {
    match name_of_tool(text, name) {
        Some(at) => place(text, at),
        None => {
            let line = constant(text, "TOOLS");
            (line, usize::from(line > 0))
        }
    }
}

/// Where the key stands that a finding about a tool names first, such as `` `parameters.properties.city` ``: the deepest part of
/// it that is found in the tool's entry, or the tool's name.
pub(super) fn key(text: &str, tool_name: &str, finding: &str) -> Place {
    let Some(named) = name_of_tool(text, tool_name) else { return tool(text, tool_name) };
    // An entry begins with `type: "function"`.
    const MARK: &str = "\"function\"";
    let from = text[..named].rfind(MARK).unwrap_or(named);
    let to = text[named..].find(MARK).map_or(text.len(), |n| named + n);
    let path = finding.split('`').nth(1).unwrap_or_default();
    let mut at = from;
    let mut found = None;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty() && *part != "function") {
        if let Some(next) = find_key(&text[..to], at, part) {
            found = Some(next);
            at = next + part.len();
        }
    }
    place(text, found.unwrap_or(named))
}

/// The byte where a tool's name stands as a text, on a line that says `name` if there is one.
fn name_of_tool(text: &str, name: &str) -> Option<usize> {
    let quoted = format!("\"{name}\"");
    let all = || text.match_indices(&quoted).map(|(at, _)| at);
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |n| n + 1);
    all().find(|at| text[line_start(*at)..*at].contains("name")).or_else(|| all().next())
}

/// The byte where `name` stands as a key, plain or quoted, at `from` or later.
fn find_key(text: &str, from: usize, name: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.get(from..)?.match_indices(name).map(|(n, _)| from + n).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + name.len()..].trim_start_matches('"').trim_start();
        !before.is_some_and(is_word) && after.starts_with(':') && !after.starts_with("::")
    })
}

fn place(text: &str, at: usize) -> Place {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    (text[..at].matches('\n').count() + 1, text[start..at].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"const TOOLS = [
    #{ type: "function", is_local: 7, function: #{
        name: "look", description: "Look at look.",
        parameters: #{ type: "object", properties: #{ city: #{ type: "strin" }, "é": #{ type: 5 } } } } },
    #{ type: "function", function: #{ name: "seek", description: 5 } },
];
"#;

    #[test]
    fn a_finding_is_shown_at_the_key_that_it_names() {
        let rows = [
            ("look", "`is_local` is 7", (2, 26)),
            ("look", "`parameters.properties.city.type` is no type", (4, 64)),
            ("look", "`parameters.properties.é.type` is no type", (4, 89)),
            ("look", "`parameters.properties.town` is no type", (4, 40)),
            ("look", "nothing is named", (3, 15)),
            ("seek", "`function.description` is 5; it must be a text", (5, 53)),
            ("seek", "`is_local` is missing", (5, 45)),
            ("gone", "`x` is wrong", (1, 1)),
        ];
        for (name, finding, at) in rows {
            assert_eq!(key(TEXT, name, finding), at, "{name}: {finding}");
        }
        assert_eq!(tool(TEXT, "seek"), (5, 45));
        assert_eq!((constant(TEXT, "TOOLS"), constant(TEXT, "TOOL"), tool("", "x")), (1, 0, (0, 0)));
    }
}

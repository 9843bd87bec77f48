//! Whether a tool's description lets a model decide: what the tool does, and when to use it.

/// Why the description of tool `name` does not say enough, or `None` when it does.
#[must_use]
pub fn check_description(name: &str, description: &str) -> Option<String> {
    let text = description.trim();
    if text.is_empty() {
        return Some(format!("`{name}` has no description: say what it does and when to use it"));
    }
    // Scripts without spaces, and languages whose words are not below: only the length tells.
    if text.chars().any(|c| c.is_alphabetic() && c > '\u{24f}') {
        return (text.chars().count() < 8).then(|| {
            format!("the description of `{name}` is too short to choose by: say what it does and when to use it")
        });
    }
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    if text.chars().count() < 20 || words.len() < 4 {
        return Some(format!(
            "the description of `{name}` is too short to choose by: say what it does and when to use it"
        ));
    }
    // A description that only spells the name out again says nothing new.
    let named: Vec<String> = name.split(['_', '-', '.']).map(str::to_lowercase).collect();
    let new = words.iter().filter(|w| !named.contains(w) && !FILLERS.contains(&w.as_str())).count();
    if new < 2 {
        return Some(format!("the description of `{name}` only repeats its name: say what it does and when to use it"));
    }
    if words.iter().any(|w| WHEN.contains(&w.as_str())) {
        return None;
    }
    Some(format!("the description of `{name}` does not say when to use it: add `Use it when ..` or `Use it for ..`"))
}

/// Words that carry nothing by themselves.
const FILLERS: [&str; 14] =
    ["a", "an", "the", "this", "that", "tool", "function", "is", "it", "to", "of", "and", "does", "will"];

/// Words that announce a purpose or an occasion.
const WHEN: [&str; 37] = [
    "use", "used", "useful", "using", "when", "whenever", "for", "if", "before", "after", "instead", "while", "during",
    "once", "unless", "until", "where", "wherever", "need", "needs", "needed", "wants", "want", "asks", "asked",
    "prefer", "call", "only", "wenn", "für", "falls", "cuando", "para", "quand", "pour", "quando", "per",
];

#[cfg(test)]
mod tests {
    use super::check_description;

    #[test]
    fn a_description_says_what_and_when() {
        let table = [
            ("roll_dice", "Roll dice and add them up. Use it whenever someone asks for a roll.", true),
            ("roll_dice", "Rolls dice of any size for games", true),
            ("clock", "The present time in a zone, when a person asks for it", true),
            ("convert", "Converts units. Prefer this to doing it in your head", true),
            ("note_save", "Saves a note before the conversation ends", true),
            ("fetch", "Fetches a page as text instead of guessing what it says", true),
            ("calc", "Exact arithmetic; if a sum has more than two digits, ask here", true),
            ("search", "Searches the archive. Only after the index was built.", true),
            ("roll_dice", "", false),
            ("roll_dice", "   \n ", false),
            ("roll_dice", "Dice", false),
            ("roll_dice", "Does the thing", false),
            ("roll_dice", "Rolls some dice", false),
            ("roll_dice", "roll dice tool for a roll", false),
            ("roll_dice", "Roll the dice: this is a dice roll tool, use it", false),
            ("get_weather", "Gets the weather. A get weather tool", false),
            ("my_tool", "Returns a list of entries with their ids and sizes", false),
            ("my_tool", "A very long text that tells of the inner life of the tool and never of its purpose", false),
            ("clock", "用于查询当前时间", true),
            ("clock", "时间", false),
            ("clock", "Nennt die Zeit, wenn jemand nach ihr fragt", true),
        ];
        for (name, text, good) in table {
            assert_eq!(
                check_description(name, text).is_none(),
                good,
                "{name}: {text} -> {:?}",
                check_description(name, text)
            );
        }
    }
}

//! Names of tools: what may be one, when two are too close, and which one was meant.

/// Most characters that a tool's name may have.
pub const MAX_NAME: usize = 64;

/// Whether `name` can name a tool: 1 to 64 of `A-Z a-z 0-9 _ -`, first a letter or underscore.
///
/// # Errors
/// The reason it cannot, as one clause.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if let Some(bad) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_' && *c != '-') {
        return Err(format!(
            "the name `{}` holds {}; use only letters A to Z, digits, `_` and `-`",
            shorten(name),
            show_char(bad)
        ));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Err(format!("the name `{}` starts with `{}`; start with a letter or `_`", shorten(name), &name[..1]));
    }
    if name.len() > MAX_NAME {
        return Err(format!("the name `{}` has {} characters; the most is {MAX_NAME}", shorten(name), name.len()));
    }
    Ok(())
}

fn show_char(c: char) -> String {
    if c.is_control() { format!("the control character U+{:04X}", u32::from(c)) } else { format!("`{c}`") }
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= 40 {
        return name.escape_debug().to_string();
    }
    let head: String = name.chars().take(40).collect();
    format!("{}…", head.escape_debug())
}

/// What is left of a name when case, `-`, `_` and `.` do not count. Two tools with one folded name collide.
#[must_use]
pub fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.')).flat_map(char::to_lowercase).collect()
}

/// The names closest to `wanted`, best first, at most `limit`; only those close enough to be a slip.
#[must_use]
pub fn did_you_mean<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let folded = fold(wanted);
    // A name longer than any tool's is not a slip, and the distance is quadratic in it.
    if folded.is_empty() || folded.len() > 2 * MAX_NAME {
        return Vec::new();
    }
    let wanted: Vec<char> = folded.chars().collect();
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let other: Vec<char> = fold(name).chars().collect();
            score(&wanted, &other).map(|score| (score, name))
        })
        .collect();
    close.sort_unstable();
    close.dedup();
    close.truncate(limit);
    close.into_iter().map(|(_, name)| name).collect()
}

/// How far apart two folded names are; `None` when too far to be the same name mistyped.
fn score(a: &[char], b: &[char]) -> Option<usize> {
    let allowed = (a.len().max(b.len()) / 3).max(1);
    if a.len().abs_diff(b.len()) <= allowed {
        let distance = distance(a, b);
        if distance <= allowed {
            return Some(distance);
        }
    }
    // A part of the name given for the whole: `roll` for `roll_dice`.
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.len() >= 4 && long.windows(short.len()).any(|part| part == short) {
        return Some(allowed + 1 + long.len() - short.len());
    }
    None
}

/// Edit distance where a swap of neighbours counts one.
fn distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut rows = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        rows[i * width] = i;
    }
    for (j, cell) in rows.iter_mut().take(width).enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substitution = rows[(i - 1) * width + j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(rows[(i - 1) * width + j] + 1).min(rows[i * width + j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[(i - 2) * width + j - 2] + 1);
            }
            rows[i * width + j] = best;
        }
    }
    rows[a.len() * width + b.len()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_of_at_most_64_characters_pass() {
        let long = "a".repeat(64);
        let too_long = "a".repeat(65);
        let rows: [(&str, bool); 16] = [
            ("roll_dice", true),
            ("_x", true),
            ("A-b_9", true),
            (&long, true),
            (&too_long, false),
            ("", false),
            ("9lives", false),
            ("-x", false),
            ("a.b", false),
            ("a b", false),
            ("a/b", false),
            ("naïve", false),
            ("工具", false),
            ("a\0", false),
            ("a\n", false),
            ("a$", false),
        ];
        for (name, fine) in rows {
            assert_eq!(check(name).is_ok(), fine, "{name:?}: {:?}", check(name));
        }
    }

    #[test]
    fn the_reason_names_the_offending_character() {
        assert!(check("a.b").unwrap_err().contains("`.`"));
        assert!(check("a\0").unwrap_err().contains("U+0000"));
        assert!(check("9x").unwrap_err().contains("starts with `9`"));
        assert!(check(&"x".repeat(70)).unwrap_err().contains("70 characters"));
    }

    #[test]
    fn case_dashes_underscores_and_dots_do_not_tell_names_apart() {
        let rows = [
            ("roll_dice", "RollDice", true),
            ("roll-dice", "roll_dice", true),
            ("roll.dice", "rolldice", true),
            ("__roll", "roll", true),
            ("roll_dice", "roll_dices", false),
            ("a1", "a_1", true),
            ("a1", "al", false),
        ];
        for (a, b, same) in rows {
            assert_eq!(fold(a) == fold(b), same, "{a} {b}");
        }
    }

    #[test]
    fn close_names_are_offered_best_first() {
        let names = ["roll_dice", "roll_die", "web_search", "clock_now", "note_save", "notes_list"];
        let rows: [(&str, &[&str]); 9] = [
            ("roll_dcie", &["roll_dice", "roll_die"]),
            ("rolldice", &["roll_dice", "roll_die"]),
            ("websearch", &["web_search"]),
            ("web_serach", &["web_search"]),
            ("search", &["web_search"]),
            ("note_sav", &["note_save"]),
            ("zzz", &[]),
            ("", &[]),
            ("completely_different", &[]),
        ];
        for (wanted, expected) in rows {
            assert_eq!(did_you_mean(wanted, names, 3), expected, "{wanted}");
        }
    }

    #[test]
    fn a_huge_wrong_name_costs_nothing() {
        assert!(did_you_mean(&"x".repeat(1_000_000), ["roll_dice"], 3).is_empty());
    }
}

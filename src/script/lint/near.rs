//! The nearest of some names to a misspelt one.

/// The candidate that was probably meant, or `None` where nothing is near.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = word.to_lowercase().chars().collect();
    let most = match wanted.len() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .filter(|c| *c != word && c.chars().count().abs_diff(wanted.len()) <= most)
        .map(|c| (distance(&wanted, &c.to_lowercase().chars().collect::<Vec<_>>()), c))
        // Half of a word changed is another word.
        .filter(|(d, c)| *d <= most && *d * 2 < wanted.len().max(c.chars().count()).max(2))
        .min()
        .map(|(_, c)| c)
}

/// Edits between two words: insert, delete, replace, swap neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let names = ["join", "truncate", "lines", "get", "is_match", "to_markdown", "roll_dice", "v4"];
        let table = [
            ("jion", Some("join")),
            ("Join", Some("join")),
            ("joinn", Some("join")),
            ("trunkate", Some("truncate")),
            ("line", Some("lines")),
            ("gett", Some("get")),
            ("ismatch", Some("is_match")),
            ("to_markdwon", Some("to_markdown")),
            ("rol_dice", Some("roll_dice")),
            ("v5", None),
            ("join", None),
            ("fetch_page", None),
            ("x", None),
            ("", None),
            ("set", Some("get")),
        ];
        for (word, wanted) in table {
            assert_eq!(nearest(word, names), wanted, "{word}");
        }
    }
}

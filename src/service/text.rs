//! Working with text by characters, words and lines, without cutting a character in two.
//! Pure functions; a character here is a Unicode scalar value. What may take long asks now and then whether it is still wanted.

use crate::base::error::Result;

/// Asked every [`STRIDE`] bytes or so; an error ends the work: a deadline, a cancellation.
pub type GoOn<'a> = dyn Fn() -> Result<()> + 'a;

/// Bytes between two questions: less than a millisecond of work.
const STRIDE: usize = 64 << 10;

/// Counts what was done, and asks when it is much.
struct Pace<'a> {
    go_on: &'a GoOn<'a>,
    left: usize,
}

impl<'a> Pace<'a> {
    fn new(go_on: &'a GoOn<'a>) -> Self {
        Pace { go_on, left: STRIDE }
    }

    fn did(&mut self, bytes: usize) -> Result<()> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        self.left = STRIDE;
        (self.go_on)()
    }
}

/// The first `max` characters of `text`; what was cut off is shown by an ellipsis, which counts.
#[must_use]
pub fn truncate(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text.to_owned();
    };
    if max == 0 {
        return String::new();
    }
    let last = text[..end].char_indices().last().map_or(0, |(at, _)| at);
    format!("{}…", &text[..last])
}

/// The lines of `text` without their ends (`\n`, `\r\n` or `\r`); a closing line end opens no further line.
///
/// # Errors
/// Those of `go_on`; so in the functions below.
pub fn lines(text: &str, go_on: &GoOn) -> Result<Vec<String>> {
    let mut pace = Pace::new(go_on);
    let mut found = Vec::new();
    for line in lines_of(text) {
        pace.did(line.len() + 1)?;
        found.push(line.to_owned());
    }
    Ok(found)
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix(['\n', '\r'])).unwrap_or(after);
        Some(line)
    })
}

/// The words of `text`: runs of letters and digits, with the apostrophes and hyphens inside them.
///
/// # Errors
/// As [`lines`].
pub fn words(text: &str, go_on: &GoOn) -> Result<Vec<String>> {
    let mut pace = Pace::new(go_on);
    let mut found = Vec::new();
    for part in text.split(|c: char| !(c.is_alphanumeric() || is_mark(c) || matches!(c, '\'' | '’' | '-' | '_'))) {
        pace.did(part.len() + 1)?;
        let word = part.trim_matches(['\'', '’', '-', '_']);
        if !word.is_empty() {
            found.push(word.to_owned());
        }
    }
    Ok(found)
}

/// A name fit for addresses and files: lower-case ASCII letters and digits, single hyphens between; may be empty.
/// Latin letters lose their marks; letters of other scripts are left out.
///
/// # Errors
/// As [`lines`].
pub fn slug(text: &str, go_on: &GoOn) -> Result<String> {
    let mut pace = Pace::new(go_on);
    let mut out = String::new();
    let mut gap = false;
    for c in text.chars() {
        pace.did(1)?;
        let (plain, ascii);
        let plain = if c.is_ascii_alphanumeric() {
            ascii = [c.to_ascii_lowercase() as u8];
            std::str::from_utf8(&ascii).unwrap_or_default()
        } else if c.is_ascii() {
            ""
        } else {
            plain = unmarked(c);
            &plain
        };
        if plain.is_empty() {
            // A combining mark belongs to its letter, an apostrophe to its word.
            gap |= !is_mark(c) && !matches!(c, '\'' | '’');
            continue;
        }
        if gap && !out.is_empty() {
            out.push('-');
        }
        gap = false;
        out.push_str(plain);
    }
    Ok(out)
}

/// How alike two texts are, from 0.0 (nothing in common) to 1.0 (the same but for case and spacing):
/// one minus the edit distance over the longer length. Texts beyond 2,000 characters are compared by their beginnings.
///
/// # Errors
/// As [`lines`].
pub fn fuzzy(a: &str, b: &str, go_on: &GoOn) -> Result<f64> {
    const COMPARED: usize = 2_000;
    let (a, b) = (folded(a, COMPARED), folded(b, COMPARED));
    let longer = a.len().max(b.len());
    if longer == 0 {
        return Ok(1.0);
    }
    #[allow(clippy::cast_precision_loss)] // at most 2,000
    let share = distance(&a, &b, go_on)? as f64 / longer as f64;
    Ok(1.0 - share)
}

/// Breaks lines at white space so that none is wider than `width` characters; a longer word is cut.
/// Existing line ends stay, runs of white space inside a line become one space. A width of 0 counts as 1.
///
/// # Errors
/// As [`lines`].
pub fn wrap(text: &str, width: usize, go_on: &GoOn) -> Result<String> {
    let width = width.max(1);
    let mut pace = Pace::new(go_on);
    let mut out = String::with_capacity(text.len());
    for (n, line) in lines_of(text).enumerate() {
        pace.did(1)?;
        if n > 0 {
            out.push('\n');
        }
        // Characters in the line that is being set.
        let mut used = 0;
        for word in line.split_whitespace() {
            pace.did(word.len() + 1)?;
            let mut rest = word;
            let mut left = word.chars().count();
            if used > 0 && used + 1 + left > width {
                out.push('\n');
                used = 0;
            }
            while left > width {
                let cut = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
                pace.did(cut + 1)?;
                out.push_str(&rest[..cut]);
                out.push('\n');
                rest = &rest[cut..];
                left -= width;
            }
            if used > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(rest);
            used += left;
        }
    }
    Ok(out)
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What is left of a Latin letter without its marks, lower case; empty for everything else.
fn unmarked(c: char) -> String {
    let lower: String = c.to_lowercase().filter(|c| !is_mark(*c)).collect();
    if lower.chars().all(|c| c.is_ascii_alphanumeric()) {
        return lower;
    }
    let plain = match lower.chars().next().unwrap_or(' ') {
        'à'..='ã' | 'å' | 'ā' | 'ă' | 'ą' | 'ǎ' | 'ạ' | 'ả' | 'ấ'..='ặ' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ð' | 'ď' | 'đ' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'ẹ'..='ệ' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | 'ǐ' | 'ỉ' | 'ị' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='õ' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ơ' | 'ǒ' | 'ọ'..='ợ' => "o",
        'ö' | 'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'þ' => "th",
        'ù'..='û' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' | 'ǔ' | 'ụ'..='ự' => "u",
        'ü' => "ue",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' | 'ỳ'..='ỹ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    };
    plain.to_owned()
}

fn folded(text: &str, max: usize) -> Vec<char> {
    let mut out: Vec<char> = Vec::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase).take(max));
        if out.len() >= max {
            break;
        }
    }
    out.truncate(max);
    out
}

/// Levenshtein's edit distance.
fn distance(a: &[char], b: &[char], go_on: &GoOn) -> Result<usize> {
    let mut pace = Pace::new(go_on);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        pace.did(b.len())?;
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = if x == y { diagonal } else { diagonal + 1 };
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    Ok(row[b.len()])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::{Error, Kind};
    use std::cell::Cell;

    fn on() -> Result<()> {
        Ok(())
    }

    #[test]
    fn truncating_keeps_whole_characters_and_counts_the_ellipsis() {
        for (text, max, want) in [
            ("", 0, ""),
            ("abc", 0, ""),
            ("abc", 1, "…"),
            ("abc", 2, "a…"),
            ("abc", 3, "abc"),
            ("abc", 99, "abc"),
            ("grün", 3, "gr…"),
            ("日本語", 2, "日…"),
            ("👩‍👩‍👧x", 3, "👩\u{200d}…"),
        ] {
            assert_eq!(truncate(text, max), want, "{text:?} to {max}");
        }
    }

    #[test]
    fn lines_end_in_every_way_lines_end() {
        for (text, want) in [
            ("", vec![]),
            ("a", vec!["a"]),
            ("a\n", vec!["a"]),
            ("a\r\nb\rc\nd", vec!["a", "b", "c", "d"]),
            ("\n\na", vec!["", "", "a"]),
            ("a\n\n", vec!["a", ""]),
            ("\r\r\n", vec!["", ""]),
        ] {
            assert_eq!(lines(text, &on).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn words_keep_what_stands_inside_them() {
        for (text, want) in [
            ("", vec![]),
            ("... !", vec![]),
            ("Hello, world!", vec!["Hello", "world"]),
            ("don't stop-gap 'quoted'", vec!["don't", "stop-gap", "quoted"]),
            ("snake_case — dash", vec!["snake_case", "dash"]),
            ("grün 日本 3.14", vec!["grün", "日本", "3", "14"]),
            ("cafe\u{301}s", vec!["cafe\u{301}s"]),
            ("-a- --", vec!["a"]),
        ] {
            assert_eq!(words(text, &on).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn a_slug_is_lower_case_ascii_with_single_hyphens() {
        for (text, want) in [
            ("", ""),
            ("Hello, World!", "hello-world"),
            ("  --a__b--  ", "a-b"),
            ("Größe & Maß", "groesse-mass"),
            ("Crème brûlée", "creme-brulee"),
            ("cafe\u{301} x", "cafe-x"),
            ("Don't", "dont"),
            ("Łódź", "lodz"),
            ("日本 3", "3"),
            ("Ünïcödé", "uenicoede"),
            ("İstanbul", "istanbul"),
            ("Đặng", "dang"),
            ("日本", ""),
        ] {
            assert_eq!(slug(text, &on).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn likeness_runs_from_nothing_to_the_same() {
        for (a, b, want) in [
            ("", "", 1.0),
            ("a", "", 0.0),
            ("abc", "abc", 1.0),
            ("ABC", " abc ", 1.0),
            ("a  b", "a b", 1.0),
            ("abc", "xyz", 0.0),
            ("kitten", "sitting", 1.0 - 3.0 / 7.0),
            ("grün", "grun", 0.75),
            ("abcd", "ab", 0.5),
        ] {
            let (there, back) = (fuzzy(a, b, &on).unwrap(), fuzzy(b, a, &on).unwrap());
            assert!((there - want).abs() < 1e-9, "{a:?} {b:?}: {there}");
            assert!((there - back).abs() < 1e-9);
        }
        let long = "x".repeat(1_000_000);
        assert!((fuzzy(&long, &long, &on).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_cuts_what_is_too_long() {
        for (text, width, want) in [
            ("", 10, ""),
            ("a b c", 3, "a b\nc"),
            ("a b c", 5, "a b c"),
            ("hello world", 5, "hello\nworld"),
            ("hello world", 4, "hell\no\nworl\nd"),
            ("a  b\n\nc", 10, "a b\n\nc"),
            ("ab cdefgh i", 3, "ab\ncde\nfgh\ni"),
            ("日本語 日本", 3, "日本語\n日本"),
            ("abc", 0, "a\nb\nc"),
            ("aa bb cc", 5, "aa bb\ncc"),
        ] {
            assert_eq!(wrap(text, width, &on).unwrap(), want, "{text:?} at {width}");
        }
    }

    #[test]
    fn long_work_ends_soon_after_it_is_no_longer_wanted() {
        let asked = Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(Error::new(Kind::Cancelled, "enough")) } else { Ok(()) }
        };
        let texts = ["x".repeat(2 << 20), "a ".repeat(1 << 20), "é".repeat(1 << 20), "\n".repeat(1 << 20)];
        for text in &texts {
            let works: [(&str, &dyn Fn() -> Result<()>); 5] = [
                ("slug", &|| slug(text, &twice).map(drop)),
                ("wrap", &|| wrap(text, 1, &twice).map(drop)),
                ("wide", &|| wrap(text, 80, &twice).map(drop)),
                ("words", &|| words(text, &twice).map(drop)),
                ("lines", &|| lines(text, &twice).map(drop)),
            ];
            for (name, work) in works {
                asked.set(0);
                // A text that is one word or one line is a single step for those who look for the next.
                let is_one_step =
                    name == "words" && !text.contains([' ', '\n']) || name == "lines" && !text.contains('\n');
                assert_eq!(work().is_ok(), is_one_step, "{name} of {:.2}", text);
            }
        }
        asked.set(0);
        assert!(fuzzy(&texts[0], &texts[2], &twice).is_err());
    }
}

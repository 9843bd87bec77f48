//! Numbers as text: taking one apart, and rounding it to significant digits. Pure text: it knows no arithmetic and no units.
//! The arithmetic crate's own rounding loses zeros (3.10686 to three digits became 3.2), so it happens here.

/// A number at the beginning of a text, such as `-5/3 miles` or `5.25 feet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number<'a> {
    pub(super) is_negative: bool,
    /// Digits before the point.
    pub(super) whole: &'a str,
    /// Digits behind the point; empty without one.
    pub(super) fraction: &'a str,
    /// Digits below the bar of a fraction.
    pub(super) divisor: Option<&'a str>,
    /// What stands behind the number: a unit, with the space before it.
    pub(super) rest: &'a str,
}

/// Takes apart a text that begins with one decimal number or one fraction; `None` for everything else, such as a complex
/// number or one in another base.
pub(super) fn read(text: &str) -> Option<Number<'_>> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, mut rest) = digits(text);
    let (mut fraction, mut divisor) = ("", None);
    if whole.is_empty() {
        return None;
    }
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = digits(after);
    } else if let Some(after) = rest.strip_prefix('/') {
        let (below, behind) = digits(after);
        (divisor, rest) = (Some(below), behind);
    }
    let is_cut_short = rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '(' | ','));
    let is_sum = rest.contains(" + ") || rest.contains(" - ");
    if is_cut_short || is_sum || divisor.is_some_and(|d| d.trim_matches('0').is_empty()) {
        return None;
    }
    Some(Number { is_negative, whole, fraction, divisor, rest })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A decimal number rounded half up to `most` significant digits, without zeros at its end behind the point.
pub(super) fn round(number: &Number<'_>, most: usize) -> String {
    let mut digits: Vec<u8> = number.whole.bytes().chain(number.fraction.bytes()).collect();
    let mut point = number.whole.len();
    let first = digits.iter().position(|d| *d != b'0').unwrap_or(digits.len());
    let end = first.saturating_add(most);
    if end < digits.len() {
        let mut carry = digits[end] >= b'5';
        digits.truncate(end);
        for digit in digits.iter_mut().rev() {
            if !carry {
                break;
            }
            carry = *digit == b'9';
            *digit = if carry { b'0' } else { *digit + 1 };
        }
        if carry {
            digits.insert(0, b'1');
            point += 1;
        }
        if digits.len() < point {
            digits.resize(point, b'0');
        }
    }
    let whole: String = digits[..point].iter().map(|d| char::from(*d)).collect();
    let fraction: String = digits[point..].iter().map(|d| char::from(*d)).collect();
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if number.is_negative && !(whole == "0" && fraction.is_empty()) { "-" } else { "" };
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{dot}{fraction}{}", number.rest)
}

/// How many digits behind the point make a quotient of these lengths have at least `most` significant digits and one more.
pub(super) fn shift(dividend: &str, divisor: &str, most: usize) -> usize {
    most + 2 + divisor.len().saturating_sub(dividend.len())
}

/// Puts the point back into a whole number that is `shift` digits too large: `(whole, fraction)`.
pub(super) fn unshift(number: &str, shift: usize) -> (String, String) {
    let padded = format!("{}{number}", "0".repeat((shift + 1).saturating_sub(number.len())));
    let (whole, fraction) = padded.split_at(padded.len() - shift);
    (whole.to_owned(), fraction.to_owned())
}

/// The right one of a text rounded to some digits and one rounded to one digit more, by a rounding that loses zeros at the end
/// when it rounds up. `more` is the number of digits of the longer one.
pub(super) fn right<'a>(shorter: &'a str, longer: &'a str, more: usize) -> &'a str {
    let significant =
        |text: &str| text.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit).count();
    let (Some(short), Some(long)) = (read(shorter), read(longer)) else { return shorter };
    let extends = short.whole == long.whole && long.fraction.starts_with(short.fraction);
    let number = &longer[..longer.len() - long.rest.len()];
    if extends || significant(number) < more { shorter } else { longer }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_apart_and_what_is_none_is_left_alone() {
        for (text, want) in [
            ("5000 m", Some((false, "5000", "", None, " m"))),
            ("-5.25 feet", Some((true, "5", "25", None, " feet"))),
            ("78125/25146 miles", Some((false, "78125", "", Some("25146"), " miles"))),
            ("-7/3", Some((true, "7", "", Some("3"), ""))),
            ("96.56064 km / h", Some((false, "96", "56064", None, " km / h"))),
            ("68 °F", Some((false, "68", "", None, " °F"))),
            ("15%", Some((false, "15", "", None, "%"))),
            ("0x10", None),
            ("1 + 2i", None),
            ("1/3 - 2i/3", None),
            ("0.5π", None),
            ("2i", None),
            ("true", None),
            ("", None),
            (".5", None),
            ("1/0", None),
            ("$5", None),
        ] {
            let got = read(text).map(|n| (n.is_negative, n.whole, n.fraction, n.divisor, n.rest));
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn rounding_is_half_up_by_significant_digits() {
        for (text, most, want) in [
            ("3.10686 miles", 3, "3.11 miles"),
            ("3.10686", 2, "3.1"),
            ("3.10686", 1, "3"),
            ("3.10686", 6, "3.10686"),
            ("10.0568", 3, "10.1"),
            ("100.039", 4, "100"),
            ("100.05", 4, "100.1"),
            ("12355.67", 3, "12400"),
            ("12345.67", 5, "12346"),
            ("99.96", 3, "100"),
            ("999", 2, "1000"),
            ("0.00012345", 2, "0.00012"),
            ("0.0009996", 3, "0.001"),
            ("0.5", 34, "0.5"),
            ("-2.5", 1, "-3"),
            ("-0.04", 1, "-0.04"),
            ("0", 3, "0"),
            ("0.000", 3, "0"),
            ("-0", 3, "0"),
            ("1.0000006", 7, "1.000001"),
            ("2.50", 10, "2.5"),
            ("1000000", 2, "1000000"),
            ("1050000", 2, "1100000"),
        ] {
            assert_eq!(round(&read(text).unwrap(), most), want, "{text} to {most}");
        }
    }

    #[test]
    fn the_point_goes_back_where_it_was() {
        assert_eq!(unshift("310685", 5), ("3".to_owned(), "10685".to_owned()));
        assert_eq!(unshift("7", 3), ("0".to_owned(), "007".to_owned()));
        assert_eq!(unshift("0", 2), ("0".to_owned(), "00".to_owned()));
        assert_eq!(shift("1", "3000", 5), 10);
    }

    #[test]
    fn of_two_roundings_the_right_one_is_taken() {
        for (shorter, longer, more, want) in [
            // Both right.
            ("1.414", "1.4142", 5, "1.414"),
            ("1.41", "1.41", 5, "1.41"),
            // 1.4100|7: the shorter one lost its zeros and was raised.
            ("1.42", "1.41007", 6, "1.41007"),
            // 1.41000|7: the longer one did.
            ("1.41", "1.42", 6, "1.41"),
            ("1.57 m", "1.571 m", 4, "1.57 m"),
            ("i", "i", 4, "i"),
        ] {
            assert_eq!(right(shorter, longer, more), want, "{shorter} {longer}");
        }
    }
}

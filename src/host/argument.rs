//! Reading what a script passes: counts, bytes, and the optional trailing map of options, with errors that name the thing.
//! It knows script values, not what they are for.

use crate::base::error::{Error, Result, excerpt};
use crate::script::control;
use crate::script::value::type_name;
use rhai::{Array, Blob, Dynamic, ImmutableString, Map};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The end of bounds that have none.
pub const ANY: usize = usize::MAX >> 1;
/// The longest span that a script may ask for: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// What a value is, in the words of the documentation.
#[must_use]
pub fn word(value: &Dynamic) -> &str {
    if value.is_unit() {
        "()"
    } else if value.is_int() {
        "an integer"
    } else if value.is_float() {
        "a float"
    } else if value.is_bool() {
        "a bool"
    } else if value.is_string() {
        "text"
    } else if value.is_char() {
        "a character"
    } else if value.is_array() {
        "an array"
    } else if value.is_blob() {
        "a blob"
    } else if value.is_map() {
        "a map"
    } else if value.is_fnptr() {
        "a function"
    } else {
        type_name(value)
    }
}

/// A count or a position: not negative.
///
/// # Errors
/// `invalid_arguments` naming the parameter.
pub fn count(value: i64, name: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("`{name}` is {value}, and must not be negative")))
}

/// A number, whether the script wrote `2` or `2.0`.
#[must_use]
pub fn number(value: &Dynamic) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // a count of seconds or a share is far below 2^53
    value.as_float().ok().or_else(|| value.as_int().ok().map(|i| i as f64))
}

/// A span of seconds, integer or float.
///
/// # Errors
/// `invalid_arguments` for anything else, a negative span, or more than a year.
pub fn seconds(value: &Dynamic, name: &str) -> Result<Duration> {
    match number(value) {
        Some(s) if (0.0..=MAX_SECONDS).contains(&s) => Ok(Duration::from_secs_f64(s)),
        Some(s) => Err(Error::invalid(format!("`{name}` is {s}, and must be from 0 to {MAX_SECONDS} seconds"))),
        None => Err(unfit(name, "a number of seconds", value)),
    }
}

/// Hands the bytes of a text (as UTF-8) or of a blob to `work`.
///
/// # Errors
/// `invalid_arguments` for anything else; those of `work`.
pub fn with_bytes<T>(value: &Dynamic, name: &str, work: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return work(text.as_bytes());
    }
    if let Some(blob) = value.read_lock::<Blob>() {
        return work(&blob);
    }
    Err(unfit(name, "text or a blob", value))
}

/// A scalar as it is written into a text: text itself, a character, a number or a bool.
///
/// # Errors
/// `invalid_arguments` for anything else, with the hint to encode it.
pub fn scalar(value: &Dynamic, name: &str) -> Result<ImmutableString> {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Ok(text.clone());
    }
    if value.is_int() || value.is_float() || value.is_bool() || value.is_char() {
        return Ok(value.to_string().into());
    }
    let error = unfit(name, "text, a number or a bool", value);
    Err(if value.is_array() || value.is_map() { error.hint("make it text first: json::encode(value)") } else { error })
}

/// The error for a value of the wrong type.
#[must_use]
pub fn unfit(name: &str, expected: &str, value: &Dynamic) -> Error {
    Error::invalid(format!("`{name}` must be {expected}, not {}", word(value)))
}

/// The optional trailing map of a host function.
#[derive(Default)]
pub struct Options(Map);

impl Options {
    /// The options of a call that gave none.
    #[must_use]
    pub fn none() -> Self {
        Options::default()
    }

    /// Takes the map; every key must be among `known`.
    ///
    /// # Errors
    /// `invalid_arguments` naming the first key that is not, and those that are.
    pub fn read(map: Map, known: &[&str]) -> Result<Self> {
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(Options(map)),
            Some(key) => {
                let shown = excerpt(key, 60);
                Err(Error::invalid(format!("there is no option `{shown}`"))
                    .hint(format!("the options are: {}", known.join(" "))))
            }
        }
    }

    /// What stands under a key; `()` counts as absent.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Dynamic> {
        self.0.get(key).filter(|value| !value.is_unit())
    }

    fn typed<T>(&self, key: &str, expected: &str, read: impl FnOnce(&Dynamic) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| unfit(key, expected, value))
    }

    /// A bool.
    ///
    /// # Errors
    /// `invalid_arguments` for another type; so in all readers.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", |value| value.as_bool().ok())
    }

    /// A text.
    ///
    /// # Errors
    /// As [`Options::flag`].
    pub fn text(&self, key: &str) -> Result<Option<ImmutableString>> {
        self.typed(key, "text", |value| value.read_lock::<ImmutableString>().map(|text| text.clone()))
    }

    /// An integer within `bounds`; an end beyond what memory can hold is none that anybody is told of.
    ///
    /// # Errors
    /// As [`Options::flag`], and outside these bounds.
    pub fn count(&self, key: &str, bounds: RangeInclusive<usize>) -> Result<Option<usize>> {
        let Some(given) = self.typed(key, "an integer", |value| value.as_int().ok())? else { return Ok(None) };
        match usize::try_from(given) {
            Ok(count) if bounds.contains(&count) => Ok(Some(count)),
            _ => {
                let (least, most) = bounds.into_inner();
                let fits = if most >= ANY { format!("at least {least}") } else { format!("from {least} to {most}") };
                Err(Error::invalid(format!("`{key}` is {given}, and must be {fits}")))
            }
        }
    }

    /// A span in seconds, integer or float.
    ///
    /// # Errors
    /// As [`Options::flag`], for a negative span, and above a year.
    pub fn seconds(&self, key: &str) -> Result<Option<Duration>> {
        self.value(key).map(|value| seconds(value, key)).transpose()
    }

    /// How long something may take: as [`Options::seconds`], and more than nothing.
    ///
    /// # Errors
    /// As [`Options::seconds`], and for less than a millisecond.
    pub fn limit(&self, key: &str) -> Result<Option<Duration>> {
        match self.seconds(key)? {
            Some(span) if span < Duration::from_millis(1) => {
                Err(Error::invalid(format!("`{key}` is {}, and must be at least 0.001 seconds", span.as_secs_f64())))
            }
            span => Ok(span),
        }
    }
}

/// Pairs for a query, a form or headers: a map of what `read` takes (given its place, for errors) or arrays of it; `()` is
/// left out.
///
/// # Errors
/// `invalid_arguments` naming the key inside, and those of `read`.
pub fn pairs(
    value: &Dynamic,
    name: &str,
    read: &mut dyn FnMut(&Dynamic, &str) -> Result<ImmutableString>,
) -> Result<Vec<(String, String)>> {
    let map = value.read_lock::<Map>().ok_or_else(|| unfit(name, "a map", value))?;
    let mut out = Vec::new();
    let mut add = |key: &str, value: &Dynamic, place: &str| -> Result<()> {
        let value = read(value, place)?;
        control::reserve(key.len() + value.len())?;
        out.push((key.to_owned(), value.to_string()));
        Ok(())
    };
    for (key, value) in map.iter().filter(|(_, value)| !value.is_unit()) {
        let place = format!("{name}.{key}");
        if let Some(items) = value.read_lock::<Array>() {
            items.iter().try_for_each(|item| add(key, item, &place))?;
        } else {
            add(key, value, &place)?;
        }
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    fn map(pairs: Vec<(&str, Dynamic)>) -> Map {
        pairs.into_iter().map(|(key, value)| (key.into(), value)).collect()
    }

    #[test]
    fn an_unknown_option_is_an_error_that_names_the_known_ones() {
        let e = Options::read(map(vec![("timout", 3.into())]), &["timeout", "params"]).map(drop).unwrap_err();
        assert_eq!(e.kind(), Kind::InvalidArguments);
        assert!(e.message().contains("`timout`"), "{e}");
        assert_eq!(e.hint_text(), Some("the options are: timeout params"));
    }

    #[test]
    fn readers_take_what_is_meant_and_refuse_the_rest() {
        let options = Options::read(
            map(vec![
                ("a", 2.into()),
                ("b", 2.5.into()),
                ("c", "x".into()),
                ("d", Dynamic::UNIT),
                ("e", true.into()),
                ("f", (-1_i64).into()),
            ]),
            &["a", "b", "c", "d", "e", "f"],
        )
        .unwrap();
        assert_eq!(options.seconds("a").unwrap(), Some(Duration::from_secs(2)));
        assert_eq!(options.seconds("b").unwrap(), Some(Duration::from_millis(2500)));
        assert_eq!(options.count("a", 0..=2).unwrap(), Some(2));
        assert_eq!(options.text("c").unwrap().unwrap(), "x");
        assert_eq!(options.text("d").unwrap(), None);
        assert_eq!(options.flag("e").unwrap(), Some(true));
        assert_eq!(options.flag("absent").unwrap(), None);
        for wrong in [
            options.count("a", 0..=1).map(drop),
            options.count("a", 3..=9).map(drop),
            options.count("b", 0..=9).map(drop),
            options.seconds("c").map(drop),
            options.seconds("f").map(drop),
            options.flag("a").map(drop),
            options.text("e").map(drop),
        ] {
            assert_eq!(wrong.unwrap_err().kind(), Kind::InvalidArguments);
        }
    }

    #[test]
    fn a_refused_number_tells_the_bounds_that_hold_for_every_number() {
        let given = |value: Dynamic| Options::read(map(vec![("n", value)]), &["n"]).unwrap();
        let rows = [
            (given((-1_i64).into()).count("n", 16..=2048).map(drop), "`n` is -1, and must be from 16 to 2048"),
            (given(0.into()).count("n", 16..=2048).map(drop), "`n` is 0, and must be from 16 to 2048"),
            (given(4096.into()).count("n", 16..=2048).map(drop), "`n` is 4096, and must be from 16 to 2048"),
            (given((-1_i64).into()).count("n", 0..=ANY).map(drop), "`n` is -1, and must be at least 0"),
            (given(0.into()).limit("n").map(drop), "`n` is 0, and must be at least 0.001 seconds"),
            (given(0.000_01.into()).limit("n").map(drop), "`n` is 0.00001, and must be at least 0.001 seconds"),
        ];
        for (refused, told) in rows {
            assert_eq!(refused.unwrap_err().message(), told);
        }
        assert_eq!(given(0.001.into()).limit("n").unwrap(), Some(Duration::from_millis(1)));
    }

    #[test]
    fn pairs_repeat_for_arrays_and_leave_nothing_out_but_unit() {
        let inner = map(vec![
            ("page", 2.into()),
            ("tag", Dynamic::from_array(vec!["a".into(), 1.5.into()])),
            ("none", Dynamic::UNIT),
        ]);
        let got = pairs(&Dynamic::from_map(inner), "params", &mut scalar).unwrap();
        let expected = [("page", "2"), ("tag", "a"), ("tag", "1.5")];
        assert_eq!(got, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let e = pairs(&Dynamic::from_map(map(vec![("x", Dynamic::from_blob(vec![1]))])), "params", &mut scalar)
            .unwrap_err();
        assert_eq!(e.message(), "`params.x` must be text, a number or a bool, not a blob");
    }
}

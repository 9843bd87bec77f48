//! Texts and blobs: natives that make much out of little. (`+` and `+=` can at most double what is there, which the
//! progress hook sees at the next operation.)

use super::super::control;
use super::super::ctx::{OrRaise, Res};
use super::{VALUE, len_of, pure};
use rhai::{Array, Blob, Engine, ImmutableString, Module, NativeCallContext};
use std::any::TypeId;
use std::ops::{Range, RangeInclusive};

pub(super) fn register(engine: &mut Engine) {
    blobs(engine);
    growing(engine);
    pieces(engine);
    parts(engine);
    characters(engine);
}

fn blobs(engine: &mut Engine) {
    engine.register_fn("blob", |call: NativeCallContext, len: i64| -> Res<Blob> {
        control::reserve(len_of(len)).or_raise(&call)?;
        Ok(vec![0; len_of(len)])
    });
    engine.register_fn("blob", |call: NativeCallContext, len: i64, value: i64| -> Res<Blob> {
        control::reserve(len_of(len)).or_raise(&call)?;
        Ok(vec![(value & 0xff) as u8; len_of(len)])
    });
    engine.register_fn("pad", |call: NativeCallContext, blob: &mut Blob, len: i64, value: i64| -> Res<()> {
        if len_of(len) > blob.len() {
            control::reserve(len_of(len)).or_raise(&call)?;
            blob.resize(len_of(len), (value & 0xff) as u8);
        }
        Ok(())
    });
    pure(engine, "to_array", |call: NativeCallContext, blob: &mut Blob| -> Res<Array> {
        control::reserve(blob.len().saturating_mul(VALUE)).or_raise(&call)?;
        Ok(blob.iter().map(|b| i64::from(*b).into()).collect())
    });
    pure(engine, "as_string", |call: NativeCallContext, blob: &mut Blob| -> Res<ImmutableString> {
        // What is no text becomes a character of three bytes.
        let most = if std::str::from_utf8(blob).is_ok() { blob.len() } else { blob.len().saturating_mul(3) };
        control::reserve(most).or_raise(&call)?;
        Ok(String::from_utf8_lossy(blob).into_owned().into())
    });
}

fn growing(engine: &mut Engine) {
    engine.register_fn("pad", |call: NativeCallContext, text: &mut ImmutableString, len: i64, c: char| -> Res<()> {
        pad(&call, text, len, c.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("pad", |call: NativeCallContext, text: &mut ImmutableString, len: i64, with: &str| -> Res<()> {
        pad(&call, text, len, with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: &str, with: &str| {
        replace(&call, text, find, with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: &str, with: char| {
        replace(&call, text, find, with.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: char, with: &str| {
        replace(&call, text, find.encode_utf8(&mut [0; 4]), with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: char, with: char| {
        replace(&call, text, find.encode_utf8(&mut [0; 4]), with.encode_utf8(&mut [0; 4]))
    });
    // One letter can become three.
    engine.register_fn("to_upper", |call: NativeCallContext, text: &str| -> Res<ImmutableString> {
        control::reserve(text.len()).or_raise(&call)?;
        Ok(text.to_uppercase().into())
    });
    engine.register_fn("make_upper", |call: NativeCallContext, text: &mut ImmutableString| -> Res<()> {
        control::reserve(text.len()).or_raise(&call)?;
        *text = text.to_uppercase().into();
        Ok(())
    });
}

fn pad(call: &NativeCallContext, text: &mut ImmutableString, len: i64, with: &str) -> Res<()> {
    let have = text.chars().count();
    let unit = with.chars().count();
    if unit == 0 || len_of(len) <= have {
        return Ok(());
    }
    let room = len_of(len) - have;
    let bytes = room.div_ceil(unit).saturating_mul(with.len()).saturating_add(text.len());
    control::reserve(bytes).or_raise(call)?;
    let mut out = String::with_capacity(bytes);
    out.push_str(text);
    out.extend(with.chars().cycle().take(room));
    *text = out.into();
    Ok(())
}

fn replace(call: &NativeCallContext, text: &mut ImmutableString, find: &str, with: &str) -> Res<()> {
    let times = if find.is_empty() { text.chars().count() + 1 } else { text.matches(find).count() };
    control::reserve(text.len().saturating_add(times.saturating_mul(with.len()))).or_raise(call)?;
    if times > 0 {
        *text = text.replace(find, with).into();
    }
    Ok(())
}

/// What each piece of a text costs: a value, and a text of its own.
const PIECE: usize = VALUE + 72;

fn collect<'a>(
    call: &NativeCallContext,
    text: &str,
    count: usize,
    pieces: impl Iterator<Item = &'a str>,
) -> Res<Array> {
    control::reserve(count.saturating_mul(PIECE).saturating_add(text.len())).or_raise(call)?;
    Ok(pieces.map(Into::into).collect())
}

/// How many pieces a text has.
fn count(text: &str, by: &str) -> usize {
    if by.is_empty() { text.chars().count() + 2 } else { text.matches(by).count() + 1 }
}

fn pieces(engine: &mut Engine) {
    pure(engine, "split", |call: NativeCallContext, text: &mut ImmutableString| -> Res<Array> {
        collect(&call, text, text.split_whitespace().count(), text.split_whitespace())
    });
    pure(engine, "split", |call: NativeCallContext, text: &mut ImmutableString, by: &str| -> Res<Array> {
        collect(&call, text, count(text, by), text.split(by))
    });
    pure(engine, "split", |call: NativeCallContext, text: &mut ImmutableString, by: char| -> Res<Array> {
        collect(&call, text, text.matches(by).count() + 1, text.split(by))
    });
    pure(engine, "split", |call: NativeCallContext, text: &mut ImmutableString, by: &str, most: i64| -> Res<Array> {
        let most = len_of(most).max(1);
        collect(&call, text, count(text, by).min(most), text.splitn(most, by))
    });
    pure(engine, "split", |call: NativeCallContext, text: &mut ImmutableString, by: char, most: i64| -> Res<Array> {
        let most = len_of(most).max(1);
        collect(&call, text, (text.matches(by).count() + 1).min(most), text.splitn(most, by))
    });
    pure(engine, "split_rev", |call: NativeCallContext, text: &mut ImmutableString, by: &str| -> Res<Array> {
        collect(&call, text, count(text, by), text.rsplit(by))
    });
    pure(engine, "split_rev", |call: NativeCallContext, text: &mut ImmutableString, by: char| -> Res<Array> {
        collect(&call, text, text.matches(by).count() + 1, text.rsplit(by))
    });
    pure(
        engine,
        "split_rev",
        |call: NativeCallContext, text: &mut ImmutableString, by: &str, most: i64| -> Res<Array> {
            let most = len_of(most).max(1);
            collect(&call, text, count(text, by).min(most), text.rsplitn(most, by))
        },
    );
    pure(
        engine,
        "split_rev",
        |call: NativeCallContext, text: &mut ImmutableString, by: char, most: i64| -> Res<Array> {
            let most = len_of(most).max(1);
            collect(&call, text, (text.matches(by).count() + 1).min(most), text.rsplitn(most, by))
        },
    );
    pure(engine, "to_chars", |call: NativeCallContext, text: &mut ImmutableString| -> Res<Array> {
        control::reserve(text.chars().count().saturating_mul(VALUE)).or_raise(&call)?;
        Ok(text.chars().map(Into::into).collect())
    });
}

/// The part of a text from character `start`, counted from the end where negative, `len` characters long. The
/// language's own spread every character over four bytes first.
fn part(text: &str, start: i64, len: i64) -> &str {
    let skip = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => text.chars().count().saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let at = |text: &str, n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    let rest = &text[at(text, skip)..];
    &rest[..at(rest, len_of(len))]
}

fn span(range: &Range<i64>) -> (i64, i64) {
    let from = range.start.max(0);
    (from, range.end.max(from) - from)
}

fn span_inclusive(range: &RangeInclusive<i64>) -> (i64, i64) {
    let from = (*range.start()).max(0);
    (from, range.end().saturating_add(1).max(from) - from)
}

fn parts(engine: &mut Engine) {
    engine.register_fn("sub_string", |text: &str, start: i64, len: i64| ImmutableString::from(part(text, start, len)));
    engine.register_fn("sub_string", |text: &str, start: i64| ImmutableString::from(part(text, start, i64::MAX)));
    engine.register_fn("sub_string", |text: &str, range: Range<i64>| {
        let (start, len) = span(&range);
        ImmutableString::from(part(text, start, len))
    });
    engine.register_fn("sub_string", |text: &str, range: RangeInclusive<i64>| {
        let (start, len) = span_inclusive(&range);
        ImmutableString::from(part(text, start, len))
    });
    engine
        .register_fn("crop", |text: &mut ImmutableString, start: i64, len: i64| *text = part(text, start, len).into());
    engine.register_fn("crop", |text: &mut ImmutableString, start: i64| *text = part(text, start, i64::MAX).into());
    engine.register_fn("crop", |text: &mut ImmutableString, range: Range<i64>| {
        let (start, len) = span(&range);
        *text = part(text, start, len).into();
    });
    engine.register_fn("crop", |text: &mut ImmutableString, range: RangeInclusive<i64>| {
        let (start, len) = span_inclusive(&range);
        *text = part(text, start, len).into();
    });
    engine.register_fn("index_of", |text: &str, find: &str, start: i64| index_of(text, start, |rest| rest.find(find)));
    engine.register_fn("index_of", |text: &str, find: char, start: i64| index_of(text, start, |rest| rest.find(find)));
}

/// The character at which something is found from `start` on, or -1.
fn index_of(text: &str, start: i64, find: impl Fn(&str) -> Option<usize>) -> i64 {
    let rest = part(text, start, i64::MAX);
    if rest.is_empty() {
        return -1;
    }
    let before = text.len() - rest.len();
    find(rest).map_or(-1, |at| i64::try_from(text[..before + at].chars().count()).unwrap_or(-1))
}

/// The characters of a text, one after the other. The language's own makes a list of them first.
#[derive(Clone)]
struct Characters {
    text: ImmutableString,
    at: usize,
    end: usize,
}

impl Characters {
    fn of(text: &ImmutableString, start: i64, len: i64) -> Self {
        let part = part(text, start, len);
        // A part is a slice of its text.
        let at = part.as_ptr() as usize - text.as_ptr() as usize;
        Characters { text: text.clone(), at, end: at + part.len() }
    }
}

impl Iterator for Characters {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let c = self.text[self.at..self.end].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }
}

fn characters(engine: &mut Engine) {
    engine.register_iterator::<Characters>();
    engine.register_fn("chars", |text: ImmutableString| Characters::of(&text, 0, i64::MAX));
    engine.register_get("chars", |text: &mut ImmutableString| Characters::of(text, 0, i64::MAX));
    engine.register_fn("chars", |text: ImmutableString, start: i64| Characters::of(&text, start, i64::MAX));
    engine.register_fn("chars", |text: ImmutableString, start: i64, len: i64| Characters::of(&text, start, len));
    engine.register_fn("chars", |text: ImmutableString, range: Range<i64>| {
        let (start, len) = span(&range);
        Characters::of(&text, start, len)
    });
    engine.register_fn("chars", |text: ImmutableString, range: RangeInclusive<i64>| {
        let (start, len) = span_inclusive(&range);
        Characters::of(&text, start, len)
    });
    // `for c in text`.
    let mut texts = Module::new();
    texts.set_iter(TypeId::of::<ImmutableString>(), |value| {
        let text = value.into_immutable_string().unwrap_or_default();
        Box::new(Characters::of(&text, 0, i64::MAX).map(Into::into))
    });
    engine.register_global_module(texts.into());
}

#[cfg(test)]
mod tests {
    use super::{index_of, part};

    #[test]
    fn a_part_counts_characters_from_either_end() {
        let table = [
            ("héllo", 0, 2, "hé"),
            ("héllo", 1, 1, "é"),
            ("héllo", 2, 99, "llo"),
            ("héllo", 5, 1, ""),
            ("héllo", 99, 1, ""),
            ("héllo", -2, 99, "lo"),
            ("héllo", -99, 2, "hé"),
            ("héllo", 1, 0, ""),
            ("héllo", 1, -1, ""),
            ("", 0, 1, ""),
            ("abc", i64::MIN, i64::MAX, "abc"),
            ("abc", i64::MAX, i64::MAX, ""),
        ];
        for (text, start, len, wanted) in table {
            assert_eq!(part(text, start, len), wanted, "{text} {start} {len}");
        }
        assert_eq!(index_of("hé hé", 1, |t| t.find('h')), 3);
        assert_eq!(index_of("hé hé", -2, |t| t.find('é')), 4);
        assert_eq!(index_of("hé", 9, |t| t.find('h')), -1);
    }
}

//! Points in time as RFC 3339 text, with zones and calendars right: what `time::` does, over `jiff`.
//! Everything takes and gives text, so that a script may store and compare it; nothing is cached.

use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::fmt::temporal::{DateTimeParser, Pieces};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit, ZonedDateTime};

/// The difference between two points in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Seconds from the first to the second; negative where the second is earlier.
    pub seconds: f64,
    /// The same in words, such as `2h 5m`; `0s` for none.
    pub text: String,
}

/// The machine's zone by its name, or `UTC`.
#[must_use]
pub fn local_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

/// A moment in milliseconds since 1970 as RFC 3339 text in UTC; `None` for one that no calendar reaches.
#[must_use]
pub fn from_unix_ms(unix_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(unix_ms).ok().and_then(|at| show(&at.to_zoned_datetime(TimeZone::UTC)).ok())
}

/// A moment in nanoseconds since 1970 as HTTP writes dates, to the second; `None` for one that it cannot write.
#[must_use]
pub fn http_date(unix_ns: u128) -> Option<String> {
    let at = Timestamp::from_second(i64::try_from(unix_ns / 1_000_000_000).ok()?).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()
}

/// The present moment, in `zone` or in UTC.
///
/// # Errors
/// `not_found` for a zone that does not exist.
pub fn now(clock: &Clock, zone: Option<&str>) -> Result<String> {
    let at =
        Timestamp::from_millisecond(clock.unix_ms()).map_err(|e| Error::internal(format!("the clock is off: {e}")))?;
    show(&at.to_zoned_datetime(zone_of(zone)?))
}

/// Reads a point in time and gives it as RFC 3339 text: RFC 3339, RFC 9557 (with `[Zone]`), `2026-11-30`,
/// `2026-11-30 14:00`, RFC 2822, seconds since 1970. A text without an offset is read in `zone`, or in UTC; with `zone`
/// the answer is in that zone.
///
/// # Errors
/// `invalid_arguments` for a text that is none of these, `not_found` for a zone that does not exist.
pub fn parse(text: &str, zone: Option<&str>) -> Result<String> {
    show(&read(text, zone)?)
}

/// Formats a point in time by a `strftime` pattern, such as `%A %d %B %Y, %H:%M`.
///
/// # Errors
/// `invalid_arguments` for a text that is no time or a pattern that is none.
pub fn format(text: &str, pattern: &str) -> Result<String> {
    let at = read(text, None)?;
    jiff::fmt::strtime::format(pattern, &at).map_err(|_| {
        Error::invalid(format!("`{}` is no pattern", clip(pattern))).hint("for example \"%Y-%m-%d %H:%M\"")
    })
}

/// Adds a span: `1h 30m`, `2 days`, `-3 weeks`, `P1DT2H`. Days and longer follow the calendar of the text's zone, where it
/// names one in `[..]`.
///
/// # Errors
/// `invalid_arguments` for a text that is no time, a span that is none, or a result outside the years 0 to 9999.
pub fn add(text: &str, span: &str) -> Result<String> {
    let at = read(text, None)?;
    let by: Span = span.trim().parse().map_err(|_| {
        Error::invalid(format!("`{}` is no span of time", clip(span)))
            .hint("for example \"1h 30m\", \"2 days\" or \"P1D\"")
    })?;
    show(&at.checked_add(by).map_err(|_| beyond(&format!("{} and {}", clip(text), clip(span))))?)
}

/// From `a` to `b`.
///
/// # Errors
/// `invalid_arguments` for a text that is no time.
pub fn diff(a: &str, b: &str) -> Result<Diff> {
    let (from, to) = (read(a, None)?.timestamp(), read(b, None)?.timestamp());
    let span = from.until((Unit::Hour, to)).map_err(|_| Error::invalid("the difference is too large to be told"))?;
    let seconds = (to.as_nanosecond() - from.as_nanosecond()) as f64 / 1e9;
    let text = if span.is_zero() { "0s".to_owned() } else { format!("{span:#}") };
    Ok(Diff { seconds, text })
}

/// The same moment in another zone.
///
/// # Errors
/// As [`parse`].
pub fn convert(text: &str, zone: &str) -> Result<String> {
    show(&read(text, None)?.with_time_zone(zone_of(Some(zone))?))
}

/// Names of all zones, sorted.
#[must_use]
pub fn zones() -> Vec<String> {
    let mut names: Vec<String> = jiff::tz::db().available().map(|n| n.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

fn zone_of(name: Option<&str>) -> Result<TimeZone> {
    let Some(name) = name.map(str::trim).filter(|n| !n.is_empty()) else { return Ok(TimeZone::UTC) };
    if name.eq_ignore_ascii_case("utc") || name == "Z" {
        return Ok(TimeZone::UTC);
    }
    if name.eq_ignore_ascii_case("local") {
        return Ok(TimeZone::system());
    }
    // Nothing but what stands in names and offsets reaches the database, which may look into folders.
    let plain = name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'-' | b'/' | b':'));
    let found = match plain {
        true if name.starts_with(['+', '-']) => DateTimeParser::new().parse_time_zone(name).ok(),
        true => TimeZone::get(name).ok(),
        false => None,
    };
    found.ok_or_else(|| {
        let wanted = name.to_lowercase().replace(' ', "_");
        let close: Vec<String> =
            zones().into_iter().filter(|z| wanted.len() >= 3 && z.to_lowercase().contains(&wanted)).take(3).collect();
        let error = Error::not_found(format!("there is no time zone `{}`", clip(name)));
        if close.is_empty() {
            error.hint("use an IANA name such as Europe/Prague; time::zones() lists them")
        } else {
            error.hint(format!("did you mean {}", close.join(", ")))
        }
    })
}

fn read(text: &str, zone: Option<&str>) -> Result<ZonedDateTime> {
    let text = text.trim();
    let own = zone_of(zone)?;
    let wanted = zone.map(|_| own.clone());
    let at = read_as_written(text, own).ok_or_else(|| {
        // Well written, so what is wrong is not the form: offsets need room at the end of the last year.
        let is_seconds = text.parse::<i64>().is_ok() && text.trim_start_matches(['-', '+']).len() != 8;
        if is_seconds || Pieces::parse(text).is_ok_and(|written| written.date().year() == 9999) {
            return beyond(&clip(text));
        }
        Error::invalid(format!("`{}` is no point in time", clip(text))).hint("for example 2026-11-30T14:00:00+01:00")
    })?;
    Ok(match wanted {
        Some(zone) => at.with_time_zone(zone),
        None => at,
    })
}

/// A moment outside what can be reckoned with.
fn beyond(what: &str) -> Error {
    Error::invalid(format!("`{what}` is beyond the times that can be told")).hint(
        "they run from 0000-01-01T00:00:00Z to 9999-12-30T22:00:00Z, so that every time zone can show each of them",
    )
}

fn read_as_written(text: &str, zone: TimeZone) -> Option<ZonedDateTime> {
    if let Ok(seconds) = text.parse::<i64>()
        && text.trim_start_matches(['-', '+']).len() != 8
    {
        return Timestamp::from_second(seconds).ok().map(|t| t.to_zoned_datetime(zone));
    }
    if let Some(at) = fraction_of_seconds(text) {
        return Some(at.to_zoned_datetime(zone));
    }
    if text.contains('[') {
        // Nothing else may read it: an offset that its zone never had is an error, not a choice.
        return text.parse::<ZonedDateTime>().ok();
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        // The offset as it was written, so that the text comes back as it went in.
        let offset = Pieces::parse(text).ok().and_then(|p| p.to_numeric_offset());
        return Some(at.to_zoned_datetime(offset.map_or(TimeZone::UTC, TimeZone::fixed)));
    }
    if let Ok(at) = jiff::fmt::rfc2822::parse(text) {
        return Some(at);
    }
    let civil = text
        .parse::<DateTime>()
        .or_else(|_| text.parse::<Date>().map(|d| d.to_datetime(jiff::civil::Time::midnight())))
        .ok()?;
    civil.to_zoned_datetime(zone).ok()
}

/// Seconds since 1970 with a fraction, such as `1796047200.25`.
fn fraction_of_seconds(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.trim_start_matches('-').split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let nanos: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let sign = if text.starts_with('-') { -1 } else { 1 };
    Timestamp::new(whole.parse::<i64>().ok()?.checked_mul(i64::from(sign))?, nanos.parse::<i32>().ok()? * sign).ok()
}

/// RFC 3339, with `Z` for UTC and fractions only where there are any. It has no years before 0.
fn show(at: &ZonedDateTime) -> Result<String> {
    if at.year() < 0 {
        return Err(beyond(&format!("the year {}", at.year())));
    }
    let pattern = if *at.time_zone() == TimeZone::UTC { "%Y-%m-%dT%H:%M:%S%.fZ" } else { "%Y-%m-%dT%H:%M:%S%.f%:z" };
    Ok(at.strftime(pattern).to_string())
}

fn clip(text: &str) -> String {
    let head: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 { format!("{head}…") } else { head }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_the_file_system_reads_as_rfc_3339() {
        assert_eq!(from_unix_ms(0).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(from_unix_ms(1_796_047_200_250).unwrap(), "2026-11-30T14:00:00.25Z");
        assert_eq!(from_unix_ms(i64::MAX), None);
    }

    #[test]
    fn every_accepted_form_reads_as_rfc_3339() {
        let rows = [
            ("2026-11-30T14:00:00Z", None, "2026-11-30T14:00:00Z"),
            ("2026-11-30T14:00:00+01:00", None, "2026-11-30T14:00:00+01:00"),
            ("2026-11-30T14:00:00.250-05:30", None, "2026-11-30T14:00:00.25-05:30"),
            ("2026-11-30T14:00:00+01:00[Europe/Prague]", None, "2026-11-30T14:00:00+01:00"),
            ("2026-11-30", None, "2026-11-30T00:00:00Z"),
            ("2026-11-30", Some("Europe/Prague"), "2026-11-30T00:00:00+01:00"),
            ("2026-07-30 14:00", Some("europe/prague"), "2026-07-30T14:00:00+02:00"),
            ("2026-11-30T14:00:00Z", Some("Asia/Tokyo"), "2026-11-30T23:00:00+09:00"),
            ("Mon, 30 Nov 2026 14:00:00 +0100", None, "2026-11-30T14:00:00+01:00"),
            ("0", None, "1970-01-01T00:00:00Z"),
            ("1796047200", None, "2026-11-30T14:00:00Z"),
            ("-1", None, "1969-12-31T23:59:59Z"),
            ("-1.5", None, "1969-12-31T23:59:58.5Z"),
            ("1796047200.25", Some("Europe/Prague"), "2026-11-30T15:00:00.25+01:00"),
            ("2026-11-30 14:00", Some("+02:00"), "2026-11-30T14:00:00+02:00"),
            ("2026-11-30T14:00:00Z", Some("-0330"), "2026-11-30T10:30:00-03:30"),
            // Skipped and repeated at a change of the clocks.
            ("2026-03-29 02:30", Some("Europe/Prague"), "2026-03-29T03:30:00+02:00"),
            ("2026-10-25 02:30", Some("Europe/Prague"), "2026-10-25T02:30:00+02:00"),
            ("2018-11-04", Some("America/Sao_Paulo"), "2018-11-04T01:00:00-02:00"),
            (" 2026-11-30 ", None, "2026-11-30T00:00:00Z"),
        ];
        for (text, zone, wanted) in rows {
            assert_eq!(parse(text, zone).unwrap(), wanted, "{text} {zone:?}");
        }
        for bad in [
            "",
            "soon",
            "2026-13-01",
            "2026-02-30",
            "25:00",
            "2026-11-30T14:00:00+99:00",
            "99999999999999999999",
            "1.5.2",
            "-",
            "2026-07-01T14:00:00+01:00[Europe/Prague]",
            "2026-07-01T14:00[Europe/Nowhere]",
        ] {
            assert!(parse(bad, None).is_err(), "{bad}");
        }
        for bad in ["Nowhere", "../../etc/passwd", "/etc/passwd", "+99:00", "Europe/Prague\0", &"x".repeat(1000)] {
            assert_eq!(parse("2026-11-30", Some(bad)).unwrap_err().code(), "not_found", "{bad:.20}");
        }
        for edge in
            ["9999-12-30T22:00:00Z", "9999-12-31T23:00:00+25:00", "0000-01-01T00:00:00Z", "9999-12-30T21:59:59.5Z"]
        {
            assert_eq!(parse(edge, None).unwrap(), edge);
        }
        for beyond in [
            "9999-12-31T23:59:59Z",
            "9999-12-31",
            "9999-12-31T00:00:00+01:00",
            "253402300799",
            "-62198755200",
            "9223372036854775807",
        ] {
            let e = parse(beyond, None).unwrap_err();
            assert!(e.message().contains("beyond") && e.hint_text().unwrap().contains("9999-12-30T22:00:00Z"), "{e}");
        }
        for (at, span) in [("9999-12-30T22:00:00Z", "1 day"), ("0000-01-01", "-1s"), ("2026-11-30", "9000 years")] {
            assert!(add(at, span).unwrap_err().message().contains("beyond"), "{at} {span}");
        }
        let e = parse("2026-11-30", Some("Prague")).unwrap_err();
        assert!(e.hint_text().unwrap().contains("Europe/Prague"), "{e}");
    }

    #[test]
    fn days_follow_the_calendar_and_hours_the_clock() {
        let rows = [
            // The night the clocks go forward, 29 March 2026 at 02:00.
            ("2026-03-28T12:00:00+01:00[Europe/Prague]", "1 day", "2026-03-29T12:00:00+02:00"),
            ("2026-03-28T12:00:00+01:00[Europe/Prague]", "24h", "2026-03-29T13:00:00+02:00"),
            ("2026-03-28T12:00:00+01:00", "1 day", "2026-03-29T12:00:00+01:00"),
            // And back, 25 October.
            ("2026-10-24T12:00:00+02:00[Europe/Prague]", "P1D", "2026-10-25T12:00:00+01:00"),
            ("2026-01-31T00:00:00Z", "1 month", "2026-02-28T00:00:00Z"),
            ("2024-02-29T00:00:00Z", "1y", "2025-02-28T00:00:00Z"),
            ("2026-11-30T14:00:00Z", "-2 weeks", "2026-11-16T14:00:00Z"),
            ("2026-11-30T14:00:00Z", "1h 30m", "2026-11-30T15:30:00Z"),
        ];
        for (text, span, wanted) in rows {
            assert_eq!(add(text, span).unwrap(), wanted, "{text} + {span}");
        }
        assert!(add("2026-11-30", "a while").is_err());
        assert!(add("2026-11-30", "9000 years").is_err());
    }

    #[test]
    fn a_difference_is_seconds_and_words() {
        let rows = [
            ("2026-11-30T14:00:00Z", "2026-11-30T16:05:00Z", 7500.0, "2h 5m"),
            ("2026-11-30T15:00:00+01:00", "2026-11-30T14:00:00Z", 0.0, "0s"),
            ("2026-11-30T14:00:01Z", "2026-11-30T14:00:00Z", -1.0, "1s ago"),
            ("2026-03-28T12:00:00+01:00[Europe/Prague]", "2026-03-29T12:00:00+02:00[Europe/Prague]", 82800.0, "23h"),
        ];
        for (a, b, seconds, text) in rows {
            assert_eq!(diff(a, b).unwrap(), Diff { seconds, text: text.to_owned() }, "{a} {b}");
        }
    }

    #[test]
    fn formats_zones_and_a_turned_clock() {
        let clock = Clock::manual(1_796_047_200_000);
        assert_eq!(now(&clock, None).unwrap(), "2026-11-30T14:00:00Z");
        assert_eq!(now(&clock, Some("America/New_York")).unwrap(), "2026-11-30T09:00:00-05:00");
        clock.advance(1500);
        assert_eq!(now(&clock, None).unwrap(), "2026-11-30T14:00:01.5Z");
        assert_eq!(format("2026-11-30T14:00:00Z", "%A %d %B %Y, %H:%M").unwrap(), "Monday 30 November 2026, 14:00");
        assert!(format("2026-11-30T14:00:00Z", "%!").is_err());
        assert_eq!(convert("2026-11-30T14:00:00Z", "Asia/Kolkata").unwrap(), "2026-11-30T19:30:00+05:30");
        assert!(zones().iter().any(|z| z == "Europe/Prague"));
        assert!(!local_zone().is_empty());
    }
}

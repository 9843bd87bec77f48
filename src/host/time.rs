//! `time::`: points in time as text. Reading, formatting and reckoning is `service::time`'s, waiting the call's control's.

use crate::script::module::HostModule;
use crate::service::time::Diff;
use rhai::Map;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "time",
        "Points in time as RFC 3339 text, which can be stored and compared. Zones are IANA names such as `Europe/Prague`, `UTC`, or `local` for the machine's.",
        || rhai::exported_module!(api),
    )
}

fn difference(diff: Diff) -> Map {
    let mut map = Map::new();
    map.insert("seconds".into(), diff.seconds.into());
    map.insert("text".into(), diff.text.into());
    map
}

#[rhai::plugin::export_module]
mod api {
    use super::difference;
    use crate::host::argument;
    use crate::script::control;
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::service::time;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    #[rhai_fn(return_raw)]
    pub fn now(call: NativeCallContext) -> Res<String> {
        let ctx = ctx::any(&call)?;
        time::now(&ctx.services.clock, None).or_raise(&call)
    }

    /// The present moment, in UTC or in a zone.
    ///
    /// Throws `not_found` for a zone that does not exist, with names that come near.
    ///
    /// ```rhai
    /// assert(time::now().ends_with("Z"), "without a zone it is UTC");
    /// assert(time::now("Asia/Tokyo").ends_with("+09:00"), "Tokyo has no summer time");
    /// ```
    #[rhai_fn(return_raw, name = "now")]
    pub fn now_in(call: NativeCallContext, zone: &str) -> Res<String> {
        let ctx = ctx::any(&call)?;
        time::now(&ctx.services.clock, Some(zone)).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn parse(call: NativeCallContext, text: &str) -> Res<String> {
        time::parse(text, None).or_raise(&call)
    }

    /// Reads a point in time and gives it as RFC 3339 text. It reads RFC 3339, RFC 9557 (with `[Zone]`), `2026-11-30`,
    /// `2026-11-30 14:00`, RFC 2822 and seconds since 1970. A text without an offset is read in `zone`, or in UTC; with `zone`
    /// the answer is in that zone.
    ///
    /// Throws `invalid_arguments` for anything else, `not_found` for a zone that does not exist.
    ///
    /// ```rhai
    /// assert_eq(time::parse("2026-11-30 14:00", "Europe/Prague"), "2026-11-30T14:00:00+01:00");
    /// assert_eq(time::parse("2026-11-30T14:00:00Z", "Asia/Tokyo"), "2026-11-30T23:00:00+09:00");
    /// assert_eq(time::parse("0"), "1970-01-01T00:00:00Z");
    /// ```
    #[rhai_fn(return_raw, name = "parse")]
    pub fn parse_in(call: NativeCallContext, text: &str, zone: &str) -> Res<String> {
        time::parse(text, Some(zone)).or_raise(&call)
    }

    /// A point in time by a `strftime` pattern.
    ///
    /// Throws `invalid_arguments` for a text that is no time or a pattern that is none.
    ///
    /// ```rhai
    /// assert_eq(time::format("2026-11-30T14:05:00+01:00", "%A %d %B %Y, %H:%M"), "Monday 30 November 2026, 14:05");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn format(call: NativeCallContext, time: &str, pattern: &str) -> Res<String> {
        // A directive of five characters may pad to 255.
        control::reserve(pattern.len().saturating_mul(51)).or_raise(&call)?;
        time::format(time, pattern).or_raise(&call)
    }

    /// A point in time moved by a span such as `1h 30m`, `2 days`, `-3 weeks` or `P1DT2H`. Days and longer follow the calendar
    /// of the text's zone where it names one in `[..]`.
    ///
    /// Throws `invalid_arguments` for a text that is no time, a span that is none, or a result outside the years 0 to 9999.
    ///
    /// ```rhai
    /// assert_eq(time::add("2026-01-31T12:00:00Z", "1 month"), "2026-02-28T12:00:00Z");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn add(call: NativeCallContext, time: &str, span: &str) -> Res<String> {
        time::add(time, span).or_raise(&call)
    }

    /// From `a` to `b`: a map with `seconds` (a float, negative where `b` is earlier) and `text` (such as `2h 5m`).
    ///
    /// Throws `invalid_arguments` for a text that is no time.
    ///
    /// ```rhai
    /// let wait = time::diff("2026-11-30T14:00:00+01:00", "2026-11-30T15:05:00Z");
    /// assert_eq(wait, #{seconds: 7500.0, text: "2h 5m"});
    /// ```
    #[rhai_fn(return_raw)]
    pub fn diff(call: NativeCallContext, a: &str, b: &str) -> Res<Map> {
        time::diff(a, b).map(difference).or_raise(&call)
    }

    /// The same moment in another zone.
    ///
    /// Throws what `parse` throws.
    ///
    /// ```rhai
    /// assert_eq(time::convert("2026-07-01T12:00:00Z", "Europe/Prague"), "2026-07-01T14:00:00+02:00");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn convert(call: NativeCallContext, time: &str, zone: &str) -> Res<String> {
        time::convert(time, zone).or_raise(&call)
    }

    /// The names of all zones, sorted.
    ///
    /// ```rhai
    /// assert(time::zones().contains("Europe/Prague"), "it is one of some 600");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn zones(call: NativeCallContext) -> Res<Array> {
        control::reserve(600 * 64).or_raise(&call)?;
        Ok(time::zones().into_iter().map(Dynamic::from).collect())
    }

    /// Waits for a number of seconds, integer or float; the call's deadline goes on. In tests the clock moves instead.
    ///
    /// Throws `invalid_arguments` for a negative number, `timeout` or `cancelled` where the call is stopped meanwhile.
    ///
    /// ```rhai
    /// assert_eq(time::sleep(0.01), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sleep(call: NativeCallContext, seconds: Dynamic) -> Res<()> {
        let ctx = ctx::live(&call)?;
        let span = argument::seconds(&seconds, "seconds").or_raise(&call)?;
        let clock = &ctx.services.clock;
        if clock.is_manual() {
            clock.advance(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
            return Ok(());
        }
        ctx.control.sleep(&ctx.services.runtime, span).or_raise(&call)
    }
}

//! `math::`: exact arithmetic and units. The arithmetic is `service::math`'s.

use crate::base::error::Result;
use crate::host::argument;
use crate::script::control::Stop;
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::service::math::{self, Evaluated, Options};
use rhai::{Dynamic, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "math",
        "Exact arithmetic and units: `2^200`, `1/3 + 1/6`, `60 mph to km/h`. Results are text, since they may be longer than any number.",
        || rhai::exported_module!(api),
    )
}

fn described(result: Evaluated) -> Map {
    let mut map = Map::new();
    map.insert("exact".into(), result.exact.map_or(Dynamic::UNIT, Into::into));
    map.insert("decimal".into(), result.decimal.into());
    map
}

fn options(opts: Map) -> Result<Options> {
    let given = argument::Options::read(opts, &["precision", "rational"])?;
    let mut options = Options::default();
    if let Some(digits) = given.count("precision", 1..=100)?.and_then(|n| u8::try_from(n).ok()) {
        options.precision = digits;
    }
    if let Some(rational) = given.flag("rational")? {
        options.rational = rational;
    }
    Ok(options)
}

fn evaluate(ctx: &Ctx, expression: &str, opts: Map) -> Result<Map> {
    finish(ctx, math::evaluate(expression, options(opts)?, &|| ctx.control.stopped() != Stop::No))
}

fn convert(ctx: &Ctx, expression: &str, unit: &str, opts: Map) -> Result<Map> {
    finish(ctx, math::convert(expression, unit, options(opts)?, &|| ctx.control.stopped() != Stop::No))
}

/// A stopped call ends with its own reason.
fn finish(ctx: &Ctx, result: Result<Evaluated>) -> Result<Map> {
    match result {
        Err(_) if ctx.control.stopped() != Stop::No => Err(ctx.control.error()),
        other => other.map(described),
    }
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    #[rhai_fn(return_raw)]
    pub fn evaluate(call: NativeCallContext, expression: &str) -> Res<Map> {
        super::evaluate(&*ctx::live(&call)?, expression, Map::new()).or_raise(&call)
    }

    /// Works out an expression: a map with `decimal` (text, rounded to the asked digits) and `exact` (text, or `()` where the
    /// value is irrational). Units stand behind the number in both.
    /// Options: `precision` (significant digits of `decimal`, 1 to 100, 34 unless given), `rational` (bool: `exact` is a
    /// fraction even where a decimal number is exact).
    ///
    /// Throws `invalid_arguments` for what is no expression or has no value, `too_large` for more than 2,000 bytes of it,
    /// `timeout` after 5 s, `rate_limited` while too many are at work.
    ///
    /// ```rhai
    /// assert_eq(math::evaluate("1/3 + 1/6"), #{exact: "0.5", decimal: "0.5"});
    /// assert_eq(math::evaluate("2^100").exact, "1267650600228229401496703205376");
    /// assert_eq(math::evaluate("1/3", #{precision: 5}), #{exact: "1/3", decimal: "0.33333"});
    /// ```
    #[rhai_fn(return_raw, name = "evaluate")]
    pub fn evaluate_with(call: NativeCallContext, expression: &str, opts: Map) -> Res<Map> {
        super::evaluate(&*ctx::live(&call)?, expression, opts).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn convert(call: NativeCallContext, expression: &str, unit: &str) -> Res<Map> {
        super::convert(&*ctx::live(&call)?, expression, unit, Map::new()).or_raise(&call)
    }

    /// An expression in another unit, with the options and in the form of `evaluate`.
    ///
    /// Throws as `evaluate` does, and `invalid_arguments` where the units measure different things.
    ///
    /// ```rhai
    /// assert_eq(math::convert("5 km", "m").exact, "5000 m");
    /// assert_eq(math::convert("5 km", "miles", #{precision: 3}).decimal, "3.11 miles");
    /// ```
    #[rhai_fn(return_raw, name = "convert")]
    pub fn convert_with(call: NativeCallContext, expression: &str, unit: &str, opts: Map) -> Res<Map> {
        super::convert(&*ctx::live(&call)?, expression, unit, opts).or_raise(&call)
    }
}

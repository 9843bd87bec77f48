//! `log::`: lines into the plugin's journal. Where they go is the call's sink's affair; no content is logged here.

use crate::base::error::Result;
use crate::host::json;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::service::text;
use rhai::{Dynamic, Map, NativeCallContext};

/// Characters of one line; the rest is cut.
const LONGEST: usize = 16_000;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "log",
        "Lines for the plugin's journal. The process log gets plugin, level and length only, never the text.",
        || rhai::exported_module!(api),
    )
}

/// One line: the text, and the fields as JSON behind it.
fn line(ctx: &Ctx, text: &str, fields: Option<Map>) -> Result<String> {
    let whole = match fields {
        Some(map) => format!("{text} {}", json::write(&Dynamic::from_map(map), json::Layout::Compact)?),
        None => text.to_owned(),
    };
    // Before it is cut: half of a credential's value would not be found.
    Ok(text::truncate(&ctx.redact(&whole), LONGEST))
}

fn write(call: &NativeCallContext, level: &str, text: &str, fields: Option<Map>) -> Res<()> {
    let ctx = ctx::any(call)?;
    ctx.log(level, &line(&ctx, text, fields).or_raise(call)?);
    Ok(())
}

#[rhai::plugin::export_module]
mod api {
    use super::write;
    use crate::script::ctx::Res;
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    #[rhai_fn(return_raw)]
    pub fn trace(call: NativeCallContext, text: &str) -> Res<()> {
        write(&call, "trace", text, None)
    }

    /// A line that only helps while something is being looked for. The optional map is appended as JSON.
    /// A line is cut after 16,000 characters; so in all functions here.
    ///
    /// Throws `invalid_arguments` for a map that JSON cannot hold; so in all functions here.
    ///
    /// ```rhai
    /// log::trace("asking the forecast", #{city: "Oslo"});
    /// assert_eq(log::trace("done"), ());
    /// ```
    #[rhai_fn(return_raw, name = "trace")]
    pub fn trace_with(call: NativeCallContext, text: &str, fields: Map) -> Res<()> {
        write(&call, "trace", text, Some(fields))
    }

    #[rhai_fn(return_raw)]
    pub fn info(call: NativeCallContext, text: &str) -> Res<()> {
        write(&call, "info", text, None)
    }

    /// A line about something that went as it should.
    ///
    /// ```rhai
    /// assert_eq(log::info("imported", #{rows: 12}), ());
    /// ```
    #[rhai_fn(return_raw, name = "info")]
    pub fn info_with(call: NativeCallContext, text: &str, fields: Map) -> Res<()> {
        write(&call, "info", text, Some(fields))
    }

    #[rhai_fn(return_raw)]
    pub fn warn(call: NativeCallContext, text: &str) -> Res<()> {
        write(&call, "warn", text, None)
    }

    /// A line about something that should be looked at.
    ///
    /// ```rhai
    /// assert_eq(log::warn("two rows had no date"), ());
    /// ```
    #[rhai_fn(return_raw, name = "warn")]
    pub fn warn_with(call: NativeCallContext, text: &str, fields: Map) -> Res<()> {
        write(&call, "warn", text, Some(fields))
    }

    #[rhai_fn(return_raw)]
    pub fn error(call: NativeCallContext, text: &str) -> Res<()> {
        write(&call, "error", text, None)
    }

    /// A line about something that failed. The call goes on: to end it, `throw`.
    ///
    /// ```rhai
    /// assert_eq(log::error("the station did not answer", #{tries: 3}), ());
    /// ```
    #[rhai_fn(return_raw, name = "error")]
    pub fn error_with(call: NativeCallContext, text: &str, fields: Map) -> Res<()> {
        write(&call, "error", text, Some(fields))
    }
}

//! `progress::`: what a running call says about itself. Who listens is the call's sink's affair.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new("progress", "What a call that takes a while says about itself, to whoever waits for it.", || {
        rhai::exported_module!(api)
    })
}

#[rhai::plugin::export_module]
mod api {
    use crate::host::argument;
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::service::text;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// Shows one line of status, at most 500 characters of it.
    ///
    /// ```rhai
    /// assert_eq(progress::status("reading page 3"), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn status(call: NativeCallContext, text: &str) -> Res<()> {
        let ctx = ctx::live(&call)?;
        // Before it is cut: half of a credential's value would not be found.
        ctx.status(&text::truncate(&ctx.redact(text), 500));
        Ok(())
    }

    /// Shows that `done` of `total` steps are done. A total of 0 means that it is not known.
    ///
    /// Throws `invalid_arguments` for negative numbers.
    ///
    /// ```rhai
    /// for n in 1..4 { progress::step(n, 3); }
    /// assert_eq(progress::step(1, 0), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn step(call: NativeCallContext, done: i64, total: i64) -> Res<()> {
        let ctx = ctx::live(&call)?;
        argument::count(done, "done").or_raise(&call)?;
        argument::count(total, "total").or_raise(&call)?;
        ctx.step(done, total);
        Ok(())
    }
}

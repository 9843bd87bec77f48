//! `uuid::`: identifiers. The making is `service::digest`'s.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new("uuid", "Identifiers that nobody else has.", || rhai::exported_module!(api))
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, Res};
    use crate::service::digest;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// A random UUID as text of 36 characters.
    ///
    /// ```rhai
    /// let id = uuid::v4();
    /// assert_eq(id.len(), 36);
    /// assert(id != uuid::v4(), "no two are the same");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn v4(call: NativeCallContext) -> Res<String> {
        ctx::live(&call)?;
        Ok(digest::uuid_v4())
    }

    /// A UUID whose text sorts by the millisecond of its making, then at random: a good key for rows in order of time.
    ///
    /// ```rhai
    /// assert_eq(uuid::v7().len(), 36);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn v7(call: NativeCallContext) -> Res<String> {
        let ctx = ctx::live(&call)?;
        Ok(digest::uuid_v7(&ctx.services.clock))
    }
}

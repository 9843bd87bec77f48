//! `credentials::`, and the fifth parameter of `execute`, which has its functions as methods.
//! Nothing is stored yet, so every name is unknown.

use crate::base::error::{Error, Result};
use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "credentials",
        "Secrets and accounts that a person stored for plugins. This host keeps none yet, so every name is unknown. The fifth parameter of `execute` has these functions as methods.",
        || rhai::exported_module!(api),
    )
}

fn unknown<T>(what: &str, name: &str) -> Result<T> {
    let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
    Err(Error::not_found(format!("there is no {what} `{shown}`")).hint("this host stores no credentials yet"))
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::unknown;
    use crate::script::ctx::{self, Credentials, OrRaise, Res};
    use rhai::Array;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The secret of that name.
    ///
    /// Throws `not_found`.
    ///
    /// ```rhai
    /// let code = "";
    /// try { credentials::get("weather"); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, name: &str) -> Res<Dynamic> {
        ctx::live(&call)?;
        unknown("credential", name).or_raise(&call)
    }

    /// The names of the accounts of a kind.
    ///
    /// Throws `not_found`.
    ///
    /// ```rhai
    /// let code = "";
    /// try { credentials::accounts("email"); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn accounts(call: NativeCallContext, kind: &str) -> Res<Array> {
        ctx::live(&call)?;
        unknown("account of the kind", kind).or_raise(&call)
    }

    /// The account of a kind that belongs to the value of a scope, as a map; `()` for a closed scope, whose value is `()`.
    ///
    /// Throws `not_found`.
    ///
    /// ```rhai
    /// let code = "";
    /// try { credentials::account("email", "work"); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// assert_eq(credentials::account("email", ()), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn account(call: NativeCallContext, kind: &str, scope: Dynamic) -> Res<Dynamic> {
        ctx::live(&call)?;
        if scope.is_unit() {
            return Ok(scope);
        }
        unknown("account of the kind", kind).or_raise(&call)
    }

    /// As `credentials::get`, on the fifth parameter of `execute`.
    #[rhai_fn(global, return_raw, pure, name = "get")]
    pub fn method_get(call: NativeCallContext, credentials: &mut Credentials, name: &str) -> Res<Dynamic> {
        let _ = credentials;
        get(call, name)
    }

    /// As `credentials::accounts`, on the fifth parameter of `execute`.
    #[rhai_fn(global, return_raw, pure, name = "accounts")]
    pub fn method_accounts(call: NativeCallContext, credentials: &mut Credentials, kind: &str) -> Res<Array> {
        let _ = credentials;
        accounts(call, kind)
    }

    /// As `credentials::account`, on the fifth parameter of `execute`.
    #[rhai_fn(global, return_raw, pure, name = "account")]
    pub fn method_account(
        call: NativeCallContext,
        credentials: &mut Credentials,
        kind: &str,
        scope: Dynamic,
    ) -> Res<Dynamic> {
        let _ = credentials;
        account(call, kind, scope)
    }
}

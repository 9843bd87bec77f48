//! `credentials::`, and the fifth parameter of `execute`, which has its functions as methods.
//! What is stored is the service's; here scripts get it, as values that no text can be made of.

use crate::base::error::Result;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::service::credentials::{Field, account_name, permit};
use crate::service::permissions::Permission;
use crate::service::secret::Secret;
use rhai::{Array, Dynamic, ImmutableString, Map, NativeCallContext};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "credentials",
        "Keys, passwords and accounts that a person stored for plugins with `lapidary credentials set`. The plugin declares each by name, as `#{USE_SECRETS: [\"weather\"]}`, and its owner grants it. A value comes as a `Secret`: it may stand in `auth`, for a header, a value of `params`, or a value in a body of `net::`, and goes only to the hosts that its owner named. It has no text: interpolated, printed or appended it reads `Secret`, and `+`, `to_string`, comparing it or making JSON of it throws. The values of all credentials that the plugin may use are taken out of every answer of `net::`, and of its results, failures, logs and progress. An account is a credential whose name is a kind and a scope, as in `email/work`, and may have several fields. The fifth parameter of `execute` has these functions as methods.",
        || rhai::exported_module!(api),
    )
}

fn get(call: &NativeCallContext, name: &str) -> Res<Secret> {
    let ctx = ctx::live(call)?;
    permit(&ctx.plugin.grants.load(), &ctx.plugin.name, name)
        .and_then(|()| ctx.services.credentials.secret(name))
        .inspect(|secret| ctx.used.add(secret))
        .or_raise(call)
}

fn accounts(call: &NativeCallContext, kind: &str) -> Res<Array> {
    let ctx = ctx::live(call)?;
    let grants = ctx.plugin.grants.load();
    let held = |scope: &String| account_name(kind, scope).is_ok_and(|name| grants.allows_secret(&name));
    grants
        .require(Permission::UseSecrets, &ctx.plugin.name)
        .and_then(|()| ctx.services.credentials.scopes(kind))
        .map(|scopes| scopes.into_iter().filter(held).map(Into::into).collect())
        .or_raise(call)
}

fn account(call: &NativeCallContext, kind: &str, scope: &Dynamic) -> Res<Dynamic> {
    let ctx = ctx::live(call)?;
    // A closed scope has no account, whoever asks.
    if scope.is_unit() {
        return Ok(Dynamic::UNIT);
    }
    fields(&ctx, kind, scope).map(Dynamic::from_map).or_raise(call)
}

fn fields(ctx: &Ctx, kind: &str, scope: &Dynamic) -> Result<Map> {
    let scope = scope.read_lock::<ImmutableString>().ok_or_else(|| super::argument::unfit("scope", "text", scope))?;
    permit(&ctx.plugin.grants.load(), &ctx.plugin.name, &account_name(kind, &scope)?)?;
    let fields = ctx.services.credentials.account(kind, &scope)?;
    Ok(fields
        .into_iter()
        .map(|(name, field)| {
            let value = match field {
                Field::Public(text) => Dynamic::from(text),
                Field::Secret(secret) => {
                    ctx.used.add(&secret);
                    Dynamic::from(secret)
                }
            };
            (name.into(), value)
        })
        .collect())
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use crate::script::ctx::{Credentials, Res};
    use crate::service::secret::Secret;
    use rhai::Array;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The credential of that name, as a `Secret`.
    ///
    /// Throws `permission_denied` where the plugin may not use it, whether or not there is one; `not_found`.
    ///
    /// ```rhai
    /// let key = credentials::get("weather");
    /// assert_eq(`the key is ${key}`, "the key is Secret");
    /// let answer = net::get("http://localhost:8080/echo", #{headers: #{"X-Note": key}});
    /// assert_eq(answer.json.note, "***");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, name: &str) -> Res<Secret> {
        super::get(&call, name)
    }

    /// The names of the accounts of a kind that the plugin may use, sorted: values of scopes, for `credentials::account`.
    ///
    /// Throws `permission_denied` where the plugin may use no credential at all.
    ///
    /// ```rhai
    /// assert_eq(credentials::accounts("email"), ["work"]);
    /// assert_eq(credentials::accounts("calendar"), []);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn accounts(call: NativeCallContext, kind: &str) -> Res<Array> {
        super::accounts(&call, kind)
    }

    /// The account of a kind that belongs to the value of a scope, as a map of its fields; `()` for a closed scope, whose value
    /// is `()`. Fields that the account's owner made public are texts, all others are `Secret`. A credential with a single
    /// value has the field `value`.
    ///
    /// Throws `permission_denied` where the plugin may not use it, whether or not there is one; `not_found`, and never gives
    /// the account of another scope.
    ///
    /// ```rhai
    /// let account = credentials::account("email", "work");
    /// assert_eq(account.label, "Work");
    /// assert_eq(`${account.password}`, "Secret");
    /// assert_eq(credentials::account("email", ()), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn account(call: NativeCallContext, kind: &str, scope: Dynamic) -> Res<Dynamic> {
        super::account(&call, kind, &scope)
    }

    /// As `credentials::get`, on the fifth parameter of `execute`.
    #[rhai_fn(global, return_raw, pure, name = "get")]
    pub fn method_get(call: NativeCallContext, credentials: &mut Credentials, name: &str) -> Res<Secret> {
        let _ = credentials;
        super::get(&call, name)
    }

    /// As `credentials::accounts`, on the fifth parameter of `execute`.
    #[rhai_fn(global, return_raw, pure, name = "accounts")]
    pub fn method_accounts(call: NativeCallContext, credentials: &mut Credentials, kind: &str) -> Res<Array> {
        let _ = credentials;
        super::accounts(&call, kind)
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
        super::account(&call, kind, &scope)
    }
}

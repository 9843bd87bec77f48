//! `cache::`: values in memory for a while. Keeping them is `service::cache`'s.

use crate::base::error::{Error, Kind, Result};
use crate::host::argument;
use crate::host::callback::{self, Fault};
use crate::script::ctx::{Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::script::{alloc, control, value};
use crate::service::cache::Place;
use rhai::{Dynamic, FnPtr, ImmutableString, Map, NativeCallContext};
use std::cell::Cell;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "cache",
        "Values in memory for a while: per plugin, and with the option `scope` per value of a scope. They outlive a reload and a change of settings, not a restart. A value is anything that JSON can hold, at most 8 MiB.",
        || rhai::exported_module!(api),
    )
}

/// The value under `scope`, or `None` without the option. A closed scope must not fall through to what all chats share.
fn scope_of(opts: Map) -> Result<Option<ImmutableString>> {
    let closed = opts.get("scope").is_some_and(Dynamic::is_unit);
    let scope = argument::Options::read(opts, &["scope"])?.text("scope")?;
    if closed {
        return Err(Error::new(Kind::Disabled, "the scope is closed in this chat")
            .hint("check scopes::get(..) for () first; nothing is cached for a closed scope"));
    }
    Ok(scope)
}

fn place<'a>(ctx: &'a Ctx, scope: Option<&'a ImmutableString>, key: &'a str) -> Place<'a> {
    Place { plugin: &ctx.plugin.name, scope: scope.map(|scope| scope.as_str()), key }
}

fn get(call: &NativeCallContext, ctx: &Ctx, key: &str, opts: Map) -> Res<Dynamic> {
    let scope = scope_of(opts).or_raise(call)?;
    let found = alloc::uncharged(|| ctx.services.cache.get(place(ctx, scope.as_ref(), key)));
    found.map_or(Ok(Dynamic::UNIT), |found| value::from_json(&found)).or_raise(call)
}

fn ttl(seconds: &Dynamic) -> Result<f64> {
    argument::number(seconds).ok_or_else(|| argument::unfit("ttl_s", "a number of seconds", seconds))
}

fn put(ctx: &Ctx, key: &str, value: &Dynamic, seconds: &Dynamic, opts: Map) -> Result<()> {
    let scope = scope_of(opts)?;
    let (value, seconds) = (value::to_json(value)?, ttl(seconds)?);
    // The cache has its own limits: what it keeps is its own copy, and no call's.
    alloc::uncharged(|| ctx.services.cache.put(place(ctx, scope.as_ref(), key), value.clone(), seconds))
}

fn get_or(
    call: &NativeCallContext,
    ctx: &Ctx,
    key: &str,
    seconds: &Dynamic,
    compute: &FnPtr,
    opts: Map,
) -> Result<Dynamic, Fault> {
    let scope = scope_of(opts)?;
    // Up to where the call's own work reaches: what the cache does before and behind it is not the call's.
    let own = Cell::new(alloc::live());
    let found =
        ctx.services.cache.get_or(place(ctx, scope.as_ref(), key), ttl(seconds)?, &|| Ok(control::check()?), || {
            alloc::settle(own.get());
            let made = callback::run_to_json(call, compute, ()).map(|value| alloc::uncharged(|| value.clone()));
            own.set(alloc::live());
            made
        });
    alloc::settle(own.get());
    Ok(value::from_json(&*found?)?)
}

fn invalidate(ctx: &Ctx, key: &str, opts: Map) -> Result<()> {
    let scope = scope_of(opts)?;
    alloc::uncharged(|| ctx.services.cache.invalidate(place(ctx, scope.as_ref(), key)));
    Ok(())
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{FnPtr, Map};

    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, key: &str) -> Res<Dynamic> {
        super::get(&call, &*ctx::any(&call)?, key, Map::new())
    }

    /// The value of a key, or `()` where there is none or its time is over.
    ///
    /// In all functions here the option `scope` is text, the value of a scope as `scopes::get` gives it; values under
    /// different scopes never meet. `()` throws `disabled`, since a closed scope has no data.
    ///
    /// ```rhai
    /// cache::put("rate", 11.4, 60);
    /// assert_eq(cache::get("rate"), 11.4);
    /// assert_eq(cache::get("rate", #{scope: "work"}), ());
    /// ```
    #[rhai_fn(return_raw, name = "get")]
    pub fn get_with(call: NativeCallContext, key: &str, opts: Map) -> Res<Dynamic> {
        super::get(&call, &*ctx::any(&call)?, key, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn put(call: NativeCallContext, key: &str, value: Dynamic, ttl_s: Dynamic) -> Res<()> {
        super::put(&*ctx::live(&call)?, key, &value, &ttl_s, Map::new()).or_raise(&call)
    }

    /// Keeps a value for `ttl_s` seconds, integer or float. A plugin keeps at most 10,000 values and 64 MiB; beyond that the
    /// oldest go.
    ///
    /// Throws `invalid_arguments` for a time that is not above 0 and for what JSON cannot hold, `too_large` over 8 MiB.
    ///
    /// ```rhai
    /// cache::put("mail", ["hello"], 0.5, #{scope: "work"});
    /// assert_eq(cache::get("mail", #{scope: "work"}), ["hello"]);
    /// assert_eq(cache::get("mail"), ());
    /// ```
    #[rhai_fn(return_raw, name = "put")]
    pub fn put_with(call: NativeCallContext, key: &str, value: Dynamic, ttl_s: Dynamic, opts: Map) -> Res<()> {
        super::put(&*ctx::live(&call)?, key, &value, &ttl_s, opts).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn get_or(call: NativeCallContext, key: &str, ttl_s: Dynamic, compute: FnPtr) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        super::get_or(&call, &ctx, key, &ttl_s, &compute, Map::new()).map_err(|fault| fault.raise(&call))
    }

    /// The value of a key; where there is none, what `compute` gives, kept for `ttl_s` seconds. When several calls ask at
    /// once, one computes and the others wait for its value. A failure is not kept.
    ///
    /// Throws what `compute` throws and what `put` throws, `conflict` where `compute` asks for the same key.
    ///
    /// ```rhai
    /// let first = cache::get_or("greeting", 60, || "hello");
    /// let second = cache::get_or("greeting", 60, || "never asked");
    /// assert_eq(second, first);
    /// ```
    #[rhai_fn(return_raw, name = "get_or")]
    pub fn get_or_with(call: NativeCallContext, key: &str, ttl_s: Dynamic, compute: FnPtr, opts: Map) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        super::get_or(&call, &ctx, key, &ttl_s, &compute, opts).map_err(|fault| fault.raise(&call))
    }

    #[rhai_fn(return_raw)]
    pub fn invalidate(call: NativeCallContext, key: &str) -> Res<()> {
        super::invalidate(&*ctx::live(&call)?, key, Map::new()).or_raise(&call)
    }

    /// Drops a value. One that is not there is fine.
    ///
    /// ```rhai
    /// cache::put("rate", 11.4, 60);
    /// cache::invalidate("rate");
    /// assert_eq(cache::get("rate"), ());
    /// ```
    #[rhai_fn(return_raw, name = "invalidate")]
    pub fn invalidate_with(call: NativeCallContext, key: &str, opts: Map) -> Res<()> {
        super::invalidate(&*ctx::live(&call)?, key, opts).or_raise(&call)
    }
}

//! `state::`: the plugin's own values on disk. Storing is `service::state`'s.

use crate::base::error::Error;
use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "state",
        "The plugin's own values on disk, shared by all its calls and kept across restarts. A value is anything that JSON can hold, at most 8 MiB; all together at most 64 MiB.",
        || rhai::exported_module!(api),
    )
}

/// A blob has no place in JSON; the way around it is worth a sentence.
fn explained(error: Error, key: &str) -> Error {
    error.context(format!("the state `{key}`"))
}

#[rhai::plugin::export_module]
mod api {
    use super::explained;
    use crate::host::callback::{self, Fault};
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::script::value;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{FnPtr, Map};

    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, key: &str) -> Res<Dynamic> {
        get_or(call, key, Dynamic::UNIT)
    }

    /// The value of a key; `default`, or `()` without one, where there is none. It is a copy: changing it saves nothing.
    ///
    /// ```rhai
    /// assert_eq(state::get("visits", 0), 0);
    /// assert_eq(state::get("visits"), ());
    /// ```
    #[rhai_fn(return_raw, name = "get")]
    pub fn get_or(call: NativeCallContext, key: &str, default: Dynamic) -> Res<Dynamic> {
        let ctx = ctx::any(&call)?;
        match ctx.services.state.get(&ctx.plugin.name, key).or_raise(&call)? {
            Some(found) => value::from_json(&found).or_raise(&call),
            None => Ok(default),
        }
    }

    /// Stores a value; it is on disk when this returns.
    ///
    /// Throws `invalid_arguments` naming the path of what JSON cannot hold (a function, NaN, a blob: use `base64::encode`),
    /// `too_large` or `quota` where it does not fit.
    ///
    /// ```rhai
    /// state::save("home", #{city: "Oslo", since: 2019});
    /// assert_eq(state::get("home").city, "Oslo");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn save(call: NativeCallContext, key: &str, value: Dynamic) -> Res<()> {
        let ctx = ctx::live(&call)?;
        let json = value::to_json(&value).map_err(|e| explained(e, key)).or_raise(&call)?;
        ctx.services.state.save(&ctx.plugin.name, key, &json).or_raise(&call)
    }

    /// Removes a key. One that is not there is fine.
    ///
    /// ```rhai
    /// state::save("draft", "x");
    /// state::delete("draft");
    /// assert_eq(state::get("draft"), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn delete(call: NativeCallContext, key: &str) -> Res<()> {
        let ctx = ctx::live(&call)?;
        ctx.services.state.delete(&ctx.plugin.name, key).or_raise(&call)
    }

    /// Every key with its value, as a map. It is a copy: changing it saves nothing.
    ///
    /// ```rhai
    /// state::save("a", 1);
    /// assert_eq(state::all(), #{a: 1});
    /// ```
    #[rhai_fn(return_raw)]
    pub fn all(call: NativeCallContext) -> Res<Map> {
        let ctx = ctx::any(&call)?;
        let all = ctx.services.state.all(&ctx.plugin.name).or_raise(&call)?;
        value::from_object(&all).or_raise(&call)
    }

    /// Removes every key.
    ///
    /// ```rhai
    /// state::save("a", 1);
    /// state::clear();
    /// assert_eq(state::all(), #{});
    /// ```
    #[rhai_fn(return_raw)]
    pub fn clear(call: NativeCallContext) -> Res<()> {
        let ctx = ctx::live(&call)?;
        ctx.services.state.clear(&ctx.plugin.name).or_raise(&call)
    }

    /// Replaces a value by what `change` makes of it (of `default` where there is none) and gives the new value. Nothing is
    /// lost when several calls do so at once: `change` runs again when another writer was first, so it should only compute.
    ///
    /// Throws `conflict` after 50 tries, what `change` throws, and what `save` throws. Nothing is changed then.
    ///
    /// ```rhai
    /// let visits = state::update("visits", 0, |n| n + 1);
    /// assert_eq(visits, 1);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn update(call: NativeCallContext, key: &str, default: Dynamic, change: FnPtr) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        let default = value::to_json(&default).map_err(|e| explained(e, key)).or_raise(&call)?;
        let changed = ctx.services.state.update(&ctx.plugin.name, key, &default, |old| {
            callback::run_to_json(&call, &change, (value::from_json(&old)?,)).map_err(|fault| match fault {
                Fault::Ours(e) => Fault::Ours(explained(e, key)),
                thrown @ Fault::Thrown(_) => thrown,
            })
        });
        value::from_json(&changed.map_err(|fault| fault.raise(&call))?).or_raise(&call)
    }
}

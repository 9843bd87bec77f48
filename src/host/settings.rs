//! `settings::`: the plugin's own settings, fixed when the call started. Storing them is nobody's business here.

use crate::script::ctx::{Ctx, Phase};
use crate::script::module::HostModule;
use rhai::{Dynamic, Map, NativeCallContext};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "settings",
        "The plugin's own settings: what a person set, else the declared default. Fixed when the call starts.",
        || rhai::exported_module!(api),
    )
}

/// The file's own `SETTINGS`, which the loader has not read yet while the file's top level runs.
fn declared_here(call: &NativeCallContext, ctx: &Ctx) -> Map {
    if ctx.phase != Phase::Load {
        return Map::new();
    }
    let constants = call.global_runtime_state().constants.as_ref();
    constants
        .and_then(|constants| constants.read().ok()?.get("SETTINGS")?.read_lock::<Map>().map(|map| map.clone()))
        .unwrap_or_default()
}

fn get(call: &NativeCallContext, ctx: &Ctx, key: &str) -> Dynamic {
    match ctx.settings.get(key) {
        Some(value) => value.clone(),
        None => declared_here(call, ctx).remove(key).unwrap_or_default(),
    }
}

fn all(call: &NativeCallContext, ctx: &Ctx) -> Map {
    let mut all = declared_here(call, ctx);
    all.extend(ctx.settings.iter().map(|(key, value)| (key.clone(), value.clone())));
    all
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, Res};
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The value of a setting, or `()` for one that does not exist.
    /// While the file loads it sees the file's `SETTINGS` only where that stands above the call.
    ///
    /// ```rhai
    /// let sides = settings::get("sides") ?? 6;
    /// assert_eq(sides, 6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, key: &str) -> Res<Dynamic> {
        let ctx = ctx::any(&call)?;
        Ok(super::get(&call, &ctx, key))
    }

    /// Every setting as a map. Changing the map changes no setting.
    ///
    /// ```rhai
    /// assert_eq(type_of(settings::all()), "map");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn all(call: NativeCallContext) -> Res<Map> {
        let ctx = ctx::any(&call)?;
        Ok(super::all(&call, &ctx))
    }
}

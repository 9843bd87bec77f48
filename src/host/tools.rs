//! `tools::`: the other tools, looked up in the registry and run through the dispatcher. Nothing here decides what may run.

use crate::base::error::{Error, Kind, Result};
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::script::value;
use crate::service::ports::Tools;
use rhai::{Array, Dynamic};
use serde_json::Value;
use std::sync::Arc;

/// The module.
pub fn module() -> HostModule {
    HostModule::new("tools", "The other tools of this host: what there is, and calling one.", || {
        rhai::exported_module!(api)
    })
}

fn registry(ctx: &Ctx) -> Result<&Arc<dyn Tools>> {
    ctx.services.tools.get().ok_or_else(|| Error::internal("the tools are not loaded yet"))
}

fn array(values: &[Value]) -> Result<Array> {
    values.iter().map(value::from_json).collect()
}

fn names(names: Vec<String>) -> Array {
    names.into_iter().map(Dynamic::from).collect()
}

fn run(ctx: &Arc<Ctx>, level: usize, name: &str, arguments: &Dynamic) -> Result<Dynamic> {
    let nested = ctx.nested.clone().ok_or_else(|| {
        Error::new(Kind::Disabled, "tools cannot be called here").hint("call them inside a tool function")
    })?;
    let Value::Object(arguments) = value::to_json(arguments)? else {
        return Err(Error::invalid("the arguments of a tool are a map"));
    };
    value::from_json(&nested.run_nested(ctx, level, name, arguments)?)
}

#[rhai::plugin::export_module]
mod api {
    use super::{array, names, registry};
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::script::value;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    /// Every tool as a map with `name`, `description` and `parameters` (a JSON Schema).
    ///
    /// ```rhai
    /// for tool in tools::list() { assert(tool.name != "", "a tool has a name"); }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn list(call: NativeCallContext) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        array(&registry(&ctx).or_raise(&call)?.list()).or_raise(&call)
    }

    /// Calls a tool and gives its result: text, or the value itself where the tool declares an output schema.
    /// It counts against this call's deadline, operations and memory, and at most 3 tools may call each other in a chain.
    ///
    /// Throws the tool's failure; `not_found` for a name that does not exist, `permission_denied` where this plugin may not
    /// do what the tool needs, `quota` for a longer chain.
    ///
    /// ```rhai
    /// let code = "";
    /// try { tools::run("no_such_tool", #{}); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn run(call: NativeCallContext, name: &str, arguments: Map) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        super::run(&ctx, call.call_level(), name, &Dynamic::from_map(arguments)).or_raise(&call)
    }

    /// What is known about a tool, or `()`: a map with `category`, `writes`, `module`, `plugin` and more.
    ///
    /// ```rhai
    /// assert_eq(tools::meta("no_such_tool"), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn meta(call: NativeCallContext, name: &str) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        let meta = registry(&ctx).or_raise(&call)?.meta(name);
        meta.map_or(Ok(Dynamic::UNIT), |meta| value::from_json(&meta)).or_raise(&call)
    }

    /// The categories: a map from each to the sorted names of its tools.
    ///
    /// ```rhai
    /// assert_eq(type_of(tools::categories()), "map");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn categories(call: NativeCallContext) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        value::from_json(&registry(&ctx).or_raise(&call)?.categories()).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn in_category(call: NativeCallContext, category: &str) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        Ok(names(registry(&ctx).or_raise(&call)?.in_category(category, None)))
    }

    /// Names of the tools of a category, sorted. `writes` keeps those that change something (`true`) or those that do not.
    /// A category that does not exist has no tools.
    ///
    /// ```rhai
    /// assert_eq(tools::in_category("no such category"), []);
    /// assert_eq(tools::in_category("no such category", true), []);
    /// ```
    #[rhai_fn(return_raw, name = "in_category")]
    pub fn in_category_with(call: NativeCallContext, category: &str, writes: bool) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        Ok(names(registry(&ctx).or_raise(&call)?.in_category(category, Some(writes))))
    }

    /// The scope that a tool needs, or `()` for none.
    ///
    /// ```rhai
    /// assert_eq(tools::scope("no_such_tool"), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn scope(call: NativeCallContext, name: &str) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        Ok(registry(&ctx).or_raise(&call)?.scope(name).map_or(Dynamic::UNIT, Into::into))
    }

    /// Asks for a reload of this plugin, which begins at once and serves later calls; this call goes on with what it has.
    /// Within 5 s of the last one nothing happens.
    ///
    /// ```rhai
    /// assert_eq(tools::reload_self(), ());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn reload_self(call: NativeCallContext) -> Res<()> {
        let ctx = ctx::live(&call)?;
        registry(&ctx).or_raise(&call)?.reload(&ctx.plugin.name);
        Ok(())
    }
}

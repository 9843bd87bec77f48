//! `scopes::`: where the call belongs. The values were fixed when the call started.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "scopes",
        "Where this call belongs: its chat, who asked, and the values of the scopes that part data by chat.",
        || rhai::exported_module!(api),
    )
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The value of a scope as text, or `()` where it is closed in this chat. `rag` and `private` always exist; others are
    /// declared by plugins in `plugin.json`. Read and write only data of this value, and never fall back to another.
    ///
    /// Throws `not_found` for a scope that no loaded plugin declares.
    ///
    /// ```rhai
    /// assert_eq(scopes::get("private"), "false");
    /// let code = "";
    /// try { scopes::get("nobody_declared_this"); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, key: &str) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        Ok(ctx.scopes.get(key).or_raise(&call)?.map_or(Dynamic::UNIT, Into::into))
    }

    /// Whether the chat is private.
    ///
    /// ```rhai
    /// assert_eq(scopes::is_private(), false);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn is_private(call: NativeCallContext) -> Res<bool> {
        Ok(ctx::live(&call)?.private)
    }

    /// The chat's name, or `()` for a call that belongs to none. From the command line it is `cli` unless `--chat` names another.
    ///
    /// ```rhai
    /// assert_eq(scopes::chat() ?? "no chat", "no chat");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chat(call: NativeCallContext) -> Res<Dynamic> {
        Ok(ctx::live(&call)?.chat.as_deref().map_or(Dynamic::UNIT, Into::into))
    }

    /// The room's name: the chat's, or `()`.
    ///
    /// ```rhai
    /// assert_eq(scopes::room(), scopes::chat());
    /// ```
    #[rhai_fn(return_raw)]
    pub fn room(call: NativeCallContext) -> Res<Dynamic> {
        Ok(ctx::live(&call)?.chat.as_deref().map_or(Dynamic::UNIT, Into::into))
    }

    /// Who asked, as text: `owner`, the name of a client, or the id of an agent.
    ///
    /// ```rhai
    /// assert(scopes::caller() != "", "somebody asked");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn caller(call: NativeCallContext) -> Res<String> {
        Ok(ctx::live(&call)?.caller.to_string())
    }
}

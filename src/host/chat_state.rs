//! `chat_state::`: the plugin's own values in a chat, which go with it. Storing is `service::chat_state`'s.

use crate::base::error::{Error, Result};
use crate::script::control;
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::script::value;
use crate::service::chat_state::Named;
use rhai::{Array, Dynamic};
use serde_json::Value;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "chat_state",
        "The plugin's own values in a chat: renamed with it, deleted with it, sealed with it; clearing a chat keeps them. A chat goes by its name (`scopes::chat()` is the call's own). A key has one value (`put`, `get`) or a list that grows (`append`, `read_all`). A value is anything that JSON can hold, at most 8 MiB; all of a plugin in a chat 64 MiB and 100,000 values. A chat that does not exist, or is sealed, is empty to those who read and refuses those who write.",
        || rhai::exported_module!(api),
    )
}

/// The chat of a call's function.
fn named<'a>(ctx: &'a Ctx, chat: &'a str) -> Named<'a> {
    Named { plugin: &ctx.plugin.name, chat, home: ctx.chat.as_deref(), private: ctx.private }
}

/// What is read is there as text, as JSON and as the script's.
fn reserve(bytes: usize) -> Result<()> {
    control::reserve(bytes.saturating_mul(3))
}

fn json(key: &str, given: &Dynamic) -> Result<Value> {
    value::to_json(given).map_err(|e| explained(e, key))
}

fn list(key: &str, values: &Array) -> Result<Vec<Value>> {
    let item = |(at, given)| value::to_json(given).map_err(|e| explained(e, key).context(format!("the value [{at}]")));
    values.iter().enumerate().map(item).collect()
}

fn explained(error: Error, key: &str) -> Error {
    error.context(format!("the chat's `{key}`"))
}

fn numbers(numbers: Vec<i64>) -> Array {
    numbers.into_iter().map(Dynamic::from_int).collect()
}

#[rhai::plugin::export_module]
mod api {
    use super::{json, list, named, numbers, reserve};
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::script::value;
    use crate::service::time;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    /// Sets the one value of a key in a chat; it is stored when this returns.
    ///
    /// Throws `not_found` where there is no such chat, `chat_sealed` where it is sealed, `invalid_arguments` naming the path of
    /// what JSON cannot hold, `too_large` or `quota` where it does not fit. Nothing is changed then.
    ///
    /// ```rhai
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     chat_state::put(chat, "save", #{level: 3});
    ///     assert_eq(chat_state::get(chat, "save").level, 3);
    /// }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn put(call: NativeCallContext, chat: &str, key: &str, value: Dynamic) -> Res<()> {
        let ctx = ctx::live(&call)?;
        let json = json(key, &value).or_raise(&call)?;
        ctx.services.chat_state.put(named(&ctx, chat), key, &json).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, chat: &str, key: &str) -> Res<Dynamic> {
        get_or(call, chat, key, Dynamic::UNIT)
    }

    /// The one value of a key in a chat; `default`, or `()` without one, where there is none. It is a copy: changing it saves
    /// nothing.
    ///
    /// ```rhai
    /// assert_eq(chat_state::get("no such chat", "save", 0), 0);
    /// assert_eq(chat_state::get("no such chat", "save"), ());
    /// ```
    #[rhai_fn(return_raw, name = "get")]
    pub fn get_or(call: NativeCallContext, chat: &str, key: &str, default: Dynamic) -> Res<Dynamic> {
        let ctx = ctx::any(&call)?;
        match ctx.services.chat_state.get(named(&ctx, chat), key, &reserve).or_raise(&call)? {
            Some(found) => value::from_json(&found).or_raise(&call),
            None => Ok(default),
        }
    }

    /// Appends a value to a key's list and gives its number: the first is 1.
    ///
    /// Throws what `put` throws.
    ///
    /// ```rhai
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     assert_eq(chat_state::append(chat, "rolls", 4), 1);
    ///     assert_eq(chat_state::append(chat, "rolls", 6), 2);
    ///     assert_eq(chat_state::read_all(chat, "rolls"), [4, 6]);
    /// }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn append(call: NativeCallContext, chat: &str, key: &str, value: Dynamic) -> Res<i64> {
        let ctx = ctx::live(&call)?;
        let json = json(key, &value).or_raise(&call)?;
        ctx.services.chat_state.append(named(&ctx, chat), key, &json).or_raise(&call)
    }

    /// Appends all values to a key's list, or none, and gives their numbers.
    ///
    /// Throws what `put` throws.
    ///
    /// ```rhai
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     assert_eq(chat_state::append_many(chat, "rolls", [4, 6]), [1, 2]);
    ///     assert_eq(chat_state::append_many(chat, "rolls", []), []);
    /// }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn append_many(call: NativeCallContext, chat: &str, key: &str, values: Array) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        let values = list(key, &values).or_raise(&call)?;
        ctx.services.chat_state.append_many(named(&ctx, chat), key, &values).map(numbers).or_raise(&call)
    }

    /// A key's list, in the order in which it was appended; empty where there is none. It is a copy: changing it saves nothing.
    ///
    /// ```rhai
    /// assert_eq(chat_state::read_all("no such chat", "rolls"), []);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn read_all(call: NativeCallContext, chat: &str, key: &str) -> Res<Array> {
        let ctx = ctx::any(&call)?;
        let found = ctx.services.chat_state.read_all(named(&ctx, chat), key, &reserve).or_raise(&call)?;
        found.iter().map(|json| value::from_json(json).or_raise(&call)).collect()
    }

    /// Puts other values in the place of a key's list, all at once, and gives their numbers, which start again at 1. What `put`
    /// set under that key stays.
    ///
    /// Throws what `put` throws. Everything is as it was then.
    ///
    /// ```rhai
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     chat_state::append_many(chat, "rolls", [1, 2, 3]);
    ///     assert_eq(chat_state::replace(chat, "rolls", [3]), [1]);
    ///     assert_eq(chat_state::read_all(chat, "rolls"), [3]);
    /// }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn replace(call: NativeCallContext, chat: &str, key: &str, values: Array) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        let values = list(key, &values).or_raise(&call)?;
        ctx.services.chat_state.replace(named(&ctx, chat), key, &values).map(numbers).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn delete(call: NativeCallContext, chat: &str) -> Res<()> {
        let ctx = ctx::live(&call)?;
        ctx.services.chat_state.delete(named(&ctx, chat), None).or_raise(&call)
    }

    /// Deletes a key of a chat, its value and its list; without a key everything that the plugin keeps in the chat. What is not
    /// there is fine.
    ///
    /// Throws `not_found` where there is no such chat, `chat_sealed` where it is sealed.
    ///
    /// ```rhai
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     chat_state::put(chat, "save", 1);
    ///     chat_state::delete(chat, "save");
    ///     assert_eq(chat_state::keys(chat), []);
    ///     chat_state::delete(chat);
    /// }
    /// ```
    #[rhai_fn(return_raw, name = "delete")]
    pub fn delete_key(call: NativeCallContext, chat: &str, key: &str) -> Res<()> {
        let ctx = ctx::live(&call)?;
        ctx.services.chat_state.delete(named(&ctx, chat), Some(key)).or_raise(&call)
    }

    /// The plugin's keys in a chat, sorted.
    ///
    /// ```rhai
    /// assert_eq(chat_state::keys("no such chat"), []);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn keys(call: NativeCallContext, chat: &str) -> Res<Array> {
        let ctx = ctx::any(&call)?;
        let keys = ctx.services.chat_state.keys(named(&ctx, chat)).or_raise(&call)?;
        Ok(keys.into_iter().map(Into::into).collect())
    }

    /// The one value of a key in every chat that has one, as a map by the names of the chats. Sealed chats are not in it.
    ///
    /// ```rhai
    /// assert_eq(chat_state::get_all_chats("save"), #{});
    /// ```
    #[rhai_fn(return_raw)]
    pub fn get_all_chats(call: NativeCallContext, key: &str) -> Res<Map> {
        let ctx = ctx::any(&call)?;
        let all = ctx.services.chat_state.get_all_chats(&ctx.plugin.name, key, &reserve).or_raise(&call)?;
        value::from_object(&all).or_raise(&call)
    }

    /// What is known of a key without reading it: a map of `rows` (its value and the values of its list) and `updated_at`, when
    /// the newest of them was stored, in UTC; `()` where there is nothing.
    ///
    /// ```rhai
    /// assert_eq(chat_state::meta("no such chat", "rolls"), ());
    /// let chat = scopes::chat();
    /// if chat != () {
    ///     chat_state::append_many(chat, "rolls", [4, 6]);
    ///     assert_eq(chat_state::meta(chat, "rolls").rows, 2);
    /// }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn meta(call: NativeCallContext, chat: &str, key: &str) -> Res<Dynamic> {
        let ctx = ctx::any(&call)?;
        let Some(known) = ctx.services.chat_state.meta(named(&ctx, chat), key).or_raise(&call)? else {
            return Ok(Dynamic::UNIT);
        };
        let mut map = Map::new();
        map.insert("rows".into(), i64::try_from(known.rows).unwrap_or(i64::MAX).into());
        map.insert("updated_at".into(), time::from_unix_ms(known.updated_at).map_or(Dynamic::UNIT, Into::into));
        Ok(Dynamic::from_map(map))
    }
}

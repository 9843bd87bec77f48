//! What stands in place of the language's own functions: those that make much out of little ask the memory budget
//! first, those that walk values know an end, and those that belong elsewhere point there.

mod list;
mod secret;
mod show;
mod text;

pub use show::show;

use super::ctx::{self, OrRaise, Res};
use super::engine::CONSTANTS;
use super::value;
use crate::base::error::{Error, Kind};
use rhai::{
    Array, Dynamic, Engine, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiNativeFunc, Variant,
};

/// How deep natives follow a value into itself.
const DEEPEST: usize = 128;

/// What one value takes in a container.
const VALUE: usize = size_of::<Dynamic>();

/// Registers all of it.
pub(super) fn register(engine: &mut Engine) {
    constants(engine);
    log(engine);
    elsewhere(engine);
    show::register(engine);
    secret::register(engine);
    text::register(engine);
    list::register(engine);
    engine.register_fn("failure", |call: NativeCallContext, map: Map| -> Res<Dynamic> {
        Ok(value::error_to_dynamic(&value::error_from_map(&map).or_raise(&call)?))
    });
}

/// A native that leaves its object as it is, so that it works on constants too.
fn pure<A: 'static, const N: usize, const X: bool, R: Variant + Clone, const F: bool>(
    engine: &mut Engine,
    name: &str,
    function: impl RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
) {
    FuncRegistration::new(name).with_purity(true).register_into_engine(engine, function);
}

/// The hidden native that hands a file's constants to the loader, if they are such that anybody may drop them.
fn constants(engine: &mut Engine) {
    engine.register_fn(CONSTANTS, |call: NativeCallContext| -> Res<()> {
        let ctx = ctx::any(&call)?;
        let Some(constants) = &call.global_runtime_state().constants else { return Ok(()) };
        let Ok(constants) = constants.read() else { return Ok(()) };
        if let Some((name, _)) = constants.iter().find(|(_, v)| value::depth_exceeds(v, value::MAX_DEPTH)) {
            return Err(ctx::raise(&call, &value::too_deep(&format!("`const {name}`"))));
        }
        ctx.imports.keep_constants(constants.iter().map(|(k, v)| (k.to_string(), v.clone())));
        Ok(())
    });
}

/// `print` and `debug` go to the log of whoever runs the script.
fn log(engine: &mut Engine) {
    for (name, level) in [("print", "info"), ("debug", "trace")] {
        // The language has one of its own for each of these types, and an exact type wins over any type.
        log_value::<Dynamic>(engine, name, level);
        log_value::<()>(engine, name, level);
        log_value::<bool>(engine, name, level);
        log_value::<char>(engine, name, level);
        log_value::<f64>(engine, name, level);
        log_value::<ImmutableString>(engine, name, level);
        log_value::<Array>(engine, name, level);
        log_value::<Map>(engine, name, level);
        log_value::<FnPtr>(engine, name, level);
    }
}

fn log_value<T: Variant + Clone>(engine: &mut Engine, name: &str, level: &'static str) {
    engine.register_fn(name, move |call: NativeCallContext, value: T| -> ImmutableString {
        if let Ok(ctx) = ctx::any(&call) {
            ctx.log(level, &show(&Dynamic::from(value)));
        }
        ImmutableString::new()
    });
}

/// What the host has in a module of its own.
fn elsewhere(engine: &mut Engine) {
    fn point(call: &NativeCallContext, instead: &str) -> Res<Dynamic> {
        Err(ctx::raise(
            call,
            &Error::new(Kind::Disabled, format!("`{}` is not here", call.fn_name())).hint(format!("use {instead}")),
        ))
    }
    engine.register_fn("sleep", |call: NativeCallContext, _: i64| point(&call, "time::sleep(seconds)"));
    engine.register_fn("sleep", |call: NativeCallContext, _: f64| point(&call, "time::sleep(seconds)"));
    engine.register_fn("timestamp", |call: NativeCallContext| point(&call, "time::now()"));
    engine.register_fn("parse_json", |call: NativeCallContext, _: &str| point(&call, "json::decode(text)"));
    engine.register_fn("to_json", |call: NativeCallContext, _: Map| point(&call, "json::encode(value)"));
    engine.register_fn("to_json", |call: NativeCallContext, _: Array| point(&call, "json::encode(value)"));
}

/// A length that a script gave.
fn len_of(len: i64) -> usize {
    usize::try_from(len).unwrap_or(0)
}

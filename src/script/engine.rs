//! The one Rhai engine: every limit set, every amplifying native checked, nothing ambient.
//! Built once and shared; who calls travels in the tag, never in the engine.

use super::control::{self, Stop};
use super::ctx::{self, OrRaise, Res};
use super::module::HostModule;
use super::resolver::Resolver;
use crate::base::error::{Error, Kind};
use rhai::packages::{Package, StandardPackage};
use rhai::{
    Array, Blob, Dynamic, Engine, FnPtr, FuncRegistration, ImmutableString, LexError, Map, NativeCallContext, OptimizationLevel, Token, Variant,
};

/// Depth of function calls, shared with nested tool calls.
pub const CALL_DEPTH: usize = 64;
/// Depth of expressions at the top level of a file.
pub const EXPRESSION_DEPTH: usize = 128;
/// Depth of expressions inside functions.
pub const FUNCTION_EXPRESSION_DEPTH: usize = 64;

/// The name of the hidden native that hands a file's constants to the loader.
pub(super) const CONSTANTS: &str = "__constants";

/// Builds the engine with these host modules.
#[must_use]
pub fn build(modules: &[HostModule]) -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_global_module(StandardPackage::new().as_shared_module());
    engine.set_max_call_levels(CALL_DEPTH);
    engine.set_max_expr_depths(EXPRESSION_DEPTH, FUNCTION_EXPRESSION_DEPTH);
    // Operations are counted in the hook, per call and per plugin. Any size limit makes growth quadratic, so the
    // memory budget guards instead.
    engine.set_max_operations(0);
    engine.set_max_string_size(0);
    engine.set_max_array_size(0);
    engine.set_max_map_size(0);
    engine.set_max_modules(1000);
    engine.set_max_functions(20_000);
    engine.set_max_variables(10_000);
    engine.set_strict_variables(false);
    engine.set_fail_on_invalid_map_property(false);
    engine.set_fast_operators(true);
    // Folding constants would run the script's arithmetic inside the compiler, where no budget reaches: forty lines of
    // `const B = A + A;` ended the process.
    engine.set_optimization_level(OptimizationLevel::None);
    engine.disable_symbol("eval");
    engine.set_module_resolver(Resolver);
    engine.on_print(|_| {});
    engine.on_debug(|_, _, _| {});
    #[allow(deprecated)] // These hooks are marked volatile, not deprecated; the version is pinned.
    {
        // Parsing is quadratic in places (names in scope, keys of one map), so the deadline has to reach it too.
        engine.on_parse_token(|token, _, _| match token {
            _ if control::is_stopped() => Token::LexError(LexError::Runtime(String::new()).into()),
            // A whole number beyond 64 bits would become a float without a word.
            Token::FloatConstant(number) if number.1.bytes().all(|b| b.is_ascii_digit()) => {
                Token::LexError(LexError::MalformedNumber(number.1.to_string()).into())
            }
            token => token,
        });
        engine.on_progress(|_| match control::tick() {
            Stop::No => None,
            why => Some(Dynamic::from_int(why as i64)),
        });
        engine.on_var(|name, index, context| {
            if index != 0 {
                return Ok(None);
            }
            // A plain top-level `const` is readable in every function of its file.
            if let Some(constants) = &context.global_runtime_state().constants
                && let Ok(constants) = constants.read()
                && let Some(value) = constants.get(name)
            {
                return Ok((!context.scope().contains(name)).then(|| value.clone()));
            }
            Ok(None)
        });
    }
    super::lint::prepare(&mut engine);
    register_language(&mut engine);
    register_checked(&mut engine);
    for module in modules {
        engine.register_static_module(module.name(), module.build().into());
    }
    engine
}

/// What replaces or points away from the language's own functions, and `failure`.
fn register_language(engine: &mut Engine) {
    engine.register_fn(CONSTANTS, |call: NativeCallContext| {
        if let Ok(ctx) = ctx::any(&call)
            && let Some(constants) = &call.global_runtime_state().constants
            && let Ok(constants) = constants.read()
        {
            ctx.imports.keep_constants(constants.iter().map(|(k, v)| (k.to_string(), v.clone())));
        }
    });
    engine.register_fn("failure", |call: NativeCallContext, map: Map| -> Res<Dynamic> {
        let error = super::value::error_from_map(&map).or_raise(&call)?;
        Ok(super::value::error_to_dynamic(&error))
    });
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
    fn elsewhere(call: &NativeCallContext, instead: &str) -> Res<Dynamic> {
        Err(ctx::raise(
            call,
            &Error::new(Kind::Disabled, format!("`{}` is not here", call.fn_name())).hint(format!("use {instead}")),
        ))
    }
    engine.register_fn("sleep", |call: NativeCallContext, _: i64| elsewhere(&call, "time::sleep(seconds)"));
    engine.register_fn("sleep", |call: NativeCallContext, _: f64| elsewhere(&call, "time::sleep(seconds)"));
    engine.register_fn("timestamp", |call: NativeCallContext| elsewhere(&call, "time::now()"));
    engine.register_fn("parse_json", |call: NativeCallContext, _: &str| elsewhere(&call, "json::decode(text)"));
    engine.register_fn("to_json", |call: NativeCallContext, _: Map| elsewhere(&call, "json::encode(value)"));
    engine.register_fn("to_json", |call: NativeCallContext, _: Array| elsewhere(&call, "json::encode(value)"));
}

/// `print` and `debug` of one type go to the log of whoever runs the script.
fn log_value<T: Variant + Clone>(engine: &mut Engine, name: &str, level: &'static str) {
    engine.register_fn(name, move |call: NativeCallContext, value: T| -> ImmutableString {
        if let Ok(ctx) = ctx::any(&call) {
            let value = Dynamic::from(value);
            // What holds others asks for room first.
            let text = if let Some(items) = value.read_lock::<Array>() {
                super::value::printed_array(&items)
            } else if let Some(map) = value.read_lock::<Map>() {
                super::value::printed_map(&map)
            } else {
                value.to_string().into()
            };
            ctx.sink.log(level, &text);
        }
        ImmutableString::new()
    });
}

fn len_of(len: i64) -> usize {
    usize::try_from(len).unwrap_or(0)
}

const VALUE: usize = size_of::<Dynamic>();

/// The language's natives that make much out of little ask the memory budget first. (`+` and `+=` can at most double
/// what is there, which the hook sees at the next operation.)
fn register_checked(engine: &mut Engine) {
    for name in ["to_string", "to_debug"] {
        // Pure, or a constant could not be printed.
        let pure = || FuncRegistration::new(name).with_purity(true).in_global_namespace();
        pure().register_into_engine(engine, |array: &mut Array| super::value::printed_array(array));
        pure().register_into_engine(engine, |map: &mut Map| super::value::printed_map(map));
    }
    engine.register_fn("blob", |call: NativeCallContext, len: i64| -> Res<Blob> {
        control::reserve(len_of(len)).or_raise(&call)?;
        Ok(vec![0; len_of(len)])
    });
    engine.register_fn("blob", |call: NativeCallContext, len: i64, value: i64| -> Res<Blob> {
        control::reserve(len_of(len)).or_raise(&call)?;
        Ok(vec![(value & 0xff) as u8; len_of(len)])
    });
    engine.register_fn("pad", |call: NativeCallContext, blob: &mut Blob, len: i64, value: i64| -> Res<()> {
        if len_of(len) > blob.len() {
            control::reserve(len_of(len)).or_raise(&call)?;
            blob.resize(len_of(len), (value & 0xff) as u8);
        }
        Ok(())
    });
    engine.register_fn("pad", |call: NativeCallContext, array: &mut Array, len: i64, item: Dynamic| -> Res<()> {
        if len_of(len) > array.len() {
            let each = VALUE + item.read_lock::<ImmutableString>().map_or(0, |s| s.len());
            control::reserve(len_of(len).saturating_mul(each)).or_raise(&call)?;
            array.resize(len_of(len), item);
        }
        Ok(())
    });
    engine.register_fn("pad", |call: NativeCallContext, text: &mut ImmutableString, len: i64, c: char| -> Res<()> {
        pad_text(&call, text, len, c.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("pad", |call: NativeCallContext, text: &mut ImmutableString, len: i64, with: &str| -> Res<()> {
        pad_text(&call, text, len, with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: &str, with: &str| {
        replace(&call, text, find, with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: &str, with: char| {
        replace(&call, text, find, with.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: char, with: &str| {
        replace(&call, text, find.encode_utf8(&mut [0; 4]), with)
    });
    engine.register_fn("replace", |call: NativeCallContext, text: &mut ImmutableString, find: char, with: char| {
        replace(&call, text, find.encode_utf8(&mut [0; 4]), with.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("split", |call: NativeCallContext, text: &mut ImmutableString, by: &str| -> Res<Array> {
        pieces(&call, text, if by.is_empty() { text.chars().count() + 2 } else { text.matches(by).count() + 1 })?;
        Ok(text.split(by).map(Into::into).collect())
    });
    engine.register_fn("split", |call: NativeCallContext, text: &mut ImmutableString, by: char| -> Res<Array> {
        pieces(&call, text, text.matches(by).count() + 1)?;
        Ok(text.split(by).map(Into::into).collect())
    });
    engine.register_fn("split", |call: NativeCallContext, text: &mut ImmutableString| -> Res<Array> {
        pieces(&call, text, text.split_whitespace().count())?;
        Ok(text.split_whitespace().map(Into::into).collect())
    });
    engine.register_fn("to_chars", |call: NativeCallContext, text: &str| -> Res<Array> {
        control::reserve(text.chars().count().saturating_mul(VALUE)).or_raise(&call)?;
        Ok(text.chars().map(Into::into).collect())
    });
    engine.register_fn("to_array", |call: NativeCallContext, blob: &mut Blob| -> Res<Array> {
        control::reserve(blob.len().saturating_mul(VALUE)).or_raise(&call)?;
        Ok(blob.iter().map(|b| i64::from(*b).into()).collect())
    });
}

fn pad_text(call: &NativeCallContext, text: &mut ImmutableString, len: i64, with: &str) -> Res<()> {
    let have = text.chars().count();
    let unit = with.chars().count();
    if unit == 0 || len_of(len) <= have {
        return Ok(());
    }
    let times = (len_of(len) - have).div_ceil(unit);
    control::reserve(times.saturating_mul(with.len()).saturating_add(text.len())).or_raise(call)?;
    let mut out = String::with_capacity(text.len() + times * with.len());
    out.push_str(text);
    let mut room = len_of(len) - have;
    'fill: loop {
        for c in with.chars() {
            if room == 0 {
                break 'fill;
            }
            out.push(c);
            room -= 1;
        }
    }
    *text = out.into();
    Ok(())
}

fn replace(call: &NativeCallContext, text: &mut ImmutableString, find: &str, with: &str) -> Res<()> {
    let times = if find.is_empty() { text.chars().count() + 1 } else { text.matches(find).count() };
    control::reserve(text.len().saturating_add(times.saturating_mul(with.len()))).or_raise(call)?;
    if times > 0 {
        *text = text.replace(find, with).into();
    }
    Ok(())
}

fn pieces(call: &NativeCallContext, text: &str, count: usize) -> Res<()> {
    // A piece is a value plus a text of its own; short ones live inside the value's allocation.
    control::reserve(count.saturating_mul(VALUE + 40).saturating_add(text.len())).or_raise(call)
}

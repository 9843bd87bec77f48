//! A credential's value as a script holds it: it reads `Secret` where a text is made of it in passing, and throws where a
//! script asks for its text.

use super::super::ctx::{self, Res};
use super::pure;
use crate::base::error::{Error, Kind};
use crate::service::secret::Secret;
use rhai::{Array, Dynamic, Engine, ImmutableString, NativeCallContext};

pub(super) fn register(engine: &mut Engine) {
    // Where a text is made in passing and `to_string` throws, the language writes this name.
    engine.register_type_with_name::<Secret>("Secret");
    pure(engine, "to_string", |call: NativeCallContext, _: &mut Secret| -> Res<ImmutableString> { refuse(&call) });
    pure(engine, "to_debug", |_: &mut Secret| ImmutableString::from("Secret"));
    engine.register_fn("+", |call: NativeCallContext, _: ImmutableString, _: Secret| -> Res<Dynamic> { refuse(&call) });
    engine.register_fn("+", |call: NativeCallContext, _: Secret, _: ImmutableString| -> Res<Dynamic> { refuse(&call) });
    engine.register_fn("+", |call: NativeCallContext, _: char, _: Secret| -> Res<Dynamic> { refuse(&call) });
    engine.register_fn("+", |call: NativeCallContext, _: Secret, _: char| -> Res<Dynamic> { refuse(&call) });
    engine.register_fn("+", |call: NativeCallContext, _: Secret, _: Secret| -> Res<Dynamic> { refuse(&call) });
    for name in ["==", "!=", "<", "<=", ">", ">="] {
        engine.register_fn(name, |call: NativeCallContext, _: Secret, _: Secret| -> Res<bool> { refuse(&call) });
        engine
            .register_fn(name, |call: NativeCallContext, _: Secret, _: ImmutableString| -> Res<bool> { refuse(&call) });
        engine
            .register_fn(name, |call: NativeCallContext, _: ImmutableString, _: Secret| -> Res<bool> { refuse(&call) });
    }
    engine.register_fn("contains", |call: NativeCallContext, _: &mut Array, _: Secret| -> Res<bool> { refuse(&call) });
}

fn refuse<T>(call: &NativeCallContext) -> Res<T> {
    let error = Error::new(Kind::PermissionDenied, "a Secret has no text that a script could read")
        .hint("pass it on as it is: net:: takes it in auth, headers, params, json and data");
    Err(ctx::raise(call, &error))
}

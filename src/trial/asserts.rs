//! What test scripts have beyond a tool's own language: assertions, the clock's hands, a setting, a folder. Only their engine has it, so
//! that a tool which leans on it fails in its test as it would in life.

use crate::base::error::{Error, Kind, Result};
use crate::script::control::Stop;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::script::{diagnostic, engine, value};
use crate::service::credentials::Placeholders;
use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most characters of a value in a message.
const SHOWN: usize = 400;

/// Stores a setting of the plugin under test.
pub type SetSetting = Box<dyn Fn(&str, Value) -> Result<()> + Send + Sync>;
/// Makes an empty folder and grants it to the plugin under test, under this name.
pub type GrantFolder = Box<dyn Fn(&str) -> Result<()> + Send + Sync>;
/// Takes a permission of the plugin under test away, as `lapidary revoke` reads it.
pub type Revoke = Box<dyn Fn(&str) -> Result<()> + Send + Sync>;

/// What a test may turn in its world.
pub struct Hands {
    /// A setting.
    pub set_setting: SetSetting,
    /// A folder.
    pub grant_folder: GrantFolder,
    /// A permission.
    pub revoke: Revoke,
    /// What credentials there are.
    pub credentials: Placeholders,
}

/// Ways from the shared engine into the world whose test is running, found by the call's own services.
#[derive(Clone, Default)]
pub struct Doors(Arc<Mutex<HashMap<usize, Arc<Hands>>>>);

/// Keeps a door open while it lives.
pub struct Open {
    doors: Doors,
    key: usize,
}

fn key(ctx: &Ctx) -> usize {
    Arc::as_ptr(&ctx.services).addr()
}

impl Doors {
    /// Opens the way to a world for the scripts of this context.
    pub fn open(&self, ctx: &Ctx, hands: Hands) -> Open {
        let key = key(ctx);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::new(hands));
        Open { doors: self.clone(), key }
    }

    fn of(&self, ctx: &Ctx) -> Result<Arc<Hands>> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&key(ctx)).cloned().ok_or_else(|| Error::internal("this world has ended"))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.doors.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// The host's engine with the assertions in it.
pub fn engine(modules: &[HostModule]) -> (Engine, Doors) {
    let mut engine = engine::build(modules);
    let doors = Doors::default();
    register_assertions(&mut engine);
    register_world(&mut engine, &doors);
    (engine, doors)
}

fn register_assertions(engine: &mut Engine) {
    engine.register_fn("assert", |call: NativeCallContext, holds: bool| {
        check(&call, holds, || "the assertion does not hold".into())
    });
    engine.register_fn("assert", |call: NativeCallContext, holds: bool, message: &str| {
        check(&call, holds, || message.to_owned())
    });
    engine.register_fn("assert_eq", |call: NativeCallContext, left: Dynamic, right: Dynamic| {
        check(&call, same(&left, &right), || format!("{} is not {}", shown(&left), shown(&right)))
    });
    engine.register_fn("assert_eq", |call: NativeCallContext, left: Dynamic, right: Dynamic, message: &str| {
        check(&call, same(&left, &right), || format!("{message}: {} is not {}", shown(&left), shown(&right)))
    });
    engine.register_fn("assert_ne", |call: NativeCallContext, left: Dynamic, right: Dynamic| {
        check(&call, !same(&left, &right), || format!("both are {}", shown(&left)))
    });
    engine.register_fn("assert_throws", |call: NativeCallContext, work: FnPtr| throws(&call, &work, None));
    engine.register_fn("assert_throws", |call: NativeCallContext, work: FnPtr, code: &str| {
        throws(&call, &work, Some(code))
    });
}

fn register_world(engine: &mut Engine, doors: &Doors) {
    let settings = doors.clone();
    engine.register_fn("settings_set", move |call: NativeCallContext, key: &str, to: Dynamic| -> Res<()> {
        let ctx = ctx::live(&call)?;
        let hands = settings.of(&ctx).or_raise(&call)?;
        value::to_json(&to).and_then(|to| (hands.set_setting)(key, to)).or_raise(&call)
    });
    let folders = doors.clone();
    engine.register_fn("grant_folder", move |call: NativeCallContext, name: &str| -> Res<()> {
        let ctx = ctx::live(&call)?;
        folders.of(&ctx).and_then(|hands| (hands.grant_folder)(name)).or_raise(&call)
    });
    let permissions = doors.clone();
    engine.register_fn("revoke", move |call: NativeCallContext, permission: &str| -> Res<()> {
        let ctx = ctx::live(&call)?;
        permissions.of(&ctx).and_then(|hands| (hands.revoke)(permission)).or_raise(&call)
    });
    let stored = doors.clone();
    engine.register_fn("credentials_set", move |call: NativeCallContext, name: &str, to: Dynamic| -> Res<()> {
        store(&call, &stored, name, &to, &[])
    });
    let stored = doors.clone();
    engine.register_fn(
        "credentials_set",
        move |call: NativeCallContext, name: &str, to: Dynamic, public: Array| -> Res<()> {
            store(&call, &stored, name, &to, &public)
        },
    );
    engine.register_fn("advance", |call: NativeCallContext, seconds: i64| advance(&call, seconds as f64));
    engine.register_fn("advance", |call: NativeCallContext, seconds: f64| advance(&call, seconds));
}

/// Stores a credential: a text, a map of fields of which `public` may be read, or `()` for none.
fn store(call: &NativeCallContext, doors: &Doors, name: &str, to: &Dynamic, public: &[Dynamic]) -> Res<()> {
    let ctx = ctx::live(call)?;
    let hands = doors.of(&ctx).or_raise(call)?;
    let text = |value: &Dynamic| {
        let text = value.read_lock::<ImmutableString>().map(|text| text.to_string());
        text.ok_or_else(|| Error::invalid("a credential is a text, a map of texts, or `()` for none"))
    };
    let stored = match to.read_lock::<Map>() {
        _ if to.is_unit() => hands.credentials.forget(name),
        None => text(to).and_then(|value| hands.credentials.give(name, &value)),
        Some(fields) => {
            let fields =
                fields.iter().map(|(field, value)| Ok((field.to_string(), text(value)?))).collect::<Result<_>>();
            let public = public.iter().map(text).collect::<Result<_>>();
            fields.and_then(|fields| hands.credentials.give_account(name, fields, public?))
        }
    };
    stored.or_raise(call)
}

fn check(call: &NativeCallContext, holds: bool, message: impl FnOnce() -> String) -> Res<()> {
    if holds { Ok(()) } else { Err(ctx::raise(call, &Error::internal(message()))) }
}

/// Values are equal when their JSON is; what JSON cannot hold is equal to the same kind of thing that reads the same.
fn same(left: &Dynamic, right: &Dynamic) -> bool {
    match (value::to_json(left), value::to_json(right)) {
        (Ok(left), Ok(right)) => left == right,
        (Err(_), Err(_)) => left.type_name() == right.type_name() && left.to_string() == right.to_string(),
        _ => false,
    }
}

fn shown(of: &Dynamic) -> String {
    let text = match value::to_json(of) {
        Ok(Value::Null) => "()".to_owned(),
        Ok(json) => json.to_string(),
        Err(_) => format!("{of} ({})", value::type_name(of)),
    };
    super::world::clip(&text, SHOWN)
}

/// Gives what was thrown, as `catch (e)` would see it.
fn throws(call: &NativeCallContext, work: &FnPtr, code: Option<&str>) -> Res<Dynamic> {
    if let Some(code) = code.filter(|c| Kind::from_code(c).is_none()) {
        let known: Vec<&str> = Kind::ALL.iter().map(|k| k.code()).collect();
        return Err(ctx::raise(
            call,
            &Error::invalid(format!("`{code}` is no failure code")).hint(format!("one of {}", known.join(" "))),
        ));
    }
    let ctx = ctx::any(call)?;
    let fault = match work.call_within_context::<Dynamic>(call, ()) {
        Ok(value) => {
            return Err(ctx::raise(call, &Error::internal(format!("nothing was thrown; it gave {}", shown(&value)))));
        }
        // A test that ran out of its own budget did not throw.
        Err(fault) if ctx.control.stopped() != Stop::No => return Err(fault),
        Err(fault) => fault,
    };
    let error = diagnostic::explain(fault, "", &ctx).error;
    if let Some(code) = code.filter(|c| *c != error.code()) {
        let message =
            format!("it threw `{}` ({}), not `{code}`", error.code(), super::world::clip(error.message(), SHOWN));
        return Err(ctx::raise(call, &Error::internal(message)));
    }
    Ok(value::error_to_dynamic(&error))
}

fn advance(call: &NativeCallContext, seconds: f64) -> Res<()> {
    let ctx = ctx::live(call)?;
    let ms = seconds * 1000.0;
    if !(0.0..=1e14).contains(&ms) {
        return Err(ctx::raise(call, &Error::invalid("the clock moves forward, by a number of seconds")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to be within range")]
    ctx.services.clock.advance(ms.round() as i64);
    Ok(())
}

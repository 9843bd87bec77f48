//! Calling a script's function from a native, and telling what it threw from our own errors on the way back.
//! No lock may be held across these calls; `db::transaction` is the one exception.

use crate::base::error::Error;
use crate::script::ctx::{self, Res};
use crate::script::value;
use rhai::{Dynamic, EvalAltResult, FnPtr, FuncArgs, NativeCallContext};
use serde_json::Value;

/// What ends a native that called back: our error, or what the script threw.
pub enum Fault {
    /// Ours.
    Ours(Error),
    /// The script's, with its own position.
    Thrown(Box<EvalAltResult>),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Ours(error)
    }
}

impl Fault {
    /// The error of the native.
    #[must_use]
    pub fn raise(self, call: &NativeCallContext) -> Box<EvalAltResult> {
        match self {
            Fault::Ours(error) => ctx::raise(call, &error),
            Fault::Thrown(error) => error,
        }
    }
}

/// Calls `function`.
///
/// # Errors
/// What it throws.
pub fn run(call: &NativeCallContext, function: &FnPtr, arguments: impl FuncArgs) -> Res<Dynamic> {
    function.call_within_context(call, arguments)
}

/// As [`run`], for a result that is kept as JSON.
///
/// # Errors
/// What it throws, or `invalid_arguments` for a result that JSON cannot hold.
pub fn run_to_json(call: &NativeCallContext, function: &FnPtr, arguments: impl FuncArgs) -> Result<Value, Fault> {
    let result = run(call, function, arguments).map_err(Fault::Thrown)?;
    Ok(value::to_json(&result)?)
}

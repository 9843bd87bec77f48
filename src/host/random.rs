//! `random::`: numbers of the operating system. The drawing is `service::chance`'s.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "random",
        "Random numbers, fit for passwords as well as for dice: they come from the operating system.",
        || rhai::exported_module!(api),
    )
}

#[rhai::plugin::export_module]
mod api {
    use crate::host::argument;
    use crate::script::control;
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::service::chance::Chance;
    use crate::service::digest;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Blob};

    /// An integer from `low` to `high`, both included, each equally likely.
    ///
    /// Throws `invalid_arguments` where `low` is above `high`.
    ///
    /// ```rhai
    /// let roll = random::integer(1, 6);
    /// assert(roll >= 1 && roll <= 6, "a die has six sides");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn integer(call: NativeCallContext, low: i64, high: i64) -> Res<i64> {
        ctx::live(&call)?;
        Chance::for_draws(1).integer(low, high).or_raise(&call)
    }

    /// A float from 0.0 up to but not including 1.0.
    ///
    /// ```rhai
    /// let share = random::float();
    /// assert(share >= 0.0 && share < 1.0, "below one");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn float(call: NativeCallContext) -> Res<f64> {
        ctx::live(&call)?;
        Chance::for_draws(1).float().or_raise(&call)
    }

    /// One entry of an array, each equally likely.
    ///
    /// Throws `invalid_arguments` for an empty array.
    ///
    /// ```rhai
    /// let side = random::pick(["heads", "tails"]);
    /// assert(side == "heads" || side == "tails", "a coin has two sides");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn pick(call: NativeCallContext, array: Array) -> Res<Dynamic> {
        ctx::live(&call)?;
        let at = Chance::for_draws(1).index(array.len()).or_raise(&call)?;
        Ok(array.into_iter().nth(at).unwrap_or_default())
    }

    /// A new array with the same entries in a random order; the given one stays as it is.
    ///
    /// ```rhai
    /// let deck = random::shuffle([1, 2, 3]);
    /// assert_eq(deck.len(), 3);
    /// deck.sort();
    /// assert_eq(deck, [1, 2, 3]);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn shuffle(call: NativeCallContext, array: Array) -> Res<Array> {
        ctx::live(&call)?;
        let mut array = array;
        Chance::for_draws(array.len()).shuffle(&mut array).or_raise(&call)?;
        Ok(array)
    }

    /// A blob of `count` random bytes, at most 1 MiB.
    ///
    /// Throws `too_large` above that, `invalid_arguments` for a negative count.
    ///
    /// ```rhai
    /// let token = base64::encode(random::bytes(24));
    /// assert_eq(token.len(), 32);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn bytes(call: NativeCallContext, count: i64) -> Res<Blob> {
        ctx::live(&call)?;
        let count = argument::count(count, "count").or_raise(&call)?;
        if count <= digest::MAX_RANDOM {
            control::reserve(count).or_raise(&call)?;
        }
        digest::random_bytes(count).or_raise(&call)
    }
}

//! Arguments of a call: parsed, coerced, given defaults, validated. It knows no script and runs nothing.

use jsonschema::Validator;

/// What a schema compiles to on the first call of its tool.
pub(super) struct Compiled {
    pub(super) validator: Validator,
}

//! `base64::`: bytes as text and back. The coding is `service::digest`'s.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new("base64", "Bytes as text and back.", || rhai::exported_module!(api))
}

#[rhai::plugin::export_module]
mod api {
    use crate::host::argument::with_bytes;
    use crate::script::control;
    use crate::script::ctx::{OrRaise, Res};
    use crate::service::digest;
    use rhai::Blob;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// A text's UTF-8 bytes, or a blob, as base64 of the standard alphabet with padding.
    ///
    /// Throws `invalid_arguments` for any other type.
    ///
    /// ```rhai
    /// assert_eq(base64::encode("light"), "bGlnaHQ=");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn encode(call: NativeCallContext, data: Dynamic) -> Res<String> {
        with_bytes(&data, "data", |bytes| {
            control::reserve(bytes.len().div_ceil(3).saturating_mul(4))?;
            Ok(digest::encode_base64(bytes))
        })
        .or_raise(&call)
    }

    /// The blob behind a base64 text of either alphabet, with or without padding; white space is skipped.
    /// The blob's `as_string()` gives its bytes as text.
    ///
    /// Throws `invalid_arguments` with the place where it is not base64.
    ///
    /// ```rhai
    /// assert_eq(base64::decode("bGlnaHQ=").as_string(), "light");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn decode(call: NativeCallContext, text: &str) -> Res<Blob> {
        control::reserve(text.len()).or_raise(&call)?;
        digest::decode_base64(text).or_raise(&call)
    }
}

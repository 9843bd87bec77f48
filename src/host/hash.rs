//! `hash::`: digests in hex. The digesting is `service::digest`'s.

use crate::script::module::HostModule;

/// The module.
pub fn module() -> HostModule {
    HostModule::new("hash", "Digests of text (its UTF-8 bytes) and blobs, as lower-case hex.", || {
        rhai::exported_module!(api)
    })
}

#[rhai::plugin::export_module]
mod api {
    use crate::host::argument::with_bytes;
    use crate::script::ctx::{OrRaise, Res};
    use crate::service::digest;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The SHA-256 of a text or a blob: 64 hex digits.
    ///
    /// Throws `invalid_arguments` for any other type; so in all functions here.
    ///
    /// ```rhai
    /// assert_eq(hash::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sha256(call: NativeCallContext, data: Dynamic) -> Res<String> {
        with_bytes(&data, "data", |bytes| Ok(digest::sha256(bytes))).or_raise(&call)
    }

    /// The SHA-1 of a text or a blob: 40 hex digits. Broken for signatures; here for services that ask for it.
    ///
    /// ```rhai
    /// assert_eq(hash::sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sha1(call: NativeCallContext, data: Dynamic) -> Res<String> {
        with_bytes(&data, "data", |bytes| Ok(digest::sha1(bytes))).or_raise(&call)
    }

    /// The MD5 of a text or a blob: 32 hex digits. Broken for signatures; here for services that ask for it.
    ///
    /// ```rhai
    /// assert_eq(hash::md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn md5(call: NativeCallContext, data: Dynamic) -> Res<String> {
        with_bytes(&data, "data", |bytes| Ok(digest::md5(bytes))).or_raise(&call)
    }

    /// The HMAC-SHA-256 of a text or a blob under a key, itself text or a blob: 64 hex digits.
    ///
    /// ```rhai
    /// let signature = hash::hmac_sha256("key", "The quick brown fox jumps over the lazy dog");
    /// assert_eq(signature, "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn hmac_sha256(call: NativeCallContext, key: Dynamic, data: Dynamic) -> Res<String> {
        with_bytes(&key, "key", |key| with_bytes(&data, "data", |data| Ok(digest::hmac_sha256(key, data))))
            .or_raise(&call)
    }
}

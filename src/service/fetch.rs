//! `net::` of plugins: a request of a plugin, permitted at every hop by what the plugin holds at that moment.
//! How a request travels is the network's; what a plugin holds is `permissions`'.

pub use crate::net::request::{DEFAULT_MAX_BYTES, DEFAULT_TIMEOUT};
pub use crate::net::{Body, Client, Request, Response};

use super::permissions::{Grants, Permission, Reach};
use crate::base::error::{Error, Result};
use crate::net::lane;
use arc_swap::ArcSwap;

/// The lane of a host by its text alone: `lan` or `wan`.
#[must_use]
pub fn classify(host: &str) -> &'static str {
    lane::classify(host).word()
}

/// Sends `request` for `plugin`. Every hop is permitted anew, so a revoked grant ends a chain of redirects.
///
/// # Errors
/// `permission_denied` with what to declare or to type; those of [`Client::send`].
pub async fn send(client: &Client, plugin: &str, grants: &ArcSwap<Grants>, request: Request) -> Result<Response> {
    client.send(request, &|host: &str| permit(&grants.load(), plugin, host)).await
}

/// `Ok` where `plugin` may send requests to `host`.
///
/// # Errors
/// `permission_denied` with what to declare or to type.
pub fn permit(grants: &Grants, plugin: &str, host: &str) -> Result<()> {
    if grants.allows_host(host) {
        return Ok(());
    }
    let word = Permission::ExternalHttp;
    let error = Error::denied(format!("the plugin `{plugin}` may not send requests to `{host}`"))
        .with_user_action(format!("let the plugin `{plugin}` send requests to `{host}`"));
    let list = format!("const PERMISSIONS = [#{{{word}: [\"{host}\"]}}];");
    Err(match grants.hosts() {
        Reach::None => error.hint(format!(
            "declare the host: {list} (or \"{word}\": [\"{host}\"] in plugin.json); \
             where {word} is declared without a list, type: lapidary grant {plugin} {word}={host}"
        )),
        Reach::Listed(_) | Reach::Any => error.hint(format!(
            "add the host to the declared list: {list} (or in plugin.json); \
             where {word} is declared without a list, type: lapidary grant {plugin} {word}={host}"
        )),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;
    use crate::service::permissions::{Declared, Record, effective};
    use serde_json::json;

    fn grants(permissions: serde_json::Value, record: &Record) -> Grants {
        effective(record, &Declared::parse(&permissions).unwrap())
    }

    #[test]
    fn a_host_is_permitted_where_it_is_listed_or_granted_lan_hosts_too() {
        let none = Record::default();
        let granted = Record { granted: ["EXTERNAL_HTTP".to_owned()].into(), ..Record::default() };
        let one = Record { hosts: ["nas.lan".to_owned()].into(), ..Record::default() };
        let rows = [
            (json!([]), &none, "api.example.org", false),
            (json!([]), &granted, "api.example.org", false),
            (json!([{"EXTERNAL_HTTP": ["api.example.org"]}]), &none, "api.example.org", true),
            (json!([{"EXTERNAL_HTTP": ["api.example.org"]}]), &none, "example.org", false),
            (json!([{"EXTERNAL_HTTP": ["*.example.org"]}]), &none, "api.example.org", true),
            (json!([{"EXTERNAL_HTTP": ["*.example.org"]}]), &none, "localhost", false),
            (json!([{"EXTERNAL_HTTP": ["127.0.0.1"]}]), &none, "127.0.0.1", true),
            (json!(["EXTERNAL_HTTP"]), &none, "api.example.org", false),
            (json!(["EXTERNAL_HTTP"]), &granted, "localhost", true),
            (json!(["EXTERNAL_HTTP"]), &one, "nas.lan", true),
            (json!(["EXTERNAL_HTTP"]), &one, "localhost", false),
        ];
        for (declared, record, host, ok) in rows {
            assert_eq!(permit(&grants(declared.clone(), record), "p", host).is_ok(), ok, "{declared} {host}");
        }
    }

    #[test]
    fn the_refusal_says_what_to_write_and_what_to_type() {
        let e = permit(&Grants::default(), "weather", "api.example.org").unwrap_err();
        assert_eq!(e.kind(), Kind::PermissionDenied);
        let hint = e.hint_text().unwrap();
        assert!(hint.contains("const PERMISSIONS = [#{EXTERNAL_HTTP: [\"api.example.org\"]}];"), "{hint}");
        assert!(hint.contains("lapidary grant weather EXTERNAL_HTTP=api.example.org"), "{hint}");
    }
}

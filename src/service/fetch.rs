//! `net::` of plugins: a request of a plugin, held at every hop to what the plugin and its credentials may at that moment.
//! How a request travels is the network's; what a plugin holds is `permissions`'.

pub use crate::net::request::{DEFAULT_MAX_BYTES, DEFAULT_TIMEOUT, host_of};
pub use crate::net::{Allowance, Body, Client, File, Profile, Request, Response};
pub use crate::net::{cookie::JarName, lane::Lane};

use super::permissions::{Grants, Permission, Reach};
use super::secret::{Redactor, Secret, Used, misplaced};
use crate::base::error::{Error, Kind, Result};
use crate::net::{Rules, Target, lane};
use arc_swap::ArcSwap;
use futures_util::stream::{self, StreamExt};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many requests of [`Sender::send_all`] are under way at once.
pub const AT_ONCE: usize = 8;
/// How long what a function said counts, in milliseconds.
const FRESH_MS: i64 = 5_000;
/// Most hosts of one plugin.
const MOST_HOSTS: usize = 1_000;

/// The lane of a host by its text alone: `lan` or `wan`.
#[must_use]
pub fn classify(host: &str) -> &'static str {
    lane::classify(host).word()
}

/// Names that read as the internet and are machines of the local network, as one generation of a plugin registered them.
/// They count for that plugin alone, and go with its generation.
#[derive(Default)]
pub struct DirectHosts(Mutex<Registered>);

#[derive(Default)]
struct Registered {
    hosts: BTreeSet<String>,
    function: Option<String>,
    /// When the function was asked last, in milliseconds since 1970.
    asked: i64,
}

impl DirectHosts {
    /// Registers these hosts and no others.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no host or a wildcard, `quota` for more than 1,000.
    pub fn set(&self, hosts: &[String]) -> Result<()> {
        let hosts = normal(hosts)?;
        *self.lock() = Registered { hosts, ..Registered::default() };
        Ok(())
    }

    /// Registers what a function says now; it is asked again where that is older than 5 s.
    ///
    /// # Errors
    /// As [`DirectHosts::set`].
    pub fn set_by(&self, function: &str, hosts: &[String], now_ms: i64) -> Result<()> {
        let hosts = normal(hosts)?;
        *self.lock() = Registered { hosts, function: Some(function.to_owned()), asked: now_ms };
        Ok(())
    }

    /// The function that has to be asked again, if there is one; from now on it counts as asked.
    pub fn due(&self, now_ms: i64) -> Option<String> {
        let mut registered = self.lock();
        let name = registered.function.clone().filter(|_| (now_ms - registered.asked).abs() >= FRESH_MS)?;
        registered.asked = now_ms;
        Some(name)
    }

    /// What the function says now; nothing where it failed, so that its hosts take the way of the internet.
    pub fn renew(&self, hosts: &[String]) {
        self.lock().hosts = normal(hosts).unwrap_or_default();
    }

    /// Whether `host` is registered.
    #[must_use]
    pub fn has(&self, host: &str) -> bool {
        self.lock().hosts.contains(host)
    }

    /// What is registered now.
    #[must_use]
    pub fn all(&self) -> BTreeSet<String> {
        self.lock().hosts.clone()
    }

    /// The lane of a host for this plugin, by its text and what is registered.
    #[must_use]
    pub fn lane(&self, host: &str) -> Lane {
        lane::classify_with(host, &|name| self.has(name))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn normal(hosts: &[String]) -> Result<BTreeSet<String>> {
    if hosts.len() > MOST_HOSTS {
        return Err(Error::new(Kind::Quota, format!("{} hosts are more than {MOST_HOSTS}", hosts.len())));
    }
    hosts
        .iter()
        .map(|host| {
            let host = super::permissions::host_pattern(&lane::normalise(host.trim()))?;
            if host.starts_with('*') {
                return Err(Error::invalid(format!("`{host}` stands for many hosts")).hint("write each host itself"));
            }
            Ok(host)
        })
        .collect()
}

/// A request with the credentials that it carries.
#[derive(Clone)]
pub struct Outgoing {
    /// What is sent, values of credentials included.
    pub request: Request,
    /// Whose values are in it: it goes to hosts that all of them name, and nowhere else.
    pub secrets: Vec<Secret>,
    /// What was made of such values, such as a login: taken out of the answer with them.
    pub derived: Vec<String>,
}

impl Outgoing {
    /// About how many bytes a copy of it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let pairs =
            |pairs: &[(String, String)]| pairs.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let body = match &self.request.body {
            Body::Empty => 0,
            // Its values are small and many, or texts: written out it is about as long.
            Body::Json(value) => value.to_string().len(),
            Body::Form(fields) => pairs(fields),
            Body::Text(text) => text.len(),
            Body::Bytes(bytes) => bytes.len(),
            Body::Multipart(fields, files) => pairs(fields) + files.iter().map(|file| file.data.len()).sum::<usize>(),
        };
        pairs(&self.request.headers) + pairs(&self.request.params) + body
    }
}

impl From<Request> for Outgoing {
    fn from(request: Request) -> Self {
        Outgoing { request, secrets: Vec::new(), derived: Vec::new() }
    }
}

/// Sends for one plugin.
pub struct Sender<'a> {
    /// The host's client.
    pub client: &'a Client,
    /// The plugin's name.
    pub plugin: &'a str,
    /// What it holds; looked at for every hop, so a revoked grant ends a chain of redirects.
    pub grants: &'a ArcSwap<Grants>,
    /// What it registered.
    pub direct: &'a DirectHosts,
    /// Whether the call is one of a private chat: then nothing goes beyond the local network.
    pub is_private: bool,
    /// Whose values are taken out of every answer; what a request carries is among them from then on.
    pub used: &'a Used,
}

impl Sender<'_> {
    /// Sends a request. The answer's address, headers and body have `***` where a credential's value was.
    ///
    /// # Errors
    /// `permission_denied` with what to declare or to type, or for a host that a credential does not name; those of
    /// [`Client::send`].
    pub async fn send(&self, outgoing: impl Into<Outgoing>) -> Result<Response> {
        let Outgoing { request, secrets, derived } = outgoing.into();
        secrets.iter().for_each(|secret| self.used.add(secret));
        derived.iter().for_each(|value| self.used.add_text(value));
        let redactor = self.used.redactor();
        let held = Held { sender: self, secrets: &secrets, redactor: redactor.as_deref() };
        let answer = self.client.send(request, &held).await?;
        Ok(match &redactor {
            Some(redactor) => redacted(answer, redactor),
            None => answer,
        })
    }

    /// Sends several requests, [`AT_ONCE`] at a time; each outcome stands in its request's place. A request is asked for when
    /// it is about to be sent.
    pub async fn send_all(&self, all: impl Iterator<Item = Result<Outgoing>>) -> Vec<Result<Response>> {
        let send = |outgoing: Result<Outgoing>| async { self.send(outgoing?).await };
        stream::iter(all).map(send).buffered(AT_ONCE).collect().await
    }
}

fn redacted(answer: Response, redactor: &Redactor) -> Response {
    Response {
        url: redactor.text(&answer.url).into_owned(),
        headers: answer
            .headers
            .into_iter()
            .map(|(name, value)| {
                let value = redactor.text(&value).into_owned();
                (name, value)
            })
            .collect(),
        body: redactor.bytes(answer.body),
        ..answer
    }
}

/// What one request of a plugin is held to.
struct Held<'a> {
    sender: &'a Sender<'a>,
    secrets: &'a [Secret],
    redactor: Option<&'a Redactor>,
}

impl Rules for Held<'_> {
    fn is_direct(&self, host: &str) -> bool {
        self.sender.direct.has(host)
    }

    fn permit(&self, target: Target) -> Result<()> {
        let (grants, plugin, host) = (self.sender.grants.load(), self.sender.plugin, target.host);
        permit(&grants, plugin, host)?;
        if self.sender.is_private && target.lane == Lane::Wan {
            return Err(Error::new(
                Kind::Disabled,
                format!("in a private chat nothing goes to `{host}`, which is beyond the local network"),
            )
            .hint("tell the user; in a chat that is not private it works"));
        }
        // Where its name leads is up to a stranger's name server, so a plugin's own list is not enough.
        if target.lane == Lane::Lan && lane::classify(host) == Lane::Wan && !grants.owner_allows_host(host) {
            let word = Permission::ExternalHttp;
            return Err(Error::denied(format!(
                "the plugin `{plugin}` registered `{host}` as a host of the local network, which only the owner may allow"
            ))
            .with_user_action(format!("let the plugin `{plugin}` reach `{host}` in the local network"))
            .hint(format!("type: lapidary grant {plugin} {word}={host}")));
        }
        self.secrets.iter().try_for_each(|secret| consents(secret, target))
    }

    fn redact(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.secrets.iter().try_for_each(long_enough)?;
        Ok(match self.redactor {
            Some(redactor) => redactor.bytes(bytes),
            None => bytes,
        })
    }
}

/// Whether a secret may go where a hop leads.
fn consents(secret: &Secret, target: Target) -> Result<()> {
    if !secret.fits(target.host) {
        return Err(misplaced(secret, target.host));
    }
    if target.lane == Lane::Wan && !target.encrypted {
        return Err(Error::denied(format!(
            "the credential `{}` is not sent over the internet without encryption",
            secret.name()
        ))
        .hint("use https"));
    }
    Ok(())
}

/// Whether a secret can be looked for in what is recorded: one that is too short would stay.
fn long_enough(secret: &Secret) -> Result<()> {
    if !secret.is_short() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the value of the credential `{}` is too short to be told from other text, so nothing that holds it is recorded",
        secret.name()
    ))
    .hint("a key has at least four characters"))
}

/// A credential in requests that the host makes itself: it goes to its own hosts only, at every hop.
pub struct Bearer {
    secret: Secret,
    redactor: Redactor,
}

/// The value of the header `authorization` with this credential, and the rules that go with it.
#[must_use]
pub fn bearer(secret: Secret) -> (String, Bearer) {
    let header = format!("Bearer {}", secret.expose());
    let redactor = Redactor::of([&secret]);
    (header, Bearer { secret, redactor })
}

impl Rules for Bearer {
    fn permit(&self, target: Target) -> Result<()> {
        consents(&self.secret, target)
    }

    fn redact(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        long_enough(&self.secret)?;
        Ok(self.redactor.bytes(bytes))
    }
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
    fn registered_hosts_are_normal_replaced_and_asked_for_again_after_a_while() {
        let direct = DirectHosts::default();
        let list = |hosts: &[&str]| hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>();
        direct.set(&list(&[" HA.My-House.example. ", "8.8.8.8"])).unwrap();
        for (host, lane) in [
            ("ha.my-house.example", "lan"),
            ("HA.MY-HOUSE.EXAMPLE.", "lan"),
            ("x.ha.my-house.example", "wan"),
            ("8.8.8.8", "lan"),
            ("1.1.1.1", "wan"),
            ("printer", "lan"),
        ] {
            assert_eq!(direct.lane(host).word(), lane, "{host}");
        }
        assert_eq!(direct.due(i64::MAX), None);
        direct.set_by("hosts", &list(&["a.example"]), 1_000).unwrap();
        assert!(direct.has("a.example") && !direct.has("8.8.8.8"));
        assert_eq!(direct.due(5_999), None);
        assert_eq!(direct.due(6_000).as_deref(), Some("hosts"));
        assert_eq!(direct.due(6_001), None);
        direct.renew(&list(&["b.example"]));
        assert!(direct.has("b.example") && !direct.has("a.example"));
        direct.renew(&list(&["not a host"]));
        assert!(!direct.has("b.example"));
        for bad in ["https://a.example/", "*.example.org", "", "a b"] {
            assert_eq!(direct.set(&list(&[bad])).unwrap_err().code(), "invalid_arguments", "{bad}");
        }
        assert_eq!(direct.set(&vec!["a.example".to_owned(); MOST_HOSTS + 1]).unwrap_err().code(), "quota");
    }

    #[test]
    fn a_hop_needs_permission_and_every_credentials_consent() {
        let record = Record { granted: ["EXTERNAL_HTTP".to_owned()].into(), ..Record::default() };
        let (any, listed) = (grants(json!(["EXTERNAL_HTTP"]), &record), json!([{"EXTERNAL_HTTP": ["home.example"]}]));
        let own = grants(listed.clone(), &Record::default());
        let said = grants(listed, &Record { hosts: ["home.example".to_owned()].into(), ..Record::default() });
        let direct = DirectHosts::default();
        direct.set(&["home.example".to_owned()]).unwrap();
        let secret = Secret::new("s", "value", &["api.example".to_owned(), "nas.lan".to_owned()]).unwrap();
        let no_secrets: &[Secret] = &[];
        let one = std::slice::from_ref(&secret);
        use Lane::{Lan, Wan};
        let rows = [
            (&any, no_secrets, "api.example", Wan, false, true),
            (&own, no_secrets, "api.example", Wan, true, false),
            (&own, no_secrets, "home.example", Wan, true, true),
            (&own, no_secrets, "home.example", Lan, true, false),
            (&said, no_secrets, "home.example", Lan, true, true),
            (&any, no_secrets, "home.example", Lan, true, true),
            (&any, one, "api.example", Wan, true, true),
            (&any, one, "api.example", Wan, false, false),
            (&any, one, "other.example", Wan, true, false),
            (&any, one, "nas.lan", Lan, false, true),
            (&any, one, "nas2.lan", Lan, false, false),
        ];
        let client = Client::new();
        for (grants, secrets, host, lane, encrypted, ok) in rows {
            let held = ArcSwap::from_pointee(grants.clone());
            let used = Used::default();
            let sender =
                Sender { client: &client, plugin: "p", grants: &held, direct: &direct, is_private: false, used: &used };
            let permitted = Held { sender: &sender, secrets, redactor: None }.permit(Target { host, lane, encrypted });
            assert_eq!(permitted.is_ok(), ok, "{host} {lane:?} {encrypted} with {} secrets", secrets.len());
            if let Err(e) = permitted {
                assert_eq!(e.code(), "permission_denied");
                assert!(!e.to_string().contains("value"));
            }
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

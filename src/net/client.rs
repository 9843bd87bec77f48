//! The HTTP client: one request at a time, hop by hop, each hop permitted, classified and checked.
//! It follows no redirect by itself beyond the rules in `redirect`, uses no proxy of the environment, keeps no cookies.

use super::guard::{HostRule, check_address};
use super::lane::{Lane, normalise};
use super::{decode, redirect};
use crate::base::error::{Error, Kind, Result};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use reqwest::{Method, Url};
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Wall clock for a whole request, redirects and body included, where none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an answer's body after decompression, where no number is given: 20 MiB.
pub const DEFAULT_MAX_BYTES: usize = 20 << 20;
/// Longest URL in bytes, query included.
pub const MAX_URL: usize = 64 << 10;

/// Asked with the host of every hop (normalised, without brackets) before anything is sent to it.
pub type Permit<'a> = dyn Fn(&str) -> Result<()> + Send + Sync + 'a;

/// What a request sends.
#[derive(Clone, Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// A JSON document.
    Json(serde_json::Value),
    /// Pairs, as a form is sent.
    Form(Vec<(String, String)>),
    /// Text, `text/plain` unless a header says otherwise.
    Text(String),
    /// Bytes, `application/octet-stream` unless a header says otherwise.
    Bytes(Vec<u8>),
}

/// One request. It has no `Debug`: URL, headers and body carry secrets.
#[derive(Clone)]
pub struct Request {
    /// The method's name, any case.
    pub method: String,
    /// An absolute http or https address without a user name.
    pub url: String,
    /// Headers in order; a repeated name is sent repeatedly.
    pub headers: Vec<(String, String)>,
    /// Appended to the query of the first hop.
    pub params: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
    /// Wall clock for everything together.
    pub timeout: Duration,
    /// Whether redirects are followed; by itself WAN follows and LAN does not.
    pub allow_redirects: Option<bool>,
    /// Most bytes of the answer's body, decompressed.
    pub max_bytes: usize,
}

impl Request {
    /// A request with the usual limits and nothing else.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            params: Vec::new(),
            body: Body::Empty,
            timeout: DEFAULT_TIMEOUT,
            allow_redirects: None,
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }
}

/// An answer, whatever its status.
#[derive(Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Whether the status is below 400.
    pub ok: bool,
    /// The address of the last hop.
    pub url: String,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that name, any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text, by its mark, its header's charset, its page's declaration, or as UTF-8.
    #[must_use]
    pub fn text(&self) -> String {
        decode::text(&self.body, self.header("content-type"))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: an address or a body may hold what no log should.
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
/// How names become addresses; the system's resolver outside tests.
type Lookup = Arc<dyn Fn(String) -> Found + Send + Sync>;

/// The only HTTP client of the host. Cheap to clone; nothing is built before the first request.
#[derive(Clone)]
pub struct Client(Arc<Lanes>);

struct Lanes {
    lookup: Lookup,
    /// No request leaves this machine.
    stays: bool,
    lan: OnceLock<std::result::Result<reqwest::Client, String>>,
    wan: OnceLock<std::result::Result<reqwest::Client, String>>,
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// A client that resolves names as the system does.
    #[must_use]
    pub fn new() -> Self {
        Client::with_lookup(Arc::new(|name| {
            Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|a| a.ip()).collect()) })
        }))
    }

    /// A client for tests: every hop must be this machine itself.
    #[must_use]
    pub fn loopback_only() -> Self {
        let Client(lanes) = Client::new();
        Client(Arc::new(Lanes {
            lookup: lanes.lookup.clone(),
            stays: true,
            lan: OnceLock::new(),
            wan: OnceLock::new(),
        }))
    }

    fn with_lookup(lookup: Lookup) -> Self {
        Client(Arc::new(Lanes { lookup, stays: false, lan: OnceLock::new(), wan: OnceLock::new() }))
    }

    /// Sends a request and reads the answer. Needs a Tokio runtime; dropping the future stops everything.
    /// A status of 400 and above is an answer, not an error.
    ///
    /// # Errors
    /// `invalid_arguments` for a request that cannot be sent, whatever `permit` returns, `permission_denied` for an
    /// address its host may not lead to, `timeout`, `too_large`, `upstream_unavailable` for everything else.
    /// No message holds more of a URL than scheme, host and port.
    pub async fn send(&self, request: Request, permit: &Permit<'_>) -> Result<Response> {
        let url = parse_url(&request.url, &request.params)?;
        let timeout = request.timeout;
        let whole = self.follow(request, url.clone(), permit);
        tokio::time::timeout(timeout, whole).await.unwrap_or_else(|_| {
            Err(Error::new(
                Kind::Timeout,
                format!("{} did not answer within {} s", redirect::place(&url), timeout.as_secs_f64()),
            )
            .hint("give a longer `timeout`, or ask for less"))
        })
    }

    async fn follow(&self, request: Request, mut url: Url, permit: &Permit<'_>) -> Result<Response> {
        let mut method = parse_method(&request.method)?;
        let mut headers = parse_headers(&request.headers)?;
        let mut body = encode_body(request.body, &mut headers)?;
        for _ in 0..=redirect::MAX_HOPS {
            let host = url.host_str().unwrap_or_default().to_owned();
            permit(&normalise(&host))?;
            if self.0.stays && !is_this_machine(&host) {
                return Err(Error::new(Kind::UpstreamUnavailable, "nothing here leaves this machine")
                    .with_retryable(false)
                    .hint("a test talks to a server of its own on 127.0.0.1"));
            }
            let rule = HostRule::of(&host);
            // A name is checked when it is resolved; an address is never resolved, so it is checked here.
            if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
                check_address(ip, rule).map_err(|e| e.context(redirect::place(&url)))?;
            }
            let mut sending = self.0.of(rule.lane)?.request(method.clone(), url.clone()).headers(headers.clone());
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let answer = sending.send().await.map_err(|e| explain(e, &url))?;
            let hop = if request.allow_redirects.unwrap_or(rule.lane == Lane::Wan) {
                let location = answer.headers().get(LOCATION).and_then(|v| std::str::from_utf8(v.as_bytes()).ok());
                redirect::next(answer.status().as_u16(), location, &url, &method)?
            } else {
                None
            };
            let Some(hop) = hop else {
                return read(answer, url, request.max_bytes).await;
            };
            if !hop.keep_body {
                body = None;
                headers.remove(CONTENT_TYPE);
            }
            if hop.leaves_origin {
                redirect::strip_for_other_origin(&mut headers);
            }
            (url, method) = (hop.url, hop.method);
        }
        Err(Error::new(
            Kind::UpstreamUnavailable,
            format!("{} redirects more than {} times", redirect::place(&url), redirect::MAX_HOPS),
        )
        .with_retryable(false))
    }
}

impl Lanes {
    /// The lane's client, built at its first use. Lanes share no connections.
    fn of(&self, lane: Lane) -> Result<&reqwest::Client> {
        let slot = match lane {
            Lane::Lan => &self.lan,
            Lane::Wan => &self.wan,
        };
        slot.get_or_init(|| build(Arc::clone(&self.lookup)))
            .as_ref()
            .map_err(|e| Error::internal(format!("the http client cannot be built: {e}")))
    }
}

fn is_this_machine(host: &str) -> bool {
    let host = normalise(host);
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[expect(clippy::disallowed_methods, reason = "this is the one client")]
fn build(lookup: Lookup) -> std::result::Result<reqwest::Client, String> {
    // Somebody who embeds us may have installed a provider of their own; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        // A request that may have been acted on is never sent twice.
        .retry(reqwest::retry::never())
        .referer(false)
        .dns_resolver(Arc::new(Guarded { lookup }))
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(4)
        .build()
        .map_err(|e| deepest(&e))
}

/// Resolves names and lets through only the addresses that the name may lead to.
struct Guarded {
    lookup: Lookup,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = HostRule::of(name.as_str());
        let found = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let mut allowed: Vec<SocketAddr> = Vec::new();
            let mut refused = None;
            for ip in found.await? {
                match check_address(ip, rule) {
                    // Port 0 stands for the URL's.
                    Ok(()) => allowed.push(SocketAddr::new(ip, 0)),
                    Err(error) => refused = Some(error),
                }
            }
            match (allowed.is_empty(), refused) {
                (true, Some(error)) => Err(Box::new(error) as Box<dyn StdError + Send + Sync>),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

fn parse_url(text: &str, params: &[(String, String)]) -> Result<Url> {
    let example = "an address looks like https://host/path";
    let too_long = || Error::invalid(format!("the url is longer than {MAX_URL} bytes"));
    if text.len() > MAX_URL {
        return Err(too_long());
    }
    // The text itself is not shown: it may hold a key.
    let mut url = Url::parse(text).map_err(|e| Error::invalid(format!("the url cannot be read: {e}")).hint(example))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::invalid("the url's scheme is neither http nor https").hint(example));
    }
    if redirect::has_userinfo(&url) {
        return Err(Error::invalid("the url holds a user name or password").hint("use `auth` or a header instead"));
    }
    if !params.is_empty() {
        url.query_pairs_mut().extend_pairs(params);
    }
    if url.as_str().len() > MAX_URL {
        return Err(too_long());
    }
    Ok(url)
}

fn parse_method(name: &str) -> Result<Method> {
    let upper = name.trim().to_ascii_uppercase();
    // A tunnel and an echo of the request's own headers are nothing a script needs.
    if upper.is_empty() || upper == "CONNECT" || upper == "TRACE" || upper.len() > 32 {
        return Err(Error::invalid("the method cannot be used").hint("use get, post, put, patch, delete or head"));
    }
    Method::from_bytes(upper.as_bytes())
        .map_err(|_| Error::invalid("the method is not a word").hint("use get, post, put, patch, delete or head"))
}

fn parse_headers(pairs: &[(String, String)]) -> Result<HeaderMap> {
    /// Owned by the connection: setting them would break the framing, or name another site than the one permitted.
    const OWNED: [&str; 10] = [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "keep-alive",
        "proxy-connection",
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.trim().parse().map_err(|_| Error::invalid("a header's name is not a word"))?;
        if OWNED.contains(&name.as_str()) {
            return Err(Error::invalid(format!("the header `{name}` is set by the host")).hint("leave it out"));
        }
        let value = HeaderValue::from_str(value.trim())
            .map_err(|_| Error::invalid(format!("the value of the header `{name}` holds a control character")))?;
        headers.append(name, value);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("lapidary/", env!("CARGO_PKG_VERSION"))));
    Ok(headers)
}

/// The bytes to send; sets the content type that goes with them unless the request has its own.
fn encode_body(body: Body, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>> {
    let (bytes, content_type) = match body {
        Body::Empty => return Ok(None),
        Body::Json(value) => {
            let bytes = serde_json::to_vec(&value).map_err(|e| Error::invalid(format!("the json body: {e}")))?;
            (bytes, "application/json")
        }
        Body::Form(pairs) => {
            let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            (text.into_bytes(), "application/x-www-form-urlencoded")
        }
        Body::Text(text) => (text.into_bytes(), "text/plain; charset=utf-8"),
        Body::Bytes(bytes) => (bytes, "application/octet-stream"),
    };
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
    Ok(Some(bytes))
}

async fn read(mut answer: reqwest::Response, url: Url, max_bytes: usize) -> Result<Response> {
    let too_large = || {
        Error::new(Kind::TooLarge, format!("the answer of {} is larger than {max_bytes} bytes", redirect::place(&url)))
            .hint("raise `max_bytes`, or ask for less")
    };
    let status = answer.status().as_u16();
    let headers: Vec<(String, String)> = answer
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    // Absent where the body is compressed, so it is a short cut and not the rule.
    if answer.content_length().is_some_and(|n| n > max_bytes as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|e| explain(e, &url))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status, ok: status < 400, url: url.into(), headers, body })
}

/// Turns the library's error into ours, without its text: that one names the whole URL.
fn explain(error: reqwest::Error, url: &Url) -> Error {
    let place = redirect::place(url);
    let mut source: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(inner) = source {
        if let Some(refused) = inner.downcast_ref::<Error>() {
            return refused.clone().context(place);
        }
        source = inner.source();
    }
    if error.is_builder() {
        return Error::invalid(format!("the request to {place} cannot be built"));
    }
    if error.is_timeout() {
        return Error::new(Kind::Timeout, format!("{place} did not answer in time"));
    }
    let what = if error.is_connect() {
        "cannot be reached"
    } else if error.is_body() || error.is_decode() {
        "sent an answer that breaks off or cannot be unpacked"
    } else {
        "did not answer"
    };
    Error::new(Kind::UpstreamUnavailable, format!("{place} {what}: {}", deepest(&error)))
}

/// The text of the innermost cause: what the operating system or TLS said.
fn deepest(error: &(dyn StdError + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    // The outermost error is the only one that knows the URL.
    if std::ptr::addr_eq(inner, error) { "no further reason given".to_owned() } else { inner.to_string() }
}

#[cfg(test)]
mod tests;

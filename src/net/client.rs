//! The HTTP client: one request at a time, hop by hop, each hop classified, permitted and checked.
//! It follows no redirect beyond the rules in `redirect`, and knows nothing of whose request it is.

use super::cookie::{Jar, Jars};
use super::guard::{HostRule, address, check_address};
use super::lane::{Lane, classify_with, normalise};
use super::outlet::{Proxy, Range, Settings, deepest};
use super::request::{Allowance, Profile, Request, Response, parse_headers, parse_method, parse_url};
use super::{body, redirect};
use crate::base::error::{Error, Kind, Result};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, LOCATION};
use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};

/// Where the next hop of a request leads.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The host, normalised, without brackets.
    pub host: &'a str,
    /// Its lane.
    pub lane: Lane,
    /// Whether the hop is encrypted.
    pub encrypted: bool,
}

/// What one request is held to: asked anew for every hop, before anything is sent to it.
pub trait Rules: Send + Sync {
    /// Whether a name that reads as the internet was registered as one of the local network.
    fn is_direct(&self, _host: &str) -> bool {
        false
    }

    /// Whether the hop may be made.
    ///
    /// # Errors
    /// Why not; the request ends with it.
    fn permit(&self, target: Target) -> Result<()>;
}

impl<F: Fn(&str) -> Result<()> + Send + Sync> Rules for F {
    fn permit(&self, target: Target) -> Result<()> {
        self(target.host)
    }
}

/// The only HTTP client of the host. Cheap to clone; nothing is built before the first request.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

type Slot = OnceLock<Result<reqwest::Client>>;

struct Inner {
    settings: Settings,
    jars: Jars,
    /// By lane, then by kind of profile: what one of them connected to, no other uses.
    pools: [[Slot; 2]; 2],
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// A client that goes straight everywhere and resolves names as the system does.
    #[must_use]
    pub fn new() -> Self {
        Client::with(Settings::default())
    }

    /// A client for tests: every hop must be this machine itself.
    #[must_use]
    pub fn loopback_only() -> Self {
        Client::with(Settings { range: Range::ThisMachine, ..Settings::default() })
    }

    /// A client that follows these settings.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Client(Arc::new(Inner { settings, jars: Jars::default(), pools: Default::default() }))
    }

    /// What it follows.
    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Sends a request and reads the answer. Needs a Tokio runtime; dropping the future stops everything.
    /// A status of 400 and above is an answer, not an error.
    ///
    /// # Errors
    /// `invalid_arguments` for a request that cannot be sent, whatever `rules` say, `permission_denied` for an
    /// address its host may not lead to, `timeout`, `too_large`, `upstream_unavailable` for everything else.
    /// No message holds more of a URL than scheme, host and port.
    pub async fn send(&self, request: Request, rules: &dyn Rules) -> Result<Response> {
        let url = parse_url(&request.url, &request.params)?;
        let timeout = request.timeout;
        let whole = self.follow(request, url.clone(), rules);
        tokio::time::timeout(timeout, whole).await.unwrap_or_else(|_| {
            Err(Error::new(
                Kind::Timeout,
                format!("{} did not answer within {} s", redirect::place(&url), timeout.as_secs_f64()),
            )
            .hint("give a longer `timeout`, or ask for less"))
        })
    }

    async fn follow(&self, request: Request, mut url: Url, rules: &dyn Rules) -> Result<Response> {
        let mut method = parse_method(&request.method)?;
        let mut headers = parse_headers(&request.headers, &request.profile)?;
        let mut body = body::encode(request.body, &mut headers)?;
        let jar = match &request.profile {
            Profile::Plain => None,
            Profile::Browser(name) => Some(self.0.jars.get(name)),
        };
        let lane_of = |host: &str| classify_with(host, &|name| rules.is_direct(name));
        for _ in 0..=redirect::MAX_HOPS {
            let host = url.host_str().unwrap_or_default().to_owned();
            let lane = lane_of(&host);
            if let Some(only) = request.lane.filter(|only| *only != lane) {
                return Err(Error::invalid(format!(
                    "{} is on the {} lane, and this session serves the {} lane",
                    redirect::place(&url),
                    lane.word(),
                    only.word()
                ))
                .hint("a host of the other lane has a session of its own: net::session_for(url)"));
            }
            rules.permit(Target { host: &normalise(&host), lane, encrypted: url.scheme() == "https" })?;
            self.check(&host, lane, &url)?;
            let proxy = self.0.settings.proxy(lane)?;
            let pool = self.0.pool(lane, &request.profile)?;
            let mut sending = pool.request(method.clone(), url.clone()).headers(with_cookies(&headers, &jar, &url));
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let answer = sending.send().await.map_err(|e| explain(e, &url, proxy))?;
            if answer.status().as_u16() == 407 && proxy.is_some_and(Proxy::speaks_http) {
                return Err(proxy_failed(&url, "it wants another user name or password"));
            }
            if let Some(jar) = &jar {
                jar.take(answer.headers(), &url);
            }
            let hop = if request.allow_redirects.unwrap_or(lane == Lane::Wan) {
                let location = answer.headers().get(LOCATION).and_then(|v| std::str::from_utf8(v.as_bytes()).ok());
                let sent = redirect::Sent { url: &url, method: &method, has_body: body.is_some(), lane: &lane_of };
                redirect::next(answer.status().as_u16(), location, &sent)?
            } else {
                None
            };
            let Some(hop) = hop else {
                return read(answer, url, request.max_bytes, request.allowance.as_deref(), proxy).await;
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

    fn check(&self, host: &str, lane: Lane, url: &Url) -> Result<()> {
        if self.0.settings.range == Range::ThisMachine && !is_this_machine(host) {
            return Err(Error::new(Kind::UpstreamUnavailable, "nothing here leaves this machine")
                .with_retryable(false)
                .hint("a test talks to a server of its own on 127.0.0.1"));
        }
        // A name is checked when it is resolved; an address is never resolved, so it is checked here.
        match address(host) {
            Some(ip) => {
                check_address(ip, HostRule { lane, literal: true }).map_err(|e| e.context(redirect::place(url)))
            }
            None => Ok(()),
        }
    }
}

impl Inner {
    /// The client of a lane and a kind of profile, built at its first use.
    fn pool(&self, lane: Lane, profile: &Profile) -> Result<&reqwest::Client> {
        let kind = match profile {
            Profile::Plain => 0,
            Profile::Browser(_) => 1,
        };
        let slot = match lane {
            Lane::Lan => &self.pools[0][kind],
            Lane::Wan => &self.pools[1][kind],
        };
        slot.get_or_init(|| self.settings.build(lane)).as_ref().map_err(Clone::clone)
    }
}

fn is_this_machine(host: &str) -> bool {
    normalise(host) == "localhost" || address(host).is_some_and(|ip| ip.is_loopback())
}

fn with_cookies(headers: &HeaderMap, jar: &Option<Arc<Jar>>, url: &Url) -> HeaderMap {
    let mut headers = headers.clone();
    if let Some(cookies) = jar.as_ref().and_then(|jar| jar.header(url, headers.get(COOKIE))) {
        headers.insert(COOKIE, cookies);
    }
    headers
}

async fn read(
    mut answer: reqwest::Response,
    url: Url,
    max_bytes: usize,
    allowance: Option<&Allowance>,
    proxy: Option<&Proxy>,
) -> Result<Response> {
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
    while let Some(chunk) = answer.chunk().await.map_err(|e| explain(e, &url, proxy))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large());
        }
        if let Some(allowance) = allowance.filter(|allowance| !allowance.take(chunk.len())) {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the answers together are larger than {} bytes", allowance.whole()),
            )
            .hint("ask for fewer at once, or give a smaller `max_bytes`"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status, ok: status < 400, url: url.into(), headers, body })
}

/// The failure of a request whose proxy is at fault. It does not say which proxy: a stranger's script reads it.
fn proxy_failed(url: &Url, why: &str) -> Error {
    Error::new(
        Kind::UpstreamUnavailable,
        format!("{} cannot be reached through the proxy of this host: {why}", redirect::place(url)),
    )
    .with_user_action("see that the proxy of `[net] proxy` in user/lapidary.toml is up")
    .hint("nothing goes around the proxy; it has to be up, or be taken out of user/lapidary.toml")
}

/// Turns the library's error into ours, without its text: that one names the whole URL.
fn explain(error: reqwest::Error, url: &Url, proxy: Option<&Proxy>) -> Error {
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
    if error.is_connect() && proxy.is_some() {
        let why = if error.is_timeout() { "it did not answer in time".to_owned() } else { deepest(&error) };
        return proxy_failed(url, &why);
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

#[cfg(test)]
mod tests;

//! The HTTP client: one request at a time, hop by hop, each hop classified, permitted and checked.
//! It follows no redirect beyond the rules in `redirect`, and knows nothing of whose request it is.

use super::cookie::{Jar, Jars};
use super::guard::{HostRule, address, check_address};
use super::lane::{Lane, classify_with, normalise};
use super::outlet::{Proxy, Range, Settings, deepest};
use super::request::{Allowance, Profile, Request, Response, parse_headers, parse_method, parse_url};
use super::tape::{Heard, Hop, Play};
use super::{body, redirect};
use crate::base::error::{Error, Kind, Result};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, LOCATION};
use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};

pub(super) mod stream;

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

    /// `bytes` without values of credentials: for what is written down.
    ///
    /// # Errors
    /// Where one of them cannot be told from other text.
    fn redact(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        Ok(bytes)
    }
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

    async fn follow(&self, request: Request, url: Url, rules: &dyn Rules) -> Result<Response> {
        let (max_bytes, allowance) = (request.max_bytes, request.allowance.clone());
        let (got, url) = self.arrive(request, url, rules).await?;
        self.finish(got, url, &Limits { max_bytes, allowance: allowance.as_deref() }, rules).await
    }

    /// The answer that is not followed elsewhere, its body still to be read, and where it came from.
    async fn arrive(&self, request: Request, mut url: Url, rules: &dyn Rules) -> Result<(Got, Url)> {
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
            check_literal(&host, lane, &url)?;
            let step = Step { url: &url, host: &host, lane, method: &method, body: body.as_deref() };
            let got = self.take(&step, &headers, &jar, &request.profile, rules).await?;
            let hop = if request.allow_redirects.unwrap_or(lane == Lane::Wan) {
                let sent = redirect::Sent { url: &url, method: &method, has_body: body.is_some(), lane: &lane_of };
                redirect::next(got.status(), got.location(), &sent)
            } else {
                Ok(None)
            };
            // Also where it may not be followed: it was heard.
            if !matches!(hop, Ok(None)) {
                self.pass(&got, rules)?;
            }
            let Some(hop) = hop? else { return Ok((got, url)) };
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

    /// The answer to one hop: the tape's where there is one that answers, else the network's.
    async fn take(
        &self,
        step: &Step<'_>,
        headers: &HeaderMap,
        jar: &Option<Arc<Jar>>,
        profile: &Profile,
        rules: &dyn Rules,
    ) -> Result<Got> {
        let mut number = None;
        if let Some(tape) = &self.0.settings.tape {
            match tape.ask(step.hop(headers, rules)?)? {
                Play::Answer(heard) => return Ok(Got::Taped(heard)),
                Play::Send(n) => number = Some(n),
            }
        }
        let sent = self.transmit(step, with_cookies(headers, jar, step.url), profile).await;
        let answer = sent.inspect_err(|e| self.tell(number, e))?;
        if let Some(jar) = jar {
            jar.take(answer.headers(), step.url);
        }
        Ok(Got::Live { answer, lane: step.lane, number })
    }

    async fn transmit(&self, step: &Step<'_>, headers: HeaderMap, profile: &Profile) -> Result<reqwest::Response> {
        if self.0.settings.range == Range::ThisMachine && !is_this_machine(step.host) {
            return Err(Error::new(Kind::UpstreamUnavailable, "nothing here leaves this machine")
                .with_retryable(false)
                .hint("a test talks to a server of its own on 127.0.0.1"));
        }
        let proxy = self.0.settings.proxy(step.lane)?;
        let pool = self.0.pool(step.lane, profile)?;
        let mut sending = pool.request(step.method.clone(), step.url.clone()).headers(headers);
        if let Some(body) = step.body {
            sending = sending.body(body.to_vec());
        }
        let answer = sending.send().await.map_err(|e| explain(e, step.url, proxy))?;
        if answer.status().as_u16() == 407 && proxy.is_some_and(Proxy::speaks_http) {
            return Err(proxy_failed(step.url, "it wants another user name or password"));
        }
        Ok(answer)
    }

    /// Tells the tape of an answer that is followed elsewhere.
    fn pass(&self, got: &Got, rules: &dyn Rules) -> Result<()> {
        if let (Some(tape), Got::Live { answer, number: Some(number), .. }) = (&self.0.settings.tape, got) {
            tape.keep(*number, heard(answer.status().as_u16(), listed(answer.headers()), Vec::new(), rules)?);
        }
        Ok(())
    }

    async fn finish(&self, got: Got, url: Url, limits: &Limits<'_>, rules: &dyn Rules) -> Result<Response> {
        let heard = match got {
            Got::Taped(heard) => {
                limits.take(heard.body.len(), heard.body.len(), &url)?;
                heard
            }
            Got::Live { answer, lane, number } => {
                let (status, headers) = (answer.status().as_u16(), listed(answer.headers()));
                let read = read(answer, &url, limits, self.0.settings.proxy(lane)?).await;
                let body =
                    read.and_then(|body| unpacked(&headers, body, &url)).inspect_err(|e| self.tell(number, e))?;
                match (&self.0.settings.tape, number) {
                    (Some(tape), Some(number)) => tape.keep(number, heard(status, headers, body, rules)?),
                    _ => Heard { status, headers, body },
                }
            }
        };
        let Heard { status, headers, body } = heard;
        Ok(Response { status, ok: status < 400, url: url.into(), headers, body })
    }

    fn tell(&self, number: Option<usize>, error: &Error) {
        if let (Some(tape), Some(number)) = (&self.0.settings.tape, number) {
            tape.failed(number, error);
        }
    }
}

/// One hop on its way.
struct Step<'a> {
    url: &'a Url,
    host: &'a str,
    lane: Lane,
    method: &'a reqwest::Method,
    body: Option<&'a [u8]>,
}

impl Step<'_> {
    /// As a tape sees it.
    fn hop(&self, headers: &HeaderMap, rules: &dyn Rules) -> Result<Hop> {
        Ok(Hop {
            method: self.method.as_str().to_owned(),
            url: redacted(self.url.as_str(), rules)?,
            headers: without_values(listed(headers), rules)?,
            body: self.body.map(|body| rules.redact(body.to_vec())).transpose()?,
        })
    }
}

/// The answer to a hop.
enum Got {
    Live {
        answer: reqwest::Response,
        lane: Lane,
        /// Its number on the tape, if there is one.
        number: Option<usize>,
    },
    Taped(Heard),
}

impl Got {
    /// Its number on the tape, if there is one that listens.
    fn number(&self) -> Option<usize> {
        match self {
            Got::Live { number, .. } => *number,
            Got::Taped(_) => None,
        }
    }

    fn status(&self) -> u16 {
        match self {
            Got::Live { answer, .. } => answer.status().as_u16(),
            Got::Taped(heard) => heard.status,
        }
    }

    fn location(&self) -> Option<&str> {
        match self {
            Got::Live { answer, .. } => {
                answer.headers().get(LOCATION).and_then(|v| std::str::from_utf8(v.as_bytes()).ok())
            }
            Got::Taped(heard) => heard.headers.iter().find(|(n, _)| n == "location").map(|(_, v)| v.as_str()),
        }
    }
}

/// How large an answer may be.
struct Limits<'a> {
    max_bytes: usize,
    allowance: Option<&'a Allowance>,
}

impl Limits<'_> {
    fn too_large(&self, url: &Url) -> Error {
        let place = redirect::place(url);
        Error::new(Kind::TooLarge, format!("the answer of {place} is larger than {} bytes", self.max_bytes))
            .hint("raise `max_bytes`, or ask for less")
    }

    /// Makes room for the next `more` bytes of a body that has `whole` with them.
    fn take(&self, more: usize, whole: usize, url: &Url) -> Result<()> {
        if whole > self.max_bytes {
            return Err(self.too_large(url));
        }
        match self.allowance.filter(|allowance| !allowance.take(more)) {
            None => Ok(()),
            Some(allowance) => Err(Error::new(
                Kind::TooLarge,
                format!("the answers together are larger than {} bytes", allowance.whole()),
            )
            .hint("ask for fewer at once, or give a smaller `max_bytes`")),
        }
    }
}

/// A name is checked when it is resolved; an address is never resolved, so it is checked here.
fn check_literal(host: &str, lane: Lane, url: &Url) -> Result<()> {
    match address(host) {
        Some(ip) => check_address(ip, HostRule { lane, literal: true }).map_err(|e| e.context(redirect::place(url))),
        None => Ok(()),
    }
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    headers.iter().map(pair).collect()
}

fn redacted(text: &str, rules: &dyn Rules) -> Result<String> {
    Ok(String::from_utf8_lossy(&rules.redact(text.as_bytes().to_vec())?).into_owned())
}

fn without_values(pairs: Vec<(String, String)>, rules: &dyn Rules) -> Result<Vec<(String, String)>> {
    pairs.into_iter().map(|(name, value)| Ok((name, redacted(&value, rules)?))).collect()
}

fn heard(status: u16, headers: Vec<(String, String)>, body: Vec<u8>, rules: &dyn Rules) -> Result<Heard> {
    Ok(Heard { status, headers: without_values(headers, rules)?, body: rules.redact(body)? })
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

async fn read(mut answer: reqwest::Response, url: &Url, limits: &Limits<'_>, proxy: Option<&Proxy>) -> Result<Vec<u8>> {
    // Absent where the body is compressed, so it is a short cut and not the rule.
    if answer.content_length().is_some_and(|n| n > limits.max_bytes as u64) {
        return Err(limits.too_large(url));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|e| explain(e, url, proxy))? {
        limits.take(chunk.len(), body.len() + chunk.len(), url)?;
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The body, unless it is packed still: one layer was taken off, and its header with it.
fn unpacked(headers: &[(String, String)], body: Vec<u8>, url: &Url) -> Result<Vec<u8>> {
    const PACKED: [&str; 8] = ["gzip", "x-gzip", "br", "deflate", "zlib", "compress", "x-compress", "zstd"];
    let layers = headers.iter().filter(|(name, _)| name == "content-encoding").flat_map(|(_, value)| value.split(','));
    let known = |layer: &str| PACKED.into_iter().find(|packed| layer.trim().eq_ignore_ascii_case(packed));
    let layers: Vec<&str> = layers.filter_map(known).take(5).collect();
    if body.is_empty() || layers.is_empty() {
        return Ok(body);
    }
    let message = format!("{} sent an answer that is packed as {}", redirect::place(url), layers.join(", "));
    Err(Error::new(Kind::UpstreamUnavailable, message).with_retryable(false).hint(
        "gzip or br, once, is unpacked; a header `accept-encoding: identity` asks for an answer that is not packed",
    ))
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

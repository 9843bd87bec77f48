//! What is sent and what comes back, as values, and the reading of both. It opens nothing.
//! Errors here name no more of a URL than scheme, host and port.

use super::cookie::JarName;
use super::lane::Lane;
use super::{decode, redirect};
use crate::base::error::{Error, Result};
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Wall clock for a whole request, redirects and body included, where none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an answer's body after decompression, where no number is given: 20 MiB.
pub const DEFAULT_MAX_BYTES: usize = 20 << 20;
/// Longest URL in bytes, query included.
pub const MAX_URL: usize = 64 << 10;

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
    /// Pairs and files, as a form with files is sent.
    Multipart(Vec<(String, String)>, Vec<File>),
}

/// A file of a form.
#[derive(Clone)]
pub struct File {
    /// The form's field.
    pub field: String,
    /// The file's name, without a path.
    pub name: String,
    /// Its content type; `application/octet-stream` where none is given.
    pub media_type: Option<String>,
    /// What it holds.
    pub data: Vec<u8>,
}

/// Who a request pretends to be.
#[derive(Clone, Default)]
pub enum Profile {
    /// A program: few headers, and no cookie is kept or sent.
    #[default]
    Plain,
    /// A desktop browser: its headers, and the cookies of this jar.
    Browser(JarName),
}

/// Bytes that several answers share; see [`Request::allowance`].
#[derive(Debug)]
pub struct Allowance {
    left: AtomicUsize,
    whole: usize,
}

impl Allowance {
    /// So many bytes for all of them together.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Allowance { left: AtomicUsize::new(bytes), whole: bytes })
    }

    /// Takes `bytes` away, where there are so many left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).is_ok()
    }

    pub(super) fn whole(&self) -> usize {
        self.whole
    }
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
    /// The only lane it may travel on; any where none is given.
    pub lane: Option<Lane>,
    /// Whose headers and cookies it has.
    pub profile: Profile,
    /// What the answers of several requests may hold together, beside what each may.
    pub allowance: Option<Arc<Allowance>>,
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
            lane: None,
            profile: Profile::Plain,
            allowance: None,
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

/// The host of a URL as the client would connect to it, normalised.
///
/// # Errors
/// `invalid_arguments` as for a request.
pub fn host_of(url: &str) -> Result<String> {
    parse_url(url, &[]).map(|url| super::lane::normalise(url.host_str().unwrap_or_default()))
}

pub(super) fn parse_url(text: &str, params: &[(String, String)]) -> Result<Url> {
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

pub(super) fn parse_method(name: &str) -> Result<Method> {
    let upper = name.trim().to_ascii_uppercase();
    // A tunnel and an echo of the request's own headers are nothing a script needs.
    if upper.is_empty() || upper == "CONNECT" || upper == "TRACE" || upper.len() > 32 {
        return Err(Error::invalid("the method cannot be used").hint("use get, post, put, patch, delete or head"));
    }
    Method::from_bytes(upper.as_bytes())
        .map_err(|_| Error::invalid("the method is not a word").hint("use get, post, put, patch, delete or head"))
}

pub(super) fn parse_headers(pairs: &[(String, String)], profile: &Profile) -> Result<HeaderMap> {
    /// Owned by the connection: setting them would break the framing, name another site than the one permitted, or speak to
    /// the proxy in the host's name.
    const OWNED: [&str; 11] = [
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
        "proxy-authorization",
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
    let mut default = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    match profile {
        Profile::Plain => default(USER_AGENT, concat!("lapidary/", env!("CARGO_PKG_VERSION"))),
        Profile::Browser(_) => {
            default(
                USER_AGENT,
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
            );
            default(ACCEPT, "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8");
            default(ACCEPT_LANGUAGE, "en-US,en;q=0.9");
            default(HeaderName::from_static("upgrade-insecure-requests"), "1");
        }
    }
    Ok(headers)
}

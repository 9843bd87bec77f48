//! The options of a request, from a script's map to what is sent. The one place that writes a credential's value into it.
//! It knows script values and what a request is, not where one goes.

use super::Bounds;
use crate::base::error::{Error, Kind, Result, excerpt};
use crate::host::argument::{ANY, Options, pairs, scalar, unfit, with_bytes};
use crate::script::ctx::Ctx;
use crate::script::{control, value};
use crate::service::fetch::{self, Body, File, JarName, Outgoing, Profile, Request};
use crate::service::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rhai::{Array, Blob, Dynamic, ImmutableString, Map};

const OPTIONS: [&str; 10] =
    ["timeout", "headers", "params", "json", "data", "files", "auth", "allow_redirects", "max_bytes", "profile"];

/// A request without method and address, as `opts` describe it.
pub(super) fn read(ctx: &Ctx, bounds: &Bounds, opts: Map) -> Result<Outgoing> {
    let options = Options::read(opts, &OPTIONS)?;
    let mut parts = Parts::default();
    let mut headers = parts.optional_pairs(&options, "headers")?;
    if let Some(auth) = options.value("auth") {
        if headers.iter().any(|(name, _)| name.trim().eq_ignore_ascii_case("authorization")) {
            return Err(Error::invalid("a request has either `auth` or a header `authorization`, not both"));
        }
        headers.push(("authorization".to_owned(), parts.auth(auth)?));
    }
    let request = Request {
        timeout: options.limit("timeout")?.unwrap_or(fetch::DEFAULT_TIMEOUT),
        headers,
        params: parts.optional_pairs(&options, "params")?,
        body: parts.body(&options)?,
        allow_redirects: options.flag("allow_redirects")?,
        max_bytes: max_bytes(ctx, &options)?,
        lane: bounds.lane,
        profile: profile(ctx, options.text("profile")?.as_deref().or(bounds.profile).unwrap_or("plain"))?,
        ..Request::new("", "")
    };
    Ok(Outgoing { request, secrets: parts.secrets, derived: parts.derived })
}

fn max_bytes(ctx: &Ctx, options: &Options) -> Result<usize> {
    let memory = usize::try_from(ctx.control.budget().memory).unwrap_or(usize::MAX);
    match options.count("max_bytes", 0..=ANY)? {
        // Said before the budget is touched, which would end the call.
        Some(given) if given > memory => {
            Err(Error::new(Kind::Quota, format!("`max_bytes` is {given}, and this call may hold {memory} bytes"))
                .hint("ask for less, or raise `limits.memory_mb` of the plugin"))
        }
        Some(given) => Ok(given),
        // A plugin with little memory can still fetch something.
        None => Ok(fetch::DEFAULT_MAX_BYTES.min(memory / 2)),
    }
}

fn profile(ctx: &Ctx, text: &str) -> Result<Profile> {
    let jar = match text.split_once(':') {
        None if text == "plain" => return Ok(Profile::Plain),
        None if text == "browser" => "",
        Some(("browser", name)) if is_jar(name) => name,
        _ => {
            let shown = excerpt(text, 60);
            return Err(Error::invalid(format!("there is no profile `{shown}`"))
                .hint("the profiles are plain, browser, and browser:name with up to 32 letters, digits, `-` and `_`"));
        }
    };
    // What was done in a private chat follows nobody out of it.
    let chat = ctx.chat.as_deref().filter(|_| ctx.private).unwrap_or_default();
    Ok(Profile::Browser(JarName { owner: ctx.plugin.name.to_string(), name: format!("{jar}:{chat}") }))
}

fn is_jar(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// What was read so far, as far as credentials are concerned.
#[derive(Default)]
struct Parts {
    secrets: Vec<Secret>,
    derived: Vec<String>,
}

impl Parts {
    /// A scalar, or the value of a credential.
    fn text(&mut self, value: &Dynamic, place: &str) -> Result<ImmutableString> {
        match value.read_lock::<Secret>() {
            Some(secret) => {
                self.secrets.push(secret.clone());
                Ok(secret.expose().into())
            }
            None => scalar(value, place),
        }
    }

    fn optional_pairs(&mut self, options: &Options, key: &str) -> Result<Vec<(String, String)>> {
        options.value(key).map_or_else(|| Ok(Vec::new()), |value| self.pairs(value, key))
    }

    /// Pairs whose values may be credentials.
    fn pairs(&mut self, value: &Dynamic, name: &str) -> Result<Vec<(String, String)>> {
        pairs(value, name, &mut |value, place| self.text(value, place))
    }

    /// The header for a user name with a password, or for a token.
    fn auth(&mut self, value: &Dynamic) -> Result<String> {
        let wanted = "a token, or an array of a user name and a password";
        let Some(pair) = value.read_lock::<Array>() else {
            if !value.is_string() && !value.is::<Secret>() {
                return Err(unfit("auth", wanted, value));
            }
            return Ok(format!("Bearer {}", self.text(value, "auth")?));
        };
        let [user, password] = pair.as_slice() else { return Err(unfit("auth", wanted, value)) };
        let before = self.secrets.len();
        let (user, password) = (self.text(user, "auth[0]")?, self.text(password, "auth[1]")?);
        if user.contains(':') {
            return Err(Error::invalid("`auth[0]` holds a colon, which ends a user name"));
        }
        let login = format!("{user}:{password}");
        let header = format!("Basic {}", STANDARD.encode(&login));
        if self.secrets.len() > before {
            self.derived.push(login);
        }
        Ok(header)
    }

    fn body(&mut self, options: &Options) -> Result<Body> {
        if let Some(files) = options.value("files") {
            if options.value("json").is_some() {
                return Err(Error::invalid("a request has either `json` or `files`, not both"));
            }
            let fields = match options.value("data") {
                Some(data) if !data.is_map() => return Err(unfit("data", "a map where there are `files`", data)),
                Some(data) => self.pairs(data, "data")?,
                None => Vec::new(),
            };
            return Ok(Body::Multipart(fields, self::files(files)?));
        }
        match (options.value("json"), options.value("data")) {
            (None, None) => Ok(Body::Empty),
            (Some(_), Some(_)) => Err(Error::invalid("a request has either `json` or `data`, not both")),
            (Some(json), None) if has_secret(json, value::MAX_DEPTH) => {
                control::reserve(value::weight(json))?;
                Ok(Body::Json(value::to_json(&self.revealed(json, value::MAX_DEPTH))?))
            }
            (Some(json), None) => Ok(Body::Json(value::to_json(json)?)),
            (None, Some(data)) => {
                if let Some(text) = data.read_lock::<ImmutableString>() {
                    Ok(Body::Text(text.to_string()))
                } else if let Some(blob) = data.read_lock::<Blob>() {
                    Ok(Body::Bytes(blob.clone()))
                } else if data.is_map() {
                    Ok(Body::Form(self.pairs(data, "data")?))
                } else {
                    Err(unfit("data", "text, a blob or a map", data))
                }
            }
        }
    }

    /// A copy with the values of credentials in their places. It leaves this file as JSON only.
    fn revealed(&mut self, value: &Dynamic, left: usize) -> Dynamic {
        if let Some(secret) = value.read_lock::<Secret>() {
            self.secrets.push(secret.clone());
            return secret.expose().into();
        }
        let Some(left) = left.checked_sub(1) else { return value.clone() };
        if let Some(items) = value.read_lock::<Array>() {
            return Dynamic::from_array(items.iter().map(|item| self.revealed(item, left)).collect());
        }
        if let Some(map) = value.read_lock::<Map>() {
            return Dynamic::from_map(map.iter().map(|(k, item)| (k.clone(), self.revealed(item, left))).collect());
        }
        value.clone()
    }
}

fn has_secret(value: &Dynamic, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    if let Some(items) = value.read_lock::<Array>() {
        return items.iter().any(|item| has_secret(item, left));
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.values().any(|item| has_secret(item, left));
    }
    value.is::<Secret>()
}

fn files(value: &Dynamic) -> Result<Vec<File>> {
    let map = value.read_lock::<Map>().ok_or_else(|| unfit("files", "a map", value))?;
    let mut out = Vec::new();
    for (field, value) in map.iter().filter(|(_, value)| !value.is_unit()) {
        let place = format!("files.{field}");
        match value.read_lock::<Array>() {
            Some(list) if list.iter().all(Dynamic::is_map) && !list.is_empty() => {
                for entry in list.iter() {
                    out.push(file(field, entry, &place)?);
                }
            }
            _ => out.push(file(field, value, &place)?),
        }
    }
    Ok(out)
}

/// One file: text, a blob, `[name, data, type?]`, or a map with `data` and, where wanted, `name` and `type`.
fn file(field: &str, value: &Dynamic, place: &str) -> Result<File> {
    let wanted = "text, a blob, [name, data, type] or #{name, data, type}";
    let text = |value: &Dynamic, place: String| {
        value.read_lock::<ImmutableString>().map(|t| t.to_string()).ok_or_else(|| unfit(&place, "text", value))
    };
    let mut file = File { field: field.to_owned(), name: field.to_owned(), media_type: None, data: Vec::new() };
    if let Some(list) = value.read_lock::<Array>() {
        let (name, data, media_type) = match list.as_slice() {
            [name, data] => (name, data, None),
            [name, data, media_type] => (name, data, Some(media_type)),
            _ => return Err(unfit(place, wanted, value)),
        };
        file.name = text(name, format!("{place}[0]"))?;
        file.media_type = media_type.map(|t| text(t, format!("{place}[2]"))).transpose()?;
        file.data = bytes(data, &format!("{place}[1]"))?;
    } else if let Some(map) = value.read_lock::<Map>() {
        let options = Options::read(map.clone(), &["name", "data", "type"]).map_err(|e| e.context(place))?;
        let data = options.value("data").ok_or_else(|| Error::invalid(format!("`{place}` has no `data`")))?;
        if let Some(name) = options.text("name")? {
            file.name = name.to_string();
        }
        file.media_type = options.text("type")?.map(|t| t.to_string());
        file.data = bytes(data, &format!("{place}.data"))?;
    } else if value.is_string() || value.is_blob() {
        file.data = bytes(value, place)?;
    } else {
        return Err(unfit(place, wanted, value));
    }
    Ok(file)
}

fn bytes(value: &Dynamic, place: &str) -> Result<Vec<u8>> {
    with_bytes(value, place, |bytes| {
        control::reserve(bytes.len())?;
        Ok(bytes.to_vec())
    })
}

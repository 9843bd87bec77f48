//! `net::`: HTTP requests of the plugin. Sending is the network's, permission `service::fetch`'s; here options are read.

use crate::base::error::{Error, Kind, Result};
use crate::host::argument::{Options, pairs, unfit};
use crate::host::json;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::script::{control, value};
use crate::service::fetch::{self, Body, Request};
use rhai::{Blob, Dynamic, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "net",
        "HTTP requests. The plugin needs EXTERNAL_HTTP for the host of every hop, hosts of the local network included. Options of every request: `timeout` (seconds, 30 unless given; the call's deadline counts too), `headers` and `params` (maps), one of `json` (any value) and `data` (text, a blob, or a map sent as a form), `allow_redirects` (by itself the internet's redirects are followed and the local network's are not), `max_bytes` (of the answer, 20 MiB unless given).",
        || rhai::exported_module!(api),
    )
}

const OPTIONS: [&str; 7] = ["timeout", "headers", "params", "json", "data", "allow_redirects", "max_bytes"];

/// An answer as a script holds it.
#[derive(Debug, Clone)]
pub struct Response(Arc<fetch::Response>);

fn request(ctx: &Ctx, method: &str, url: &str, opts: Map) -> Result<Request> {
    let options = Options::read(opts, &OPTIONS)?;
    let memory = usize::try_from(ctx.control.budget().memory).unwrap_or(usize::MAX);
    let max_bytes = match options.count("max_bytes", usize::MAX >> 1)? {
        // Said before the budget is touched, which would end the call.
        Some(given) if given > memory => {
            return Err(Error::new(
                Kind::Quota,
                format!("`max_bytes` is {given}, and this call may hold {memory} bytes"),
            )
            .hint("ask for less, or raise `limits.memory_mb` of the plugin"));
        }
        Some(given) => given,
        // A plugin with little memory can still fetch something.
        None => fetch::DEFAULT_MAX_BYTES.min(memory / 2),
    };
    control::reserve(max_bytes)?;
    Ok(Request {
        timeout: options.seconds("timeout")?.unwrap_or(fetch::DEFAULT_TIMEOUT),
        headers: options.pairs("headers")?,
        params: options.pairs("params")?,
        body: body(&options)?,
        allow_redirects: options.flag("allow_redirects")?,
        max_bytes,
        ..Request::new(method, url)
    })
}

fn body(options: &Options) -> Result<Body> {
    match (options.value("json"), options.value("data")) {
        (None, None) => Ok(Body::Empty),
        (Some(_), Some(_)) => Err(Error::invalid("a request has either `json` or `data`, not both")),
        (Some(json), None) => Ok(Body::Json(value::to_json(json)?)),
        (None, Some(data)) => {
            if let Some(text) = data.read_lock::<ImmutableString>() {
                Ok(Body::Text(text.to_string()))
            } else if let Some(blob) = data.read_lock::<Blob>() {
                Ok(Body::Bytes(blob.clone()))
            } else if data.is_map() {
                Ok(Body::Form(pairs(data, "data")?))
            } else {
                Err(unfit("data", "text, a blob or a map", data))
            }
        }
    }
}

fn send(call: &NativeCallContext, method: &str, url: &str, opts: Map) -> Res<Response> {
    let ctx = ctx::live(call)?;
    let sent = request(&ctx, method, url, opts).and_then(|request| {
        let plugin = &ctx.plugin;
        ctx.control.wait(&ctx.services.runtime, fetch::send(&ctx.services.net, &plugin.name, &plugin.grants, request))
    });
    Ok(Response(Arc::new(sent.or_raise(call)?)))
}

fn headers(response: &Response) -> Map {
    let mut map = Map::new();
    for (name, value) in &response.0.headers {
        let slot = map.entry(name.as_str().into()).or_insert(Dynamic::UNIT);
        // A repeated header means the list of its values.
        let joined = match slot.read_lock::<ImmutableString>() {
            Some(before) => format!("{}, {value}", *before),
            None => value.clone(),
        };
        *slot = joined.into();
    }
    map
}

fn text(response: &Response) -> Result<String> {
    control::reserve(response.0.body.len().saturating_mul(2))?;
    Ok(response.0.text())
}

fn read_json(response: &Response) -> Result<Dynamic> {
    json::read(&text(response)?).map_err(|e| e.context(format!("the answer with status {}", response.0.status)))
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::send;
    use crate::script::control;
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::service::fetch;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Blob, Map};

    /// An answer, whatever its status. Properties: `status` (integer), `ok` (below 400), `url` (of the last hop), `headers`
    /// (a map, names in lower case), `text`, `json`, `bytes` (a blob); `text` and `json` are also methods.
    pub type Response = super::Response;

    #[rhai_fn(return_raw)]
    pub fn get(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "GET", url, Map::new())
    }

    /// Sends a GET request. A status of 400 and above is an answer, not an error: look at `ok`.
    ///
    /// Throws `permission_denied` for a host that the plugin may not reach (the hint says what to declare or to type),
    /// `invalid_arguments` for a request that cannot be sent, `timeout`, `too_large` for an answer over `max_bytes`,
    /// `upstream_unavailable` where nothing answers; so in all functions here.
    ///
    /// ```rhai
    /// let answer = net::get("http://localhost:8080/greeting", #{params: #{name: "Ann"}, timeout: 5});
    /// assert(answer.ok, "the service answers");
    /// assert_eq(answer.json.hello, "Ann");
    /// ```
    #[rhai_fn(return_raw, name = "get")]
    pub fn get_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "GET", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn post(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "POST", url, Map::new())
    }

    /// Sends a POST request.
    ///
    /// ```rhai
    /// let answer = net::post("http://localhost:8080/echo", #{json: #{title: "Tea"}});
    /// assert_eq(answer.json.body, `{"title":"Tea"}`);
    /// ```
    #[rhai_fn(return_raw, name = "post")]
    pub fn post_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "POST", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn put(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "PUT", url, Map::new())
    }

    /// Sends a PUT request.
    ///
    /// ```rhai
    /// let answer = net::put("http://localhost:8080/echo", #{data: "plain text", headers: #{"X-Note": "1"}});
    /// assert_eq(answer.json.body, "plain text");
    /// ```
    #[rhai_fn(return_raw, name = "put")]
    pub fn put_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "PUT", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn patch(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "PATCH", url, Map::new())
    }

    /// Sends a PATCH request.
    ///
    /// ```rhai
    /// let answer = net::patch("http://localhost:8080/echo", #{data: #{name: "Ann", tag: ["a", "b"]}});
    /// assert_eq(answer.json.body, "name=Ann&tag=a&tag=b");
    /// ```
    #[rhai_fn(return_raw, name = "patch")]
    pub fn patch_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "PATCH", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn delete(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "DELETE", url, Map::new())
    }

    /// Sends a DELETE request.
    ///
    /// ```rhai
    /// assert_eq(net::delete("http://localhost:8080/echo").json.method, "DELETE");
    /// ```
    #[rhai_fn(return_raw, name = "delete")]
    pub fn delete_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "DELETE", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn head(call: NativeCallContext, url: &str) -> Res<Response> {
        send(&call, "HEAD", url, Map::new())
    }

    /// Sends a HEAD request: status and headers without a body.
    ///
    /// ```rhai
    /// let answer = net::head("http://localhost:8080/greeting");
    /// assert_eq(answer.text, "");
    /// assert_eq(answer.headers["content-type"], "application/json");
    /// ```
    #[rhai_fn(return_raw, name = "head")]
    pub fn head_with(call: NativeCallContext, url: &str, opts: Map) -> Res<Response> {
        send(&call, "HEAD", url, opts)
    }

    #[rhai_fn(return_raw)]
    pub fn request(call: NativeCallContext, method: &str, url: &str) -> Res<Response> {
        send(&call, method, url, Map::new())
    }

    /// Sends a request of any other method.
    ///
    /// ```rhai
    /// assert_eq(net::request("OPTIONS", "http://localhost:8080/echo").json.method, "OPTIONS");
    /// ```
    #[rhai_fn(return_raw, name = "request")]
    pub fn request_with(call: NativeCallContext, method: &str, url: &str, opts: Map) -> Res<Response> {
        send(&call, method, url, opts)
    }

    /// Which lane a host belongs to by its text alone: `"lan"` for this machine and the network around it, else `"wan"`.
    ///
    /// ```rhai
    /// assert_eq(net::classify("printer.lan"), "lan");
    /// assert_eq(net::classify("example.org"), "wan");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn classify(call: NativeCallContext, host: &str) -> Res<String> {
        ctx::live(&call)?;
        Ok(fetch::classify(host).to_owned())
    }

    /// The status code.
    #[rhai_fn(get = "status", pure)]
    pub fn status(response: &mut Response) -> i64 {
        response.0.status.into()
    }

    /// Whether the status is below 400.
    #[rhai_fn(get = "ok", pure)]
    pub fn ok(response: &mut Response) -> bool {
        response.0.ok
    }

    /// The address of the last hop.
    #[rhai_fn(get = "url", pure)]
    pub fn url(response: &mut Response) -> String {
        response.0.url.clone()
    }

    /// The headers as a map, names in lower case; a repeated header has its values with `, ` between.
    #[rhai_fn(get = "headers", pure)]
    pub fn headers(response: &mut Response) -> Map {
        super::headers(response)
    }

    /// The body as text, by its charset.
    #[rhai_fn(get = "text", global, name = "text", return_raw, pure)]
    pub fn text(call: NativeCallContext, response: &mut Response) -> Res<String> {
        super::text(response).or_raise(&call)
    }

    /// The value behind a JSON body. Throws `invalid_arguments` where it is not JSON.
    #[rhai_fn(get = "json", global, name = "json", return_raw, pure)]
    pub fn json(call: NativeCallContext, response: &mut Response) -> Res<Dynamic> {
        super::read_json(response).or_raise(&call)
    }

    /// The body as a blob.
    #[rhai_fn(get = "bytes", return_raw, pure)]
    pub fn bytes(call: NativeCallContext, response: &mut Response) -> Res<Blob> {
        control::reserve(response.0.body.len()).or_raise(&call)?;
        Ok(response.0.body.clone())
    }
}

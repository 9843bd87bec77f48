//! `net::`: HTTP requests of the plugin. Sending is the network's, permission `service::fetch`'s; here scripts ask for it.

use crate::base::error::{Error, Result};
use crate::host::{argument, callback, json};
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::script::{control, value};
use crate::service::address;
use crate::service::fetch::{self, Allowance, Lane, Outgoing, Sender};
use crate::service::secret::Redactor;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use std::borrow::Cow;
use std::sync::Arc;

mod options;
mod session;

pub use session::Session;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "net",
        "HTTP requests on two lanes. A host of the local network (this machine, private addresses, names in .local, .lan and .home.arpa, names without a dot, registered direct hosts) is reached directly and its redirects are not followed by themselves; every other host is the internet, reached through the proxy of `user/lapidary.toml` where there is one, and never around it; in a private chat it is not reached at all. Which lane a host is on follows from its text alone. The plugin needs EXTERNAL_HTTP for the host of every hop, hosts of the local network included. Options of every request: `timeout` (seconds, 30 unless given; the call's deadline counts too), `headers` and `params` (maps), one of `json` (any value) and `data` (text, a blob, or a map sent as a form), `files` (a map of field names, sent as a form with files together with a `data` that is a map; each file is text, a blob, `[name, data, type]` or `#{name, data, type}`, or an array of such maps), `auth` (`[user, password]`, or a token), `allow_redirects` (by itself the internet's redirects are followed and the local network's are not), `max_bytes` (of the answer, unpacked, 20 MiB unless given), `profile` (`\"plain\"`, which keeps no cookies; `\"browser\"`, with a browser's headers and cookies; `\"browser:name\"` for other cookies of the same plugin). A `Secret` may stand in `auth`, for a header, a value of `params`, or a value in a body; the request then goes only to hosts that the credential names, over https on the internet, and every answer has `***` where the value of a credential was that the plugin may use. Nothing is sent twice by itself: `std/retry` tries again where a script asks.",
        || {
            let mut module = rhai::exported_module!(api);
            module.combine(session::methods());
            module
        },
    )
}

/// An answer as a script holds it.
#[derive(Debug, Clone)]
pub struct Response {
    answer: Arc<fetch::Response>,
    /// What takes values out of it once more where its charset hid them.
    redactor: Option<Arc<Redactor>>,
}

impl Response {
    fn new(ctx: &Ctx, answer: fetch::Response) -> Response {
        Response { answer: Arc::new(answer), redactor: ctx.redactor() }
    }
}

/// Where requests may go and as whom, beside what their options say.
#[derive(Default)]
struct Bounds<'a> {
    lane: Option<Lane>,
    profile: Option<&'a str>,
}

/// Sends for the plugin of this call.
pub(super) fn sender(ctx: &Ctx) -> Sender<'_> {
    let plugin = &ctx.plugin;
    // From now on what the plugin may ask for is among them.
    let _ = ctx.redactor();
    Sender {
        client: &ctx.services.net,
        plugin: &plugin.name,
        grants: &plugin.grants,
        direct: &plugin.direct,
        is_private: ctx.private,
        used: &ctx.used,
    }
}

fn send(call: &NativeCallContext, method: &str, url: &str, opts: Map) -> Res<Response> {
    send_within(call, &Bounds::default(), method, url, opts)
}

fn send_within(call: &NativeCallContext, bounds: &Bounds, method: &str, url: &str, opts: Map) -> Res<Response> {
    let ctx = ctx::live(call)?;
    ask_direct(call, &ctx)?;
    let sent = options::read(&ctx, bounds, opts).and_then(|outgoing| {
        control::reserve(outgoing.request.max_bytes)?;
        let outgoing = addressed(outgoing, method, url);
        ctx.control.wait(&ctx.services.runtime, sender(&ctx).send(outgoing))
    });
    Ok(Response::new(&ctx, sent.or_raise(call)?))
}

fn addressed(mut outgoing: Outgoing, method: &str, url: &str) -> Outgoing {
    method.clone_into(&mut outgoing.request.method);
    url.clone_into(&mut outgoing.request.url);
    outgoing
}

/// Most requests of one `get_all`.
const MOST_AT_ONCE: usize = 1_000;

fn get_all(call: &NativeCallContext, urls: &Array, opts: Map) -> Res<Array> {
    let ctx = ctx::live(call)?;
    ask_direct(call, &ctx)?;
    let answers = options::read(&ctx, &Bounds::default(), opts).and_then(|mut outgoing| {
        if urls.len() > MOST_AT_ONCE {
            return Err(Error::invalid(format!("{} urls are more than {MOST_AT_ONCE}", urls.len())));
        }
        // What may be held is for all answers together.
        let memory = usize::try_from(ctx.control.budget().memory).unwrap_or(usize::MAX);
        let together = outgoing.request.max_bytes.saturating_mul(urls.len()).min(memory / 2);
        // Those under way have a copy of what is sent, and what they send of it.
        let sent = outgoing.weight().saturating_mul(2 * urls.len().min(fetch::AT_ONCE));
        control::reserve(together.saturating_add(sent))?;
        outgoing.request.allowance = Some(Allowance::new(together));
        let all = urls.iter().map(|url| match url.read_lock::<ImmutableString>() {
            Some(url) => Ok(addressed(outgoing.clone(), "GET", &url)),
            None => Err(super::argument::unfit("urls", "an array of texts", url)),
        });
        ctx.control.wait(&ctx.services.runtime, async { Ok(sender(&ctx).send_all(all).await) })
    });
    let one = |answer: Result<fetch::Response>| match answer {
        Ok(answer) => Dynamic::from(Response::new(&ctx, answer)),
        Err(e) => value::error_to_dynamic(&e),
    };
    Ok(answers.or_raise(call)?.into_iter().map(one).collect())
}

/// The hosts in what a script gave or its function returned: a text is one; what is no text is left out.
fn hosts(given: &Dynamic) -> Result<Vec<String>> {
    let text = |value: &Dynamic| value.read_lock::<ImmutableString>().map(|text| text.to_string());
    if let Some(host) = text(given) {
        return Ok(vec![host]);
    }
    let list = given.read_lock::<Array>();
    let list = list.ok_or_else(|| super::argument::unfit("hosts", "an array of host names", given))?;
    Ok(list.iter().filter_map(text).collect())
}

fn register_direct(call: &NativeCallContext, given: &Dynamic) -> Res<()> {
    let ctx = ctx::live(call)?;
    let direct = &ctx.plugin.direct;
    let function = match (given.read_lock::<ImmutableString>(), given.read_lock::<FnPtr>()) {
        // A host that has to be registered has a dot or a colon, and the name of a function has none.
        (Some(text), _) => (!text.contains(['.', ':'])).then(|| text.to_string()),
        (_, Some(pointer)) if pointer.is_anonymous() || pointer.is_curried() => {
            let error = Error::invalid("a closure ends with this call").hint("give the name of a function, as text");
            return Err(ctx::raise(call, &error));
        }
        (_, Some(pointer)) => Some(pointer.fn_name().to_owned()),
        (None, None) => None,
    };
    let Some(function) = function else {
        return hosts(given).and_then(|hosts| direct.set(&hosts)).or_raise(call);
    };
    let said = call_named(call, &function)?;
    hosts(&said).and_then(|hosts| direct.set_by(&function, &hosts, ctx.services.clock.unix_ms())).or_raise(call)
}

fn call_named(call: &NativeCallContext, function: &str) -> Res<Dynamic> {
    callback::run(call, &FnPtr::new(function)?, ())
}

/// Asks the function again that names direct hosts, where its last answer is old.
pub(super) fn ask_direct(call: &NativeCallContext, ctx: &Ctx) -> Res<()> {
    let direct = &ctx.plugin.direct;
    let Some(function) = direct.due(ctx.services.clock.unix_ms()) else { return Ok(()) };
    match call_named(call, &function) {
        Ok(said) => direct.renew(&hosts(&said).unwrap_or_default()),
        // Another file of the plugin registered it; what it said last holds here.
        Err(e) if matches!(&*e, EvalAltResult::ErrorFunctionNotFound(..)) => {}
        Err(e) => {
            control::check().or_raise(call)?;
            drop(e);
            direct.renew(&[]);
            ctx.log("warn", &format!("`{function}` names no direct hosts: it failed"));
        }
    }
    Ok(())
}

fn headers(response: &Response) -> Map {
    let mut map = Map::new();
    for (name, value) in &response.answer.headers {
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
    control::reserve(response.answer.body.len().saturating_mul(2))?;
    let text = response.answer.text();
    Ok(match response.redactor.as_ref().map(|redactor| redactor.text(&text)) {
        Some(Cow::Owned(text)) => text,
        Some(Cow::Borrowed(_)) | None => text,
    })
}

fn read_json(response: &Response) -> Result<Dynamic> {
    json::read(&text(response)?).map_err(|e| e.context(format!("the answer with status {}", response.answer.status)))
}

fn parts(address: &str, base: Option<&str>) -> Result<Map> {
    let parts = address::parse(address, base)?;
    let mut map = Map::new();
    for (key, text) in [
        ("url", parts.url),
        ("scheme", parts.scheme),
        ("host", parts.host),
        ("path", parts.path),
        ("query", parts.query),
        ("fragment", parts.fragment),
    ] {
        map.insert(key.into(), text.into());
    }
    map.insert("port".into(), i64::from(parts.port).into());
    Ok(map)
}

fn with_params(address: &str, params: &Dynamic) -> Result<String> {
    let pairs = argument::pairs(params, "params", &mut argument::scalar)?;
    address::with_params(address, &pairs)
}

fn classify(call: &NativeCallContext, host: &str) -> Res<String> {
    let ctx = ctx::live(call)?;
    ask_direct(call, &ctx)?;
    Ok(ctx.plugin.direct.lane(host).word().to_owned())
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::{Session, send};
    use crate::script::control;
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Blob, Map};

    /// An answer, whatever its status. Properties: `status` (integer), `ok` (below 400), `url` (of the last hop), `headers`
    /// (a map, names in lower case), `text`, `json` (as `json::decode` reads it), `bytes` (a blob); `text` and `json` are
    /// also methods.
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

    #[rhai_fn(return_raw)]
    pub fn parse(call: NativeCallContext, address: &str) -> Res<Map> {
        super::parts(address, None).or_raise(&call)
    }

    /// Takes an address apart, as a request would read it; a relative one is read from `base`. Gives a map: `url` (the whole in
    /// its one spelling), `scheme`, `host` (lower case, no brackets), `port` (an integer), `path`, `query`, `fragment`.
    /// Nothing is sent, and no permission is needed.
    ///
    /// Throws `invalid_arguments` for what is no address.
    ///
    /// ```rhai
    /// let parts = net::parse("../tea?x=1", "https://Example.org/shop/green/");
    /// assert_eq(parts.url, "https://example.org/shop/tea?x=1");
    /// assert_eq([parts.host, parts.port, parts.query], ["example.org", 443, "x=1"]);
    /// ```
    #[rhai_fn(return_raw, name = "parse")]
    pub fn parse_from(call: NativeCallContext, address: &str, base: &str) -> Res<Map> {
        super::parts(address, Some(base)).or_raise(&call)
    }

    /// An address with `params`, a map, added to its query; an array repeats its key. For `get_all`, whose addresses have each
    /// its own; a single request takes them as the option `params`. Nothing is sent.
    ///
    /// Throws `invalid_arguments` for what is no address, and for values that are no text, number or bool.
    ///
    /// ```rhai
    /// let url = net::with_params("http://localhost:8080/greeting", #{name: "Ann & Bo", tag: ["a", "b"]});
    /// assert_eq(url, "http://localhost:8080/greeting?name=Ann+%26+Bo&tag=a&tag=b");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn with_params(call: NativeCallContext, address: &str, params: Dynamic) -> Res<String> {
        super::with_params(address, &params).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn get_all(call: NativeCallContext, urls: Array) -> Res<Array> {
        super::get_all(&call, &urls, Map::new())
    }

    /// Sends a GET request to each of up to 1,000 addresses, eight at a time, all with the same options. Gives an array: in
    /// each address's place its answer, or the failure as `catch (e)` would have it. The answers together may fill half of
    /// the call's memory.
    ///
    /// Throws `invalid_arguments` for options or a list that cannot be used; what goes wrong with one address is in its
    /// place.
    ///
    /// ```rhai
    /// let answers = net::get_all(["http://localhost:8080/greeting?name=Ann", "not an address"], #{timeout: 5});
    /// assert_eq(answers[0].json.hello, "Ann");
    /// assert_eq(answers[1].code, "invalid_arguments");
    /// let good = answers.filter(|answer| answer.ok == true);
    /// assert_eq(good.len(), 1);
    /// ```
    #[rhai_fn(return_raw, name = "get_all")]
    pub fn get_all_with(call: NativeCallContext, urls: Array, opts: Map) -> Res<Array> {
        super::get_all(&call, &urls, opts)
    }

    /// A session for the lane of an address's host: the same functions as methods, for hosts of that lane only. The host
    /// keeps the connections; the session itself is for this call.
    ///
    /// Throws `invalid_arguments` for what is no address. Its methods throw it for a host of the other lane, redirects
    /// included.
    ///
    /// ```rhai
    /// let printer = net::session_for("http://localhost:8080/");
    /// assert_eq(printer.lane, "lan");
    /// assert_eq(printer.get("http://localhost:8080/greeting", #{params: #{name: "Ann"}}).json.hello, "Ann");
    /// let code = "";
    /// try { printer.get("https://example.org/"); } catch (e) { code = e.code; }
    /// assert_eq(code, "invalid_arguments");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn session_for(call: NativeCallContext, url: &str) -> Res<Session> {
        super::session::open(&call, url)
    }

    /// A session for the internet with the profile `browser`, for when there is no address yet.
    ///
    /// ```rhai
    /// let web = net::wan_session();
    /// assert_eq(`${web.lane} ${web.profile}`, "wan browser");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wan_session(call: NativeCallContext) -> Res<Session> {
        ctx::live(&call)?;
        Ok(super::session::wan())
    }

    /// Says which hosts with public-looking names stand in the local network: an array of names, one name, or the name of
    /// a function of this file without parameters that gives them and is asked again every 5 s. They count for this plugin
    /// until it registers others or its generation ends, so a tool calls this before its requests. Their owner has to
    /// allow them: `lapidary grant my_plugin EXTERNAL_HTTP=ha.my-house.example.net`.
    ///
    /// Throws `invalid_arguments` for what is no host, `quota` for more than 1,000, and what the function throws.
    ///
    /// ```rhai
    /// net::register_direct_hosts(["ha.my-house.example.net"]);
    /// assert_eq(net::classify("ha.my-house.example.net"), "lan");
    /// net::register_direct_hosts([]);
    /// assert_eq(net::classify("ha.my-house.example.net"), "wan");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn register_direct_hosts(call: NativeCallContext, hosts: Dynamic) -> Res<()> {
        super::register_direct(&call, &hosts)
    }

    /// Which lane a host belongs to by its text alone: `"lan"` for this machine and the network around it, else `"wan"`.
    /// No name is resolved for it. Hosts that the plugin registered are `"lan"`.
    ///
    /// ```rhai
    /// assert_eq(net::classify("printer.lan"), "lan");
    /// assert_eq(net::classify("example.org"), "wan");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn classify(call: NativeCallContext, host: &str) -> Res<String> {
        super::classify(&call, host)
    }

    /// The status code.
    #[rhai_fn(get = "status", pure)]
    pub fn status(response: &mut Response) -> i64 {
        response.answer.status.into()
    }

    /// Whether the status is below 400.
    #[rhai_fn(get = "ok", pure)]
    pub fn ok(response: &mut Response) -> bool {
        response.answer.ok
    }

    /// The address of the last hop.
    #[rhai_fn(get = "url", pure)]
    pub fn url(response: &mut Response) -> String {
        response.answer.url.clone()
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
        control::reserve(response.answer.body.len()).or_raise(&call)?;
        Ok(response.answer.body.clone())
    }
}

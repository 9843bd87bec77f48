//! `net::session_for` and `net::wan_session`: the same requests as methods, held to one lane.
//! A session is two words; connections and cookies are the host's.

use super::{Bounds, Response, ask_direct, send_within};
use crate::script::ctx::{self, OrRaise, Res};
use crate::service::fetch::{self, Lane};
use rhai::{Map, Module, NativeCallContext};

/// One lane and one profile.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    lane: Lane,
    profile: &'static str,
}

pub(super) fn open(call: &NativeCallContext, url: &str) -> Res<Session> {
    let ctx = ctx::live(call)?;
    ask_direct(call, &ctx)?;
    let host = fetch::host_of(url).or_raise(call)?;
    Ok(Session { lane: ctx.plugin.direct.lane(&host), profile: "plain" })
}

pub(super) fn wan() -> Session {
    Session { lane: Lane::Wan, profile: "browser" }
}

pub(super) fn methods() -> Module {
    rhai::exported_module!(api)
}

fn send(call: &NativeCallContext, session: Session, method: &str, url: &str, opts: Map) -> Res<Response> {
    let bounds = Bounds { lane: Some(session.lane), profile: Some(session.profile) };
    send_within(call, &bounds, method, url, opts)
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::super::Response;
    use super::send;
    use crate::script::ctx::Res;
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// Requests on one lane. Properties: `lane` (`"lan"` or `"wan"`) and `profile`, which an option `profile` overrides.
    /// Its methods are the functions of the module.
    pub type Session = super::Session;

    /// The lane.
    #[rhai_fn(get = "lane", pure)]
    pub fn lane(session: &mut Session) -> String {
        session.lane.word().to_owned()
    }

    /// The profile.
    #[rhai_fn(get = "profile", pure)]
    pub fn profile(session: &mut Session) -> String {
        session.profile.to_owned()
    }

    #[rhai_fn(global, return_raw, pure, name = "get")]
    pub fn get(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "GET", url, Map::new())
    }

    /// As `net::get`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.get("http://localhost:8080/echo", #{params: #{a: 1}}).json.method, "GET");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "get")]
    pub fn get_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "GET", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "post")]
    pub fn post(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "POST", url, Map::new())
    }

    /// As `net::post`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.post("http://localhost:8080/echo", #{json: [1]}).json.method, "POST");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "post")]
    pub fn post_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "POST", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "put")]
    pub fn put(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "PUT", url, Map::new())
    }

    /// As `net::put`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.put("http://localhost:8080/echo", #{data: "x"}).json.method, "PUT");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "put")]
    pub fn put_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "PUT", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "patch")]
    pub fn patch(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "PATCH", url, Map::new())
    }

    /// As `net::patch`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.patch("http://localhost:8080/echo", #{data: #{a: 1}}).json.method, "PATCH");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "patch")]
    pub fn patch_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "PATCH", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "delete")]
    pub fn delete(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "DELETE", url, Map::new())
    }

    /// As `net::delete`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.delete("http://localhost:8080/echo", #{timeout: 5}).json.method, "DELETE");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "delete")]
    pub fn delete_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "DELETE", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "head")]
    pub fn head(call: NativeCallContext, session: &mut Session, url: &str) -> Res<Response> {
        send(&call, *session, "HEAD", url, Map::new())
    }

    /// As `net::head`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert(device.head("http://localhost:8080/echo", #{timeout: 5}).ok, "it answers");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "head")]
    pub fn head_with(call: NativeCallContext, session: &mut Session, url: &str, opts: Map) -> Res<Response> {
        send(&call, *session, "HEAD", url, opts)
    }

    #[rhai_fn(global, return_raw, pure, name = "request")]
    pub fn request(call: NativeCallContext, session: &mut Session, method: &str, url: &str) -> Res<Response> {
        send(&call, *session, method, url, Map::new())
    }

    /// As `net::request`, on the session's lane.
    ///
    /// ```rhai
    /// let device = net::session_for("http://localhost:8080/");
    /// assert_eq(device.request("OPTIONS", "http://localhost:8080/echo").json.method, "OPTIONS");
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "request")]
    pub fn request_with(
        call: NativeCallContext,
        session: &mut Session,
        method: &str,
        url: &str,
        opts: Map,
    ) -> Res<Response> {
        send(&call, *session, method, url, opts)
    }
}

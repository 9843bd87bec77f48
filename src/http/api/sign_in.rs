//! `/api/session`, `/api/tokens` and `/api/password`: signing in and out, and saying who else is let in. What is kept, and how, is
//! decided in the files of each.

use super::Api;
use super::table::{Content, Op, delete, get, post, put, schema_of};
use crate::base::error::{Error, Result};
use crate::http::access;
use crate::http::caller::{By, Caller, Live};
use crate::http::forward::Client;
use crate::http::gate::{fetch_site, may_use};
use crate::http::keys::Keys;
use crate::http::limit;
use crate::http::reply::{self, failure, read_within};
use crate::http::session::How;
use crate::http::tokens::Token;
use crate::service::time;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use zeroize::Zeroizing;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/session", "Who asks, and what its page needs to know; 401 says whether there is a password", session)
            .gives::<SignedIn>()
            .open(),
        post("/api/session", "Signs a person in by the code of a one-time link or by the password", sign_in)
            .takes::<Credential>()
            .gives::<SignedIn>()
            .open(),
        delete("/api/session", "Signs a person out", sign_out).answers(204, Content::Empty).open(),
        get("/api/tokens", "The tokens of programs, without what they are", tokens).gives::<Vec<Listed>>(),
        post("/api/tokens", "Makes a token, which is shown this once", add_token)
            .takes::<NewToken>()
            .answers(201, Content::Json(schema_of::<Added>())),
        delete("/api/tokens/{id}", "Revokes a token", revoke_token).answers(204, Content::Empty),
        put("/api/password", "Sets the password, and signs everybody else out", set_password)
            .takes::<NewPassword>()
            .answers(204, Content::Empty),
        delete("/api/password", "Removes the password, and signs everybody else out", remove_password)
            .takes::<NoPassword>()
            .answers(204, Content::Empty),
    ]
}

/// Who asks, and what its page needs to know.
#[derive(Debug, Serialize, JsonSchema)]
struct SignedIn {
    /// Always true: who is not signed in is answered 401.
    signed_in: bool,
    /// `session` for a person, `token` for a program.
    by: &'static str,
    /// `owner`, or the name of the token.
    name: Arc<str>,
    /// What the page sends as `X-CSRF-Token` with every write.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf: Option<String>,
    /// When the session ends if it is not used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Whether a password signs in beside links.
    password_set: bool,
}

/// Signs a person in: one of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Credential {
    /// The code of a one-time link.
    #[schemars(with = "Option<String>")]
    code: Option<Zeroizing<String>>,
    /// The password.
    #[schemars(with = "Option<String>")]
    password: Option<Zeroizing<String>>,
}

/// Sets the password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    /// The one that is set; not needed where none is, or within 15 minutes of a sign-in by link.
    #[schemars(with = "Option<String>")]
    current: Option<Zeroizing<String>>,
    /// At least 10 characters.
    #[schemars(with = "String")]
    new: Zeroizing<String>,
}

/// Takes the password away.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoPassword {
    /// As for setting one.
    #[schemars(with = "Option<String>")]
    current: Option<Zeroizing<String>>,
}

/// Names a token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    /// What its owner will call it: 1 to 64 characters.
    name: String,
}

/// A token as it is listed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListedToken")]
struct Listed {
    /// What it is revoked by.
    id: String,
    /// Its name.
    name: Arc<str>,
    /// When it was made.
    created_at: String,
    /// When it was last used, to the hour; absent where it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
}

/// A token that was made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AddedToken")]
struct Added {
    /// What it is revoked by.
    id: String,
    /// Its name.
    name: Arc<str>,
    /// The token itself: it is not to be had again.
    token: String,
}

type Answer = Result<Response, Response>;

/// An answer from either side.
fn flat(answer: Answer) -> Response {
    answer.unwrap_or_else(|refused| refused)
}

fn refused(e: Error) -> Response {
    failure(&e)
}

/// Runs what waits for the disk where waiting does no harm.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::internal("a task of the server failed"))?
}

/// Reads a small body.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        let text = e.to_string();
        // What else the parser says quotes values.
        let named = ["unknown field", "missing field", "duplicate field"].iter().any(|start| text.starts_with(start));
        let what = text.split(" at line").next().unwrap_or_default();
        Error::invalid(if named { what } else { "the body is not the object that this address takes" })
            .hint("/api/openapi.json says what goes in")
    })
}

async fn session(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Response {
    let Some(Extension(caller)) = caller else {
        let error = Error::denied("nobody is signed in").hint("lapidary sign-in prints a link that signs in");
        return not_signed_in(&api.keys, &error);
    };
    if let Err(refused) = may_use(&caller, &Method::GET, &headers) {
        return refused;
    }
    signed_in(&api.keys, &caller, &client)
}

/// The answer to somebody who is signed in. A person's cookie is made to last as long as the session.
fn signed_in(keys: &Keys, caller: &Caller, client: &Client) -> Response {
    let live = caller.session();
    let answer = SignedIn {
        signed_in: true,
        by: if live.is_some() { "session" } else { "token" },
        name: caller.name.clone(),
        csrf: live.map(Live::csrf),
        expires_at: live.and_then(|live| time::from_unix_ms(live.session.expires_ms())),
        password_set: keys.password.is_set(),
    };
    let mut response = Json(answer).into_response();
    if let Some(live) = live {
        let seconds = (live.session.expires_ms() - keys.clock.unix_ms()).max(0) / 1000;
        set_cookie(&mut response, &keys.cookie(&live.secret, seconds, client));
    }
    response
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(mut value) = HeaderValue::try_from(cookie) {
        value.set_sensitive(true);
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

fn not_signed_in(keys: &Keys, error: &Error) -> Response {
    let mut body = reply::value(error);
    body["password_set"] = keys.password.is_set().into();
    (StatusCode::UNAUTHORIZED, Json(body)).into_response()
}

async fn sign_in(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    request: Request,
) -> Response {
    flat(try_sign_in(&api.keys, &client, caller.map(|caller| caller.0), request).await)
}

async fn try_sign_in(keys: &Arc<Keys>, client: &Client, before: Option<Caller>, request: Request) -> Answer {
    let (parts, sent) = request.into_parts();
    if !access::is_own_page(fetch_site(&parts.headers)) {
        return Err(refused(Error::denied("a page of another site may not sign in here")));
    }
    let tries = keys.sign_ins.take(limit::neighbour(client.address), keys.clock.unix_ms());
    tries.map_err(|ms| refused(limit::later("too many tries of signing in", ms)))?;
    let sent = read_within(sent, limit::body(parts.uri.path())).await?;
    let (is_right, how, error) = match parse(&sent).map_err(refused)? {
        Credential { code: Some(code), password: None } => {
            let keys = keys.clone();
            let spent = off_thread(move || keys.codes.spend(&code)).await.map_err(refused)?;
            let error = Error::denied("this link was used already, or is older than 15 minutes");
            (spent, How::Link, error.hint("lapidary sign-in prints another"))
        }
        Credential { code: None, password: Some(password) } => {
            let is_right = keys.guess(password, client).await.map_err(refused)?;
            let error = Error::denied("this is not the password");
            (is_right, How::Password, error.hint("lapidary sign-in prints a link that signs in without one"))
        }
        _ => return Err(refused(Error::invalid("signing in takes a `code` or a `password`, and one of them"))),
    };
    if !is_right {
        tracing::warn!(address = %client.address, ?how, "signing in failed");
        return Err(not_signed_in(keys, &error));
    }
    let (secret, session) = {
        let keys = keys.clone();
        let before = before.and_then(|caller| caller.session().map(|live| live.session.seal));
        let begin = move || {
            before.map_or(Ok(()), |seal| keys.sessions.end(seal))?;
            keys.sessions.begin(how)
        };
        off_thread(begin).await.map_err(refused)?
    };
    tracing::info!(address = %client.address, ?how, "somebody signed in");
    let caller = Caller { name: "owner".into(), by: By::Session(Arc::new(Live { session, secret })) };
    Ok(signed_in(keys, &caller, client))
}

async fn sign_out(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Response {
    flat(try_sign_out(&api.keys, &client, caller.map(|caller| caller.0), &headers).await)
}

async fn try_sign_out(keys: &Arc<Keys>, client: &Client, caller: Option<Caller>, headers: &HeaderMap) -> Answer {
    if let Some(caller) = caller {
        may_use(&caller, &Method::DELETE, headers)?;
        let Some(live) = caller.session() else {
            let error = Error::denied("a token has no session to end").hint("DELETE /api/tokens/{id} revokes it");
            return Err(refused(error));
        };
        let (keys, seal) = (keys.clone(), live.session.seal);
        off_thread(move || keys.sessions.end(seal)).await.map_err(refused)?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &keys.cookie("", 0, client));
    Ok(response)
}

fn listed(token: Token) -> Listed {
    Listed {
        id: token.id,
        name: token.name,
        created_at: time::from_unix_ms(token.made_ms).unwrap_or_default(),
        last_used_at: token.used_ms.and_then(time::from_unix_ms),
    }
}

async fn tokens(State(api): State<Arc<Api>>) -> Json<Vec<Listed>> {
    Json(api.keys.tokens.list().into_iter().map(listed).collect())
}

async fn add_token(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>, sent: Bytes) -> Response {
    let work = async {
        caller.may_give_keys()?;
        let NewToken { name } = parse(&sent)?;
        let keys = api.keys.clone();
        let (token, kept) = off_thread(move || keys.tokens.add(&name)).await?;
        tracing::info!(id = kept.id, "a token was made");
        Ok(Added { id: kept.id, name: kept.name, token })
    };
    work.await.map_or_else(refused, |added| (StatusCode::CREATED, Json(added)).into_response())
}

async fn revoke_token(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let work = async {
        caller.may_give_keys()?;
        let keys = api.keys.clone();
        let token = off_thread(move || keys.tokens.revoke(&id)).await?;
        tracing::info!(id = token.id, "a token was revoked");
        Ok(())
    };
    work.await.map_or_else(refused, |()| StatusCode::NO_CONTENT.into_response())
}

async fn set_password(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    Extension(caller): Extension<Caller>,
    sent: Bytes,
) -> Response {
    let work = async {
        let NewPassword { current, new } = parse(&sent)?;
        replace(&api.keys, &client, &caller, current, Some(new)).await
    };
    flat(work.await.map(|()| StatusCode::NO_CONTENT.into_response()).map_err(refused))
}

async fn remove_password(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    Extension(caller): Extension<Caller>,
    sent: Bytes,
) -> Response {
    let work = async {
        let NoPassword { current } = if sent.is_empty() { NoPassword::default() } else { parse(&sent)? };
        replace(&api.keys, &client, &caller, current, None).await
    };
    flat(work.await.map(|()| StatusCode::NO_CONTENT.into_response()).map_err(refused))
}

/// Sets another password or none. Who does that shows the one that is set, unless it is the owner beyond doubt.
async fn replace(
    keys: &Arc<Keys>,
    client: &Client,
    caller: &Caller,
    current: Option<Zeroizing<String>>,
    new: Option<Zeroizing<String>>,
) -> Result<()> {
    caller.may_give_keys()?;
    let is_owner = match &caller.by {
        By::Owner => true,
        By::Session(live) => live.session.is_fresh_by_link(keys.clock.unix_ms()),
        By::Token(_) => false,
    };
    if keys.password.is_set() && !is_owner {
        let Some(current) = current else {
            return Err(Error::invalid("`current`, the password that is set, is missing")
                .hint("or sign in by the link of `lapidary sign-in`, and set it within 15 minutes"));
        };
        if !keys.guess(current, client).await? {
            return Err(Error::denied("`current` is not the password that is set"));
        }
    }
    let (keys, keep) = (keys.clone(), caller.session().map(|live| live.session.seal));
    off_thread(move || keys.password.replace(new.as_ref().map(|new| new.as_str()), keep)).await?;
    tracing::info!("the password was changed");
    Ok(())
}

//! `/api/session`, `/api/tokens` and `/api/password`: signing in and out, and saying who else is let in. What is kept, and how, is
//! decided in the files of each.

use super::Api;
use super::answer::{Answer, At, Refusal, SecretSent, Sent, blocking, read_secret};
use super::table::{Content, Op, delete, get, post, put, schema_of};
use crate::base::error::Error;
use crate::http::access;
use crate::http::caller::{By, Caller, Live};
use crate::http::forward::Client;
use crate::http::gate::{fetch_site, may_use};
use crate::http::keys::Keys;
use crate::http::limit;
use crate::http::reply::read_within;
use crate::http::session::How;
use crate::http::tokens::Token;
use crate::service::time;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
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
#[derive(Deserialize, JsonSchema)]
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

async fn session(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Answer<Response> {
    let Some(Extension(caller)) = caller else {
        let error = Error::denied("nobody is signed in").hint("lapidary sign-in prints a link that signs in");
        return Err(not_signed_in(&api.keys, error));
    };
    may_use(&caller, &Method::GET, &headers)?;
    Ok(signed_in(&api.keys, &caller, &client))
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

/// The answer to somebody who is not: with what a page needs to ask for.
fn not_signed_in(keys: &Keys, error: Error) -> Refusal {
    let is_set = keys.password.is_set();
    Refusal::from(error).status(StatusCode::UNAUTHORIZED).with("password_set", is_set.into())
}

async fn sign_in(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    request: Request,
) -> Answer<Response> {
    let keys = &api.keys;
    let (parts, sent) = request.into_parts();
    if !access::is_own_page(fetch_site(&parts.headers)) {
        return Err(Error::denied("a page of another site may not sign in here")
            .hint("open the address itself")
            .into());
    }
    let tries = keys.sign_ins.take(limit::neighbour(client.address), keys.clock.unix_ms());
    tries.map_err(|ms| limit::later("too many tries of signing in", ms))?;
    let sent = read_within(sent, limit::body(parts.uri.path())).await?;
    let (is_right, how, error) = match read_secret(&sent)? {
        Credential { code: Some(code), password: None } => {
            let mine = keys.clone();
            let spent = blocking(&api, move |_| mine.codes.spend(&code)).await?;
            let error = Error::denied("this link was used already, or is older than 15 minutes");
            (spent, How::Link, error.hint("lapidary sign-in prints another"))
        }
        Credential { code: None, password: Some(password) } => {
            let is_right = keys.guess(password, &client).await?;
            let error = Error::denied("this is not the password");
            (is_right, How::Password, error.hint("lapidary sign-in prints a link that signs in without one"))
        }
        _ => {
            let error = Error::invalid("signing in takes a `code` or a `password`, and one of them");
            return Err(error.hint("lapidary sign-in prints a link whose code is behind `#sign-in=`").into());
        }
    };
    if !is_right {
        tracing::warn!(address = %client.address, ?how, "signing in failed");
        return Err(not_signed_in(keys, error));
    }
    let mine = keys.clone();
    let before = caller.and_then(|caller| caller.session().map(|live| live.session.seal));
    let begun = blocking(&api, move |_| {
        before.map_or(Ok(()), |seal| mine.sessions.end(seal))?;
        mine.sessions.begin(how)
    });
    let (secret, session) = begun.await?;
    tracing::info!(address = %client.address, ?how, "somebody signed in");
    let caller = Caller { name: "owner".into(), by: By::Session(Arc::new(Live { session, secret })) };
    Ok(signed_in(keys, &caller, &client))
}

async fn sign_out(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Answer<Response> {
    if let Some(Extension(caller)) = caller {
        may_use(&caller, &Method::DELETE, &headers)?;
        let Some(live) = caller.session() else {
            let error = Error::denied("a token has no session to end");
            return Err(error.hint("DELETE /api/tokens/{id} revokes it").into());
        };
        let (keys, seal) = (api.keys.clone(), live.session.seal);
        blocking(&api, move |_| keys.sessions.end(seal)).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &api.keys.cookie("", 0, &client));
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

async fn add_token(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Sent(NewToken { name }): Sent<NewToken>,
) -> Answer<(StatusCode, Json<Added>)> {
    caller.may_give_keys()?;
    let keys = api.keys.clone();
    let (token, kept) = blocking(&api, move |_| keys.tokens.add(&name)).await?;
    tracing::info!(id = kept.id, "a token was made");
    Ok((StatusCode::CREATED, Json(Added { id: kept.id, name: kept.name, token })))
}

async fn revoke_token(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
) -> Answer<StatusCode> {
    caller.may_give_keys()?;
    let keys = api.keys.clone();
    let token = blocking(&api, move |_| keys.tokens.revoke(&id)).await?;
    tracing::info!(id = token.id, "a token was revoked");
    Ok(StatusCode::NO_CONTENT)
}

async fn set_password(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    Extension(caller): Extension<Caller>,
    SecretSent(NewPassword { current, new }): SecretSent<NewPassword>,
) -> Answer<StatusCode> {
    replace(&api, &client, &caller, current, Some(new)).await
}

async fn remove_password(
    State(api): State<Arc<Api>>,
    Extension(client): Extension<Client>,
    Extension(caller): Extension<Caller>,
    SecretSent(NoPassword { current }): SecretSent<NoPassword>,
) -> Answer<StatusCode> {
    replace(&api, &client, &caller, current, None).await
}

/// Sets another password or none. Who does that shows the one that is set, unless it is the owner beyond doubt.
async fn replace(
    api: &Arc<Api>,
    client: &Client,
    caller: &Caller,
    current: Option<Zeroizing<String>>,
    new: Option<Zeroizing<String>>,
) -> Answer<StatusCode> {
    let keys = api.keys.clone();
    caller.may_give_keys()?;
    let is_owner = match &caller.by {
        By::Owner => true,
        By::Session(live) => live.session.is_fresh_by_link(keys.clock.unix_ms()),
        By::Token(_) => false,
    };
    if keys.password.is_set() && !is_owner {
        let Some(current) = current else {
            return Err(Error::invalid("`current`, the password that is set, is missing")
                .hint("or sign in by the link of `lapidary sign-in`, and set it within 15 minutes")
                .into());
        };
        if !keys.guess(current, client).await? {
            return Err(Error::denied("`current` is not the password that is set")
                .hint("without it, sign in by the link of `lapidary sign-in`, and set another within 15 minutes")
                .into());
        }
    }
    let keep = caller.session().map(|live| live.session.seal);
    blocking(api, move |_| keys.password.replace(new.as_ref().map(|new| new.as_str()), keep)).await?;
    tracing::info!("the password was changed");
    Ok(StatusCode::NO_CONTENT)
}

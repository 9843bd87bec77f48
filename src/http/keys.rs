//! All that lets somebody in, and who a request is from: the owner's token, the tokens of programs, a person's session. What a
//! caller may then do is decided elsewhere.

use super::caller::{By, Caller, Live};
use super::codes::Codes;
use super::forward::Client;
use super::limit::{self, Attempts, Buckets, Rate};
use super::password::Password;
use super::session::Sessions;
use super::token::Owned;
use super::tokens::Tokens;
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::paths::Paths;
use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Most values of the session's cookie that are looked at. A page on another port of this machine can add some.
const COOKIES: usize = 4;

/// All that lets somebody in.
pub(super) struct Keys {
    pub(super) owned: Owned,
    pub(super) tokens: Tokens,
    pub(super) sessions: Arc<Sessions>,
    pub(super) codes: Codes,
    pub(super) password: Password,
    pub(super) clock: Clock,
    /// Tries of signing in, by address.
    pub(super) sign_ins: Buckets<IpAddr>,
    /// Tries of passwords, all together: who has many addresses has no more than that.
    guesses: Buckets<()>,
    /// Wrong passwords, by address.
    wrong: Attempts<IpAddr>,
    cookie: String,
    owner: Arc<str>,
}

/// Who a request is from.
pub(super) enum Known {
    /// Somebody who is let in.
    Caller(Caller),
    /// Nobody who is known. `Tried` showed something that opens nothing.
    Nobody,
    Tried,
}

impl Keys {
    pub(super) fn of(paths: &Paths, clock: Clock, owned: Owned) -> Keys {
        let sessions = Arc::new(Sessions::of(paths, clock.clone()));
        // A browser sends the cookies of all ports of a machine to each: two roots must not take each other's.
        let root = std::fs::canonicalize(paths.root()).unwrap_or_else(|_| paths.root().to_owned());
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let tag = digest.iter().take(4).fold(0_u32, |tag, byte| tag << 8 | u32::from(*byte));
        Keys {
            owned,
            tokens: Tokens::of(paths, clock.clone()),
            password: Password::with(paths, sessions.clone()),
            sessions,
            codes: Codes::of(paths, clock.clone()),
            clock,
            sign_ins: Buckets::new(Rate::a_minute(10, 10)),
            guesses: Buckets::new(Rate::a_minute(10, 30)),
            wrong: Attempts::new(),
            cookie: format!("lapidary-{tag:08x}"),
            owner: "owner".into(),
        }
    }

    /// Who a request is from. A token that is shown counts alone, right or wrong.
    pub(super) fn who(&self, headers: &HeaderMap, client: &Client) -> Known {
        match bearer(headers) {
            Shown::Token(token) => self.program(token),
            Shown::Unreadable => Known::Tried,
            Shown::Nothing => self.person(headers, client),
        }
    }

    fn program(&self, token: &str) -> Known {
        if self.owned.opens(token) {
            return Known::Caller(Caller { name: self.owner.clone(), by: By::Owner });
        }
        let Some(token) = self.tokens.find(token) else { return Known::Tried };
        Known::Caller(Caller { name: token.name.clone(), by: By::Token(Arc::new(token)) })
    }

    fn person(&self, headers: &HeaderMap, client: &Client) -> Known {
        let name = self.cookie_name(client.is_https);
        let live = cookies(headers, &name)
            .take(COOKIES)
            .find_map(|secret| self.sessions.find(secret).map(|session| Live { session, secret: secret.to_owned() }));
        // The cookie of a session that has ended is no attempt at anything.
        live.map_or(Known::Nobody, |live| {
            Known::Caller(Caller { name: self.owner.clone(), by: By::Session(Arc::new(live)) })
        })
    }

    /// Whether somebody who was let in would be let in now. The owner's own token is not asked for again.
    pub(super) fn still_know(&self, caller: &Caller) -> bool {
        match &caller.by {
            By::Owner => true,
            By::Token(token) => self.tokens.has(&token.id),
            By::Session(live) => self.sessions.find(&live.secret).is_some(),
        }
    }

    /// Whether `given` is the password, for whoever is at `client`: one at a time, and the slower the more often it was wrong.
    ///
    /// # Errors
    /// `rate_limited` with the time to wait, and what checking says.
    pub(super) async fn guess(&self, given: Zeroizing<String>, client: &Client) -> Result<bool> {
        let address = limit::neighbour(client.address);
        let ready = || {
            let now = self.clock.unix_ms();
            let waits = self.wrong.may(&address, now).and_then(|()| self.guesses.take((), now));
            waits.map_err(|ms| limit::later("too many passwords were wrong", ms))
        };
        let is_right = self.password.check(given, ready).await?;
        if is_right {
            self.wrong.succeeded(&address);
        } else {
            self.wrong.failed(address, self.clock.unix_ms());
        }
        Ok(is_right)
    }

    /// The header that makes a browser keep `secret` for `seconds`; for 0, forget it.
    pub(super) fn cookie(&self, secret: &str, seconds: i64, client: &Client) -> String {
        let name = self.cookie_name(client.is_https);
        let secure = if client.is_https { "; Secure" } else { "" };
        format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }

    /// With the prefix, a browser takes the cookie from this very host only, and sends it over TLS only.
    pub(super) fn cookie_name(&self, is_https: bool) -> String {
        if is_https { format!("__Host-{}", self.cookie) } else { self.cookie.clone() }
    }
}

enum Shown<'a> {
    Nothing,
    Token(&'a str),
    Unreadable,
}

/// The token of an `Authorization` header. Another scheme is a proxy's, and says nothing here.
fn bearer(headers: &HeaderMap) -> Shown<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Shown::Nothing };
    let Some(value) = value.to_str().ok().filter(|_| values.next().is_none()) else {
        return Shown::Unreadable;
    };
    match value.trim().split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Shown::Token(token.trim()),
        Some(_) => Shown::Nothing,
        None => Shown::Unreadable,
    }
}

/// The values of a cookie, in the order in which the browser sent them.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(move |pair| pair.trim().split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, value)| value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::session::How;
    use super::super::token::Source;
    use super::*;
    use axum::http::HeaderValue;

    const HERE: Client = Client { address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), is_https: false, is_here: true };

    fn keys() -> (tempfile::TempDir, Keys) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        let owned = Owned::given("the-token-of-the-owner", Source::Environment);
        let keys = Keys::of(&paths, Clock::system(), owned);
        (dir, keys)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            })
    }

    fn word(known: &Known) -> String {
        match known {
            Known::Nobody => "nobody".into(),
            Known::Tried => "tried".into(),
            Known::Caller(Caller { name, by: By::Session(_) }) => format!("session {name}"),
            Known::Caller(Caller { name, by: By::Owner | By::Token(_) }) => format!("token {name}"),
        }
    }

    #[test]
    fn a_token_that_is_shown_counts_alone_and_a_cookie_by_its_own_name() {
        let (_dir, keys) = keys();
        let (token, _) = keys.tokens.add("editor").unwrap();
        let (secret, _) = keys.sessions.begin(How::Link).unwrap();
        let plain = keys.cookie_name(false);
        let secure = keys.cookie_name(true);
        assert_eq!(secure, format!("__Host-{plain}"));
        let good = format!("{plain}={secret}");
        let rows: [(&[(&str, String)], &str); 24] = [
            (&[], "nobody"),
            (&[("authorization", "Bearer the-token-of-the-owner".into())], "token owner"),
            (&[("authorization", "bearer  the-token-of-the-owner ".into())], "token owner"),
            (&[("authorization", format!("Bearer {token}"))], "token editor"),
            (&[("authorization", format!("Bearer {token}x"))], "tried"),
            (&[("authorization", "Bearer ".into())], "tried"),
            (&[("authorization", "Bearer".into())], "tried"),
            (&[("authorization", "the-token-of-the-owner".into())], "tried"),
            (&[("authorization", "Basic dTpw".into())], "nobody"),
            (&[("authorization", "Basic the-token-of-the-owner".into())], "nobody"),
            (
                &[
                    ("authorization", "Bearer the-token-of-the-owner".into()),
                    ("authorization", "Bearer the-token-of-the-owner".into()),
                ],
                "tried",
            ),
            (&[("cookie", good.clone())], "session owner"),
            (&[("cookie", format!("a=b; {good}; c=d"))], "session owner"),
            (&[("cookie", "a=b".into()), ("cookie", good.clone())], "session owner"),
            (&[("cookie", format!("{plain}=other; {good}"))], "session owner"),
            (&[("cookie", format!("{}{good}", format!("{plain}=x; ").repeat(COOKIES)))], "nobody"),
            (&[("cookie", format!("{plain}={secret}x"))], "nobody"),
            (&[("cookie", format!("{plain}="))], "nobody"),
            (&[("cookie", format!("{secure}={secret}"))], "nobody"),
            (&[("cookie", format!("lapidary={secret}"))], "nobody"),
            (&[("cookie", format!("{}={secret}", plain.to_uppercase()))], "nobody"),
            // Neither opens the other's door.
            (&[("cookie", format!("{plain}={token}"))], "nobody"),
            (&[("authorization", format!("Bearer {secret}"))], "tried"),
            (&[("authorization", "Bearer wrong".into()), ("cookie", good.clone())], "tried"),
        ];
        for (pairs, expected) in rows {
            let pairs: Vec<(&'static str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(word(&keys.who(&headers(&pairs), &HERE)), expected, "{pairs:?}");
        }
        let basic = headers(&[("authorization", "Basic dTpw"), ("cookie", &good)]);
        assert_eq!(word(&keys.who(&basic, &HERE)), "session owner", "a proxy's own password is no affair of ours");
        let https = Client { is_https: true, ..HERE };
        assert_eq!(word(&keys.who(&headers(&[("cookie", &good)]), &https)), "nobody");
        assert_eq!(word(&keys.who(&headers(&[("cookie", &format!("{secure}={secret}"))]), &https)), "session owner");
    }

    #[test]
    fn a_cookie_is_for_this_host_alone_and_no_script_reads_it() {
        let (_dir, keys) = keys();
        let plain = keys.cookie("s3cret", 60, &HERE);
        let name = keys.cookie_name(false);
        assert_eq!(plain, format!("{name}=s3cret; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"));
        let secure = keys.cookie("s3cret", 60, &Client { is_https: true, ..HERE });
        assert_eq!(secure, format!("__Host-{name}=s3cret; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"));
    }
}

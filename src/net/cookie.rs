//! Cookies of browser profiles: one jar for each plugin and profile, in memory, bounded in number and size.
//! What a cookie means is the crate's; that a jar cannot grow without end is ours.

use cookie_store::{Cookie, CookieDomain, CookieStore};
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Most cookies of a jar: past it only those that are there already change.
const MOST_COOKIES: usize = 400;
/// Longest cookie in bytes, attributes included.
const LONGEST: usize = 4096;
/// Most jars of one owner: the one that was not used for longest makes room.
const MOST_JARS: usize = 8;

/// Which jar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JarName {
    /// Whose it is: a plugin's name.
    pub owner: String,
    /// Which of the owner's.
    pub name: String,
}

/// All jars of a host.
#[derive(Default)]
pub(super) struct Jars(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    jars: HashMap<JarName, (u64, Arc<Jar>)>,
    /// Counts uses, to tell which was last.
    uses: u64,
}

#[derive(Default)]
pub(super) struct Jar(Mutex<CookieStore>);

impl Jars {
    /// The jar of that name, a new one where there is none.
    pub(super) fn get(&self, name: &JarName) -> Arc<Jar> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.uses += 1;
        let now = shelf.uses;
        if let Some((used, jar)) = shelf.jars.get_mut(name) {
            *used = now;
            return jar.clone();
        }
        let own = || shelf.jars.iter().filter(|(other, _)| other.owner == name.owner);
        if own().count() >= MOST_JARS
            && let Some(oldest) = own().min_by_key(|(_, (used, _))| *used).map(|(oldest, _)| oldest.clone())
        {
            shelf.jars.remove(&oldest);
        }
        let jar = Arc::new(Jar::default());
        shelf.jars.insert(name.clone(), (now, jar.clone()));
        jar
    }
}

impl Jar {
    /// The `Cookie` header for a request to `url`, behind what the request has of its own.
    pub(super) fn header(&self, url: &Url, own: Option<&HeaderValue>) -> Option<HeaderValue> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = own.and_then(|own| own.to_str().ok()).unwrap_or_default().to_owned();
        for (name, value) in store.get_request_values(url) {
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(name);
            text.push('=');
            text.push_str(value);
        }
        let mut header = HeaderValue::from_str(&text).ok().filter(|header| !header.is_empty())?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Takes what an answer of `url` sets.
    pub(super) fn take(&self, headers: &HeaderMap, url: &Url) {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for text in headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            if text.len() > LONGEST {
                continue;
            }
            let Ok(cookie) = Cookie::parse(text.to_owned(), url) else { continue };
            // A cookie of a whole top level would travel to strangers.
            if matches!(&cookie.domain, CookieDomain::Suffix(domain) if !domain.contains('.')) {
                continue;
            }
            let domain = cookie.domain.as_cow().unwrap_or_default().into_owned();
            let known = store.contains_any(&domain, &cookie.path, cookie.name());
            if !known && store.iter_any().count() >= MOST_COOKIES {
                let kept: Vec<Cookie<'static>> = store.iter_unexpired().cloned().collect();
                if kept.len() >= MOST_COOKIES {
                    continue;
                }
                let Ok(fresh) = CookieStore::from_cookies(kept.into_iter().map(Ok::<_, ()>), false) else { continue };
                *store = fresh;
            }
            let _ = store.insert(cookie.into_owned(), url);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn set(jar: &Jar, url: &str, cookies: &[&str]) {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        jar.take(&headers, &Url::parse(url).unwrap());
    }

    fn sent(jar: &Jar, url: &str) -> String {
        let header = jar.header(&Url::parse(url).unwrap(), None);
        header.map(|h| h.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn a_cookie_goes_where_it_belongs() {
        let jar = Jar::default();
        set(
            &jar,
            "https://a.example.org/x/y",
            &[
                "host=1",
                "wide=2; Domain=example.org; Path=/",
                "other=3; Domain=other.org",
                "top=4; Domain=org",
                "safe=5; Secure; Path=/",
                "gone=6; Max-Age=0",
            ],
        );
        for (url, names) in [
            ("https://a.example.org/x/z", "host safe wide"),
            ("http://a.example.org/x/z", "host wide"),
            ("https://a.example.org/", "safe wide"),
            ("https://b.example.org/", "wide"),
            ("https://other.org/", ""),
            ("https://evil.org/", ""),
        ] {
            let header = sent(&jar, url);
            let mut found: Vec<&str> = header.split("; ").filter_map(|c| c.split_once('=')).map(|c| c.0).collect();
            found.sort_unstable();
            assert_eq!(found.join(" "), names, "{url}");
        }
        let own = HeaderValue::from_static("mine=0");
        let both = jar.header(&Url::parse("https://b.example.org/").unwrap(), Some(&own)).unwrap();
        assert_eq!(both, "mine=0; wide=2");
        assert!(both.is_sensitive());
    }

    #[test]
    fn a_full_jar_changes_what_it_has_and_takes_nothing_new() {
        let jar = Jar::default();
        for at in 0..MOST_COOKIES + 50 {
            set(&jar, "https://a.example.org/", &[&format!("c{at}=old; Max-Age=1000")]);
        }
        set(&jar, "https://a.example.org/", &["c3=new", &format!("long={}", "x".repeat(LONGEST)), "late=1"]);
        let header = sent(&jar, "https://a.example.org/");
        assert_eq!(header.split("; ").count(), MOST_COOKIES);
        assert!(header.contains("c3=new") && !header.contains("late=") && !header.contains("long="));
    }

    #[test]
    fn an_owner_has_few_jars_and_another_owner_its_own() {
        let jars = Jars::default();
        let name = |owner: &str, name: String| JarName { owner: owner.into(), name };
        let first = jars.get(&name("a", "0".into()));
        let theirs = jars.get(&name("b", "0".into()));
        set(&first, "https://x.org/", &["k=1"]);
        assert_eq!(sent(&theirs, "https://x.org/"), "");
        for at in 1..MOST_JARS {
            jars.get(&name("a", at.to_string()));
        }
        // Used again, so it is not the oldest.
        assert_eq!(sent(&jars.get(&name("a", "0".into())), "https://x.org/"), "k=1");
        jars.get(&name("a", "one more".into()));
        assert_eq!(sent(&jars.get(&name("a", "0".into())), "https://x.org/"), "k=1");
        let shelf = jars.0.lock().unwrap();
        assert_eq!(shelf.jars.len(), MOST_JARS + 1);
        assert!(!shelf.jars.contains_key(&name("a", "1".into())));
    }
}

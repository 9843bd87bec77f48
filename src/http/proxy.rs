//! `/api/proxy`: pictures of the internet, fetched by this host so that whoever shows one learns nothing of who looks.
//! Only addresses that this host signed; how a request travels is the network's, what a picture is the pictures' room's.

use crate::app::Host;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::net::{Rules, Target};
use crate::service::Services;
use crate::service::fetch::{Lane, Request};
use crate::service::images;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// How long a picture is kept, here and by the browser, in seconds.
pub(super) const FRESH_S: u32 = 3600;
/// Most bytes of one picture.
const MAX_BYTES: usize = 20 << 20;
/// Most bytes of all pictures that are kept.
const KEPT_BYTES: usize = 64 << 20;
/// Most pictures that are kept.
const KEPT: usize = 256;
/// How many are fetched at once: a gallery asks for all of its tiles together.
const AT_ONCE: usize = 6;
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A picture as it is served.
#[derive(Clone)]
pub(super) struct Picture {
    /// By its bytes, whatever its server said.
    pub(super) media_type: &'static str,
    /// The file.
    pub(super) data: Bytes,
}

/// Fetches pictures and keeps some for a while.
pub(super) struct Pictures {
    places: Semaphore,
    kept: Mutex<Kept>,
}

impl Pictures {
    pub(super) fn new() -> Pictures {
        Pictures { places: Semaphore::new(AT_ONCE), kept: Mutex::default() }
    }

    /// The picture behind `?u=<address>&s=<signature>`.
    ///
    /// # Errors
    /// `permission_denied` for an address that was not signed or is of the local network, `upstream_unavailable` for a server
    /// that has no picture there, and what the network says.
    pub(super) async fn get(&self, host: &Host, query: &str) -> Result<Picture> {
        let services = host.services();
        let (u, s) = asked(query)?;
        let url = services.proxy.verify(&u, &s)?;
        if let Some(picture) = self.kept(&services.clock, &url) {
            return Ok(picture);
        }
        let _place = self.places.acquire().await.map_err(|_| Error::internal("no picture is fetched any more"))?;
        if let Some(picture) = self.kept(&services.clock, &url) {
            return Ok(picture);
        }
        let picture = fetch(services, url.clone()).await?;
        self.lock().put(services.clock.unix_ms(), url, picture.clone());
        Ok(picture)
    }

    fn kept(&self, clock: &Clock, url: &Url) -> Option<Picture> {
        self.lock().get(clock.unix_ms(), url)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `u` and `s` of a query that has each once.
fn asked(query: &str) -> Result<(String, String)> {
    let one = |name: &str| {
        let mut values = url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Ok(value.into_owned()),
            _ => Err(Error::invalid("a proxied picture is asked for with one `u` and one `s`")
                .hint("take the address that images::proxied gave, whole")),
        }
    };
    Ok((one("u")?, one("s")?))
}

/// The internet only: a signature says that a script asked for an address, not that it may reach into the owner's network.
struct Internet;

impl Rules for Internet {
    fn permit(&self, target: Target) -> Result<()> {
        match target.lane {
            Lane::Wan => Ok(()),
            Lane::Lan => Err(Error::denied("pictures of the local network are not proxied")),
        }
    }
}

async fn fetch(services: &Arc<Services>, url: Url) -> Result<Picture> {
    let client = services.net.clone();
    // On the runtime that the client's other connections live on; the task ends with whoever waits for it.
    let task = Fetching(services.runtime.spawn(async move {
        let mut request = Request::new("GET", url.as_str());
        request.timeout = TIMEOUT;
        request.max_bytes = MAX_BYTES;
        request.headers.push(("accept".into(), "image/*".into()));
        client.send(request, &Internet).await
    }));
    // What helps a script helps nobody who looks at a page.
    let answer = task.await.map_err(|e| Error::new(e.kind(), e.message()))?;
    if answer.status != 200 {
        return Err(Error::new(Kind::UpstreamUnavailable, format!("the picture's server answered {}", answer.status)));
    }
    let media_type = images::media_type(&answer.body)
        .map_err(|_| Error::new(Kind::UpstreamUnavailable, "what the picture's server sent is no picture"))?;
    Ok(Picture { media_type, data: answer.body.into() })
}

/// A request under way; dropping it ends it.
struct Fetching<T>(tokio::task::JoinHandle<Result<T>>);

impl<T> Future for Fetching<T> {
    type Output = Result<T>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<T>> {
        std::pin::Pin::new(&mut self.0)
            .poll(cx)
            .map(|done| done.unwrap_or_else(|_| Err(Error::internal("fetching the picture failed"))))
    }
}

impl<T> Drop for Fetching<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is kept, the oldest first.
#[derive(Default)]
struct Kept {
    pictures: VecDeque<(i64, Url, Picture)>,
    bytes: usize,
}

impl Kept {
    fn get(&mut self, now_ms: i64, url: &Url) -> Option<Picture> {
        // A clock that was set back must not keep anything for longer.
        while self.pictures.front().is_some_and(|(at, ..)| !(0..i64::from(FRESH_S) * 1000).contains(&(now_ms - at))) {
            self.drop_oldest();
        }
        self.pictures.iter().find(|(_, kept, _)| kept == url).map(|(.., picture)| picture.clone())
    }

    fn put(&mut self, now_ms: i64, url: Url, picture: Picture) {
        self.bytes += picture.data.len();
        self.pictures.push_back((now_ms, url, picture));
        while self.bytes > KEPT_BYTES || self.pictures.len() > KEPT {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((.., picture)) = self.pictures.pop_front() {
            self.bytes -= picture.data.len();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_an_address_and_a_signature_once_each() {
        assert_eq!(asked("u=https%3A%2F%2Fa.example%2F&s=x").unwrap(), ("https://a.example/".into(), "x".into()));
        for bad in ["", "u=a", "s=a", "u=a&u=b&s=c", "u=a&s=b&s=c", "U=a&S=b"] {
            assert_eq!(asked(bad).unwrap_err().kind(), Kind::InvalidArguments, "{bad}");
        }
    }

    #[test]
    fn pictures_are_kept_for_an_hour_and_within_bounds() {
        let picture = |bytes: usize| Picture { media_type: "image/png", data: vec![0; bytes].into() };
        let url = |n: usize| Url::parse(&format!("https://a.example/{n}")).unwrap();
        let mut kept = Kept::default();
        kept.put(1000, url(0), picture(10));
        assert!(kept.get(3_600_999, &url(0)).is_some() && kept.get(1000, &url(1)).is_none());
        assert!(kept.get(3_601_000, &url(0)).is_none() && kept.bytes == 0);
        kept.put(1000, url(0), picture(10));
        assert!(kept.get(999, &url(0)).is_none(), "the clock was set back");
        for n in 0..5 {
            kept.put(1000, url(n), picture(MAX_BYTES));
        }
        assert!(kept.bytes <= KEPT_BYTES && kept.get(1000, &url(4)).is_some() && kept.get(1000, &url(0)).is_none());
        for n in 0..2 * KEPT {
            kept.put(1000, url(n), picture(1));
        }
        assert_eq!(kept.pictures.len(), KEPT);
    }
}

//! The HTTP API: one file a resource, and one table that the router and the document about it are both made of.
//! It reads requests and writes answers; who may do what, and how it is done, is the host's.

mod answer;
mod call;
mod docs;
mod events;
mod grants;
mod image;
mod install;
mod journal;
mod models;
mod openapi;
mod plugins;
mod run;
mod settings;
mod sign_in;
mod source;
mod table;
mod tools;
mod toolsets;

use crate::app::Host;
use crate::base::error::{Error, Kind};
use crate::base::in_flight::{Flights, GRACE, InFlight};
use crate::http::keys::Keys;
use answer::Refusal;
use axum::Router;
use axum::http::{Method, StatusCode};
use events::Events;
use std::sync::Arc;
use table::{Audience, Op};
use tokio::sync::watch;
use tokio::time::Instant;

/// The word of this door.
pub(super) const DOOR: &str = "http";

/// What all requests of the API share.
pub(super) struct Api {
    host: Host,
    keys: Arc<Keys>,
    started_at: String,
    events: Arc<Events>,
    reference: docs::Reference,
    document: openapi::Document,
    flights: Flights,
    closing: watch::Sender<bool>,
}

impl Api {
    pub(super) fn new(host: &Host, keys: Arc<Keys>) -> Arc<Api> {
        Arc::new(Api {
            host: host.clone(),
            keys,
            started_at: answer::utc(host.services().clock.unix_ms()),
            events: Events::new(),
            reference: docs::Reference::default(),
            document: openapi::Document::default(),
            flights: Flights::default(),
            closing: watch::Sender::new(false),
        })
    }

    /// Ends the streams of events at once. Calls in flight finish within a while, and are cancelled after it.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let dispatcher = self.host.dispatcher();
        let stop = || {
            for call in dispatcher.running().into_iter().filter(|call| call.door == DOOR) {
                dispatcher.cancel(&call.call);
            }
        };
        self.flights.drain(Instant::now() + GRACE, stop).await;
    }

    /// Resolves once the API closes.
    async fn closed(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Counts a call in flight until the guard is dropped.
    fn enter(&self) -> InFlight {
        self.flights.enter()
    }
}

/// Every operation, by resource.
fn table() -> Vec<Op> {
    [
        tools::ops(),
        toolsets::ops(),
        call::ops(),
        journal::ops(),
        plugins::ops(),
        source::ops(),
        settings::ops(),
        grants::ops(),
        sign_in::ops(),
        install::ops(),
        image::ops(),
        models::ops(),
        events::ops(),
        docs::ops(),
        openapi::ops(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The routes of the API that answer who is known; who that is, is decided before a request comes here.
pub(super) fn router<S: Clone + Send + Sync + 'static>(api: &Arc<Api>) -> Router<S> {
    routes(api, Audience::Known)
}

/// The routes that answer everybody.
pub(super) fn open_router<S: Clone + Send + Sync + 'static>(api: &Arc<Api>) -> Router<S> {
    routes(api, Audience::Everybody)
}

fn routes<S: Clone + Send + Sync + 'static>(api: &Arc<Api>, audience: Audience) -> Router<S> {
    let mut router = Router::new();
    for op in table().into_iter().filter(|op| op.audience == audience) {
        router = router.route(op.path, op.route);
    }
    router.method_not_allowed_fallback(other_methods).with_state(api.clone())
}

async fn other_methods(method: Method) -> Refusal {
    let error = Error::new(Kind::InvalidArguments, format!("this address does not take {method}"))
        .hint("the header `Allow` lists what it takes");
    Refusal::from(error).status(StatusCode::METHOD_NOT_ALLOWED)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

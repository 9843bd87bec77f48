//! What all sessions of one MCP door share: the host, the list, and the calls in flight. It knows no transport.

use super::list::List;
use crate::app::Host;
use crate::base::in_flight::{Flights, InFlight};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// How an MCP door is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The chat that every call belongs to; none unless given.
    pub chat: Option<String>,
    /// Which tools are offered, as toolset words such as `web, files`; all unless given.
    pub toolset: Option<String>,
}

/// One MCP door.
pub(super) struct Door {
    pub(super) host: Host,
    pub(super) list: List,
    pub(super) chat: Option<Arc<str>>,
    #[cfg(feature = "server")]
    pub(super) sessions: super::direct::Sessions,
    flights: Flights,
    closing: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl Door {
    pub(super) fn new(host: &Host, options: &Options) -> Arc<Door> {
        Arc::new(Door {
            host: host.clone(),
            list: List::new(host, options.toolset.as_deref()),
            chat: options.chat.as_deref().map(Arc::from),
            #[cfg(feature = "server")]
            sessions: super::direct::Sessions::default(),
            flights: Flights::default(),
            closing: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        })
    }

    /// Takes nothing more: sessions end, calls in flight go on.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Resolves once the door takes nothing more.
    pub(super) async fn closed(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Counts a call in flight, or a request that may yet become one, until the guard is dropped.
    pub(super) fn enter(&self) -> InFlight {
        self.flights.enter()
    }

    /// Resolves when calls are to stop.
    pub(super) async fn told_to_stop(&self) {
        let _ = self.stopping.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits until no call runs. From `deadline` on those that still do are told to stop.
    pub(super) async fn drain(&self, deadline: Instant) {
        let stop = || {
            self.stopping.send_replace(true);
        };
        self.flights.drain(deadline, stop).await;
    }
}

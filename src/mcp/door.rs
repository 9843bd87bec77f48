//! What all sessions of one MCP door share: the host, the list, and the calls in flight. It knows no transport.

use super::list::List;
use crate::app::Host;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long calls in flight may go on once the door closes.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// How long a call that was told to stop may take to do so.
const STOPPING: Duration = Duration::from_secs(2);

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
    pub(super) calls: Calls,
    pub(super) chat: Option<Arc<str>>,
    #[cfg(feature = "server")]
    pub(super) sessions: super::direct::Sessions,
    closing: watch::Sender<bool>,
}

impl Door {
    pub(super) fn new(host: &Host, options: &Options) -> Arc<Door> {
        Arc::new(Door {
            host: host.clone(),
            list: List::new(host, options.toolset.as_deref()),
            calls: Calls::default(),
            chat: options.chat.as_deref().map(Arc::from),
            #[cfg(feature = "server")]
            sessions: super::direct::Sessions::default(),
            closing: watch::Sender::new(false),
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

    /// Counts something in flight until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Running {
        self.calls.running.fetch_add(1, Ordering::AcqRel);
        Running(self.clone())
    }

    /// Waits until no call runs. From `deadline` on those that still do are told to stop.
    pub(super) async fn drain(&self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, self.calls.idle()).await.is_err() {
            self.calls.stop();
            let _ = tokio::time::timeout_at(deadline + STOPPING, self.calls.idle()).await;
        }
    }
}

/// The calls in flight, and requests that may yet become one.
pub(super) struct Calls {
    running: AtomicUsize,
    ended: Notify,
    stopping: watch::Sender<bool>,
}

impl Default for Calls {
    fn default() -> Self {
        Calls { running: AtomicUsize::new(0), ended: Notify::new(), stopping: watch::Sender::new(false) }
    }
}

impl Calls {
    /// Resolves when calls are to stop.
    pub(super) async fn told_to_stop(&self) {
        let _ = self.stopping.subscribe().wait_for(|stop| *stop).await;
    }

    fn stop(&self) {
        self.stopping.send_replace(true);
    }

    async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// Something in flight.
pub(super) struct Running(Arc<Door>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.calls.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.calls.ended.notify_waiters();
        }
    }
}

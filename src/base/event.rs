//! The closed list of what happens in a host, and the bus that carries it.
//! Promise 5: an event holds ids, counts and status, never content.

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;

/// Something that happened. Names, counts and status only. The comments are the documentation that people read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A plugin has a new live generation, or its files are again those of the one that lives.
    PluginLive {
        /// Plugin name.
        plugin: String,
        /// The generation that answers now.
        generation: u64,
    },
    /// A load failed; the last good generation, if any, goes on.
    PluginFailed {
        /// Plugin name.
        plugin: String,
        /// The generation that still answers, if there is one.
        live: Option<u64>,
        /// The generation that failed.
        disk: u64,
        /// The first diagnostic: `file:line:column` and the message.
        summary: String,
    },
    /// A newer version loads and asks for more than the live one holds: it waits for its owner's yes.
    PluginWaits {
        /// Plugin name.
        plugin: String,
        /// The generation that still answers, if there is one.
        live: Option<u64>,
        /// The generation that waits.
        disk: u64,
        /// What it asks for first: the file and the message.
        summary: String,
    },
    /// A plugin's files are gone, or it was switched off.
    PluginGone {
        /// Plugin name.
        plugin: String,
    },
    /// What a model reads about the tools changed: names, descriptions or parameters.
    ToolsChanged {
        /// Counts effective changes since the start.
        revision: u64,
    },
    /// A plugin's stored settings changed.
    SettingsChanged {
        /// Plugin name.
        plugin: String,
    },
    /// A call ended.
    CallEnded {
        /// Id of the call.
        call: String,
        /// Tool name.
        tool: String,
        /// Generation that ran it.
        generation: u64,
        /// Whether it succeeded.
        ok: bool,
        /// Code of the failure.
        code: Option<&'static str>,
        /// Wall clock, in microseconds.
        duration_us: u64,
    },
    /// Something in the installation needs a look, such as a quarantined file.
    Notice {
        /// What it is about: a plugin name, or a file relative to the root.
        subject: String,
        /// What happened and what to do.
        message: String,
    },
    /// The host ends.
    Stopping,
}

/// Many senders, many listeners; a listener that falls behind loses the oldest and is told so.
#[derive(Clone)]
pub struct Bus {
    all: broadcast::Sender<Event>,
    /// All but the calls, which are many: whoever waits for something else would be woken by each.
    news: broadcast::Sender<Event>,
}

impl Bus {
    /// A bus that keeps `capacity` events for slow listeners.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Bus { all: broadcast::channel(capacity).0, news: broadcast::channel(capacity).0 }
    }

    /// Tells everybody who listens; nobody listening is fine.
    pub fn publish(&self, event: Event) {
        if !matches!(event, Event::CallEnded { .. }) && self.news.receiver_count() > 0 {
            let _ = self.news.send(event.clone());
        }
        let _ = self.all.send(event);
    }

    /// A new listener, from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.all.subscribe()
    }

    /// As [`Bus::subscribe`], without [`Event::CallEnded`].
    #[must_use]
    pub fn news(&self) -> broadcast::Receiver<Event> {
        self.news.subscribe()
    }

    /// Whether anybody listens for calls, so that a hot path may skip building an event.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.all.receiver_count() > 0
    }
}

impl Default for Bus {
    fn default() -> Self {
        Bus::new(1024)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_news_is_not_woken_by_calls() {
        let bus = Bus::default();
        let (mut all, mut news) = (bus.subscribe(), bus.news());
        let call = Event::CallEnded {
            call: "c_1".into(),
            tool: "t".into(),
            generation: 1,
            ok: true,
            code: None,
            duration_us: 1,
        };
        bus.publish(call.clone());
        bus.publish(Event::Stopping);
        assert_eq!((all.recv().await.unwrap(), all.recv().await.unwrap()), (call, Event::Stopping));
        assert_eq!(news.recv().await.unwrap(), Event::Stopping);
    }
}

//! Layer 1: what the script API does, in plain Rust: no Rhai, no server. `Services` is handed down to every call.

pub mod address;
pub mod attachments;
pub mod cache;
pub mod chance;
pub mod chat_state;
pub mod command;
pub mod credentials;
pub mod database;
pub mod digest;
pub mod fetch;
pub mod files;
pub mod gallery;
pub mod grants;
pub mod html;
pub mod image;
pub mod images;
pub mod journal;
#[cfg(feature = "server")]
pub mod markdown;
pub mod markers;
pub mod math;
mod objects;
pub mod pattern;
pub mod pdf;
pub mod permissions;
pub mod picture;
pub mod ports;
pub mod proxy;
pub mod quarantine;
pub mod reply;
pub mod scopes;
pub mod secret;
pub mod settings;
pub mod state;
pub mod text;
pub mod time;

use crate::base::clock::Clock;
use crate::base::event::Bus;
use crate::base::paths::Paths;
use std::sync::{Arc, OnceLock};

/// The services of one host. Cheap to share, built once by the composition root.
pub struct Services {
    /// Where everything lives.
    pub paths: Paths,
    /// The clock.
    pub clock: Clock,
    /// The event bus.
    pub bus: Bus,
    /// `state::`: one JSON file a plugin.
    pub state: state::States,
    /// `chat_state::`: rows of the host's own database, each of one chat.
    pub chat_state: chat_state::ChatStates,
    /// Stored settings of plugins.
    pub settings: settings::Store,
    /// `cache::`: in memory, with time to live.
    pub cache: cache::Cache,
    /// Registered scopes.
    pub scopes: scopes::Registry,
    /// `net::`: the only HTTP client.
    pub net: crate::net::Client,
    /// `credentials::`: what a person stored for plugins; nothing unless the composition root says where.
    pub credentials: credentials::Store,
    /// Whether `command::` starts programs.
    pub commands: command::Commands,
    /// `db::`: a plugin's own SQLite files.
    pub databases: crate::store::plugin_db::Databases,
    /// The host's own database: chats and what belongs to them.
    pub store: Arc<crate::store::main::MainDb>,
    /// Signs addresses of pictures elsewhere.
    pub proxy: proxy::Signer,
    /// What owners granted to plugins.
    pub grants: permissions::GrantStore,
    /// The tool registry, seen from below.
    pub tools: OnceLock<Arc<dyn ports::Tools>>,
    /// The files of plugins that are in no folder.
    pub carried: OnceLock<Arc<dyn ports::Carried>>,
    /// The runtime that natives wait on.
    pub runtime: tokio::runtime::Handle,
}

impl Services {
    /// The services of the root at `paths`. Nothing is read and nothing started before it is asked for.
    #[must_use]
    pub fn new(paths: Paths, clock: Clock, bus: Bus, runtime: tokio::runtime::Handle) -> Self {
        let store = Arc::new(crate::store::main::MainDb::new(paths.main_db()));
        Services {
            state: state::States::new(paths.clone(), clock.clone(), bus.clone()),
            chat_state: chat_state::ChatStates::new(store.clone(), clock.clone()),
            settings: settings::Store::new(paths.clone(), clock.clone(), bus.clone()),
            cache: cache::Cache::new(clock.clone()),
            scopes: scopes::Registry::new(),
            net: crate::net::Client::new(),
            credentials: credentials::Store::default(),
            commands: command::Commands::default(),
            databases: crate::store::plugin_db::Databases::default(),
            store,
            proxy: proxy::Signer::new(paths.clone()),
            grants: permissions::GrantStore::new(paths.clone(), clock.clone(), bus.clone()),
            tools: OnceLock::new(),
            carried: OnceLock::new(),
            paths,
            clock,
            bus,
            runtime,
        }
    }
}

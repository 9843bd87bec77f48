//! Lapidary: an embedded scripting host. Rhai scripts become live tools for an AI.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests set the stage themselves"))]

pub mod app;
pub mod base;
pub mod chat;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod docs;
#[cfg(feature = "mcp")]
pub mod doors;
pub mod host;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
pub mod net;
pub mod plugin;
pub mod script;
pub mod service;
pub mod store;
pub mod tool;
pub mod trial;

pub use app::{Host, HostBuilder, Shipped, Tool, Watching};
pub use base::error::{Error, Kind};
pub use base::event::Event;
pub use base::paths;
pub use script::alloc::CountingAllocator;
pub use script::module::HostModule;
pub use tool::dispatch::{Call, Outcome, Who};
pub use tool::registry::NativeTool;
pub use tool::spec::Spec;

/// The examples of the embedding guide, compiled and run with the other documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct EmbeddingGuide;

//! Lapidary: an embedded scripting host. Rhai scripts become live tools for an AI.

pub mod app;
pub mod base;
pub mod docs;
#[cfg(feature = "mcp")]
pub mod doors;
pub mod host;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod net;
pub mod plugin;
pub mod script;
pub mod service;
pub mod store;
pub mod tool;

pub use script::alloc::CountingAllocator;

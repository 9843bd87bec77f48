//! The MCP door: tools over standard input and output, and over streamable HTTP. The protocol is the official SDK's.

#[cfg(feature = "server")]
mod direct;
mod door;
mod list;
mod parts;
mod progress;
mod resource;
mod server;
mod stdio;
#[cfg(feature = "server")]
mod web;
mod wire;

pub use door::Options;
pub use stdio::{stdio, told_to_stop};
#[cfg(feature = "server")]
pub use web::Web;

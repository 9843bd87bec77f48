//! The HTTP door: sockets with limits, who is let in, and the routes. What runs behind a route belongs to the other rooms.

mod access;
mod api;
mod caller;
mod gate;
mod metrics;
mod page;
mod plugin;
mod proxy;
mod range;
mod reply;
mod route;
mod server;
mod token;

pub use route::Endpoint;
pub use server::{Options, Server};

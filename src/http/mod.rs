//! The HTTP door: sockets with limits, who is let in, and the routes. What runs behind a route belongs to the other rooms.

mod access;
mod api;
mod caller;
mod codes;
mod forward;
mod gate;
mod headers;
mod keys;
mod ledger;
mod limit;
mod links;
mod metrics;
mod page;
mod password;
mod patience;
mod plugin;
mod proxy;
mod range;
mod reply;
mod route;
mod seal;
mod server;
mod session;
mod settings;
mod tls;
mod token;
mod tokens;
mod uses;

pub use links::{Link, link};
pub use password::Password;
pub use route::Endpoint;
pub use server::{Options, Reader, Server};
pub use tokens::{Token, Tokens};

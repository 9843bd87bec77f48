//! Layer 1: the network. The only room that speaks HTTP; everybody else is handed its [`Client`].
//! It classifies hosts by their text, checks every address it connects to, and knows nothing of scripts or permissions.

pub mod belt;
mod body;
pub mod client;
pub mod cookie;
mod decode;
pub mod guard;
pub mod lane;
pub mod outlet;
mod redirect;
pub mod request;
pub mod tape;

pub use client::stream::{Incoming, Pace};
pub use client::{Client, Rules, Target};
pub use outlet::{Names, Outlet, Proxy, Range, Settings, Trusted};
pub use request::{Allowance, Body, File, Profile, Request, Response};

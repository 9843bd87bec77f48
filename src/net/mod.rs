//! Layer 1: the network. The only room that speaks HTTP; everybody else is handed its [`Client`].
//! It classifies hosts by their text, checks every address it connects to, and knows nothing of scripts or permissions.

pub mod client;
mod decode;
pub mod guard;
pub mod lane;
mod redirect;

pub use client::{Body, Client, Permit, Request, Response};

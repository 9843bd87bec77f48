//! Layer 0: what every room may use and what uses no room.

pub mod clock;
pub mod error;
pub mod event;
pub mod file;
pub mod in_flight;
pub mod json;
pub mod paths;

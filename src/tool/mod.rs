//! Tools: what a schema says, how arguments fit it, who may call, what runs, what a result becomes.
//! The rules are pure and know no script; `registry`, `dispatch` and `port` build on them.

pub mod arguments;
mod blob;
pub mod dialect;
pub mod dispatch;
pub mod doc;
mod doc_type;
pub mod gate;
pub mod handles;
pub mod journal;
mod keywords;
pub mod names;
pub mod pace;
mod pictures;
mod plan;
pub mod port;
pub mod registry;
mod reject;
pub mod result;
pub mod route;
pub mod running;
pub mod saved;
pub mod schema;
pub mod spec;
pub mod tokens;
pub mod toolset;
pub mod who;

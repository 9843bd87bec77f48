//! Tools as values: what a schema says, how arguments fit it, who may call, what a result becomes.
//! The pure half knows no script and no thread; loading and dispatch build on it.

pub mod arguments;
pub mod doc;
mod doc_type;
pub mod gate;
pub mod handles;
pub mod names;
mod plan;
mod reject;
pub mod result;
pub mod schema;
pub mod spec;
pub mod tokens;
pub mod toolset;

//! Layer 2: Rhai without our domain: one engine, limits, context in the tag, imports, diagnostics, call threads.

pub mod alloc;
pub mod control;
pub mod ctx;
pub mod diagnostic;
pub mod engine;
pub mod language;
pub mod lint;
pub mod module;
pub mod pool;
pub mod program;
pub mod resolver;
mod syntax;
pub mod value;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

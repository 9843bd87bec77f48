//! Layer 1: SQLite. The only room that imports it; what a script's own files may do is decided in `fence`.

mod fence;
pub mod plugin_db;

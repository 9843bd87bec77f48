//! Layer 1: SQLite. The only room that imports it: the host's own database, and the files of plugins; what a script's own
//! files may do is decided in `fence`.

pub mod chats;
mod fence;
pub mod images;
pub mod journal;
pub mod main;
pub mod plugin_db;
mod schema;

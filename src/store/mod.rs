//! Layer 1: SQLite. The only room that imports it: the host's own database, and the files of plugins; what a script's own
//! files may do is decided in `fence`.

pub mod chat_data;
pub mod chat_files;
pub mod chats;
mod fence;
pub mod images;
pub mod inbox;
pub mod journal;
pub mod library;
pub mod main;
pub mod messages;
pub mod plugin_db;
mod schema;
